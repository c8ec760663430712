/* A pull request is a JSON object on $JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer>; messages and words about the
 * request come back on the subject that it names.
 *
 * natsSubscription_FetchRequest of cnats 3.4 does the same, but: it uses one subject for all requests, so that a
 * late word about the last one ends the next; from its second call on it misses heartbeats after one interval
 * instead of two; and when messages were waiting already it writes beyond its array, should more arrive than it
 * still counts on. With a subject per request we know which one a word is about. */
#include "net/nats/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/grow.h"
#include "net/nats/internal.h"
#include "net/nats/stream.h"

enum {
    HEARTBEAT_MS_DEFAULT = 1000,
    HEARTBEAT_MS_MIN = 100,
    HEARTBEATS_MISSED = 2,
    HEARTBEAT_SLACK_MS = 200, /* for a busy machine */
    REQUEST_SIZE = 256,
    DRAIN_MS = 1, /* cnats takes no time-out of 0 */
};

struct pawl__nats_fetcher {
    struct pawl__nats *nats;
    struct nats_inbox inbox;
    char subject[2 * PAWL__NATS_NAME_SIZE + 64];
    char stream[PAWL__NATS_NAME_SIZE];
    char consumer[PAWL__NATS_NAME_SIZE];
    uint64_t number; /* of the last request */
};

pawl_status pawl__nats_fetcher_open(struct pawl__nats *nats,
                                    const char *stream,
                                    const char *consumer,
                                    struct pawl__nats_fetcher **ret_fetcher,
                                    pawl_error *reterr)
{
    AUTO(pawl__nats_fetcher_close_p) struct pawl__nats_fetcher *fetcher = NULL;
    struct pawl__nats_consumer info;

    NEED(nats, reterr);
    NEED(ret_fetcher, reterr);
    TRY(pawl__nats_consumer_info(nats, stream, consumer, &info, reterr));
    fetcher = calloc(1, sizeof(*fetcher));
    TRY(pawl__check_memory(fetcher, "a fetcher", reterr));
    fetcher->nats = nats;
    snprintf(fetcher->stream, sizeof(fetcher->stream), "%s", stream);
    snprintf(fetcher->consumer, sizeof(fetcher->consumer), "%s", consumer);
    snprintf(fetcher->subject,
             sizeof(fetcher->subject),
             "$JS.API.CONSUMER.MSG.NEXT.%s.%s",
             stream,
             consumer);
    TRY(pawl__nats_inbox_open(nats, &fetcher->inbox, reterr));
    *ret_fetcher = STEAL(fetcher);
    return PAWL_OK;
}

void pawl__nats_fetcher_close(struct pawl__nats_fetcher *fetcher)
{
    if (fetcher != NULL) {
        pawl__nats_inbox_done(&fetcher->inbox);
        free(fetcher);
    }
}

/* --- batches --- */

static int64_t wire_bytes(natsMsg *msg)
{
    const char *reply = natsMsg_GetReply(msg);

    return natsMsg_GetDataLength(msg) + (int64_t)strlen(natsMsg_GetSubject(msg))
           + (int64_t)(reply == NULL ? 0 : strlen(reply));
}

static struct pawl__nats_message message_of(natsMsg *msg)
{
    struct pawl__nats_message message = { .subject = pawl_view_of(natsMsg_GetSubject(msg)),
                                          .payload = { natsMsg_GetData(msg),
                                                       (size_t)natsMsg_GetDataLength(msg) },
                                          .reply = natsMsg_GetReply(msg),
                                          .native = msg };
    const char *id = NULL;
    natsStatus native = natsMsgHeader_Get(msg, "Nats-Msg-Id", &id);

    if (native == NATS_OK) {
        message.id = pawl_view_of(id);
    }
    message.headers_unreadable = native != NATS_OK && native != NATS_NOT_FOUND;
    return message;
}

/* Takes the message over. */
static pawl_status batch_add(struct pawl__nats_batch *batch, natsMsg **msg, pawl_error *reterr)
{
    struct pawl__nats_message message = message_of(*msg);
    struct pawl__nats_message *grown =
        pawl__grow(batch->messages, batch->count, &batch->room, sizeof(message));

    TRY(pawl__check_memory(grown, "messages", reterr));
    batch->messages = grown;
    if (!pawl__nats_parse_reply(natsMsg_GetReply(*msg), &message)) {
        return PAWL_OK; /* not of JetStream: somebody else published to our subject */
    }
    batch->bytes += wire_bytes(*msg);
    batch->messages[batch->count++] = message;
    *msg = NULL;
    return PAWL_OK;
}

void pawl__nats_batch_done(struct pawl__nats_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        natsMsg_Destroy(batch->messages[i].native);
    }
    free(batch->messages);
    *batch = (struct pawl__nats_batch){ 0 };
}

