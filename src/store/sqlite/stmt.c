/* Statements and transactions: the part of the wrapper that runs for every row. Nothing here
 * allocates but the preparing. */
#include "store/sqlite/internal.h"

#include <string.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"

pawl_status pawl__sqlite_prepare(struct pawl__sqlite *db,
                                 const char *sql,
                                 bool lasting,
                                 sqlite3_stmt **ret_stmt,
                                 pawl_error *reterr)
{
    const char *tail = NULL;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v3(
        db->native, sql, -1, lasting ? SQLITE_PREPARE_PERSISTENT : 0, &stmt, &tail);

    if (rc != SQLITE_OK) {
        return pawl__sqlite_fail(db, rc, reterr);
    }
    if (stmt == NULL || tail[strspn(tail, " \t\n;")] != '\0') {
        sqlite3_finalize(stmt);
        return pawl__fail(reterr, PAWL_FAILED, "not one statement: %s", sql);
    }
    *ret_stmt = stmt;
    return PAWL_OK;
}

pawl_status pawl__sqlite_prepare_once(struct pawl__sqlite *db,
                                      const char *sql,
                                      struct pawl__sqlite_stmt *ret_stmt,
                                      pawl_error *reterr)
{
    TRY(pawl__sqlite_prepare(db, sql, false, &ret_stmt->native, reterr));
    ret_stmt->db = db;
    return PAWL_OK;
}

void pawl__sqlite_finalize(struct pawl__sqlite_stmt *stmt)
{
    sqlite3_finalize(stmt->native);
    stmt->native = NULL;
}

struct pawl__sqlite_stmt pawl__sqlite_use(struct pawl__sqlite *db, size_t id)
{
    REQUIRE(id < db->statement_count);
    REQUIRE(!sqlite3_stmt_busy(db->statements[id]));
    return (struct pawl__sqlite_stmt){ .db = db, .native = db->statements[id] };
}

void pawl__sqlite_reset(struct pawl__sqlite_stmt *stmt)
{
    if (stmt->native != NULL) {
        sqlite3_reset(stmt->native); /* repeats the error of the step, which was reported */
        sqlite3_clear_bindings(stmt->native); /* what was bound is borrowed and may be gone */
        stmt->native = NULL;
    }
}

static void note(struct pawl__sqlite_stmt *stmt, int rc)
{
    if (stmt->rc == SQLITE_OK) {
        stmt->rc = rc;
    }
}

void pawl__sqlite_bind_i64(struct pawl__sqlite_stmt *stmt, int parameter, int64_t value)
{
    note(stmt, sqlite3_bind_int64(stmt->native, parameter, value));
}

void pawl__sqlite_bind_double(struct pawl__sqlite_stmt *stmt, int parameter, double value)
{
    note(stmt, sqlite3_bind_double(stmt->native, parameter, value));
}

void pawl__sqlite_bind_text(struct pawl__sqlite_stmt *stmt, int parameter, pawl_view text)
{
    const char *data = text.data == NULL ? "" : text.data;

    note(stmt,
         sqlite3_bind_text64(stmt->native, parameter, data, text.len, SQLITE_STATIC, SQLITE_UTF8));
}

void pawl__sqlite_bind_copy(struct pawl__sqlite_stmt *stmt, int parameter, pawl_view text)
{
    const char *data = text.data == NULL ? "" : text.data;

    /* SQLITE_TRANSIENT is a number that SQLite casts to a pointer. */
    note(stmt,
         sqlite3_bind_text64(stmt->native,
                             parameter,
                             data,
                             text.len,
                             SQLITE_TRANSIENT, /* NOLINT(performance-no-int-to-ptr) */
                             SQLITE_UTF8));
}

void pawl__sqlite_bind_blob(struct pawl__sqlite_stmt *stmt, int parameter, pawl_view bytes)
{
    const char *data = bytes.data == NULL ? "" : bytes.data;

    note(stmt, sqlite3_bind_blob64(stmt->native, parameter, data, bytes.len, SQLITE_STATIC));
}

void pawl__sqlite_bind_null(struct pawl__sqlite_stmt *stmt, int parameter)
{
    note(stmt, sqlite3_bind_null(stmt->native, parameter));
}

/* After a commit. The log is moved here and not by SQLite's own hook, because that one swallows a
 * failed fsync. What failed otherwise (no space, say) leaves everything in the log, where it is
 * safe; pawl__sqlite_checkpoint reports it. */
