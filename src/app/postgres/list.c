/* Which applications a database has. */
#include <stdlib.h>

#include "app/core/backend.h"
#include "app/postgres/statements.h"
#include "base/core/error.h"
#include "store/location.h"
#include "store/postgres/postgres.h"
#include "store/schemas.h"

enum { CONNECT_MS_MAX = 3000 };

/* The tables may not be there yet, and then nothing that names them can be prepared. */
static pawl_status has_tables(const char *url,
                              const struct pawl__pg_options *options,
                              bool *ret_has,
                              pawl_error *reterr)
{
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    const struct pawl__schema *schema = &pawl__schema_postgres_app;
    size_t pending = 0;

    TRY(pawl__pg_open(url, options, &pg, reterr));
    TRY(pawl__pg_pending(pg, schema, &pending, reterr));
    *ret_has = pending < schema->count;
    return PAWL_OK;
}

static pawl_status visit_names(const struct pawl__pg_rows *rows,
                               app_name_visit *visit,
                               void *context,
                               pawl_error *reterr)
{
    bool wanted = true;

    for (size_t i = 0; i < rows->count && wanted; i++) {
        AUTO(pawl__text_free) char *name = pawl__view_dup(pawl__pg_get_text(rows, i, 1));

        TRY(pawl__check_memory(name, "a name", reterr));
        wanted = visit(context, name);
    }
    return PAWL_OK;
}

pawl_status pawl__app_postgres_list(const char *url,
                                    app_name_visit *visit,
                                    void *context,
                                    pawl_error *reterr)
{
    AUTO(pawl__location_done) struct pawl__location location = { 0 };
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct pawl__pg_options options = { .application_name = "pawl app",
                                        .connect_ms_max = CONNECT_MS_MAX };
    bool has = false;

    TRY(pawl__location_parse(url, &location, reterr));
    TRY(has_tables(location.path, &options, &has, reterr));
    if (!has) {
        return PAWL_OK;
    }
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    options.statements = &pawl__app_pg_statements[APP_PG_FIND];
    options.statement_count = 1;
    TRY(pawl__pg_open(location.path, &options, &pg, reterr));
    TRY(pawl__pg_exec(
        pg, 0, PG_ARGS(pawl__pg_text(pawl_view_of("")), pawl__pg_i64(INT64_MAX)), &rows, reterr));
    return visit_names(&rows, visit, context, reterr);
}
