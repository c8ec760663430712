/* A definition as JSON, which is how it is stored. */
#include "app/definition/descriptor.h"
#include "base/core/error.h"
#include "base/json/json.h"

static json_t *kind_json(const pawl_app_kind *kind)
{
    json_t *sequences = json_array();

    for (size_t i = 0; i < kind->sequence_count; i++) {
        const pawl_app_sequence *sequence = &kind->sequences[i];
        json_array_append_new(sequences,
                              json_pack("{s:s, s:i, s:I}",
                                        "name",
                                        sequence->name,
                                        "id",
                                        (int)sequence->id,
                                        "initial",
                                        (json_int_t)sequence->initial));
    }
    return json_pack(
        "{s:s, s:i, s:o}", "name", kind->name, "id", (int)kind->id, "sequences", sequences);
}

pawl_status pawl__app_definition_write(const struct app_definition *definition,
                                       struct pawl__buf *buf,
                                       pawl_error *reterr)
{
    const pawl_app_descriptor *descriptor = &definition->descriptor;
    json_t *kinds = json_array();
    size_t made = 0;

    for (; made < descriptor->kind_count; made++) {
        if (json_array_append_new(kinds, kind_json(&descriptor->kinds[made])) != 0) {
            break;
        }
    }
    json_auto_t *json = json_pack("{s:s, s:I, s:i, s:i, s:o}",
                                  "name",
                                  descriptor->name,
                                  "id",
                                  (json_int_t)descriptor->id,
                                  "partitions",
                                  (int)descriptor->partitions,
                                  "trust",
                                  (int)descriptor->trust,
                                  "kinds",
                                  kinds);
    if (json == NULL || made < descriptor->kind_count) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a descriptor");
    }
    return pawl__json_canonical(json, buf, reterr);
}

static pawl_status read_int(const struct pawl__json_node *object,
                            const char *key,
                            int64_t max,
                            int64_t *ret_value,
                            pawl_error *reterr)
{
    return pawl__json_int(pawl__json_key(object, key), 0, max, ret_value, reterr);
}

static pawl_status read_name(const struct pawl__json_node *object,
                             const char **ret_name,
                             pawl_error *reterr)
{
    pawl_view text;

    TRY(pawl__json_text(pawl__json_key(object, "name"), &text, reterr));
    *ret_name = text.data; /* a JSON text ends in a NUL and lives as long as its value */
    return PAWL_OK;
}

static pawl_status read_sequence(struct pawl__json_node node,
                                 struct pawl__arena *arena,
                                 void *element,
                                 pawl_error *reterr)
{
    static const char *const names[] = { "name", "id", "initial" };
    pawl_app_sequence *sequence = element;
    struct pawl__json_node object;
    int64_t id = 0;
    int64_t initial = 1;

    (void)arena;
    TRY(pawl__json_object(node, &object, reterr));
    TRY(pawl__json_only(&object, names, COUNT_OF(names), reterr));
    TRY(read_name(&object, &sequence->name, reterr));
    TRY(read_int(&object, "id", UINT16_MAX, &id, reterr));
    TRY(pawl__json_int(pawl__json_optional(&object, "initial"), 0, INT64_MAX, &initial, reterr));
    sequence->size = sizeof(*sequence);
    sequence->id = (uint16_t)id;
    sequence->initial = (uint64_t)initial;
    return PAWL_OK;
}

pawl_status pawl__app_read_array(struct pawl__json_node node,
                                 struct pawl__arena *arena,
                                 struct app_json_array *array,
                                 pawl_error *reterr)
{
    struct pawl__json_node checked;

    TRY(pawl__json_array(node, &checked, reterr));
    array->count = pawl__json_count(&checked);
    char *elements = pawl__arena_take(arena, (array->count + 1) * array->size);
    if (elements == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu elements", array->count);
    }
    for (size_t i = 0; i < array->count; i++) {
        TRY(array->read(pawl__json_item(&checked, i), arena, &elements[i * array->size], reterr));
    }
    array->elements = elements;
    return PAWL_OK;
}

static pawl_status read_kind(struct pawl__json_node node,
                             struct pawl__arena *arena,
                             void *element,
                             pawl_error *reterr)
{
    static const char *const names[] = { "name", "id", "sequences" };
    struct app_json_array sequences = { .size = sizeof(pawl_app_sequence), .read = read_sequence };
    pawl_app_kind *kind = element;
    struct pawl__json_node object;
    int64_t id = 0;

    TRY(pawl__json_object(node, &object, reterr));
    TRY(pawl__json_only(&object, names, COUNT_OF(names), reterr));
    *kind = (pawl_app_kind){ .size = sizeof(pawl_app_kind), .name = NULL };
    TRY(read_name(&object, &kind->name, reterr));
    TRY(read_int(&object, "id", UINT16_MAX, &id, reterr));
    kind->id = (uint16_t)id;
    struct pawl__json_node list = pawl__json_optional(&object, "sequences");
    if (list.value != NULL && !json_is_null(list.value)) {
        TRY(pawl__app_read_array(list, arena, &sequences, reterr));
    }
    kind->sequences = sequences.elements;
    kind->sequence_count = sequences.count;
    return PAWL_OK;
}

static pawl_status read_numbers(const struct pawl__json_node *object,
                                pawl_app_descriptor *descriptor,
                                pawl_error *reterr)
{
    struct pawl__json_node partitions_node = pawl__json_optional(object, "partitions");
    int64_t id = 0;
    int64_t partitions = descriptor->partitions;
    int64_t trust = descriptor->trust;

    TRY(read_int(object, "id", UINT32_MAX, &id, reterr));
    TRY(pawl__json_int(partitions_node, 1, PAWL_APP_PARTITIONS_MAX, &partitions, reterr));
    TRY(pawl__json_int(pawl__json_optional(object, "trust"), 0, PAWL_APP_TRUST_2, &trust, reterr));
    descriptor->id = (uint32_t)id;
    descriptor->partitions = (uint16_t)partitions;
    descriptor->trust = (pawl_app_trust)trust;
    return PAWL_OK;
}

pawl_status pawl__app_definition_read(pawl_view text,
                                      struct app_definition *definition,
                                      pawl_error *reterr)
{
    static const char *const names[] = { "name", "id", "partitions", "trust", "kinds" };
    struct app_json_array kinds = { .size = sizeof(pawl_app_kind), .read = read_kind };
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    json_auto_t *json = NULL;
    struct pawl__json_node object;
    pawl_app_descriptor descriptor = PAWL_APP_DESCRIPTOR_INIT;

    TRY(pawl__json_parse(text, APP_DESCRIPTOR_BYTES_MAX, &json, reterr));
    TRY(pawl__json_object(pawl__json_root(json, "descriptor"), &object, reterr));
    TRY(pawl__json_only(&object, names, COUNT_OF(names), reterr));
    TRY(read_name(&object, &descriptor.name, reterr));
    TRY(read_numbers(&object, &descriptor, reterr));
    TRY(pawl__app_read_array(pawl__json_key(&object, "kinds"), &arena, &kinds, reterr));
    descriptor.kinds = kinds.elements;
    descriptor.kind_count = kinds.count;
    return pawl__app_definition_copy(&descriptor, definition, reterr);
}
