/* A message as a source delivers it, and where the source stores it. */
#ifndef PAWL_DELIVERY_CORE_MESSAGE_H
#define PAWL_DELIVERY_CORE_MESSAGE_H

#include <pawl/pawl.h>

/* A place in a source: JetStream's stream and sequence; a file's generation, line and fingerprint; a ledger's
 * offset. Sequences have no gaps but those of source.h, may_skip. The sequence alone does not name a message: a server that lost its tail hands the same sequences
 * out again. Created, stored and sequence together do. */
struct delivery_place {
    int64_t created_ns; /* when the stream was created; other sources: a hash of their generation */
    uint64_t sequence;  /* from 1 */
    int64_t
        stored_ns; /* what the source stored beside it (a file: a fingerprint of its bytes up to there); never compared with a clock of ours */
};

struct delivery_header {
    pawl_view name;
    pawl_view value;
};

enum {
    DELIVERY_HEADERS_MAX = 64,
    DELIVERY_ID_BYTES_MAX = 200, /* of an event id, and of a source's name */
};

struct delivery_message {
    struct delivery_place place;
    pawl_view subject;
    const struct delivery_header *headers;
    size_t header_count;
    pawl_view payload;
    uint64_t handle; /* the source's own: names this delivery in ack and nak */
};

/* What became of a message when it was taken in. */
enum delivery_taken {
    DELIVERY_TAKEN_NEW,
    DELIVERY_TAKEN_AGAIN, /* known, with the same payload */
    DELIVERY_TAKEN_CONFLICT, /* its id is known with another payload: in failed_events, or on its way there */
};

/* The first header of this name, letters in either case; an empty view without one. */
pawl_view pawl__delivery_header(const struct delivery_message *message, const char *name);

#endif
