#include "lib/outbox_broker.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"

static struct outbox_broker_model *as_model(struct outbox_broker *broker)
{
    return (struct outbox_broker_model *)broker; /* base is its first member */
}

static int64_t now_s(struct outbox_broker_model *model)
{
    return trace_now_ns(model->trace) / NS_PER_S;
}

static pawl_status link_up(struct outbox_broker *broker,
                           struct outbox_link *ret_link,
                           pawl_error *reterr)
{
    struct outbox_broker_model *model = as_model(broker);

    if (model->down) {
        trace_add(model->trace, "no broker");
        return pawl__fail(reterr, PAWL_UNAVAILABLE, "no server answers");
    }
    *ret_link = model->link;
    return PAWL_OK;
}

static pawl_status find_stream(struct outbox_broker *broker,
                               const char *subject,
                               char ret_stream[OUTBOX_STREAM_SIZE],
                               pawl_error *reterr)
{
    struct outbox_broker_model *model = as_model(broker);

    if (model->no_stream) {
        trace_add(model->trace, "no stream takes '%s'", subject);
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no stream takes '%s'", subject);
    }
    snprintf(ret_stream, OUTBOX_STREAM_SIZE, "S");
    return PAWL_OK;
}

static pawl_status stream_info(struct outbox_broker *broker,
                               const char *stream,
                               struct outbox_stream *ret_stream,
                               pawl_error *reterr)
{
    struct outbox_broker_model *model = as_model(broker);

    if (model->no_stream || strcmp(stream, "S") != 0) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no stream '%s'", stream);
    }
    *ret_stream = model->stream;
    return PAWL_OK;
}

static pawl_status get(struct outbox_broker *broker,
                       const char *stream,
                       const char *subject,
                       uint64_t sequence,
                       struct pawl__buf *id,
                       uint64_t *ret_sequence,
                       struct outbox_origin *ret_origin,
                       pawl_error *reterr)
{
    struct outbox_broker_model *model = as_model(broker);

    (void)stream;
    model->reads += sequence != 0;
    for (size_t i = model->count; i > 0; i--) {
        const struct outbox_broker_message *message = &model->messages[i - 1];
        if (sequence != 0 ? message->sequence == sequence
                          : strcmp(message->subject, subject) == 0) {
            pawl__buf_clear(id);
            pawl__buf_add_text(id, message->id);
            *ret_sequence = message->sequence;
            *ret_origin = message->origin;
            return PAWL_OK;
        }
    }
    return pawl__fail(reterr, PAWL_NOT_FOUND, "no such message");
}

static uint64_t last_of(const struct outbox_broker_model *model, const char *subject)
{
    uint64_t last = 0;

    for (size_t i = 0; i < model->count; i++) {
        if (strcmp(model->messages[i].subject, subject) == 0) {
            last = model->messages[i].sequence;
        }
    }
    return last;
}

static uint64_t known(struct outbox_broker_model *model, const char *id)
{
    for (size_t i = 0; i < model->count; i++) {
        if (strcmp(model->messages[i].id, id) == 0
            && now_s(model) - model->messages[i].stored_s < model->window_s) {
            return model->messages[i].sequence;
        }
    }
    return 0;
}

static void store(struct outbox_broker_model *model,
                  const char *subject,
                  const char *id,
                  struct outbox_origin origin)
{
    struct outbox_broker_message *message = &model->messages[model->count++];

    message->sequence = ++model->stream.last_sequence;
    message->stored_s = now_s(model);
    message->origin = origin;
    snprintf(message->subject, sizeof(message->subject), "%s", subject);
    snprintf(message->id, sizeof(message->id), "%s", id);
}

