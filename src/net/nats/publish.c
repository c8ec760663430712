/* A publish is a message with a reply subject; the stream's answer comes back on it. cnats has calls for this,
 * whose callbacks run on its own threads and may do so while their owner is being freed. A subscription that the
 * publisher reads itself needs neither callback nor lock. */
#include "net/nats/publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/json/json.h"
#include "net/nats/internal.h"

enum { HEADER_BYTES_MAX = 1 << 20, ANSWER_BYTES_MAX = 64 << 10 };

/* --- messages --- */

static pawl_status set_header(natsMsg *msg, pawl_view name, pawl_view value, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf names = BUF_INIT(HEADER_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf values = BUF_INIT(HEADER_BYTES_MAX);

    TRY(pawl__nats_check_header(name, value, reterr));
    pawl__buf_add(&names, name);
    pawl__buf_add(&values, value);
    pawl__buf_add_text(&values, "");
    TRY(pawl__buf_check(&names, "the name of a header", reterr));
    TRY(pawl__buf_check(&values, "a header", reterr));
    natsStatus native = natsMsgHeader_Add(msg, names.data, values.len == 0 ? "" : values.data);
    return native == NATS_OK ? PAWL_OK : pawl__nats_fail(reterr, native, 0, NULL, "header");
}

static pawl_status set_expectations(natsMsg *msg,
                                    const struct pawl__nats_outgoing *message,
                                    pawl_error *reterr)
{
    char number[24];

    if (message->id.len > 0) {
        TRY(set_header(msg, pawl_view_of("Nats-Msg-Id"), message->id, reterr));
    }
    if (message->expect_stream != NULL) {
        TRY(set_header(msg,
                       pawl_view_of("Nats-Expected-Stream"),
                       pawl_view_of(message->expect_stream),
                       reterr));
    }
    if (!message->expect_last) {
        return PAWL_OK;
    }
    snprintf(number, sizeof(number), "%llu", (unsigned long long)message->last_subject_seq);
    return set_header(
        msg, pawl_view_of("Nats-Expected-Last-Subject-Sequence"), pawl_view_of(number), reterr);
}

static pawl_status make_message(struct pawl__nats *nats,
                                const struct pawl__nats_outgoing *message,
                                const char *reply,
                                natsMsg **ret_msg,
                                pawl_error *reterr)
{
    AUTO(pawl__nats_msg_destroy) natsMsg *msg = NULL;
    int64_t bytes_max = pawl__nats_payload_max(nats);

    NEED(message, reterr);
    TRY(pawl__nats_check_subject(message->subject, reterr));
    NEED_VIEW(message->payload, reterr);
    NEED_VIEW(message->id, reterr);
    NEED_ARRAY(message->headers, message->header_count, reterr);
    TRY(pawl__check_limit(
        "message: has", message->header_count, " headers", PAWL__NATS_HEADERS_MAX, reterr));
    if (bytes_max > 0 && message->payload.len > (uint64_t)bytes_max) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "message has %zu bytes, the server's limit is %lld",
                          message->payload.len,
                          (long long)bytes_max);
    }
    natsStatus native = natsMsg_Create(
        &msg, message->subject, reply, message->payload.data, (int)message->payload.len);
    if (native != NATS_OK) {
        return pawl__nats_fail(reterr, native, 0, NULL, "message to '%s'", message->subject);
    }
    TRY(set_expectations(msg, message, reterr));
    for (size_t i = 0; i < message->header_count; i++) {
        TRY(set_header(msg, message->headers[i].name, message->headers[i].value, reterr));
    }
    *ret_msg = STEAL(msg);
    return PAWL_OK;
}

/* --- answers --- */

static void refuse(struct pawl__nats_published *published,
                   enum pawl__nats_fate fate,
                   const pawl_error *error)
{
    published->fate = fate;
    published->status = error->status;
    published->retryable = error->retryable;
    published->native = error->native;
    snprintf(published->why, sizeof(published->why), "%.119s", error->message);
}

static bool parse_error(struct pawl__json_node node, struct pawl__nats_published *published)
{
    struct pawl__json_node object;
    int64_t code = 0;
    pawl_view text = pawl_view_of("refused");
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__json_object(node, &object, NULL) != PAWL_OK
        || pawl__json_int(pawl__json_optional(&object, "err_code"), 0, INT32_MAX, &code, NULL)
               != PAWL_OK
        || pawl__json_text(pawl__json_optional(&object, "description"), &text, NULL) != PAWL_OK) {
        return false;
    }
    pawl__fail(&error, pawl__nats_status_of(NATS_ERR, (int)code), "%.*s", VIEW_ARGS(text));
    error.native = (int)code;
    refuse(published, PAWL__NATS_NOT_STORED, &error);
    return true;
}

