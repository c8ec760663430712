/* A line is split into its members here and not handed to the JSON reader whole: the payload has to
 * stay as it was written, to the letter, because its text is what the chain's hash covers. Each
 * member is then read as what it is; the payload itself when the event is appended. */
#include "ledger/transfer/event_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/hex.h"
#include "base/core/nearest.h"
#include "base/core/quantity.h"
#include "base/core/sha256.h"
#include "base/core/sized.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/terminal/display.h"
#include "ledger/core/event.h"

enum { FIELD_BYTES_MAX = 1 << 16 }; /* of a field but the payload; its own limit comes later */

enum field {
    FIELD_OFFSET,
    FIELD_ID,
    FIELD_RUN_ID,
    FIELD_TURN,
    FIELD_KIND,
    FIELD_ACTOR,
    FIELD_PAYLOAD,
    FIELD_PAYLOAD_TEXT,
    FIELD_CREATED_AT,
    FIELD_SCHEMA_VERSION,
    FIELD_HASH,
    FIELD_COUNT
};

static const char *const names[FIELD_COUNT] = {
    "offset",  "id",           "run_id",     "turn",           "kind", "actor",
    "payload", "payload_text", "created_at", "schema_version", "hash",
};

/* --- splitting --- */

struct split {
    pawl_view text;
    size_t at;
    pawl_view values[FIELD_COUNT]; /* as written; empty: not there */
    pawl_error *reterr;
};

static pawl_status fail_here(const struct split *split, const char *what)
{
    bool ended = split->at >= split->text.len;

    return pawl__fail(split->reterr,
                      PAWL_INVALID,
                      "column %zu: %s",
                      split->at + 1,
                      ended ? "it ends here" : what);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next byte after white space; 0 at the end, since NUL bytes were refused before. */
static char peek(struct split *split)
{
    for (; split->at < split->text.len; split->at++) {
        char c = split->text.data[split->at];
        if (!is_space(c)) {
            return c;
        }
    }
    return '\0';
}

static bool accept(struct split *split, char wanted)
{
    if (peek(split) != wanted) {
        return false;
    }
    split->at++;
    return true;
}

/* To the end of the string that begins here; false when it has no end. */
static bool skip_string(struct split *split)
{
    for (split->at++; split->at < split->text.len; split->at++) {
        char c = split->text.data[split->at];
        if (c == '"') {
            split->at++;
            return true;
        }
        split->at += c == '\\';
    }
    split->at = split->text.len;
    return false;
}

/* To the end of the value that begins here. What is inside it is checked when it is read. */
static bool skip_value(struct split *split)
{
    size_t depth = 0;

    while (split->at < split->text.len) {
        char c = split->text.data[split->at];
        if (c == '"') {
            if (!skip_string(split)) {
                return false;
            }
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
            return true;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        split->at++;
    }
    return false;
}

static pawl_view trimmed(pawl_view text)
{
    while (text.len > 0 && is_space(text.data[text.len - 1])) {
        text.len--;
    }
    return text;
}

static pawl_status unknown_name(const struct split *split, pawl_view name)
{
    char space[200] = "";
    struct pawl__buf hint = BUF_OVER(space);
    char shown_space[120] = "";
    struct pawl__buf shown = BUF_OVER(shown_space);
    struct pawl__nearest nearest = pawl__nearest_to(name);

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        pawl__nearest_offer(&nearest, names[i]);
    }
    pawl__nearest_add_hint(&nearest, &hint);
    pawl__display_add_quoted(&shown, name);
    return pawl__fail(
        split->reterr, PAWL_INVALID, "%s is no field of an event%s", shown.data, hint.data);
}

/* A name with an escape in it is none of ours. */
static pawl_status parse_name(struct split *split, enum field *ret_field)
{
    size_t start = split->at + 1;

    if (peek(split) != '"') {
        return fail_here(split, "expected a name in quotes");
    }
    start = split->at + 1;
    if (!skip_string(split)) {
        return fail_here(split, "");
    }
    pawl_view name = { &split->text.data[start], split->at - start - 1 };
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (pawl__view_is(name, names[i])) {
            *ret_field = (enum field)i;
            return PAWL_OK;
        }
    }
    return unknown_name(split, name);
}