/* --- one fetch --- */

struct fetch {
    struct pawl__nats_fetcher *fetcher;
    const struct pawl__nats_request *request;
    struct pawl__nats_batch *batch;
    int64_t heartbeat_ns;
    int64_t deadline_ns;
    uint64_t reconnects;
    bool alone; /* one message of any size was asked for */
    bool ended; /* the server has said that no more comes */
};

static bool is_full(const struct fetch *fetch)
{
    return fetch->batch->count >= (size_t)fetch->request->batch_max
           || (fetch->request->bytes_max > 0 && fetch->batch->bytes >= fetch->request->bytes_max)
           || (fetch->alone && fetch->batch->count > 0);
}

static void write_request(const struct fetch *fetch, int64_t left_ns, struct pawl__buf *text)
{
    const struct pawl__nats_request *request = fetch->request;

    pawl__buf_add_format(text,
                         "{\"no_wait\":true,\"batch\":%zu",
                         fetch->alone ? 1 : (size_t)request->batch_max - fetch->batch->count);
    if (request->expires_ms > 0) {
        pawl__buf_add_format(text, ",\"expires\":%lld", (long long)left_ns);
    }
    if (request->bytes_max > 0 && !fetch->alone) {
        pawl__buf_add_format(
            text, ",\"max_bytes\":%lld", (long long)(request->bytes_max - fetch->batch->bytes));
    }
    if (fetch->heartbeat_ns > 0 && 2 * fetch->heartbeat_ns <= left_ns) {
        pawl__buf_add_format(text, ",\"idle_heartbeat\":%lld", (long long)fetch->heartbeat_ns);
    }
    pawl__buf_add_text(text, "}");
}

static pawl_status send_request(struct fetch *fetch, pawl_error *reterr)
{
    struct pawl__nats_fetcher *fetcher = fetch->fetcher;
    char reply[sizeof(fetcher->inbox.prefix) + 24];
    char bytes[REQUEST_SIZE];
    struct pawl__buf text = BUF_OVER(bytes);
    int64_t left_ns = MAX(fetch->deadline_ns - pawl__nats_now_ns(fetcher->nats), NS_PER_MS);

    write_request(fetch, left_ns, &text);
    REQUIRE(!text.broken);
    snprintf(reply,
             sizeof(reply),
             "%s%llu",
             fetcher->inbox.prefix,
             (unsigned long long)++fetcher->number);
    TRY(pawl__nats_ready(fetcher->nats, reterr));
    natsStatus native = natsConnection_PublishRequest(
        fetcher->nats->conn, fetcher->subject, reply, text.data, (int)text.len);
    return native == NATS_OK
               ? PAWL_OK
               : pawl__nats_fail(
                   reterr, native, 0, NULL, "fetch from consumer '%s'", fetcher->consumer);
}

/* Nothing is heard of a request: the consumer is gone (which 2.9 tells nobody), or the server is. */
static pawl_status explain_silence(struct fetch *fetch, pawl_error *reterr)
{
    struct pawl__nats_fetcher *fetcher = fetch->fetcher;
    struct pawl__nats_consumer info;
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__nats_consumer_info(fetcher->nats, fetcher->stream, fetcher->consumer, &info, &error)
        == PAWL_NOT_FOUND) {
        return pawl__fail_with(reterr, PAWL_NOT_FOUND, &error);
    }
    return pawl__fail(reterr,
                      PAWL_UNAVAILABLE,
                      "'%s' is silent: no heartbeat for consumer '%s' of stream '%s'",
                      fetcher->nats->shown,
                      fetcher->consumer,
                      fetcher->stream);
}

static pawl_status conflict_status(const char *description)
{
    static const struct {
        const char *text;
        pawl_status status;
    } words[] = {
        { "Consumer Deleted", PAWL_NOT_FOUND },    { "Exceeded MaxWaiting", PAWL_BUSY },
        { "Exceeded Max", PAWL_INVALID },          { "push based", PAWL_CONFLICT },
        { "Leadership Change", PAWL_UNAVAILABLE }, { "Server Shutdown", PAWL_UNAVAILABLE },
    };

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (strstr(description, words[i].text) != NULL) {
            return words[i].status;
        }
    }
    return PAWL_FAILED;
}

