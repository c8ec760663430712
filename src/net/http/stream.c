#include "net/http/stream.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "net/http/internal.h"

enum { BLOCK_BYTES = 16384 };
#define AGAIN_STEP_NS \
    NS_PER_S /* times to ask again are rounded up to it: few passes over all streams */

struct pawl__http_stream {
    struct pawl__http *http;
    atomic_uint refs; /* its maker's and the answer's */
    struct pawl__http_source source;
    struct MHD_Connection *connection;
    struct http_conn *conn;

    /* covered by http->lock */
    bool woken;     /* since `read` was called last */
    bool suspended; /* and in http->quiet_streams */
    int64_t again_ns;
    struct pawl__http_stream *next;
    struct pawl__http_stream *before;
};

struct pawl__http_stream *pawl__http_stream_new(struct pawl__http_request *request)
{
    struct pawl__http_stream *stream = calloc(1, sizeof(*stream));

    if (stream != NULL) {
        stream->http = request->http;
        stream->connection = request->connection;
        stream->conn = request->conn;
        atomic_init(&stream->refs, 1);
        atomic_fetch_add(&stream->http->refs, 1);
    }
    return stream;
}

void pawl__http_stream_release(struct pawl__http_stream *stream)
{
    if (atomic_fetch_sub(&stream->refs, 1) == 1) {
        pawl__http_unref(stream->http);
        free(stream);
    }
}

/* --- sleeping and waking --- */

static void link_locked(struct pawl__http *http, struct pawl__http_stream *stream)
    REQUIRES_LOCK(http->lock)
{
    stream->suspended = true;
    stream->before = NULL;
    stream->next = http->quiet_streams;
    if (stream->next != NULL) {
        stream->next->before = stream;
    }
    http->quiet_streams = stream;
}

static void resume_locked(struct pawl__http *http, struct pawl__http_stream *stream)
    REQUIRES_LOCK(http->lock)
{
    if (stream->before != NULL) {
        stream->before->next = stream->next;
    } else {
        http->quiet_streams = stream->next;
    }
    if (stream->next != NULL) {
        stream->next->before = stream->before;
    }
    stream->suspended = false;
    MHD_resume_connection(stream->connection);
}

static int64_t when_again(const struct pawl__http_stream *stream)
{
    int64_t at_ns = pawl__monotonic_ns(stream->http->options.clock)
                    + stream->source.again_ms * NS_PER_MS + AGAIN_STEP_NS - 1;

    return stream->source.again_ms == 0 ? INT64_MAX : at_ns - at_ns % AGAIN_STEP_NS;
}

/* False: it was woken in the meantime, so its source is asked again at once. */
static bool sleep_until_woken(struct pawl__http_stream *stream)
{
    struct pawl__http *http = stream->http;

    pawl__http_conn_waits(&http->watch, stream->conn);
    pawl__lock(&http->lock);
    bool sleeps = !stream->woken && !http->stopping;
    if (sleeps) {
        stream->again_ns = when_again(stream);
        link_locked(http, stream);
        MHD_suspend_connection(
            stream->connection); /* under the lock, before anybody can resume it */
    }
    int64_t again_ns = stream->again_ns;
    pawl__unlock(&http->lock);
    if (sleeps) {
        pawl__http_watch_by(&http->watch, again_ns);
    }
    return sleeps;
}

void pawl__http_stream_wake(struct pawl__http_stream *stream)
{
    struct pawl__http *http = stream->http;

    pawl__lock(&http->lock);
    stream->woken = true;
    if (stream->suspended) {
        resume_locked(http, stream);
    }
    pawl__unlock(&http->lock);
}

int64_t pawl__http_streams_ask_again(struct pawl__http *http, int64_t now_ns)
{
    struct pawl__http_stream *next = NULL;
    int64_t next_ns = INT64_MAX;

    pawl__lock(&http->lock);
    for (struct pawl__http_stream *stream = http->quiet_streams; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->again_ns <= now_ns) {
            resume_locked(http, stream);
        } else {
            next_ns = MIN(next_ns, stream->again_ns);
        }
    }
    pawl__unlock(&http->lock);
    return next_ns;
}

void pawl__http_streams_end(struct pawl__http *http)
{
    pawl__lock(&http->lock);
    REQUIRE(http->stopping);
    while (http->quiet_streams != NULL) {
        resume_locked(http, http->quiet_streams);
    }
    pawl__unlock(&http->lock);
}

/* --- as libmicrohttpd's response --- */

/* True: it may read on. */
static bool begin_read(struct pawl__http_stream *stream)
{
    pawl__lock(&stream->http->lock);
    stream->woken = false;
    bool stopping = stream->http->stopping;
    pawl__unlock(&stream->http->lock);
    return !stopping;
}

static ssize_t on_read(void *context, uint64_t offset, char *to, size_t size)
{
    struct pawl__http_stream *stream = context;

    (void)offset;
    while (begin_read(stream)) {
        bool ended = false;
        size_t len = stream->source.read(stream->source.context, to, size, &ended);

        REQUIRE(len <= size);
        if (len > 0) {
            pawl__http_conn_answers(&stream->http->watch, stream->conn);
            return (ssize_t)len;
        }
        if (ended) {
            break;
        }
        if (sleep_until_woken(stream)) {
            return 0;
        }
    }
    return MHD_CONTENT_READER_END_OF_STREAM;
}

/* The answer has been sent, or goes nowhere. */
static void on_free(void *context)
{
    struct pawl__http_stream *stream = context;
    struct pawl__http *http = stream->http;

    stream->source.close(stream->source.context);
    pawl__lock(&http->lock);
    REQUIRE(!stream->suspended);
    http->stream_count--;
    pawl__unlock(&http->lock);
    pawl__http_stream_release(stream);
}

struct MHD_Response *pawl__http_stream_response(struct pawl__http_stream *stream)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, stream, on_free);

    if (response == NULL) {
        on_free(stream);
    }
    return response;
}

void pawl__http_stream_drop(struct pawl__http_stream *stream)
{
    if (stream != NULL) {
        on_free(stream);
    }
}

void pawl__http_answer_stream(struct pawl__http_request *request,
                              const char *type,
                              const struct pawl__http_source *source,
                              struct pawl__http_stream *stream)
{
    struct pawl__http *http = request->http;
    pawl_error error = PAWL_ERROR_INIT;

    stream->source = *source;
    atomic_fetch_add(&stream->refs, 1);
    pawl__lock(&http->lock);
    bool fits = http->stream_count++ < http->options.streams_max;
    bool taken = fits && pawl__http_answer_stream_locked(http, request, type, stream);
    pawl__unlock(&http->lock);
    if (!taken) {
        on_free(stream);
    }
    if (!fits) {
        (void)pawl__fail(&error, PAWL_BUSY, "%u streams are open", http->options.streams_max);
        pawl__http_fail(request, &error);
    }
}