static bool parse_stored(const struct pawl__json_node *object,
                         struct pawl__nats_published *published)
{
    int64_t sequence = 0;
    pawl_view stream = { 0 };
    bool duplicate = false;

    if (pawl__json_int(pawl__json_key(object, "seq"), 1, INT64_MAX, &sequence, NULL) != PAWL_OK
        || pawl__json_text(pawl__json_key(object, "stream"), &stream, NULL) != PAWL_OK
        || pawl__json_bool(pawl__json_optional(object, "duplicate"), &duplicate, NULL) != PAWL_OK) {
        return false;
    }
    published->fate = PAWL__NATS_STORED;
    published->status = PAWL_OK;
    published->sequence = (uint64_t)sequence;
    published->duplicate = duplicate;
    snprintf(published->stream, sizeof(published->stream), "%.*s", VIEW_ARGS(stream));
    return true;
}

bool pawl__nats_parse_answer(pawl_view text, struct pawl__nats_published *published)
{
    json_auto_t *json = NULL;
    struct pawl__json_node object;

    if (pawl__json_parse(text, ANSWER_BYTES_MAX, &json, NULL) != PAWL_OK) {
        return false;
    }
    struct pawl__json_node root = pawl__json_root(json, "");
    if (pawl__json_object(root, &object, NULL) != PAWL_OK) {
        return false;
    }
    struct pawl__json_node error = pawl__json_key(&object, "error");
    return error.value != NULL ? parse_error(error, published) : parse_stored(&object, published);
}

static void read_answer(natsMsg *msg, struct pawl__nats_published *published)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_view text = { natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg) };

    if (!pawl__nats_parse_answer(text, published)) {
        pawl__fail(&error, PAWL_FAILED, "the answer is not one of JetStream's");
        refuse(published, PAWL__NATS_MAYBE_STORED, &error);
    }
}

static void refuse_nobody(struct pawl__nats_published *published)
{
    pawl_error error = PAWL_ERROR_INIT;

    pawl__fail(&error, PAWL_NOT_FOUND, "no stream takes the subject");
    error.native = (int)NATS_NO_RESPONDERS;
    error.retryable = true; /* JetStream may be starting */
    refuse(published, PAWL__NATS_NOT_STORED, &error);
}

static pawl_status fail_published(const struct pawl__nats_published *published,
                                  const char *subject,
                                  pawl_error *reterr)
{
    pawl__fail(reterr, published->status, "publish to '%s': %s", subject, published->why);
    if (reterr != NULL) {
        reterr->native = published->native;
        reterr->retryable = published->retryable;
    }
    return published->status;
}

/* --- one by one --- */

static void request(struct pawl__nats *nats, natsMsg *msg, struct pawl__nats_published *published)
{
    AUTO(pawl__nats_msg_destroy) natsMsg *answer = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t refusals = pawl__nats_refusals(nats);
    natsStatus native = natsConnection_RequestMsg(&answer, nats->conn, msg, nats->answer_ms_max);

    if (native == NATS_OK) {
        read_answer(answer, published);
        return;
    }
    if (native == NATS_NO_RESPONDERS) {
        refuse_nobody(published);
        return;
    }
    pawl__nats_fail_call(nats, refusals, native, 0, &error, "'%s'", natsMsg_GetSubject(msg));
    bool unsent = native == NATS_MAX_PAYLOAD || native == NATS_INVALID_ARG
                  || native == NATS_NO_MEMORY || error.status == PAWL_DENIED;
    refuse(published, unsent ? PAWL__NATS_NOT_STORED : PAWL__NATS_MAYBE_STORED, &error);
}

pawl_status pawl__nats_publish(struct pawl__nats *nats,
                               const struct pawl__nats_outgoing *message,
                               struct pawl__nats_published *ret_published,
                               pawl_error *reterr)
{
    AUTO(pawl__nats_msg_destroy) natsMsg *msg = NULL;
    struct pawl__nats_published published = { .fate = PAWL__NATS_NOT_STORED };
    pawl_error error = PAWL_ERROR_INIT;

    NEED(nats, reterr);
    NEED(ret_published, reterr);
    pawl_status status = make_message(nats, message, NULL, &msg, &error);
    status = status == PAWL_OK ? pawl__nats_ready(nats, &error) : status;
    if (status != PAWL_OK) {
        refuse(&published, PAWL__NATS_NOT_STORED, &error);
        *ret_published = published;
        return pawl__fail_with(reterr, status, &error);
    }
    request(nats, msg, &published);
    *ret_published = published;
    return published.fate == PAWL__NATS_STORED
               ? PAWL_OK
               : fail_published(&published, message->subject, reterr);
}

/* --- many at once --- */

struct sent {
    uint64_t number; /* 0: free */
    uint64_t token;
    uint64_t reconnects;
    int64_t deadline_ns;
};

