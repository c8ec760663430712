/* What a ledger needs from the place where its events live.
 *
 * All decisions (what is a duplicate, what a conflict, which offset and hash an event gets, what a
 * turn may do) are made once, in plan.c, from what a backend reads. A backend reads and writes.
 *
 * Writing: one thread at a time (the committer) drives one transaction.
 *
 *     begin -> head              the write lock is held from here on; the head cannot move
 *     lookup, turn_get, ...      what is stored, as far as the plan needs it
 *     insert, turn_put, embed
 *     commit | rollback
 *
 * Reading: any thread, at any time, never blocked by the writer. */
#ifndef PAWL_LEDGER_CORE_BACKEND_H
#define PAWL_LEDGER_CORE_BACKEND_H

#include <pawl/ledger.h>

#include "base/thread/cancel.h"
#include "engine/open.h"
#include "ledger/core/plan.h"

/* Takes one event, borrowed for the call; anything but PAWL_OK ends the walk with it. */
typedef pawl_status (*ledger_event_sink)(void *context,
                                         const pawl_event *event,
                                         pawl_error *reterr);

/* Takes one embedding: 32-bit floats, little-endian, of length 1; borrowed for the call. */
typedef pawl_status (*ledger_vector_sink)(void *context,
                                          uint64_t offset,
                                          pawl_view vector,
                                          pawl_error *reterr);

/* What a store finds events by without reading all of them. */
enum ledger_index {
    LEDGER_INDEX_ID,
    LEDGER_INDEX_RUN,
    LEDGER_INDEX_KIND,
    LEDGER_INDEX_ACTOR,
    LEDGER_INDEXES
};

/* Takes one entry of an index; the key is borrowed for the call. */
typedef pawl_status (*ledger_entry_sink)(void *context,
                                         pawl_view key,
                                         uint64_t offset,
                                         pawl_error *reterr);

struct ledger_query {
    uint64_t from;                   /* offsets greater than this ... */
    uint64_t up_to;                  /* ... up to this one; UINT64_MAX: no end */
    uint32_t limit;                  /* events at the most */
    const pawl_event_filter *filter; /* NULL: all */
};

/* What to do with a log whose end is gone. */
#define LEDGER_CUT_ADVICE \
    "to continue with what is left, run `pawl ledger restore DIR --tail LEDGER --accept-older`"

/* Which turn of a run is asked for. */
enum ledger_which_turn { LEDGER_TURN_HIGHEST, LEDGER_TURN_LAST_COMPLETE };

struct recall_top; /* ledger/recall/recall.h */

struct ledger_backend {
    const struct ledger_backend_ops *ops;
};

/* The types of the methods below, so that a backend declares each of its own in one line. */
typedef void ledger_close_fn(struct ledger_backend *backend);
typedef pawl_status ledger_call_fn(struct ledger_backend *backend, pawl_error *reterr);
typedef pawl_status ledger_head_fn(struct ledger_backend *backend,
                                   pawl_ledger_head *ret_head,
                                   pawl_error *reterr);
typedef pawl_status ledger_offset_fn(struct ledger_backend *backend,
                                     uint64_t *ret_offset,
                                     pawl_error *reterr);
typedef pawl_status ledger_lookup_fn(struct ledger_backend *backend,
                                     const pawl_view *ids,
                                     size_t count,
                                     ledger_event_sink sink,
                                     void *context,
                                     pawl_error *reterr);
typedef pawl_status ledger_insert_fn(struct ledger_backend *backend,
                                     const pawl_event *events,
                                     size_t count,
                                     pawl_error *reterr);
typedef pawl_status ledger_turn_get_fn(struct ledger_backend *backend,
                                       pawl_view run_id,
                                       int64_t turn,
                                       struct ledger_turn *ret_turn,
                                       pawl_error *reterr);
typedef pawl_status ledger_turn_put_fn(struct ledger_backend *backend,
                                       const struct ledger_turn *turn,
                                       pawl_error *reterr);
typedef pawl_status ledger_embed_fn(struct ledger_backend *backend,
                                    uint64_t offset,
                                    pawl_view vector,
                                    pawl_error *reterr);
typedef pawl_status ledger_read_fn(struct ledger_backend *backend,
                                   const struct ledger_query *query,
                                   ledger_event_sink sink,
                                   void *context,
                                   pawl_error *reterr);
