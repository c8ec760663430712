#include "net/http/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "net/http/internal.h"

enum { QUIET_MS = 15000, EVENTS_BYTES_MAX = 16 << 20 };

/* --- one event --- */

static void add_field(struct pawl__buf *buf, const char *name, pawl_view value)
{
    pawl__buf_add_text(buf, name);
    pawl__buf_add_text(buf, ": ");
    pawl__buf_add(buf, value);
    pawl__buf_add_text(buf, "\n");
}

static bool is_one_line(pawl_view text)
{
    return text.len == 0
           || (memchr(text.data, '\n', text.len) == NULL
               && memchr(text.data, '\r', text.len) == NULL);
}

/* The next line of a text whose lines end in LF, CR or both; false after the last. */
static bool next_line(pawl_view *rest, pawl_view *ret_line)
{
    size_t len = 0;

    if (rest->data == NULL) {
        return false;
    }
    while (len < rest->len && rest->data[len] != '\n' && rest->data[len] != '\r') {
        len++;
    }
    *ret_line = (pawl_view){ rest->data, len };
    if (len == rest->len) {
        *rest = (pawl_view){ NULL, 0 };
        return true;
    }
    bool both = rest->data[len] == '\r' && len + 1 < rest->len && rest->data[len + 1] == '\n';
    size_t end = len + (both ? 2 : 1);
    *rest = (pawl_view){ rest->data + end, rest->len - end };
    return true;
}

void pawl__http_event_write(pawl_view id, pawl_view event, pawl_view data, struct pawl__buf *buf)
{
    pawl_view rest = data.len == 0 ? (pawl_view){ "", 0 } : data;
    pawl_view line = { "", 0 };

    REQUIRE(is_one_line(id) && is_one_line(event));
    if (id.len > 0) {
        add_field(buf, "id", id);
    }
    if (event.len > 0) {
        add_field(buf, "event", event);
    }
    while (next_line(&rest, &line)) {
        add_field(buf, "data", line);
    }
    pawl__buf_add_text(buf, "\n");
}

/* --- many, as a stream --- */

struct following {
    struct pawl__http_event_source source;
    struct pawl__clock *clock;
    struct pawl__buf events; /* that were asked for and not sent yet, from `sent` on */
    size_t sent;
    int64_t sent_ns; /* when something was sent last */
    bool ended;
};

/* Events that do not fit end the stream before any of them is sent: half an event would be taken for
 * one. */
static void ask(struct following *following)
{
    if (!following->source.next(following->source.context, &following->events)) {
        following->ended = true;
    }
    if (following->events.broken) {
        pawl__buf_done(&following->events);
        following->ended = true;
    }
}

static size_t read_events(void *context, char *to, size_t size, bool *ret_ended)
{
    struct following *following = context;
    int64_t now_ns = pawl__monotonic_ns(following->clock);

    if (following->events.len == 0 && !following->ended) {
        ask(following);
        if (following->events.len == 0 && !following->ended
            && now_ns - following->sent_ns >= following->source.quiet_ms_max * NS_PER_MS) {
            pawl__buf_add_text(&following->events, ":\n\n");
        }
    }
    pawl_view rest = pawl__buf_view(&following->events);
    size_t len = MIN(rest.len - following->sent, size);
    if (len == 0) {
        *ret_ended = following->ended;
        return 0;
    }
    memcpy(to, rest.data + following->sent, len);
    following->sent += len;
    following->sent_ns = now_ns;
    if (following->sent == rest.len) {
        pawl__buf_done(&following->events);
        following->sent = 0;
    }
    return len;
}

static void close_events(void *context)
{
    struct following *following = context;

    following->source.close(following->source.context);
    pawl__buf_done(&following->events);
    free(following);
}

void pawl__http_answer_events(struct pawl__http_request *request,
                              const struct pawl__http_event_source *source,
                              struct pawl__http_stream *stream)
{
    struct following *following = calloc(1, sizeof(*following));
    pawl_error error = PAWL_ERROR_INIT;

    if (following == NULL) {
        (void)pawl__fail(&error, PAWL_NOMEM, "no memory for a follower");
        pawl__http_fail(request, &error);
        source->close(source->context);
        return;
    }
    following->source = *source;
    if (following->source.quiet_ms_max == 0) {
        following->source.quiet_ms_max = QUIET_MS;
    }
    following->clock = request->http->options.clock;
    following->sent_ns = pawl__monotonic_ns(following->clock);
    following->events = (struct pawl__buf)BUF_INIT(EVENTS_BYTES_MAX);
    const struct pawl__http_source bytes = {
        .read = read_events,
        .close = close_events,
        .context = following,
        .again_ms = following->source.quiet_ms_max,
    };
    pawl__http_answer_stream(request, HTTP_EVENTS, &bytes, stream);
}
