/* A question that somebody else wrote. */
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "store/postgres/internal.h"
#include "store/postgres/statements.h"

enum { ASK_BYTES_MAX = 1 << 20 };

/* As a condition it can be nothing but one SELECT, whatever it says; a line of its own ends a comment
 * that it ends with. */
static pawl_status wrap(pawl_view select, struct pawl__buf *buf, pawl_error *reterr)
{
    while (select.len > 0 && strchr("; \t\r\n", select.data[select.len - 1]) != NULL) {
        select.len--;
    }
    pawl__buf_add(buf, pawl_view_of("SELECT EXISTS ("));
    pawl__buf_add(buf, select);
    pawl__buf_add(buf, pawl_view_of("\n)"));
    pawl__buf_add_char(buf, '\0');
    return pawl__buf_check(buf, "the SELECT", reterr);
}

static pawl_status ask(
    struct pawl__pg *pg, const char *sql, int64_t ms_max, bool *ret_exists, pawl_error *reterr)
{
    const struct pawl__pg_statement statement = { .sql = sql, .columns = "b" };
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__pg_query(pg,
                       &pawl__store_pg_statements[STORE_PG_LIMIT_TRANSACTION],
                       PG_ARGS(pawl__pg_i64(ms_max)),
                       &rows,
                       reterr));
    TRY(pawl__pg_query(pg, &statement, PG_NO_ARGS, &rows, reterr));
    *ret_exists = pawl__pg_get_bool(&rows, 0, 0);
    return PAWL_OK;
}

pawl_status pawl__pg_row_exists(
    struct pawl__pg *pg, pawl_view select, int64_t ms_max, bool *ret_exists, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT(ASK_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;

    TRY(wrap(select, &sql, reterr));
    TRY(pawl__pg_begin(pg, PAWL__PG_READ_ONLY, reterr));
    pawl_status status = ask(pg, sql.data, ms_max, ret_exists, &error);
    pawl__pg_rollback(pg);
    if (status == PAWL_FAILED || status == PAWL_DENIED || status == PAWL_UNSUPPORTED
        || status == PAWL_CONFLICT) {
        return pawl__fail(reterr, PAWL_INVALID, "%s", error.message);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}
