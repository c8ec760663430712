#include "lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/log/log.h"
#include "base/log/log_write.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"

/* 2026-01-29T10:20:30.123456Z */
#define AT_US (INT64_C(1769682030) * US_PER_S + 123456)

static void line_of(struct pawl__buf *line,
                    enum pawl__log_format format,
                    const pawl_log_field *fields,
                    size_t count)
{
    const pawl_log_event event = { sizeof(event),   PAWL_LOG_INFO, AT_US,
                                   "ledger opened", fields,        count };

    pawl__buf_clear(line);
    pawl__log_line(&event, format, line);
}

static void test_both_forms_read_as_documented(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(PAWL__LOG_LINE_MAX);
    const pawl_log_field fields[] = {
        LOG_TEXT("path", "runs/a.db"), LOG_INTEGER("left", -3),  LOG_NATURAL("events", UINT64_MAX),
        LOG_REAL("rate", 0.5),         LOG_BOOLEAN("new", true),
    };

    line_of(&line, PAWL__LOG_LOGFMT, fields, COUNT_OF(fields));
    assert_string_equal(line.data,
                        "time=2026-01-29T10:20:30.123456Z level=info msg=\"ledger opened\" "
                        "path=runs/a.db left=-3 events=18446744073709551615 rate=0.5 new=true\n");
    line_of(&line, PAWL__LOG_JSON, fields, COUNT_OF(fields));
    assert_string_equal(line.data,
                        "{\"time\":\"2026-01-29T10:20:30.123456Z\",\"level\":\"info\","
                        "\"msg\":\"ledger opened\",\"path\":\"runs/a.db\",\"left\":-3,"
                        "\"events\":18446744073709551615,\"rate\":0.5,\"new\":true}\n");
}

static void test_whatever_a_value_holds_it_stays_one_line(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(PAWL__LOG_LINE_MAX);
    static const struct {
        const char *value;
        const char *logfmt;
        const char *json;
    } cases[] = {
        { "plain", "v=plain", "\"v\":\"plain\"" },
        { "", "v=\"\"", "\"v\":\"\"" },
        { "two words", "v=\"two words\"", "\"v\":\"two words\"" },
        { "a=b", "v=\"a=b\"", "\"v\":\"a=b\"" },
        { "say \"no\"", "v=\"say \\\"no\\\"\"", "\"v\":\"say \\\"no\\\"\"" },
        { "C:\\x", "v=\"C:\\\\x\"", "\"v\":\"C:\\\\x\"" },
        { "a\nb\r\t", "v=\"a\\nb\\r\\t\"", "\"v\":\"a\\nb\\r\\t\"" },
        { "\x1b[31m", "v=\"\\u001b[31m\"", "\"v\":\"\\u001b[31m\"" },
        { "\x7f", "v=\"\\u007f\"", "\"v\":\"\\u007f\"" },
        { "\xC2\x9B", "v=\"\\u009b\"", "\"v\":\"\\u009b\"" }, /* CSI in one byte */
        { "gr\xC3\xBC\xC3\x9F", "v=gr\xC3\xBC\xC3\x9F", "\"v\":\"gr\xC3\xBC\xC3\x9F\"" },
        { "\xF0\x9F\x90\xA7", "v=\xF0\x9F\x90\xA7", "\"v\":\"\xF0\x9F\x90\xA7\"" },
        { "a\xFF\xC3", "v=a\xEF\xBF\xBD\xEF\xBF\xBD", "\"v\":\"a\xEF\xBF\xBD\xEF\xBF\xBD\"" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const pawl_log_field field = LOG_TEXT("v", cases[i].value);
        line_of(&line, PAWL__LOG_LOGFMT, &field, 1);
        assert_non_null(strstr(line.data, cases[i].logfmt));
        assert_ptr_equal(strchr(line.data, '\n'), line.data + line.len - 1);
        line_of(&line, PAWL__LOG_JSON, &field, 1);
        assert_non_null(strstr(line.data, cases[i].json));
    }
    const pawl_log_field nul = LOG_VIEW("v", ((pawl_view){ "a\0b", 3 }));
    line_of(&line, PAWL__LOG_JSON, &nul, 1);
    assert_non_null(strstr(line.data, "\"v\":\"a\\u0000b\""));
    const pawl_log_field odd[] = { LOG_REAL("a \"b", (double)NAN), LOG_REAL("c", -HUGE_VAL) };
    line_of(&line, PAWL__LOG_LOGFMT, odd, 2);
    assert_non_null(strstr(line.data, " a__b=NaN c=-Inf\n"));
    line_of(&line, PAWL__LOG_JSON, odd, 2);
    assert_non_null(strstr(line.data, "\"a__b\":null,\"c\":null}\n"));
}

static void test_a_long_value_is_cut_and_says_so(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(PAWL__LOG_LINE_MAX);
    char text[PAWL__LOG_VALUE_MAX + 2];

    memset(text, 'x', sizeof(text));
    text[PAWL__LOG_VALUE_MAX] = '\0';
    pawl_log_field field = LOG_TEXT("v", text);
    line_of(&line, PAWL__LOG_LOGFMT, &field, 1);
    assert_null(strstr(line.data, "..."));
    text[PAWL__LOG_VALUE_MAX] = 'x';
    text[PAWL__LOG_VALUE_MAX + 1] = '\0';
    field = LOG_TEXT("v", text);
    line_of(&line, PAWL__LOG_LOGFMT, &field, 1);
    assert_non_null(strstr(line.data, "xxx...(1025 bytes)\n"));
    memcpy(text + PAWL__LOG_VALUE_MAX - 1, "\xC3\xBC", 2); /* the limit falls into a character */
    line_of(&line, PAWL__LOG_JSON, &field, 1);
    assert_non_null(strstr(line.data, "xxx...(1025 bytes)\"}\n"));
}

static void test_what_does_not_fit_the_line_is_counted(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(PAWL__LOG_LINE_MAX);
    char control[PAWL__LOG_VALUE_MAX + 1];
    pawl_log_field fields[PAWL__LOG_FIELDS_MAX + 1];

    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        fields[i] = LOG_BOOLEAN("yes", true);
    }
    line_of(&line, PAWL__LOG_LOGFMT, fields, PAWL__LOG_FIELDS_MAX);
    assert_null(strstr(line.data, "fields_dropped"));
    line_of(&line, PAWL__LOG_LOGFMT, fields, PAWL__LOG_FIELDS_MAX + 1);
    assert_non_null(strstr(line.data, "yes=true fields_dropped=1\n"));

    memset(control, '\x01', sizeof(control) - 1); /* six bytes each in JSON */
    control[sizeof(control) - 1] = '\0';
    for (size_t i = 0; i < 3; i++) {
        fields[i] = LOG_TEXT("noise", control);
    }
    line_of(&line, PAWL__LOG_JSON, fields, 3);
    assert_non_null(strstr(line.data, "\\u0001...(1024 bytes)\",\"fields_dropped\":2}\n"));
    json_t *json = json_loads(line.data, 0, NULL);
    assert_non_null(json);
    json_decref(json);
}

