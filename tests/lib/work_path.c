#include "lib/work_path.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"

static bool wants_plain;
static int64_t completed;
static int64_t by_short_way;

void work_path_count(struct pg_fixture *postgres)
{
    const struct pawl__pg_statement statement = {
        .sql = "SELECT count(*) FILTER (WHERE status = 'completed' AND NOT has_followers),"
               " coalesce(sum(steps), 0)::bigint FROM work_items",
        .columns = "ii",
    };
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct pawl__pg *pg = pg_connect(
        postgres, &(struct pawl__pg_options){ .statements = &statement, .statement_count = 1 });

    assert_ok(pawl__pg_exec(pg, 0, PG_NO_ARGS, &rows, &postgres->err), &postgres->err);
    completed += pawl__pg_get_i64(&rows, 0, 0);
    by_short_way += pawl__pg_get_i64(&rows, 0, 1);
    pawl__pg_close(pg);
}

static void test_the_suite_took_the_path_that_it_is_named_for(void **state)
{
    (void)state;
    if (wants_plain) {
        assert_int_equal(by_short_way, 0);
        assert_true(completed > 0); /* else there is but one path */
    } else if (completed > 0) {
        assert_true(by_short_way > 0);
    }
}

int work_path_run(const char *name, bool plain, const struct CMUnitTest *tests, size_t count)
{
    const struct CMUnitTest last =
        cmocka_unit_test(test_the_suite_took_the_path_that_it_is_named_for);
    struct CMUnitTest *all = calloc(count + 1, sizeof(*all));

    if (all == NULL) {
        return 1;
    }
    wants_plain = plain;
    memcpy(all, tests, count * sizeof(*all));
    all[count] = last;
    int failed = _cmocka_run_group_tests(name, all, count + 1, NULL, NULL);
    free(all);
    return failed;
}