/* What the server says about the running request. */
static pawl_status hear_status(struct fetch *fetch, natsMsg *msg, pawl_error *reterr)
{
    const char *description = "";
    int status = pawl__nats_msg_status(msg, &description);

    switch (status) {
    case 100: /* heartbeat */
        return PAWL_OK;
    case 404: /* no messages */
    case 408: /* expired */
        fetch->ended = true;
        return PAWL_OK;
    case 409:
        if (strstr(description, "MaxBytes") != NULL && strstr(description, "Size") != NULL) {
            fetch->ended = fetch->batch->count > 0;
            fetch->alone = true; /* the next message alone is larger than bytes_max */
            return fetch->ended ? PAWL_OK : send_request(fetch, reterr);
        }
        return pawl__fail(reterr,
                          conflict_status(description),
                          "fetch from consumer '%s' of stream '%s': %s",
                          fetch->fetcher->consumer,
                          fetch->fetcher->stream,
                          description);
    default:
        return pawl__fail(reterr,
                          PAWL_FAILED,
                          "fetch from consumer '%s': status %d: %s",
                          fetch->fetcher->consumer,
                          status,
                          description);
    }
}

static pawl_status hear(struct fetch *fetch, natsMsg **msg, pawl_error *reterr)
{
    uint64_t number = 0;

    /* A message has the subject that it was published to, a word about a request the request's. */
    if (!pawl__nats_inbox_number(&fetch->fetcher->inbox, natsMsg_GetSubject(*msg), &number)) {
        return batch_add(fetch->batch, msg, reterr);
    }
    return number == fetch->fetcher->number ? hear_status(fetch, *msg, reterr) : PAWL_OK;
}

