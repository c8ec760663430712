/* Instead of all other files here, in a build without PostgreSQL. */
#include "store/absent.h"
#include "app/core/backend.h"

const struct app_store_ops pawl__app_postgres_ops = { .absent = { "PostgreSQL", "postgres" } };

pawl_status pawl__app_postgres_list(const char *url,
                                    app_name_visit *visit,
                                    void *context,
                                    pawl_error *reterr)
{
    (void)url;
    (void)visit;
    (void)context;
    return pawl__fail_absent(reterr, "PostgreSQL", "postgres");
}
