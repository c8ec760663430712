#include "app/core/command.h"

#include <inttypes.h>
#include <stdlib.h>

#include "app/core/ids.h"
#include "app/definition/descriptor.h"
#include "app/definition/template.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/json/json.h"

/* Canonical numbers and escapes may be longer than the given ones. */
#define APP_HASHED_BYTES_MAX (4 * PAWL_APP_COMMAND_BYTES_MAX)

void pawl__app_request_done(struct app_request *request)
{
    pawl__arena_done(&request->arena);
    *request = (struct app_request){ .arena = ARENA_INIT };
}

static pawl_status fail_nomem(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a command");
}

/* --- the whole --- */

static pawl_status check_counts(const pawl_app_command *command, pawl_error *reterr)
{
    size_t records = command->create_count + command->update_count;

    if (command->create_count > PAWL_APP_RECORDS_MAX || records > PAWL_APP_RECORDS_MAX) {
        return pawl__fail(
            reterr, PAWL_INVALID, "the command has more than %d records", PAWL_APP_RECORDS_MAX);
    }
    NEED_ARRAY(command->creates, command->create_count, reterr);
    NEED_ARRAY(command->updates, command->update_count, reterr);
    return PAWL_OK;
}

static pawl_status check_sizes(const pawl_app_command *command, pawl_error *reterr)
{
    size_t bytes = 0;

    for (size_t i = 0; i < command->create_count; i++) {
        const pawl_app_create *create = &command->creates[i];
        NEED_VIEW(create->table, reterr);
        NEED_VIEW(create->data, reterr);
        bytes += MIN(command->creates[i].data.len, PAWL_APP_COMMAND_BYTES_MAX + 1);
    }
    for (size_t i = 0; i < command->update_count; i++) {
        const pawl_app_update *update = &command->updates[i];
        NEED_VIEW(update->data, reterr);
        bytes += MIN(command->updates[i].data.len, PAWL_APP_COMMAND_BYTES_MAX + 1);
    }
    return bytes <= PAWL_APP_COMMAND_BYTES_MAX ? PAWL_OK
                                               : pawl__fail(reterr,
                                                            PAWL_INVALID,
                                                            "the command's data is over %zu bytes",
                                                            PAWL_APP_COMMAND_BYTES_MAX);
}

static pawl_status copy_head(const pawl_app_descriptor *descriptor,
                             const pawl_app_command *command,
                             struct app_request *request,
                             pawl_error *reterr)
{
    NEED_VIEW(command->kind, reterr);
    NEED_VIEW(command->key, reterr);
    if (command->workspace == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "0 is no workspace");
    }
    if (command->workspace > PAWL_APP_WORKSPACE_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "workspace %" PRIu64 " is over the last one, %" PRIu64,
                          command->workspace,
                          PAWL_APP_WORKSPACE_MAX);
    }
    request->workspace = command->workspace;
    request->kind = pawl__app_find_kind(descriptor, command->kind);
    if (request->kind == NULL) {
        pawl_view shown = { command->kind.data, MIN(command->kind.len, PAWL_APP_NAME_BYTES_MAX) };
        return pawl__fail_detail(reterr,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_UNKNOWN_KIND,
                                 "application '%s' has no workspaces of kind '%.*s'",
                                 descriptor->name,
                                 VIEW_ARGS(shown));
    }
    if (command->key.len > PAWL_APP_KEY_BYTES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the idempotency key has %zu bytes, the limit is %d",
                          command->key.len,
                          PAWL_APP_KEY_BYTES_MAX);
    }
    if (!pawl__view_is_utf8(command->key)) {
        return pawl__fail(reterr, PAWL_INVALID, "the idempotency key is not UTF-8");
    }
    if (command->key.len > 0 && !pawl__arena_copy(&request->arena, command->key, &request->key)) {
        return fail_nomem(reterr);
    }
    return check_sizes(command, reterr);
}

/* --- ids that a command may name once --- */

static int by_number(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a;
    uint64_t other = *(const uint64_t *)b;

    return (one > other) - (one < other);
}

/* Sorts the ids, of which none may come twice; NULL: there was no memory for them. */
static pawl_status check_once(uint64_t *ids, size_t count, const char *what, pawl_error *reterr)
{
    if (ids == NULL) {
        return fail_nomem(reterr);
    }
    if (count > 1) {
        qsort(ids, count, sizeof(*ids), by_number);
    }
    for (size_t i = 1; i < count; i++) {
        if (ids[i] == ids[i - 1]) {
            return pawl__fail(
                reterr, PAWL_INVALID, "the command %s %" PRIu64 " twice", what, ids[i]);
        }
    }
    return PAWL_OK;
}

