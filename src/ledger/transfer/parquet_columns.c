/* Which columns a Parquet file has, of which types, and how each is read without changing a value.
 *
 * A cast would round 1.5 to 2, take true for 1 and '7' for 7. So the type decides: whole numbers may
 * come from any type of number, but the value must survive the way there and back; what does not is
 * read as text, for the message. */
#include "ledger/transfer/parquet_columns.h"

#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/nearest.h"
#include "base/terminal/display.h"

enum { TYPE_SIZE = 160 };

struct field {
    const char *name;
    const char *wants; /* for a type that does not do */
    bool (*add)(struct pawl__buf *sql, const char *name, const char *type);
};

static bool is_one_of(const char *type, const char *const *types, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(type, types[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool begins_with(const char *type, const char *start)
{
    return strncmp(type, start, strlen(start)) == 0;
}

/* Those that fit into 64 bits with a sign. */
static bool is_small_integer(const char *type)
{
    static const char *const types[] = { "TINYINT",  "SMALLINT",  "INTEGER", "BIGINT",
                                         "UTINYINT", "USMALLINT", "UINTEGER" };

    return is_one_of(type, types, COUNT_OF(types));
}

static bool is_integer(const char *type)
{
    static const char *const types[] = { "UBIGINT", "HUGEINT", "UHUGEINT" };

    return is_small_integer(type) || is_one_of(type, types, COUNT_OF(types));
}

static bool is_number(const char *type)
{
    static const char *const types[] = { "FLOAT", "DOUBLE" };

    return is_integer(type) || is_one_of(type, types, COUNT_OF(types))
           || begins_with(type, "DECIMAL(");
}

static bool is_text(const char *type)
{
    static const char *const types[] = { "VARCHAR", "JSON", "UUID" };

    return is_one_of(type, types, COUNT_OF(types)) || begins_with(type, "ENUM(");
}

/* --- how each is read --- */

static bool add_text(struct pawl__buf *sql, const char *name, const char *type)
{
    pawl__buf_add_format(sql, "CAST(\"%s\" AS VARCHAR)", name);
    return is_text(type) || is_integer(type);
}

static bool add_payload(struct pawl__buf *sql, const char *name, const char *type)
{
    return add_text(sql, name, type) || strcmp(type, "BOOLEAN") == 0 || strcmp(type, "DOUBLE") == 0;
}

/* The number, and its text when it is none that fits. */
static bool add_whole(struct pawl__buf *sql, const char *name, const char *type)
{
    if (is_small_integer(type)) {
        pawl__buf_add_format(sql, "CAST(\"%s\" AS BIGINT), CAST(NULL AS VARCHAR)", name);
        return true;
    }
    pawl__buf_add_format(sql,
                         "TRY_CAST(\"%s\" AS BIGINT), CASE WHEN \"%s\" IS NULL OR"
                         " TRY_CAST(TRY_CAST(\"%s\" AS BIGINT) AS %s) = \"%s\" THEN NULL"
                         " ELSE CAST(\"%s\" AS VARCHAR) END",
                         name,
                         name,
                         name,
                         type,
                         name,
                         name);
    return is_number(type);
}

/* Microseconds, and a text that is still to be read. Nanoseconds are cut to microseconds, as those of
 * a text are: the earlier one, before 1970 too. Infinity is no time: its text says so. */
static bool add_time(struct pawl__buf *sql, const char *name, const char *type)
{
    static const char *const types[] = {
        "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS", "DATE"
    };

    if (strcmp(type, "VARCHAR") == 0) {
        pawl__buf_add_format(sql, "CAST(NULL AS BIGINT), \"%s\"", name);
        return true;
    }
    if (strcmp(type, "TIMESTAMP_NS") == 0) {
        pawl__buf_add_format(
            sql,
            "(epoch_ns(\"%s\") - (epoch_ns(\"%s\") %% 1000 + 1000) %% 1000) // 1000,"
            " CAST(NULL AS VARCHAR)",
            name,
            name);
        return true;
    }
    pawl__buf_add_format(
        sql,
        "CASE WHEN isfinite(CAST(\"%s\" AS TIMESTAMPTZ)) THEN epoch_us(\"%s\") END,"
        " CASE WHEN NOT isfinite(CAST(\"%s\" AS TIMESTAMPTZ)) THEN"
        " CAST(\"%s\" AS VARCHAR) END",
        name,
        name,
        name,
        name);
    return is_one_of(type, types, COUNT_OF(types));
}

/* In the order of enum parquet_column. */
static const struct field fields[] = {
    { "id", "text", add_text },
    { "run_id", "text", add_text },
    { "kind", "text", add_text },
    { "actor", "text", add_text },
    { "payload", "JSON as text", add_payload },
    { "turn", "a whole number", add_whole },
    { "schema_version", "a whole number", add_whole },
    { "created_at", "a TIMESTAMP, or RFC 3339 as text", add_time },
};

/* --- the file's own --- */

struct found {
    char types[COUNT_OF(fields)][TYPE_SIZE]; /* empty: there is no such column */
};

static bool is_named(pawl_view name, const char *wanted)
{
    return strlen(wanted) == name.len && strncasecmp(wanted, name.data, name.len) == 0;
}

static pawl_status fail_unknown(pawl_view name, pawl_error *reterr)
{
    char hint_space[300] = "";
    struct pawl__buf hint = BUF_OVER(hint_space);
    char shown_space[120] = "";
    struct pawl__buf shown = BUF_OVER(shown_space);
    struct pawl__nearest nearest = pawl__nearest_to(name);

    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        pawl__nearest_offer(&nearest, fields[i].name);
    }
    pawl__nearest_add_hint(&nearest, &hint);
    for (size_t i = 0; nearest.count == 0 && i < COUNT_OF(fields); i++) {
        pawl__buf_add_text(&hint, i == 0 ? "; the columns of an event are " : ", ");
        pawl__buf_add_text(&hint, fields[i].name);
    }
    pawl__display_add_quoted(&shown, name);
    return pawl__fail(
        reterr, PAWL_INVALID, "column %s is no field of an event%s", shown.data, hint.data);
}

/* DuckDB's names do not tell upper from lower case; two that differ in nothing else get a number.
 * What would not be imported is refused, as it is in a line of JSON; `offset` and `hash` are made
 * anew. */
static pawl_status note_type(struct found *found,
                             pawl_view name,
                             pawl_view type,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        size_t len = MIN(type.len, (size_t)TYPE_SIZE - 1);
        if (is_named(name, fields[i].name)) {
            memcpy(found->types[i], type.data, len);
            found->types[i][len] = '\0';
            return PAWL_OK;
        }
    }
    return is_named(name, "offset") || is_named(name, "hash") ? PAWL_OK
                                                              : fail_unknown(name, reterr);
}

void pawl__ledger_parquet_add_quoted(struct pawl__buf *sql, const char *path)
{
    pawl__buf_add_char(sql, '\'');
    for (const char *c = path; *c != '\0'; c++) {
        pawl__buf_add_text(sql, *c == '\'' ? "'" : "");
        pawl__buf_add_char(sql, *c);
    }
    pawl__buf_add_char(sql, '\'');
}

static pawl_status find_columns(struct pawl__duck_conn *conn,
                                const char *path,
                                struct found *ret_found,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT((size_t)1 << 16);
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    pawl__buf_add_text(
        &sql, "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM read_parquet(");
    pawl__ledger_parquet_add_quoted(&sql, path);
    pawl__buf_add_text(&sql, "))");
    TRY(pawl__buf_check(&sql, "a path", reterr));
    TRY(pawl__duck_query_text(conn, sql.data, NULL, 0, &rows, reterr));
    for (;;) {
        TRY(pawl__duck_next(rows, reterr));
        if (!pawl__duck_has_row(rows)) {
            return PAWL_OK;
        }
        TRY(note_type(
            ret_found, pawl__duck_get_text(rows, 0), pawl__duck_get_text(rows, 1), reterr));
    }
}

static pawl_status add_field(struct pawl__buf *sql,
                             const struct field *field,
                             const char *type,
                             pawl_error *reterr)
{
    if (type[0] != '\0') {
        return field->add(sql, field->name, type) ? PAWL_OK
                                                  : pawl__fail(reterr,
                                                               PAWL_INVALID,
                                                               "%s: is a column of %s, must be %s",
                                                               field->name,
                                                               type,
                                                               field->wants);
    }
    bool pair = field->add == add_whole || field->add == add_time;
    pawl__buf_add_text(sql, pair ? "CAST(NULL AS BIGINT), " : "");
    pawl__buf_add_text(sql, "CAST(NULL AS VARCHAR)");
    return PAWL_OK;
}

pawl_status pawl__ledger_parquet_add_query(struct pawl__duck_conn *conn,
                                           const char *path,
                                           struct pawl__buf *sql,
                                           pawl_error *reterr)
{
    struct found found = { .types = { "" } };

    TRY(find_columns(conn, path, &found, reterr));
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        pawl__buf_add_text(sql, i == 0 ? "SELECT " : ", ");
        TRY(add_field(sql, &fields[i], found.types[i], reterr));
    }
    pawl__buf_add_text(sql, " FROM read_parquet(");
    pawl__ledger_parquet_add_quoted(sql, path);
    pawl__buf_add_text(sql, ")");
    return pawl__buf_check(sql, "a query", reterr);
}
