/* An HTTP/1.1 answer, read from bytes as they arrive. Pure: no socket, no clock.
 *
 * What it cannot make sense of is refused, never guessed: two lengths, a length beside chunks, a line that is no
 * header. */
#ifndef PAWL_NET_HTTP_REPLY_H
#define PAWL_NET_HTTP_REPLY_H

#include <pawl/pawl.h>

#include "base/core/buf.h"

enum {
    HTTP_REPLY_HEAD_MAX = 1 << 16,
    HTTP_REPLY_LINE_MAX = 1024, /* of a chunk's size or a trailer */
    HTTP_REPLY_WORD_SIZE = 512, /* of a header's value that is kept */
};

/* Bytes of the body, in order. Anything but PAWL_OK ends the reading and is returned. */
typedef pawl_status pawl__http_body_sink(void *context, pawl_view bytes, pawl_error *reterr);

enum pawl__http_reply_state {
    HTTP_REPLY_HEAD,
    HTTP_REPLY_LENGTH, /* `left` bytes */
    HTTP_REPLY_CHUNK_SIZE,
    HTTP_REPLY_CHUNK,
    HTTP_REPLY_CHUNK_END,
    HTTP_REPLY_TRAILERS,
    HTTP_REPLY_TO_END, /* until the connection ends */
    HTTP_REPLY_DONE
};

struct pawl__http_reply {
    unsigned code;
    bool closes; /* the connection, with this answer */
    char type[HTTP_REPLY_WORD_SIZE];
    char location[HTTP_REPLY_WORD_SIZE];

    /* The reader's. */
    enum pawl__http_reply_state state;
    bool no_body; /* of an answer to HEAD */
    uint64_t left;
    uint64_t body_bytes;
    uint64_t body_bytes_max;
    struct pawl__buf text; /* a head or a line that is not whole yet */
    pawl__http_body_sink *sink;
    void *context;
};

void pawl__http_reply_init(struct pawl__http_reply *reply,
                           uint64_t body_bytes_max,
                           pawl__http_body_sink *sink,
                           void *context);
void pawl__http_reply_done(struct pawl__http_reply *reply);

/* Reads from the front of `in` until the answer ends (state DONE, the rest is not touched) or there is no more.
 * INVALID: it is no answer. */
PAWL_MUST_USE pawl_status pawl__http_reply_feed(struct pawl__http_reply *reply,
                                                pawl_view *in,
                                                pawl_error *reterr);

/* The connection has ended: fine where an answer may end so. INVALID: it is cut off. */
PAWL_MUST_USE pawl_status pawl__http_reply_end(struct pawl__http_reply *reply, pawl_error *reterr);

#endif