static pawl_status parse_member(struct split *split)
{
    enum field field = FIELD_COUNT;

    TRY(parse_name(split, &field));
    if (split->values[field].len > 0) {
        return pawl__fail(split->reterr, PAWL_INVALID, "%s: is there twice", names[field]);
    }
    if (!accept(split, ':')) {
        return fail_here(split, "expected ':'");
    }
    (void)peek(split);
    size_t start = split->at;
    if (!skip_value(split)) {
        return fail_here(split, "");
    }
    split->values[field] = trimmed((pawl_view){ &split->text.data[start], split->at - start });
    return split->values[field].len > 0
               ? PAWL_OK
               : pawl__fail(split->reterr, PAWL_INVALID, "%s: has no value", names[field]);
}

static pawl_status split_members(struct split *split)
{
    if (!accept(split, '{')) {
        return fail_here(split, "expected an object: {\"id\": ...}");
    }
    if (accept(split, '}')) {
        return PAWL_OK;
    }
    do {
        TRY(parse_member(split));
    } while (accept(split, ','));
    return accept(split, '}') ? PAWL_OK : fail_here(split, "expected ',' or '}'");
}

static pawl_status split_line(struct split *split)
{
    pawl_view text = split->text;
    const char *nul = text.len == 0 ? NULL : memchr(text.data, '\0', text.len);

    if (nul != NULL) {
        return pawl__fail(split->reterr,
                          PAWL_INVALID,
                          "column %zu: a NUL byte; write UTF-8 without them",
                          (size_t)(nul - text.data) + 1);
    }
    TRY(split_members(split));
    if (peek(split) != '\0') {
        return fail_here(split, "nothing may follow the object");
    }
    return PAWL_OK;
}

/* --- reading the members --- */

struct reading {
    struct split split;
    struct pawl__arena *arena;
};

/* Left out, or null, which says the same. */
static bool is_missing(const struct reading *reading, enum field field)
{
    pawl_view value = reading->split.values[field];

    return value.len == 0 || (pawl__view_is(value, "null") && field != FIELD_PAYLOAD);
}

/* A string without escapes and control characters is what stands between its quotes. */
static bool is_plain(pawl_view value)
{
    if (value.len < 2 || value.data[0] != '"' || value.data[value.len - 1] != '"') {
        return false;
    }
    for (size_t i = 1; i < value.len - 1; i++) {
        unsigned char c = (unsigned char)value.data[i];
        if (c == '\\' || c == '"' || c < ' ') {
            return false;
        }
    }
    return true;
}

static pawl_status read_text(struct reading *reading,
                             enum field field,
                             size_t bytes_max,
                             pawl_view *ret_text)
{
    pawl_error *reterr = reading->split.reterr;
    pawl_view value = reading->split.values[field];
    json_auto_t *json = NULL;
    pawl_view text;

    if (is_missing(reading, field)) {
        return PAWL_OK;
    }
    if (is_plain(value)) {
        *ret_text = (pawl_view){ &value.data[1], value.len - 2 };
        return PAWL_OK;
    }
    pawl_status status = pawl__json_parse(value, bytes_max, &json, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "%s", names[field]);
    }
    TRY(pawl__json_text(pawl__json_root(json, names[field]), &text, reterr));
    if (!pawl__arena_copy(reading->arena, text, ret_text)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an event");
    }
    return PAWL_OK;
}

static bool is_digits(pawl_view value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9') {
            return false;
        }
    }
    return value.len > 0 && (value.data[0] != '0' || value.len == 1);
}

static pawl_status read_number(struct reading *reading, enum field field, int64_t *ret_number)
{
    pawl_error *reterr = reading->split.reterr;
    pawl_view value = reading->split.values[field];
    json_auto_t *json = NULL;

    if (is_missing(reading, field)) {
        return PAWL_OK;
    }
    if (is_digits(value) && value.len < 19) {
        return pawl__integer_parse(value, ret_number, reterr);
    }
    pawl_status status = pawl__json_parse(value, FIELD_BYTES_MAX, &json, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "%s", names[field]);
    }
    return pawl__json_int(
        pawl__json_root(json, names[field]), INT64_MIN, INT64_MAX, ret_number, reterr);
}

static pawl_status read_time(struct reading *reading, int64_t *ret_us)
{
    pawl_error *reterr = reading->split.reterr;
    pawl_view text = { NULL, 0 };

    TRY(read_text(reading, FIELD_CREATED_AT, FIELD_BYTES_MAX, &text));
    if (is_missing(reading, FIELD_CREATED_AT)) {
        return PAWL_OK;
    }
    pawl_status status = pawl__time_parse(text, ret_us, reterr);
    return status == PAWL_OK ? status : pawl__fail_context(reterr, status, "created_at");
}