struct pawl__nats_publisher {
    struct pawl__nats *nats;
    struct nats_inbox inbox;
    uint64_t oldest; /* number: below it all is answered */
    uint64_t next;   /* number of the next message */
    size_t pending;
    size_t room;
    struct sent *sent; /* by number % room */
    /* cnats takes "no responders" away before we see which message it answers. While every one that is pending
     * has one of these, each is meant; after one that was given up it could be that one's, and says nothing. */
    size_t unanswerable;
    bool in_doubt;
    uint64_t reconnects; /* when the two above began to count */
};

pawl_status pawl__nats_publisher_open(struct pawl__nats *nats,
                                      size_t pending_max,
                                      struct pawl__nats_publisher **ret_publisher,
                                      pawl_error *reterr)
{
    AUTO(pawl__nats_publisher_close_p) struct pawl__nats_publisher *publisher = NULL;

    NEED(nats, reterr);
    NEED(ret_publisher, reterr);
    TRY(pawl__check_range("pending_max", (int64_t)pending_max, 1, PAWL__NATS_PENDING_MAX, reterr));
    TRY(pawl__nats_ready(nats, reterr));
    publisher = calloc(1, sizeof(*publisher));
    TRY(pawl__check_memory(publisher, "a publisher", reterr));
    publisher->sent = calloc(pending_max, sizeof(*publisher->sent));
    TRY(pawl__check_memory(publisher->sent, "a publisher", reterr));
    publisher->nats = nats;
    publisher->room = pending_max;
    publisher->oldest = 1;
    publisher->next = 1;
    TRY(pawl__nats_inbox_open(nats, &publisher->inbox, reterr));
    *ret_publisher = STEAL(publisher);
    return PAWL_OK;
}

void pawl__nats_publisher_close(struct pawl__nats_publisher *publisher)
{
    if (publisher != NULL) {
        pawl__nats_inbox_done(&publisher->inbox);
        free(publisher->sent);
        free(publisher);
    }
}

pawl_status pawl__nats_publisher_send(struct pawl__nats_publisher *publisher,
                                      const struct pawl__nats_outgoing *message,
                                      uint64_t token,
                                      pawl_error *reterr)
{
    AUTO(pawl__nats_msg_destroy) natsMsg *msg = NULL;
    char reply[sizeof(publisher->inbox.prefix) + 24];

    NEED(publisher, reterr);
    struct sent *sent = &publisher->sent[publisher->next % publisher->room];
    if (sent->number != 0) {
        return pawl__fail(
            reterr, PAWL_BUSY, "%zu messages wait for their answers", publisher->pending);
    }
    snprintf(reply,
             sizeof(reply),
             "%s%llu",
             publisher->inbox.prefix,
             (unsigned long long)publisher->next);
    TRY(make_message(publisher->nats, message, reply, &msg, reterr));
    TRY(pawl__nats_ready(publisher->nats, reterr));
    uint64_t reconnects = pawl__nats_reconnects(publisher->nats);
    if (publisher->pending == 0 && reconnects != publisher->reconnects) {
        publisher->in_doubt = false; /* nothing of the old link arrives any more */
        publisher->unanswerable = 0;
        publisher->reconnects = reconnects;
    }
    natsStatus native = natsConnection_PublishMsg(publisher->nats->conn, msg);
    if (native != NATS_OK) {
        return pawl__nats_fail(reterr, native, 0, NULL, "publish to '%s'", message->subject);
    }
    *sent = (struct sent){ .number = publisher->next++,
                           .token = token,
                           .reconnects = reconnects,
                           .deadline_ns = pawl__nats_now_ns(publisher->nats)
                                          + publisher->nats->answer_ms_max * NS_PER_MS };
    publisher->pending++;
    return PAWL_OK;
}

static void settle(struct pawl__nats_publisher *publisher, struct sent *sent)
{
    sent->number = 0;
    publisher->pending--;
    while (publisher->oldest < publisher->next
           && publisher->sent[publisher->oldest % publisher->room].number != publisher->oldest) {
        publisher->oldest++;
    }
}

/* False: an answer that came too late, or of nobody. */
static bool take_answer(struct pawl__nats_publisher *publisher,
                        natsMsg *msg,
                        struct pawl__nats_published *ret_published)
{
    uint64_t number = 0;

    if (!pawl__nats_inbox_number(&publisher->inbox, natsMsg_GetSubject(msg), &number)) {
        return false;
    }
    struct sent *sent = &publisher->sent[number % publisher->room];
    if (number == 0 || sent->number != number) {
        return false;
    }
    *ret_published = (struct pawl__nats_published){ .token = sent->token };
    read_answer(msg, ret_published);
    settle(publisher, sent);
    return true;
}

static bool has_answer(struct pawl__nats_publisher *publisher)
{
    int waiting = 0;

    return natsSubscription_GetPending(publisher->inbox.subscription, &waiting, NULL) == NATS_OK
           && waiting > 0;
}

