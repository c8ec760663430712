#include "server/follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"

enum { EVENT_BYTES_MAX = 64 << 20, ROUND_BYTES = 16 << 10 };

struct follower {
    void *part;
    const char *event;
    pawl__serve_next_change *next;
    struct pawl__http_stream *stream;
    struct pawl__watch_subscriber subscriber;
    uint64_t position;
};

static bool add_events(void *context, struct pawl__buf *events)
{
    struct follower *follower = context;
    bool any = true;

    while (any && events->len < ROUND_BYTES) {
        AUTO(pawl__buf_done) struct pawl__buf data = BUF_INIT(EVENT_BYTES_MAX);
        char id[24];

        any = follower->next(follower->part, &follower->position, &data);
        if (data.broken) {
            return false; /* no memory, or too large: a part of it would be a wrong change */
        }
        if (any) {
            (void)snprintf(id, sizeof(id), "%" PRIu64, follower->position);
            pawl__http_event_write(
                pawl_view_of(id), pawl_view_of(follower->event), pawl__buf_view(&data), events);
        }
    }
    return !events->broken;
}

static void wake(void *context)
{
    pawl__http_stream_wake(context);
}

static void leave(void *context)
{
    struct follower *follower = context;

    pawl__watch_unsubscribe(&follower->subscriber);
    pawl__http_stream_release(follower->stream);
    free(follower);
}

static pawl_status read_position(const struct pawl__serve_call *call,
                                 uint64_t *ret_position,
                                 pawl_error *reterr)
{
    static const struct pawl__field field = { .name = "Last-Event-ID",
                                              .kind = FIELD_UINT64,
                                              .max = INT64_MAX };
    const char *last = pawl__http_header(call->request, "Last-Event-ID");

    return last == NULL ? PAWL_OK
                        : pawl__record_read_text(&field, pawl_view_of(last), ret_position, reterr);
}

pawl_status pawl__serve_follow(struct pawl__serve_call *call,
                               struct pawl__watch *watch,
                               const char *event,
                               pawl__serve_next_change *next,
                               pawl_error *reterr)
{
    uint64_t position = 0;

    TRY(read_position(call, &position, reterr));
    struct follower *follower = calloc(1, sizeof(*follower));
    struct pawl__http_stream *stream =
        follower == NULL ? NULL : pawl__http_stream_new(call->request);
    if (stream == NULL) {
        free(follower);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a stream");
    }
    *follower = (struct follower){
        .part = call->part, .event = event, .next = next, .stream = stream, .position = position
    };
    const struct pawl__http_event_source source = { .next = add_events,
                                                    .close = leave,
                                                    .context = follower };
    pawl_status status = pawl__watch_subscribe(watch, &follower->subscriber, wake, stream, reterr);
    if (status == PAWL_OK) {
        pawl__http_answer_events(call->request, &source, stream);
    } else {
        leave(follower);
    }
    return status;
}
