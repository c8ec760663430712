/* Prefetched items: which claim gets them, how many there are, when they are returned. */
#include "lib/check.h"
#include "lib/fault.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "work/core/copy.h"
#include "work/items/prefetch.h"

enum { MAX = 50 };

struct fixture {
    struct work_prefetch_cache *cache;
    int64_t now_ns;
    int next_item;
    char got[256];
    pawl_error err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->now_ns = 1000 * NS_PER_S;
    assert_ok(pawl__work_prefetch_cache_new(MAX, &f->cache, &f->err), &f->err);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__work_prefetch_cache_free(f->cache);
    free(f);
    return 0;
}

static void pass(struct fixture *f, int64_t ms)
{
    f->now_ns += ms * NS_PER_MS;
}

static pawl_claim claim_by(const char *holder)
{
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of(holder);
    claim.lease_ms = 300000;
    return claim;
}

/* What the store leases: items "1", "2", ... of task T. */
static pawl_claimed *lease(struct fixture *f, size_t count)
{
    pawl_item items[MAX + 10] = { { .size = sizeof(pawl_item) } };
    char ids[MAX + 10][16];
    pawl_claimed *claimed = NULL;

    assert_true(count <= COUNT_OF(items));
    for (size_t i = 0; i < count; i++) {
        snprintf(ids[i], sizeof(ids[i]), "%d", ++f->next_item);
        items[i].work_item_id = pawl_view_of(ids[i]);
        items[i].task_id = pawl_view_of(f->next_item % 10 == 0 ? "U" : "T");
        items[i].token = 1;
    }
    assert_ok(pawl__work_copy_out_items(items, count, &claimed, &f->err), &f->err);
    return claimed;
}

static const char *ids_of(struct fixture *f, pawl_claimed *claimed)
{
    struct pawl__buf text = BUF_OVER(f->got);

    for (size_t i = 0; i < claimed->count; i++) {
        pawl__buf_add_format(&text, "%.*s ", VIEW_ARGS(claimed->items[i].work_item_id));
    }
    f->got[text.len] = '\0';
    pawl_claimed_free(claimed);
    return f->got;
}

/* From the cache: "1 2 "; not there: "" and how many to prefetch. */
static const char *take(struct fixture *f, const pawl_claim *claim, uint32_t *ret_more)
{
    pawl_claimed *claimed = NULL;
    pawl_status status =
        pawl__work_prefetch_cache_pop(f->cache, claim, f->now_ns, &claimed, ret_more, &f->err);

    if (status == PAWL_NOT_FOUND) {
        return "";
    }
    assert_ok(status, &f->err);
    return ids_of(f, claimed);
}

/* Goes to the store when the cache has nothing; `found` items are there at the most. */
static const char *claim_of(struct fixture *f, const pawl_claim *claim, size_t found)
{
    const struct work_prefetch_batch *batch;
    pawl_claimed *claimed = NULL;
    uint32_t more = 0;
    const char *got = take(f, claim, &more);

    if (got[0] != '\0' || found == 0) {
        return got;
    }
    assert_ok(pawl__work_prefetch_cache_store(f->cache,
                                              claim,
                                              f->now_ns,
                                              lease(f, MIN(found, (size_t)claim->count_max + more)),
                                              &claimed,
                                              &batch,
                                              &f->err),
              &f->err);
    return ids_of(f, claimed);
}

static uint32_t more_for(struct fixture *f, const pawl_claim *claim)
{
    uint32_t more = 99;

    assert_string_equal(take(f, claim, &more), "");
    return more;
}

/* How many items go back now. */
static size_t give_back(struct fixture *f)
{
    int64_t next_ns;
    size_t count = 0;
    struct work_prefetch_batch *evicted = pawl__work_prefetch_cache_evict(
        f->cache, &(struct work_prefetch_eviction){ .now_ns = f->now_ns }, &next_ns);

    assert_true(next_ns > f->now_ns);
    while (evicted != NULL) {
        struct work_prefetch_batch *batch = evicted;
        count += batch->claimed->count - batch->at;
        evicted = batch->next;
        pawl__work_prefetch_batch_free(batch);
    }
    return count;
}

