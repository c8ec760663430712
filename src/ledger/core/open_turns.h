/* Which turns are open, for the writer: an append that names no attempt must not end up in one.
 *
 * A turn opens and closes by an event, so the set changes only when the head moves. The writer keeps
 * it from group to group and reads it again when somebody else moved the head. */
#ifndef PAWL_LEDGER_CORE_OPEN_TURNS_H
#define PAWL_LEDGER_CORE_OPEN_TURNS_H

#include <pawl/ledger.h>

#include "base/core/map.h"

struct ledger_turn;

/* The writer's. Start with { 0 }. */
struct ledger_open_turns {
    struct pawl__map *attempts; /* run and turn -> number of the open attempt; NULL: never read */
    pawl_ledger_head as_of;
    bool known; /* as of that head */
};

void pawl__ledger_open_turns_done(struct ledger_open_turns *turns);

/* Empties it: what is added next is the state as of `head`. */
PAWL_MUST_USE pawl_status pawl__ledger_open_turns_start(struct ledger_open_turns *turns,
                                                        const pawl_ledger_head *head,
                                                        pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__ledger_open_turns_add(struct ledger_open_turns *turns,
                                                      pawl_view run_id,
                                                      int64_t turn,
                                                      uint32_t attempt,
                                                      pawl_error *reterr);

bool pawl__ledger_open_turns_are_of(const struct ledger_open_turns *turns,
                                    const pawl_ledger_head *head);

/* The number of the open attempt; 0: the turn is not open. */
uint32_t pawl__ledger_open_turns_find(const struct ledger_open_turns *turns,
                                      pawl_view run_id,
                                      int64_t turn);

/* Takes over rows that were committed and have moved the head to `head`. Without memory the set is
 * forgotten, which costs a read. */
void pawl__ledger_open_turns_commit(struct ledger_open_turns *turns,
                                    const struct ledger_turn *changes,
                                    size_t count,
                                    const pawl_ledger_head *head);

#endif
