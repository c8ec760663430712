#include "lib/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/log/metrics.h"
#include "base/thread/thread.h"
#include "lib/fault.h"
#include "lib/promtool.h"

enum { OUT_BYTES_MAX = 1 << 20 };

static const double seconds[] = { 0.005, 0.1, 1, 2.5 };

static const struct pawl__metric_def writes_def = {
    .name = "consumer_wal_writes_total",
    .help = "Entries written to the write-ahead log.",
    .type = PAWL__COUNTER,
};
static const struct pawl__metric_def lag_def = {
    .name = "checkpoint_lag_seconds",
    .help = "Time since the cursor met the high-water mark,\nby \\ agent.",
    .type = PAWL__GAUGE,
    .labels = { "agent", "data_type" },
};
static const struct pawl__metric_def query_def = {
    .name = "poll_query_duration_seconds",
    .help = "Time that one poll takes.",
    .type = PAWL__HISTOGRAM,
    .labels = { "agent" },
    .buckets = seconds,
    .bucket_count = COUNT_OF(seconds),
};

static const struct pawl__metric_def unused_def = {
    .name = "pawl_unused_total",
    .help = "Never counted.",
    .type = PAWL__COUNTER,
    .labels = { "a" },
};

struct fixture {
    struct pawl__metrics *metrics;
    struct pawl__buf out;
    pawl_error error;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){ .out = BUF_INIT(OUT_BYTES_MAX) };
    *state = &f;
    return pawl__metrics_new(&f.metrics, &f.error) == PAWL_OK ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__metrics_free(f->metrics);
    pawl__buf_done(&f->out);
    return 0;
}

static struct pawl__metric *registered(struct fixture *f, const struct pawl__metric_def *def)
{
    struct pawl__metric *metric = NULL;

    assert_ok(pawl__metrics_register(f->metrics, def, &metric, &f->error), &f->error);
    return metric;
}

static struct pawl__series *series_of(struct fixture *f,
                                      struct pawl__metric *metric,
                                      const char *first,
                                      const char *second)
{
    const char *values[] = { first, second };
    struct pawl__series *series = NULL;

    assert_ok(pawl__metric_series(metric, values, &series, &f->error), &f->error);
    return series;
}

static void write_all(struct fixture *f)
{
    pawl__buf_clear(&f->out);
    assert_ok(pawl__metrics_write(f->metrics, &f->out, &f->error), &f->error);
}

static void fill(struct fixture *f)
{
    struct pawl__series *writes = series_of(f, registered(f, &writes_def), NULL, NULL);
    struct pawl__metric *lag = registered(f, &lag_def);
    struct pawl__metric *query = registered(f, &query_def);

    pawl__counter_add(writes, 3);
    pawl__counter_add(writes, UINT32_MAX);
    pawl__gauge_set(series_of(f, lag, "a", "cpu"), 0.25);
    pawl__gauge_set(series_of(f, lag, "say \"no\"\\\n\xC3\xBC", ""), -HUGE_VAL);
    pawl__gauge_add(series_of(f, lag, "a", "cpu"), 1.5);
    pawl__histogram_observe(series_of(f, query, "a", NULL), 0.005); /* on the bound: below it */
    pawl__histogram_observe(series_of(f, query, "a", NULL), 0.0051);
    pawl__histogram_observe(series_of(f, query, "a", NULL), 100);
    pawl__histogram_observe(series_of(f, query, "a", NULL), (double)NAN);
    pawl__histogram_observe(series_of(f, query, "b", NULL), -1);
}

