/* Descriptors, commands, responses, records and events as JSON. */
#include <inttypes.h>
#include <stdlib.h>

#include "app/core/ids.h"
#include "app/core/internal.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/json/json.h"

/* Escapes make a command longer than its data. */
#define COMMAND_JSON_BYTES_MAX (2 * PAWL_APP_COMMAND_BYTES_MAX)
#define JSON_BYTES_MAX (2 * APP_EVENT_BYTES_MAX)

pawl_status pawl_app_open_json(const char *location,
                               pawl_view descriptor,
                               const pawl_app_options *options,
                               pawl_app **ret_app,
                               pawl_error *reterr)
{
    NEED_VIEW(descriptor, reterr);
    AUTO(pawl__app_definition_done) struct app_definition definition = { .arena = ARENA_INIT };

    TRY(pawl__app_definition_read(descriptor, &definition, reterr));
    return pawl_app_open(location, &definition.descriptor, options, ret_app, reterr);
}

static pawl_status write_definition(const struct app_definition *definition,
                                    char **ret_json,
                                    size_t *ret_len,
                                    pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_DESCRIPTOR_BYTES_MAX);

    TRY(pawl__app_definition_write(definition, &text, reterr));
    return pawl__buf_hand_out(&text, "a descriptor", ret_json, ret_len, reterr);
}

pawl_status pawl_app_descriptor_to_json(const pawl_app *app,
                                        char **ret_json,
                                        size_t *ret_len,
                                        pawl_error *reterr)
{
    NEED(app, ret_json, ret_len, reterr);
    return write_definition(&app->definition, ret_json, ret_len, reterr);
}

pawl_status pawl_app_descriptor_normalize(pawl_view descriptor,
                                          char **ret_json,
                                          size_t *ret_len,
                                          pawl_error *reterr)
{
    NEED_VIEW(descriptor, reterr);
    NEED(ret_json, ret_len, reterr);
    AUTO(pawl__app_definition_done) struct app_definition definition = { .arena = ARENA_INIT };

    TRY(pawl__app_definition_read(descriptor, &definition, reterr));
    return write_definition(&definition, ret_json, ret_len, reterr);
}

/* --- commands --- */

/* Data is passed on as text, in the arena. */
static pawl_status read_data(const struct pawl__json_node *object,
                             struct pawl__arena *arena,
                             pawl_view *ret_data,
                             pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(COMMAND_JSON_BYTES_MAX);
    struct pawl__json_node data;

    TRY(pawl__json_object(pawl__json_key(object, "data"), &data, reterr));
    TRY(pawl__json_dump(data.value, &text, reterr));
    if (!pawl__arena_copy(arena, pawl__buf_view(&text), ret_data)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a record");
    }
    return PAWL_OK;
}

static pawl_status read_class(const struct pawl__json_node *object,
                              pawl_app_class *ret_class,
                              pawl_error *reterr)
{
    pawl_view word;
    struct pawl__json_node node = pawl__json_key(object, "class");

    TRY(pawl__json_text(node, &word, reterr));
    if (!pawl__app_class_parse(word, ret_class)) {
        TRY(pawl__json_fail(&node, reterr, "is none of c, o, w and singleton"));
    }
    return PAWL_OK;
}

static pawl_status read_number(const struct pawl__json_node *object,
                               const char *key,
                               uint64_t *ret_number,
                               pawl_error *reterr)
{
    int64_t number = 0;

    TRY(pawl__json_int(pawl__json_optional(object, key), 0, INT64_MAX, &number, reterr));
    *ret_number = (uint64_t)number;
    return PAWL_OK;
}

static pawl_status read_create(struct pawl__json_node node,
                               struct pawl__arena *arena,
                               void *element,
                               pawl_error *reterr)
{
    static const char *const names[] = { "class", "raw_id", "id", "table", "data" };
    pawl_app_create *create = element;
    struct pawl__json_node object;

    *create = (pawl_app_create){ .size = sizeof(pawl_app_create), .raw_id = 0 };
    TRY(pawl__json_object(node, &object, reterr));
    TRY(pawl__json_only(&object, names, COUNT_OF(names), reterr));
    TRY(read_class(&object, &create->record_class, reterr));
    TRY(read_number(&object, "raw_id", &create->raw_id, reterr));
    TRY(read_number(&object, "id", &create->singleton, reterr));
    TRY(pawl__json_text(pawl__json_key(&object, "table"), &create->table, reterr));
    return read_data(&object, arena, &create->data, reterr);
}

