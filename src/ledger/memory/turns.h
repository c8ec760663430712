/* The attempts at turns of a ledger in memory. Part of memory/backend.c, which gives it a lock.
 *
 * The committer stages changes and applies them with the rest of its transaction; everybody else
 * sees rows that were applied. */
#ifndef PAWL_LEDGER_MEMORY_TURNS_H
#define PAWL_LEDGER_MEMORY_TURNS_H

#include "base/core/arena.h"
#include "base/core/map.h"
#include "base/thread/thread.h"
#include "ledger/core/backend.h"

struct memory_row {
    struct ledger_turn turn;  /* as applied */
    struct memory_row *older; /* the attempt before it at the same turn */
    bool applied;             /* false: staged only, nobody may see it */
};

struct memory_change {
    struct memory_row *row;
    struct ledger_turn to;
};

struct memory_turns {
    struct pawl__lock *lock;  /* covers what is applied: rows, unfinished */
    struct memory_row **rows; /* in the order in which they began */
    size_t count;
    struct memory_row **unfinished; /* those that are not committed; as much room as `rows` has */
    size_t unfinished_count;
    size_t cap;

    struct pawl__map *newest; /* the committer's from here on: run and turn -> struct memory_row */
    struct memory_change *staged;
    size_t staged_count;
    size_t staged_cap;
    struct pawl__arena arena; /* the rows and their names */
};

PAWL_MUST_USE pawl_status pawl__ledger_memory_turns_init(struct memory_turns *turns,
                                                         struct pawl__lock *lock,
                                                         pawl_error *reterr);
void pawl__ledger_memory_turns_done(struct memory_turns *turns);

/* The committer's: the newest attempt, and a change of one or a new one. */
void pawl__ledger_memory_turns_get(const struct memory_turns *turns,
                                   pawl_view run_id,
                                   int64_t turn,
                                   struct ledger_turn *ret_turn);
PAWL_MUST_USE pawl_status pawl__ledger_memory_turns_put(struct memory_turns *turns,
                                                        const struct ledger_turn *turn,
                                                        pawl_error *reterr);

/* Room for everything that is staged, so that applying it cannot fail. */
PAWL_MUST_USE pawl_status pawl__ledger_memory_turns_reserve(struct memory_turns *turns,
                                                            pawl_error *reterr);
void pawl__ledger_memory_turns_apply_locked(struct memory_turns *turns);
void pawl__ledger_memory_turns_drop(struct memory_turns *turns);

/* Any thread. */
void pawl__ledger_memory_turns_visit(struct memory_turns *turns,
                                     pawl_view run_id,
                                     uint64_t from,
                                     pawl_turn_visit visit,
                                     void *context);
void pawl__ledger_memory_turns_unfinished(struct memory_turns *turns,
                                          uint64_t since,
                                          pawl_turn_visit visit,
                                          void *context);
/* The highest committed turn; -1: none. */
int64_t pawl__ledger_memory_turns_last_complete(struct memory_turns *turns, pawl_view run_id);

#endif
