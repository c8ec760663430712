#include "ledger/core/event.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/sha256.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "records/ledger.h"

pawl_status pawl__ledger_event_check_name(const char *field, pawl_view text, pawl_error *reterr)
{
    TRY(pawl__check_view(text, field, reterr));
    if (text.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: missing", field);
    }
    if (text.len > PAWL_LEDGER_NAME_BYTES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: has %zu bytes, the limit is %d",
                          field,
                          text.len,
                          PAWL_LEDGER_NAME_BYTES_MAX);
    }
    if (pawl__view_ascii_run(text) == text.len) {
        return PAWL_OK;
    }
    if (memchr(text.data, '\0', text.len) != NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: has a NUL byte in it", field);
    }
    if (!pawl__view_is_utf8(text)) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: is not UTF-8", field);
    }
    return PAWL_OK;
}

static pawl_status check_payload(pawl_view payload, uint32_t bytes_max, pawl_error *reterr)
{
    NEED_VIEW(payload, reterr);
    if (payload.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "payload: missing");
    }
    if (payload.len > bytes_max) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "payload: has %zu bytes, the limit is %u",
                          payload.len,
                          bytes_max);
    }
    pawl_status status = pawl__json_check(payload, bytes_max, reterr);
    return status == PAWL_OK ? status : pawl__fail_context(reterr, status, "payload");
}

