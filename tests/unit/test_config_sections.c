/* Lists and maps in pawl.yaml, as a part of the node would declare them. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/fs.h"
#include "config/config.h"
#include "lib/fault.h"

static const struct pawl__section_field column_fields[] = {
    { .key = "name", .required = true, .value = { .type = PAWL__SETTING_TEXT, .text = "" } },
    { .key = "path", .value = { .type = PAWL__SETTING_TEXT, .text = "$" } },
    { .key = NULL },
};
static const struct pawl__section_field retry_fields[] = {
    { .key = "every",
      .value = { .type = PAWL__SETTING_DURATION,
                 .text = "30s",
                 .min = NS_PER_S,
                 .max = 3600 * NS_PER_S } },
    { .key = NULL },
};
static const struct pawl__section_field pipeline_fields[] = {
    { .key = "from",
      .required = true,
      .value = { .type = PAWL__SETTING_URL, .text = "", .one_of = "nats|ledger" } },
    { .key = "into", .value = { .type = PAWL__SETTING_PATH, .text = "" } },
    { .key = "batch",
      .value = { .type = PAWL__SETTING_INTEGER, .text = "1000", .min = 1, .max = 50000 } },
    { .key = "subjects",
      .shape = PAWL__SHAPE_LIST,
      .count_max = 3,
      .value = { .type = PAWL__SETTING_TEXT, .text = "" } },
    { .key = "columns", .shape = PAWL__SHAPE_LIST, .count_max = 100, .fields = column_fields },
    { .key = "retry", .shape = PAWL__SHAPE_OBJECT, .fields = retry_fields },
    { .key = NULL },
};
static const struct pawl__section_field agent_fields[] = {
    { .key = "address", .required = true, .value = { .type = PAWL__SETTING_TEXT, .text = "" } },
    { .key = "token", .value = { .type = PAWL__SETTING_SECRET, .text = "" } },
    { .key = NULL },
};
/* One at the top, one beside plain settings, one below a key that nothing else is below. */
static const struct pawl__section_field sections[] = {
    { .key = "pipelines", .shape = PAWL__SHAPE_MAP, .count_max = 3, .fields = pipeline_fields },
    { .key = "log.tags",
      .shape = PAWL__SHAPE_LIST,
      .count_max = 10,
      .value = { .type = PAWL__SETTING_TEXT, .text = "" } },
    { .key = "telemetry.agents",
      .shape = PAWL__SHAPE_LIST,
      .count_max = 10,
      .fields = agent_fields },
    { .key = NULL },
};

struct fixture {
    char dir[64];
    char file[80];
    pawl_error error;
    struct pawl__config *config;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ .dir = "/tmp/pawl-sections-XXXXXX" };
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

static void collect(void *context, const pawl_error *problem)
{
    pawl__buf_add_format(context, "%s\n", strrchr(problem->message, '/') + 1);
}

static pawl_status load_file(struct fixture *f, struct pawl__buf *problems)
{
    static const char *const environment[] = { "HOME=/h", NULL };
    const struct pawl__config_sources sources = {
        .file = f->file,
        .environment = environment,
        .sections = sections,
        .problem = problems == NULL ? NULL : collect,
        .problem_context = problems,
    };

    pawl__config_free(STEAL(f->config));
    return pawl__config_load(&sources, &f->config, &f->error);
}

static pawl_status load(struct fixture *f, const char *text, struct pawl__buf *problems)
{
    assert_ok(pawl__fs_replace(f->file, pawl_view_of(text), &f->error), &f->error);
    return load_file(f, problems);
}

static const char *text_of(const struct pawl__section *object, const char *key)
{
    return pawl__section_field(object, key)->text;
}

static const char whole[] = "log:\n"
                            "  level: info\n"
                            "  tags: [eu, 'two words']\n"
                            "pipelines:\n"
                            "  orders:\n"
                            "    from: nats://localhost\n"
                            "    into: sink/orders.duckdb\n"
                            "    subjects:\n"
                            "      - orders.placed\n"
                            "      - orders.paid\n"
                            "    columns:\n"
                            "      - name: total\n"
                            "        path: $.total\n"
                            "      - {name: id}\n"
                            "    retry: {every: 5s}\n"
                            "  clicks.v2: {from: 'ledger://x', batch: 5}\n"
                            "telemetry:\n"
                            "  agents:\n"
                            "    - address: edge-1:4317\n";

