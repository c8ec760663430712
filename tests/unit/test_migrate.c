/* The migration runner against an engine that only writes down what it is told. The same runner on
 * real engines is tested with each of them. */
#include "lib/check.h"

#include <stdio.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "store/migrate.h"

static const struct pawl__migration migrations[] = {
    { 1, "0.30.0", "first", "CREATE 1" },
    { 2, "0.30.0", "second", "CREATE 2" },
    { 3, "0.31.0", "third", "CREATE 3" },
};

static const struct pawl__schema all_three = { .component = "work",
                                               .migrations = migrations,
                                               .count = 3 };
static const struct pawl__schema first_two = { .component = "work",
                                               .migrations = migrations,
                                               .count = 2 };

enum { ROWS_MAX = 8 };

struct engine {
    struct pawl__schema_row rows[ROWS_MAX];
    size_t committed; /* rows before this one survive a rollback */
    size_t count;
    const char *fail_at; /* the step that fails */
    size_t appear;       /* rows that another process commits while we wait in begin */
    struct pawl__buf trace;
};

static pawl_status step(struct engine *engine, const char *what, pawl_error *reterr)
{
    pawl__buf_add_format(&engine->trace, "%s; ", what);
    if (engine->fail_at != NULL && strcmp(engine->fail_at, what) == 0) {
        return pawl__fail(reterr, PAWL_IO, "'%s' broke", what);
    }
    return PAWL_OK;
}

static pawl_status engine_begin(void *store, pawl_error *reterr)
{
    struct engine *engine = store;

    for (size_t i = 0; i < engine->appear; i++) {
        engine->rows[engine->count++] = (struct pawl__schema_row){
            "work", migrations[i].version, migrations[i].number, migrations[i].name, NULL
        };
    }
    engine->committed = engine->count;
    return step(engine, "begin", reterr);
}

static pawl_status engine_has_table(void *store, bool *ret_has, pawl_error *reterr)
{
    (void)store;
    (void)reterr;
    *ret_has = true;
    return PAWL_OK;
}

static pawl_status engine_each(void *store,
                               const char *component,
                               pawl__schema_visit *visit,
                               void *context,
                               pawl_error *reterr)
{
    struct engine *engine = store;
    pawl_status status = step(engine, "each", reterr);

    for (size_t i = 0; status == PAWL_OK && i < engine->count; i++) {
        if (strcmp(engine->rows[i].component, component) == 0) {
            status = visit(context, &engine->rows[i], reterr);
        }
    }
    return status;
}

static pawl_status engine_exec(void *store, const char *sql, pawl_error *reterr)
{
    return step(store, sql, reterr);
}

static pawl_status engine_record(void *store,
                                 const struct pawl__schema_row *row,
                                 pawl_error *reterr)
{
    struct engine *engine = store;
    char what[80];

    assert_int_equal(strlen(row->applied_at), strlen("2026-01-29 10:20:30.123456"));
    snprintf(what, sizeof(what), "record %d %s %s", row->migration, row->name, row->version);
    engine->rows[engine->count] = *row;
    engine->rows[engine->count++].applied_at = NULL;
    return step(engine, what, reterr);
}

static pawl_status engine_commit(void *store, pawl_error *reterr)
{
    struct engine *engine = store;
    pawl_status status = step(engine, "commit", reterr);

    if (status == PAWL_OK) {
        engine->committed = engine->count;
    }
    return status;
}

static void engine_rollback(void *store)
{
    struct engine *engine = store;

    pawl__buf_add_text(&engine->trace, "rollback; ");
    engine->count = engine->committed;
}

static struct pawl__clock *engine_clock(void *store)
{
    (void)store;
    return pawl__clock_real();
}

static const struct pawl__migrate_ops ops = {
    .table_sql = "TABLE",
    .begin = engine_begin,
    .has_table = engine_has_table,
    .each = engine_each,
    .exec = engine_exec,
    .record = engine_record,
    .commit = engine_commit,
    .rollback = engine_rollback,
    .clock = engine_clock,
};

static int setup(void **state)
{
    static struct engine engine;

    engine = (struct engine){ .trace = BUF_INIT(4096) };
    *state = &engine;
    return 0;
}

static int teardown(void **state)
{
    struct engine *engine = *state;

    pawl__buf_done(&engine->trace);
    return 0;
}

static void assert_trace(struct engine *engine, const char *expected)
{
    assert_false(engine->trace.broken);
    assert_string_equal(engine->trace.data == NULL ? "" : engine->trace.data, expected);
    pawl__buf_clear(&engine->trace);
}

static void test_a_new_store_gets_everything_in_one_transaction(void **state)
{
    struct engine *engine = *state;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__migrate(&ops, engine, &all_three, &error), &error);
    assert_trace(engine,
                 "each; begin; each; TABLE; CREATE 1; record 1 first 0.30.0; CREATE 2; "
                 "record 2 second 0.30.0; CREATE 3; record 3 third 0.31.0; commit; ");
}

static void test_an_older_store_gets_only_what_it_lacks(void **state)
{
    struct engine *engine = *state;
    pawl_error error = PAWL_ERROR_INIT;
    size_t pending = 99;

    assert_ok(pawl__migrate(&ops, engine, &first_two, &error), &error);
    pawl__buf_clear(&engine->trace);
    assert_ok(pawl__migrate_pending(&ops, engine, &all_three, &pending, &error), &error);
    assert_int_equal(pending, 1);
    assert_ok(pawl__migrate(&ops, engine, &all_three, &error), &error);
    assert_trace(engine,
                 "each; each; begin; each; TABLE; CREATE 3; record 3 third 0.31.0; commit; ");
}