/* --- records to create --- */

static pawl_status check_create(const pawl_app_create *create, pawl_error *reterr)
{
    bool singleton = create->record_class == PAWL_APP_SINGLETON;

    if ((unsigned)create->record_class > PAWL_APP_W_RECORD) {
        return pawl__fail(
            reterr, PAWL_INVALID, "%u is no class of records", (unsigned)create->record_class);
    }
    if (!singleton && create->singleton != 0) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "a %s gets its id from a sequence, not %" PRIu64 " from the command",
                          pawl__app_class_name(create->record_class),
                          create->singleton);
    }
    if (singleton && !pawl__app_id_fits(PAWL_APP_SINGLETON, create->singleton)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "singleton id %" PRIu64 " is not in %" PRIu64 "-%" PRIu64,
                          create->singleton,
                          PAWL_APP_SINGLETON_ID_MIN,
                          PAWL_APP_SINGLETON_ID_MAX);
    }
    if (!singleton || create->raw_id != 0) {
        TRY(pawl__app_check_raw_id(create->raw_id, reterr));
    }
    return pawl__app_check_name("table", create->table, reterr);
}

/* The raw ids, sorted; each once. */
static pawl_status copy_raw_ids(const pawl_app_command *command,
                                struct app_request *request,
                                struct app_names *ret_names,
                                pawl_error *reterr)
{
    struct app_raw *raws =
        pawl__arena_take(&request->arena, (command->create_count + 1) * sizeof(*raws));
    size_t count = 0;

    if (raws == NULL) {
        return fail_nomem(reterr);
    }
    for (size_t i = 0; i < command->create_count; i++) {
        pawl_status status = check_create(&command->creates[i], reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "creates[%zu]", i);
        }
        if (command->creates[i].raw_id != 0) {
            raws[count++] = (struct app_raw){ command->creates[i].raw_id, i };
        }
    }
    if (count > 1) {
        qsort(raws, count, sizeof(*raws), pawl__app_raw_compare);
    }
    for (size_t i = 1; i < count; i++) {
        if (raws[i].raw_id == raws[i - 1].raw_id) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "two records of the command have the raw id %" PRIu64,
                              raws[i].raw_id);
        }
    }
    request->raw_count = count;
    *ret_names = (struct app_names){ .kind = request->kind, .raws = raws, .raw_count = count };
    return PAWL_OK;
}

static pawl_status check_singletons(const pawl_app_command *command,
                                    struct app_request *request,
                                    pawl_error *reterr)
{
    uint64_t *ids = pawl__arena_take(&request->arena, (command->create_count + 1) * sizeof(*ids));
    size_t count = 0;

    for (size_t i = 0; ids != NULL && i < command->create_count; i++) {
        if (command->creates[i].record_class == PAWL_APP_SINGLETON) {
            ids[count++] = command->creates[i].singleton;
        }
    }
    return check_once(ids, count, "creates singleton", reterr);
}

static void count_text(struct app_request *request, const struct app_text *text)
{
    request->bytes += text->text.len;
    for (size_t i = 0; i < text->hole_count; i++) {
        request->next_count += text->holes[i].next;
    }
}

static pawl_status copy_creates(const pawl_app_command *command,
                                const struct app_names *names,
                                struct app_request *request,
                                pawl_error *reterr)
{
    size_t count = command->create_count;

    request->creates = pawl__arena_take(&request->arena, (count + 1) * sizeof(*request->creates));
    if (request->creates == NULL) {
        return fail_nomem(reterr);
    }
    for (size_t i = 0; i < count; i++) {
        const pawl_app_create *given = &command->creates[i];
        struct app_new *copy = &request->creates[i];
        *copy = (struct app_new){ .record_class = given->record_class,
                                  .raw_id = given->raw_id,
                                  .singleton = given->singleton };
        if (!pawl__arena_copy(&request->arena, given->table, &copy->table)) {
            return fail_nomem(reterr);
        }
        pawl_status status =
            pawl__app_template(given->data, names, &request->arena, &copy->data, reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "creates[%zu]: data", i);
        }
        count_text(request, &copy->data);
    }
    request->create_count = count;
    return PAWL_OK;
}

/* --- records to update --- */

