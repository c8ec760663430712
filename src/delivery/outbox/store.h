/* The outbox: events that a producer has handed over, until the broker has them for good. An entry is
 *
 *     pending    not acknowledged
 *     kept       acknowledged as a message of a stream, and kept until the server has surely synced it
 *     failed     refused for a reason of its own; it waits for a person
 *     forgotten  only its id is left, which finds a second one of it
 *
 * Entries are numbered 1, 2, 3 ... as they are accepted. One thread appends at a time, one thread at a time makes
 * all other changes, and any thread reads. Texts of a call are copied.
 *
 * "Durable" means: on disk when the call returns. Other changes survive the process, and become durable with the next
 * durable call; lost, they are found out again from the stream. */
#ifndef PAWL_DELIVERY_OUTBOX_STORE_H
#define PAWL_DELIVERY_OUTBOX_STORE_H

#include "base/core/arena.h"
#include "base/core/macros.h"
#include "delivery/core/identity.h"
#include "delivery/core/message.h"

struct outbox_store;

enum { OUTBOX_REASON_SIZE = 160 };

struct outbox_entry {
    uint64_t number;
    struct delivery_hash key; /* of the transaction id */
    struct delivery_hash payload_hash;
    int64_t created_us; /* wall, for people */
    uint64_t sequence;
    pawl_view source;
    pawl_view event_id;
    pawl_view subject;
    const struct delivery_header *headers;
    size_t header_count;
    pawl_view payload;
};

/* What it counts for in limits. */
uint64_t pawl__delivery_outbox_bytes(const struct outbox_entry *entry);

/* "{source}:{event_id}:{sequence}" */
void pawl__delivery_outbox_add_id(const struct outbox_entry *entry, struct pawl__buf *text);

/* An entry that was read, with its texts. Starts with OUTBOX_READ_INIT and is used again and again. */
struct outbox_read {
    struct outbox_entry entry;
    struct pawl__arena arena;
};

#define OUTBOX_READ_INIT          \
    {                             \
        .arena = {.chunk = NULL } \
    }

void pawl__delivery_outbox_read_done(struct outbox_read *read);

/* Copies an entry with its texts into `read`. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_read_copy(struct outbox_read *read,
                                                          const struct outbox_entry *entry,
                                                          pawl_error *reterr);

struct outbox_hit {
    bool found;
    uint64_t number;
    struct delivery_hash payload_hash;
};

/* An entry that was acknowledged. Several may share a sequence: then the one with the highest number is the message
 * there, and the others are known to be before it in the stream. */
struct outbox_kept {
    uint64_t number;
    uint64_t sequence;  /* in the stream */
    int64_t created_ns; /* of the stream */
    uint64_t session;   /* names the server's process and the boot of this machine */
    int64_t acked_ns;   /* boot clock */
};

struct outbox_failed {
    uint64_t number;
    int64_t failed_us; /* wall, for people */
    char reason[OUTBOX_REASON_SIZE];
};

struct outbox_stats {
    uint64_t outbox;    /* names this outbox: drawn when it was made, never 0 */
    uint64_t last;      /* the highest number ever; 0: none */
    int64_t running_ns; /* as of the last append */
    uint64_t pending;
    uint64_t pending_bytes;
    uint64_t kept;
    uint64_t kept_bytes;
    uint64_t failed;
    uint64_t failed_bytes;
    uint64_t ids; /* that a second one would be found by */
};

struct outbox_store_ops {
    /* All or nothing, durable. Numbers continue at `last`; `running_ns` never goes back. */
    pawl_status (*append)(struct outbox_store *store,
                          const struct outbox_entry *entries,
                          size_t count,
                          int64_t running_ns,
                          pawl_error *reterr);
    /* One hit per key, also of forgotten entries. */
    pawl_status (*lookup)(struct outbox_store *store,
                          const struct delivery_hash *keys,
                          size_t count,
                          struct outbox_hit *ret_hits,
                          pawl_error *reterr);

