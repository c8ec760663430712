/* Any bytes as pawl.yaml: no crash, every problem names a line of the file, and what the walk finds
 * nothing wrong with libcyaml loads, with exactly the values that the walk saw. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "config/internal.h"

static size_t lines_of(pawl_view text)
{
    size_t lines = 1;

    for (size_t i = 0; i < text.len; i++) {
        lines += text.data[i] == '\n' || text.data[i] == '\r';
    }
    /* Next line, line and paragraph separator end a line, too, for libyaml. */
    return lines + text.len / 2;
}

static void check_problem(void *context, const pawl_error *problem)
{
    const pawl_view *text = context;
    char *end = NULL;

    CHECK(problem->status == PAWL_INVALID);
    CHECK(strncmp(problem->message, "f.yaml:", 7) == 0);
    size_t line = strtoul(problem->message + 7, &end, 10);
    CHECK(strncmp(end, ": ", 2) == 0);
    CHECK(line >= 1 && line <= lines_of(*text) + 1);
}

static void check_value(size_t id, const char *value)
{
    AUTO(pawl__buf_done) struct pawl__buf shown = BUF_INIT(1 << 20);
    pawl_error error = PAWL_ERROR_INIT;
    int64_t number = INT64_MIN;

    if (pawl__setting_parse(&pawl__settings[id], pawl_view_of(value), &number, &error) != PAWL_OK) {
        CHECK(number == INT64_MIN);
        CHECK(error.message[0] != '\0');
        return;
    }
    pawl__setting_add_shown(&pawl__settings[id], pawl_view_of(value), &shown);
    CHECK(pawl__view_is_utf8(pawl__buf_view(&shown)));
}

static void check_loaded(pawl_view text, const size_t *lines)
{
    char *values[PAWL__SETTING_COUNT] = { NULL };
    pawl_error error = PAWL_ERROR_INIT;

    CHECK(pawl__config_values(text, values, &error) == PAWL_OK);
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        CHECK((values[i] != NULL) == (lines[i] != 0));
        if (values[i] != NULL) {
            check_value(i, values[i]);
        }
        free(values[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pawl_view text = { (const char *)data, size };
    struct pawl__problems problems = { .report = check_problem, .context = &text };
    size_t lines[PAWL__SETTING_COUNT];
    bool any = false;

    if (size > PAWL__CONFIG_BYTES_MAX || !pawl__view_is_utf8(text)
        || (size > 0 && memchr(data, '\0', size) != NULL)) {
        return -1; /* refused before */
    }
    CHECK(pawl__config_outline(text, "f.yaml", &problems, lines, NULL) == PAWL_OK);
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        any = any || lines[i] != 0;
    }
    if (problems.count == 0 && any) {
        check_loaded(text, lines);
    }
    return 0;
}
