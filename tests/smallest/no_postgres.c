#include "lib/pg_fixture.h"
#include "lib/pglite.h"

#include "base/core/error.h"

static pawl_status unsupported(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_UNSUPPORTED, "no PostgreSQL in this build");
}

pawl_status pg_server_start(const struct pg_server_options *options,
                            struct pg_server **ret_server,
                            pawl_error *reterr)
{
    (void)options;
    (void)ret_server;
    return unsupported(reterr);
}

void pg_server_free(struct pg_server *server)
{
    assert_null(server);
}

const char *pg_server_url(const struct pg_server *server)
{
    assert_non_null(server);
    return "";
}

void pg_admin(struct pg_fixture *f, const char *sql)
{
    (void)f;
    fail_msg("no server for '%s'", sql);
}

pawl_status pglite_start(struct pglite *pglite, pawl_error *reterr)
{
    (void)pglite;
    return unsupported(reterr);
}

void pglite_stop(struct pglite *pglite)
{
    (void)pglite;
}

pawl_status pglite_admin(struct pglite *pglite, const char *sql, pawl_error *reterr)
{
    (void)pglite;
    (void)sql;
    return unsupported(reterr);
}
