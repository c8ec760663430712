/* Instead of all other files here, in a build without PostgreSQL: what `pawl doctor` asks for. */
#include "store/absent.h"
#include "base/core/macros.h"
#include "store/postgres/postgres.h"

pawl_status pawl__pg_open(const char *url,
                          const struct pawl__pg_options *options,
                          struct pawl__pg **ret_pg,
                          pawl_error *reterr)
{
    (void)url;
    (void)options;
    (void)ret_pg;
    return pawl__fail_absent(reterr, "PostgreSQL", "postgres");
}

void pawl__pg_close(struct pawl__pg *pg)
{
    REQUIRE(pg == NULL);
}

const struct pawl__pg_server *pawl__pg_server_of(const struct pawl__pg *pg)
{
    REQUIRE(pg != NULL); /* which nobody can have */
    return NULL;
}
