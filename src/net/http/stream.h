/* Answers whose bytes come as time passes: server-sent events, exports.
 *
 * A stream is pulled. The server asks its source for bytes whenever the client's socket takes some, so a
 * slow client costs no memory and no thread. A source that has none yet says so, and is asked again when
 * it is woken. */
#ifndef PAWL_NET_HTTP_STREAM_H
#define PAWL_NET_HTTP_STREAM_H

#include "net/http/http.h"

struct pawl__http_stream;

/* Writes at most `size` bytes and returns how many. 0 means that there are none now; with *ret_ended set,
 * that none will follow. Runs on a thread that serves other connections as well: it does not wait. */
typedef size_t pawl__http_stream_read(void *context, char *to, size_t size, bool *ret_ended);

struct pawl__http_source {
    pawl__http_stream_read *read;
    /* Runs exactly once, when the client has left, the stream has ended or the server stops; `read` does
     * not run after it. */
    void (*close)(void *context);
    void *context;
    uint32_t again_ms; /* a source that is not woken for so long is asked again; 0: never */
};

/* Answers 200 with the stream, from the thread that has the request. Whether it is sent or refused (503:
 * as many streams are open as options.streams_max allows), the source is closed in the end. */
void pawl__http_answer_stream(struct pawl__http_request *request,
                              const char *type,
                              const struct pawl__http_source *source,
                              struct pawl__http_stream *stream);

/* A stream to wake is made before it is given as an answer: whoever has news may know it by then. NULL
 * without memory. Its maker releases it; it may do so at any time. */
struct pawl__http_stream *pawl__http_stream_new(struct pawl__http_request *request);
void pawl__http_stream_release(struct pawl__http_stream *stream);

/* Its source has bytes. From any thread, at any time before the release. */
void pawl__http_stream_wake(struct pawl__http_stream *stream);

#endif