static struct outbox_answer answer_to(struct outbox_broker_model *model,
                                      const struct outbox_outgoing *message)
{
    struct outbox_answer answer = { .token = message->token };
    char subject[64];
    char id[64];

    snprintf(subject, sizeof(subject), "%s", message->subject);
    snprintf(id, sizeof(id), "%.*s", VIEW_ARGS(message->id));
    uint64_t first = known(model, id);
    if (model->refuse_bytes > 0 && message->payload.len >= model->refuse_bytes) {
        answer.fate = OUTBOX_FATE_REFUSED;
        answer.status = PAWL_INVALID;
        snprintf(answer.why, sizeof(answer.why), "too large");
        trace_add(model->trace, "%s to %s -> too large", id, subject);
    } else if (first != 0) {
        answer.sequence = first;
        answer.duplicate = true;
        trace_add(model->trace, "%s to %s -> %d, a duplicate", id, subject, (int)first);
    } else if (message->expect_last && message->last_sequence != last_of(model, subject)) {
        answer.fate = OUTBOX_FATE_REFUSED;
        answer.status = PAWL_CONFLICT;
        answer.out_of_order = true;
        trace_add(model->trace,
                  "%s to %s after %d -> the last is %d",
                  id,
                  subject,
                  (int)message->last_sequence,
                  (int)last_of(model, subject));
    } else {
        store(model, subject, id, message->origin);
        answer.sequence = model->stream.last_sequence;
        trace_add(model->trace, "%s to %s -> %d", id, subject, (int)answer.sequence);
    }
    return answer;
}

static pawl_status send_message(struct outbox_broker *broker,
                                const struct outbox_outgoing *message,
                                pawl_error *reterr)
{
    struct outbox_broker_model *model = as_model(broker);

    if (model->down) {
        return pawl__fail(reterr, PAWL_UNAVAILABLE, "no link");
    }
    struct outbox_answer answer = answer_to(model, message);
    if (model->silent) {
        trace_add(model->trace, "... and says nothing");
        answer = (struct outbox_answer){ .token = message->token,
                                         .fate = OUTBOX_FATE_UNKNOWN,
                                         .status = PAWL_TIMEOUT,
                                         .why = "the time was up" };
    }
    model->answers[model->answer_count++] = answer;
    return PAWL_OK;
}

static pawl_status collect(struct outbox_broker *broker,
                           int wait_ms,
                           struct outbox_answer *ret_answers,
                           size_t max,
                           size_t *ret_count,
                           pawl_error *reterr)
{
    struct outbox_broker_model *model = as_model(broker);

    (void)wait_ms;
    (void)max;
    (void)reterr;
    memcpy(ret_answers, model->answers, model->answer_count * sizeof(*ret_answers));
    *ret_count = model->answer_count;
    model->answer_count = 0;
    return PAWL_OK;
}

static void close_model(struct outbox_broker *broker)
{
    (void)broker;
}

void outbox_broker_init(struct outbox_broker_model *model, struct trace *trace)
{
    static const struct outbox_broker_ops ops = {
        .link = link_up,
        .find_stream = find_stream,
        .stream = stream_info,
        .get = get,
        .send = send_message,
        .collect = collect,
        .close = close_model,
    };

    *model = (struct outbox_broker_model){ .base = { &ops },
                                           .trace = trace,
                                           .window_s = 120,
                                           .link = { .number = 1, .session = 100 },
                                           .stream = { .created_ns = 1, .first_sequence = 1 } };
}

void outbox_broker_restart(struct outbox_broker_model *model, uint64_t last)
{
    while (model->count > 0 && model->messages[model->count - 1].sequence > last) {
        model->count--;
    }
    model->stream.last_sequence = MIN(model->stream.last_sequence, last);
    model->link.number++;
    model->link.session++;
    trace_add(model->trace, "the server restarts with %d messages", (int)model->count);
}

void outbox_broker_publish(struct outbox_broker_model *model, const char *subject, const char *id)
{
    outbox_broker_publish_as(model, subject, id, (struct outbox_origin){ 0, 0 });
}

void outbox_broker_publish_as(struct outbox_broker_model *model,
                              const char *subject,
                              const char *id,
                              struct outbox_origin origin)
{
    store(model, subject, id, origin);
}

const char *outbox_broker_messages(struct outbox_broker_model *model)
{
    static char text[8192];
    struct pawl__buf buf = BUF_OVER(text);

    text[0] = '\0';
    for (size_t i = 0; i < model->count; i++) {
        pawl__buf_add_format(
            &buf, "%s%s:%s", i == 0 ? "" : " ", model->messages[i].subject, model->messages[i].id);
    }
    return text;
}
