#include "lib/check.h"

#include <pawl/app.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/fs.h"
#include "config/config.h"
#include "lib/fault.h"

struct fixture {
    char dir[64];
    char file[80];
    pawl_error error;
    struct pawl__config *config;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ .dir = "/tmp/pawl-config-XXXXXX" };
    if (mkdtemp(fixture.dir) == NULL) {
        return -1;
    }
    snprintf(fixture.file, sizeof(fixture.file), "%s/pawl.yaml", fixture.dir);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    pawl__config_free(f->config);
    unlink(f->file);
    return rmdir(f->dir);
}

static void put_bytes(struct fixture *f, const char *bytes, size_t len)
{
    assert_ok(pawl__fs_replace(f->file, (pawl_view){ bytes, len }, &f->error), &f->error);
}

static void put_text(struct fixture *f, const char *text)
{
    put_bytes(f, text, strlen(text));
}

static const char *home_only[] = { "HOME=/home/u", NULL };
static const char *const nowhere[] = { NULL };

static pawl_status load_with(struct fixture *f, struct pawl__config_sources sources)
{
    pawl__config_free(f->config);
    f->config = NULL;
    if (sources.environment == NULL) {
        sources.environment = home_only;
    }
    if (sources.search == NULL) {
        sources.search = nowhere;
    }
    return pawl__config_load(&sources, &f->config, &f->error);
}

static pawl_status load_text(struct fixture *f, const char *text)
{
    put_text(f, text);
    return load_with(f, (struct pawl__config_sources){ .file = f->file });
}

/* The file is refused and the message says `expected`, behind the file's name. */
static void assert_refused(struct fixture *f, const char *text, const char *expected)
{
    char message[PAWL_ERROR_MESSAGE_SIZE];

    assert_status(load_text(f, text), PAWL_INVALID, &f->error);
    snprintf(message, sizeof(message), "%s%s", f->file, expected);
    assert_message(&f->error, message);
    assert_null(f->config);
}

static void assert_origin(struct fixture *f, enum pawl__setting_id id, const char *expected)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(300);

    pawl__config_add_origin(f->config, id, &buf);
    assert_string_equal(buf.data, expected);
}

static void test_without_any_source_the_defaults_hold(void **state)
{
    struct fixture *f = *state;

    assert_ok(load_with(f, (struct pawl__config_sources){ 0 }), &f->error);
    assert_string_equal(pawl__config_text(f->config, PAWL__DATA), "/home/u/.local/share/pawl");
    assert_string_equal(pawl__config_text(f->config, PAWL__DATABASE_URL), "");
    assert_int_equal(pawl__config_number(f->config, PAWL__STORE_BUSY_TIMEOUT), 5 * NS_PER_S);
    assert_int_equal(pawl__config_number(f->config, PAWL__STORE_FREE_SPACE_MIN), 256 << 20);
    assert_int_equal(pawl__config_number(f->config, PAWL__STORE_FREE_SPACE_MIN),
                     ((pawl_app_options)PAWL_APP_OPTIONS_INIT).free_space_min);
    assert_int_equal(pawl__config_number(f->config, PAWL__STORE_MEMORY_MAX), PAWL_APP_MEMORY_MAX);
    assert_null(pawl__config_file(f->config));
    assert_origin(f, PAWL__DATA, "default");
}

static void test_flags_beat_the_environment_which_beats_the_file(void **state)
{
    struct fixture *f = *state;
    const char *environment[] = { "HOME=/h", "PAWL_LOG_FORMAT=json", "PAWL_LOG_LEVEL=error", NULL };
    const struct pawl__config_flag flags[] = {
        { PAWL__LOG_LEVEL, "info" }, { PAWL__LOG_LEVEL, "debug" }, /* the last one wins */
    };
    char place[128];

    put_text(f, "# c\nlog:\n  level: warning\n  format: logfmt\nstore: {busy_timeout: 7s}\n");
    assert_ok(load_with(f,
                        (struct pawl__config_sources){ .file = f->file,
                                                       .environment = environment,
                                                       .flags = flags,
                                                       .flags_count = 2 }),
              &f->error);
    assert_string_equal(pawl__config_text(f->config, PAWL__LOG_LEVEL), "debug");
    assert_origin(f, PAWL__LOG_LEVEL, "--log-level");
    assert_string_equal(pawl__config_text(f->config, PAWL__LOG_FORMAT), "json");
    assert_int_equal(pawl__config_number(f->config, PAWL__LOG_FORMAT), 2);
    assert_origin(f, PAWL__LOG_FORMAT, "environment variable PAWL_LOG_FORMAT");
    assert_int_equal(pawl__config_number(f->config, PAWL__STORE_BUSY_TIMEOUT), 7 * NS_PER_S);
    snprintf(place, sizeof(place), "%s:5", f->file);
    assert_origin(f, PAWL__STORE_BUSY_TIMEOUT, place);
    assert_int_equal(pawl__config_origin(f->config, PAWL__STORE_BUSY_TIMEOUT).line, 5);
    assert_string_equal(pawl__config_file(f->config), f->file);
}