static void test_maps_lists_and_objects_are_read(void **state)
{
    struct fixture *f = *state;
    char path[128];

    assert_ok(load(f, whole, NULL), &f->error);
    const struct pawl__section *pipelines = pawl__config_section(f->config, "pipelines");
    assert_int_equal(pipelines->count, 2);
    assert_int_equal(pipelines->line, 4);
    const struct pawl__section *orders = &pipelines->entries[0];
    assert_string_equal(orders->name, "orders");
    assert_int_equal(orders->line, 5);
    assert_string_equal(text_of(orders, "from"), "nats://localhost");
    snprintf(path, sizeof(path), "%s/sink/orders.duckdb", f->dir);
    assert_string_equal(text_of(orders, "into"), path); /* beside the file */
    const struct pawl__section *subjects = pawl__section_field(orders, "subjects");
    assert_int_equal(subjects->count, 2);
    assert_string_equal(subjects->entries[1].text, "orders.paid");
    assert_int_equal(subjects->entries[1].line, 10);
    assert_null(subjects->entries[1].name);
    const struct pawl__section *columns = pawl__section_field(orders, "columns");
    assert_int_equal(columns->count, 2);
    assert_string_equal(text_of(&columns->entries[0], "path"), "$.total");
    assert_string_equal(text_of(&columns->entries[1], "name"), "id");
    assert_int_equal(columns->entries[1].line, 14);
    const struct pawl__section *retry = pawl__section_field(orders, "retry");
    assert_int_equal(pawl__section_field(retry, "every")->number, 5 * NS_PER_S);
    assert_string_equal(pipelines->entries[1].name, "clicks.v2");
    assert_int_equal(pawl__section_field(&pipelines->entries[1], "batch")->number, 5);
    assert_string_equal(pawl__config_section(f->config, "log.tags")->entries[1].text, "two words");
    assert_string_equal(pawl__config_text(f->config, PAWL__LOG_LEVEL), "info");
    assert_string_equal(
        text_of(&pawl__config_section(f->config, "telemetry.agents")->entries[0], "address"),
        "edge-1:4317");
}

static void test_what_the_file_leaves_out_has_its_default(void **state)
{
    struct fixture *f = *state;

    assert_ok(load(f, "pipelines: {a: {from: 'nats://h'}}\n", NULL), &f->error);
    const struct pawl__section *a = &pawl__config_section(f->config, "pipelines")->entries[0];
    assert_int_equal(pawl__section_field(a, "batch")->number, 1000);
    assert_int_equal(pawl__section_field(a, "batch")->line, 0);
    assert_string_equal(text_of(a, "into"), "");
    assert_int_equal(pawl__section_field(a, "columns")->count, 0);
    assert_int_equal(pawl__section_field(pawl__section_field(a, "retry"), "every")->number,
                     30 * NS_PER_S);
    assert_int_equal(pawl__config_section(f->config, "telemetry.agents")->count, 0);
    assert_ok(load(f, "", NULL), &f->error);
    assert_int_equal(pawl__config_section(f->config, "pipelines")->count, 0);
    assert_ok(load(f, "pipelines: {}\nlog: {tags: []}\n", NULL), &f->error);
    assert_int_equal(pawl__config_section(f->config, "log.tags")->count, 0);
}

static void test_a_bad_section_is_refused_with_line_and_key(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } bad[] = {
        { "pipelines:\n  a:\n    form: nats://h\n",
          "pawl.yaml:3: pipelines.a: unknown key 'form'; did you mean 'from'?\n"
          "pawl.yaml:2: pipelines.a: 'from' is missing\n" },
        { "pipelines:\n  a: {from: 'nats://h', batch: 0}\n",
          "pawl.yaml:2: pipelines.a.batch: '0' is out of range; allowed: a whole number from 1 to"
          " 50000\n" },
        { "pipelines:\n  a: {from: ''}\n",
          "pawl.yaml:2: pipelines.a.from: the value is empty; allowed: a URL (scheme nats, "
          "ledger)\n" },
        { "pipelines:\n  a:\n    from: nats://h\n    columns:\n      - name: x\n      - nmae: y\n",
          "pawl.yaml:6: pipelines.a.columns[1]: unknown key 'nmae'; did you mean 'name'?\n"
          "pawl.yaml:6: pipelines.a.columns[1]: 'name' is missing\n" },
        { "pipelines: [a]\n",
          "pawl.yaml:1: pipelines: is a list where names belong; write 'NAME:' lines indented below"
          " it, or {}\n" },
        { "pipelines:\n  a: nats://h\n",
          "pawl.yaml:2: pipelines.a: is a value where a section belongs; write 'from: ...' indented"
          " below it\n" },
        { "log: {tags: x}\n",
          "pawl.yaml:1: log.tags: is a value where a list belongs; write '- ...' lines below it, or"
          " []\n" },
        { "log:\n  tags:\n    - [x]\n",
          "pawl.yaml:3: log.tags[0]: is a list where one value belongs; allowed: a text\n" },
        { "log:\n  tags:\n    - a\n    -\n",
          "pawl.yaml:4: log.tags[1]: the value is empty; allowed: a text\n" },
        { "log: {tags: [\"a\\0b\"]}\n",
          "pawl.yaml:1: log.tags[0]: the value has a NUL character in it\n" },
        { "pipelines:\n  a: {from: 'nats://h', batch: 1,\n    batch: 2}\n",
          "pawl.yaml:3: pipelines.a.batch: is set already, on line 2\n" },
        { "pipelines:\n  a: {from: 'nats://h'}\n  a: {from: 'nats://h'}\n",
          "pawl.yaml:3: pipelines.a: is there already, on line 2\n" },
        { "pipelines: {}\npipelines: {}\n",
          "pawl.yaml:2: pipelines: is there already, on line 1\n" },
        { "pipelines:\n  a b: {from: 'nats://h'}\n",
          "pawl.yaml:2: pipelines: 'a b' is no name; allowed: up to 64 letters, digits, '.', '_' "
          "and"
          " '-', the first a letter or digit\n" },
        { "pipelines:\n  ? [x]\n  : {from: 'nats://h'}\n",
          "pawl.yaml:2: a key is a list or has an anchor or tag; write plain text\n" },
        { "log:\n  tags:\n    - &x a\n    - *x\n",
          "pawl.yaml:3: log.tags[0]: has an anchor, alias or tag, which this file may not have\n"
          "pawl.yaml:4: log.tags[1]: has an anchor, alias or tag, which this file may not have\n" },
        { "pipelins: {}\n", "pawl.yaml:1: unknown key 'pipelins'; did you mean 'pipelines'?\n" },
        { "telemetry: {agnts: []}\n",
          "pawl.yaml:1: unknown key 'agnts'; did you mean 'telemetry.agents'?\n" },
        { "telemetry: 1\n",
          "pawl.yaml:1: telemetry: is a value where a section belongs; write 'agents: ...' indented"
          " below it\n" },
        { "telemetry.agents: []\n",
          "pawl.yaml:1: unknown key 'telemetry.agents'; a key has no dots: write the second part"
          " indented below the first\n" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        AUTO(pawl__buf_done) struct pawl__buf all = BUF_INIT(4000);

        assert_status(load(f, bad[i].text, &all), PAWL_INVALID, &f->error);
        assert_string_equal(all.data, bad[i].message);
        assert_null(f->config);
    }
}

