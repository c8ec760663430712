/* Whether a table is as the migrations made it, except for added columns.
 *
 * What is between the parentheses of CREATE TABLE is compared piece by piece, so that ALTER TABLE ADD
 * COLUMN, which writes into this text, is told from a column or a constraint of ours that was changed.
 * What SQLite makes of the added pieces then decides whether they can refuse or change what is written. */
#include "store/sqlite/internal.h"
#include "store/sqlite/statements.h"

#include <string.h>

/* The next piece behind the '(' or ',' at *at, which then stands at its end. */
static bool next_piece(pawl_view text, size_t *at, pawl_view *ret_piece)
{
    size_t start = *at + 1;
    int depth = 0;
    char quote = '\0';

    if (*at >= text.len || text.data[*at] == ')') {
        return false;
    }
    for (size_t i = start; i < text.len; i++) {
        char c = text.data[i];

        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (depth == 0 && (c == ',' || c == ')')) {
            *ret_piece = (pawl_view){ text.data + start, i - start };
            *at = i;
            return true;
        } else if (c == '\'' || c == '"' || c == '`' || c == '[') {
            quote = c == '[' ? ']' : c;
        } else {
            depth += (c == '(') - (c == ')');
        }
    }
    return false; /* no table that SQLite has made */
}

static size_t find_open(pawl_view text)
{
    const char *open = text.len == 0 ? NULL : memchr(text.data, '(', text.len);

    return open == NULL ? text.len : (size_t)(open - text.data);
}

static pawl_view part(pawl_view text, size_t from, size_t to)
{
    return (pawl_view){ text.data + from, to - from };
}

bool pawl__sqlite_has_pieces(pawl_view expected, pawl_view found, size_t *ret_more)
{
    size_t at = find_open(expected);
    size_t found_at = find_open(found);
    bool same = pawl__view_equal(part(expected, 0, at), part(found, 0, found_at));
    pawl_view wanted = { NULL, 0 };
    pawl_view piece = { NULL, 0 };
    bool left = next_piece(expected, &at, &wanted);

    *ret_more = 0;
    while (next_piece(found, &found_at, &piece)) {
        if (left && pawl__view_equal(wanted, piece)) {
            left = next_piece(expected, &at, &wanted);
        } else {
            ++*ret_more;
        }
    }
    return same && !left
           && pawl__view_equal(part(expected, at, expected.len), part(found, found_at, found.len));
}

/* --- what SQLite makes of it --- */

enum { SHAPE_COLUMNS, SHAPE_SIZE = 5 }; /* table_shape */

static int read_shape(sqlite3 *native, pawl_view table, sqlite3_int64 ret_shape[SHAPE_SIZE])
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(
        native, pawl__store_sql_statements[STORE_SQL_TABLE_SHAPE], -1, &stmt, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_bind_text64(stmt, 1, table.data, table.len, SQLITE_STATIC, SQLITE_UTF8);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
    }
    for (int i = 0; i < SHAPE_SIZE && rc == SQLITE_ROW; i++) {
        ret_shape[i] = sqlite3_column_int64(stmt, i);
    }
    sqlite3_finalize(stmt);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

int pawl__sqlite_only_columns(
    sqlite3 *expected, sqlite3 *found, pawl_view table, size_t more, bool *ret_only)
{
    sqlite3_int64 before[SHAPE_SIZE] = { 0 };
    sqlite3_int64 after[SHAPE_SIZE] = { 0 };
    int rc = read_shape(expected, table, before);

    if (rc == SQLITE_OK) {
        rc = read_shape(found, table, after);
    }
    before[SHAPE_COLUMNS] += (sqlite3_int64)more;
    *ret_only = memcmp(before, after, sizeof(before)) == 0;
    return rc;
}