typedef pawl_status ledger_get_fn(struct ledger_backend *backend,
                                  pawl_view id,
                                  uint64_t offset,
                                  ledger_event_sink sink,
                                  void *context,
                                  pawl_error *reterr);
typedef pawl_status ledger_turn_of_fn(struct ledger_backend *backend,
                                      enum ledger_which_turn which,
                                      pawl_view run_id,
                                      int64_t *ret_turn,
                                      pawl_error *reterr);
typedef pawl_status ledger_counts_fn(struct ledger_backend *backend,
                                     pawl_count_by by,
                                     const pawl_event_filter *filter,
                                     pawl_count_visit visit,
                                     void *context,
                                     pawl_error *reterr);
typedef pawl_status ledger_open_turns_fn(struct ledger_backend *backend,
                                         pawl_turn_visit visit,
                                         void *context,
                                         pawl_error *reterr);
typedef pawl_status ledger_turns_fn(struct ledger_backend *backend,
                                    pawl_view run_id,
                                    uint64_t from,
                                    pawl_turn_visit visit,
                                    void *context,
                                    pawl_error *reterr);
typedef pawl_status ledger_unfinished_fn(struct ledger_backend *backend,
                                         uint64_t since,
                                         pawl_turn_visit visit,
                                         void *context,
                                         pawl_error *reterr);
typedef pawl_status ledger_embeddings_fn(struct ledger_backend *backend,
                                         const pawl_event_filter *filter,
                                         ledger_vector_sink visit,
                                         void *context,
                                         pawl_error *reterr);
typedef pawl_status ledger_watch_fn(struct ledger_backend *backend,
                                    int64_t deadline_ns,
                                    struct pawl__cancel *cancel,
                                    pawl_error *reterr);
typedef pawl_status ledger_entries_fn(struct ledger_backend *backend,
                                      enum ledger_index index,
                                      ledger_entry_sink sink,
                                      void *context,
                                      pawl_error *reterr);
typedef pawl_status ledger_copy_to_fn(struct ledger_backend *backend,
                                      const char *path,
                                      pawl_progress progress,
                                      void *progress_context,
                                      pawl_error *reterr);
typedef pawl_status ledger_nearest_fn(struct ledger_backend *backend,
                                      const float *values,
                                      size_t dimensions,
                                      const pawl_event_filter *filter,
                                      struct recall_top *top,
                                      pawl_error *reterr);

struct ledger_backend_ops {
    const char *name; /* "memory", "sqlite", "postgres" */

    /* Takes NULL members of a half-opened backend. Bounded, also when the store fails. */
    ledger_close_fn *close;

    /* Takes the write lock (BUSY after the options' patience) and reads the head under it. A
     * backend that reads the head before it has the lock gives two events the same offset. */
    ledger_head_fn *begin;

    /* Those of the ids that are stored, in any order. */
    ledger_lookup_fn *lookup;

    /* All of them, with the offsets and hashes they carry. CONFLICT when an id is there already:
     * the caller rolls back. A backend that skips such an event instead leaves a hole. It counts the
     * rows and reads the head back: a store can report success and keep nothing (CORRUPT). */
    ledger_insert_fn *insert;

    /* The newest attempt of a turn; attempt 0 when there is none. Views in it are the arguments'. */
    ledger_turn_get_fn *turn_get;

    /* Every attempt that is open, as the transaction sees it. `visit` only copies. */
    ledger_open_turns_fn *open_turns;

    /* Writes one attempt's row, new or changed. */
    ledger_turn_put_fn *turn_put;

    /* Stores or replaces the embedding of the event at `offset` (NOT_FOUND without one). `vector`
     * as above. INVALID when the ledger's embeddings have other dimensions. */
    ledger_embed_fn *embed;

    /* PAWL_OK only when everything since begin would survive a power cut. A backend that says so
     * early appears to work and loses events. Ends the transaction either way; after anything but
     * PAWL_OK the outcome is unknown. */
    ledger_call_fn *commit;
    ledger_close_fn *rollback;

