/* Walks allocation failures: fail the first, then the second, until a run gets through.
 *
 *     FAULT_WALK (walk) {
 *         pawl_status status = thing_open(&thing, &error);
 *         assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
 *         thing_close(thing);
 *     }
 *
 * Only the thread that armed it sees failures, so helper threads go on undisturbed. */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stdbool.h>

struct fault_walk {
    long next;
};

void fault_arm(long nth); /* the nth allocation (from 1) of this thread fails, once */
void fault_disarm(void);
bool fault_fired(void);
bool fault_walk_step(struct fault_walk *walk);

#define FAULT_WALK(name) for (struct fault_walk name = { 0 }; fault_walk_step(&name);)

#endif