static void checkpoint_if_due(struct pawl__sqlite *db)
{
    if (__builtin_expect(db->wal_pages_max == 0 || db->wal_pages < db->wal_pages_max, 1)
        || !sqlite3_get_autocommit(db->native)) {
        return;
    }
    db->wal_pages = 0;
    int rc = sqlite3_wal_checkpoint_v2(db->native, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    pawl__sqlite_note_sync(db, rc);
}

/* SQLITE_ROW, SQLITE_DONE or an error. */
static int step(struct pawl__sqlite *db, sqlite3_stmt *native)
{
    db->busy_waited_ns = 0;
    int rc = sqlite3_step(native);
    if (rc == SQLITE_DONE) {
        checkpoint_if_due(db);
    }
    return rc;
}

pawl_status pawl__sqlite_next(struct pawl__sqlite_stmt *stmt, bool *ret_row, pawl_error *reterr)
{
    if (stmt->rc != SQLITE_OK) {
        return pawl__sqlite_fail(stmt->db, stmt->rc, reterr);
    }
    TRY(pawl__sqlite_check_stop(stmt->db, reterr));
    int rc = step(stmt->db, stmt->native);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return pawl__sqlite_fail(stmt->db, rc, reterr);
    }
    *ret_row = rc == SQLITE_ROW;
    return PAWL_OK;
}

pawl_status pawl__sqlite_run(struct pawl__sqlite_stmt *stmt, pawl_error *reterr)
{
    bool row = false;

    TRY(pawl__sqlite_next(stmt, &row, reterr));
    if (row) {
        return pawl__fail(reterr,
                          PAWL_FAILED,
                          "'%s': rows from a statement that gives none: %s",
                          stmt->db->path,
                          sqlite3_sql(stmt->native));
    }
    return PAWL_OK;
}

int64_t pawl__sqlite_i64(struct pawl__sqlite_stmt *stmt, int column)
{
    return sqlite3_column_int64(stmt->native, column);
}

double pawl__sqlite_double(struct pawl__sqlite_stmt *stmt, int column)
{
    return sqlite3_column_double(stmt->native, column);
}

bool pawl__sqlite_is_null(struct pawl__sqlite_stmt *stmt, int column)
{
    return sqlite3_column_type(stmt->native, column) == SQLITE_NULL;
}

/* Through the value, which is asked for once: each of sqlite3_column_type, _text and _bytes takes the
 * handle's mutex and looks at its errors again. SQLite calls such a value unprotected, which says
 * something only where a handle has a mutex; ours belongs to one thread. */
bool pawl__sqlite_as_text(struct pawl__sqlite_stmt *stmt, int column, pawl_view *ret_text)
{
    sqlite3_value *value = sqlite3_column_value(stmt->native, column);

    if (sqlite3_value_type(value) != SQLITE_TEXT) {
        return false;
    }
    ret_text->data = (const char *)sqlite3_value_text(value);
    ret_text->len = (size_t)sqlite3_value_bytes(value);
    return ret_text->data != NULL;
}

bool pawl__sqlite_as_i64(struct pawl__sqlite_stmt *stmt, int column, int64_t *ret_number)
{
    sqlite3_value *value = sqlite3_column_value(stmt->native, column);

    if (sqlite3_value_type(value) != SQLITE_INTEGER) {
        return false;
    }
    *ret_number = sqlite3_value_int64(value);
    return true;
}

pawl_view pawl__sqlite_text(struct pawl__sqlite_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt->native, column);

    if (text == NULL) { /* it is NULL, or a conversion found no memory */
        bool no_memory = sqlite3_errcode(stmt->db->native) == SQLITE_NOMEM;
        note(stmt, no_memory ? SQLITE_NOMEM : SQLITE_OK);
        return (pawl_view){ 0 };
    }
    return (pawl_view){ .data = text, .len = (size_t)sqlite3_column_bytes(stmt->native, column) };
}

pawl_view pawl__sqlite_blob(struct pawl__sqlite_stmt *stmt, int column)
{
    sqlite3_value *value = sqlite3_column_value(stmt->native, column);
    const void *bytes = sqlite3_value_blob(value);

    return (pawl_view){ .data = bytes,
                        .len = bytes == NULL ? 0 : (size_t)sqlite3_value_bytes(value) };
}

int64_t pawl__sqlite_changes(struct pawl__sqlite *db)
{
    return sqlite3_changes64(db->native);
}