/* Messages of an earlier request that came after its end. */
static pawl_status drain(struct fetch *fetch, pawl_error *reterr)
{
    int waiting = 0;

    /* What cnats makes of "no responders" is not for this request. */
    while (!is_full(fetch)
           && natsSubscription_GetPending(fetch->fetcher->inbox.subscription, &waiting, NULL)
                  == NATS_OK
           && waiting > 0) {
        AUTO(pawl__nats_msg_destroy) natsMsg *msg = NULL;
        uint64_t number = 0;
        natsStatus native =
            natsSubscription_NextMsg(&msg, fetch->fetcher->inbox.subscription, DRAIN_MS);
        if (native == NATS_OK
            && !pawl__nats_inbox_number(&fetch->fetcher->inbox, natsMsg_GetSubject(msg), &number)) {
            TRY(batch_add(fetch->batch, &msg, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status receive(struct fetch *fetch, pawl_error *reterr)
{
    int64_t silent_ns = fetch->heartbeat_ns * HEARTBEATS_MISSED + HEARTBEAT_SLACK_MS * NS_PER_MS;

    while (!fetch->ended && !is_full(fetch)) {
        AUTO(pawl__nats_msg_destroy) natsMsg *msg = NULL;
        int64_t now_ns = pawl__nats_now_ns(fetch->fetcher->nats);
        /* The server ends the request itself; the slack lets its word arrive. */
        int64_t end_ns = fetch->deadline_ns + HEARTBEAT_SLACK_MS * NS_PER_MS;
        bool heartbeat_first = fetch->heartbeat_ns > 0 && now_ns + silent_ns < end_ns;
        struct pawl__nats_wait wait = { .deadline_ns =
                                            heartbeat_first ? now_ns + silent_ns : end_ns,
                                        .reconnects = fetch->reconnects,
                                        .cancel = fetch->request->cancel };
        pawl_status status = pawl__nats_next(
            fetch->fetcher->nats, fetch->fetcher->inbox.subscription, &wait, &msg, reterr);
        bool nobody = status == PAWL_UNAVAILABLE && reterr != NULL
                      && reterr->native == (int)NATS_NO_RESPONDERS;
        if (nobody || status == PAWL_TIMEOUT) {
            return explain_silence(fetch, reterr);
        }
        TRY(status);
        TRY(hear(fetch, &msg, reterr));
    }
    return PAWL_OK;
}

static pawl_status check_request(const struct pawl__nats_request *request, pawl_error *reterr)
{
    NEED(request, reterr);
    TRY(pawl__check_range("batch_max", request->batch_max, 1, PAWL__NATS_BATCH_MAX, reterr));
    TRY(pawl__check_range("bytes_max", request->bytes_max, 0, INT64_MAX, reterr));
    TRY(pawl__check_range("expires_ms", request->expires_ms, 0, PAWL__NATS_EXPIRES_MS_MAX, reterr));
    return pawl__check_range(
        "heartbeat_ms", request->heartbeat_ms, 0, request->expires_ms / 2, reterr);
}

/* Below HEARTBEAT_MS_MIN the server takes none; a wait that short needs none. */
static int64_t heartbeat_of(const struct pawl__nats_request *request)
{
    int ms = request->heartbeat_ms == 0 ? MIN((int)HEARTBEAT_MS_DEFAULT, request->expires_ms / 2)
                                        : request->heartbeat_ms;

    return ms < HEARTBEAT_MS_MIN ? 0 : ms * NS_PER_MS;
}

pawl_status pawl__nats_fetch(struct pawl__nats_fetcher *fetcher,
                             const struct pawl__nats_request *request,
                             struct pawl__nats_batch *ret_batch,
                             pawl_error *reterr)
{
    struct pawl__nats_batch batch = { 0 };
    pawl_error error = PAWL_ERROR_INIT;

    NEED(fetcher, reterr);
    NEED(ret_batch, reterr);
    TRY(check_request(request, reterr));
    /* A server that is to answer at once may take as long as any call. */
    int64_t wait_ms = request->expires_ms > 0 ? request->expires_ms : fetcher->nats->answer_ms_max;
    struct fetch fetch = { .fetcher = fetcher,
                           .request = request,
                           .batch = &batch,
                           .heartbeat_ns = heartbeat_of(request),
                           .deadline_ns = pawl__nats_now_ns(fetcher->nats) + wait_ms * NS_PER_MS,
                           .reconnects = pawl__nats_reconnects(fetcher->nats) };
    pawl_status status = drain(&fetch, &error);
    if (status == PAWL_OK && !is_full(&fetch)) {
        status = send_request(&fetch, &error);
        status = status == PAWL_OK ? receive(&fetch, &error) : status;
    }
    if (status != PAWL_OK && batch.count == 0) {
        pawl__nats_batch_done(&batch);
        return pawl__fail_with(reterr, status, &error);
    }
    *ret_batch = batch;
    return PAWL_OK;
}

/* --- acknowledgements --- */

static pawl_status answer(struct pawl__nats_fetcher *fetcher,
                          const struct pawl__nats_message *message,
                          const char *word,
                          pawl_error *reterr)
{
    NEED(fetcher, reterr);
    NEED(message, reterr);
    NEED_TEXT(message->reply, reterr);
    TRY(pawl__nats_ready(fetcher->nats, reterr));
    natsStatus native = natsConnection_PublishString(fetcher->nats->conn, message->reply, word);
    return native == NATS_OK ? PAWL_OK
                             : pawl__nats_fail(reterr,
                                               native,
                                               0,
                                               NULL,
                                               "acknowledge message %llu of stream '%s'",
                                               (unsigned long long)message->sequence,
                                               fetcher->stream);
}

pawl_status pawl__nats_ack(struct pawl__nats_fetcher *fetcher,
                           const struct pawl__nats_message *message,
                           pawl_error *reterr)
{
    return answer(fetcher, message, "+ACK", reterr);
}

pawl_status pawl__nats_nak(struct pawl__nats_fetcher *fetcher,
                           const struct pawl__nats_message *message,
                           int64_t delay_ns,
                           pawl_error *reterr)
{
    char word[64];

    TRY(pawl__check_range("delay", delay_ns, 0, INT64_MAX, reterr));
    snprintf(word, sizeof(word), "-NAK {\"delay\": %lld}", (long long)delay_ns);
    return answer(fetcher, message, delay_ns == 0 ? "-NAK" : word, reterr);
}

pawl_status pawl__nats_in_progress(struct pawl__nats_fetcher *fetcher,
                                   const struct pawl__nats_message *message,
                                   pawl_error *reterr)
{
    return answer(fetcher, message, "+WPI", reterr);
}

/* --- headers --- */

static pawl_status see_values(
    natsMsg *msg, const char *name, pawl__nats_see_header *see, void *context, pawl_error *reterr)
{
    const char **values = NULL;
    int count = 0;
    pawl_status status = PAWL_OK;

    if (natsMsgHeader_Values(msg, name, &values, &count) != NATS_OK) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for the values of a header");
    }
    for (int i = 0; i < count && status == PAWL_OK; i++) {
        status = see(context, pawl_view_of(name), pawl_view_of(values[i]), reterr);
    }
    free((void *)values);
    return status;
}

pawl_status pawl__nats_message_headers(const struct pawl__nats_message *message,
                                       pawl__nats_see_header *see,
                                       void *context,
                                       pawl_error *reterr)
{
    const char **names = NULL;
    int count = 0;
    pawl_status status = PAWL_OK;

    NEED(message, reterr);
    NEED(see, reterr);
    natsStatus native = natsMsgHeader_Keys(message->native, &names, &count);
    if (native == NATS_NOT_FOUND) {
        return PAWL_OK;
    }
    if (native != NATS_OK) {
        return pawl__nats_fail(reterr,
                               native == NATS_NO_MEMORY ? native : NATS_INVALID_ARG,
                               0,
                               "cannot be read",
                               "headers of message %llu",
                               (unsigned long long)message->sequence);
    }
    for (int i = 0; i < count && status == PAWL_OK; i++) {
        status = see_values(message->native, names[i], see, context, reterr);
    }
    free((void *)names);
    return status;
}