/* Takes so many, 10 ms an item. */
static void use(struct fixture *f, const pawl_claim *claim, int count)
{
    uint32_t more;

    for (int i = 0; i < count; i++) {
        assert_string_not_equal(take(f, claim, &more), "");
        pass(f, 10);
    }
}

/* A claim that finds nothing in the cache; how many it prefetches. */
static int lease_ahead(struct fixture *f, const pawl_claim *claim, size_t found)
{
    int before = f->next_item;

    claim_of(f, claim, found);
    pass(f, 10);
    assert_true(f->next_item > before);
    return f->next_item - before - (int)claim->count_max;
}

/* --- */

static void test_a_quick_holder_gets_twice_as_many_each_time(void **state)
{
    struct fixture *f = *state;
    pawl_claim claim = claim_by("w");

    assert_string_equal(claim_of(f, &claim, 100), "1 ");
    pass(f, 10);
    assert_string_equal(claim_of(f, &claim, 100), "2 "); /* and one */
    pass(f, 10);
    assert_string_equal(claim_of(f, &claim, 0), "3 ");
    pass(f, 10);
    assert_string_equal(claim_of(f, &claim, 100), "4 "); /* and three */
    claim.count_max = 2;
    assert_string_equal(claim_of(f, &claim, 0), "5 6 ");
    assert_string_equal(claim_of(f, &claim, 0), "7 ");
    claim.count_max = 1;
    for (int more = 7; more <= MAX; more = more * 2 + 1) {
        assert_int_equal(lease_ahead(f, &claim, 100), more);
        use(f, &claim, more);
    }
    assert_int_equal(lease_ahead(f, &claim, 100), MAX);
}

static void test_a_slow_holder_gets_what_it_asks_for(void **state)
{
    struct fixture *f = *state;
    pawl_claim claim = claim_by("w");

    for (int i = 0; i < 5; i++) {
        assert_int_equal(more_for(f, &claim), 0);
        pass(f, 1000);
    }
    claim.lease_ms = 800; /* an eighth of it is a tenth of a second */
    for (int i = 0; i < 5; i++) {
        assert_int_equal(more_for(f, &claim), 0);
        pass(f, 100);
    }
    pass(f, -1);
    assert_int_equal(more_for(f, &claim), 1);
}

static void test_an_empty_store_teaches_nothing(void **state)
{
    struct fixture *f = *state;
    pawl_claim claim = claim_by("w");

    for (int i = 0; i < 20; i++) {
        assert_true(more_for(f, &claim) <= 1);
        pass(f, 10);
    }
    assert_int_equal(lease_ahead(f, &claim, 100), 1);
    use(f, &claim, 1);
    use(f, &claim, lease_ahead(f, &claim, 100));
    assert_int_equal(more_for(f, &claim), 7); /* and there is nothing: it begins again */
    assert_int_equal(lease_ahead(f, &claim, 100), 1);
}

static void test_what_is_not_used_in_time_goes_back_and_is_remembered(void **state)
{
    struct fixture *f = *state;
    pawl_claim claim = claim_by("w");
    uint32_t more;

    for (int i = 0; i < 4; i++) {
        use(f, &claim, lease_ahead(f, &claim, 100));
    }
    assert_int_equal(lease_ahead(f, &claim, 100), 15);
    use(f, &claim, 5);
    pass(f, 999 - 60);
    assert_int_equal(give_back(f), 0);
    assert_string_not_equal(take(f, &claim, &more), "");
    pass(f, 1);
    assert_string_equal(take(f, &claim, &more), ""); /* it is old, and not evicted yet */
    assert_int_equal(more, 0);
    assert_int_equal(give_back(f), 9);
    assert_int_equal(more_for(f, &claim), 7); /* six were used; one more may be */
}