    /* The first subject above `after` that has pending entries; an empty `after` is below all. */
    pawl_status (*next_subject)(struct outbox_store *store,
                                pawl_view after,
                                struct pawl__buf *subject,
                                bool *ret_found,
                                pawl_error *reterr);
    /* The first pending entry of the subject whose number is at least `from`. */
    pawl_status (*head)(struct outbox_store *store,
                        pawl_view subject,
                        uint64_t from,
                        struct outbox_read *read,
                        bool *ret_found,
                        pawl_error *reterr);
    /* Pending, kept or failed. */
    pawl_status (*read)(struct outbox_store *store,
                        uint64_t number,
                        struct outbox_read *read,
                        bool *ret_found,
                        pawl_error *reterr);

    /* Pending entries become kept ones of the stream. Those that are not pending are left out. */
    pawl_status (*keep)(struct outbox_store *store,
                        pawl_view stream,
                        const struct outbox_kept *kept,
                        size_t count,
                        pawl_error *reterr);
    /* Streams with kept entries, as next_subject. */
    pawl_status (*next_stream)(struct outbox_store *store,
                               pawl_view after,
                               struct pawl__buf *stream,
                               bool *ret_found,
                               pawl_error *reterr);
    /* Kept entries of a stream in the order of sequence and number: the first with at least `sequence`; the last
     * with at most that. */
    pawl_status (*first_kept)(struct outbox_store *store,
                              pawl_view stream,
                              uint64_t sequence,
                              struct outbox_kept *ret_kept,
                              bool *ret_found,
                              pawl_error *reterr);
    pawl_status (*last_kept)(struct outbox_store *store,
                             pawl_view stream,
                             uint64_t sequence,
                             struct outbox_kept *ret_kept,
                             bool *ret_found,
                             pawl_error *reterr);
    /* Kept entries with at least `sequence` become pending again. */
    pawl_status (*requeue)(struct outbox_store *store,
                           pawl_view stream,
                           uint64_t sequence,
                           uint64_t *ret_count,
                           pawl_error *reterr);
    /* Kept entries of another session become ones of this, acknowledged now. */
    pawl_status (*adopt)(struct outbox_store *store,
                         pawl_view stream,
                         uint64_t session,
                         int64_t acked_ns,
                         pawl_error *reterr);
    /* Kept entries with at most `sequence` are forgotten. */
    pawl_status (*forget)(struct outbox_store *store,
                          pawl_view stream,
                          uint64_t sequence,
                          uint64_t *ret_count,
                          pawl_error *reterr);

    /* A pending entry becomes a failed one. Durable: a later one of its subject in the stream must not be taken for
     * a sign that this one is there, too. */
    pawl_status (*set_aside)(struct outbox_store *store,
                             const struct outbox_failed *failed,
                             pawl_error *reterr);
    pawl_status (*next_failed)(struct outbox_store *store,
                               uint64_t from, /* number */
                               struct outbox_failed *ret_failed,
                               bool *ret_found,
                               pawl_error *reterr);
    /* All failed entries become pending again, under new numbers: later ones of their subjects may be in the stream
     * already. Counts as an append. Durable. */
    pawl_status (*retry)(struct outbox_store *store, uint64_t *ret_count, pawl_error *reterr);

    /* The number below which all entries were accepted before the outbox had run for `running_ns`; in steps of an
     * hour, and rather too low. */
    pawl_status (*accepted_before)(struct outbox_store *store,
                                   int64_t running_ns,
                                   uint64_t *ret_number,
                                   pawl_error *reterr);
    /* Ids of forgotten entries below `number` are gone; at most `max` of them, the oldest first. */
    pawl_status (*trim)(struct outbox_store *store,
                        uint64_t number,
                        uint64_t max,
                        uint64_t *ret_count,
                        pawl_error *reterr);

    pawl_status (*sync)(struct outbox_store *store, pawl_error *reterr); /* durable */
    pawl_status (*stats)(struct outbox_store *store,
                         struct outbox_stats *ret_stats,
                         pawl_error *reterr);
    void (*close)(struct outbox_store *store);
};

struct outbox_store {
    const struct outbox_store_ops *ops;
};

#endif
