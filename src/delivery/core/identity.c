#include "delivery/core/identity.h"

#include <inttypes.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/sha256.h"
#include "base/json/json.h"

/* Part of every hash, so that no id that a producer chooses is the same as one by place. */
#define TAG_GIVEN "id"
#define TAG_PLACE "place"
#define TAG_CONFLICT "conflict"

bool pawl__delivery_hash_equal(const struct delivery_hash *a, const struct delivery_hash *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static pawl_status hash_parts(const pawl_view *parts,
                              size_t count,
                              struct delivery_hash *ret_hash,
                              pawl_error *reterr)
{
    struct pawl__sha256 whole;

    TRY(pawl__sha256_parts(parts, count, &whole, reterr));
    memcpy(ret_hash->bytes, whole.bytes, sizeof(ret_hash->bytes));
    return PAWL_OK;
}

static bool is_name(pawl_view text)
{
    return text.len > 0 && text.len <= DELIVERY_ID_BYTES_MAX && pawl__view_is_utf8(text)
           && memchr(text.data, '\0', text.len) == NULL;
}

static bool is_source(pawl_view text)
{
    return is_name(text) && memchr(text.data, ':', text.len) == NULL;
}

pawl_status pawl__delivery_check_rule(const struct delivery_identity_rule *rule, pawl_error *reterr)
{
    if (!is_source(rule->source)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "source '%.*s': must be 1 to %d bytes of UTF-8 without ':'",
                          VIEW_ARGS(rule->source),
                          DELIVERY_ID_BYTES_MAX);
    }
    if (!is_name(rule->stream)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "stream '%.*s': must be 1 to %d bytes of UTF-8",
                          VIEW_ARGS(rule->stream),
                          DELIVERY_ID_BYTES_MAX);
    }
    return PAWL_OK;
}

/* --- what the producer gave --- */

struct given {
    enum delivery_id_kind kind;
    pawl_view source;
    pawl_view event_id;
    uint64_t sequence;
};

