#include "net/nats/stream.h"

#include <stdio.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/json/json.h"
#include "base/terminal/display.h"
#include "net/nats/internal.h"

enum {
    STORED_BYTES_MAX = 64 << 20, /* nats-server takes no larger message */
    NAMES_BYTES_MAX = 1 << 20,   /* of a list of streams */
};

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from == NULL ? "" : from);
}

/* A name becomes a part of a subject: nothing in it may end that part. */
static pawl_status check_name(const char *what, const char *name, pawl_error *reterr)
{
    size_t len = name == NULL ? 0 : strlen(name);

    if (len == 0 || len >= PAWL__NATS_NAME_SIZE) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: must have 1 to 255 bytes, has %zu", what, len);
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)name[i] <= ' ' || strchr(".*>/\\\x7f", name[i]) != NULL) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "%s: must not contain blanks, '.', '*', '>', '/' or '\\'",
                              what);
        }
    }
    return PAWL_OK;
}

/* --- streams --- */

static void join_subjects(const jsStreamConfig *config, char ret_text[PAWL__NATS_SUBJECTS_SIZE])
{
    char text[PAWL__NATS_SUBJECTS_SIZE - sizeof("...")] = "";
    struct pawl__buf buf = BUF_OVER(text);

    for (int i = 0; i < config->SubjectsLen; i++) {
        pawl__buf_add_text(&buf, i == 0 ? "" : ",");
        pawl__buf_add_text(&buf, config->Subjects[i]);
    }
    snprintf(
        ret_text, PAWL__NATS_SUBJECTS_SIZE, "%.*s%s", (int)buf.len, text, buf.broken ? "..." : "");
}

static enum pawl__nats_retention retention_of(jsRetentionPolicy policy)
{
    return policy == js_LimitsPolicy     ? PAWL__NATS_KEEPS_BY_LIMITS
           : policy == js_InterestPolicy ? PAWL__NATS_KEEPS_BY_INTEREST
                                         : PAWL__NATS_KEEPS_UNTIL_ACK;
}

static void fill_config(const jsStreamConfig *config, struct pawl__nats_stream *stream)
{
    copy(stream->name, sizeof(stream->name), config->Name);
    join_subjects(config, stream->subjects);
    stream->in_memory = config->Storage == js_MemoryStorage;
    stream->no_ack = config->NoAck;
    stream->sealed = config->Sealed;
    stream->discards_new = config->Discard == js_DiscardNew;
    stream->mirror = config->Mirror != NULL || config->SourcesLen > 0;
    stream->retention = retention_of(config->Retention);
    stream->max_age_ns = config->MaxAge;
    stream->duplicates_ns = config->Duplicates;
    stream->max_messages = config->MaxMsgs;
    stream->max_messages_per_subject = config->MaxMsgsPerSubject;
    stream->max_bytes = config->MaxBytes;
    stream->message_bytes_max = config->MaxMsgSize;
    stream->replicas = config->Replicas;
}

static struct pawl__nats_stream stream_of(const jsStreamInfo *info)
{
    struct pawl__nats_stream stream = {
        .created_ns = info->Created,
        .messages = info->State.Msgs,
        .bytes = info->State.Bytes,
        .first_seq = info->State.FirstSeq,
        .last_seq = info->State.LastSeq,
        .first_ns = info->State.FirstTime,
        .last_ns = info->State.LastTime,
    };

    if (info->Config != NULL) {
        fill_config(info->Config, &stream);
    }
    return stream;
}

pawl_status pawl__nats_stream_info(struct pawl__nats *nats,
                                   const char *stream,
                                   struct pawl__nats_stream *ret_stream,
                                   pawl_error *reterr)
{
    jsStreamInfo *info = NULL;
    jsErrCode code = 0;

    NEED(nats, reterr);
    NEED(ret_stream, reterr);
    TRY(check_name("stream", stream, reterr));
    TRY(pawl__nats_ready(nats, reterr));
    uint64_t refusals = pawl__nats_refusals(nats);
    jsOptions options = pawl__nats_call_options(nats);
    natsStatus native = js_GetStreamInfo(&info, nats->js, stream, &options, &code);
    if (native != NATS_OK) {
        return pawl__nats_fail_call(nats, refusals, native, code, reterr, "stream '%s'", stream);
    }
    *ret_stream = stream_of(info);
    jsStreamInfo_Destroy(info);
    return PAWL_OK;
}