/* Any bytes in any number of fields: one line within the limit that a JSON parser takes. */
static void test_random_events_are_always_well_formed(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(PAWL__LOG_LINE_MAX);
    static char bytes[4][3000];
    pawl_log_field fields[40];
    uint64_t seed = 7;

    for (int round = 0; round < 2000; round++) {
        size_t count = seed % COUNT_OF(fields);
        for (size_t i = 0; i < count; i++) {
            char *to = bytes[i % COUNT_OF(bytes)];
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            size_t len = (seed >> 40) % (i % 5 == 0 ? sizeof(bytes[0]) : 60);
            for (size_t j = 0; j < len; j++) {
                seed = seed * 6364136223846793005U + 1442695040888963407U;
                to[j] = (char)(seed >> 56);
            }
            fields[i] = LOG_VIEW(i % 2 == 0 ? "a" : "key \x01\xFF", ((pawl_view){ to, len }));
        }
        line_of(&line, PAWL__LOG_JSON, fields, count);
        assert_true(line.len <= PAWL__LOG_LINE_MAX);
        json_t *json = json_loadb(line.data, line.len, JSON_ALLOW_NUL, NULL);
        assert_non_null(json);
        json_decref(json);
        line_of(&line, PAWL__LOG_LOGFMT, fields, count);
        assert_true(line.len <= PAWL__LOG_LINE_MAX);
        assert_true(pawl__view_is_utf8(pawl__buf_view(&line)));
        assert_ptr_equal(memchr(line.data, '\n', line.len), line.data + line.len - 1);
    }
}

struct seen {
    int count;
    pawl_log_level level;
    char message[64];
    size_t field_count;
    int64_t first;
};

static void remember(void *context, const pawl_log_event *event)
{
    struct seen *seen = context;

    seen->count++;
    seen->level = event->level;
    seen->field_count = event->field_count;
    seen->first = event->field_count > 0 ? event->fields[0].value.integer : 0;
    strncpy(seen->message, event->message, sizeof(seen->message) - 1);
    errno = EIO;
}

static int evaluated;

static int64_t evaluate(void)
{
    return ++evaluated;
}

static void test_the_library_is_silent_until_a_sink_is_set(void **state)
{
    (void)state;
    struct seen seen = { 0 };

    LOG_ERROR("nobody listens", LOG_INTEGER("n", evaluate()));
    assert_int_equal(evaluated, 0);
    pawl_set_log_sink(remember, &seen, PAWL_LOG_INFO);
    LOG_DEBUG("not wanted", LOG_INTEGER("n", evaluate()));
    assert_int_equal(evaluated, 0); /* and not computed either */
    assert_int_equal(seen.count, 0);
    errno = ENOENT;
    LOG_INFO("wanted", LOG_INTEGER("n", evaluate()), LOG_TEXT("t", NULL));
    assert_int_equal(errno, ENOENT);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.level, PAWL_LOG_INFO);
    assert_int_equal(seen.field_count, 2);
    assert_int_equal(seen.first, 1);
    LOG_WARNING("without fields");
    assert_string_equal(seen.message, "without fields");
    assert_int_equal(seen.field_count, 0);
    pawl_set_log_sink(NULL, NULL, PAWL_LOG_DEBUG);
    LOG_ERROR("nobody listens any more");
    assert_int_equal(seen.count, 2);
    assert_string_equal(pawl_log_level_name(PAWL_LOG_WARNING), "warning");
    assert_string_equal(pawl_log_level_name((pawl_log_level)9), "unknown");
}

