/* Which events are skipped, by the index and by looking at every attempt. */
#include "lib/check.h"

#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/random.h"
#include "ledger/core/turn_index.h"
#include "lib/fault.h"

static const char *const runs[] = { "a", "b", "c" };

enum { ATTEMPTS_MAX = 40, OFFSETS = 60 };

struct attempts {
    pawl_turn_info infos[ATTEMPTS_MAX];
    size_t count;
};

static void make_attempts(struct pawl__prng *random, struct attempts *attempts)
{
    attempts->count = pawl__prng_below(random, ATTEMPTS_MAX);
    for (size_t i = 0; i < attempts->count; i++) {
        uint64_t begin = 1 + pawl__prng_below(random, OFFSETS);
        bool open = pawl__prng_below(random, 30) == 0;
        attempts->infos[i] = (pawl_turn_info){
            .size = sizeof(pawl_turn_info),
            .run_id = pawl_view_of(runs[pawl__prng_below(random, COUNT_OF(runs))]),
            .turn = (int64_t)pawl__prng_below(random, 3),
            .state = open ? PAWL_TURN_OPEN : PAWL_TURN_ABANDONED,
            .begin_offset = begin,
            .end_offset = open ? 0 : begin + pawl__prng_below(random, OFFSETS / 2),
        };
    }
}

static bool is_skipped(const struct attempts *attempts, const pawl_event *event)
{
    for (size_t i = 0; i < attempts->count; i++) {
        const pawl_turn_info *info = &attempts->infos[i];
        if (info->state == PAWL_TURN_ABANDONED && info->begin_offset <= event->offset
            && info->end_offset >= event->offset && info->turn == event->turn
            && pawl__view_equal(info->run_id, event->run_id)) {
            return true;
        }
    }
    return false;
}

static uint64_t first_open(const struct attempts *attempts)
{
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < attempts->count; i++) {
        if (attempts->infos[i].state == PAWL_TURN_OPEN) {
            first = MIN(first, attempts->infos[i].begin_offset);
        }
    }
    return first;
}

static void test_the_index_skips_what_looking_at_every_attempt_would(void **state)
{
    (void)state;
    struct pawl__prng random = pawl__prng_seeded(20260129);
    struct ledger_turn_index index = TURN_INDEX_INIT;

    for (int round = 0; round < 2000; round++) {
        struct attempts attempts;
        make_attempts(&random, &attempts);
        pawl__ledger_turn_index_clear(&index);
        for (size_t i = 0; i < attempts.count; i++) {
            assert_true(pawl__ledger_turn_index_add(&index, &attempts.infos[i]));
        }
        pawl__ledger_turn_index_ready(&index);
        assert_int_equal(index.barrier, first_open(&attempts));
        for (uint64_t offset = 1 + pawl__prng_below(&random, 9); offset < OFFSETS;
             offset += 1 + pawl__prng_below(&random, 3)) {
            pawl_event event = {
                .size = sizeof(pawl_event),
                .offset = offset,
                .run_id = pawl_view_of(runs[pawl__prng_below(&random, COUNT_OF(runs))]),
                .turn = (int64_t)pawl__prng_below(&random, 3),
            };
            assert_int_equal(pawl__ledger_turn_index_skips(&index, &event),
                             is_skipped(&attempts, &event));
        }
    }
    pawl__ledger_turn_index_done(&index);
}

static void test_an_index_survives_every_failed_allocation(void **state)
{
    (void)state;
    struct pawl__prng random = pawl__prng_seeded(7);
    struct attempts attempts;

    do {
        make_attempts(&random, &attempts);
    } while (attempts.count < 30);
    FAULT_WALK (walk) {
        struct ledger_turn_index index = TURN_INDEX_INIT;
        bool good = true;
        for (size_t i = 0; i < attempts.count && good; i++) {
            good = pawl__ledger_turn_index_add(&index, &attempts.infos[i]);
        }
        assert_int_equal(good, !fault_fired());
        pawl__ledger_turn_index_done(&index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_index_skips_what_looking_at_every_attempt_would),
        cmocka_unit_test(test_an_index_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests_name("ledger_turn_index", tests, NULL, NULL);
}
