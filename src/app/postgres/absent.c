/* Instead of all other files here, in a build without PostgreSQL. */
#include "store/absent.h"
#include "app/core/backend.h"

pawl_status pawl__app_postgres_open(const struct pawl__location *location,
                                    const void *setup,
                                    void *ret_store,
                                    pawl_error *reterr)
{
    (void)location;
    (void)setup;
    (void)ret_store;
    return pawl__fail_absent(reterr, "PostgreSQL", "postgres");
}

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