static void test_a_list_and_a_map_are_read_up_to_their_limit_and_no_further(void **state)
{
    struct fixture *f = *state;

    assert_ok(load(f, "pipelines: {a: {from: 'nats://h', subjects: [1, 2, 3]}}\n", NULL),
              &f->error);
    assert_status(load(f, "pipelines: {a: {from: 'nats://h', subjects: [1, 2, 3,\n 4]}}\n", NULL),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "pawl.yaml:2: pipelines.a.subjects: has more than 3 entries");
    assert_status(
        load(f, "pipelines: {a: {}, b: {}, c: {}, d: {}}\n", NULL), PAWL_INVALID, &f->error);
    assert_message(&f->error, "pawl.yaml:1: pipelines: has more than 3 entries");
}

static void test_a_name_is_taken_up_to_its_limit_and_no_further(void **state)
{
    struct fixture *f = *state;
    char text[200];
    char name[PAWL__SECTION_NAME_BYTES_MAX + 2];

    memset(name, 'a', sizeof(name));
    snprintf(text, sizeof(text), "pipelines: {%.*s: {from: 'nats://h'}}\n", 64, name);
    assert_ok(load(f, text, NULL), &f->error);
    snprintf(text, sizeof(text), "pipelines: {%.*s: {from: 'nats://h'}}\n", 65, name);
    assert_status(load(f, text, NULL), PAWL_INVALID, &f->error);
    assert_message(&f->error, "is no name");
}

static void test_a_secret_in_a_section_is_never_in_a_message(void **state)
{
    struct fixture *f = *state;

    assert_status(load(f, "telemetry: {agents: [{address: x, token: \"hun\\tter2\"}]}\n", NULL),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "telemetry.agents[0].token: the value has a control character");
    assert_null(strstr(f->error.message, "ter2"));
}

static void test_allocation_failures_are_reported_and_leak_nothing(void **state)
{
    struct fixture *f = *state;

    assert_ok(load(f, whole, NULL), &f->error);
    FAULT_WALK (walk) {
        pawl_status status = load_file(f, NULL);
        bool fired = fault_fired();

        fault_disarm();
        assert_status(status, fired ? PAWL_NOMEM : PAWL_OK, &f->error);
        assert_true((f->config != NULL) == (status == PAWL_OK));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_maps_lists_and_objects_are_read),
        TEST(test_what_the_file_leaves_out_has_its_default),
        TEST(test_a_bad_section_is_refused_with_line_and_key),
        TEST(test_a_list_and_a_map_are_read_up_to_their_limit_and_no_further),
        TEST(test_a_name_is_taken_up_to_its_limit_and_no_further),
        TEST(test_a_secret_in_a_section_is_never_in_a_message),
        TEST(test_allocation_failures_are_reported_and_leak_nothing),
    };

    return cmocka_run_group_tests_name("config_sections", tests, NULL, NULL);
}