static pawl_status read_update(struct pawl__json_node node,
                               struct pawl__arena *arena,
                               void *element,
                               pawl_error *reterr)
{
    static const char *const names[] = { "id", "data" };
    pawl_app_update *update = element;
    struct pawl__json_node object;
    int64_t id = 0;

    TRY(pawl__json_object(node, &object, reterr));
    TRY(pawl__json_only(&object, names, COUNT_OF(names), reterr));
    TRY(pawl__json_int(pawl__json_key(&object, "id"), 0, INT64_MAX, &id, reterr));
    update->size = sizeof(*update);
    update->id = (uint64_t)id;
    return read_data(&object, arena, &update->data, reterr);
}

/* None when the key is missing, and not more than a command may have. */
static pawl_status read_records(const struct pawl__json_node *object,
                                const char *key,
                                struct pawl__arena *arena,
                                struct app_json_array *array,
                                pawl_error *reterr)
{
    struct pawl__json_node node = pawl__json_optional(object, key);

    if (node.value == NULL || json_is_null(node.value)) {
        return PAWL_OK;
    }
    TRY(pawl__app_read_array(node, arena, array, reterr));
    return array->count <= PAWL_APP_RECORDS_MAX
               ? PAWL_OK
               : pawl__json_fail(&node, reterr, "has more than %d records", PAWL_APP_RECORDS_MAX);
}

static pawl_status read_workspace(const struct pawl__json_node *object,
                                  uint64_t fallback,
                                  uint64_t *ret_workspace,
                                  pawl_error *reterr)
{
    int64_t workspace = 0;
    struct pawl__json_node node = fallback == 0 ? pawl__json_key(object, "workspace")
                                                : pawl__json_optional(object, "workspace");
    TRY(pawl__json_int(node, 1, INT64_MAX, &workspace, reterr));
    if (fallback != 0 && workspace != 0 && (uint64_t)workspace != fallback) {
        return pawl__json_fail(&node, reterr, "is not %" PRIu64, fallback);
    }
    *ret_workspace = workspace == 0 ? fallback : (uint64_t)workspace;
    return PAWL_OK;
}

/* An empty key would be taken for a key, and the command for one that is executed once. */
static pawl_status read_key(const struct pawl__json_node *object,
                            pawl_view *ret_key,
                            pawl_error *reterr)
{
    struct pawl__json_node node = pawl__json_optional(object, "key");

    TRY(pawl__json_text(node, ret_key, reterr));
    return node.value != NULL && ret_key->len == 0
               ? pawl__fail(reterr, PAWL_INVALID, "command.key: is empty; leave it out for none")
               : PAWL_OK;
}

static pawl_status read_command(json_t *json,
                                uint64_t workspace,
                                struct pawl__arena *arena,
                                pawl_app_command *command,
                                pawl_error *reterr)
{
    static const char *const names[] = { "workspace", "kind", "key", "creates", "updates" };
    struct app_json_array creates = { .size = sizeof(pawl_app_create), .read = read_create };
    struct app_json_array updates = { .size = sizeof(pawl_app_update), .read = read_update };
    struct pawl__json_node object;

    TRY(pawl__json_object(pawl__json_root(json, "command"), &object, reterr));
    TRY(pawl__json_only(&object, names, COUNT_OF(names), reterr));
    TRY(read_workspace(&object, workspace, &command->workspace, reterr));
    TRY(pawl__json_text(pawl__json_key(&object, "kind"), &command->kind, reterr));
    TRY(read_key(&object, &command->key, reterr));
    TRY(read_records(&object, "creates", arena, &creates, reterr));
    TRY(read_records(&object, "updates", arena, &updates, reterr));
    command->creates = creates.elements;
    command->create_count = creates.count;
    command->updates = updates.elements;
    command->update_count = updates.count;
    return PAWL_OK;
}

/* --- what comes out --- */

static void add_text(struct pawl__buf *buf, pawl_view text)
{
    json_auto_t *json = json_stringn(text.data == NULL ? "" : text.data, text.len);

    if (json == NULL || pawl__json_dump(json, buf, NULL) != PAWL_OK) {
        buf->broken = true;
        buf->nomem = buf->nomem || json == NULL;
    }
}

/* An application's own sequences have names, the others are known by these. */
const char *pawl_app_sequence_name(const pawl_app *app, uint16_t sequence)
{
    static const pawl_app_descriptor none = PAWL_APP_DESCRIPTOR_INIT;

    return pawl__app_sequence_name(app == NULL ? &none : &app->definition.descriptor, sequence);
}

