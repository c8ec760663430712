/* What every agent store promises (telemetry/agent/store.h). The argument says which one. */
#include "lib/check.h"
#include "lib/tempdir.h"
#include "lib/virtual_clock.h"

#include <stdio.h>
#include <string.h>

#include "base/core/macros.h"
#include "telemetry/agent/duckdb.h"
#include "telemetry/agent/memory.h"

enum { ROWS_MAX = 300 };

static bool is_duckdb;

struct fixture {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    struct pawl__clock_virtual clock;
    struct telemetry_memory_agent memory;
    struct telemetry_retention retention;
    struct telemetry_agent_store *store;
    struct telemetry_page page;
    struct telemetry_values rows[ROWS_MAX];
    char texts[ROWS_MAX][24];
    pawl_error error;
};

static void open_store(struct fixture *f)
{
    const struct telemetry_memory_agent_options memory = { .clock = &f->clock.base,
                                                           .random = pawl__random_real(),
                                                           .retention = f->retention };
    const struct telemetry_duckdb_agent_options duckdb = {
        .path = f->path,
        .duck = { .threads = 1, .memory_bytes_max = 256 << 20, .clock = &f->clock.base },
        .retention = f->retention,
    };

    if (is_duckdb) {
        assert_ok(pawl__telemetry_duckdb_agent(&duckdb, &f->store, NULL, &f->error), &f->error);
    } else {
        assert_ok(pawl__telemetry_memory_agent_open(&f->memory, &memory, &f->error), &f->error);
        f->store = &f->memory.base;
    }
}

static void reopen(struct fixture *f)
{
    f->store->ops->close(f->store);
    open_store(f);
}

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    f.error = (pawl_error)PAWL_ERROR_INIT;
    f.clock = pawl__clock_virtual_at(INT64_C(1769682030123456), NS_PER_S);
    f.retention = (struct telemetry_retention){ 3600 * NS_PER_S, 0, 10 };
    if (tempdir_make(f.dir, "pawl-agent", &f.error) != PAWL_OK) {
        return -1;
    }
    snprintf(f.path, sizeof(f.path), "%s/agent.db", f.dir);
    open_store(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    f->store->ops->close(f->store);
    pawl__telemetry_memory_agent_done(&f->memory);
    pawl__telemetry_page_done(&f->page);
    tempdir_remove(f->dir);
    return 0;
}

/* Rows that are told apart by their number. */
static void make_rows(struct fixture *f, enum telemetry_type type, size_t from, size_t count)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(type);

    assert_true(count <= ROWS_MAX);
    for (size_t n = 0; n < count; n++) {
        struct telemetry_values *row = &f->rows[n];
        *row = (struct telemetry_values){ .at = { { .as = { .i64 = 0 } } } };
        snprintf(f->texts[n], sizeof(f->texts[n]), "row-%zu", from + n);
        for (size_t i = 0; i < info->column_count; i++) {
            switch (info->columns[i].kind) {
            case 't':
                row->at[i].as.text = pawl_view_of(f->texts[n]);
                break;
            case 'm':
                row->at[i].as.text = pawl_view_of("{\"host\":\"a\"}");
                break;
            case 'l':
                row->at[i].as.text = pawl_view_of("[\"main\",\"run\"]");
                break;
            case 'd':
                row->at[i].as.real = 1.5;
                break;
            case 'b':
                row->at[i].as.flag = true;
                break;
            default:
                row->at[i].as.i64 = (int64_t)(from + n);
            }
        }
    }
}

static struct telemetry_appended append(struct fixture *f,
                                        enum telemetry_type type,
                                        size_t from,
                                        size_t count)
{
    struct telemetry_appended appended;

    make_rows(f, type, from, count);
    assert_ok(f->store->ops->append(f->store, type, f->rows, count, &appended, &f->error),
              &f->error);
    return appended;
}

static void ask(struct fixture *f, const struct telemetry_query *query)
{
    assert_ok(f->store->ops->query(f->store, query, &f->page, &f->error), &f->error);
    assert_ok(pawl__telemetry_page_check(query, &f->page, &f->error), &f->error);
    assert_ok(pawl__telemetry_page_decode(query->type, &f->page, &f->error), &f->error);
}

static struct telemetry_agent_status status_of(struct fixture *f)
{
    struct telemetry_agent_status status;

    assert_ok(f->store->ops->status(f->store, &status, &f->error), &f->error);
    return status;
}

/* --- ids --- */