static void test_our_variable_beats_the_known_one_and_an_empty_one_is_none(void **state)
{
    struct fixture *f = *state;
    const char *both[] = {
        "HOME=/h", "PAWL_DATABASE_URL=postgres://a", "DATABASE_URL=postgres://b", NULL
    };
    const char *one[] = { "HOME=/h", "DATABASE_URL=postgres://u:pw@b", "PAWL_DATABASE_URL=", NULL };
    AUTO(pawl__buf_done) struct pawl__buf shown = BUF_INIT(300);

    assert_ok(load_with(f, (struct pawl__config_sources){ .environment = both }), &f->error);
    assert_string_equal(pawl__config_text(f->config, PAWL__DATABASE_URL), "postgres://a");
    assert_origin(f, PAWL__DATABASE_URL, "environment variable PAWL_DATABASE_URL");
    assert_ok(load_with(f, (struct pawl__config_sources){ .environment = one }), &f->error);
    assert_string_equal(pawl__config_text(f->config, PAWL__DATABASE_URL), "postgres://u:pw@b");
    assert_origin(f, PAWL__DATABASE_URL, "environment variable DATABASE_URL");
    pawl__config_add_shown(f->config, PAWL__DATABASE_URL, &shown);
    assert_string_equal(shown.data, "postgres://u:***@b");
}

static void test_a_flag_can_unset_what_may_be_unset(void **state)
{
    struct fixture *f = *state;
    const struct pawl__config_flag flag = { PAWL__DATABASE_URL, "" };

    put_text(f, "database_url: postgres://a\n");
    assert_ok(
        load_with(
            f, (struct pawl__config_sources){ .file = f->file, .flags = &flag, .flags_count = 1 }),
        &f->error);
    assert_string_equal(pawl__config_text(f->config, PAWL__DATABASE_URL), "");
    assert_origin(f, PAWL__DATABASE_URL, "--database-url");
}

static void test_the_file_named_by_flag_then_variable_then_found_is_read(void **state)
{
    struct fixture *f = *state;
    char variable[128];
    const char *environment[] = { "HOME=/h", variable, NULL };
    const char *const search[] = { "/nonexistent/pawl.yaml", f->file, NULL };

    put_text(f, "log: {level: error}\n");
    snprintf(variable, sizeof(variable), "PAWL_CONFIG=%s", f->file);
    assert_ok(load_with(f, (struct pawl__config_sources){ .environment = environment }), &f->error);
    assert_string_equal(pawl__config_file(f->config), f->file);
    assert_ok(load_with(f, (struct pawl__config_sources){ .search = search }), &f->error);
    assert_string_equal(pawl__config_file(f->config), f->file);
    assert_string_equal(pawl__config_text(f->config, PAWL__LOG_LEVEL), "error");
    snprintf(variable, sizeof(variable), "PAWL_CONFIG=%s/other", f->dir);
    assert_status(
        load_with(f, (struct pawl__config_sources){ .environment = environment, .search = search }),
        PAWL_INVALID,
        &f->error);
    assert_message(&f->error, "/other': No such file or directory");
    assert_ok(
        load_with(f, (struct pawl__config_sources){ .file = f->file, .environment = environment }),
        &f->error);
}

static void test_a_path_in_a_file_starts_beside_the_file(void **state)
{
    struct fixture *f = *state;
    const struct pawl__config_flag flag = { PAWL__DATA, "mine" };
    char expected[128];

    assert_ok(load_text(f, "data: here/data\n"), &f->error);
    snprintf(expected, sizeof(expected), "%s/here/data", f->dir);
    assert_string_equal(pawl__config_text(f->config, PAWL__DATA), expected);
    assert_ok(load_text(f, "data: /abs\n"), &f->error);
    assert_string_equal(pawl__config_text(f->config, PAWL__DATA), "/abs");
    assert_ok(load_text(f, "data: ~/d\n"), &f->error);
    assert_string_equal(pawl__config_text(f->config, PAWL__DATA), "/home/u/d");
    assert_ok(load_with(f, (struct pawl__config_sources){ .flags = &flag, .flags_count = 1 }),
              &f->error);
    assert_string_equal(pawl__config_text(f->config, PAWL__DATA), "mine");
}