static pawl_status read_hash(struct reading *reading, uint8_t ret_hash[PAWL_LEDGER_HASH_BYTES])
{
    pawl_error *reterr = reading->split.reterr;
    struct pawl__sha256 hash;
    pawl_view text = { NULL, 0 };

    TRY(read_text(reading, FIELD_HASH, FIELD_BYTES_MAX, &text));
    if (is_missing(reading, FIELD_HASH)) {
        return PAWL_OK;
    }
    pawl_status status = pawl__sha256_parse(text, &hash, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "hash");
    }
    memcpy(ret_hash, hash.bytes, sizeof(hash.bytes));
    return PAWL_OK;
}

/* A payload that is there in both forms says the same in both, or it is not known which was meant.
 */
static pawl_status check_both(pawl_view payload, pawl_view text, pawl_error *reterr)
{
    const pawl_event one = { .size = sizeof(pawl_event), .payload = payload };
    const pawl_event other = { .size = sizeof(pawl_event), .payload = text };
    pawl_status status = pawl__ledger_event_same_content(&one, &other, reterr);

    return status == PAWL_OK || status == PAWL_NOMEM
               ? status
               : pawl__fail(
                   reterr, PAWL_INVALID, "payload_text: is not what payload says; leave one out");
}

static pawl_status read_payload(struct reading *reading, pawl_view *ret_payload)
{
    pawl_view payload = reading->split.values[FIELD_PAYLOAD];
    pawl_view text = { NULL, 0 };

    TRY(read_text(reading, FIELD_PAYLOAD_TEXT, SIZE_MAX / 2, &text));
    if (!is_missing(reading, FIELD_PAYLOAD_TEXT)) {
        *ret_payload = text;
        return payload.len == 0 ? PAWL_OK : check_both(payload, text, reading->split.reterr);
    }
    if (payload.len > 0) {
        *ret_payload = payload;
    }
    return PAWL_OK;
}

static pawl_status read_names(struct reading *reading, pawl_event *event)
{
    const struct {
        enum field field;
        pawl_view *text;
    } texts[] = {
        { FIELD_ID, &event->id },
        { FIELD_RUN_ID, &event->run_id },
        { FIELD_KIND, &event->kind },
        { FIELD_ACTOR, &event->actor },
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        TRY(read_text(reading, texts[i].field, FIELD_BYTES_MAX, texts[i].text));
    }
    return PAWL_OK;
}

static pawl_status read_numbers(struct reading *reading, pawl_event *event)
{
    pawl_error *reterr = reading->split.reterr;
    int64_t offset = (int64_t)event->offset;

    TRY(read_number(reading, FIELD_OFFSET, &offset));
    if (offset < 0) {
        return pawl__fail(
            reterr, PAWL_INVALID, "offset: is %lld, must be 0 or more", (long long)offset);
    }
    event->offset = (uint64_t)offset;
    TRY(read_number(reading, FIELD_TURN, &event->turn));
    if (event->turn < 0 && is_missing(reading, FIELD_TURN)) {
        return pawl__fail(reterr, PAWL_INVALID, "turn: missing");
    }
    TRY(read_number(reading, FIELD_SCHEMA_VERSION, &event->schema_version));
    /* The calls that append take 0 for 1; a line that says 0 means something else. */
    if (event->schema_version == 0 && !is_missing(reading, FIELD_SCHEMA_VERSION)) {
        return pawl__fail(reterr, PAWL_INVALID, "schema_version: is 0, must be 1 or more");
    }
    return PAWL_OK;
}

pawl_status pawl__ledger_event_read_json(pawl_view json,
                                         const pawl_event *defaults,
                                         struct pawl__arena *arena,
                                         pawl_event *ret_event,
                                         pawl_error *reterr)
{
    static const pawl_event nothing = { .size = sizeof(pawl_event), .turn = -1 };
    struct reading reading = { .split = { .text = json, .reterr = reterr }, .arena = arena };
    pawl_event event = defaults == NULL ? nothing : *defaults;

    TRY(split_line(&reading.split));
    TRY(read_names(&reading, &event));
    TRY(read_numbers(&reading, &event));
    TRY(read_payload(&reading, &event.payload));
    TRY(read_time(&reading, &event.created_at_us));
    TRY(read_hash(&reading, event.hash));
    *ret_event = event;
    return PAWL_OK;
}

/* --- writing --- */

