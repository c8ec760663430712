#include "app/definition/template.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/definition/descriptor.h"
#include "base/core/error.h"
#include "base/core/grow.h"

struct writer {
    const struct app_names *names;
    struct pawl__buf text;
    struct app_hole *holes;
    size_t count;
    size_t room;
};

static void writer_done(struct writer *writer)
{
    free(writer->holes);
    pawl__buf_done(&writer->text);
}

static pawl_status add_hole(struct writer *writer, struct app_hole hole, pawl_error *reterr)
{
    struct app_hole *holes =
        pawl__grow(writer->holes, writer->count, &writer->room, sizeof(*holes));

    if (holes == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu references", writer->count);
    }
    writer->holes = holes;
    hole.at = writer->text.len;
    writer->holes[writer->count++] = hole;
    return PAWL_OK;
}

int pawl__app_raw_compare(const void *a, const void *b)
{
    uint64_t one = ((const struct app_raw *)a)->raw_id;
    uint64_t other = ((const struct app_raw *)b)->raw_id;

    return (one > other) - (one < other);
}

static pawl_status write_raw(struct writer *writer, json_t *value, pawl_error *reterr)
{
    const struct app_names *names = writer->names;
    struct app_raw wanted = { .raw_id = 0 };

    if (!json_is_integer(value)) {
        return pawl__fail(reterr, PAWL_INVALID, "\"$raw\" wants a number");
    }
    wanted.raw_id = (uint64_t)json_integer_value(value);
    const struct app_raw *found =
        names->raw_count == 0
            ? NULL
            : bsearch(
                &wanted, names->raws, names->raw_count, sizeof(wanted), pawl__app_raw_compare);
    if (found == NULL) {
        return pawl__fail(
            reterr,
            PAWL_INVALID,
            "\"$raw\": the command creates no record with the raw id %" JSON_INTEGER_FORMAT,
            json_integer_value(value));
    }
    return add_hole(writer, (struct app_hole){ .create = found->create }, reterr);
}

static pawl_status write_next(struct writer *writer, json_t *value, pawl_error *reterr)
{
    const pawl_app_kind *kind = writer->names->kind;

    if (!json_is_string(value)) {
        return pawl__fail(reterr, PAWL_INVALID, "\"$next\" wants the name of a sequence");
    }
    pawl_view name = { json_string_value(value), json_string_length(value) };
    const pawl_app_sequence *sequence = pawl__app_find_sequence(kind, name);
    if (sequence == NULL) {
        return pawl__fail_detail(reterr,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_UNKNOWN_SEQUENCE,
                                 "workspaces of kind '%s' have no sequence '%.*s' of their own",
                                 kind->name,
                                 VIEW_ARGS(name));
    }
    return add_hole(writer, (struct app_hole){ .next = true, .sequence = sequence->id }, reterr);
}

static pawl_status write_value(struct writer *writer, json_t *value, pawl_error *reterr);

static pawl_status write_key(struct writer *writer, const char *key, pawl_error *reterr)
{
    json_auto_t *text = json_string(key);

    return text == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a key")
                        : pawl__json_dump(text, &writer->text, reterr);
}

static pawl_status write_object(struct writer *writer, json_t *object, pawl_error *reterr)
{
    const char *key = NULL;
    json_t *value = NULL;
    char separator = '{';

    json_object_foreach(object, key, value)
    {
        pawl__buf_add_char(&writer->text, separator);
        separator = ',';
        TRY(write_key(writer, key, reterr));
        pawl__buf_add_char(&writer->text, ':');
        TRY(write_value(writer, value, reterr));
    }
    pawl__buf_add_text(&writer->text, separator == '{' ? "{}" : "}");
    return PAWL_OK;
}

static pawl_status write_array(struct writer *writer, json_t *array, pawl_error *reterr)
{
    pawl__buf_add_char(&writer->text, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0) {
            pawl__buf_add_char(&writer->text, ',');
        }
        TRY(write_value(writer, json_array_get(array, i), reterr));
    }
    pawl__buf_add_char(&writer->text, ']');
    return PAWL_OK;
}

