/* Whether a store still has the schema that its migrations made.
 *
 * A trigger of somebody else's can drop or change what is written while every statement reports
 * success; a table that was made again without its UNIQUE takes duplicates for new. So the objects of
 * the store are compared with those that the same migrations make in an empty database in memory.
 * Other tables and indexes are nobody's business, nor are columns that were added to ours and that an
 * INSERT may leave out (extend.c); a trigger on one of ours is.
 *
 * Making a large schema takes 7 ms. So scripts/embed-sql does it when pawl is built, and a store whose
 * objects have the same hash needs no comparison. */
#include "store/sqlite/internal.h"

#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sha256.h"
#include "store/sqlite/statements.h"

enum { SQL_BYTES_MAX = 1 << 20 };

/* Comments and white space say nothing: a migration may be explained better later. */
static void add_essence(struct pawl__buf *essence, pawl_view sql)
{
    char quote = '\0';

    for (size_t i = 0; i < sql.len; i++) {
        char c = sql.data[i];
        char next = i + 1 < sql.len ? sql.data[i + 1] : '\0';

        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
            pawl__buf_add_char(essence, c);
        } else if (c == '-' && next == '-') {
            while (i < sql.len && sql.data[i] != '\n') {
                i++;
            }
        } else if (c == '/' && next == '*') {
            for (i += 2; i + 1 < sql.len && (sql.data[i] != '*' || sql.data[i + 1] != '/'); i++) {
            }
            i++;
        } else if (strchr(" \t\r\n", c) == NULL) {
            quote = c == '\'' || c == '"' || c == '`' ? c : '\0';
            pawl__buf_add_char(essence, c);
        }
    }
}

/* --- what should be there --- */

static void close_native(sqlite3 **native)
{
    sqlite3_close(*native);
}

static pawl_status make_expected(const struct pawl__schema *schema,
                                 sqlite3 **ret_native,
                                 pawl_error *reterr)
{
    AUTO(close_native) sqlite3 *native = NULL;
    int rc = sqlite3_open_v2(":memory:",
                             &native,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX,
                             NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(native, "BEGIN", NULL, NULL, NULL);
    }
    for (size_t i = 0; rc == SQLITE_OK && i < schema->count; i++) {
        rc = sqlite3_exec(native, schema->migrations[i].sql, NULL, NULL, NULL);
    }
    if (rc != SQLITE_OK) {
        return pawl__fail(reterr,
                          rc == SQLITE_NOMEM ? PAWL_NOMEM : PAWL_FAILED,
                          "the schema of '%s' cannot be made in memory: %s",
                          schema->component,
                          sqlite3_errstr(rc));
    }
    *ret_native = STEAL(native);
    return PAWL_OK;
}

/* --- comparing --- */

enum { RANK, NAME, TABLE, TEXT, TYPE };

struct objects {
    sqlite3_stmt *stmt;
    bool row;
};

static void finalize(struct objects *objects)
{
    sqlite3_finalize(objects->stmt);
}

