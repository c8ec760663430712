/* What every colony store promises (telemetry/colony/store.h), and polling on it from agents in memory: the walks that
 * the seed lists. The argument says which store. */
#include "lib/check.h"
#include "lib/tempdir.h"
#include "lib/virtual_clock.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "telemetry/agent/memory.h"
#include "telemetry/colony/duckdb.h"
#include "telemetry/colony/memory.h"
#include "telemetry/colony/poller.h"

static bool is_duckdb;

/* An agent in memory whose answers a test may spoil. */
struct source {
    struct telemetry_source base;
    struct telemetry_memory_agent agent;
    bool is_away;
    uint64_t hidden; /* a row that queries do not see; 0: none */
    uint64_t bad;    /* a row that cannot be decoded; 0: none */
    size_t queries;
    uint64_t last_ack;
};

struct fixture {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    struct pawl__clock_virtual clock;
    struct telemetry_memory_colony memory;
    struct telemetry_colony_store *store;
    struct source source;
    struct telemetry_colony colony;
    struct telemetry_feed feed;
    uint64_t run;
    uint64_t given;
    pawl_error error;
};

static pawl_status query(struct telemetry_source *base,
                         const struct telemetry_query *asked,
                         struct telemetry_page *page,
                         pawl_error *reterr)
{
    struct source *source = (struct source *)base;
    size_t kept = 0;

    source->queries++;
    source->last_ack = asked->ack;
    if (source->is_away) {
        return pawl__fail(reterr, PAWL_UNAVAILABLE, "the agent is away");
    }
    TRY(source->agent.base.ops->query(&source->agent.base, asked, page, reterr));
    for (size_t i = 0; i < page->count; i++) {
        if (page->rows[i].seq_id == source->bad) {
            page->rows[i].bytes = pawl_view_of("\xff\xff");
        }
        if (page->rows[i].seq_id != source->hidden) {
            page->rows[kept++] = page->rows[i];
        }
    }
    page->count = kept;
    return PAWL_OK;
}

static void open_agent(struct fixture *f)
{
    const struct telemetry_memory_agent_options options = {
        .clock = &f->clock.base,
        .random = pawl__random_real(),
        .retention = { .group_rows = 1, .age_ns = 3600 * NS_PER_S },
    };

    assert_ok(pawl__telemetry_memory_agent_open(&f->source.agent, &options, &f->error), &f->error);
}

static void start_colony(struct fixture *f)
{
    const struct telemetry_duckdb_colony_options options = {
        .path = f->path,
        .duck = { .threads = 1, .memory_bytes_max = 256 << 20, .clock = &f->clock.base },
    };
    struct telemetry_colony_settings settings = pawl__telemetry_colony_settings_default();

    if (is_duckdb) {
        assert_ok(pawl__telemetry_duckdb_colony(&options, &f->store, &f->error), &f->error);
    } else {
        f->store = &f->memory.base;
    }
    settings.rows_max = 5;
    pawl__telemetry_colony_init(&f->colony, f->store, &f->clock.base, &settings, ++f->run);
    f->feed = (struct telemetry_feed){ .agent = "web-1",
                                       .type = TELEMETRY_SPANS,
                                       .source = &f->source.base,
                                       .error = PAWL_ERROR_INIT };
}

static void stop_colony(struct fixture *f)
{
    pawl__telemetry_feed_done(&f->feed);
    f->store->ops->close(f->store);
}

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    f.error = (pawl_error)PAWL_ERROR_INIT;
    f.clock = pawl__clock_virtual_at(INT64_C(1769682030123456), NS_PER_S);
    f.memory = pawl__telemetry_memory_colony(&f.clock.base);
    f.source.base.query = query;
    if (tempdir_make(f.dir, "pawl-colony", &f.error) != PAWL_OK) {
        return -1;
    }
    snprintf(f.path, sizeof(f.path), "%s/colony.db", f.dir);
    open_agent(&f);
    start_colony(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    stop_colony(f);
    pawl__telemetry_memory_colony_done(&f->memory);
    pawl__telemetry_memory_agent_done(&f->source.agent);
    tempdir_remove(f->dir);
    return 0;
}

