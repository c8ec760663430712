/* The stored numbers of the sequences in order of workspaces, and the log offset up to which they are current. */
#include <inttypes.h>
#include <string.h>

#include "app/core/format.h"
#include "app/verify/verify.h"
#include "base/core/error.h"

void pawl__app_verify_rows_start(const struct app_verify *verify,
                                 uint16_t partition,
                                 struct verify_rows *rows)
{
    uint32_t app = verify->app->definition.descriptor.id;
    uint64_t workspace = verify->workspace;

    rows->partition = partition;
    rows->from = pawl__app_key_seq(app, partition, workspace, 0);
    rows->until = workspace == 0 ? pawl__app_key_offset(app, (uint16_t)(partition + 1))
                                 : pawl__app_key_seq(app, partition, workspace + 1, 0);
}

static pawl_status read_page(const struct app_verify *verify,
                             struct verify_rows *rows,
                             pawl_error *reterr)
{
    const struct app_range range = { .family = APP_SEQ,
                                     .from = pawl__app_key_view(&rows->from),
                                     .until = pawl__app_key_view(&rows->until),
                                     .limit = APP_PAGE_ENTRIES,
                                     .bytes_max = APP_PAGE_BYTES_MAX };

    rows->at = 0;
    TRY(pawl__app_store_scan(verify->store, &range, &rows->page, reterr));
    rows->ended = rows->page.count == 0;
    return PAWL_OK;
}

/* Nobody reads it, so a number in it is one that is missing elsewhere. */
static void report_astray(struct app_verify *verify, const struct app_key_parts *parts)
{
    pawl__app_verify_finding(verify,
                             PAWL_APP_PART_SEQUENCES,
                             "sequence %u '%s' of workspace %" PRIu64
                             " is stored in partition %u, which "
                             "does not have that workspace",
                             parts->sequence,
                             pawl_app_sequence_name(verify->app, parts->sequence),
                             parts->workspace,
                             parts->partition);
}

pawl_status pawl__app_verify_rows_next(struct app_verify *verify,
                                       struct verify_rows *rows,
                                       uint64_t *ret_workspace,
                                       pawl_error *reterr)
{
    struct app_key_parts parts;

    *ret_workspace = 0;
    while (!rows->ended) {
        if (rows->at == rows->page.count) {
            TRY(read_page(verify, rows, reterr));
            continue;
        }
        const struct app_entry *entry = &rows->page.entries[rows->at];
        size_t len = MIN(entry->key.len, sizeof(rows->from.bytes) - 1);
        memcpy(rows->from.bytes, entry->key.data, len);
        rows->from.bytes[len] = 0; /* the next possible key */
        rows->from.len = len + 1;
        if (!pawl__app_key_parse(APP_SEQ, entry->key, &parts)) {
            pawl__app_verify_finding(
                verify, PAWL_APP_PART_SEQUENCES, "a key of %zu bytes is none", len);
        } else if (pawl_app_partition_of(verify->app, parts.workspace) != rows->partition) {
            report_astray(verify, &parts);
        } else {
            *ret_workspace = parts.workspace;
            return PAWL_OK;
        }
        verify->report.entries[PAWL_APP_PART_SEQUENCES]++;
        rows->at++;
    }
    return PAWL_OK;
}

/* --- offsets --- */

static pawl_status visit_offset(void *context, const struct app_entry *entry, pawl_error *reterr)
{
    struct app_verify *verify = context;
    struct app_key_parts parts;
    struct app_stored stored;
    pawl_error error = PAWL_ERROR_INIT;

    (void)reterr;
    verify->report.entries[PAWL_APP_PART_OFFSETS]++;
    if (!pawl__app_key_parse(APP_OFFSETS, entry->key, &parts)
        || parts.partition >= verify->app->partition_count
        || parts.app != verify->app->definition.descriptor.id) {
        pawl__app_verify_finding(verify, PAWL_APP_PART_OFFSETS, "a key is of no partition");
    } else if (pawl__app_stored_decode(APP_OFFSETS,
                                       entry->key,
                                       entry->value,
                                       verify->app->format != APP_FORMAT,
                                       NULL,
                                       &stored,
                                       &error)
               != PAWL_OK) {
        pawl__app_verify_finding(verify, PAWL_APP_PART_OFFSETS, "%s", error.message);
    } else {
        verify->partitions[parts.partition].stored = stored.number;
    }
    return PAWL_OK;
}

pawl_status pawl__app_verify_offsets(struct app_verify *verify, pawl_error *reterr)
{
    const struct app_range range = { .family = APP_OFFSETS };

    return pawl__app_verify_walk(verify, &range, visit_offset, verify, reterr);
}

pawl_status pawl__app_verify_offset_now(const struct app_verify *verify,
                                        uint16_t partition,
                                        uint64_t *ret_offset,
                                        pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_key key = pawl__app_key_offset(verify->app->definition.descriptor.id, partition);
    struct app_value value = { .found = false };
    struct app_stored stored;

    *ret_offset = 0;
    TRY(pawl__app_store_get(
        verify->store, APP_OFFSETS, pawl__app_key_view(&key), &arena, &value, reterr));
    /* One that is damaged is a finding already, and counts as none here. */
    if (value.found
        && pawl__app_stored_decode(APP_OFFSETS,
                                   pawl__app_key_view(&key),
                                   value.bytes,
                                   verify->app->format != APP_FORMAT,
                                   NULL,
                                   &stored,
                                   NULL)
               == PAWL_OK) {
        *ret_offset = stored.number;
    }
    return PAWL_OK;
}