static pawl_status check_stream_options(const struct pawl__nats_stream_options *options,
                                        pawl_error *reterr)
{
    NEED(options, reterr);
    NEED(options->subjects, reterr);
    TRY(pawl__check_range(
        "subjects", (int64_t)options->subject_count, 1, PAWL__NATS_SUBJECTS_MAX, reterr));
    for (size_t i = 0; i < options->subject_count; i++) {
        NEED_TEXT(options->subjects[i], reterr);
    }
    TRY(pawl__check_range("max_age", options->max_age_ns, 0, INT64_MAX, reterr));
    TRY(pawl__check_range("duplicates", options->duplicates_ns, 0, INT64_MAX, reterr));
    TRY(pawl__check_range("max_bytes", options->max_bytes, 0, INT64_MAX, reterr));
    return pawl__check_range("replicas", options->replicas, 0, 5, reterr);
}

pawl_status pawl__nats_stream_create(struct pawl__nats *nats,
                                     const char *stream,
                                     const struct pawl__nats_stream_options *options,
                                     struct pawl__nats_stream *ret_stream,
                                     pawl_error *reterr)
{
    const char *subjects[PAWL__NATS_SUBJECTS_MAX];
    jsStreamConfig config;
    jsStreamInfo *info = NULL;
    jsErrCode code = 0;

    NEED(nats, reterr);
    TRY(check_name("stream", stream, reterr));
    TRY(check_stream_options(options, reterr));
    TRY(pawl__nats_ready(nats, reterr));
    memcpy(subjects, options->subjects, options->subject_count * sizeof(subjects[0]));
    jsStreamConfig_Init(&config);
    config.Name = stream;
    config.Subjects = subjects;
    config.SubjectsLen = (int)options->subject_count;
    config.MaxAge = options->max_age_ns == 0 ? PAWL__NATS_MAX_AGE_NS : options->max_age_ns;
    /* The server takes no duplicate window that is longer than max_age. */
    config.Duplicates =
        MIN(config.MaxAge,
            options->duplicates_ns == 0 ? PAWL__NATS_DUPLICATES_NS : options->duplicates_ns);
    config.MaxBytes = options->max_bytes == 0 ? -1 : options->max_bytes;
    config.Replicas = options->replicas == 0 ? 1 : options->replicas;
    uint64_t refusals = pawl__nats_refusals(nats);
    jsOptions call = pawl__nats_call_options(nats);
    natsStatus native = js_AddStream(&info, nats->js, &config, &call, &code);
    if (native != NATS_OK) {
        return pawl__nats_fail_call(
            nats, refusals, native, code, reterr, "create stream '%s'", stream);
    }
    if (ret_stream != NULL) {
        *ret_stream = stream_of(info);
    }
    jsStreamInfo_Destroy(info);
    return PAWL_OK;
}

/* --- the stream of a subject --- */

/* What the server answers to a question for names. False: it is none of its answers. */
static bool parse_names(pawl_view text, char ret_name[PAWL__NATS_NAME_SIZE], int64_t *ret_code)
{
    json_auto_t *json = NULL;

    if (pawl__json_parse(text, NAMES_BYTES_MAX, &json, NULL) != PAWL_OK) {
        return false;
    }
    const json_t *first = json_array_get(json_object_get(json, "streams"), 0);
    *ret_code = json_integer_value(json_object_get(json_object_get(json, "error"), "err_code"));
    copy(ret_name, PAWL__NATS_NAME_SIZE, json_string_value(first));
    return json_is_object(json);
}

