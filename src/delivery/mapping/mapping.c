#include "delivery/mapping/mapping.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "delivery/mapping/path.h"

const char *pawl__delivery_type_name(enum delivery_type type)
{
    static const char *const names[] = {
        [DELIVERY_BIGINT] = "BIGINT",   [DELIVERY_INTEGER] = "INTEGER",
        [DELIVERY_DOUBLE] = "DOUBLE",   [DELIVERY_BOOLEAN] = "BOOLEAN",
        [DELIVERY_VARCHAR] = "VARCHAR", [DELIVERY_TIMESTAMP] = "TIMESTAMP",
        [DELIVERY_JSON] = "JSON",       [DELIVERY_BLOB] = "BLOB",
    };
    REQUIRE((size_t)type < COUNT_OF(names));
    return names[type];
}

const struct delivery_column *pawl__delivery_own_columns(size_t *ret_count)
{
    static const struct delivery_column columns[] = {
        { .name = "transaction_id", DELIVERY_VARCHAR, DELIVERY_FROM_TRANSACTION_ID },
        { .name = "payload_hash", DELIVERY_BLOB, DELIVERY_FROM_PAYLOAD_HASH },
        { .name = "event_key", DELIVERY_BLOB, DELIVERY_FROM_KEY },
    };

    *ret_count = COUNT_OF(columns);
    return columns;
}

const struct delivery_mapping *pawl__delivery_default_mapping(void)
{
    static const struct delivery_column columns[] = {
        { .name = "transaction_id", DELIVERY_VARCHAR, DELIVERY_FROM_TRANSACTION_ID },
        { .name = "source", DELIVERY_VARCHAR, DELIVERY_FROM_SOURCE },
        { .name = "event_id", DELIVERY_VARCHAR, DELIVERY_FROM_EVENT_ID },
        { .name = "subject", DELIVERY_VARCHAR, DELIVERY_FROM_SUBJECT },
        { "session_key", DELIVERY_VARCHAR, .path = "$.session_key", .is_lenient = true },
        { "correlation_key", DELIVERY_VARCHAR, .path = "$.correlation_key", .is_lenient = true },
        { "payload", DELIVERY_JSON, .path = "$" },
        { .name = "headers", DELIVERY_JSON, DELIVERY_FROM_HEADERS },
        { "event_time", DELIVERY_TIMESTAMP, .path = "$.event_time", .is_lenient = true },
        { .name = "received_at", DELIVERY_TIMESTAMP, DELIVERY_FROM_RECEIVED },
    };
    static const struct delivery_mapping mapping = {
        .table = "events",
        .columns = columns,
        .count = COUNT_OF(columns),
    };
    return &mapping;
}

/* --- is it a mapping --- */

static pawl_status check_name(const char *name, const char *what, pawl_error *reterr)
{
    size_t len = name == NULL ? 0 : strlen(name);
    bool is_name = len > 0 && len <= DELIVERY_NAME_BYTES_MAX && (name[0] < '0' || name[0] > '9');

    for (size_t i = 0; is_name && i < len; i++) {
        is_name = strchr("abcdefghijklmnopqrstuvwxyz0123456789_", name[i]) != NULL;
    }
    return is_name ? PAWL_OK
                   : pawl__fail(reterr,
                                PAWL_INVALID,
                                "%s '%.*s' must be 1 to %d lower-case letters, digits and '_'",
                                what,
                                DELIVERY_NAME_BYTES_MAX,
                                name == NULL ? "" : name,
                                DELIVERY_NAME_BYTES_MAX);
}

/* Our own names mean one thing in every table. */
static pawl_status check_own(const struct delivery_column *column, pawl_error *reterr)
{
    size_t count = 0;
    const struct delivery_column *own = pawl__delivery_own_columns(&count);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(own[i].name, column->name) == 0 && own[i].from != column->from) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "column '%s' is pawl's own: choose another name",
                              column->name);
        }
    }
    return PAWL_OK;
}

