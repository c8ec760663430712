/* Walks every key of the table and makes it wrong in every way its type can be wrong, through the
 * file, the environment and the flag. A new row is covered without a line here. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/quantity.h"
#include "base/os/fs.h"
#include "config/config.h"

struct fixture {
    char dir[64];
    char file[80];
    size_t cases;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ .dir = "/tmp/pawl-keys-XXXXXX" };
    if (mkdtemp(fixture.dir) == NULL) {
        return -1;
    }
    snprintf(fixture.file, sizeof(fixture.file), "%s/pawl.yaml", fixture.dir);
    *state = &fixture;
    return 0;
}

/* rmdir fails, and with it the test, when a load has left anything behind. */
static int tear_down(void **state)
{
    struct fixture *f = *state;

    unlink(f->file);
    return rmdir(f->dir);
}

static const char *const nowhere[] = { NULL };
static const char *home_only[] = { "HOME=/h", NULL };

/* Loads and expects a refusal that has all of the three texts in it, and no config. */
static void assert_refused(struct pawl__config_sources sources,
                           const char *place,
                           const char *reason,
                           const char *allowed)
{
    struct pawl__config *config = (struct pawl__config *)&sources; /* a mark, never looked into */
    pawl_error error = PAWL_ERROR_INIT;

    sources.search = nowhere;
    if (pawl__config_load(&sources, &config, &error) == PAWL_OK) {
        fail_msg("%sexpected '%s'", place, reason);
    }
    assert_int_equal(error.status, PAWL_INVALID);
    assert_ptr_equal(config, &sources);
    if (strncmp(error.message, place, strlen(place)) != 0) {
        fail_msg("'%s' does not begin with '%s'", error.message, place);
    }
    assert_message(&error, reason);
    assert_message(&error, allowed);
}

/* "log.level" as lines: comments, "log:", "  level: " and what follows. Returns the line of it. */
static size_t add_yaml(struct pawl__buf *buf, const char *key, const char *value)
{
    pawl_view rest = pawl_view_of(key);
    pawl_view part;
    size_t line = 2;

    pawl__buf_add_text(buf, "# a comment\n\n");
    for (int indent = 0; pawl__view_split(&rest, '.', &part); indent += 2) {
        line++;
        pawl__buf_add_format(
            buf, "%*s%.*s:%s", indent, "", VIEW_ARGS(part), rest.len > 0 ? "\n" : " ");
    }
    pawl__buf_add_text(buf, value);
    pawl__buf_add_char(buf, '\n');
    assert_false(buf->broken);
    return line;
}