static void test_the_text_is_what_prometheus_reads(void **state)
{
    struct fixture *f = *state;

    fill(f);
    write_all(f);
    assert_string_equal(
        f->out.data,
        "# HELP consumer_wal_writes_total Entries written to the write-ahead log.\n"
        "# TYPE consumer_wal_writes_total counter\n"
        "consumer_wal_writes_total 4294967298\n"
        "# HELP checkpoint_lag_seconds Time since the cursor met the high-water mark,\\nby \\\\ "
        "agent.\n"
        "# TYPE checkpoint_lag_seconds gauge\n"
        "checkpoint_lag_seconds{agent=\"a\",data_type=\"cpu\"} 1.75\n"
        "checkpoint_lag_seconds{agent=\"say \\\"no\\\"\\\\\\n\xC3\xBC\",data_type=\"\"} -Inf\n"
        "# HELP poll_query_duration_seconds Time that one poll takes.\n"
        "# TYPE poll_query_duration_seconds histogram\n"
        "poll_query_duration_seconds_bucket{agent=\"a\",le=\"0.005\"} 1\n"
        "poll_query_duration_seconds_bucket{agent=\"a\",le=\"0.1\"} 2\n"
        "poll_query_duration_seconds_bucket{agent=\"a\",le=\"1\"} 2\n"
        "poll_query_duration_seconds_bucket{agent=\"a\",le=\"2.5\"} 2\n"
        "poll_query_duration_seconds_bucket{agent=\"a\",le=\"+Inf\"} 3\n"
        "poll_query_duration_seconds_sum{agent=\"a\"} 100.0101\n"
        "poll_query_duration_seconds_count{agent=\"a\"} 3\n"
        "poll_query_duration_seconds_bucket{agent=\"b\",le=\"0.005\"} 1\n"
        "poll_query_duration_seconds_bucket{agent=\"b\",le=\"0.1\"} 1\n"
        "poll_query_duration_seconds_bucket{agent=\"b\",le=\"1\"} 1\n"
        "poll_query_duration_seconds_bucket{agent=\"b\",le=\"2.5\"} 1\n"
        "poll_query_duration_seconds_bucket{agent=\"b\",le=\"+Inf\"} 1\n"
        "poll_query_duration_seconds_sum{agent=\"b\"} -1\n"
        "poll_query_duration_seconds_count{agent=\"b\"} 1\n");
}

static void test_promtool_has_nothing_to_complain_about(void **state)
{
    struct fixture *f = *state;

    fill(f);
    registered(f, &unused_def);
    write_all(f);
    const char *said = promtool_says(pawl__buf_view(&f->out));
    if (said == NULL) {
        skip(); /* package prometheus is not installed */
    }
    assert_string_equal(said, "");
    /* The control: it would complain. */
    said = promtool_says(pawl_view_of("# TYPE bad counter\nbad 1\n"));
    assert_non_null(strstr(said, "_total"));
    said = promtool_says(pawl_view_of("no metrics at all"));
    assert_true(said[0] != '\0');
}

static void test_wrong_descriptions_are_refused_by_name(void **state)
{
    struct fixture *f = *state;
    static const double falling[] = { 1, 1 };
    static const struct {
        struct pawl__metric_def def;
        const char *says;
    } wrong[] = {
        { { .name = "", .help = "x", .type = PAWL__GAUGE }, "metric name ''" },
        { { .name = "9lives", .help = "x", .type = PAWL__GAUGE }, "metric name '9lives'" },
        { { .name = "camelCase", .help = "x", .type = PAWL__GAUGE }, "metric name 'camelCase'" },
        { { .name = "a-b", .help = "x", .type = PAWL__GAUGE }, "metric name 'a-b'" },
        { { .name = "writes", .help = "x", .type = PAWL__COUNTER }, "'writes': counters end in" },
        { { .name = "x_total", .help = "x", .type = PAWL__GAUGE }, "'x_total': counters end in" },
        { { .name = "x_count", .help = "x", .type = PAWL__GAUGE }, "'x_count': '_count'" },
        { { .name = "x", .help = "", .type = PAWL__GAUGE }, "'x': no help" },
        { { .name = "x", .help = "\xFF", .type = PAWL__GAUGE }, "'x': no help" },
        { { .name = "x", .help = "x", .type = PAWL__GAUGE, .labels = { "a b" } }, "label 'a b'" },
        { { .name = "x", .help = "x", .type = PAWL__GAUGE, .labels = { "__a" } }, "label '__a'" },
        { { .name = "x", .help = "x", .type = PAWL__GAUGE, .labels = { "a", "a" } }, "'a' twice" },
        { { .name = "x", .help = "x", .type = PAWL__GAUGE, .bucket_count = 1 }, "0 to 0" },
        { { .name = "x", .help = "x", .type = PAWL__HISTOGRAM }, "1 to 32" },
        { { .name = "x",
            .help = "x",
            .type = PAWL__HISTOGRAM,
            .labels = { "le" },
            .buckets = seconds,
            .bucket_count = 1 },
          "label 'le'" },
        { { .name = "x",
            .help = "x",
            .type = PAWL__HISTOGRAM,
            .buckets = falling,
            .bucket_count = 2 },
          "bucket 2" },
        { { .name = "x",
            .help = "x",
            .type = PAWL__GAUGE,
            .series_max = PAWL__METRIC_SERIES_MAX + 1 },
          "series_max is 100001" },
    };
    struct pawl__metric *metric = NULL;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_status(pawl__metrics_register(f->metrics, &wrong[i].def, &metric, &f->error),
                      PAWL_INVALID,
                      &f->error);
        assert_message(&f->error, wrong[i].says);
    }
    assert_null(metric);
    registered(f, &writes_def);
    assert_status(pawl__metrics_register(f->metrics, &writes_def, &metric, &f->error),
                  PAWL_CONFLICT,
                  &f->error);
    assert_message(&f->error, "'consumer_wal_writes_total' is registered already");
}