/* White space around a payload, and line breaks in it, do not survive in a line. */
static bool fits_a_line(pawl_view payload)
{
    return payload.len > 0 && !is_space(payload.data[0]) && !is_space(payload.data[payload.len - 1])
           && memchr(payload.data, '\n', payload.len) == NULL
           && memchr(payload.data, '\r', payload.len) == NULL;
}

static void add_payload(pawl_view payload, struct pawl__buf *buf)
{
    pawl__buf_add_text(buf, ",\"payload\":");
    if (fits_a_line(payload)) {
        pawl__buf_add(buf, payload);
        return;
    }
    for (size_t i = 0; i < payload.len; i++) { /* in JSON a line break is never part of a string */
        pawl__buf_add_char(buf, is_space(payload.data[i]) ? ' ' : payload.data[i]);
    }
    pawl__buf_add_text(buf, ",\"payload_text\":");
    pawl__display_add_json(buf, payload);
}

static void add_object(const pawl_event *event, struct pawl__buf *buf)
{
    char created_at[PAWL__TIME_SIZE];
    char hash[2 * PAWL_LEDGER_HASH_BYTES + 1] = "";

    pawl__time_rfc3339(event->created_at_us, created_at);
    for (size_t i = 0; i < PAWL_LEDGER_HASH_BYTES; i++) {
        pawl__hex_byte(event->hash[i], &hash[2 * i]);
    }
    pawl__buf_add_format(buf, "{\"offset\":%llu,\"id\":", (unsigned long long)event->offset);
    pawl__display_add_json(buf, event->id);
    pawl__buf_add_text(buf, ",\"run_id\":");
    pawl__display_add_json(buf, event->run_id);
    pawl__buf_add_format(buf, ",\"turn\":%lld,\"kind\":", (long long)event->turn);
    pawl__display_add_json(buf, event->kind);
    pawl__buf_add_text(buf, ",\"actor\":");
    pawl__display_add_json(buf, event->actor);
    add_payload(event->payload, buf);
    pawl__buf_add_format(buf,
                         ",\"created_at\":\"%s\",\"schema_version\":%lld,\"hash\":\"%s\"}",
                         created_at,
                         (long long)event->schema_version,
                         hash);
}

static pawl_status check_payload(const pawl_event *event, pawl_error *reterr)
{
    pawl_status status = pawl__json_check(event->payload, event->payload.len, reterr);

    if (status != PAWL_INVALID) {
        return status;
    }
    if (event->offset == 0) {
        return pawl__fail_context(reterr, status, "payload");
    }
    return pawl__fail_context(
        reterr, PAWL_CORRUPT, "payload of offset %llu", (unsigned long long)event->offset);
}

pawl_status pawl__ledger_event_add_json(const pawl_event *event,
                                        struct pawl__buf *buf,
                                        pawl_error *reterr)
{
    TRY(check_payload(event, reterr));
    add_object(event, buf);
    return PAWL_OK;
}

/* --- the public pair --- */

pawl_status pawl_event_from_json(pawl_view json,
                                 const pawl_event *defaults,
                                 pawl_event **ret_event,
                                 pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_event whole = PAWL_EVENT_INIT;
    pawl_event event;

    NEED_VIEW(json, reterr);
    NEED(ret_event, reterr);
    whole.turn = -1; /* none */
    TRY(pawl__take_sized("defaults", defaults, &whole, sizeof(whole), reterr));
    pawl_status status = pawl__ledger_event_check_views(&whole, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "defaults");
    }
    TRY(pawl__ledger_event_read_json(
        json, defaults == NULL ? NULL : &whole, &arena, &event, reterr));
    return pawl__ledger_event_copy_out(&event, ret_event, reterr);
}

pawl_status pawl_event_to_json(const pawl_event *event,
                               char **ret_json,
                               size_t *ret_len,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(SIZE_MAX / 2);
    pawl_event whole = PAWL_EVENT_INIT;

    NEED(event, ret_json, reterr);
    TRY(pawl__take_sized("event", event, &whole, sizeof(whole), reterr));
    TRY(pawl__ledger_event_check_views(&whole, reterr));
    TRY(pawl__ledger_event_add_json(&whole, &buf, reterr));
    size_t len = buf.len;
    char *text = pawl__buf_steal(&buf);
    if (text == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an event");
    }
    *ret_json = text;
    if (ret_len != NULL) {
        *ret_len = len;
    }
    return PAWL_OK;
}