pawl_status pawl__sqlite_data_version(struct pawl__sqlite *db,
                                      int64_t *ret_version,
                                      pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = { .db = db, .native = db->own[OWN_DATA_VERSION] };
    bool row = false;

    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    REQUIRE(row);
    *ret_version = pawl__sqlite_i64(&stmt, 0);
    return PAWL_OK;
}

static int run_own(struct pawl__sqlite *db, int which)
{
    int rc = step(db, db->own[which]);

    sqlite3_reset(db->own[which]);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

bool pawl__sqlite_in_transaction(const struct pawl__sqlite *db)
{
    return db->in_transaction;
}

pawl_status pawl__sqlite_begin(struct pawl__sqlite *db,
                               enum pawl__sqlite_begin kind,
                               pawl_error *reterr)
{
    REQUIRE(!db->in_transaction);
    bool writes = kind == PAWL__SQLITE_IMMEDIATE;

    TRY(pawl__sqlite_check_stop(db, reterr));
    /* What is written to a file that is no longer in its place is lost when it is closed, and
     * somebody else may be writing to another one there. */
    TRY(writes ? pawl__sqlite_check_place(db, reterr) : PAWL_OK);
    int rc = run_own(db, writes ? OWN_BEGIN_IMMEDIATE : OWN_BEGIN_DEFERRED);
    if (rc != SQLITE_OK) {
        return pawl__sqlite_fail(db, rc, reterr);
    }
    db->in_transaction = true;
    db->writes = writes;
    pawl_status status = writes ? pawl__sqlite_check_schema_change(db, reterr) : PAWL_OK;
    if (status != PAWL_OK) {
        pawl__sqlite_rollback(db);
    }
    return status;
}

static pawl_status commit(struct pawl__sqlite *db, pawl_error *reterr)
{
    TRY(pawl__sqlite_check_stop(db, reterr));
    FAILPOINT("sqlite.commit.before", reterr);
    /* Without the shield an interrupt could be reported for a commit that has just happened. */
    db->shielded = true;
    int rc = run_own(db, OWN_COMMIT);
    db->shielded = false;
    if (rc != SQLITE_OK) {
        return pawl__sqlite_fail(db, rc, reterr);
    }
    FAILPOINT("sqlite.commit.after", reterr);
    return db->writes ? pawl__sqlite_check_sides(db, reterr) : PAWL_OK; /* it went into the log */
}

pawl_status pawl__sqlite_commit(struct pawl__sqlite *db, pawl_error *reterr)
{
    REQUIRE(db->in_transaction);
    pawl_status status = commit(db, reterr);
    if (status != PAWL_OK) {
        pawl__sqlite_rollback(db);
        return status;
    }
    db->in_transaction = false;
    return PAWL_OK;
}

void pawl__sqlite_rollback(struct pawl__sqlite *db)
{
    enum { TRIES = 3 }; /* sqlite3_interrupt may hit the ROLLBACK itself, once a call */

    if (!db->in_transaction) {
        return;
    }
    db->shielded = true;
    for (int i = 0; i < TRIES && !sqlite3_get_autocommit(db->native); i++) {
        run_own(db, OWN_ROLLBACK);
    }
    db->shielded = false;
    db->in_transaction = false;
    atomic_fetch_and(&db->stop, ~(unsigned)STOP_ABORTED);
    if (!sqlite3_get_autocommit(db->native)) {
        atomic_fetch_or(&db->stop, STOP_POISONED); /* closing takes it back */
    }
}

pawl_status pawl__sqlite_exec(struct pawl__sqlite *db, const char *sql, pawl_error *reterr)
{
    TRY(pawl__sqlite_check_stop(db, reterr));
    db->busy_waited_ns = 0;
    int rc = sqlite3_exec(db->native, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        return pawl__sqlite_fail(db, rc, reterr);
    }
    checkpoint_if_due(db);
    return PAWL_OK;
}

void pawl__sqlite_interrupt(struct pawl__sqlite *db)
{
    atomic_fetch_or(&db->stop, STOP_INTERRUPTED);
    /* The flag stops what runs instructions or waits; this also stops a long check or sort. */
    sqlite3_interrupt(db->native);
}

void pawl__sqlite_interrupt_clear(struct pawl__sqlite *db)
{
    atomic_fetch_and(&db->stop, ~(unsigned)STOP_INTERRUPTED);
}