static void test_labels_have_limits(void **state)
{
    struct fixture *f = *state;
    static const struct pawl__metric_def narrow_def = {
        .name = "narrow", .help = "x", .type = PAWL__GAUGE, .labels = { "a" }, .series_max = 2
    };
    struct pawl__metric *narrow = registered(f, &narrow_def);
    struct pawl__series *series = NULL;
    char longest[PAWL__METRIC_VALUE_MAX + 2];

    memset(longest, '"', sizeof(longest)); /* every byte escaped */
    longest[PAWL__METRIC_VALUE_MAX] = '\0';
    struct pawl__series *first = series_of(f, narrow, longest, NULL);
    longest[PAWL__METRIC_VALUE_MAX] = 'x';
    longest[PAWL__METRIC_VALUE_MAX + 1] = '\0';
    assert_status(pawl__metric_series(narrow, (const char *[]){ longest }, &series, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "metric 'narrow': the value of label 'a'");
    assert_status(pawl__metric_series(narrow, (const char *[]){ "\xFF" }, &series, &f->error),
                  PAWL_INVALID,
                  &f->error);
    series_of(f, narrow, "b", NULL);
    assert_status(pawl__metric_series(narrow, (const char *[]){ "c" }, &series, &f->error),
                  PAWL_NO_SPACE,
                  &f->error);
    assert_message(&f->error, "'narrow' has 2 combinations");
    assert_null(series);
    longest[PAWL__METRIC_VALUE_MAX] = '\0';
    assert_ptr_equal(series_of(f, narrow, longest, NULL), first); /* those that exist stay there */
    pawl__gauge_set(series, 1);
    pawl__gauge_add(series, 1);
    pawl__counter_add(NULL, 1);
    pawl__histogram_observe(NULL, 1);
}

static void test_the_registry_has_a_limit(void **state)
{
    struct fixture *f = *state;
    static struct pawl__metric_def defs[PAWL__METRICS_MAX + 1];
    static char names[PAWL__METRICS_MAX + 1][32];
    struct pawl__metric *metric = NULL;

    for (int i = 0; i <= PAWL__METRICS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "metric_%d", i);
        defs[i] = (struct pawl__metric_def){ .name = names[i], .help = "x", .type = PAWL__GAUGE };
        pawl_status status = pawl__metrics_register(f->metrics, &defs[i], &metric, &f->error);
        assert_int_equal(status, i < PAWL__METRICS_MAX ? PAWL_OK : PAWL_NO_SPACE);
    }
    assert_message(&f->error, "'metric_512': 512 are registered");
}

static void test_without_memory_nothing_is_half_registered(void **state)
{
    struct fixture *f = *state;

    FAULT_WALK (walk) {
        struct pawl__metrics *metrics = NULL;
        struct pawl__metric *metric = NULL;
        struct pawl__series *series = NULL;
        struct pawl__buf out = BUF_INIT(OUT_BYTES_MAX);
        pawl_status status = pawl__metrics_new(&metrics, &f->error);
        if (status == PAWL_OK) {
            status = pawl__metrics_register(metrics, &writes_def, &metric, &f->error);
        }
        if (status == PAWL_OK) {
            status = pawl__metrics_register(metrics, &query_def, &metric, &f->error);
        }
        if (status == PAWL_OK) {
            status = pawl__metric_series(metric, (const char *[]){ "a" }, &series, &f->error);
        }
        if (status == PAWL_OK) {
            status = pawl__metrics_write(metrics, &out, &f->error);
        }
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        pawl__buf_done(&out);
        pawl__metrics_free(metrics);
    }
    struct pawl__buf small = BUF_INIT(8);
    registered(f, &writes_def);
    assert_status(pawl__metrics_write(f->metrics, &small, &f->error), PAWL_INVALID, &f->error);
    pawl__buf_done(&small);
}

