#include "lib/fault.h"

#include <stddef.h>

enum { WALK_STEPS_MAX = 20000 }; /* a walk that does not end is a bug of the test */

static _Thread_local long countdown;
static _Thread_local bool fired;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

void fault_arm(long nth)
{
    countdown = nth;
    fired = false;
}

void fault_disarm(void)
{
    countdown = 0;
}

bool fault_fired(void)
{
    return fired;
}

bool fault_walk_step(struct fault_walk *walk)
{
    fault_disarm();
    if (walk->next > 0 && !fired) {
        return false; /* the last run met no failure: every allocation has had its turn */
    }
    if (++walk->next > WALK_STEPS_MAX) {
        return false;
    }
    fault_arm(walk->next);
    return true;
}

static bool fails_now(void)
{
    if (countdown == 0 || --countdown > 0) {
        return false;
    }
    fired = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return fails_now() ? NULL : __real_strdup(text);
}
