/* SQL that somebody else wrote: one question, which may read and nothing else. */
#include "store/sqlite/internal.h"

#include "base/core/error.h"

/* Sees every step that a statement would take, while it is prepared. ATTACH and PRAGMA count as
 * read-only to sqlite3_stmt_readonly, so that one would not do. */
static int allow_reading(void *context,
                         int action,
                         const char *first,
                         const char *second,
                         const char *database,
                         const char *cause)
{
    (void)context;
    (void)first;
    (void)second;
    (void)database;
    (void)cause;
    return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION
                   || action == SQLITE_RECURSIVE
               ? SQLITE_OK
               : SQLITE_DENY;
}

static pawl_status ask(struct pawl__sqlite *db,
                       const char *select,
                       bool *ret_exists,
                       pawl_error *reterr)
{
    AUTO(pawl__sqlite_finalize) struct pawl__sqlite_stmt stmt = { 0 };
    pawl_status status = pawl__sqlite_prepare_once(db, select, &stmt, reterr);

    if (status == PAWL_FAILED || status == PAWL_DENIED) {
        return pawl__fail_context(reterr, PAWL_INVALID, "not one SELECT that only reads");
    }
    if (status != PAWL_OK) {
        return status;
    }
    if (sqlite3_bind_parameter_count(stmt.native) > 0) {
        return pawl__fail(reterr, PAWL_INVALID, "a SELECT with parameters, which nobody binds");
    }
    status = pawl__sqlite_next(&stmt, ret_exists, reterr);
    return status == PAWL_FAILED ? pawl__fail_context(reterr, PAWL_INVALID, "the SELECT") : status;
}

pawl_status pawl__sqlite_row_exists(struct pawl__sqlite *db,
                                    const char *select,
                                    int64_t ms_max,
                                    bool *ret_exists,
                                    pawl_error *reterr)
{
    bool exists = false;

    TRY(pawl__sqlite_check_stop(db, reterr));
    db->ask_until_ns = pawl__monotonic_ns(db->clock) + ms_max * NS_PER_MS;
    sqlite3_set_authorizer(db->native, allow_reading, NULL);
    pawl_status status = ask(db, select, &exists, reterr);
    sqlite3_set_authorizer(db->native, NULL, NULL);
    bool late = pawl__monotonic_ns(db->clock) >= db->ask_until_ns;
    db->ask_until_ns = 0;
    if (status == PAWL_CANCELLED && late) {
        return pawl__fail(
            reterr, PAWL_TIMEOUT, "the SELECT took longer than %lld ms", (long long)ms_max);
    }
    if (status == PAWL_OK) {
        *ret_exists = exists;
    }
    return status;
}
