#include "net/h2/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "net/h2/core/gzip.h"

enum { GZIP_BYTES_MIN = 1024 }; /* below this it costs more than it saves */

void pawl__h2_chunk_unref(struct pawl__h2_chunk *chunk)
{
    if (chunk == NULL || --chunk->refs > 0) {
        return;
    }
    if (chunk->budget != NULL) {
        pawl__h2_budget_give(chunk->budget, chunk->charged);
    }
    free(chunk->data);
    free(chunk);
}

/* Packed into `message` if that is smaller; else it stays as it is. */
static bool pack(struct pawl__buf *message)
{
    struct pawl__buf packed = BUF_INIT(message->len + message->len / 1000 + 1024);

    if (pawl__h2_gzip(pawl__buf_view(message), &packed, NULL) != PAWL_OK
        || packed.len >= message->len) {
        pawl__buf_done(&packed);
        return false;
    }
    pawl__buf_done(message);
    *message = packed;
    return true;
}

pawl_status pawl__h2_chunk_new(struct pawl__h2_budget *budget,
                               struct pawl__buf *message,
                               bool gzip,
                               struct pawl__h2_chunk **ret_chunk,
                               pawl_error *reterr)
{
    if (message->broken) {
        return pawl__buf_check(message, "a message", reterr);
    }
    bool packed = gzip && message->len >= GZIP_BYTES_MIN && pack(message);
    size_t charged = message->cap + sizeof(struct pawl__h2_chunk);
    if (budget != NULL && !pawl__h2_budget_take(budget, charged)) {
        return pawl__fail(reterr, PAWL_NO_SPACE, "the memory of all connections is used up");
    }
    struct pawl__h2_chunk *chunk = calloc(1, sizeof(*chunk));
    if (chunk == NULL) {
        if (budget != NULL) {
            pawl__h2_budget_give(budget, charged);
        }
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a message");
    }
    chunk->refs = 1;
    chunk->budget = budget;
    chunk->charged = charged;
    chunk->len = message->len;
    chunk->data = STEAL(message->data);
    message->len = message->cap = 0;
    pawl__h2_prefix(chunk->prefix, packed, chunk->len);
    *ret_chunk = chunk;
    return PAWL_OK;
}

pawl_status pawl__h2_chunk_copy(struct pawl__h2_budget *budget,
                                pawl_view message,
                                bool gzip,
                                struct pawl__h2_chunk **ret_chunk,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf copy = BUF_INIT(message.len);

    pawl__buf_add(&copy, message);
    return pawl__h2_chunk_new(budget, &copy, gzip, ret_chunk, reterr);
}

void pawl__h2_outbox_init(struct pawl__h2_outbox *outbox)
{
    *outbox = (struct pawl__h2_outbox){ 0 };
    outbox->tail = &outbox->head;
}

static void free_all(struct pawl__h2_chunk *chunk)
{
    while (chunk != NULL) {
        struct pawl__h2_chunk *next = chunk->next;
        pawl__h2_chunk_unref(chunk);
        chunk = next;
    }
}

void pawl__h2_outbox_done(struct pawl__h2_outbox *outbox)
{
    free_all(outbox->head);
    free_all(outbox->sent);
    pawl__h2_outbox_init(outbox);
}

void pawl__h2_outbox_add(struct pawl__h2_outbox *outbox, struct pawl__h2_chunk *chunk)
{
    chunk->next = NULL;
    *outbox->tail = chunk;
    outbox->tail = &chunk->next;
    outbox->bytes += PAWL__H2_PREFIX_SIZE + chunk->len;
}

void pawl__h2_outbox_rewind(struct pawl__h2_outbox *outbox)
{
    struct pawl__h2_chunk *rest = outbox->head;

    while (outbox->sent != NULL) { /* the last one first */
        struct pawl__h2_chunk *chunk = outbox->sent;
        outbox->sent = chunk->next;
        chunk->next = rest;
        rest = chunk;
    }
    bool keep = outbox->keep;
    pawl__h2_outbox_init(outbox);
    outbox->keep = keep;
    while (rest != NULL) {
        struct pawl__h2_chunk *next = rest->next;
        pawl__h2_outbox_add(outbox, rest);
        rest = next;
    }
}

/* What comes next, of `len` bytes at most, in one piece of memory. */
static struct iovec piece_of(const struct pawl__h2_outbox *outbox, size_t len)
{
    struct pawl__h2_chunk *chunk = outbox->head;
    bool in_prefix = outbox->offset < PAWL__H2_PREFIX_SIZE;
    size_t at = in_prefix ? outbox->offset : outbox->offset - PAWL__H2_PREFIX_SIZE;
    size_t size = in_prefix ? PAWL__H2_PREFIX_SIZE : chunk->len;

    return (struct iovec){ .iov_base = in_prefix ? &chunk->prefix[at] : &chunk->data[at],
                           .iov_len = MIN(size - at, len) };
}

/* Drops the head when all of it has been handed out. */
static void move(struct pawl__h2_outbox *outbox, size_t len)
{
    struct pawl__h2_chunk *chunk = outbox->head;

    outbox->offset += len;
    outbox->bytes -= len;
    if (outbox->offset < PAWL__H2_PREFIX_SIZE + chunk->len) {
        return;
    }
    outbox->head = chunk->next;
    outbox->offset = 0;
    if (outbox->head == NULL) {
        outbox->tail = &outbox->head;
    }
    if (outbox->keep) {
        chunk->next = outbox->sent;
        outbox->sent = chunk;
    } else {
        pawl__h2_chunk_unref(chunk);
    }
}

size_t pawl__h2_outbox_pieces(struct pawl__h2_outbox *outbox,
                              size_t len,
                              struct iovec *pieces,
                              struct pawl__h2_chunk **holds,
                              size_t max,
                              size_t *ret_len)
{
    size_t count = 0;
    size_t done = 0;

    while (done < len && count < max) {
        pieces[count] = piece_of(outbox, len - done);
        holds[count] = outbox->head;
        outbox->head->refs++;
        done += pieces[count].iov_len;
        move(outbox, pieces[count++].iov_len);
    }
    *ret_len = done;
    return count;
}

size_t pawl__h2_outbox_copy(struct pawl__h2_outbox *outbox, uint8_t *to, size_t len)
{
    size_t done = 0;

    while (done < len && outbox->bytes > 0) {
        struct iovec piece = piece_of(outbox, len - done);
        memcpy(&to[done], piece.iov_base, piece.iov_len);
        done += piece.iov_len;
        move(outbox, piece.iov_len);
    }
    return done;
}