static void give(struct fixture *f, size_t count)
{
    struct telemetry_agent_store *store = &f->source.agent.base;
    struct telemetry_appended appended;

    for (size_t i = 0; i < count; i++) {
        struct telemetry_values row = { .at = { { .as = { .i64 = 0 } } } };
        char text[24];
        snprintf(text, sizeof(text), "%llu", (unsigned long long)++f->given);
        for (size_t c = 1; c < 5; c++) {
            row.at[c].as.text = pawl_view_of(text);
        }
        row.at[8].as.text = row.at[9].as.text = pawl_view_of("");
        row.at[10].as.text = pawl_view_of("{\"region\":\"north\"}");
        assert_ok(store->ops->append(store, TELEMETRY_SPANS, &row, 1, &appended, &f->error),
                  &f->error);
    }
}

static void poll(struct fixture *f)
{
    pawl__telemetry_poll(&f->colony, &f->feed, 1);
}

static void poll_well(struct fixture *f)
{
    poll(f);
    if (f->feed.status != PAWL_OK) {
        fail_msg("%s", f->feed.error.message);
    }
}

static void recover(struct fixture *f, enum telemetry_recovery recovery)
{
    pawl__telemetry_recover(&f->colony, &f->feed, 1, recovery);
}

/* The checkpoint as the store has it. */
static uint64_t checkpoint(struct fixture *f)
{
    AUTO(pawl__telemetry_cursor_done) struct telemetry_cursor cursor = { .current = 0 };

    assert_ok(f->store->ops->load(f->store, "web-1", TELEMETRY_SPANS, NULL, &cursor, &f->error),
              &f->error);
    return cursor.generation_count == 0 ? 0 : pawl__telemetry_current(&cursor)->last;
}

static uint64_t stored(struct fixture *f, uint64_t *ret_rejected)
{
    AUTO(pawl__telemetry_cursor_done) struct telemetry_cursor cursor = { .current = 0 };
    uint64_t rows = 0;
    uint64_t rejected = 0;

    assert_ok(f->store->ops->load(f->store, "web-1", TELEMETRY_SPANS, NULL, &cursor, &f->error),
              &f->error);
    if (cursor.generation_count > 0) {
        assert_ok(f->store->ops->count(f->store,
                                       "web-1",
                                       TELEMETRY_SPANS,
                                       &cursor.session,
                                       &pawl__telemetry_current(&cursor)->id,
                                       &rows,
                                       &rejected,
                                       &f->error),
                  &f->error);
    }
    if (ret_rejected != NULL) {
        *ret_rejected = rejected;
    }
    return rows;
}

static struct telemetry_gaps gaps_of(struct fixture *f)
{
    const struct telemetry_gap_query asked = {
        .agent = "web-1", .type = TELEMETRY_SPANS, .statuses = ~0u, .limit = 100
    };
    struct telemetry_gaps gaps = { .at = NULL };

    assert_ok(f->store->ops->gaps(f->store, &asked, &gaps, &f->error), &f->error);
    return gaps;
}

static void assert_gap(
    struct fixture *f, size_t i, uint64_t start, uint64_t end, enum telemetry_gap_status status)
{
    AUTO(pawl__telemetry_gaps_done) struct telemetry_gaps gaps = gaps_of(f);

    assert_true(i < gaps.count);
    assert_int_equal(gaps.at[i].start, start);
    assert_int_equal(gaps.at[i].end, end);
    assert_string_equal(pawl__telemetry_gap_status_name(gaps.at[i].status),
                        pawl__telemetry_gap_status_name(status));
}

static size_t gap_count(struct fixture *f)
{
    AUTO(pawl__telemetry_gaps_done) struct telemetry_gaps gaps = gaps_of(f);

    return gaps.count;
}

/* --- checkpoints --- */

static void test_without_a_checkpoint_it_is_0(void **state)
{
    assert_int_equal(checkpoint(*state), 0);
}

static void test_a_poll_fetches_all_and_the_next_one_only_what_is_new(void **state)
{
    struct fixture *f = *state;

    give(f, 12);
    poll_well(f);
    assert_int_equal(checkpoint(f), 12);
    assert_int_equal(stored(f, NULL), 12);
    give(f, 3);
    poll_well(f);
    assert_int_equal(checkpoint(f), 15);
    assert_int_equal(stored(f, NULL), 15);
    assert_int_equal(f->feed.counts.rows, 15);
    assert_int_equal(gap_count(f), 0);
    assert_int_equal(pawl__telemetry_lag_ns(&f->colony, &f->feed), 0);
    pawl__clock_advance(&f->clock, 5 * NS_PER_S);
    assert_int_equal(pawl__telemetry_lag_ns(&f->colony, &f->feed), 5 * NS_PER_S);
}