    /* Events in offset order. A reader must never be shown n + 1 before n is decided. */
    ledger_read_fn *read;
    ledger_head_fn *head;
    ledger_get_fn *get; /* one event by id, or by offset when the id is empty; NOT_FOUND */
    ledger_counts_fn *counts;
    ledger_turns_fn
        *turns; /* every attempt of a run (of all when empty) by begin_offset, from `from` on */
    ledger_turn_of_fn *turn_of; /* a run (any when empty); NOT_FOUND */

    /* Every stored embedding with its offset, in order of the offset, of events that match. */
    ledger_embeddings_fn *embeddings;

    /* Returns when the log may have grown, at the monotonic deadline, or when cancelled. Called by
     * the ledger's one watcher thread. NULL: only this process writes. */
    ledger_watch_fn *watch;

    /* --- optional from here on; NULL: the general way is good enough --- */

    /* Every attempt that is open, and every abandoned one whose end_offset is greater than `since`,
     * in any order. Readers ask again and again: it must not walk the committed ones, of which a
     * long log has millions. */
    ledger_unfinished_fn *unfinished;

    /* Writes down how far the log certainly reaches. Called by a thread of its own within a second
     * after commits, and once before close. */
    ledger_call_fn *write_anchor;

    /* How far the log certainly reaches, as it was written down. NOT_FOUND: it was not. CORRUPT:
     * what is written there is damaged. */
    ledger_head_fn *anchor;

    /* The highest offset that the store ever had, where its engine remembers it. */
    ledger_offset_fn *highest;

    /* Finds what no walk from the first event to the last would see: something before or after them.
     * CORRUPT says what it is, and the offset is the first one concerned. Called at every open. */
    ledger_offset_fn *check;

    /* Whether the store's schema is still the ledger's: CORRUPT names a trigger or rule that could
     * drop or change what is written, or a constraint that is gone. Opening checks it, too. */
    ledger_call_fn *schema;

    /* Every entry of an index in its order, from the index alone: the events are not read. NULL: the
     * store looks after its indexes itself. */
    ledger_entries_fn *entries;

    /* Copies everything, as of now, into a new SQLite file. */
    ledger_copy_to_fn *copy_to;

    /* The nearest events, found by the store itself, best first. UNSUPPORTED: search exactly instead. */
    ledger_nearest_fn *nearest;
};

/* --- backend.c: for all backends --- */

/* NOT_FOUND */
pawl_status pawl__ledger_fail_no_id(pawl_view id, pawl_error *reterr);
pawl_status pawl__ledger_fail_no_offset(uint64_t offset, pawl_error *reterr);
pawl_status pawl__ledger_fail_no_turn(pawl_view run_id, pawl_error *reterr);

/* Offsets begin at 1 and each read does, too; CORRUPT when the lowest stored one is before it. */
PAWL_MUST_USE pawl_status pawl__ledger_check_first(int64_t offset,
                                                   uint64_t *ret_bad,
                                                   pawl_error *reterr);

/* INVALID when an embedding of so many bytes does not fit those that are stored; 0: none is. */
PAWL_MUST_USE pawl_status pawl__ledger_check_dimensions(size_t bytes,
                                                        size_t stored_bytes,
                                                        pawl_error *reterr);

/* Copies a hash as it is stored; CORRUPT when it is not whole. event->offset is known. */
PAWL_MUST_USE pawl_status pawl__ledger_set_hash(pawl_view stored,
                                                pawl_event *event,
                                                pawl_error *reterr);

/* The index that narrows a filter most, as far as one can know without counting. */
enum ledger_narrowing {
    LEDGER_BY_OFFSET, /* there is no filter */
    LEDGER_BY_FILTER,
    LEDGER_BY_RUN,
    LEDGER_BY_KIND,
    LEDGER_BY_ACTOR,
    LEDGER_NARROWINGS
};
enum ledger_narrowing pawl__ledger_narrowing(const pawl_event_filter *filter);

/* Their setup is a pawl_ledger_options. */
PAWL_MUST_USE pawl__backend_open pawl__ledger_memory_open;
PAWL_MUST_USE pawl__backend_open pawl__ledger_sqlite_open;
PAWL_MUST_USE pawl__backend_open pawl__ledger_postgres_open;

/* Moves the log into the file and empties it, so that the file alone is everything. Of a backend
 * that nobody else has open. */
PAWL_MUST_USE pawl_status pawl__ledger_sqlite_flush(struct ledger_backend *base,
                                                    pawl_error *reterr);

#endif
