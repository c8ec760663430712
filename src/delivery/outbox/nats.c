#include "delivery/outbox/nats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/sha256.h"
#include "delivery/core/identity.h"
#include "delivery/outbox/loop.h"
#include "net/nats/publish.h"
#include "net/nats/stream.h"

enum {
    OWN_HEADERS = 4,
    WRONG_LAST_SEQUENCE = 10071, /* JetStream's code */
};

struct outbox_nats {
    struct outbox_broker base;
    struct outbox_nats_options options;
    struct pawl__nats *nats; /* NULL: not connected yet, or closed by the server for good */
    struct pawl__nats_publisher *publisher;
    uint64_t opens;
    uint64_t number; /* of the link that `session` is of */
    uint64_t session;
    struct pawl__nats_published published[OUTBOX_ANSWERS_MAX];
};

static struct outbox_nats *as_nats(struct outbox_broker *broker)
{
    return (struct outbox_nats *)broker; /* base is its first member */
}

/* --- the link --- */

static void disconnect(struct outbox_nats *broker)
{
    pawl__nats_publisher_close(broker->publisher);
    broker->publisher = NULL;
    pawl__nats_close(broker->nats);
    broker->nats = NULL;
}

static pawl_status connect_now(struct outbox_nats *broker, pawl_error *reterr)
{
    TRY(pawl__nats_open(broker->options.url, broker->options.connection, &broker->nats, reterr));
    broker->opens++;
    return PAWL_OK;
}

/* A restarted server has another id, and a restarted machine of ours another clock. */
static pawl_status name_session(struct outbox_nats *broker,
                                uint64_t *ret_session,
                                pawl_error *reterr)
{
    char server[PAWL__NATS_SERVER_ID_SIZE] = "";
    char boot[PAWL__BOOT_ID_SIZE] = "";
    struct pawl__sha256 hash;
    uint64_t session = 0;

    TRY(pawl__nats_server_id(broker->nats, server, reterr));
    TRY(pawl__clock_boot_id(boot, reterr));
    const pawl_view parts[] = { pawl_view_of(server), pawl_view_of(boot) };
    TRY(pawl__sha256_parts(parts, COUNT_OF(parts), &hash, reterr));
    for (size_t i = 0; i < sizeof(session); i++) {
        session = session << 8 | hash.bytes[i];
    }
    *ret_session = session;
    return PAWL_OK;
}

static pawl_status open_publisher(struct outbox_nats *broker, pawl_error *reterr)
{
    return broker->publisher != NULL
               ? PAWL_OK
               : pawl__nats_publisher_open(
                   broker->nats, OUTBOX_SUBJECTS_MAX, &broker->publisher, reterr);
}

static bool waits_for_answers(const struct outbox_nats *broker)
{
    return broker->publisher != NULL
           && pawl__nats_publisher_pending(broker->publisher, NULL, 0) > 0;
}

static pawl_status link_up(struct outbox_broker *base,
                           struct outbox_link *ret_link,
                           pawl_error *reterr)
{
    struct outbox_nats *broker = as_nats(base);

    /* The server closed it for good: another one, once nobody waits for its answers. */
    if (broker->nats != NULL && pawl__nats_state(broker->nats) == PAWL__NATS_CLOSED
        && !waits_for_answers(broker)) {
        disconnect(broker);
    }
    if (broker->nats == NULL) {
        TRY(connect_now(broker, reterr));
    }
    if (pawl__nats_state(broker->nats) != PAWL__NATS_CONNECTED) {
        return pawl__fail(
            reterr, PAWL_UNAVAILABLE, "no link to %s", pawl__nats_shown(broker->nats));
    }
    TRY(open_publisher(broker, reterr));
    uint64_t number = (broker->opens << 32) + pawl__nats_reconnects(broker->nats) + 1;
    if (number != broker->number) {
        TRY(name_session(broker, &broker->session, reterr));
        broker->number = number;
    }
    *ret_link = (struct outbox_link){ .number = number, .session = broker->session };
    return PAWL_OK;
}

/* --- the stream --- */

static pawl_status find_stream(struct outbox_broker *base,
                               const char *subject,
                               char ret_stream[OUTBOX_STREAM_SIZE],
                               pawl_error *reterr)
{
    _Static_assert((int)OUTBOX_STREAM_SIZE == (int)PAWL__NATS_NAME_SIZE,
                   "a stream's name must fit");

    return pawl__nats_stream_of(as_nats(base)->nats, subject, ret_stream, reterr);
}

static pawl_status stream_info(struct outbox_broker *base,
                               const char *stream,
                               struct outbox_stream *ret_stream,
                               pawl_error *reterr)
{
    struct pawl__nats_stream info;

    TRY(pawl__nats_stream_info(as_nats(base)->nats, stream, &info, reterr));
    *ret_stream = (struct outbox_stream){ .created_ns = info.created_ns,
                                          .first_sequence = info.first_seq,
                                          .last_sequence = info.last_seq };
    return PAWL_OK;
}

/* "0123456789abcdef-17"; anybody may have written it, and what is not of this form names nobody. */
static struct outbox_origin parse_origin(const char *text)
{
    enum { OUTBOX_DIGITS = 16 };
    const char *number = &text[OUTBOX_DIGITS + 1];

    if (strspn(text, "0123456789abcdef") != OUTBOX_DIGITS || text[OUTBOX_DIGITS] != '-'
        || number[0] == '\0' || strspn(number, "0123456789") != strlen(number)) {
        return (struct outbox_origin){ 0, 0 };
    }
    return (struct outbox_origin){ strtoull(text, NULL, 16), strtoull(number, NULL, 10) };
}