static void test_without_a_home_only_who_needs_it_fails(void **state)
{
    struct fixture *f = *state;
    const char *empty[] = { NULL };
    const struct pawl__config_flag flag = { PAWL__DATA, "/d" };

    assert_status(load_with(f, (struct pawl__config_sources){ .environment = empty }),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "data: '~/.local/share/pawl' needs the environment variable HOME");
    assert_ok(load_with(f,
                        (struct pawl__config_sources){
                            .environment = empty, .flags = &flag, .flags_count = 1 }),
              &f->error);
}

static void test_a_mistyped_variable_is_refused_and_a_foreign_one_left_alone(void **state)
{
    struct fixture *f = *state;
    const char *typo[] = { "HOME=/h", "PAWL_LOG_LEVL=debug", NULL };
    const char *foreign[] = { "HOME=/h",
                              "PAWL_SERVICE_HOST=10.0.0.1",
                              "PAWL_PORT=tcp://10.0.0.1:80",
                              "PAWL_FAILPOINTS=x",
                              "PAWL_",
                              "PAWL",
                              "PAWL_PATH=/x",
                              NULL };

    assert_status(load_with(f, (struct pawl__config_sources){ .environment = typo }),
                  PAWL_INVALID,
                  &f->error);
    assert_message(
        &f->error,
        "environment variable PAWL_LOG_LEVL: is unknown; did you mean 'PAWL_LOG_LEVEL'?");
    assert_ok(load_with(f, (struct pawl__config_sources){ .environment = foreign }), &f->error);
}

static void test_empty_files_are_fine(void **state)
{
    static const char *const texts[] = {
        "",     "\n",        "# nothing\n",         "---\n",           "---\n...\n",
        "{}\n", "log: {}\n", "\xEF\xBB\xBF# BOM\n", "%YAML 1.1\n---\n"
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_ok(load_text(f, texts[i]), &f->error);
        assert_string_equal(pawl__config_file(f->config), f->file);
    }
}

static void test_a_broken_file_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } bad[] = {
        { "data: /d\n\nlog:\n  level: info\n\n  lvel: x\n",
          ":6: unknown key 'lvel'; did you mean 'log.level'?" },
        { "dta: x\n", ":1: unknown key 'dta'; did you mean 'data'?" },
        { "\nzzzzzzzz: 1\n", ":2: unknown key 'zzzzzzzz'" },
        { "log.level: info\n", ":1: unknown key 'log.level'; a key has no dots" },
        { "log:\n  level: info\n  level: error\n", ":3: log.level: is set already, on line 2" },
        { "log: {level: info}\ndata: /d\nlog: {format: json}\n",
          ":3: log: is there already, on line 1" },
        { "data: /d\nlog:\n  level:\n    - a\n",
          ":3: log.level: is a list where one value belongs; allowed: one of debug" },
        { "log:\n  level: {a: b}\n", ":2: log.level: is a section where one value belongs" },
        { "log: info\n",
          ":1: log: is a value where a section belongs; write 'level: ...' indented below it" },
        { "log: [a]\n", ":1: log: is a list where a section belongs" },
        { "log:\n", ":1: log: is a value where a section belongs" },
        { "data: &a /d\n", ":1: data: has an anchor, alias or tag" },
        { "a: &a x\ndata: *a\n", ":1: a: has an anchor" },
        { "data: *a\n", ":1: data: has an anchor, alias or tag" },
        { "data: !!str x\n", ":1: data: has an anchor, alias or tag" },
        { "log:\n  level: info\n  <<: {format: json}\n", ":3: unknown key '<<'" },
        { "- a\n- b\n", ":1: is a list; write 'key: value' lines" },
        { "\n\nfoo\n", ":3: is a value; write 'key: value' lines" },
        { "data: /d\n---\ndata: /e\n", ":2: has a second document" },
        { "? [a, b]\n: c\n", ":1: a key is a list" },
        { "? {a: b}\n: c\n", ":1: a key is a section" },
        { "&x data: /d\n", ":1: a key is a value or has an anchor or tag" },
        { "data: /d\n\n  foo: : {\n", ":3: is not YAML: mapping values are not allowed" },
        { "data: /d\nlog:\n\tlevel: x\n",
          ":3: is not YAML: found character that cannot start any token" },
        { "data: \"unfinished\n", ":2: is not YAML" },
        { "data: /d\nlog: {level: info\n", ":3: is not YAML" },
        { "data: \"a\\0b\"\n", ":1: data: the value has a NUL character in it" },
        { "\"data\\0x\": a\n", ":1: unknown key" },
        { "data: a\x01\n", ":1: is not YAML: control characters are not allowed" },
        { "log:\n  level: info\n  format: \xFF\n", ":3: is not UTF-8" },
        { "data: ''\n", ":1: data: the value is empty; allowed: a path" },
        { "data:\n", ":1: data: the value is empty" },
        { "store:\n  busy_timeout: 5000\n",
          ":2: store.busy_timeout: '5000' has no unit; write 500ms" },
        { "store:\n  busy_timeout: 2h\n",
          ":2: store.busy_timeout: '2h' is out of range; allowed: a duration from 0s to 1h" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_refused(f, bad[i].text, bad[i].message);
    }
}