pawl_status pawl__ledger_event_check_views(const pawl_event *event, pawl_error *reterr)
{
    const struct {
        const char *field;
        pawl_view text;
    } texts[] = {
        { "id", event->id },       { "run_id", event->run_id },   { "kind", event->kind },
        { "actor", event->actor }, { "payload", event->payload },
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        TRY(pawl__check_view(texts[i].text, texts[i].field, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__ledger_event_check(const pawl_event *event,
                                     uint32_t payload_bytes_max,
                                     pawl_error *reterr)
{
    const struct {
        const char *field;
        pawl_view text;
    } texts[] = {
        { "id", event->id },
        { "run_id", event->run_id },
        { "kind", event->kind },
        { "actor", event->actor },
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        TRY(pawl__ledger_event_check_name(texts[i].field, texts[i].text, reterr));
    }
    if (event->turn < 0) {
        return pawl__fail(
            reterr, PAWL_INVALID, "turn: is %lld, must be 0 or more", (long long)event->turn);
    }
    if (event->schema_version < 1 || event->schema_version > PAWL__SCHEMA_VERSION_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "schema_version: is %lld, must be 1 to %d",
                          (long long)event->schema_version,
                          PAWL__SCHEMA_VERSION_MAX);
    }
    /* What the stores can write down: another time would come back changed, under another hash. */
    if (event->created_at_us < PAWL__WALL_US_MIN || event->created_at_us > PAWL__WALL_US_MAX) {
        return pawl__fail(reterr, PAWL_INVALID, "created_at: is outside the years 1 to 9999");
    }
    return check_payload(event->payload, payload_bytes_max, reterr);
}

bool pawl__ledger_event_is_reserved(const pawl_event *event)
{
    size_t prefix = sizeof(PAWL__KIND_RESERVED) - 1;

    return event->kind.data != NULL && event->kind.len >= prefix
           && memcmp(event->kind.data, PAWL__KIND_RESERVED, prefix) == 0;
}

pawl_status pawl__ledger_event_check_kind(const pawl_event *event, pawl_error *reterr)
{
    if (pawl__ledger_event_is_reserved(event)) {
        return pawl__fail(
            reterr,
            PAWL_INVALID,
            "kind: '%.*s' is reserved, kinds that begin with '%s' are the ledger's own",
            VIEW_ARGS(event->kind),
            PAWL__KIND_RESERVED);
    }
    return PAWL_OK;
}

static pawl_status other(const pawl_event *stored, const char *field, pawl_error *reterr)
{
    if (stored->offset == 0) {
        return pawl__fail_detail(
            reterr,
            PAWL_CONFLICT,
            PAWL_DETAIL_ID_TAKEN,
            "id '%.*s' is taken by an earlier event of the same batch, which has "
            "another %s",
            VIEW_ARGS(stored->id),
            field);
    }
    return pawl__fail_detail(reterr,
                             PAWL_CONFLICT,
                             PAWL_DETAIL_ID_TAKEN,
                             "id '%.*s' is taken by offset %llu, which has another %s",
                             VIEW_ARGS(stored->id),
                             (unsigned long long)stored->offset,
                             field);
}

static pawl_status canonical(pawl_view payload, struct pawl__buf *buf, pawl_error *reterr)
{
    json_auto_t *json = NULL;

    TRY(pawl__json_parse(payload, payload.len, &json, reterr));
    return pawl__json_canonical(json, buf, reterr);
}

static pawl_status same_payload(const pawl_event *stored,
                                const pawl_event *again,
                                pawl_error *reterr)
{
    /* Canonical form can be longer than what was written, but not by more than escapes allow. */
    AUTO(pawl__buf_done) struct pawl__buf before = BUF_INIT(stored->payload.len * 8 + 64);
    AUTO(pawl__buf_done) struct pawl__buf now = BUF_INIT(again->payload.len * 8 + 64);

    if (pawl__view_equal(stored->payload, again->payload)) {
        return PAWL_OK;
    }
    pawl_status status = canonical(stored->payload, &before, reterr);
    if (status == PAWL_OK) {
        status = canonical(again->payload, &now, reterr);
    }
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "compare payloads");
    }
    return pawl__view_equal(pawl__buf_view(&before), pawl__buf_view(&now))
               ? PAWL_OK
               : other(stored, "payload", reterr);
}

pawl_status pawl__ledger_event_same_content(const pawl_event *stored,
                                            const pawl_event *again,
                                            pawl_error *reterr)
{
    if (!pawl__view_equal(stored->run_id, again->run_id)) {
        return other(stored, "run_id", reterr);
    }
    if (stored->turn != again->turn) {
        return other(stored, "turn", reterr);
    }
    if (!pawl__view_equal(stored->kind, again->kind)) {
        return other(stored, "kind", reterr);
    }
    if (!pawl__view_equal(stored->actor, again->actor)) {
        return other(stored, "actor", reterr);
    }
    if (stored->schema_version != again->schema_version) {
        return other(stored, "schema_version", reterr);
    }
    return same_payload(stored, again, reterr);
}

pawl_status pawl__ledger_event_derive_id(const pawl_event *event,
                                         uint32_t attempt,
                                         uint64_t ordinal,
                                         char ret_id[PAWL__EVENT_ID_SIZE],
                                         pawl_error *reterr)
{
    char space[64];
    struct pawl__buf numbers = BUF_OVER(space);
    char hex[PAWL__SHA256_HEX_SIZE];
    struct pawl__sha256 hash;

    pawl__buf_add_u64le(&numbers, (uint64_t)event->turn);
    pawl__buf_add_u32le(&numbers, attempt);
    pawl__buf_add_u64le(&numbers, ordinal);
    pawl__buf_add_u32le(&numbers, (uint32_t)event->run_id.len);
    pawl__buf_add_u32le(&numbers, (uint32_t)event->actor.len);
    pawl__buf_add_u32le(&numbers, (uint32_t)event->kind.len);
    REQUIRE(!numbers.broken);
    const pawl_view parts[] = {
        pawl__buf_view(&numbers), event->run_id, event->actor, event->kind
    };

    TRY(pawl__sha256_parts(parts, COUNT_OF(parts), &hash, reterr));
    pawl__sha256_hex(&hash, hex);
    memcpy(ret_id, "t-", 2);
    memcpy(ret_id + 2, hex, 32);
    ret_id[34] = '\0';
    return PAWL_OK;
}

pawl_status pawl__ledger_event_turn_payload(uint32_t attempt,
                                            pawl_view reason,
                                            struct pawl__buf *buf,
                                            pawl_error *reterr)
{
    json_auto_t *json = json_pack("{s:I}", "attempt", (json_int_t)attempt);

    if (json == NULL
        || (reason.len > 0
            && json_object_set_new(json, "reason", json_stringn(reason.data, reason.len)) != 0)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a turn's payload");
    }
    return pawl__json_dump(json, buf, reterr);
}

static bool is_turn_kind(pawl_view kind)
{
    return pawl__view_is(kind, PAWL__KIND_TURN_BEGIN) || pawl__view_is(kind, PAWL__KIND_TURN_COMMIT)
           || pawl__view_is(kind, PAWL__KIND_TURN_ABANDON);
}

static pawl_status read_attempt(pawl_view payload, int64_t *ret_attempt, pawl_error *reterr)
{
    json_auto_t *json = NULL;
    struct pawl__json_node object;
    pawl_status status = pawl__json_parse(payload, payload.len, &json, reterr);

    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "payload");
    }
    TRY(pawl__json_object(pawl__json_root(json, "payload"), &object, reterr));
    return pawl__json_int(pawl__json_key(&object, "attempt"), 1, UINT32_MAX, ret_attempt, reterr);
}