static pawl_status check_updates(const pawl_app_command *command,
                                 struct app_request *request,
                                 pawl_error *reterr)
{
    uint64_t *ids = pawl__arena_take(&request->arena, (command->update_count + 1) * sizeof(*ids));

    for (size_t i = 0; ids != NULL && i < command->update_count; i++) {
        pawl_status status = pawl__app_check_id(command->updates[i].id, reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "updates[%zu]", i);
        }
        ids[i] = command->updates[i].id;
    }
    return check_once(ids, command->update_count, "updates record", reterr);
}

static pawl_status copy_updates(const pawl_app_command *command,
                                const struct app_names *names,
                                struct app_request *request,
                                pawl_error *reterr)
{
    size_t count = command->update_count;

    TRY(check_updates(command, request, reterr));
    request->updates = pawl__arena_take(&request->arena, (count + 1) * sizeof(*request->updates));
    if (request->updates == NULL) {
        return fail_nomem(reterr);
    }
    for (size_t i = 0; i < count; i++) {
        struct app_change *copy = &request->updates[i];
        *copy = (struct app_change){ .id = command->updates[i].id };
        pawl_status status = pawl__app_template(
            command->updates[i].data, names, &request->arena, &copy->data, reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "updates[%zu]: data", i);
        }
        count_text(request, &copy->data);
    }
    request->update_count = count;
    return PAWL_OK;
}

/* --- the hash, which says whether two commands with one key are the same --- */

static pawl_status add_canonical(struct pawl__buf *buf, pawl_view data, pawl_error *reterr)
{
    json_auto_t *json = NULL;
    pawl_status status = pawl__json_parse(data, PAWL_APP_COMMAND_BYTES_MAX, &json, reterr);

    if (status == PAWL_OK) {
        status = pawl__json_canonical(json, buf, reterr);
    }
    pawl__buf_add_char(buf, '\0'); /* which no JSON has: what follows cannot be taken for a part */
    return status;
}

static pawl_status hash_command(const pawl_app_command *command,
                                struct app_request *request,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(APP_HASHED_BYTES_MAX);
    pawl__buf_add_u16be(&buf, request->kind->id);
    pawl__buf_add_u64be(&buf, command->create_count);
    for (size_t i = 0; i < command->create_count; i++) {
        const pawl_app_create *create = &command->creates[i];
        pawl__buf_add_u8(&buf, (uint8_t)create->record_class);
        pawl__buf_add_u64be(&buf, create->raw_id);
        pawl__buf_add_u64be(&buf, create->singleton);
        pawl__buf_add_u64be(&buf, create->table.len);
        pawl__buf_add(&buf, create->table);
        TRY(add_canonical(&buf, create->data, reterr));
    }
    for (size_t i = 0; i < command->update_count; i++) {
        pawl__buf_add_u64be(&buf, command->updates[i].id);
        TRY(add_canonical(&buf, command->updates[i].data, reterr));
    }
    TRY(pawl__buf_check(&buf, "the command", reterr));
    return pawl__sha256(pawl__buf_view(&buf), &request->hash, reterr);
}

/* The command of a caller of an older version becomes one of this. */
static pawl_status take_command(const pawl_app_command *given,
                                pawl_app_command *command,
                                struct app_request *request,
                                pawl_error *reterr)
{
    static const pawl_app_create create = PAWL_APP_CREATE_INIT;
    static const pawl_app_update update = PAWL_APP_UPDATE_INIT;

    TRY(pawl__take_sized("command", given, command, sizeof(*command), reterr));
    TRY(check_counts(command, reterr));
    const void *creates = command->creates;
    const void *updates = command->updates;
    TRY(pawl__widen_sized("creates",
                          &creates,
                          command->create_count,
                          &create,
                          sizeof(create),
                          &request->arena,
                          reterr));
    TRY(pawl__widen_sized("updates",
                          &updates,
                          command->update_count,
                          &update,
                          sizeof(update),
                          &request->arena,
                          reterr));
    command->creates = creates;
    command->updates = updates;
    return PAWL_OK;
}

pawl_status pawl__app_request_make(const pawl_app_descriptor *descriptor,
                                   const pawl_app_command *command,
                                   struct app_request *request,
                                   pawl_error *reterr)
{
    pawl_app_command whole = PAWL_APP_COMMAND_INIT;
    struct app_names names;

    TRY(take_command(command, &whole, request, reterr));
    command = &whole;
    TRY(copy_head(descriptor, command, request, reterr));
    TRY(copy_raw_ids(command, request, &names, reterr));
    TRY(check_singletons(command, request, reterr));
    TRY(copy_creates(command, &names, request, reterr));
    TRY(copy_updates(command, &names, request, reterr));
    return command->key.len > 0 ? hash_command(command, request, reterr) : PAWL_OK;
}
