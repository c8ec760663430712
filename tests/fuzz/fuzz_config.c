/* Any bytes as pawl.yaml: no crash, every problem names a line of the file, and what nothing is wrong
 * with has every value that a section declares as required. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "config/internal.h"

static const struct pawl__section_field inner_fields[] = {
    { .key = "name", .required = true, .value = { .type = PAWL__SETTING_TEXT, .text = "" } },
    { .key = "batch",
      .value = { .type = PAWL__SETTING_INTEGER, .text = "10", .min = 1, .max = 99 } },
    { .key = NULL },
};
static const struct pawl__section_field outer_fields[] = {
    { .key = "from",
      .required = true,
      .value = { .type = PAWL__SETTING_URL, .text = "", .one_of = "nats|ledger" } },
    { .key = "subjects",
      .shape = PAWL__SHAPE_LIST,
      .count_max = 8,
      .value = { .type = PAWL__SETTING_TEXT, .text = "" } },
    { .key = "columns", .shape = PAWL__SHAPE_LIST, .count_max = 8, .fields = inner_fields },
    { .key = "limits", .shape = PAWL__SHAPE_OBJECT, .fields = inner_fields + 1 },
    { .key = NULL },
};
static const struct pawl__section_field sections[] = {
    { .key = "pipelines", .shape = PAWL__SHAPE_MAP, .count_max = 16, .fields = outer_fields },
    { .key = "log.targets", .shape = PAWL__SHAPE_LIST, .count_max = 4, .fields = inner_fields },
    { .key = NULL },
};

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

static void check_section(const struct pawl__section_field *field,
                          const struct pawl__section *section)
{
    struct pawl__section_field one = *field;

    CHECK((section->text != NULL) == (field->shape == PAWL__SHAPE_VALUE));
    CHECK(section->text == NULL || !field->required || section->text[0] != '\0');
    one.shape = field->fields == NULL ? PAWL__SHAPE_VALUE : PAWL__SHAPE_OBJECT;
    for (size_t i = 0; i < section->count; i++) {
        if (field->shape == PAWL__SHAPE_OBJECT) {
            CHECK(section->entries[i].name == field->fields[i].key);
            check_section(&field->fields[i], &section->entries[i]);
        } else {
            CHECK(i < field->count_max);
            CHECK((section->entries[i].name != NULL) == (field->shape == PAWL__SHAPE_MAP));
            CHECK(section->entries[i].line > 0);
            check_section(&one, &section->entries[i]);
        }
    }
}

static void check_config(const struct pawl__config *config)
{
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        AUTO(pawl__buf_done) struct pawl__buf shown = BUF_INIT(1 << 20);
        const struct pawl__config_entry *entry = &config->entries[i];

        CHECK((entry->text != NULL) == (entry->line > 0));
        if (entry->text != NULL) {
            pawl__config_add_shown(config, (enum pawl__setting_id)i, &shown);
            CHECK(pawl__view_is_utf8(pawl__buf_view(&shown)));
        }
    }
    for (size_t i = 0; i < config->sections.count; i++) {
        check_section(&sections[i], &config->sections.entries[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const environment[] = { "HOME=/h", NULL };
    pawl_view text = { (const char *)data, size };
    const struct pawl__config_sources sources = { .environment = environment,
                                                  .sections = sections,
                                                  .problem = check_problem,
                                                  .problem_context = &text };
    AUTO(pawl__config_free_p) struct pawl__config *config = calloc(1, sizeof(*config));
    struct pawl__loader loader = { .sources = &sources, .config = config };

    if (config == NULL || size > PAWL__CONFIG_BYTES_MAX) {
        return -1; /* refused before */
    }
    config->file = strdup("f.yaml");
    CHECK(config->file != NULL);
    CHECK(pawl__loader_declare(&loader) == PAWL_OK);
    CHECK(pawl__loader_read(&loader, text) == PAWL_OK);
    if (loader.problems == 0) {
        check_config(config);
    }
    return 0;
}