static void test_a_colony_that_restarts_resumes(void **state)
{
    struct fixture *f = *state;

    give(f, 7);
    poll_well(f);
    stop_colony(f);
    start_colony(f);
    assert_int_equal(checkpoint(f), 7);
    give(f, 2);
    poll_well(f);
    assert_int_equal(stored(f, NULL), 9);
    assert_int_equal(f->feed.counts.rows, 2);
}

static void test_an_agent_that_restarts_is_polled_across_the_restart(void **state)
{
    struct fixture *f = *state;

    give(f, 7);
    poll_well(f);
    open_agent(f);
    give(f, 2);
    poll_well(f);
    assert_int_equal(checkpoint(f), 9);
    assert_int_equal(stored(f, NULL), 9);
    assert_int_equal(f->feed.counts.forks, 0);
}

static void test_a_failed_poll_leaves_the_checkpoint_where_it_was(void **state)
{
    struct fixture *f = *state;

    give(f, 3);
    poll_well(f);
    give(f, 3);
    f->source.is_away = true;
    poll(f);
    assert_int_equal(f->feed.status, PAWL_UNAVAILABLE);
    assert_int_equal(checkpoint(f), 3);
    f->source.is_away = false;
    poll_well(f);
    assert_int_equal(checkpoint(f), 6);
    assert_int_equal(stored(f, NULL), 6);
}

static void test_a_commit_that_continues_another_checkpoint_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__telemetry_cursor_done) struct telemetry_cursor before = { .current = 0 };
    AUTO(pawl__telemetry_cursor_done) struct telemetry_cursor after = { .current = 0 };

    give(f, 3);
    poll_well(f);
    assert_ok(pawl__telemetry_cursor_copy(&before, &f->feed.cursor, &f->error), &f->error);
    give(f, 3);
    poll_well(f);
    assert_ok(pawl__telemetry_cursor_copy(&after, &f->feed.cursor, &f->error), &f->error);
    struct telemetry_commit commit = {
        .agent = "web-1", .type = TELEMETRY_SPANS, .before = &before, .cursor = &after
    };
    assert_status(f->store->ops->commit(f->store, &commit, 1, &f->error), PAWL_CONFLICT, &f->error);
    pawl__telemetry_current(&before)->last = 2; /* and back */
    commit.before = &after;
    commit.cursor = &before;
    assert_status(f->store->ops->commit(f->store, &commit, 1, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "would go back");
    assert_int_equal(checkpoint(f), 6);
}

static void test_the_acknowledgement_follows_the_commit(void **state)
{
    struct fixture *f = *state;

    give(f, 3);
    poll_well(f);
    assert_int_equal(f->source.agent.state.acked[TELEMETRY_SPANS], 0);
    poll_well(f);
    assert_int_equal(f->source.last_ack, 3);
    assert_int_equal(f->source.agent.state.acked[TELEMETRY_SPANS], 3);
}

/* --- rows --- */

static void test_one_bad_row_is_rejected_and_the_others_are_stored(void **state)
{
    struct fixture *f = *state;
    uint64_t rejected = 0;

    give(f, 9);
    f->source.bad = 4;
    poll_well(f);
    assert_int_equal(stored(f, &rejected), 8);
    assert_int_equal(rejected, 1);
    assert_int_equal(checkpoint(f), 9);
    assert_int_equal(gap_count(f), 0);
}

static void test_two_feeds_share_a_transaction_and_one_that_fails_does_not_hold_up_the_other(
    void **state)
{
    struct fixture *f = *state;
    struct telemetry_feed feeds[2] = {
        { .agent = "web-1",
          .type = TELEMETRY_SPANS,
          .source = &f->source.base,
          .error = PAWL_ERROR_INIT },
        { .agent = "web-2",
          .type = TELEMETRY_SPANS,
          .source = &f->source.base,
          .error = PAWL_ERROR_INIT },
    };
    AUTO(pawl__telemetry_cursor_done) struct telemetry_cursor behind = { .current = 0 };

    give(f, 4);
    pawl__telemetry_poll(&f->colony, feeds, 2);
    assert_true(feeds[0].status == PAWL_OK && feeds[1].status == PAWL_OK);
    assert_ok(pawl__telemetry_cursor_copy(&behind, &feeds[1].cursor, &f->error), &f->error);
    give(f, 4);
    pawl__telemetry_poll(&f->colony, feeds, 2);
    give(f, 4);
    assert_ok(pawl__telemetry_cursor_copy(&feeds[1].cursor, &behind, &f->error),
              &f->error); /* a conflict */
    pawl__telemetry_poll(&f->colony, feeds, 2);
    assert_int_equal(feeds[0].status, PAWL_OK);
    assert_int_equal(feeds[1].status, PAWL_CONFLICT);
    assert_int_equal(checkpoint(f), 12);
    pawl__telemetry_poll(&f->colony, feeds, 2);
    assert_int_equal(feeds[1].status, PAWL_OK);
    assert_int_equal(pawl__telemetry_current(&feeds[1].cursor)->last, 12);
    pawl__telemetry_feed_done(&feeds[0]);
    pawl__telemetry_feed_done(&feeds[1]);
}

