#include "config/internal.h"

#include <cyaml/cyaml.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

/* The schema is a tree of field arrays, each ended by a field without key. Every setting is one
 * field, every section at most one field and one end more. */
enum { FIELDS_MAX = 4 * PAWL__SETTING_COUNT + 1 };

struct schema {
    cyaml_schema_value_t root;
    cyaml_schema_field_t fields[FIELDS_MAX];
    size_t used;
    char names[FIELDS_MAX][PAWL__SETTING_NAME_SIZE];
};

/* What libcyaml fills: one text a setting, whatever its type. The types are checked afterwards, by
 * the code that checks the environment and the flags. */
struct loaded {
    char *values[PAWL__SETTING_COUNT];
};

/* Where the part of `key` behind the section of `section_len` bytes ends. */
static size_t part_len(const char *key, size_t section_len)
{
    size_t from = section_len == 0 ? 0 : section_len + 1;

    return from + strcspn(key + from, ".");
}

static bool same_part(const char *a, const char *b, size_t end)
{
    return strncmp(a, b, end) == 0 && (b[end] == '.' || b[end] == '\0');
}

static const cyaml_schema_field_t *add_section(struct schema *schema,
                                               size_t first,
                                               size_t end,
                                               size_t section_len);

static void fill_field(struct schema *schema,
                       cyaml_schema_field_t *field,
                       size_t first,
                       size_t end,
                       size_t section_len)
{
    const char *key = pawl__settings[first].key;
    size_t stop = part_len(key, section_len);
    size_t from = section_len == 0 ? 0 : section_len + 1;
    char *name = schema->names[field - schema->fields];

    memcpy(name, key + from, stop - from);
    name[stop - from] = '\0';
    field->key = name;
    if (key[stop] == '\0') {
        field->data_offset = (uint32_t)(first * sizeof(char *));
        field->value = (cyaml_schema_value_t){ CYAML_VALUE_STRING(
            CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, char, 0, CYAML_UNLIMITED) };
    } else {
        /* Fields below a section count from the start of the whole struct, too. */
        field->value = (cyaml_schema_value_t){ CYAML_VALUE_MAPPING(
            CYAML_FLAG_OPTIONAL, struct loaded, add_section(schema, first, end, stop)) };
    }
}

/* One past the last setting that shares the part of setting `first` behind the section. */
static size_t run_end(size_t first, size_t end, size_t section_len)
{
    const char *key = pawl__settings[first].key;
    size_t stop = part_len(key, section_len);
    size_t next = first + 1;

    while (next < end && same_part(key, pawl__settings[next].key, stop)) {
        next++;
    }
    return next;
}

/* The fields of the settings from `first` up to `end`, which share a section of so many bytes. An
 * array must stand together, so all its fields are taken before those of the sections below. */
static const cyaml_schema_field_t *add_section(struct schema *schema,
                                               size_t first,
                                               size_t end,
                                               size_t section_len)
{
    size_t start = schema->used;
    size_t at = start;

    for (size_t i = first; i < end; i = run_end(i, end, section_len)) {
        schema->used++;
    }
    schema->used++; /* the end, all zero */
    REQUIRE(schema->used <= FIELDS_MAX);
    for (size_t i = first; i < end; i = run_end(i, end, section_len)) {
        fill_field(schema, &schema->fields[at++], i, run_end(i, end, section_len), section_len);
    }
    return &schema->fields[start];
}

/* Ours, so that what libcyaml allocates can be freed, and made to fail, like everything else. */
static void *allocate(void *context, void *old, size_t size)
{
    (void)context;
    if (size == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, size);
}

pawl_status pawl__config_values(pawl_view text,
                                char *ret_values[PAWL__SETTING_COUNT],
                                pawl_error *reterr)
{
    const cyaml_config_t config = {
        .mem_fn = allocate,
        .log_level = CYAML_LOG_ERROR,
        .flags = CYAML_CFG_NO_ALIAS,
    };
    struct schema schema = { .used = 0 };
    struct loaded *loaded = NULL;
    cyaml_data_t *data = NULL;

    schema.root = (cyaml_schema_value_t){ CYAML_VALUE_MAPPING(
        CYAML_FLAG_POINTER, struct loaded, add_section(&schema, 0, PAWL__SETTING_COUNT, 0)) };
    cyaml_err_t code =
        cyaml_load_data((const uint8_t *)text.data, text.len, &config, &schema.root, &data, NULL);
    if (code == CYAML_ERR_OOM) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for the config");
    }
    if (code != CYAML_OK) {
        return pawl__fail(reterr, PAWL_INVALID, "%s", cyaml_strerror(code));
    }
    loaded = data;
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        ret_values[i] = loaded == NULL ? NULL : loaded->values[i];
    }
    free(loaded); /* not cyaml_free: the texts have a new owner */
    return PAWL_OK;
}
