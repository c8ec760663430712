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
                                 pawl_app_sequence *ret_sequence,
                                 pawl_error *reterr)
{
    static const char *const names[] = { "name", "id", "initial" };
    struct pawl__json_node object;
    int64_t id = 0;
    int64_t initial = 1;
    pawl_status status = pawl__json_object(node, &object, reterr);

    if (status == PAWL_OK) {
        status = pawl__json_only(&object, names, COUNT_OF(names), reterr);
    }
    if (status == PAWL_OK) {
        status = read_name(&object, &ret_sequence->name, reterr);
    }
    if (status == PAWL_OK) {
        status = read_int(&object, "id", UINT16_MAX, &id, reterr);
    }
    if (status == PAWL_OK) {
        status =
            pawl__json_int(pawl__json_optional(&object, "initial"), 0, INT64_MAX, &initial, reterr);
    }
    ret_sequence->id = (uint16_t)id;
    ret_sequence->initial = (uint64_t)initial;
    return status;
}

static pawl_status read_sequences(const struct pawl__json_node *kind_node,
                                  struct pawl__arena *arena,
                                  pawl_app_kind *kind,
                                  pawl_error *reterr)
{
    struct pawl__json_node array = { .value = NULL };
    struct pawl__json_node node = pawl__json_optional(kind_node, "sequences");
    pawl_status status = PAWL_OK;

    if (node.value == NULL || json_is_null(node.value)) {
        return PAWL_OK;
    }
    status = pawl__json_array(node, &array, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    size_t count = pawl__json_count(&array);
    pawl_app_sequence *sequences = pawl__arena_take(arena, (count + 1) * sizeof(*sequences));
    if (sequences == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu sequences", count);
    }
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        status = read_sequence(pawl__json_item(&array, i), &sequences[i], reterr);
    }
    kind->sequences = sequences;
    kind->sequence_count = count;
    return status;
}

static pawl_status read_kind(struct pawl__json_node node,
                             struct pawl__arena *arena,
                             pawl_app_kind *ret_kind,
                             pawl_error *reterr)
{
    static const char *const names[] = { "name", "id", "sequences" };
    struct pawl__json_node object;
    int64_t id = 0;
    pawl_status status = pawl__json_object(node, &object, reterr);

    *ret_kind = (pawl_app_kind){ .name = NULL };
    if (status == PAWL_OK) {
        status = pawl__json_only(&object, names, COUNT_OF(names), reterr);
    }
    if (status == PAWL_OK) {
        status = read_name(&object, &ret_kind->name, reterr);
    }
    if (status == PAWL_OK) {
        status = read_int(&object, "id", UINT16_MAX, &id, reterr);
    }
    ret_kind->id = (uint16_t)id;
    return status == PAWL_OK ? read_sequences(&object, arena, ret_kind, reterr) : status;
}

static pawl_status read_kinds(const struct pawl__json_node *object,
                              struct pawl__arena *arena,
                              pawl_app_descriptor *descriptor,
                              pawl_error *reterr)
{
    struct pawl__json_node array;
    pawl_status status = pawl__json_array(pawl__json_key(object, "kinds"), &array, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    size_t count = pawl__json_count(&array);
    pawl_app_kind *kinds = pawl__arena_take(arena, (count + 1) * sizeof(*kinds));
    if (kinds == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu kinds", count);
    }
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        status = read_kind(pawl__json_item(&array, i), arena, &kinds[i], reterr);
    }
    descriptor->kinds = kinds;
    descriptor->kind_count = count;
    return status;
}

static pawl_status read_numbers(const struct pawl__json_node *object,
                                pawl_app_descriptor *descriptor,
                                pawl_error *reterr)
{
    int64_t id = 0;
    int64_t partitions = descriptor->partitions;
    int64_t trust = descriptor->trust;
    pawl_status status = read_int(object, "id", UINT32_MAX, &id, reterr);

    if (status == PAWL_OK) {
        status = pawl__json_int(pawl__json_optional(object, "partitions"),
                                1,
                                PAWL_APP_PARTITIONS_MAX,
                                &partitions,
                                reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__json_int(
            pawl__json_optional(object, "trust"), 0, PAWL_APP_TRUST_2, &trust, reterr);
    }
    descriptor->id = (uint32_t)id;
    descriptor->partitions = (uint16_t)partitions;
    descriptor->trust = (pawl_app_trust)trust;
    return status;
}

pawl_status pawl__app_definition_read(pawl_view text,
                                      struct app_definition *definition,
                                      pawl_error *reterr)
{
    static const char *const names[] = { "name", "id", "partitions", "trust", "kinds" };
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    json_auto_t *json = NULL;
    struct pawl__json_node object;
    pawl_app_descriptor descriptor = PAWL_APP_DESCRIPTOR_INIT;

    TRY(pawl__json_parse(text, APP_DESCRIPTOR_BYTES_MAX, &json, reterr));
    TRY(pawl__json_object(pawl__json_root(json, "descriptor"), &object, reterr));
    TRY(pawl__json_only(&object, names, COUNT_OF(names), reterr));
    TRY(read_name(&object, &descriptor.name, reterr));
    TRY(read_numbers(&object, &descriptor, reterr));
    TRY(read_kinds(&object, &arena, &descriptor, reterr));
    return pawl__app_definition_copy(&descriptor, definition, reterr);
}