/* What a column that is not read from the payload can be. */
static enum delivery_type type_of(enum delivery_from from)
{
    switch (from) {
    case DELIVERY_FROM_KEY:
    case DELIVERY_FROM_PAYLOAD_HASH:
        return DELIVERY_BLOB;
    case DELIVERY_FROM_HEADERS:
        return DELIVERY_JSON;
    case DELIVERY_FROM_RECEIVED:
        return DELIVERY_TIMESTAMP;
    default:
        return DELIVERY_VARCHAR;
    }
}

/* Only its length: what it means, the sink finds out. */
static pawl_status check_expression(const char *expression, const char *name, pawl_error *reterr)
{
    size_t len = expression == NULL ? 0 : strlen(expression);

    return len > 0 && len <= DELIVERY_EXPRESSION_BYTES_MAX
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "the expression of '%s' has %zu bytes, 1 to %d are allowed",
                            name,
                            len,
                            DELIVERY_EXPRESSION_BYTES_MAX);
}

static pawl_status check_column(const struct delivery_column *column, pawl_error *reterr)
{
    bool is_path = column->from == DELIVERY_FROM_PATH;
    bool is_free = is_path || column->from == DELIVERY_FROM_EXPRESSION;

    TRY(check_name(column->name, "column", reterr));
    TRY(check_own(column, reterr));
    if (is_free ? column->type > DELIVERY_JSON : column->type != type_of(column->from)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "column '%s' cannot be %s",
                          column->name,
                          pawl__delivery_type_name(column->type));
    }
    if (is_path && column->path == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "column '%s' has no path", column->name);
    }
    if (column->from == DELIVERY_FROM_EXPRESSION) {
        return check_expression(column->expression, column->name, reterr);
    }
    return is_path ? pawl__delivery_path_check(column->path, reterr) : PAWL_OK;
}

static pawl_status check_table(const char *table, pawl_error *reterr)
{
    static const char *const taken[] = { "failed_events", "schema_version" };
    bool is_taken = false;

    TRY(check_name(table, "table", reterr));
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        is_taken |= strcmp(table, taken[i]) == 0;
    }
    return is_taken || strncmp(table, "delivery_", 9) == 0 ? pawl__fail(
               reterr, PAWL_INVALID, "table '%s' is pawl's own: choose another name", table)
                                                           : PAWL_OK;
}

pawl_status pawl__delivery_mapping_check(const struct delivery_mapping *mapping, pawl_error *reterr)
{
    size_t own_count = 0;

    (void)pawl__delivery_own_columns(&own_count);
    TRY(check_table(mapping->table, reterr));
    if (mapping->count > DELIVERY_COLUMNS_MAX - own_count) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "table '%s' has %zu columns, the limit is %zu",
                          mapping->table,
                          mapping->count,
                          DELIVERY_COLUMNS_MAX - own_count);
    }
    if (mapping->payload_bytes_max > DELIVERY_PAYLOAD_BYTES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "payloads of %zu bytes, the limit is %zu",
                          mapping->payload_bytes_max,
                          DELIVERY_PAYLOAD_BYTES_MAX);
    }
    if (mapping->filter != NULL) {
        TRY(check_expression(mapping->filter, "filter", reterr));
    }
    if (mapping->expression_ms_max > DELIVERY_EXPRESSION_MS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "expressions may take %u ms, the limit is %d",
                          mapping->expression_ms_max,
                          DELIVERY_EXPRESSION_MS_MAX);
    }
    for (size_t i = 0; i < mapping->count; i++) {
        TRY(check_column(&mapping->columns[i], reterr));
        for (size_t j = 0; j < i; j++) {
            if (strcmp(mapping->columns[i].name, mapping->columns[j].name) == 0) {
                return pawl__fail(
                    reterr, PAWL_INVALID, "column '%s' is there twice", mapping->columns[i].name);
            }
        }
    }
    return PAWL_OK;
}

/* --- values of the payload --- */