/* Asked by hand: cnats 3.4 lists all streams or none. */
pawl_status pawl__nats_stream_of(struct pawl__nats *nats,
                                 const char *subject,
                                 char ret_name[PAWL__NATS_NAME_SIZE],
                                 pawl_error *reterr)
{
    AUTO(pawl__nats_msg_destroy) natsMsg *answer = NULL;
    AUTO(pawl__buf_done) struct pawl__buf question = BUF_INIT(NAMES_BYTES_MAX);
    char name[PAWL__NATS_NAME_SIZE] = "";
    int64_t code = 0;

    NEED(nats, reterr);
    NEED(ret_name, reterr);
    NEED_TEXT(subject, reterr);
    TRY(pawl__nats_ready(nats, reterr));
    pawl__buf_add_text(&question, "{\"subject\":");
    pawl__display_add_json(&question, pawl_view_of(subject));
    pawl__buf_add_text(&question, "}");
    TRY(pawl__buf_check(&question, "subject", reterr));
    uint64_t refusals = pawl__nats_refusals(nats);
    natsStatus native = natsConnection_Request(&answer,
                                               nats->conn,
                                               "$JS.API.STREAM.NAMES",
                                               question.data,
                                               (int)question.len,
                                               nats->answer_ms_max);
    if (native != NATS_OK) {
        return pawl__nats_fail_call(
            nats, refusals, native, 0, reterr, "the stream of '%s'", subject);
    }
    pawl_view text = { natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer) };
    if (!parse_names(text, name, &code) || code != 0) {
        return pawl__nats_fail(reterr, NATS_ERR, (int)code, NULL, "the stream of '%s'", subject);
    }
    if (name[0] == '\0') {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no stream takes the subject '%s'", subject);
    }
    copy(ret_name, PAWL__NATS_NAME_SIZE, name);
    return PAWL_OK;
}

/* --- messages --- */

static pawl_status copy_stored(natsMsg *msg, struct pawl__nats_stored *stored, pawl_error *reterr)
{
    const char *id = NULL;

    stored->sequence = natsMsg_GetSequence(msg);
    stored->stored_ns = natsMsg_GetTime(msg);
    copy(stored->subject, sizeof(stored->subject), natsMsg_GetSubject(msg));
    if (natsMsgHeader_Get(msg, "Nats-Msg-Id", &id) == NATS_OK && id != NULL) {
        pawl__buf_add_text(&stored->id, id);
    }
    if (natsMsgHeader_Get(msg, PAWL__NATS_HEADER_OUTBOX, &id) == NATS_OK && id != NULL
        && strlen(id) < sizeof(stored->outbox)) {
        copy(stored->outbox, sizeof(stored->outbox), id);
    }
    pawl__buf_add(&stored->payload,
                  (pawl_view){ natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg) });
    TRY(pawl__buf_check(&stored->id, "the message's id", reterr));
    return pawl__buf_check(&stored->payload, "the message", reterr);
}

static pawl_status hand_out(natsMsg *msg, struct pawl__nats_stored *ret_stored, pawl_error *reterr)
{
    struct pawl__nats_stored stored = { .id = BUF_INIT(STORED_BYTES_MAX),
                                        .payload = BUF_INIT(STORED_BYTES_MAX) };
    pawl_status status = copy_stored(msg, &stored, reterr);

    if (status != PAWL_OK) {
        pawl__nats_stored_done(&stored);
        return status;
    }
    *ret_stored = stored;
    return PAWL_OK;
}

pawl_status pawl__nats_stream_get(struct pawl__nats *nats,
                                  const char *stream,
                                  uint64_t sequence,
                                  struct pawl__nats_stored *ret_stored,
                                  pawl_error *reterr)
{
    AUTO(pawl__nats_msg_destroy) natsMsg *msg = NULL;
    jsErrCode code = 0;

    NEED(nats, reterr);
    NEED(ret_stored, reterr);
    TRY(check_name("stream", stream, reterr));
    TRY(pawl__nats_ready(nats, reterr));
    uint64_t refusals = pawl__nats_refusals(nats);
    jsOptions options = pawl__nats_call_options(nats);
    natsStatus native = js_GetMsg(&msg, nats->js, stream, sequence, &options, &code);
    if (native != NATS_OK) {
        return pawl__nats_fail_call(nats,
                                    refusals,
                                    native,
                                    code,
                                    reterr,
                                    "message %llu of stream '%s'",
                                    (unsigned long long)sequence,
                                    stream);
    }
    return hand_out(msg, ret_stored, reterr);
}

