/* One run: the world, what must be in the store, and what was counted. What is tortured (a store, a
 * ledger) is a torture_subject; everything else is the same for all of them. */
#ifndef TESTS_TORTURE_H
#define TESTS_TORTURE_H

#include <signal.h>

#include "base/core/random.h"
#include "torture/process.h"
#include "torture/world.h"

enum torture_fault {
    TORTURE_KILL,
    TORTURE_POWER,
    TORTURE_DISK,
    TORTURE_READ_ONLY,
    TORTURE_FULL,
    TORTURE_FAILPOINT,
    TORTURE_FAULT_COUNT
};

struct torture_options {
    const char *store;
    enum torture_fault fault;
    uint64_t rounds; /* failpoint has as many as there are points */
    uint64_t seed;
    bool control; /* without fsync */
    bool verbose;
};

struct torture_totals {
    uint64_t rounds;
    uint64_t faults;       /* that really happened while the writer was at work */
    uint64_t acknowledged; /* records */
    uint64_t lost;
    uint64_t duplicated;
    uint64_t invented; /* never written, or gone before */
    uint64_t torn;     /* rounds that left half a transaction */
    uint64_t broken;   /* rounds after which the store could not be opened or read */
    uint64_t aborted;  /* processes of ours that ended by abort() or a crash */
    uint64_t empty;    /* void rounds: too little was acknowledged, or the point was not reached */
};

struct torture_finding {
    uint64_t acknowledged; /* in total that must be there */
    uint64_t lost;
    uint64_t duplicated;
    uint64_t invented;
    uint64_t torn;
};

struct torture;

/* What is tortured. Its writer is a program that is called as
 *
 *   WRITER STORE LOCATION write FIRST COUNT [unsafe]   a line for each acknowledged batch, then "end"
 *   WRITER STORE LOCATION check [unsafe]               a line for each thing that is there
 *   WRITER STORE LOCATION drop                         takes everything out of a server's store
 *
 * and its memory is what must be there, kept outside of that program. */
struct torture_subject {
    const char *writer;
    const char *control_name; /* what the control has to do ... */
    bool (*control_passed)(const struct torture_totals *totals); /* ... and may not do even so */

    void *(*remember_nothing)(void); /* a new memory */
    void (*forget)(void *memory);

    /* A writer is asked for so many batches. Returns the first one. */
    uint64_t (*ask)(void *memory, uint64_t batches);
    /* One line of a writer. False: it was not asked for that, and the test itself is wrong. */
    bool (*acknowledge)(void *memory, const char *line, uint64_t *ret_records);
    void (*see)(void *memory, const char *line);
    /* Compares. Afterwards what was seen is what must be there: a loss is found once. */
    struct torture_finding (*compare)(void *memory);
};

extern const struct torture_subject torture_subject; /* one a program */

struct torture {
    struct torture_options options;
    struct world_options world_options;
    struct world world;
    void *memory; /* the subject's */
    struct pawl__prng random;
    struct torture_totals totals;
    bool strict;           /* how the disk of this round keeps names */
    uint64_t acknowledged; /* batches of this round */
    char round[128];       /* what happens in it, for people */
};

extern volatile sig_atomic_t torture_interrupted; /* a signal says to stop */

/* Runs them all. A store that loses something is a count in the totals; a status means that the
 * test itself could not go on. UNAVAILABLE and UNSUPPORTED: not on this machine. */
PAWL_MUST_USE pawl_status torture_run(struct torture *t, pawl_error *reterr);

/* --- session.c: what every kind of round uses --- */

/* Before the first round, and for what comes after a store was thrown away. */
void torture_remember_nothing(struct torture *t);

/* Starts a writer of so many batches, with one more variable in its environment (or NULL). */
PAWL_MUST_USE pawl_status torture_start_writer(struct torture *t,
                                               uint64_t batches,
                                               const char *setting,
                                               struct process *ret_writer,
                                               pawl_error *reterr);

/* Takes acknowledgements until so many batches have come, the writer is through, or it dies. */
PAWL_MUST_USE pawl_status torture_follow(struct torture *t,
                                         struct process *writer,
                                         uint64_t batches_max,
                                         bool *ret_through,
                                         pawl_error *reterr);

/* Kills what is left of the writer, takes its last words and counts how it ended. *ret_through as above. */
PAWL_MUST_USE pawl_status torture_finish(struct torture *t,
                                         struct process *writer,
                                         bool *ret_through,
                                         pawl_error *reterr);

/* Takes everything out of a server's store. */
PAWL_MUST_USE pawl_status torture_drop_store(struct torture *t, pawl_error *reterr);

/* Opens the store again, compares, counts, and says what is wrong. `happened`: the fault hit the
 * writer while it was at work. */
PAWL_MUST_USE pawl_status torture_judge(struct torture *t, bool happened, pawl_error *reterr);

#endif