pawl_status pawl__ledger_event_turn_attempt(const pawl_event *event,
                                            uint32_t *ret_attempt,
                                            pawl_error *reterr)
{
    char id[PAWL__EVENT_ID_SIZE];
    int64_t attempt;

    if (!is_turn_kind(event->kind)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "kind: '%.*s' is reserved, and none that this version knows",
                          VIEW_ARGS(event->kind));
    }
    TRY(read_attempt(event->payload, &attempt, reterr));
    TRY(pawl__ledger_event_derive_id(event, (uint32_t)attempt, 0, id, reterr));
    if (!pawl__view_is(event->id, id)) {
        return pawl__fail(reterr, PAWL_INVALID, "id: is not '%s', the one of this turn event", id);
    }
    *ret_attempt = (uint32_t)attempt;
    return PAWL_OK;
}

size_t pawl__ledger_event_text_bytes(const pawl_event *event)
{
    return pawl__record_text_bytes(&pawl__event_record, event);
}

void pawl__ledger_event_copy_to(const pawl_event *event, char *space, pawl_event *ret_copy)
{
    *ret_copy = *event;
    ret_copy->size = sizeof(*ret_copy);
    (void)pawl__record_move_texts(&pawl__event_record, ret_copy, space);
}

/* The event first: freeing it frees its texts. */
struct event_copy {
    pawl_event event;
    char texts[];
};

pawl_status pawl__ledger_event_copy_out(const pawl_event *event,
                                        pawl_event **ret_event,
                                        pawl_error *reterr)
{
    struct event_copy *copy = malloc(sizeof(*copy) + pawl__ledger_event_text_bytes(event));

    if (copy == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an event");
    }
    pawl__ledger_event_copy_to(event, copy->texts, &copy->event);
    *ret_event = &copy->event;
    return PAWL_OK;
}

void pawl_event_free(pawl_event *event)
{
    free(event);
}

bool pawl__ledger_event_copy(struct pawl__arena *arena,
                             const pawl_event *event,
                             pawl_event *ret_copy)
{
    char *space = pawl__arena_take(arena, pawl__ledger_event_text_bytes(event));

    if (space == NULL) {
        return false;
    }
    pawl__ledger_event_copy_to(event, space, ret_copy);
    return true;
}

static bool is_or_any(pawl_view wanted, pawl_view actual)
{
    return wanted.len == 0 || pawl__view_equal(wanted, actual);
}

bool pawl__ledger_event_matches(const pawl_event_filter *filter, const pawl_event *event)
{
    if (filter == NULL) {
        return true;
    }
    return is_or_any(filter->run_id, event->run_id) && is_or_any(filter->kind, event->kind)
           && is_or_any(filter->actor, event->actor) && event->turn >= filter->turn_min
           && event->turn <= filter->turn_max && event->created_at_us >= filter->time_min_us
           && event->created_at_us < filter->time_max_us;
}

pawl_status pawl__ledger_event_name(pawl_error *reterr,
                                    size_t count,
                                    size_t index,
                                    pawl_status status)
{
    if (count > 1) {
        pawl__fail_context(reterr, status, "event %zu", index);
    }
    return pawl__mark_index(reterr, index, status);
}