static pawl_status unfit(const struct delivery_column *column, pawl_view token, pawl_error *reterr)
{
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "%s: %.*s%s is no %s",
                      column->path,
                      (int)MIN(token.len, (size_t)40),
                      token.data,
                      token.len > 40 ? "..." : "",
                      pawl__delivery_type_name(column->type));
}

static bool number_fits(const struct delivery_column *column,
                        json_t *number,
                        struct delivery_value *value)
{
    if (column->type == DELIVERY_DOUBLE && json_is_real(number)) {
        value->as.real = json_real_value(number);
        return true;
    }
    if (!json_is_integer(number)) {
        return false;
    }
    int64_t whole = json_integer_value(number);
    if (column->type == DELIVERY_DOUBLE) {
        value->as.real = (double)whole;
        /* 2^63 as a double is out of range of int64 */
        return value->as.real < 0x1p63 && (int64_t)value->as.real == whole;
    }
    value->as.i64 = whole;
    return column->type == DELIVERY_BIGINT || (whole >= INT32_MIN && whole <= INT32_MAX);
}

/* pawl__time_parse cuts after microseconds; here that would be a loss. */
static bool has_more_than_microseconds(pawl_view text)
{
    const char *point = text.len == 0 ? NULL : memchr(text.data, '.', text.len);
    size_t at = point == NULL ? text.len : (size_t)(point - text.data) + 7;

    for (; at < text.len && text.data[at] >= '0' && text.data[at] <= '9'; at++) {
        if (text.data[at] != '0') {
            return true;
        }
    }
    return false;
}

static pawl_status keep_text(pawl_view text,
                             struct pawl__arena *arena,
                             pawl_view *ret_text,
                             pawl_error *reterr)
{
    return pawl__arena_copy(arena, text, ret_text)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a text");
}

/* What a string says. Without an escape it is the bytes between the quotes, where they are. */
static pawl_status decode(pawl_view token,
                          struct pawl__arena *arena,
                          pawl_view *ret_text,
                          pawl_error *reterr)
{
    json_auto_t *json = NULL;

    if (memchr(token.data, '\\', token.len) == NULL) {
        *ret_text = (pawl_view){ &token.data[1], token.len - 2 };
        return PAWL_OK;
    }
    TRY(pawl__json_parse(token, token.len, &json, reterr));
    return keep_text(
        (pawl_view){ json_string_value(json), json_string_length(json) }, arena, ret_text, reterr);
}

static pawl_status text_value(const struct delivery_column *column,
                              pawl_view token,
                              struct pawl__arena *arena,
                              struct delivery_value *value,
                              pawl_error *reterr)
{
    pawl_view text;

    if (token.data[0] != '"') {
        return unfit(column, token, reterr);
    }
    TRY(decode(token, arena, &text, reterr));
    if (column->type == DELIVERY_VARCHAR) {
        value->as.text = text;
        return PAWL_OK;
    }
    return has_more_than_microseconds(text)
                   || pawl__time_parse(text, &value->as.i64, NULL) != PAWL_OK
               ? unfit(column, token, reterr)
               : PAWL_OK;
}

static pawl_status number_value(const struct delivery_column *column,
                                pawl_view token,
                                struct delivery_value *value,
                                pawl_error *reterr)
{
    json_auto_t *json = NULL;

    if (strchr("{[\"tfn", token.data[0]) != NULL) {
        return unfit(column, token, reterr);
    }
    TRY(pawl__json_parse(token, token.len, &json, reterr));
    return number_fits(column, json, value) ? PAWL_OK : unfit(column, token, reterr);
}

static pawl_status convert(const struct delivery_column *column,
                           pawl_view token,
                           struct pawl__arena *arena,
                           struct delivery_value *value,
                           pawl_error *reterr)
{
    switch (column->type) {
    case DELIVERY_JSON:
        value->as.text = token;
        return PAWL_OK;
    case DELIVERY_BOOLEAN:
        value->as.boolean = pawl__view_is(token, "true");
        return value->as.boolean || pawl__view_is(token, "false") ? PAWL_OK
                                                                  : unfit(column, token, reterr);
    case DELIVERY_VARCHAR:
    case DELIVERY_TIMESTAMP:
        return text_value(column, token, arena, value, reterr);
    default:
        return number_value(column, token, value, reterr);
    }
}

