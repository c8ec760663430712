#include "lib/repeat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/macros.h"

static uint64_t seed_now = 1;
static struct repeat asked = { .rounds = 1, .seed = 1 };
static bool whole; /* the test that runs has done all its rounds */

uint64_t repeat_seed(void)
{
    return seed_now;
}

uint64_t repeat_rounds(void)
{
    return asked.rounds;
}

static bool parse_number(const char *text, uint64_t *ret_number)
{
    char *end = NULL;

    *ret_number = text == NULL ? 0 : strtoull(text, &end, 10);
    return text != NULL && end != text && *end == '\0';
}

bool repeat_parse(int *argc, char **argv, struct repeat *ret_repeat)
{
    struct repeat repeat = { .rounds = 0, .seed = 1 };
    int kept = 1;

    for (int i = 1; i < *argc; i++) {
        bool rounds = strcmp(argv[i], "--rounds") == 0;
        bool seed = strcmp(argv[i], "--seed") == 0;
        if (!rounds && !seed) {
            argv[kept++] = argv[i];
        } else if (i + 1 == *argc
                   || !parse_number(argv[++i], rounds ? &repeat.rounds : &repeat.seed)) {
            fprintf(stderr, "usage: %s ... [--rounds N] [--seed N]\n", argv[0]);
            return false;
        }
    }
    argv[kept] = NULL;
    *argc = kept;
    *ret_repeat = repeat;
    return true;
}

/* The initial state is the test. What fails ends it, with the seed above. */
static void run_rounds(void **state)
{
    const struct CMUnitTest *test = *state;

    whole = false;
    for (uint64_t i = 0; i < asked.rounds; i++) {
        void *own = NULL;
        seed_now = asked.seed + i;
        if (test->setup_func != NULL) {
            assert_int_equal(test->setup_func(&own), 0);
        }
        test->test_func(&own);
        if (test->teardown_func != NULL) {
            assert_int_equal(test->teardown_func(&own), 0);
        }
    }
    whole = true;
}

static int say_seed(void **state)
{
    (void)state;
    if (!whole) {
        print_error(
            "it was round %" PRIu64 ", seed %" PRIu64 "\n", seed_now - asked.seed + 1, seed_now);
    }
    return 0;
}

int repeat_run(const struct repeat *repeat, const struct CMUnitTest *tests, size_t count)
{
    struct CMUnitTest *repeated = calloc(count, sizeof(*repeated));

    REQUIRE(repeated != NULL);
    asked = *repeat;
    for (size_t i = 0; i < count; i++) {
        repeated[i] = (struct CMUnitTest){
            .name = tests[i].name,
            .test_func = run_rounds,
            .teardown_func = say_seed,
            .initial_state = (void *)(uintptr_t)&tests[i],
        };
    }
    int failed = _cmocka_run_group_tests("rounds", repeated, count, NULL, NULL);
    printf("# result rounds=%" PRIu64 "\n", repeat->rounds);
    free(repeated);
    return failed;
}