enum { THREADS = 4, ADDS = 20000 };

struct counting {
    struct pawl__thread thread;
    struct pawl__metric *query;
    struct pawl__series *writes;
    struct pawl__series *lag;
    int failures;
};

static void count_a_lot(void *context)
{
    struct counting *counting = context;
    struct pawl__series *query = NULL;

    counting->failures +=
        pawl__metric_series(counting->query, (const char *[]){ "shared" }, &query, NULL) != PAWL_OK;
    for (int i = 0; i < ADDS; i++) {
        pawl__counter_add(counting->writes, 1);
        pawl__gauge_add(counting->lag, i % 2 == 0 ? 3 : -2);
        pawl__histogram_observe(query, i % 4);
    }
}

static void test_threads_count_without_losing_one(void **state)
{
    struct fixture *f = *state;
    struct counting counting[THREADS];
    struct pawl__series *writes = series_of(f, registered(f, &writes_def), NULL, NULL);
    struct pawl__series *lag = series_of(f, registered(f, &lag_def), "a", "b");
    struct pawl__metric *query = registered(f, &query_def);

    for (int i = 0; i < THREADS; i++) {
        counting[i] = (struct counting){ .query = query, .writes = writes, .lag = lag };
        assert_ok(pawl__thread_start(
                      &counting[i].thread, "counting", count_a_lot, &counting[i], &f->error),
                  &f->error);
    }
    for (int i = 0; i < 50; i++) {
        write_all(f); /* reads while they count */
    }
    for (int i = 0; i < THREADS; i++) {
        pawl__thread_join(&counting[i].thread);
        assert_int_equal(counting[i].failures, 0);
    }
    write_all(f);
    assert_non_null(strstr(f->out.data, "consumer_wal_writes_total 80000\n"));
    assert_non_null(strstr(f->out.data, "{agent=\"a\",data_type=\"b\"} 40000\n"));
    assert_non_null(strstr(f->out.data, "_bucket{agent=\"shared\",le=\"1\"} 40000\n"));
    assert_non_null(strstr(f->out.data, "_sum{agent=\"shared\"} 120000\n"));
    assert_non_null(strstr(f->out.data, "_count{agent=\"shared\"} 80000\n"));
}

static void expect_joined(const char *const *texts, size_t count, const char *expected)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(OUT_BYTES_MAX);
    pawl_view views[3];

    assert_true(count <= COUNT_OF(views));
    for (size_t i = 0; i < count; i++) {
        views[i] = pawl_view_of(texts[i]);
    }
    pawl__metrics_join(views, count, &out);
    assert_string_equal(out.data == NULL ? "" : out.data, expected);
}

static void test_joined_texts_have_one_head_a_metric(void **state)
{
    static const char *const texts[] = {
        "# HELP a_total As.\n# TYPE a_total counter\na_total{store=\"x\"} 1\n"
        "# HELP b Bs.\n# TYPE b gauge\nb 2\n",
        "",
        "# HELP c Cs.\n# TYPE c gauge\nc 3\n"
        "# HELP a_total As.\n# TYPE a_total counter\na_total{store=\"y\"} 4\n",
    };

    (void)state;
    expect_joined(texts, 0, "");
    expect_joined(texts, 1, texts[0]);
    expect_joined(texts,
                  COUNT_OF(texts),
                  "# HELP a_total As.\n# TYPE a_total counter\n"
                  "a_total{store=\"x\"} 1\na_total{store=\"y\"} 4\n"
                  "# HELP b Bs.\n# TYPE b gauge\nb 2\n"
                  "# HELP c Cs.\n# TYPE c gauge\nc 3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_text_is_what_prometheus_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_promtool_has_nothing_to_complain_about, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_wrong_descriptions_are_refused_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_labels_have_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_registry_has_a_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_without_memory_nothing_is_half_registered, setup, teardown),
        cmocka_unit_test(test_joined_texts_have_one_head_a_metric),
        cmocka_unit_test_setup_teardown(test_threads_count_without_losing_one, setup, teardown),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