static void test_ids_are_consecutive_per_data_type(void **state)
{
    struct fixture *f = *state;

    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        enum telemetry_type type = (enum telemetry_type)t;
        struct telemetry_appended first = append(f, type, 1, 3);
        struct telemetry_appended second = append(f, type, 4, 2);
        assert_true(first.first == 1 && first.last == 3 && first.stored == 3);
        assert_true(second.first == 4 && second.last == 5);
        const struct telemetry_query query = { .type = type, .rows_max = 100 };
        ask(f, &query);
        assert_int_equal(f->page.count, 5);
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(f->page.rows[i].seq_id, i + 1);
            assert_null(f->page.rows[i].reason);
        }
    }
}

static void test_a_row_of_every_type_comes_back_as_it_was(void **state)
{
    struct fixture *f = *state;

    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        enum telemetry_type type = (enum telemetry_type)t;
        const struct telemetry_type_info *info = pawl__telemetry_type(type);
        const struct telemetry_query query = { .type = type, .rows_max = 100 };
        append(f, type, 7, 1);
        ask(f, &query);
        const struct telemetry_values *row = f->page.rows[0].values;
        assert_non_null(row);
        for (size_t i = 0; i < info->column_count; i++) {
            if (strchr("tml", info->columns[i].kind) != NULL) {
                assert_int_equal(row->at[i].as.text.len, f->rows[0].at[i].as.text.len);
                assert_memory_equal(
                    row->at[i].as.text.data, f->rows[0].at[i].as.text.data, row->at[i].as.text.len);
            } else if (info->columns[i].kind == 'd') {
                assert_true(row->at[i].as.real == 1.5);
            } else if (info->columns[i].kind == 'b') {
                assert_true(row->at[i].as.flag);
            } else {
                assert_int_equal(row->at[i].as.i64, 7);
            }
        }
    }
}

static void test_the_sequence_survives_a_restart(void **state)
{
    struct fixture *f = *state;
    const struct telemetry_query query = { .type = TELEMETRY_SPANS, .rows_max = 200 };

    append(f, TELEMETRY_SPANS, 1, 100);
    struct telemetry_agent_status before = status_of(f);
    reopen(f);
    struct telemetry_agent_status after = status_of(f);
    assert_string_equal(before.session.text, after.session.text);
    assert_string_not_equal(before.epoch.text, after.epoch.text);
    assert_int_equal(append(f, TELEMETRY_SPANS, 101, 1).first, 101);
    ask(f, &query);
    assert_int_equal(f->page.count, 101);
    assert_int_equal(f->page.epoch_count, 2);
    assert_int_equal(f->page.epochs[0].first, 1);
    assert_int_equal(f->page.epochs[1].first, 101);
}

static void test_an_epoch_without_rows_leaves_the_list(void **state)
{
    struct fixture *f = *state;

    reopen(f);
    reopen(f);
    assert_int_equal(status_of(f).epoch_count, 1);
    append(f, TELEMETRY_CPU_PROFILE, 1, 1);
    reopen(f);
    assert_int_equal(status_of(f).epoch_count, 2);
}

/* --- an exporter's retry --- */

static void test_a_retry_is_recognised_and_burns_no_id(void **state)
{
    struct fixture *f = *state;

    append(f, TELEMETRY_SPANS, 1, 5);
    struct telemetry_appended again = append(f, TELEMETRY_SPANS, 3, 5); /* 3, 4, 5 and 6, 7 */
    assert_int_equal(again.duplicates, 3);
    assert_int_equal(again.stored, 2);
    assert_int_equal(again.last, 7);
    reopen(f);
    assert_int_equal(append(f, TELEMETRY_SPANS, 1, 7).stored, 0);
    assert_int_equal(status_of(f).kept[TELEMETRY_SPANS].counter, 7);
    append(f, TELEMETRY_SYSTEM_METRICS, 1, 4);
    reopen(f);
    assert_int_equal(append(f, TELEMETRY_SYSTEM_METRICS, 1, 4).stored, 0);
    append(f, TELEMETRY_CPU_PROFILE, 1, 1); /* samples have no name */
    assert_int_equal(append(f, TELEMETRY_CPU_PROFILE, 1, 1).stored, 1);
}

static void test_a_row_twice_in_one_batch_is_stored_once(void **state)
{
    struct fixture *f = *state;
    struct telemetry_appended appended;

    make_rows(f, TELEMETRY_SPANS, 1, 2);
    f->rows[1] = f->rows[0];
    assert_ok(f->store->ops->append(f->store, TELEMETRY_SPANS, f->rows, 2, &appended, &f->error),
              &f->error);
    assert_true(appended.stored == 1 && appended.duplicates == 1 && appended.last == 1);
}