static void add_numbers(const pawl_app *app,
                        const pawl_app_number *numbers,
                        size_t count,
                        struct pawl__buf *buf)
{
    pawl__buf_add_text(buf, ",\"numbers\":[");
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_text(buf, i == 0 ? "{\"sequence\":" : ",{\"sequence\":");
        add_text(buf, pawl_view_of(pawl_app_sequence_name(app, numbers[i].sequence)));
        pawl__buf_add_format(buf, ",\"number\":%" PRIu64 "}", numbers[i].number);
    }
    pawl__buf_add_char(buf, ']');
}

/* JSON, checked when it came in: a line break in it is white space. */
static void add_on_one_line(struct pawl__buf *buf, pawl_view json)
{
    char *made = pawl__buf_extend(buf, json.len);

    for (size_t i = 0; made != NULL && i < json.len; i++) {
        made[i] = json.data[i] == '\n' || json.data[i] == '\r' ? ' ' : json.data[i];
    }
}

static void add_record(const pawl_app_record *record, bool in_event, struct pawl__buf *buf)
{
    pawl__buf_add_format(buf,
                         "{\"id\":%" PRIu64 ",\"class\":\"%s\",\"table\":",
                         record->id,
                         pawl_app_class_word(record->record_class));
    add_text(buf, record->table);
    if (in_event) {
        pawl__buf_add_format(buf, ",\"update\":%s", record->update ? "true" : "false");
    }
    pawl__buf_add_text(buf, ",\"data\":");
    add_on_one_line(buf, record->data);
    pawl__buf_add_char(buf, '}');
}

static void add_response(const pawl_app *app,
                         const pawl_app_response *response,
                         struct pawl__buf *buf)
{
    pawl__buf_add_format(buf,
                         "{\"partition\":%u,\"plog_offset\":%" PRIu64 ",\"wlog_offset\":%" PRIu64
                         ",\"duplicate\":%s,\"ids\":{",
                         response->partition,
                         response->plog_offset,
                         response->wlog_offset,
                         response->duplicate ? "true" : "false");
    for (size_t i = 0; i < response->id_count; i++) {
        pawl__buf_add_format(buf,
                             "%s\"%" PRIu64 "\":%" PRIu64,
                             i == 0 ? "" : ",",
                             response->ids[i].raw,
                             response->ids[i].id);
    }
    pawl__buf_add_char(buf, '}');
    add_numbers(app, response->numbers, response->number_count, buf);
    pawl__buf_add_char(buf, '}');
}

/* The command lives in both. */
static pawl_status parse_command(pawl_view text,
                                 uint64_t workspace,
                                 struct pawl__arena *arena,
                                 json_t **ret_json,
                                 pawl_app_command *ret_command,
                                 pawl_error *reterr)
{
    TRY(pawl__json_parse(text, COMMAND_JSON_BYTES_MAX, ret_json, reterr));
    return read_command(*ret_json, workspace, arena, ret_command, reterr);
}

DEFINE_AUTO(pawl_app_response *, pawl_app_response_free)

pawl_status pawl_app_exec_json(pawl_app *app,
                               uint64_t workspace,
                               pawl_view text,
                               char **ret_json,
                               size_t *ret_len,
                               pawl_error *reterr)
{
    NEED(app, reterr);
    TRY(pawl__check_view(text, "command", reterr)); /* by the name that the header gives it */
    NEED(ret_json, ret_len, reterr);
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    json_auto_t *json = NULL;
    pawl_app_command command = { .size = sizeof(pawl_app_command), .workspace = 0 };
    AUTO(pawl_app_response_free_p) pawl_app_response *response = NULL;

    TRY(parse_command(text, workspace, &arena, &json, &command, reterr));
    TRY(pawl_app_exec(app, &command, &response, reterr));
    return pawl_app_response_to_json(app, response, ret_json, ret_len, reterr);
}

/* A command may say its key itself, and then the same. */
static pawl_status set_key(pawl_app_command *command, pawl_view key, pawl_error *reterr)
{
    if (key.len == 0) {
        return PAWL_OK;
    }
    if (command->key.data != NULL && !pawl__view_equal(command->key, key)) {
        return pawl__fail(
            reterr, PAWL_INVALID, "the command has another key than it was sent with");
    }
    command->key = key;
    return PAWL_OK;
}