static void test_a_nul_byte_in_the_file_is_refused(void **state)
{
    struct fixture *f = *state;

    put_bytes(f, "data: /d\nlog:\0\n", 15);
    assert_status(
        load_with(f, (struct pawl__config_sources){ .file = f->file }), PAWL_INVALID, &f->error);
    assert_message(&f->error, ":2: has a NUL character in it");
}

static void test_a_file_is_read_up_to_its_limit_and_no_further(void **state)
{
    struct fixture *f = *state;
    char *text = malloc(PAWL__CONFIG_BYTES_MAX + 1);

    assert_non_null(text);
    memset(text, '#', PAWL__CONFIG_BYTES_MAX + 1);
    put_bytes(f, text, PAWL__CONFIG_BYTES_MAX);
    assert_ok(load_with(f, (struct pawl__config_sources){ .file = f->file }), &f->error);
    put_bytes(f, text, PAWL__CONFIG_BYTES_MAX + 1);
    assert_status(
        load_with(f, (struct pawl__config_sources){ .file = f->file }), PAWL_INVALID, &f->error);
    assert_message(&f->error, "has more than 65536 bytes");
    free(text);
}

/* A bomb must be refused at once, however deep or wide it is. */
static void test_yaml_bombs_are_refused(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__buf_done) struct pawl__buf deep = BUF_INIT(PAWL__CONFIG_BYTES_MAX);

    pawl__buf_add_text(&deep, "data: ");
    for (int i = 0; i < 60000; i++) {
        pawl__buf_add_char(&deep, '[');
    }
    put_bytes(f, deep.data, deep.len);
    assert_status(
        load_with(f, (struct pawl__config_sources){ .file = f->file }), PAWL_INVALID, &f->error);
    assert_refused(f,
                   "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                   "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\ndata: *c\n",
                   ":1: a: has an anchor");
    pawl__buf_clear(&deep);
    for (int i = 0; i < 20000; i++) {
        pawl__buf_add_text(&deep, "\n ");
    }
    pawl__buf_add_text(&deep, "? ? ? ? ? ? ? ? a\n");
    put_bytes(f, deep.data, deep.len);
    assert_status(
        load_with(f, (struct pawl__config_sources){ .file = f->file }), PAWL_INVALID, &f->error);
}

static void test_what_is_no_readable_file_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_status(
        load_with(f, (struct pawl__config_sources){ .file = f->dir }), PAWL_INVALID, &f->error);
    assert_message(&f->error, "Is a directory");
    assert_status(
        load_with(f, (struct pawl__config_sources){ .file = f->file }), PAWL_INVALID, &f->error);
    assert_message(&f->error, "No such file or directory");
    const char *const search[] = { f->dir, NULL }; /* found, and still no file */
    assert_status(
        load_with(f, (struct pawl__config_sources){ .search = search }), PAWL_INVALID, &f->error);
    assert_status(
        load_with(f, (struct pawl__config_sources){ .file = "" }), PAWL_INVALID, &f->error);
}

