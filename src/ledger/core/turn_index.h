/* Which events of the log belong to turns that are not complete.
 *
 * An event belongs to an attempt when it has its run and turn and stands between its begin and its
 * end, no matter who appended it. Events of abandoned attempts are skipped. The first attempt that is
 * still open is a barrier: nothing from it on is complete.
 *
 * The order of reading matters. First the log's head, then the index, then events up to
 * min(head, barrier - 1), whenever that may be:
 *
 *   an attempt that began after the head was read    stands after the head: out of sight
 *   open when the index was read                     is the barrier, or after it
 *   committed or abandoned before that               will never be anything else
 *
 * With the index first, an attempt could begin and write between the two, and its events would be
 * taken for complete. */
#ifndef PAWL_LEDGER_CORE_TURN_INDEX_H
#define PAWL_LEDGER_CORE_TURN_INDEX_H

#include "base/core/arena.h"
#include "ledger/core/backend.h"

struct ledger_span {
    pawl_view run_id;
    int64_t turn;
    uint64_t begin; /* both ends belong to it */
    uint64_t end;
};

struct ledger_turn_index {
    uint64_t barrier; /* the begin of the first open attempt; UINT64_MAX: none */
    struct ledger_span *spans;
    size_t active; /* spans[0 .. active) may hold the next event, ... */
    size_t next;   /* ... spans[next .. count) begin after it */
    size_t count;
    size_t cap;
    struct pawl__arena arena;
};

#define TURN_INDEX_INIT                            \
    {                                              \
        .barrier = UINT64_MAX, .arena = ARENA_INIT \
    }

void pawl__ledger_turn_index_done(struct ledger_turn_index *index);
void pawl__ledger_turn_index_clear(struct ledger_turn_index *index);

/* Adds an attempt that is not committed; false without memory. */
PAWL_MUST_USE bool pawl__ledger_turn_index_add(struct ledger_turn_index *index,
                                               const pawl_turn_info *info);

/* Call it after the last _add. */
void pawl__ledger_turn_index_ready(struct ledger_turn_index *index);

/* True when the event belongs to an abandoned attempt. Events must come in order of the offset. */
bool pawl__ledger_turn_index_skips(struct ledger_turn_index *index, const pawl_event *event);

/* What to leave out of account. */
struct ledger_turn_question {
    uint64_t since;                  /* events up to here are not asked for */
    uint64_t as_of;                  /* commits after this one have not happened; UINT64_MAX */
    const pawl_event_filter *filter; /* turns whose events it refuses hold nobody back; NULL: all */
};

/* Fills the index with what the backend knows. */
PAWL_MUST_USE pawl_status pawl__ledger_turn_index_load(struct ledger_turn_index *index,
                                                       struct ledger_backend *backend,
                                                       const struct ledger_turn_question *question,
                                                       pawl_error *reterr);

#endif