static void refuse_in_file(struct fixture *f,
                           const struct pawl__setting *setting,
                           const char *yaml,
                           const char *reason,
                           const char *allowed)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(PAWL__CONFIG_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    char place[PAWL_ERROR_MESSAGE_SIZE];
    struct stat before;
    struct stat after;

    size_t line = add_yaml(&text, setting->key, yaml);
    assert_ok(pawl__fs_replace(f->file, pawl__buf_view(&text), &error), &error);
    assert_int_equal(stat(f->file, &before), 0);
    snprintf(place, sizeof(place), "%s:%zu: %s: ", f->file, line, setting->key);
    assert_refused((struct pawl__config_sources){ .file = f->file, .environment = home_only },
                   place,
                   reason,
                   allowed);
    assert_int_equal(stat(f->file, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(before.st_size, after.st_size);
    f->cases++;
}

static void refuse_in_environment(struct fixture *f,
                                  const struct pawl__setting *setting,
                                  const char *name,
                                  const char *value,
                                  const char *reason)
{
    AUTO(pawl__buf_done) struct pawl__buf variable = BUF_INIT(10000);
    AUTO(pawl__buf_done) struct pawl__buf allowed = BUF_INIT(1000);
    char place[PAWL__SETTING_NAME_SIZE + 40];

    pawl__buf_add_format(&variable, "%s=%s", name, value);
    pawl__setting_add_allowed(setting, &allowed);
    snprintf(place, sizeof(place), "environment variable %s: ", name);
    const char *environment[] = { "HOME=/h", variable.data, NULL };
    assert_refused(
        (struct pawl__config_sources){ .environment = environment }, place, reason, allowed.data);
    f->cases++;
}

/* A value in double quotes, with what YAML cannot hold raw as \xNN. */
static void add_quoted(struct pawl__buf *buf, const char *value)
{
    pawl__buf_add_char(buf, '"');
    for (const char *c = value; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == '"' || *c == '\\') {
            pawl__buf_add_format(buf, "\\x%02X", (unsigned)*c);
        } else {
            pawl__buf_add_char(buf, *c);
        }
    }
    pawl__buf_add_char(buf, '"');
}

/* One bad value through all sources that can carry it. */
static void refuse_value(struct fixture *f,
                         enum pawl__setting_id id,
                         const char *value,
                         const char *reason)
{
    const struct pawl__setting *setting = &pawl__settings[id];
    AUTO(pawl__buf_done) struct pawl__buf quoted = BUF_INIT(20000);
    AUTO(pawl__buf_done) struct pawl__buf allowed = BUF_INIT(1000);
    char name[PAWL__SETTING_NAME_SIZE];
    char place[PAWL__SETTING_NAME_SIZE + 2];
    const struct pawl__config_flag flag = { id, value };

    pawl__setting_add_allowed(setting, &allowed);
    if (pawl__view_is_utf8(pawl_view_of(value))) { /* else the file as a whole is refused */
        add_quoted(&quoted, value);
        refuse_in_file(f, setting, quoted.data, reason, allowed.data);
    }
    if (value[0] != '\0') { /* an empty variable is none */
        pawl__setting_variable(setting, name);
        refuse_in_environment(f, setting, name, value, reason);
        if (setting->also != NULL) {
            refuse_in_environment(f, setting, setting->also, value, reason);
        }
    }
    pawl__setting_flag(setting, name);
    snprintf(place, sizeof(place), "%s: ", name);
    assert_refused(
        (struct pawl__config_sources){ .environment = home_only, .flags = &flag, .flags_count = 1 },
        place,
        reason,
        allowed.data);
    f->cases++;
}

static void refuse_what_no_type_takes(struct fixture *f, enum pawl__setting_id id)
{
    char longest[PAWL__SETTING_VALUE_BYTES_MAX + 2];

    memset(longest, '1', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    refuse_value(f, id, longest, "is longer than 4096 bytes");
    refuse_value(f, id, "a\x01", "has a control character");
    refuse_value(f, id, "a\x1b[2J", "has a control character");
    refuse_value(f, id, "a\nb", "has a control character");
    refuse_value(f, id, "\xFF", "is not UTF-8");
    if (pawl__settings[id].text[0] != '\0') {
        refuse_value(f, id, "", "is empty");
    }
}

/* What is no value at all; only a file can say such a thing. */
static void refuse_shapes(struct fixture *f, enum pawl__setting_id id)
{
    static const struct {
        const char *yaml;
        const char *reason;
    } shapes[] = {
        { "[a, b]", "is a list where one value belongs" },
        { "[]", "is a list where one value belongs" },
        { "{a: b}", "is a section where one value belongs" },
        { "&anchor x", "has an anchor, alias or tag" },
        { "*alias", "has an anchor, alias or tag" },
        { "!tag x", "has an anchor, alias or tag" },
        { "\"a\\0b\"", "has a NUL character" },
    };

    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        refuse_in_file(f, &pawl__settings[id], shapes[i].yaml, shapes[i].reason, "");
    }
}

static void refuse_twice(struct fixture *f, enum pawl__setting_id id)
{
    const struct pawl__setting *setting = &pawl__settings[id];
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(10000);
    AUTO(pawl__buf_done) struct pawl__buf again = BUF_INIT(1000);
    pawl_error error = PAWL_ERROR_INIT;
    const char *last = strrchr(setting->key, '.');
    char place[PAWL_ERROR_MESSAGE_SIZE];

    /* The second one on the next line, at the same depth. */
    size_t indent = 0;
    for (const char *c = setting->key; *c != '\0'; c++) {
        indent += *c == '.' ? 2 : 0;
    }
    pawl__buf_add_format(
        &again, "x\n%*s%s: y", (int)indent, "", last == NULL ? setting->key : last + 1);
    size_t line = add_yaml(&text, setting->key, again.data);
    assert_ok(pawl__fs_replace(f->file, pawl__buf_view(&text), &error), &error);
    snprintf(place,
             sizeof(place),
             "%s:%zu: %s: is set already, on line %zu",
             f->file,
             line + 1,
             setting->key,
             line);
    assert_refused(
        (struct pawl__config_sources){ .file = f->file, .environment = home_only }, place, "", "");
    f->cases++;
}

/* One below the range and one above it, where the type can say so. */
static void refuse_out_of_range(struct fixture *f, enum pawl__setting_id id)
{
    const struct pawl__setting *setting = &pawl__settings[id];
    bool duration = setting->type == PAWL__SETTING_DURATION;
    bool integer = setting->type == PAWL__SETTING_INTEGER;
    char text[PAWL__QUANTITY_SIZE];

    if (setting->max < INT64_MAX) {
        snprintf(text, sizeof(text), "%lld%s", (long long)setting->max + 1, duration ? "ns" : "");
        refuse_value(f, id, text, "is out of range");
    }
    if (setting->min > (integer ? INT64_MIN : 0)) {
        snprintf(text, sizeof(text), "%lld%s", (long long)setting->min - 1, duration ? "ns" : "");
        refuse_value(f, id, text, "is out of range");
    }
}

static void refuse_all(struct fixture *f,
                       enum pawl__setting_id id,
                       const char *const *values,
                       size_t count,
                       const char *reason)
{
    for (size_t i = 0; i < count; i++) {
        refuse_value(f, id, values[i], reason);
    }
}

#define REFUSE_ALL(f, id, reason, ...)                         \
    do {                                                       \
        static const char *const values_[] = { __VA_ARGS__ };  \
        refuse_all(f, id, values_, COUNT_OF(values_), reason); \
    } while (0)

static void refuse_by_type(struct fixture *f, enum pawl__setting_id id)
{
    switch (pawl__settings[id].type) {
    case PAWL__SETTING_TEXT:
    case PAWL__SETTING_PATH:
    case PAWL__SETTING_SECRET:
        break; /* only what no type takes */
    case PAWL__SETTING_BOOL:
        REFUSE_ALL(f, id, "is neither", "maybe", "TRUE", "2", "~", "null");
        break;
    case PAWL__SETTING_INTEGER:
        REFUSE_ALL(f, id, "is no whole number", "many", "1.5", "0x10", "+1", "1 ", "1e3");
        REFUSE_ALL(f, id, "is too large", "9223372036854775808", "-9223372036854775809");
        refuse_out_of_range(f, id);
        break;
    case PAWL__SETTING_DURATION:
        REFUSE_ALL(f, id, "has no unit", "30", "5000");
        REFUSE_ALL(
            f, id, "is no duration", "soon", "-1s", "1.5s", "1 s", "1m1h", "1w", "true", "~");
        REFUSE_ALL(f, id, "is too large", "106752d", "99999999999999999999s");
        refuse_out_of_range(f, id);
        break;
    case PAWL__SETTING_SIZE:
        REFUSE_ALL(
            f, id, "is no size", "much", "-1", "16M", "1.5GiB", "1 MiB", "16mb", "0x10", "~");
        REFUSE_ALL(f, id, "is too large", "18446744073709551616", "16EiB");
        REFUSE_ALL(f, id, "is out of range", "9223372036854775808");
        refuse_out_of_range(f, id);
        break;
    case PAWL__SETTING_CHOICE:
        REFUSE_ALL(f, id, "is unknown", "no-such-word", "0", "true", "~", "|");
        refuse_value(f, id, pawl__settings[id].one_of, "is unknown"); /* the whole list */
        break;
    case PAWL__SETTING_URL:
        REFUSE_ALL(f, id, "is no URL", "localhost", "a:b", "a:/b", "host:5432/db", "://x y", "~");
        REFUSE_ALL(f, id, "has another scheme", "no-such-scheme://host", "://host");
        break;
    }
}

static void test_every_key_is_refused_in_every_way_it_can_be_wrong(void **state)
{
    struct fixture *f = *state;

    for (enum pawl__setting_id id = 0; id < PAWL__SETTING_COUNT; id++) {
        size_t before = f->cases;

        refuse_what_no_type_takes(f, id);
        refuse_shapes(f, id);
        refuse_twice(f, id);
        refuse_by_type(f, id);
        assert_true(f->cases - before >= 20);
    }
}

/* The other half: what is right is taken, so the refusals above are not for some other reason. */
static void test_every_key_takes_its_default_from_every_source(void **state)
{
    struct fixture *f = *state;

    for (enum pawl__setting_id id = 0; id < PAWL__SETTING_COUNT; id++) {
        const struct pawl__setting *setting = &pawl__settings[id];
        const struct pawl__config_flag flag = { id, setting->text };
        AUTO(pawl__config_free_p) struct pawl__config *config = NULL;
        AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1000);
        AUTO(pawl__buf_done) struct pawl__buf quoted = BUF_INIT(1000);
        pawl_error error = PAWL_ERROR_INIT;
        struct pawl__config_sources sources = { .file = f->file, .environment = home_only };

        add_quoted(&quoted, setting->text);
        size_t line = add_yaml(&text, setting->key, quoted.data);
        assert_ok(pawl__fs_replace(f->file, pawl__buf_view(&text), &error), &error);
        assert_ok(pawl__config_load(&sources, &config, &error), &error);
        assert_int_equal(pawl__config_origin(config, id).kind, PAWL__ORIGIN_FILE);
        assert_int_equal(pawl__config_origin(config, id).line, line);
        pawl__config_free(STEAL(config));
        sources.flags = &flag;
        sources.flags_count = 1;
        assert_ok(pawl__config_load(&sources, &config, &error), &error);
        assert_int_equal(pawl__config_origin(config, id).kind, PAWL__ORIGIN_FLAG);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_key_is_refused_in_every_way_it_can_be_wrong),
        TEST(test_every_key_takes_its_default_from_every_source),
    };
    return cmocka_run_group_tests_name("config_keys", tests, NULL, NULL);
}
