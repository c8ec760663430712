/* What is stored of the sequences, in order of workspaces; and up to where the logs are in it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/verify/check.h"
#include "base/core/error.h"

pawl_status pawl__check_rows_open(const struct check *check,
                                  uint16_t partition,
                                  struct check_rows *rows,
                                  pawl_error *reterr)
{
    uint32_t app = check->app->definition.descriptor.id;
    uint64_t workspace = check->workspace;

    rows->partition = partition;
    rows->from = pawl__app_key_seq(app, partition, workspace, 0);
    rows->until = workspace == 0 ? pawl__app_key_offset(app, (uint16_t)(partition + 1))
                                 : pawl__app_key_seq(app, partition, workspace + 1, 0);
    rows->entries = malloc(APP_PAGE_ENTRIES * sizeof(*rows->entries));
    return rows->entries == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a page") : PAWL_OK;
}

void pawl__check_rows_done(struct check_rows *rows)
{
    pawl__arena_done(&rows->arena);
    free(rows->entries);
}

static pawl_status read_page(const struct check *check, struct check_rows *rows, pawl_error *reterr)
{
    struct app_store *store = check->app->store;
    const struct app_range range = { .family = APP_SEQ,
                                     .from = pawl__app_key_view(&rows->from),
                                     .until = pawl__app_key_view(&rows->until),
                                     .limit = APP_PAGE_ENTRIES,
                                     .bytes_max = APP_PAGE_BYTES_MAX };

    pawl__arena_clear(&rows->arena);
    rows->at = 0;
    rows->count = 0;
    pawl_status status =
        store->ops->scan(store, &range, &rows->arena, rows->entries, &rows->count, reterr);
    rows->ended = status == PAWL_OK && rows->count == 0;
    return status;
}

/* Nobody reads it, so a number in it is one that is missing elsewhere. */
static void tell_astray(struct check *check, const struct app_key_parts *parts)
{
    pawl__check_tell(check,
                     PAWL_APP_PART_SEQUENCES,
                     "sequence %u '%s' of workspace %" PRIu64 " is stored in partition %u, which "
                     "does not have that workspace",
                     parts->sequence,
                     pawl_app_sequence_name(check->app, parts->sequence),
                     parts->workspace,
                     parts->partition);
}

pawl_status pawl__check_rows_next(struct check *check,
                                  struct check_rows *rows,
                                  uint64_t *ret_workspace,
                                  pawl_error *reterr)
{
    struct app_key_parts parts;

    *ret_workspace = 0;
    while (!rows->ended) {
        if (rows->at == rows->count) {
            TRY(read_page(check, rows, reterr));
            continue;
        }
        const struct app_entry *entry = &rows->entries[rows->at];
        size_t len = MIN(entry->key.len, sizeof(rows->from.bytes) - 1);
        memcpy(rows->from.bytes, entry->key.data, len);
        rows->from.bytes[len] = 0; /* the next possible key */
        rows->from.len = len + 1;
        if (!pawl__app_key_take(APP_SEQ, entry->key, &parts)) {
            pawl__check_tell(check, PAWL_APP_PART_SEQUENCES, "a key of %zu bytes is none", len);
        } else if (pawl_app_partition_of(check->app, parts.workspace) != rows->partition) {
            tell_astray(check, &parts);
        } else {
            *ret_workspace = parts.workspace;
            return PAWL_OK;
        }
        check->report.entries[PAWL_APP_PART_SEQUENCES]++;
        rows->at++;
    }
    return PAWL_OK;
}

/* --- offsets --- */

static pawl_status take_offset(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct check *check = context;
    struct app_key_parts parts;
    struct app_stored stored;
    pawl_error error = PAWL_ERROR_INIT;

    (void)reterr;
    check->report.entries[PAWL_APP_PART_OFFSETS]++;
    if (!pawl__app_key_take(APP_OFFSETS, entry->key, &parts)
        || parts.partition >= check->app->partition_count
        || parts.app != check->app->definition.descriptor.id) {
        pawl__check_tell(check, PAWL_APP_PART_OFFSETS, "a key is of no partition");
    } else if (pawl__app_stored_decode(APP_OFFSETS,
                                       entry->key,
                                       entry->value,
                                       check->app->format != APP_FORMAT,
                                       NULL,
                                       &stored,
                                       &error)
               != PAWL_OK) {
        pawl__check_tell(check, PAWL_APP_PART_OFFSETS, "%s", error.message);
    } else {
        check->partitions[parts.partition].stored = stored.number;
    }
    return PAWL_OK;
}

pawl_status pawl__check_offsets(struct check *check, pawl_error *reterr)
{
    const struct app_range range = { .family = APP_OFFSETS };

    return pawl__app_store_walk(check->app->store, &range, take_offset, check, reterr);
}
