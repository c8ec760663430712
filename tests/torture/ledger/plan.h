/* What a tortured ledger is asked to store, known to the writer and to its judge.
 *
 * Calls are numbered. What a call does follows from its number: append one event, a batch, the
 * events of an earlier call once more, or take a turn, now and then in two attempts. An event is
 * known by its call and its place in it, its payload too. */
#ifndef TESTS_TORTURE_LEDGER_PLAN_H
#define TESTS_TORTURE_LEDGER_PLAN_H

#include <stddef.h>
#include <stdint.h>

enum ledger_call_kind { CALL_APPEND, CALL_AGAIN, CALL_TURN };

struct ledger_call {
    enum ledger_call_kind kind;
    uint32_t count;    /* events of one append; for CALL_AGAIN those of the call before */
    uint64_t original; /* the call whose events these are; for all but CALL_AGAIN this one */
    uint32_t attempts; /* CALL_TURN: 1 or 2 */
};

enum {
    CALL_EVENTS_MAX = 24, /* in one append */
    CALL_TURN_EVENTS = 3, /* of each attempt; the second one's follow the first one's */
    CALL_PLACES = 32,     /* a call's places: its events, and ... */
    CALL_COMMITTED = 31,  /* ... the commit of its turn */
    CALL_PAYLOAD_MAX = 65536,
};

/* `first` is the first call of this writer's life: nothing older is asked for again. */
struct ledger_call ledger_call_of(uint64_t number, uint64_t first);

/* The payload of the event at `place` of a call; its length. */
size_t ledger_call_payload(uint64_t number, uint32_t place, char ret_text[CALL_PAYLOAD_MAX]);

#endif