static void test_a_store_that_is_up_to_date_is_only_read(void **state)
{
    struct engine *engine = *state;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__migrate(&ops, engine, &all_three, &error), &error);
    pawl__buf_clear(&engine->trace);
    assert_ok(pawl__migrate(&ops, engine, &all_three, &error), &error);
    assert_trace(engine, "each; ");
}

static void test_a_newer_store_is_refused_with_both_versions(void **state)
{
    struct engine *engine = *state;
    pawl_error error = PAWL_ERROR_INIT;
    size_t pending = 99;

    assert_ok(pawl__migrate(&ops, engine, &all_three, &error), &error);
    pawl__buf_clear(&engine->trace);
    assert_status(pawl__migrate(&ops, engine, &first_two, &error), PAWL_UNSUPPORTED, &error);
    assert_message(&error, "'work' is version 0.31.0 (migration 3)");
    assert_message(&error, "this program knows version 0.30.0 (migration 2)");
    assert_trace(engine, "each; ");
    assert_status(pawl__migrate_pending(&ops, engine, &first_two, &pending, &error),
                  PAWL_UNSUPPORTED,
                  &error);
    assert_int_equal(pending, 99);
}

static void test_another_component_does_not_count(void **state)
{
    struct engine *engine = *state;
    pawl_error error = PAWL_ERROR_INIT;
    const struct pawl__schema other = { .component = "ledger",
                                        .migrations = migrations,
                                        .count = 1 };

    assert_ok(pawl__migrate(&ops, engine, &all_three, &error), &error);
    pawl__buf_clear(&engine->trace);
    assert_ok(pawl__migrate(&ops, engine, &other, &error), &error);
    assert_trace(engine, "each; begin; each; TABLE; CREATE 1; record 1 first 0.30.0; commit; ");
}

static void test_records_that_are_not_ours_are_refused(void **state)
{
    struct engine *engine = *state;
    pawl_error error = PAWL_ERROR_INIT;

    engine->rows[0] = (struct pawl__schema_row){ "work", "0.30.0", 1, "genesis", NULL };
    engine->count = 1;
    assert_status(pawl__migrate(&ops, engine, &all_three, &error), PAWL_UNSUPPORTED, &error);
    assert_message(&error, "migration 1 of 'work' is 'genesis' in this store and 'first'");
    engine->rows[0] = (struct pawl__schema_row){ "work", "0.30.0", 2, "second", NULL };
    assert_status(pawl__migrate(&ops, engine, &all_three, &error), PAWL_CORRUPT, &error);
    assert_message(&error, "records migration 2 of 'work' where 1 was expected");
    assert_trace(engine, "each; each; ");
}

static void test_what_another_process_did_meanwhile_is_not_done_twice(void **state)
{
    struct engine *engine = *state;
    pawl_error error = PAWL_ERROR_INIT;

    engine->appear = 2;
    assert_ok(pawl__migrate(&ops, engine, &all_three, &error), &error);
    assert_trace(engine, "each; begin; each; TABLE; CREATE 3; record 3 third 0.31.0; commit; ");

    /* The other one was newer than we are: nothing of ours happens. */
    engine->count = 0;
    engine->appear = 3;
    assert_status(pawl__migrate(&ops, engine, &first_two, &error), PAWL_UNSUPPORTED, &error);
    assert_trace(engine, "each; begin; each; rollback; ");
}

static void test_a_failing_step_takes_everything_back(void **state)
{
    struct engine *engine = *state;
    static const char *const steps[] = {
        "TABLE", "CREATE 1", "CREATE 3", "record 3 third 0.31.0", "commit"
    };

    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        pawl_error error = PAWL_ERROR_INIT;

        engine->fail_at = steps[i];
        assert_status(pawl__migrate(&ops, engine, &all_three, &error), PAWL_IO, &error);
        assert_message(&error, "migrate 'work': ");
        assert_message(&error, steps[i]);
        assert_int_equal(engine->count, 0);
        assert_non_null(strstr(engine->trace.data, "rollback"));
        pawl__buf_clear(&engine->trace);
    }
    engine->fail_at = "begin"; /* nothing to take back */
    pawl_error error = PAWL_ERROR_INIT;
    assert_status(pawl__migrate(&ops, engine, &all_three, &error), PAWL_IO, &error);
    assert_trace(engine, "each; begin; ");
}

static void test_failpoints_stand_around_the_commit(void **state)
{
    struct engine *engine = *state;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__failpoint_set("migrate.commit.before=error:NO_SPACE", &error), &error);
    assert_status(pawl__migrate(&ops, engine, &all_three, &error), PAWL_NO_SPACE, &error);
    assert_int_equal(engine->committed, 0);
    assert_ok(pawl__failpoint_set("migrate.commit.after=error", &error), &error);
    assert_status(pawl__migrate(&ops, engine, &all_three, &error), PAWL_IO, &error);
    assert_int_equal(engine->committed, 3); /* too late to take it back */
    assert_ok(pawl__failpoint_set(NULL, &error), &error);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_a_new_store_gets_everything_in_one_transaction),
        CASE(test_an_older_store_gets_only_what_it_lacks),
        CASE(test_a_store_that_is_up_to_date_is_only_read),
        CASE(test_a_newer_store_is_refused_with_both_versions),
        CASE(test_another_component_does_not_count),
        CASE(test_records_that_are_not_ours_are_refused),
        CASE(test_what_another_process_did_meanwhile_is_not_done_twice),
        CASE(test_a_failing_step_takes_everything_back),
        CASE(test_failpoints_stand_around_the_commit),
    };
    return cmocka_run_group_tests_name("migrate", tests, NULL, NULL);
}