static bool parse_sequence(pawl_view text, uint64_t *ret_sequence)
{
    uint64_t value = 0;

    for (size_t i = 0; i < text.len; i++) {
        uint64_t digit = (uint64_t)text.data[i] - '0';
        if (digit > 9 || value > (INT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *ret_sequence = value;
    return text.len > 0;
}

static struct given bad_id(const struct delivery_identity_rule *rule)
{
    return (struct given){ DELIVERY_ID_BAD, rule->source, { NULL, 0 }, 0 };
}

static struct given given_id(const struct delivery_identity_rule *rule, pawl_view event_id)
{
    return is_name(event_id) ? (struct given){ DELIVERY_ID_GIVEN, rule->source, event_id, 0 }
                             : bad_id(rule);
}

/* The three headers of `pawl publish`. */
static struct given published_id(const struct delivery_identity_rule *rule,
                                 const struct delivery_message *message,
                                 pawl_view event_id)
{
    pawl_view source = pawl__delivery_header(message, DELIVERY_HEADER_SOURCE);
    pawl_view sequence = pawl__delivery_header(message, DELIVERY_HEADER_SEQUENCE);
    struct given given = given_id(rule, event_id);

    if (source.len > 0) {
        given.source = source;
    }
    bool is_good =
        is_source(given.source) && (sequence.len == 0 || parse_sequence(sequence, &given.sequence));
    return given.kind == DELIVERY_ID_GIVEN && is_good ? given : bad_id(rule);
}

/* A string or an integer of the payload's object; copied into `text`, because the value goes. */
static pawl_status field_id(const struct delivery_identity_rule *rule,
                            const struct delivery_message *message,
                            struct pawl__buf *text,
                            struct given *given,
                            pawl_error *reterr)
{
    json_auto_t *json = NULL;
    pawl_error unread = PAWL_ERROR_INIT; /* that it is no JSON, validation says with more to say */
    pawl_status status = pawl__json_parse(message->payload, message->payload.len, &json, &unread);

    if (status != PAWL_OK) {
        return status == PAWL_NOMEM ? pawl__fail_with(reterr, status, &unread) : PAWL_OK;
    }
    json_t *value = json_object_getn(json, rule->id_field.data, rule->id_field.len);
    size_t before = text->len;
    if (json_is_string(value)) {
        pawl_view id = { json_string_value(value), json_string_length(value) };
        *given = given_id(rule, id);
        pawl__buf_add(text, given->event_id);
    } else if (json_is_integer(value)) {
        *given = (struct given){ DELIVERY_ID_GIVEN, rule->source, { NULL, 0 }, 0 };
        pawl__buf_add_format(text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (value != NULL && !json_is_null(value)) {
        *given = bad_id(rule);
    }
    if (given->kind == DELIVERY_ID_GIVEN) {
        given->event_id = (pawl_view){ &text->data[before], text->len - before };
    }
    return pawl__buf_check(text, "transaction id", reterr);
}

static pawl_status find_id(const struct delivery_identity_rule *rule,
                           const struct delivery_message *message,
                           struct pawl__buf *text,
                           struct given *ret_given,
                           pawl_error *reterr)
{
    pawl_view published = pawl__delivery_header(message, DELIVERY_HEADER_EVENT_ID);
    pawl_view message_id = pawl__delivery_header(message, DELIVERY_HEADER_MESSAGE_ID);
    struct given given = { DELIVERY_ID_BY_PLACE, rule->source, { NULL, 0 }, 0 };

    if (published.len > 0) {
        given = published_id(rule, message, published);
    } else if (rule->id_field.len > 0) {
        TRY(field_id(rule, message, text, &given, reterr));
    }
    if (given.kind == DELIVERY_ID_BY_PLACE && message_id.len > 0) {
        given = given_id(rule, message_id);
    }
    *ret_given = given;
    return PAWL_OK;
}

/* --- the transaction id --- */

static void add_event_id(const struct delivery_identity_rule *rule,
                         const struct delivery_place *place,
                         const struct given *given,
                         struct pawl__buf *text)
{
    if (given->kind == DELIVERY_ID_GIVEN) {
        pawl__buf_add(text, given->event_id);
        return;
    }
    pawl__buf_add_format(text,
                         "%.*s@%" PRId64 "@%" PRId64,
                         VIEW_ARGS(rule->stream),
                         place->created_ns,
                         place->stored_ns);
}

static pawl_view part(const struct pawl__buf *text, size_t from, size_t to)
{
    return (pawl_view){ &text->data[from], to - from };
}

pawl_status pawl__delivery_identify(const struct delivery_identity_rule *rule,
                                    const struct delivery_message *message,
                                    struct pawl__buf *text,
                                    struct delivery_identity *ret_identity,
                                    pawl_error *reterr)
{
    char room[DELIVERY_ID_BYTES_MAX + 1];
    struct pawl__buf found = BUF_OVER(room);
    struct given given = { 0 };

    TRY(find_id(rule, message, &found, &given, reterr));
    size_t start = text->len;
    pawl__buf_add(text, given.source);
    size_t source_end = text->len;
    pawl__buf_add_char(text, ':');
    add_event_id(rule, &message->place, &given, text);
    size_t event_end = text->len;
    bool is_given = given.kind == DELIVERY_ID_GIVEN;
    uint64_t sequence = is_given ? given.sequence : message->place.sequence;
    pawl__buf_add_format(text, ":%" PRIu64, sequence);
    TRY(pawl__buf_check(text, "transaction id", reterr));

    struct delivery_identity identity = {
        .kind = given.kind,
        .transaction_id = part(text, start, text->len),
        .source = part(text, start, source_end),
        .event_id = part(text, source_end + 1, event_end),
        .sequence = sequence,
    };
    pawl_view tagged[] = { pawl_view_of(is_given ? TAG_GIVEN : TAG_PLACE),
                           identity.transaction_id };
    TRY(hash_parts(tagged, COUNT_OF(tagged), &identity.id, reterr));
    TRY(hash_parts(&message->payload, 1, &identity.payload, reterr));
    *ret_identity = identity;
    return PAWL_OK;
}

pawl_status pawl__delivery_conflict_key(const struct delivery_hash *id,
                                        const struct delivery_hash *payload,
                                        struct delivery_hash *ret_key,
                                        pawl_error *reterr)
{
    pawl_view parts[] = {
        pawl_view_of(TAG_CONFLICT),
        { (const char *)id->bytes, sizeof(id->bytes) },
        { (const char *)payload->bytes, sizeof(payload->bytes) },
    };
    return hash_parts(parts, COUNT_OF(parts), ret_key, reterr);
}

pawl_status pawl__delivery_given_key(pawl_view transaction_id,
                                     struct delivery_hash *ret_key,
                                     pawl_error *reterr)
{
    pawl_view parts[] = { pawl_view_of(TAG_GIVEN), transaction_id };

    return hash_parts(parts, COUNT_OF(parts), ret_key, reterr);
}
