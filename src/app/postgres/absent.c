/* Instead of all other files here, in a build without PostgreSQL. */
#include "store/absent.h"
#include "app/core/backend.h"

static pawl_status open_absent(struct app_store *store,
                               const struct pawl__location *location,
                               const struct app_store_options *options,
                               pawl_error *reterr)
{
    (void)store;
    (void)location;
    (void)options;
    return pawl__fail_absent(reterr, "PostgreSQL", "postgres");
}

const struct app_store_ops pawl__app_postgres_ops = { .size = sizeof(struct app_store),
                                                      .open = open_absent };

pawl_status pawl__app_postgres_list(const char *url,
                                    pawl_app_name_visitor visitor,
                                    void *context,
                                    pawl_error *reterr)
{
    (void)url;
    (void)visitor;
    (void)context;
    return pawl__fail_absent(reterr, "PostgreSQL", "postgres");
}
