/* A process of workers, and what it shares with whoever kills it. */
#ifndef TESTS_TORTURE_WORKER_H
#define TESTS_TORTURE_WORKER_H

#include <stdatomic.h>

#include <pawl/work.h>

enum {
    WORKER_THREADS_MAX = 64,
    WORKER_LEASE_MS = 400,
    WORKER_RETRIES = 1000000, /* nobody gives up: what fails here is the test */
};

/* One item, in memory that outlives the processes. */
struct worker_item {
    _Atomic uint32_t completions; /* times that a complete was answered with OK */
    _Atomic uint64_t token;       /* of the last such answer */
};

struct worker_board {
    _Atomic uint64_t answered; /* completions, all items */
    _Atomic uint64_t zombies;  /* calls behind the end of their lease ... */
    _Atomic uint64_t undead;   /* ... that were let through: must stay 0 */
    _Atomic uint64_t lost;     /* LEASE_LOST in all, those of workers that were merely slow too */
    _Atomic uint64_t failures; /* any other answer that should not be */
    char failure[256];         /* the first of them */
    struct worker_item items[];
};

/* Items are named by number, from 1 on. */
#define WORKER_TYPE "torture"
#define WORKER_TASK "the-task"
#define WORKER_ID_SIZE 24
void worker_id(uint64_t number, char ret_id[WORKER_ID_SIZE]);
uint64_t worker_number(pawl_view id); /* 0: it is no such name */

/* The board in a file; NULL when it cannot be mapped. */
struct worker_board *worker_map(const char *path, uint64_t items);

/* Works until nothing is left to do. `threads` workers and a watchdog. */
PAWL_MUST_USE pawl_status worker_run(const char *location,
                                     struct worker_board *board,
                                     uint64_t items,
                                     uint64_t threads,
                                     uint64_t seed,
                                     pawl_error *reterr);

#endif