static void test_other_claims_have_their_own_entries(void **state)
{
    struct fixture *f = *state;
    static const pawl_view types[] = { { "ab", 2 }, { "c", 1 } };
    static const pawl_view same_text[] = { { "a", 1 }, { "bc", 2 } };
    static const pawl_view same_lengths[] = { { "xy", 2 }, { "c", 1 } };
    pawl_claim claim = claim_by("w");
    pawl_claim others[7];
    uint32_t more;

    claim.work_types = types;
    claim.work_type_count = 2;
    claim.task_id = pawl_view_of("T");
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        others[i] = claim;
    }
    others[0].holder = pawl_view_of("v");
    others[1].task_id = pawl_view_of("U");
    others[2].task_id = (pawl_view){ NULL, 0 };
    others[3].lease_ms++;
    others[4].work_types = same_text;
    others[5].work_type_count = 1;
    others[6].work_types = same_lengths;
    claim_of(f, &claim, 100);
    assert_string_equal(claim_of(f, &claim, 100), "2 ");
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_string_equal(take(f, &others[i], &more), "");
    }
    assert_string_equal(take(f, &claim, &more), "3 ");
}

static struct work_prefetch_batch *withdraw(struct fixture *f, const char *task, const char *item)
{
    const struct work_prefetch_eviction which = { .task_id = pawl_view_of(task),
                                                  .work_item_id = pawl_view_of(item) };

    return pawl__work_prefetch_cache_evict(f->cache, &which, NULL);
}

static void test_what_was_cancelled_is_evicted_with_its_batch(void **state)
{
    struct fixture *f = *state;
    pawl_claim claim = claim_by("w");

    f->next_item = 6;
    claim_of(f, &claim, 100);
    use(f, &claim, lease_ahead(f, &claim, 100));
    assert_string_equal(claim_of(f, &claim, 100), "10 "); /* 11, 12, 13 are ahead, of task T */
    assert_null(withdraw(f, "U", NULL));
    assert_null(withdraw(f, NULL, "10"));
    struct work_prefetch_batch *evicted = withdraw(f, NULL, "12");
    assert_non_null(evicted);
    assert_int_equal(evicted->claimed->count - evicted->at, 3);
    pawl__work_prefetch_batch_free(evicted);
    assert_true(more_for(f, &claim) <= 1);
}

static void test_unused_entries_make_room(void **state)
{
    struct fixture *f = *state;
    pawl_claim kept = claim_by("kept");
    char holder[16];
    uint32_t more;

    claim_of(f, &kept, 100);
    claim_of(f, &kept, 100); /* one is ahead */
    for (int i = 0; i < 10000; i++) {
        snprintf(holder, sizeof(holder), "w%d", i);
        pawl_claim claim = claim_by(holder);
        (void)more_for(f, &claim);
        pass(f, 5);
    }
    pawl_claim last = claim_by("w9999");
    assert_int_equal(more_for(f, &last), 1); /* it has one: the store may lease ahead for it */
    pass(f, INT64_C(-50000));
    assert_string_equal(take(f, &kept, &more), "3 "); /* what holds something stays */
}

static void test_without_memory_the_caller_keeps_all(void **state)
{
    struct fixture *f = *state;
    pawl_claim claim = claim_by("w");
    pawl_claimed *all = lease(f, 3);
    const struct work_prefetch_batch *batch;
    pawl_claimed *got = NULL;
    pawl_status status = PAWL_NOMEM;

    for (long nth = 1; status == PAWL_NOMEM && nth < 100; nth++) {
        fault_arm(nth);
        status = pawl__work_prefetch_cache_store(
            f->cache, &claim, f->now_ns, all, &got, &batch, &f->err);
        fault_disarm();
        assert_true(status == PAWL_OK || all->count == 3);
    }
    assert_ok(status, &f->err);
    assert_string_equal(ids_of(f, got), "1 ");
    use(f, &claim, 2);
}

int main(void)
{
#define prefetch_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        prefetch_test(test_a_quick_holder_gets_twice_as_many_each_time),
        prefetch_test(test_a_slow_holder_gets_what_it_asks_for),
        prefetch_test(test_an_empty_store_teaches_nothing),
        prefetch_test(test_what_is_not_used_in_time_goes_back_and_is_remembered),
        prefetch_test(test_other_claims_have_their_own_entries),
        prefetch_test(test_what_was_cancelled_is_evicted_with_its_batch),
        prefetch_test(test_unused_entries_make_room),
        prefetch_test(test_without_memory_the_caller_keeps_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