/* The next answer, waiting at most so long; how many it settled. */
static size_t next_answer(struct pawl__nats_publisher *publisher,
                          int64_t wait_ms,
                          struct pawl__nats_published *ret_published)
{
    AUTO(pawl__nats_msg_destroy) natsMsg *msg = NULL;
    natsStatus native = natsSubscription_NextMsg(&msg, publisher->inbox.subscription, wait_ms);

    publisher->unanswerable += native == NATS_NO_RESPONDERS;
    return native == NATS_OK && take_answer(publisher, msg, ret_published);
}

static size_t take_answers(struct pawl__nats_publisher *publisher,
                           struct pawl__nats_published *ret_published,
                           size_t max)
{
    size_t count = 0;

    while (count < max && has_answer(publisher)) {
        count += next_answer(publisher, 1, &ret_published[count]);
    }
    return count;
}

static void refuse_unheard(struct pawl__nats_published *published, bool broken)
{
    pawl_error error = PAWL_ERROR_INIT;

    pawl__fail(&error,
               broken ? PAWL_UNAVAILABLE : PAWL_TIMEOUT,
               "%s before the answer came; it may be stored",
               broken ? "the link broke" : "the time was up");
    refuse(published, PAWL__NATS_MAYBE_STORED, &error);
}

/* What will not be answered any more. Answers that have arrived were taken before. */
static size_t give_up(struct pawl__nats_publisher *publisher,
                      struct pawl__nats_published *ret_published,
                      size_t max)
{
    int64_t now_ns = pawl__nats_now_ns(publisher->nats);
    uint64_t reconnects = pawl__nats_reconnects(publisher->nats);
    bool connected = pawl__nats_state(publisher->nats) == PAWL__NATS_CONNECTED;
    bool nobody = !publisher->in_doubt && publisher->unanswerable == publisher->pending;
    size_t count = 0;

    for (uint64_t n = publisher->oldest; n < publisher->next && count < max; n++) {
        struct sent *sent = &publisher->sent[n % publisher->room];
        bool broken = !connected || sent->reconnects != reconnects;
        if (sent->number != n || (!nobody && !broken && now_ns < sent->deadline_ns)) {
            continue;
        }
        ret_published[count] = (struct pawl__nats_published){ .token = sent->token };
        if (nobody) {
            refuse_nobody(&ret_published[count++]);
            publisher->unanswerable--;
        } else {
            refuse_unheard(&ret_published[count++], broken);
            publisher->in_doubt = true;
        }
        settle(publisher, sent);
    }
    return count;
}

static size_t collect_now(struct pawl__nats_publisher *publisher,
                          struct pawl__nats_published *ret_published,
                          size_t max)
{
    size_t count = take_answers(publisher, ret_published, max);

    return count > 0 ? count : give_up(publisher, ret_published, max);
}

pawl_status pawl__nats_publisher_collect(struct pawl__nats_publisher *publisher,
                                         int wait_ms,
                                         const struct pawl__cancel *cancel,
                                         struct pawl__nats_published *ret_published,
                                         size_t max,
                                         size_t *ret_count,
                                         pawl_error *reterr)
{
    NEED(publisher, reterr);
    NEED(ret_published, reterr);
    NEED(ret_count, reterr);
    TRY(pawl__check_range("max", (int64_t)max, 1, INT64_MAX, reterr));
    int64_t deadline_ns = pawl__nats_now_ns(publisher->nats) + MAX(wait_ms, 0) * NS_PER_MS;
    size_t count = collect_now(publisher, ret_published, max);
    while (count == 0 && publisher->pending > 0
           && pawl__nats_now_ns(publisher->nats) < deadline_ns) {
        int64_t left_ms = (deadline_ns - pawl__nats_now_ns(publisher->nats)) / NS_PER_MS;
        if (pawl__cancelled(cancel)) {
            return pawl__fail(reterr, PAWL_CANCELLED, "cancelled while waiting for answers");
        }
        count +=
            next_answer(publisher, MIN(MAX(left_ms, 1), (int64_t)NATS_SLICE_MS), &ret_published[0]);
        if (count < max) {
            count += collect_now(publisher, &ret_published[count], max - count);
        }
    }
    *ret_count = count;
    return PAWL_OK;
}

size_t pawl__nats_publisher_pending(const struct pawl__nats_publisher *publisher,
                                    uint64_t *ret_tokens,
                                    size_t max)
{
    size_t count = 0;

    for (uint64_t n = publisher->oldest; n < publisher->next; n++) {
        const struct sent *sent = &publisher->sent[n % publisher->room];
        if (sent->number == n) {
            if (count < max) {
                ret_tokens[count] = sent->token;
            }
            count++;
        }
    }
    return count;
}
