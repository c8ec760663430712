/* Server-sent events: what an EventSource of a browser, or curl, follows.
 *
 *     id: 17
 *     event: completed
 *     data: {"work_item_id":"a"}
 *
 * A client that comes back sends the last id it saw in the header Last-Event-ID. */
#ifndef PAWL_NET_HTTP_EVENTS_H
#define PAWL_NET_HTTP_EVENTS_H

#include "base/core/buf.h"
#include "net/http/stream.h"

#define HTTP_EVENTS "text/event-stream"

/* Adds one event. Empty id or event: none. Neither may contain a line's end; data may. Pure. */
void pawl__http_event_write(pawl_view id, pawl_view event, pawl_view data, struct pawl__buf *buf);

/* Where events come from. */
struct pawl__http_event_source {
    /* Adds some events to the buffer, which is empty: a few KiB at a time. None: there are none now. False:
     * none will follow. Does not wait. */
    bool (*next)(void *context, struct pawl__buf *events);
    void (*close)(void *context); /* as that of a pawl__http_source */
    void *context;
    uint32_t quiet_ms_max; /* without an event, before a comment is sent; 0: 15 s */
};

/* Answers with the events, and with a comment when there was none for a while: so a connection that is gone
 * is noticed, and proxies keep one that is not. The stream is as in stream.h. */
void pawl__http_answer_events(struct pawl__http_request *request,
                              const struct pawl__http_event_source *source,
                              struct pawl__http_stream *stream);

#endif