/* --- gaps --- */

static void test_a_late_row_within_the_grace_is_never_detected(void **state)
{
    struct fixture *f = *state;

    give(f, 7);
    f->source.hidden = 4;
    poll_well(f);
    assert_gap(f, 0, 4, 4, TELEMETRY_GAP_SUSPECTED);
    pawl__clock_advance(&f->clock, 9 * NS_PER_S);
    size_t queries = f->source.queries;
    recover(f, TELEMETRY_RECHECK);
    assert_int_equal(f->source.queries, queries); /* nobody asks before the grace is over */
    f->source.hidden = 0;
    pawl__clock_advance(&f->clock, NS_PER_S);
    recover(f, TELEMETRY_RECHECK);
    assert_gap(f, 0, 4, 4, TELEMETRY_GAP_RECOVERED);
    assert_int_equal(stored(f, NULL), 7);
    assert_int_equal(f->feed.counts.detected, 0);
}

static void test_a_gap_is_recovered_end_to_end(void **state)
{
    struct fixture *f = *state;

    give(f, 7);
    f->source.hidden = 4;
    poll_well(f);
    pawl__clock_advance(&f->clock, 10 * NS_PER_S);
    recover(f, TELEMETRY_RECHECK);
    assert_gap(f, 0, 4, 4, TELEMETRY_GAP_DETECTED);
    recover(f, TELEMETRY_RECOVER);
    assert_gap(f, 0, 4, 4, TELEMETRY_GAP_DETECTED);
    stop_colony(f);
    start_colony(f);
    f->source.hidden = 0;
    recover(f, TELEMETRY_RECOVER);
    assert_gap(f, 0, 4, 4, TELEMETRY_GAP_RECOVERED);
    assert_int_equal(stored(f, NULL), 7);
}

static void test_a_gap_is_permanent_after_three_attempts_and_an_absent_agent_costs_none(
    void **state)
{
    struct fixture *f = *state;

    give(f, 7);
    f->source.hidden = 4;
    poll_well(f);
    pawl__clock_advance(&f->clock, 10 * NS_PER_S);
    recover(f, TELEMETRY_RECHECK);
    f->source.is_away = true;
    for (int i = 0; i < 5; i++) {
        recover(f, TELEMETRY_RECOVER);
        assert_int_equal(f->feed.status, PAWL_UNAVAILABLE);
    }
    f->source.is_away = false;
    recover(f, TELEMETRY_RECOVER);
    recover(f, TELEMETRY_RECOVER);
    assert_gap(f, 0, 4, 4, TELEMETRY_GAP_DETECTED);
    recover(f, TELEMETRY_RECOVER);
    assert_gap(f, 0, 4, 4, TELEMETRY_GAP_PERMANENT);
    assert_int_equal(f->feed.counts.permanent, 1);
    assert_int_equal(stored(f, NULL), 6);
    assert_ok(f->store->ops->clean_gaps(f->store, pawl__wall_us(&f->clock.base), &f->error),
              &f->error);
    assert_int_equal(gap_count(f), 1);
    pawl__clock_advance(&f->clock, NS_PER_S);
    assert_ok(f->store->ops->clean_gaps(f->store, pawl__wall_us(&f->clock.base), &f->error),
              &f->error);
    assert_int_equal(gap_count(f), 0);
}

