/* What must be in a tortured ledger, remembered outside of the process that writes it: for each
 * event at which offset, for each turn whether it was committed. */
#ifndef TESTS_TORTURE_LEDGER_ORACLE_H
#define TESTS_TORTURE_LEDGER_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

struct ledger_slot {
    uint32_t must; /* the offset at which it must be; 0: need not be there */
    uint32_t seen; /* the offset at which it was; 0: was not */
    bool twice;    /* was there at two offsets, or acknowledged at two */
};

struct ledger_oracle {
    struct ledger_slot *slots; /* by call and place */
    uint64_t calls;            /* slots for so many */
    uint64_t first;            /* the first call of the writer that is or was at work ... */
    uint64_t next;             /* ... and the first that no writer was asked for */
    uint64_t anchor;           /* where the anchor was seen last; it never goes back */
    bool anchor_went_back;
};

struct ledger_finding {
    uint64_t acknowledged; /* in total that must be there */
    uint64_t lost;         /* ... and are not, or are at another offset */
    uint64_t duplicated;
    uint64_t invented; /* never asked for, or gone before */
    uint64_t torn;     /* appends of which only a part is there */
};

struct ledger_oracle *ledger_oracle_new(void);
void ledger_oracle_free(struct ledger_oracle *oracle);

/* A writer is asked for so many calls from oracle->next on. */
void ledger_oracle_ask(struct ledger_oracle *oracle, uint64_t calls);

/* The writer says that the event at `place` of a call, or its commit, is durable at `offset`. False
 * when it was not asked for that: then the test itself is wrong. */
__attribute__((warn_unused_result)) bool ledger_oracle_acknowledge(struct ledger_oracle *oracle,
                                                                   uint64_t call,
                                                                   uint32_t place,
                                                                   uint64_t offset);

/* The writer is dead; here comes what the ledger has. */
void ledger_oracle_see(struct ledger_oracle *oracle,
                       uint64_t call,
                       uint32_t place,
                       uint64_t offset);
void ledger_oracle_see_anchor(struct ledger_oracle *oracle, uint64_t offset);

/* Compares. Afterwards what was seen is what must be there. */
struct ledger_finding ledger_oracle_compare(struct ledger_oracle *oracle);

#endif