static int next(struct objects *objects)
{
    int rc = sqlite3_step(objects->stmt);

    objects->row = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int start(struct objects *objects, sqlite3 *native)
{
    int rc = sqlite3_prepare_v2(
        native, pawl__store_sql_statements[STORE_SQL_OBJECTS], -1, &objects->stmt, NULL);

    return rc == SQLITE_OK ? next(objects) : rc;
}

static pawl_view column(const struct objects *objects, int index)
{
    const char *text = (const char *)sqlite3_column_text(objects->stmt, index);

    return text == NULL ? (pawl_view){ NULL, 0 }
                        : (pawl_view){ text, (size_t)sqlite3_column_bytes(objects->stmt, index) };
}

static int compare_views(pawl_view a, pawl_view b)
{
    size_t len = MIN(a.len, b.len);
    int order = len == 0 ? 0 : memcmp(a.data, b.data, len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* Below 0: the store lacks it. Above: it has one more. */
static int compare(const struct objects *expected, const struct objects *found)
{
    if (!expected->row || !found->row) {
        return expected->row ? -1 : 1;
    }
    int order = compare_views(column(expected, RANK), column(found, RANK));
    return order != 0 ? order : compare_views(column(expected, NAME), column(found, NAME));
}

static pawl_status is_ours(sqlite3 *expected, pawl_view table, bool *ret_ours)
{
    AUTO(finalize) struct objects found = { NULL, false };
    int rc = sqlite3_prepare_v2(
        expected, pawl__store_sql_statements[STORE_SQL_HAS_OBJECT], -1, &found.stmt, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_bind_text64(found.stmt, 1, table.data, table.len, SQLITE_STATIC, SQLITE_UTF8);
    }
    if (rc == SQLITE_OK) {
        rc = next(&found);
    }
    *ret_ours = found.row;
    return rc == SQLITE_OK ? PAWL_OK : PAWL_NOMEM;
}

static pawl_status check_foreign(sqlite3 *expected, const struct objects *found, pawl_error *reterr)
{
    pawl_view table = column(found, TABLE);
    pawl_view name = column(found, NAME);
    bool ours = false;

    if (!pawl__view_is(column(found, TYPE), "trigger")) {
        return PAWL_OK;
    }
    if (is_ours(expected, table, &ours) != PAWL_OK) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to check the schema");
    }
    return ours ? pawl__fail_advised(
               reterr,
               PAWL_CORRUPT,
               "a trigger that is not pawl's, '%.*s' on '%.*s': it can drop or change "
               "what is written; to continue, run DROP TRIGGER \"%.*s\"",
               VIEW_ARGS(name),
               VIEW_ARGS(table),
               VIEW_ARGS(name))
                : PAWL_OK;
}

static pawl_status fail_changed(const char *before,
                                const struct objects *object,
                                const char *after,
                                pawl_error *reterr)
{
    return pawl__fail_advised(reterr,
                              PAWL_CORRUPT,
                              "a table or an index is missing or was changed: %s %.*s '%.*s'%s; "
                              "restore the store from a copy",
                              before,
                              VIEW_ARGS(column(object, TYPE)),
                              VIEW_ARGS(column(object, NAME)),
                              after);
}

/* What is known of two objects of one name. */
struct pair {
    const struct objects *expected;
    const struct objects *found;
    bool same;     /* or harmless */
    bool has_ours; /* and more, which is not harmless */
};

static int compare_texts(struct pawl__sqlite *db, sqlite3 *native, struct pair *pair)
{
    AUTO(pawl__buf_done) struct pawl__buf ours = BUF_INIT(SQL_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf theirs = BUF_INIT(SQL_BYTES_MAX);
    pawl_view table = column(pair->expected, TABLE);
    size_t more = 0;

    add_essence(&ours, column(pair->expected, TEXT));
    add_essence(&theirs, column(pair->found, TEXT));
    if (ours.broken || theirs.broken) {
        return SQLITE_NOMEM;
    }
    pair->same = pawl__view_equal(table, column(pair->found, TABLE))
                 && pawl__view_equal(pawl__buf_view(&ours), pawl__buf_view(&theirs));
    if (pair->same || !pawl__view_is(column(pair->found, TYPE), "table")) {
        return SQLITE_OK;
    }
    pair->has_ours = pawl__sqlite_has_pieces(pawl__buf_view(&ours), pawl__buf_view(&theirs), &more);
    return pair->has_ours ? pawl__sqlite_only_columns(native, db->native, table, more, &pair->same)
                          : SQLITE_OK;
}

static pawl_status check_same(struct pawl__sqlite *db,
                              sqlite3 *native,
                              const struct objects *expected,
                              const struct objects *found,
                              pawl_error *reterr)
{
    struct pair pair = { .expected = expected, .found = found };
    int rc = compare_texts(db, native, &pair);

    if (rc == SQLITE_NOMEM) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to check the schema");
    }
    if (rc != SQLITE_OK) {
        return pawl__sqlite_fail(db, rc, reterr);
    }
    if (pair.same) {
        return PAWL_OK;
    }
    if (pair.has_ours) {
        return pawl__fail_advised(
            reterr,
            PAWL_CORRUPT,
            "the table '%.*s' is not the one that pawl made: it has a column or a "
            "constraint more, which can refuse or remove what is written; to continue, "
            "remove that",
            VIEW_ARGS(column(found, NAME)));
    }
    return fail_changed("the", found, " is not the one that pawl made", reterr);
}

static pawl_status check_row(struct pawl__sqlite *db,
                             sqlite3 *native,
                             struct objects *expected,
                             struct objects *found,
                             int order,
                             pawl_error *reterr)
{
    if (order == 0) {
        return check_same(db, native, expected, found, reterr);
    }
    if (order > 0) {
        return check_foreign(native, found, reterr);
    }
    return fail_changed("there is no", expected, "", reterr);
}

static pawl_status compare_all(struct pawl__sqlite *db, sqlite3 *native, pawl_error *reterr)
{
    AUTO(finalize) struct objects expected = { NULL, false };
    AUTO(finalize) struct objects found = { NULL, false };
    int rc = start(&expected, native);

    if (rc == SQLITE_OK) {
        rc = start(&found, db->native);
    }
    while (rc == SQLITE_OK && (expected.row || found.row)) {
        int order = compare(&expected, &found);
        TRY(check_row(db, native, &expected, &found, order, reterr));
        rc = order <= 0 ? next(&expected) : SQLITE_OK;
        if (rc == SQLITE_OK && order >= 0) {
            rc = next(&found);
        }
    }
    return rc == SQLITE_OK ? PAWL_OK : pawl__sqlite_fail(db, rc, reterr);
}

static void add_column(struct pawl__buf *text, const struct objects *objects, int index)
{
    pawl__buf_add(text, column(objects, index));
    pawl__buf_add_char(text, '\0');
}

pawl_status pawl__sqlite_has_fingerprint(struct pawl__sqlite *db, bool *ret_has, pawl_error *reterr)
{
    AUTO(finalize) struct objects found = { NULL, false };
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(SQL_BYTES_MAX);
    struct pawl__sha256 hash;
    char hex[PAWL__SHA256_HEX_SIZE];
    int rc = start(&found, db->native);

    while (rc == SQLITE_OK && found.row) {
        add_column(&text, &found, RANK);
        add_column(&text, &found, NAME);
        add_column(&text, &found, TABLE);
        add_essence(&text, column(&found, TEXT));
        pawl__buf_add_char(&text, '\0');
        rc = next(&found);
    }
    if (rc != SQLITE_OK) {
        return pawl__sqlite_fail(db, rc, reterr);
    }
    TRY(pawl__buf_check(&text, "the schema", reterr));
    TRY(pawl__sha256(pawl__buf_view(&text), &hash, reterr));
    pawl__sha256_hex(&hash, hex);
    *ret_has = db->schema->fingerprint != NULL && strcmp(hex, db->schema->fingerprint) == 0;
    return PAWL_OK;
}

static pawl_status compare_objects(struct pawl__sqlite *db, pawl_error *reterr)
{
    AUTO(close_native) sqlite3 *native = NULL;
    bool whole = false;
    pawl_status status = pawl__sqlite_has_fingerprint(db, &whole, reterr);

    if (status != PAWL_OK || whole) {
        return status;
    }
    TRY(make_expected(db->schema, &native, reterr));
    return compare_all(db, native, reterr);
}

static pawl_status read_version(struct pawl__sqlite *db, int64_t *ret_version, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = { .db = db, .native = db->own[OWN_SCHEMA_VERSION] };
    bool row = false;

    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    REQUIRE(row);
    *ret_version = pawl__sqlite_i64(&stmt, 0);
    return PAWL_OK;
}

pawl_status pawl__sqlite_check_schema(struct pawl__sqlite *db, pawl_error *reterr)
{
    int64_t version = 0;
    size_t pending = 0;

    if (db->schema == NULL) {
        return PAWL_OK;
    }
    TRY(read_version(db, &version, reterr)); /* first: what changes meanwhile is a change */
    /* A newer program may have migrated it while it was open here. */
    TRY(pawl__migrate_pending(&pawl__sqlite_migrate_ops, db, db->schema, &pending, reterr));
    TRY(compare_objects(db, reterr));
    db->schema_version = version;
    db->schema_checked = true;
    return PAWL_OK;
}

pawl_status pawl__sqlite_check_schema_change(struct pawl__sqlite *db, pawl_error *reterr)
{
    int64_t version = 0;

    if (!db->schema_checked) {
        return PAWL_OK;
    }
    pawl_status status = read_version(db, &version, reterr);
    return status != PAWL_OK || version == db->schema_version
               ? status
               : pawl__sqlite_check_schema(db, reterr);
}