static pawl_status get(struct outbox_broker *base,
                       const char *stream,
                       const char *subject,
                       uint64_t sequence,
                       struct pawl__buf *id,
                       uint64_t *ret_sequence,
                       struct outbox_origin *ret_origin,
                       pawl_error *reterr)
{
    struct pawl__nats *nats = as_nats(base)->nats;
    struct pawl__nats_stored stored;

    TRY(sequence != 0 ? pawl__nats_stream_get(nats, stream, sequence, &stored, reterr)
                      : pawl__nats_stream_last(nats, stream, subject, &stored, reterr));
    pawl__buf_clear(id);
    pawl__buf_add(id, pawl__buf_view(&stored.id));
    *ret_sequence = stored.sequence;
    *ret_origin = parse_origin(stored.outbox);
    pawl__nats_stored_done(&stored);
    return pawl__buf_check(id, "the message's id", reterr);
}

/* --- messages --- */

static pawl_status send_message(struct outbox_broker *base,
                                const struct outbox_outgoing *message,
                                pawl_error *reterr)
{
    struct pawl__nats_header headers[DELIVERY_HEADERS_MAX];
    char sequence[24];
    char origin[PAWL__NATS_OUTBOX_SIZE];

    snprintf(origin,
             sizeof(origin),
             "%016" PRIx64 "-%" PRIu64,
             message->origin.outbox,
             message->origin.number);
    REQUIRE(message->header_count + OWN_HEADERS <= DELIVERY_HEADERS_MAX);
    snprintf(sequence, sizeof(sequence), "%" PRIu64, message->sequence);
    headers[0] =
        (struct pawl__nats_header){ pawl_view_of(DELIVERY_HEADER_SOURCE), message->source };
    headers[1] =
        (struct pawl__nats_header){ pawl_view_of(DELIVERY_HEADER_EVENT_ID), message->event_id };
    headers[2] = (struct pawl__nats_header){ pawl_view_of(DELIVERY_HEADER_SEQUENCE),
                                             pawl_view_of(sequence) };
    headers[3] =
        (struct pawl__nats_header){ pawl_view_of(PAWL__NATS_HEADER_OUTBOX), pawl_view_of(origin) };
    for (size_t i = 0; i < message->header_count; i++) {
        headers[OWN_HEADERS + i] =
            (struct pawl__nats_header){ message->headers[i].name, message->headers[i].value };
    }
    const struct pawl__nats_outgoing outgoing = { .subject = message->subject,
                                                  .payload = message->payload,
                                                  .id = message->id,
                                                  .headers = headers,
                                                  .header_count =
                                                      OWN_HEADERS + message->header_count,
                                                  .expect_last = message->expect_last,
                                                  .last_subject_seq = message->last_sequence };
    return pawl__nats_publisher_send(as_nats(base)->publisher, &outgoing, message->token, reterr);
}

/* Nothing in the message would have to change for it to be taken. */
static bool is_outage(const struct pawl__nats_published *published)
{
    switch (published->status) {
    case PAWL_NOT_FOUND:
    case PAWL_BUSY:
    case PAWL_UNAVAILABLE:
    case PAWL_TIMEOUT:
    case PAWL_NO_SPACE:
    case PAWL_DENIED:
    case PAWL_UNSUPPORTED:
    case PAWL_NOMEM:
        return true;
    default:
        return published->retryable;
    }
}

static struct outbox_answer answer_of(const struct pawl__nats_published *published)
{
    struct outbox_answer answer = {
        .token = published->token,
        .fate = published->fate == PAWL__NATS_STORED         ? OUTBOX_FATE_STORED
                : published->fate == PAWL__NATS_MAYBE_STORED ? OUTBOX_FATE_UNKNOWN
                                                             : OUTBOX_FATE_REFUSED,
        .sequence = published->sequence,
        .duplicate = published->duplicate,
        .out_of_order = published->native == WRONG_LAST_SEQUENCE,
        .status = published->status,
        .retryable = is_outage(published),
    };

    snprintf(answer.why, sizeof(answer.why), "%.119s", published->why);
    return answer;
}

static pawl_status collect(struct outbox_broker *base,
                           int wait_ms,
                           struct outbox_answer *ret_answers,
                           size_t max,
                           size_t *ret_count,
                           pawl_error *reterr)
{
    struct outbox_nats *broker = as_nats(base);

    *ret_count = 0;
    if (broker->publisher == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__nats_publisher_collect(broker->publisher,
                                     wait_ms,
                                     NULL,
                                     broker->published,
                                     MIN(max, (size_t)OUTBOX_ANSWERS_MAX),
                                     ret_count,
                                     reterr));
    for (size_t i = 0; i < *ret_count; i++) {
        ret_answers[i] = answer_of(&broker->published[i]);
    }
    return PAWL_OK;
}

static void close_nats(struct outbox_broker *base)
{
    struct outbox_nats *broker = as_nats(base);

    disconnect(broker);
    free(broker);
}

static const struct outbox_broker_ops ops = {
    .link = link_up,
    .find_stream = find_stream,
    .stream = stream_info,
    .get = get,
    .send = send_message,
    .collect = collect,
    .close = close_nats,
};

pawl_status pawl__delivery_outbox_nats_new(const struct outbox_nats_options *options,
                                           struct outbox_broker **ret_broker,
                                           pawl_error *reterr)
{
    struct outbox_nats *broker = calloc(1, sizeof(*broker));

    TRY(pawl__check_memory(broker, "a broker", reterr));
    broker->base.ops = &ops;
    broker->options = *options;
    *ret_broker = &broker->base;
    return PAWL_OK;
}