/* As deep as the parser allows. */
// NOLINTNEXTLINE(misc-no-recursion)
static pawl_status write_value(struct writer *writer, json_t *value, pawl_error *reterr)
{
    json_t *raw = json_object_get(value, "$raw"); /* NULL, too, for what is no object */
    json_t *next = json_object_get(value, "$next");

    if (raw != NULL || next != NULL) {
        if (json_object_size(value) != 1) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "an object with \"%s\" has nothing else in it",
                              raw != NULL ? "$raw" : "$next");
        }
        return raw != NULL ? write_raw(writer, raw, reterr) : write_next(writer, next, reterr);
    }
    if (json_is_object(value)) {
        return write_object(writer, value, reterr);
    }
    if (json_is_array(value)) {
        return write_array(writer, value, reterr);
    }
    return pawl__json_dump(value, &writer->text, reterr);
}

static pawl_status copy_out(const struct writer *writer,
                            struct pawl__arena *arena,
                            struct app_text *ret_text,
                            pawl_error *reterr)
{
    struct app_text text = { .hole_count = writer->count };

    TRY(pawl__buf_check(&writer->text, "data", reterr));
    struct app_hole *holes = pawl__arena_take(arena, (writer->count + 1) * sizeof(*holes));
    if (holes == NULL || !pawl__arena_copy(arena, pawl__buf_view(&writer->text), &text.text)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a record");
    }
    if (writer->count > 0) {
        memcpy(holes, writer->holes, writer->count * sizeof(*holes));
    }
    text.holes = holes;
    *ret_text = text;
    return PAWL_OK;
}

static pawl_status write_template(json_t *json,
                                  const struct app_names *names,
                                  struct pawl__arena *arena,
                                  struct app_text *ret_text,
                                  pawl_error *reterr)
{
    AUTO(writer_done)
    struct writer writer = { .names = names, .text = BUF_INIT(PAWL_APP_COMMAND_BYTES_MAX) };

    if (json_object_get(json, "$raw") != NULL || json_object_get(json, "$next") != NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "a reference alone is no object");
    }
    TRY(write_value(&writer, json, reterr));
    return copy_out(&writer, arena, ret_text, reterr);
}

/* Whether there may be references: their names have a dollar, written as it is or as an escape. */
static bool may_refer(pawl_view data)
{
    return memchr(data.data, '$', data.len) != NULL || memchr(data.data, '\\', data.len) != NULL;
}

static bool is_object(pawl_view json)
{
    size_t at = 0;

    while (at < json.len && strchr(" \t\r\n", json.data[at]) != NULL) {
        at++;
    }
    return at < json.len && json.data[at] == '{';
}

pawl_status pawl__app_template(pawl_view data,
                               const struct app_names *names,
                               struct pawl__arena *arena,
                               struct app_text *ret_text,
                               pawl_error *reterr)
{
    json_auto_t *json = NULL;
    bool refers = data.len > 0 && may_refer(data);

    TRY(refers ? pawl__json_parse(data, PAWL_APP_COMMAND_BYTES_MAX, &json, reterr)
               : pawl__json_check(data, PAWL_APP_COMMAND_BYTES_MAX, reterr));
    if (!is_object(data)) {
        return pawl__fail(reterr, PAWL_INVALID, "no JSON object");
    }
    if (refers) {
        return write_template(json, names, arena, ret_text, reterr);
    }
    struct app_text text = { .hole_count = 0 };
    if (!pawl__arena_copy(arena, data, &text.text)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a record");
    }
    *ret_text = text;
    return PAWL_OK;
}

size_t pawl__app_text_fill(const struct app_text *text,
                           const uint64_t *ids,
                           const pawl_app_number *numbers,
                           struct pawl__buf *buf)
{
    size_t used = 0;
    size_t at = 0;

    for (size_t i = 0; i < text->hole_count; i++) {
        const struct app_hole *hole = &text->holes[i];
        uint64_t number = hole->next ? numbers[used++].number : ids[hole->create];
        pawl__buf_add(buf, (pawl_view){ &text->text.data[at], hole->at - at });
        pawl__buf_add_format(buf, "%" PRIu64, number);
        at = hole->at;
    }
    pawl__buf_add(buf, (pawl_view){ &text->text.data[at], text->text.len - at });
    return used;
}