pawl_status pawl__nats_stream_last(struct pawl__nats *nats,
                                   const char *stream,
                                   const char *subject,
                                   struct pawl__nats_stored *ret_stored,
                                   pawl_error *reterr)
{
    AUTO(pawl__nats_msg_destroy) natsMsg *msg = NULL;
    jsErrCode code = 0;

    NEED(nats, reterr);
    NEED(ret_stored, reterr);
    NEED_TEXT(subject, reterr);
    TRY(check_name("stream", stream, reterr));
    TRY(pawl__nats_ready(nats, reterr));
    uint64_t refusals = pawl__nats_refusals(nats);
    jsOptions options = pawl__nats_call_options(nats);
    natsStatus native = js_GetLastMsg(&msg, nats->js, stream, subject, &options, &code);
    if (native != NATS_OK) {
        return pawl__nats_fail_call(nats,
                                    refusals,
                                    native,
                                    code,
                                    reterr,
                                    "last message of '%s' in stream '%s'",
                                    subject,
                                    stream);
    }
    return hand_out(msg, ret_stored, reterr);
}

void pawl__nats_stored_done(struct pawl__nats_stored *stored)
{
    pawl__buf_done(&stored->id);
    pawl__buf_done(&stored->payload);
}

/* --- consumers --- */

static void fill_consumer_config(const jsConsumerConfig *config,
                                 struct pawl__nats_consumer *consumer)
{
    consumer->durable = config->Durable != NULL && config->Durable[0] != '\0';
    consumer->push = config->DeliverSubject != NULL && config->DeliverSubject[0] != '\0';
    consumer->in_memory = config->MemoryStorage;
    consumer->headers_only = config->HeadersOnly;
    consumer->replays_slowly = config->ReplayPolicy == js_ReplayOriginal;
    consumer->ack_policy = config->AckPolicy == js_AckExplicit ? PAWL__NATS_ACK_EXPLICIT
                           : config->AckPolicy == js_AckNone   ? PAWL__NATS_ACK_NONE
                                                               : PAWL__NATS_ACK_ALL;
    consumer->ack_wait_ns = config->AckWait;
    consumer->max_deliver = config->MaxDeliver;
    consumer->max_ack_pending = config->MaxAckPending;
    consumer->max_request_batch = config->MaxRequestBatch;
    consumer->max_request_bytes = config->MaxRequestMaxBytes;
    consumer->max_request_expires_ns = config->MaxRequestExpires;
    consumer->inactive_ns = config->InactiveThreshold;
    consumer->backoff_count = config->BackOffLen;
    copy(consumer->filter, sizeof(consumer->filter), config->FilterSubject);
}

static struct pawl__nats_consumer consumer_of(const jsConsumerInfo *info)
{
    struct pawl__nats_consumer consumer = {
        .created_ns = info->Created,
        .delivered_seq = info->Delivered.Stream,
        .delivered_count = info->Delivered.Consumer,
        .ack_floor_seq = info->AckFloor.Stream,
        .ack_pending = info->NumAckPending,
        .redelivered = info->NumRedelivered,
        .pending = info->NumPending,
    };

    copy(consumer.stream, sizeof(consumer.stream), info->Stream);
    copy(consumer.name, sizeof(consumer.name), info->Name);
    if (info->Config != NULL) {
        fill_consumer_config(info->Config, &consumer);
    }
    return consumer;
}

pawl_status pawl__nats_consumer_info(struct pawl__nats *nats,
                                     const char *stream,
                                     const char *consumer,
                                     struct pawl__nats_consumer *ret_consumer,
                                     pawl_error *reterr)
{
    jsConsumerInfo *info = NULL;
    jsErrCode code = 0;

    NEED(nats, reterr);
    NEED(ret_consumer, reterr);
    TRY(check_name("stream", stream, reterr));
    TRY(check_name("consumer", consumer, reterr));
    TRY(pawl__nats_ready(nats, reterr));
    uint64_t refusals = pawl__nats_refusals(nats);
    jsOptions options = pawl__nats_call_options(nats);
    natsStatus native = js_GetConsumerInfo(&info, nats->js, stream, consumer, &options, &code);
    if (native != NATS_OK) {
        return pawl__nats_fail_call(
            nats, refusals, native, code, reterr, "consumer '%s' of stream '%s'", consumer, stream);
    }
    *ret_consumer = consumer_of(info);
    jsConsumerInfo_Destroy(info);
    return PAWL_OK;
}

static pawl_status check_need(const struct pawl__nats_consumer_need *need, pawl_error *reterr)
{
    NEED(need, reterr);
    TRY(check_name("consumer", need->name, reterr));
    TRY(pawl__check_range("ack_wait", need->ack_wait_ns, 0, INT64_MAX, reterr));
    TRY(pawl__check_range("max_ack_pending", need->max_ack_pending, 0, INT32_MAX, reterr));
    return pawl__check_range("batch_max", need->batch_max, 0, INT32_MAX, reterr);
}