static pawl_status path_value(const struct delivery_column *column,
                              const struct delivery_entry *entry,
                              struct pawl__arena *arena,
                              struct delivery_value *value,
                              pawl_error *reterr)
{
    bool is_found = false;
    pawl_view token;

    TRY(pawl__delivery_path_find(entry->payload, column->path, &is_found, &token, reterr));
    /* The root is the payload itself, and its null is JSON too. */
    bool is_root = strcmp(column->path, "$") == 0 && column->type == DELIVERY_JSON;
    value->is_null = !is_found || (!is_root && pawl__view_is(token, "null"));
    if (value->is_null) {
        return column->is_required ? pawl__fail(reterr, PAWL_INVALID, "%s: missing", column->path)
                                   : PAWL_OK;
    }
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = convert(column, token, arena, value, &error);
    value->is_null = status == PAWL_INVALID && column->is_lenient;
    return status == PAWL_OK || value->is_null ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

/* --- values of the message --- */

static pawl_status headers_value(const struct delivery_entry *entry,
                                 struct pawl__arena *arena,
                                 struct delivery_value *value,
                                 pawl_error *reterr)
{
    value->is_null = entry->header_count == 0;
    return value->is_null ? PAWL_OK
                          : pawl__delivery_headers_json(
                              entry->headers, entry->header_count, arena, &value->as.text, reterr);
}

static pawl_view hash_view(const struct delivery_hash *hash)
{
    return (pawl_view){ (const char *)hash->bytes, sizeof(hash->bytes) };
}

static pawl_status plain_text(pawl_view text,
                              const char *what,
                              struct delivery_value *value,
                              pawl_error *reterr)
{
    if (text.len > 0 && (memchr(text.data, '\0', text.len) != NULL || !pawl__view_is_utf8(text))) {
        return pawl__fail(reterr, PAWL_INVALID, "%s has a NUL or is not UTF-8", what);
    }
    value->as.text = text;
    return PAWL_OK;
}

pawl_status pawl__delivery_map_value(const struct delivery_column *column,
                                     const struct delivery_entry *entry,
                                     struct pawl__arena *arena,
                                     struct delivery_value *ret_value,
                                     pawl_error *reterr)
{
    *ret_value = (struct delivery_value){ .type = column->type };
    switch (column->from) {
    case DELIVERY_FROM_PATH:
        return path_value(column, entry, arena, ret_value, reterr);
    case DELIVERY_FROM_TRANSACTION_ID:
        return plain_text(entry->transaction_id, "the transaction id", ret_value, reterr);
    case DELIVERY_FROM_SOURCE:
        return plain_text(entry->source, "the source", ret_value, reterr);
    case DELIVERY_FROM_EVENT_ID:
        return plain_text(entry->event_id, "the event id", ret_value, reterr);
    case DELIVERY_FROM_SUBJECT:
        ret_value->is_null = entry->subject.len == 0;
        return plain_text(entry->subject, "the subject", ret_value, reterr);
    case DELIVERY_FROM_HEADERS:
        return headers_value(entry, arena, ret_value, reterr);
    case DELIVERY_FROM_RECEIVED:
        ret_value->as.i64 = entry->created_us;
        return PAWL_OK;
    case DELIVERY_FROM_EXPRESSION:
        ret_value->is_null = true;
        return PAWL_OK;
    case DELIVERY_FROM_KEY:
        ret_value->as.text = hash_view(&entry->key);
        return PAWL_OK;
    default:
        REQUIRE(column->from == DELIVERY_FROM_PAYLOAD_HASH);
        ret_value->as.text = hash_view(&entry->payload_hash);
        return PAWL_OK;
    }
}

/* --- the verdict --- */

void pawl__delivery_verdict_refuse(struct delivery_verdict *verdict,
                                   const char *reason,
                                   const pawl_error *error)
{
    verdict->kind = DELIVERY_TO_FAILED;
    verdict->reason = reason;
    snprintf(
        verdict->error, sizeof(verdict->error), "%.*s", DELIVERY_ERROR_SIZE - 1, error->message);
}

static pawl_status judge_columns(const struct delivery_column *columns,
                                 size_t count,
                                 const struct delivery_entry *entry,
                                 struct delivery_verdict *verdict,
                                 pawl_error *reterr)
{
    struct pawl__arena arena = ARENA_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;

    for (size_t i = 0; status == PAWL_OK && i < count; i++) {
        struct delivery_value value;
        /* The others always have a value; making the headers twice would only cost time. */
        if (!columns[i].is_lenient && columns[i].from != DELIVERY_FROM_HEADERS
            && columns[i].from != DELIVERY_FROM_EXPRESSION) {
            status = pawl__delivery_map_value(&columns[i], entry, &arena, &value, &error);
        }
    }
    pawl__arena_done(&arena);
    if (status == PAWL_INVALID) {
        pawl__delivery_verdict_refuse(verdict, DELIVERY_REASON_UNMAPPABLE, &error);
        return PAWL_OK;
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

bool pawl__delivery_mapping_computes(const struct delivery_mapping *mapping)
{
    bool computes = mapping->filter != NULL;

    for (size_t i = 0; i < mapping->count; i++) {
        computes |= mapping->columns[i].from == DELIVERY_FROM_EXPRESSION;
    }
    return computes;
}

pawl_status pawl__delivery_map_readable(const struct delivery_mapping *mapping,
                                        const struct delivery_entry *entry,
                                        struct delivery_verdict *ret_verdict,
                                        pawl_error *reterr)
{
    size_t bytes_max =
        mapping->payload_bytes_max > 0 ? mapping->payload_bytes_max : DELIVERY_PAYLOAD_BYTES_MAX;
    pawl_error error = PAWL_ERROR_INIT;
    struct delivery_verdict verdict = { .kind = DELIVERY_ROW };

    if (entry->payload.len > bytes_max) {
        pawl__fail(&error,
                   PAWL_INVALID,
                   "the payload has %zu bytes, the limit is %zu",
                   entry->payload.len,
                   bytes_max);
        pawl__delivery_verdict_refuse(&verdict, DELIVERY_REASON_TOO_LARGE, &error);
    } else {
        pawl_status status = pawl__json_check(entry->payload, entry->payload.len, &error);
        if (status == PAWL_INVALID) {
            pawl__delivery_verdict_refuse(&verdict, DELIVERY_REASON_NOT_JSON, &error);
        } else if (status != PAWL_OK) {
            return pawl__fail_with(reterr, status, &error);
        }
    }
    *ret_verdict = verdict;
    return PAWL_OK;
}

pawl_status pawl__delivery_map_columns(const struct delivery_mapping *mapping,
                                       const struct delivery_entry *entry,
                                       struct delivery_verdict *ret_verdict,
                                       pawl_error *reterr)
{
    size_t own_count = 0;
    const struct delivery_column *own = pawl__delivery_own_columns(&own_count);
    struct delivery_verdict verdict = { .kind = DELIVERY_ROW };

    TRY(judge_columns(own, own_count, entry, &verdict, reterr));
    if (verdict.kind == DELIVERY_ROW) {
        TRY(judge_columns(mapping->columns, mapping->count, entry, &verdict, reterr));
    }
    *ret_verdict = verdict;
    return PAWL_OK;
}

pawl_status pawl__delivery_map_verdict(const struct delivery_mapping *mapping,
                                       const struct delivery_entry *entry,
                                       struct delivery_verdict *ret_verdict,
                                       pawl_error *reterr)
{
    struct delivery_verdict verdict;

    TRY(pawl__delivery_map_readable(mapping, entry, &verdict, reterr));
    if (verdict.kind == DELIVERY_ROW) {
        TRY(pawl__delivery_map_columns(mapping, entry, &verdict, reterr));
    }
    *ret_verdict = verdict;
    return PAWL_OK;
}