static void test_what_retention_took_is_permanent(void **state)
{
    struct fixture *f = *state;
    struct telemetry_agent_store *store = &f->source.agent.base;

    give(f, 4);
    poll_well(f);
    poll_well(f); /* acknowledges */
    give(f, 6);
    f->source.agent.state.acked[TELEMETRY_SPANS] = 8; /* somebody else had them */
    pawl__clock_advance(&f->clock, 3600 * NS_PER_S);
    assert_ok(store->ops->maintain(store, NULL, &f->error), &f->error);
    poll_well(f);
    assert_gap(f, 0, 5, 8, TELEMETRY_GAP_PERMANENT);
    assert_int_equal(checkpoint(f), 10);
    assert_int_equal(stored(f, NULL), 6);
}

/* --- sessions and generations --- */

static void test_a_new_session_starts_at_0_and_the_old_one_is_found_again(void **state)
{
    struct fixture *f = *state;
    struct telemetry_memory_agent old = { .clock = NULL };

    give(f, 6);
    poll_well(f);
    assert_ok(pawl__telemetry_memory_agent_copy(&old, &f->source.agent, &f->error), &f->error);
    pawl__telemetry_memory_agent_done(&f->source.agent);
    open_agent(f);
    give(f, 2);
    poll_well(f);
    assert_int_equal(checkpoint(f), 2);
    assert_int_equal(stored(f, NULL), 2);
    assert_int_equal(f->feed.counts.sessions, 2);
    pawl__telemetry_memory_agent_done(&f->source.agent);
    f->source.agent = old; /* comes back */
    open_agent(f);
    give(f, 1);
    poll_well(f);
    assert_int_equal(checkpoint(f), 7);
    assert_int_equal(stored(f, NULL), 7);
}

static void test_a_restored_agent_begins_a_generation_and_no_row_is_stored_twice(void **state)
{
    struct fixture *f = *state;
    struct telemetry_memory_agent copy = { .clock = NULL };

    give(f, 4);
    assert_ok(pawl__telemetry_memory_agent_copy(&copy, &f->source.agent, &f->error), &f->error);
    give(f, 3);
    poll_well(f);
    pawl__telemetry_memory_agent_done(&f->source.agent);
    f->source.agent = copy;
    open_agent(f);
    give(f, 5);
    poll_well(f);
    assert_int_equal(f->feed.counts.forks, 1);
    assert_int_equal(checkpoint(f), 9);
    assert_int_equal(stored(f, NULL), 5);         /* 5 to 9 of the new generation */
    assert_int_equal(f->feed.counts.rows, 7 + 5); /* all that were ever given */
    stop_colony(f);
    start_colony(f);
    give(f, 1);
    poll_well(f);
    assert_int_equal(stored(f, NULL), 6);
}

static void test_a_missing_session_is_an_error(void **state)
{
    struct fixture *f = *state;

    give(f, 2);
    poll_well(f);
    f->source.agent.state.session.text[0] = '\0';
    give(f, 2);
    poll(f);
    assert_int_equal(f->feed.status, PAWL_INVALID);
    assert_message(&f->feed.error, "no session");
    assert_int_equal(checkpoint(f), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_without_a_checkpoint_it_is_0),
        TEST(test_a_poll_fetches_all_and_the_next_one_only_what_is_new),
        TEST(test_a_colony_that_restarts_resumes),
        TEST(test_an_agent_that_restarts_is_polled_across_the_restart),
        TEST(test_a_failed_poll_leaves_the_checkpoint_where_it_was),
        TEST(test_a_commit_that_continues_another_checkpoint_is_a_conflict),
        TEST(test_the_acknowledgement_follows_the_commit),
        TEST(test_one_bad_row_is_rejected_and_the_others_are_stored),
        TEST(test_two_feeds_share_a_transaction_and_one_that_fails_does_not_hold_up_the_other),
        TEST(test_a_late_row_within_the_grace_is_never_detected),
        TEST(test_a_gap_is_recovered_end_to_end),
        TEST(test_a_gap_is_permanent_after_three_attempts_and_an_absent_agent_costs_none),
        TEST(test_what_retention_took_is_permanent),
        TEST(test_a_new_session_starts_at_0_and_the_old_one_is_found_again),
        TEST(test_a_restored_agent_begins_a_generation_and_no_row_is_stored_twice),
        TEST(test_a_missing_session_is_an_error),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s memory|duckdb\n", argv[0]);
        return 2;
    }
    is_duckdb = strcmp(argv[1], "duckdb") == 0;
    return cmocka_run_group_tests_name(
        is_duckdb ? "telemetry_colony_duckdb" : "telemetry_colony_memory", tests, NULL, NULL);
}