static void test_a_file_without_permission_is_denied(void **state)
{
    struct fixture *f = *state;
    bool root = geteuid() == 0;

    put_text(f, "data: /d\n");
    assert_int_equal(chmod(f->file, 0), 0);
    if (root) { /* nothing is denied to root */
        assert_int_equal(chmod(f->dir, 0755), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    pawl_status status = load_with(f, (struct pawl__config_sources){ .file = f->file });
    if (root) {
        assert_int_equal(seteuid(0), 0);
    }
    assert_status(status, PAWL_DENIED, &f->error);
    assert_message(&f->error, "pawl.yaml': Permission denied");
}

static void collect(void *context, const pawl_error *problem)
{
    pawl__buf_add_format(context,
                         "%s\n",
                         strrchr(problem->message, '/') == NULL
                             ? problem->message
                             : strrchr(problem->message, '/') + 1);
}

static void test_every_problem_is_reported_and_the_first_returned(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__buf_done) struct pawl__buf all = BUF_INIT(4000);
    const char *environment[] = { "HOME=/h", "PAWL_STORE_BUSY_TIMEOUT=soon", "PAWL_DATE=/d", NULL };
    const struct pawl__config_flag flag = { PAWL__LOG_LEVEL, "loud" };
    struct pawl__config_sources sources = { .file = f->file,
                                            .environment = environment,
                                            .flags = &flag,
                                            .flags_count = 1,
                                            .problem = collect,
                                            .problem_context = &all };

    /* No HOME, but a default that needs one is no problem of somebody who has others. */
    environment[0] = "USER=u";
    put_text(f, "x: [1, {a: b}]\nlog: {lvl: a, level: [x]}\n");
    assert_status(load_with(f, sources), PAWL_INVALID, &f->error);
    assert_string_equal(
        all.data,
        "pawl.yaml:1: unknown key 'x'\n"
        "pawl.yaml:2: unknown key 'lvl'; did you mean 'log.level'?\n"
        "pawl.yaml:2: log.level: is a list where one value belongs; allowed: one of debug, info,"
        " warning, error\n"
        "environment variable PAWL_STORE_BUSY_TIMEOUT: 'soon' is no duration; write 500ms, 30s,"
        " 5m, 2h or 7d; allowed: a duration from 0s to 1h\n"
        "environment variable PAWL_DATE: is unknown; did you mean 'PAWL_DATA'?\n"
        "--log-level: 'loud' is unknown; allowed: one of debug, info, warning, error\n");
    assert_message(&f->error, "pawl.yaml:1: unknown key 'x'");
}

static void test_allocation_failures_are_reported_and_leak_nothing(void **state)
{
    static const char *const texts[] = {
        "data: d\nlog: {level: info, format: json}\nstore:\n  busy_timeout: 1s\n",
        "dta: x\nlog: {level: [a]}\nstore: {busy_timeout: x}\n",
        "store: {busy_timeout: x}\n",
    };
    struct fixture *f = *state;
    const char *environment[] = { "HOME=/h", "DATABASE_URL=postgres://x", "PAWL_LOG_LEVL=x", NULL };
    const struct pawl__config_flag flag = { PAWL__LOG_LEVEL, "debug" };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        environment[2] = i == 0 ? NULL : "PAWL_LOG_LEVL=x";
        put_text(f, texts[i]);
        FAULT_WALK (walk) {
            struct pawl__config_sources sources = {
                .file = f->file, .environment = environment, .flags = &flag, .flags_count = 1
            };
            pawl_status status = load_with(f, sources);
            pawl_status expected = fault_fired() ? PAWL_NOMEM : i == 0 ? PAWL_OK : PAWL_INVALID;

            fault_disarm();
            assert_status(status, expected, &f->error);
            assert_true((f->config != NULL) == (status == PAWL_OK));
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_without_any_source_the_defaults_hold),
        TEST(test_flags_beat_the_environment_which_beats_the_file),
        TEST(test_our_variable_beats_the_known_one_and_an_empty_one_is_none),
        TEST(test_a_flag_can_unset_what_may_be_unset),
        TEST(test_the_file_named_by_flag_then_variable_then_found_is_read),
        TEST(test_a_path_in_a_file_starts_beside_the_file),
        TEST(test_without_a_home_only_who_needs_it_fails),
        TEST(test_a_mistyped_variable_is_refused_and_a_foreign_one_left_alone),
        TEST(test_empty_files_are_fine),
        TEST(test_a_broken_file_is_refused_with_its_line),
        TEST(test_a_nul_byte_in_the_file_is_refused),
        TEST(test_a_file_is_read_up_to_its_limit_and_no_further),
        TEST(test_yaml_bombs_are_refused),
        TEST(test_what_is_no_readable_file_is_refused),
        TEST(test_a_file_without_permission_is_denied),
        TEST(test_every_problem_is_reported_and_the_first_returned),
        TEST(test_allocation_failures_are_reported_and_leak_nothing),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
