/* Messages that wait to be sent on one stream. One thread; making a chunk: any. */
#ifndef PAWL_NET_H2_OUTBOX_H
#define PAWL_NET_H2_OUTBOX_H

#include <sys/uio.h>

#include "net/h2/budget.h"
#include "net/h2/core/frame.h"
#include "net/h2/loop.h"

struct pawl__h2_chunk {
    struct pawl__h2_post post; /* when another thread sends it; first */
    struct pawl__h2_chunk *next;
    void *owner;   /* of the post */
    unsigned refs; /* the outbox, and output that is under way */
    char prefix[PAWL__H2_PREFIX_SIZE];
    char *data;
    size_t len;
    size_t charged;
    struct pawl__h2_budget *budget;
};

/* One message, whose bytes are taken out of the buffer. With gzip it is compressed if that makes it smaller. NOMEM,
 * NO_SPACE: the budget is used up. */
PAWL_MUST_USE pawl_status pawl__h2_chunk_new(struct pawl__h2_budget *budget,
                                             struct pawl__buf *message,
                                             bool gzip,
                                             struct pawl__h2_chunk **ret_chunk,
                                             pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__h2_chunk_copy(struct pawl__h2_budget *budget,
                                              pawl_view message,
                                              bool gzip,
                                              struct pawl__h2_chunk **ret_chunk,
                                              pawl_error *reterr);
void pawl__h2_chunk_unref(struct pawl__h2_chunk *chunk); /* NULL is fine */

struct pawl__h2_outbox {
    struct pawl__h2_chunk *head;
    struct pawl__h2_chunk **tail;
    size_t offset; /* in the head, from its prefix on */
    size_t bytes;  /* that wait */
    bool keep;     /* chunks stay for another attempt: `sent` holds them */
    struct pawl__h2_chunk *sent;
};

void pawl__h2_outbox_init(struct pawl__h2_outbox *outbox);
void pawl__h2_outbox_done(struct pawl__h2_outbox *outbox);
/* With `keep`: everything waits to be sent again. */
void pawl__h2_outbox_rewind(struct pawl__h2_outbox *outbox);
void pawl__h2_outbox_add(struct pawl__h2_outbox *outbox, struct pawl__h2_chunk *chunk);

/* The next `len` bytes, which are there, as pieces: at most `max`. Returns how many; *ret_len is what they hold, which is
 * less than `len` when there are more of them. Each is held by a reference of its chunk, in `holds`. */
size_t pawl__h2_outbox_pieces(struct pawl__h2_outbox *outbox,
                              size_t len,
                              struct iovec *pieces,
                              struct pawl__h2_chunk **holds,
                              size_t max,
                              size_t *ret_len);

/* The same into a buffer: as many as there are, `len` at most. */
size_t pawl__h2_outbox_copy(struct pawl__h2_outbox *outbox, uint8_t *to, size_t len);

#endif
