/* What a group of write requests does to a ledger: all decisions, no I/O.
 *
 * A plan starts at the ledger's head, takes one request after the other and says which events to
 * insert, with offset and hash, and which turn rows to write. A request that cannot be carried out
 * fails alone and leaves no trace; the others continue.
 *
 * Optimistic: a plan that knows of nothing stored takes every id for new. The store then finds the
 * duplicates (insert returns CONFLICT), and the same requests are planned again with what it holds.
 * Turns are always planned with what is stored: the caller hands their newest attempts to
 * pawl__ledger_plan_turn. */
#ifndef PAWL_LEDGER_CORE_PLAN_H
#define PAWL_LEDGER_CORE_PLAN_H

#include <pawl/ledger.h>

#include "base/core/arena.h"
#include "base/core/map.h"
#include "engine/committer.h"
#include "ledger/core/open_turns.h"

enum ledger_request_kind {
    LEDGER_APPEND,
    LEDGER_COPY, /* events of another ledger, its own kinds included */
    LEDGER_TURN_BEGIN,
    LEDGER_TURN_COMMIT,
    LEDGER_TURN_ABANDON,
    LEDGER_EMBED,
};

/* What a request that resumes an attempt says about its events without ids, once for each actor
 * and kind among them. */
struct ledger_ordinal {
    size_t event;    /* the first of them in the request */
    uint64_t given;  /* its ordinal, or PAWL_ORDINAL_FIRST */
    uint64_t stored; /* how many of them the store has; above `given` it may be more */
};

/* A request and its answer. What it points to is borrowed until the answer is there. */
struct ledger_request {
    enum ledger_request_kind kind;

    const pawl_event *events; /* APPEND and COPY: validated, nothing left to fill in */
    size_t count;
    size_t turn_events;          /* COPY: how many of them are about turns */
    pawl_append_result *results; /* `count` of them; NULL: nobody asks */
    /* Of an append by a handle that does not know what the attempt has. Such a request is planned
     * with what is stored. */
    struct ledger_ordinal *ordinals;
    size_t ordinal_count;

    bool in_turn; /* always, but for a copy and an append outside a turn */
    pawl_view run_id;
    int64_t turn;
    uint32_t attempt; /* the fence; for a begin the answer */
    pawl_view reason; /* LEDGER_TURN_ABANDON */
    int64_t now_us;   /* created_at of the turn's own events */

    uint64_t offset; /* LEDGER_EMBED */
    pawl_view vector;

    struct pawl__commit_item item; /* its place in the group commit; item.outcome is the answer */
};

/* One attempt of a turn; attempt 0: it was never begun. */
struct ledger_turn {
    pawl_view run_id;
    int64_t turn;
    uint32_t attempt;
    pawl_turn_state state;
    uint64_t begin_offset;
    uint64_t end_offset; /* of its commit or abandon event; 0 while open */
};

struct ledger_plan {
    pawl_ledger_head head;         /* after the last planned event */
    pawl_ledger_head request_head; /* the same before the request that is being planned */
    pawl_event *inserts;           /* never moves while it is filled: `known` points into it */
    size_t insert_count;
    size_t insert_cap;
    struct ledger_turn *attempts; /* the newest attempts of the turns that are asked for, ... */
    size_t attempt_count;
    size_t attempt_cap;
    struct ledger_turn *changes; /* ... and the rows to write, in this order */
    size_t change_count;
    size_t change_cap;
    size_t duplicate_count;
    const struct ledger_open_turns
        *open;               /* as of the head that the plan started at; NULL: none is */
    struct pawl__map *known; /* id -> event that is stored or planned; NULL: optimistic */
    bool doubtful; /* optimistic, and refused an event that may be a duplicate: plan it again */
    struct pawl__arena arena; /* stored events, and the texts of the turns' own */
};

#define LEDGER_PLAN_INIT    \
    {                       \
        .arena = ARENA_INIT \
    }

void pawl__ledger_plan_done(struct ledger_plan *plan);

/* Empties the plan and makes room for everything that the requests can ask for. Optimistic unless
 * `careful`: then pawl__ledger_plan_stored is to be called for each id that is stored. */
PAWL_MUST_USE pawl_status pawl__ledger_plan_start(struct ledger_plan *plan,
                                                  const pawl_ledger_head *head,
                                                  struct ledger_request *const *requests,
                                                  size_t count,
                                                  bool careful,
                                                  pawl_error *reterr);

/* An event that is stored under an id of the requests; copied. */
PAWL_MUST_USE pawl_status pawl__ledger_plan_stored(struct ledger_plan *plan,
                                                   const pawl_event *event,
                                                   pawl_error *reterr);

/* The newest attempt of a turn, once for each turn that a request names; its run_id is borrowed. */
void pawl__ledger_plan_turn(struct ledger_plan *plan, const struct ledger_turn *newest);
bool pawl__ledger_plan_knows_turn(const struct ledger_plan *plan, pawl_view run_id, int64_t turn);

/* Plans one request and writes its answer: item.outcome, results, attempt. The answer counts only
 * when the plan was committed. */
void pawl__ledger_plan_request(struct ledger_plan *plan, struct ledger_request *request);

/* --- check_ordinals.c --- */

/* CONFLICT when the events without ids would not continue those that are stored or planned; the
 * message says which ordinal is the next. */
PAWL_MUST_USE pawl_status pawl__ledger_plan_check_ordinals(const struct ledger_plan *plan,
                                                           const struct ledger_request *request,
                                                           pawl_error *reterr);

#endif