/* --- pages --- */

static void test_a_page_has_a_start_an_end_and_a_size(void **state)
{
    struct fixture *f = *state;
    struct telemetry_query query = { .type = TELEMETRY_SPANS, .start = 10, .rows_max = 7 };

    append(f, TELEMETRY_SPANS, 1, 50);
    ask(f, &query);
    assert_int_equal(f->page.count, 7);
    assert_int_equal(f->page.rows[0].seq_id, 11);
    assert_int_equal(pawl__telemetry_page_max(&f->page), 17);
    assert_int_equal(f->page.high_water, 50);
    assert_int_equal(f->page.min_available, 1);
    query.end = 12;
    ask(f, &query);
    assert_int_equal(f->page.count, 2);
    assert_int_equal(f->page.scanned_to, 12);
    query = (struct telemetry_query){ .type = TELEMETRY_SPANS, .start = 50, .rows_max = 7 };
    ask(f, &query);
    assert_int_equal(pawl__telemetry_page_max(&f->page), 0);
    query.start = 5000; /* beyond the end */
    ask(f, &query);
    assert_int_equal(f->page.count, 0);
    assert_int_equal(f->page.high_water, 50);
}

static void test_wrong_queries_are_refused(void **state)
{
    struct fixture *f = *state;
    struct telemetry_query query = { .type = TELEMETRY_SPANS, .start = UINT64_MAX, .rows_max = 1 };

    assert_status(
        f->store->ops->query(f->store, &query, &f->page, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "2^63");
    query =
        (struct telemetry_query){ .type = TELEMETRY_SPANS, .start = 5, .end = 4, .rows_max = 1 };
    assert_status(
        f->store->ops->query(f->store, &query, &f->page, &f->error), PAWL_INVALID, &f->error);
    query = (struct telemetry_query){ .type = TELEMETRY_CPU_PROFILE, .rows_max = 5001 };
    assert_status(
        f->store->ops->query(f->store, &query, &f->page, &f->error), PAWL_INVALID, &f->error);
}

static void test_a_filter_says_how_far_it_scanned(void **state)
{
    struct fixture *f = *state;
    const pawl_view services[] = { pawl_view_of("row-30"), pawl_view_of("row-31") };
    struct telemetry_query query = {
        .type = TELEMETRY_SPANS, .rows_max = 10, .services = services, .service_count = 2
    };

    append(f, TELEMETRY_SPANS, 1, 50);
    ask(f, &query);
    assert_int_equal(f->page.count, 2);
    assert_int_equal(f->page.rows[0].seq_id, 30);
    assert_int_equal(f->page.scanned_to, 50);
    query = (struct telemetry_query){
        .type = TELEMETRY_SPANS, .rows_max = 10, .from_us = 20, .until_us = 23
    };
    ask(f, &query);
    assert_int_equal(f->page.count, 3);
    assert_int_equal(f->page.rows[0].seq_id, 20);
}

static void test_the_epochs_after_the_known_one_are_listed(void **state)
{
    struct fixture *f = *state;
    struct telemetry_query query = { .type = TELEMETRY_SPANS, .rows_max = 10 };

    append(f, TELEMETRY_SPANS, 1, 5);
    struct telemetry_id first = status_of(f).epoch;
    reopen(f);
    struct telemetry_id second = status_of(f).epoch;
    query.known_epoch = first;
    ask(f, &query);
    assert_int_equal(f->page.epoch_count, 1);
    assert_string_equal(f->page.epochs[0].id.text, second.text);
    assert_int_equal(f->page.epochs[0].first, 6);
    query.known_epoch = second;
    ask(f, &query);
    assert_int_equal(f->page.epoch_count, 0);
    snprintf(query.known_epoch.text, sizeof(query.known_epoch.text), "nobody");
    ask(f, &query);
    assert_int_equal(f->page.epoch_count, 2);
}

/* --- retention --- */

static void acknowledge(struct fixture *f, enum telemetry_type type, uint64_t up_to)
{
    const struct telemetry_query query = { .type = type,
                                           .rows_max = 1,
                                           .may_ack = true,
                                           .ack = up_to,
                                           .known_epoch = status_of(f).epoch };

    ask(f, &query);
}

static uint64_t maintain(struct fixture *f)
{
    uint64_t removed = 0;

    assert_ok(f->store->ops->maintain(f->store, &removed, &f->error), &f->error);
    return removed;
}

static void test_old_rows_go_once_they_are_acknowledged(void **state)
{
    struct fixture *f = *state;
    const struct telemetry_query query = { .type = TELEMETRY_SPANS, .rows_max = 100 };

    append(f, TELEMETRY_SPANS, 1, 35);
    pawl__clock_advance(&f->clock, 3599 * NS_PER_S);
    acknowledge(f, TELEMETRY_SPANS, 25);
    assert_int_equal(maintain(f), 0);
    pawl__clock_advance(&f->clock, NS_PER_S);
    assert_int_equal(maintain(f), 20); /* whole groups of ten */
    ask(f, &query);
    assert_int_equal(f->page.min_available, 21);
    assert_int_equal(f->page.count, 15);
    acknowledge(f, TELEMETRY_SPANS, 35);
    assert_int_equal(maintain(f), 10);
    reopen(f);
    ask(f, &query);
    assert_int_equal(f->page.min_available, 31);
    assert_int_equal(append(f, TELEMETRY_SPANS, 36, 1).first, 36);
}

static void test_the_sequence_survives_full_retention(void **state)
{
    struct fixture *f = *state;
    const struct telemetry_query query = { .type = TELEMETRY_SPANS, .rows_max = 100 };

    append(f, TELEMETRY_SPANS, 1, 20);
    acknowledge(f, TELEMETRY_SPANS, 20);
    pawl__clock_advance(&f->clock, 3600 * NS_PER_S);
    assert_int_equal(maintain(f), 20);
    reopen(f);
    ask(f, &query);
    assert_int_equal(f->page.count, 0);
    assert_int_equal(f->page.min_available, 21);
    assert_int_equal(f->page.high_water, 20);
    assert_int_equal(append(f, TELEMETRY_SPANS, 21, 1).first, 21);
}

static void test_a_stepped_wall_clock_removes_nothing(void **state)
{
    struct fixture *f = *state;

    append(f, TELEMETRY_SPANS, 1, 20);
    acknowledge(f, TELEMETRY_SPANS, 20);
    pawl__clock_step_wall(&f->clock, INT64_C(7200) * US_PER_S);
    assert_int_equal(maintain(f), 0);
}

static void test_rows_that_nobody_acknowledged_stay_until_the_size_limit(void **state)
{
    struct fixture *f = *state;

    append(f, TELEMETRY_SPANS, 1, 30);
    pawl__clock_advance(&f->clock, 7200 * NS_PER_S);
    assert_int_equal(maintain(f), 0);
    f->retention.used_max = 1; /* everything is too much */
    reopen(f);
    assert_int_equal(maintain(f), 30);
    assert_int_equal(status_of(f).kept[TELEMETRY_SPANS].removed, 30);
}

static void test_an_acknowledgement_of_a_stranger_counts_for_nothing(void **state)
{
    struct fixture *f = *state;
    struct telemetry_query query = { .type = TELEMETRY_SPANS, .rows_max = 1, .ack = 20 };

    append(f, TELEMETRY_SPANS, 1, 20);
    query.known_epoch = status_of(f).epoch;
    ask(f, &query); /* may_ack is not set: not the registered colony */
    assert_int_equal(status_of(f).kept[TELEMETRY_SPANS].acked, 0);
    query.may_ack = true;
    query.known_epoch.text[0] ^= 1;
    ask(f, &query);
    assert_int_equal(status_of(f).kept[TELEMETRY_SPANS].acked, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ids_are_consecutive_per_data_type, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_row_of_every_type_comes_back_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_sequence_survives_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_an_epoch_without_rows_leaves_the_list, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_retry_is_recognised_and_burns_no_id, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_row_twice_in_one_batch_is_stored_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_page_has_a_start_an_end_and_a_size, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_queries_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_filter_says_how_far_it_scanned, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_the_epochs_after_the_known_one_are_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_old_rows_go_once_they_are_acknowledged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_sequence_survives_full_retention, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stepped_wall_clock_removes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_rows_that_nobody_acknowledged_stay_until_the_size_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_an_acknowledgement_of_a_stranger_counts_for_nothing, setup, teardown),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s memory|duckdb\n", argv[0]);
        return 2;
    }
    is_duckdb = strcmp(argv[1], "duckdb") == 0;
    return cmocka_run_group_tests_name(
        is_duckdb ? "telemetry_agent_duckdb" : "telemetry_agent_memory", tests, NULL, NULL);
}