static pawl_status refuse_existing(struct pawl__nats *nats,
                                   const char *stream,
                                   const char *name,
                                   pawl_error *reterr)
{
    struct pawl__nats_consumer existing;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__nats_consumer_info(nats, stream, name, &existing, &error);

    if (status == PAWL_OK) {
        return pawl__fail(
            reterr, PAWL_CONFLICT, "consumer '%s' of stream '%s' is there already", name, stream);
    }
    return status == PAWL_NOT_FOUND && error.native == (int)JSConsumerNotFoundErr
               ? PAWL_OK
               : pawl__fail_with(reterr, status, &error);
}

static jsConsumerConfig config_of(const struct pawl__nats_consumer_need *need, uint64_t start_seq)
{
    jsConsumerConfig config;

    jsConsumerConfig_Init(&config);
    config.Durable = need->name;
    config.AckPolicy = js_AckExplicit;
    config.MaxDeliver = -1;
    config.AckWait = need->ack_wait_ns == 0 ? PAWL__NATS_ACK_WAIT_NS : need->ack_wait_ns;
    config.MaxAckPending =
        need->max_ack_pending == 0 ? PAWL__NATS_ACK_PENDING_MAX : need->max_ack_pending;
    config.FilterSubject = need->filter;
    if (start_seq > 1) {
        config.DeliverPolicy = js_DeliverByStartSequence;
        config.OptStartSeq = start_seq;
    }
    return config;
}

pawl_status pawl__nats_consumer_create(struct pawl__nats *nats,
                                       const char *stream,
                                       const struct pawl__nats_consumer_need *need,
                                       uint64_t start_seq,
                                       struct pawl__nats_consumer *ret_consumer,
                                       pawl_error *reterr)
{
    jsConsumerInfo *info = NULL;
    jsErrCode code = 0;

    NEED(nats, reterr);
    TRY(check_name("stream", stream, reterr));
    TRY(check_need(need, reterr));
    TRY(refuse_existing(nats, stream, need->name, reterr));
    jsConsumerConfig config = config_of(need, start_seq);
    uint64_t refusals = pawl__nats_refusals(nats);
    jsOptions options = pawl__nats_call_options(nats);
    natsStatus native = js_AddConsumer(&info, nats->js, stream, &config, &options, &code);
    if (native != NATS_OK) {
        return pawl__nats_fail_call(nats,
                                    refusals,
                                    native,
                                    code,
                                    reterr,
                                    "create consumer '%s' of stream '%s'",
                                    need->name,
                                    stream);
    }
    if (ret_consumer != NULL) {
        *ret_consumer = consumer_of(info);
    }
    jsConsumerInfo_Destroy(info);
    return PAWL_OK;
}

pawl_status pawl__nats_consumer_delete(struct pawl__nats *nats,
                                       const char *stream,
                                       const char *consumer,
                                       pawl_error *reterr)
{
    jsErrCode code = 0;

    NEED(nats, reterr);
    TRY(check_name("stream", stream, reterr));
    TRY(check_name("consumer", consumer, reterr));
    TRY(pawl__nats_ready(nats, reterr));
    uint64_t refusals = pawl__nats_refusals(nats);
    jsOptions options = pawl__nats_call_options(nats);
    natsStatus native = js_DeleteConsumer(nats->js, stream, consumer, &options, &code);
    if (native == NATS_OK || code == JSConsumerNotFoundErr) {
        return PAWL_OK;
    }
    return pawl__nats_fail_call(nats,
                                refusals,
                                native,
                                code,
                                reterr,
                                "delete consumer '%s' of stream '%s'",
                                consumer,
                                stream);
}

pawl_status pawl__nats_consumer_recreate(struct pawl__nats *nats,
                                         const char *stream,
                                         const struct pawl__nats_consumer_need *need,
                                         uint64_t start_seq,
                                         struct pawl__nats_consumer *ret_consumer,
                                         pawl_error *reterr)
{
    TRY(check_need(need, reterr));
    TRY(pawl__nats_consumer_delete(nats, stream, need->name, reterr));
    return pawl__nats_consumer_create(nats, stream, need, start_seq, ret_consumer, reterr);
}