pawl_status pawl_app_exec_json_async(pawl_app *app,
                                     uint64_t workspace,
                                     pawl_view key,
                                     pawl_view text,
                                     pawl_app_exec_done done,
                                     void *context,
                                     pawl_error *reterr)
{
    NEED(app, reterr);
    NEED_VIEW(key, reterr);
    TRY(pawl__check_view(text, "command", reterr)); /* by the name that the header gives it */
    NEED(done, reterr);
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    json_auto_t *json = NULL;
    pawl_app_command command = { .size = sizeof(pawl_app_command), .workspace = 0 };

    TRY(parse_command(text, workspace, &arena, &json, &command, reterr));
    TRY(set_key(&command, key, reterr));
    return pawl_app_exec_async(app, &command, done, context, reterr);
}

pawl_status pawl_app_response_to_json(const pawl_app *app,
                                      const pawl_app_response *response,
                                      char **ret_json,
                                      size_t *ret_len,
                                      pawl_error *reterr)
{
    pawl_app_response whole = { .size = sizeof(whole) };

    NEED(app, response, reterr);
    TRY(pawl__take_sized("response", response, &whole, sizeof(whole), reterr));
    response = &whole;
    NEED_ARRAY(response->ids, response->id_count, reterr);
    NEED_ARRAY(response->numbers, response->number_count, reterr);
    NEED(ret_json, ret_len, reterr);
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(JSON_BYTES_MAX);

    add_response(app, response, &buf);
    return pawl__buf_hand_out(&buf, "the answer", ret_json, ret_len, reterr);
}

pawl_status pawl_app_record_to_json(const pawl_app_record *record,
                                    char **ret_json,
                                    size_t *ret_len,
                                    pawl_error *reterr)
{
    pawl_app_record whole = { .size = sizeof(whole) };

    NEED(record, reterr);
    TRY(pawl__take_sized("record", record, &whole, sizeof(whole), reterr));
    record = &whole;
    NEED_VIEW(record->table, reterr);
    NEED_VIEW(record->data, reterr);
    NEED(ret_json, ret_len, reterr);
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(JSON_BYTES_MAX);

    add_record(record, false, &buf);
    return pawl__buf_hand_out(&buf, "the answer", ret_json, ret_len, reterr);
}

static pawl_status check_event(const pawl_app_event *event, pawl_error *reterr)
{
    NEED_VIEW(event->key, reterr);
    NEED_ARRAY(event->records, event->record_count, reterr);
    NEED_ARRAY(event->numbers, event->number_count, reterr);
    for (size_t i = 0; i < event->record_count; i++) {
        const pawl_app_record *record = &event->records[i];
        NEED_VIEW(record->table, reterr);
        NEED_VIEW(record->data, reterr);
    }
    return PAWL_OK;
}

pawl_status pawl_app_event_to_json(const pawl_app *app,
                                   const pawl_app_event *event,
                                   char **ret_json,
                                   size_t *ret_len,
                                   pawl_error *reterr)
{
    pawl_app_event whole = { .size = sizeof(whole) };

    NEED(app, event, ret_json, reterr);
    NEED(ret_len, reterr);
    TRY(pawl__take_sized("event", event, &whole, sizeof(whole), reterr));
    event = &whole;
    TRY(check_event(event, reterr));
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(JSON_BYTES_MAX);
    const pawl_app_descriptor *descriptor = &app->definition.descriptor;
    const char *kind = "";

    for (size_t i = 0; i < descriptor->kind_count; i++) {
        kind = descriptor->kinds[i].id == event->kind ? descriptor->kinds[i].name : kind;
    }
    pawl__buf_add_format(&buf,
                         "{\"plog_offset\":%" PRIu64 ",\"wlog_offset\":%" PRIu64
                         ",\"workspace\":%" PRIu64 ",\"kind\":",
                         event->plog_offset,
                         event->wlog_offset,
                         event->workspace);
    add_text(&buf, pawl_view_of(kind));
    if (event->key.len > 0 && pawl__view_is_utf8(event->key)) {
        pawl__buf_add_text(&buf, ",\"key\":");
        add_text(&buf, event->key);
    }
    pawl__buf_add_text(&buf, ",\"records\":[");
    for (size_t i = 0; i < event->record_count; i++) {
        if (i > 0) {
            pawl__buf_add_char(&buf, ',');
        }
        add_record(&event->records[i], true, &buf);
    }
    pawl__buf_add_char(&buf, ']');
    add_numbers(app, event->numbers, event->number_count, &buf);
    pawl__buf_add_char(&buf, '}');
    return pawl__buf_hand_out(&buf, "the answer", ret_json, ret_len, reterr);
}