enum { THREADS = 6, LINES = 300 };

static void log_lines(void *context)
{
    char padding[400];

    memset(padding, 'a' + *(int *)context, sizeof(padding) - 1);
    padding[sizeof(padding) - 1] = '\0';
    for (int i = 0; i < LINES; i++) {
        LOG_INFO("from a thread",
                 LOG_INTEGER("thread", *(int *)context),
                 LOG_INTEGER("line", i),
                 LOG_TEXT("padding", padding));
    }
}

/* A sink that comes and goes while others log: never called after it was taken away. */
static void gone(void *context, const pawl_log_event *event)
{
    (void)event;
    atomic_fetch_add((atomic_int *)context, 1);
}

static void assert_whole_lines(FILE *file)
{
    int next[THREADS] = { 0 };
    char *text = NULL;
    size_t cap = 0;
    int lines = 0;

    for (ssize_t len; (len = getline(&text, &cap, file)) > 0; lines++) {
        json_t *json = json_loads(text, 0, NULL);
        assert_non_null(json);
        int thread = (int)json_integer_value(json_object_get(json, "thread"));
        assert_int_equal(json_integer_value(json_object_get(json, "line")), next[thread]++);
        json_decref(json);
    }
    free(text);
    assert_int_equal(lines, THREADS * LINES);
}

static void test_threads_write_whole_lines_in_their_order(void **state)
{
    (void)state;
    struct pawl__log_writer writer;
    struct pawl__thread threads[THREADS] = { 0 };
    int numbers[THREADS];
    pawl_error error = PAWL_ERROR_INIT;
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_int_equal(fcntl(fileno(file), F_SETFL, O_APPEND), 0);
    pawl__log_writer_init(&writer, fileno(file));
    assert_int_equal(writer.format, PAWL__LOG_JSON); /* no terminal */
    pawl_set_log_sink(pawl__log_writer_sink, &writer, PAWL_LOG_DEBUG);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_ok(pawl__thread_start(&threads[i], "logger", log_lines, &numbers[i], &error),
                  &error);
    }
    for (int i = 0; i < THREADS; i++) {
        pawl__thread_join(&threads[i]);
    }
    pawl_set_log_sink(NULL, NULL, PAWL_LOG_DEBUG);
    assert_int_equal(atomic_load(&writer.dropped), 0);
    rewind(file);
    assert_whole_lines(file);
    fclose(file);
}

static void test_a_sink_that_was_taken_away_is_not_called(void **state)
{
    (void)state;
    struct pawl__thread thread = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    int number = 1;

    assert_ok(pawl__thread_start(&thread, "logger", log_lines, &number, &error), &error);
    for (int i = 0; i < 200; i++) {
        atomic_int calls = 0; /* goes out of scope: a late call would be seen by the sanitizers */
        pawl_set_log_sink(gone, &calls, PAWL_LOG_DEBUG);
        pawl_set_log_sink(NULL, NULL, PAWL_LOG_DEBUG);
    }
    pawl__thread_join(&thread);
}

static void test_a_line_that_cannot_be_written_is_counted(void **state)
{
    (void)state;
    struct pawl__log_writer writer;

    pawl__log_writer_init(&writer, -1);
    pawl_set_log_sink(pawl__log_writer_sink, &writer, PAWL_LOG_DEBUG);
    LOG_INFO("into nothing");
    pawl_set_log_sink(NULL, NULL, PAWL_LOG_DEBUG);
    assert_int_equal(atomic_load(&writer.dropped), 1);
}

static void test_a_terminal_gets_logfmt(void **state)
{
    (void)state;
    struct pawl__log_writer writer;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);

    if (terminal < 0) {
        skip();
    }
    pawl__log_writer_init(&writer, terminal);
    assert_int_equal(writer.format, PAWL__LOG_LOGFMT);
    close(terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_forms_read_as_documented),
        cmocka_unit_test(test_whatever_a_value_holds_it_stays_one_line),
        cmocka_unit_test(test_a_long_value_is_cut_and_says_so),
        cmocka_unit_test(test_what_does_not_fit_the_line_is_counted),
        cmocka_unit_test(test_random_events_are_always_well_formed),
        cmocka_unit_test(test_the_library_is_silent_until_a_sink_is_set),
        cmocka_unit_test(test_threads_write_whole_lines_in_their_order),
        cmocka_unit_test(test_a_sink_that_was_taken_away_is_not_called),
        cmocka_unit_test(test_a_line_that_cannot_be_written_is_counted),
        cmocka_unit_test(test_a_terminal_gets_logfmt),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
