/* Tests that are run again and again, each time with another seed: for what only happens now and then.
 *
 *     test_x --rounds 1000 --seed 7
 *
 * Each test is one line of TAP, whatever the number of rounds. The seeds of a run are SEED, SEED + 1, ... */
#ifndef TESTS_REPEAT_H
#define TESTS_REPEAT_H

#include "lib/check.h"

#include <stdint.h>

struct repeat {
    uint64_t rounds; /* 0: nobody asked for any */
    uint64_t seed;
};

/* Takes both options out of the arguments. False, and a word on stderr: they cannot be read. */
bool repeat_parse(int *argc, char **argv, struct repeat *ret_repeat);

/* Runs them, each with its set-up and tear-down, all rounds of one before the next. */
int repeat_run(const struct repeat *repeat, const struct CMUnitTest *tests, size_t count);

/* The seed of the round that runs, and how many there are; both 1 where nothing is repeated. */
uint64_t repeat_seed(void);
uint64_t repeat_rounds(void);

#endif
