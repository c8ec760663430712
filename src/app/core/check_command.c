/* What is checked of a command before it gets numbers: its key, the records that it updates, its singletons. */
#include <inttypes.h>
#include <string.h>

#include "app/core/ids.h"
#include "app/core/item.h"
#include "base/core/error.h"

/* A record that is stored, or that an earlier command of the group is about to. */
static pawl_status find_record(struct app_partition *partition,
                               uint64_t workspace,
                               uint64_t id,
                               struct app_value *ret_value,
                               pawl_error *reterr)
{
    struct app_key key = pawl__app_key_record(partition->seq.app, workspace, id);
    const struct app_entry *entry = NULL;

    TRY(pawl__app_batch_find(
        &partition->batch, APP_RECORDS, pawl__app_key_view(&key), &entry, reterr));
    if (entry != NULL) {
        *ret_value = (struct app_value){ .found = true, .bytes = entry->value };
        return PAWL_OK;
    }
    return pawl__app_store_get(partition->seq.store,
                               APP_RECORDS,
                               pawl__app_key_view(&key),
                               &partition->arena,
                               ret_value,
                               reterr);
}

static pawl_status find_targets(struct app_partition *partition,
                                struct app_item *item,
                                pawl_error *reterr)
{
    const struct app_request *request = &item->request;

    item->targets =
        pawl__arena_take(&partition->arena, (request->update_count + 1) * sizeof(*item->targets));
    if (item->targets == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu updates", request->update_count);
    }
    for (size_t i = 0; i < request->update_count; i++) {
        uint64_t id = request->updates[i].id;
        struct app_value value;
        TRY(find_record(partition, request->workspace, id, &value, reterr));
        if (!value.found) {
            TRY(pawl__fail(reterr,
                           PAWL_NOT_FOUND,
                           "record %" PRIu64 " is not in workspace %" PRIu64,
                           id,
                           request->workspace));
        }
        TRY(pawl__app_record_decode(value.bytes, &item->targets[i], reterr));
        if (!pawl__app_id_fits(item->targets[i].record_class, id)) {
            TRY(pawl__fail(reterr,
                           PAWL_CORRUPT,
                           "record %" PRIu64 " of workspace %" PRIu64 " is stored as a %s",
                           id,
                           request->workspace,
                           pawl__app_class_name(item->targets[i].record_class)));
        }
    }
    return PAWL_OK;
}

static pawl_status check_singletons(struct app_partition *partition,
                                    const struct app_request *request,
                                    pawl_error *reterr)
{
    for (size_t i = 0; i < request->create_count; i++) {
        uint64_t id = request->creates[i].singleton;
        struct app_value value = { .found = false };
        TRY(id == 0 ? PAWL_OK : find_record(partition, request->workspace, id, &value, reterr));
        if (value.found) {
            TRY(pawl__fail(reterr,
                           PAWL_CONFLICT,
                           "workspace %" PRIu64 " has its singleton %" PRIu64 " already",
                           request->workspace,
                           id));
        }
    }
    return PAWL_OK;
}

/* The key and its event were written together. When they disagree, one was changed, and the answer would
 * belong to another command. */
static pawl_status check_original(const struct app_request *request,
                                  uint64_t offset,
                                  bool found,
                                  const pawl_app_event *event,
                                  pawl_error *reterr)
{
    bool fits =
        found && event->workspace == request->workspace
        && pawl__view_equal(event->key, request->key)
        && memcmp(event->request_hash, request->hash.bytes, sizeof(event->request_hash)) == 0;

    return fits ? PAWL_OK
                : pawl__fail(reterr,
                             PAWL_CORRUPT,
                             "the key belongs to PLog offset %" PRIu64 ", where %s",
                             offset,
                             found ? "another command is" : "nothing is");
}

/* The response is in the event of the first time. */
static pawl_status answer_duplicate(struct app_partition *partition,
                                    struct app_item *item,
                                    uint64_t offset,
                                    pawl_error *reterr)
{
    struct app_key key = pawl__app_key_plog(partition->seq.app, partition->seq.partition, offset);
    struct app_entry entry = { .family = APP_PLOG, .key = pawl__app_key_view(&key) };
    struct app_value value = { .found = false };
    pawl_app_event event = { .size = sizeof(pawl_app_event), .workspace = 0 };
    size_t ids = 0;
    size_t numbers = 0;

    TRY(pawl__app_store_get(
        partition->seq.store, APP_PLOG, entry.key, &partition->arena, &value, reterr));
    entry.value = value.bytes;
    TRY(value.found ? pawl__app_seq_event_of(&entry, &partition->arena, &event, reterr) : PAWL_OK);
    TRY(check_original(&item->request, offset, value.found, &event, reterr));
    for (size_t i = 0; i < event.record_count && ids < item->response->id_count; i++) {
        if (event.records[i].raw_id != 0) {
            item->ids[ids++] = (pawl_app_id){ event.records[i].raw_id, event.records[i].id };
        }
    }
    for (size_t i = 0; i < event.number_count && numbers < item->response->number_count; i++) {
        if (event.numbers[i].sequence >= PAWL_APP_SEQ_OWN_MIN) {
            item->numbers[numbers++] = event.numbers[i];
        }
    }
    item->response->duplicate = true;
    item->response->plog_offset = event.plog_offset;
    item->response->wlog_offset = event.wlog_offset;
    return PAWL_OK;
}

static pawl_status check_key(struct app_partition *partition,
                             struct app_item *item,
                             enum app_examined *ret_state,
                             pawl_error *reterr)
{
    const struct app_request *request = &item->request;
    struct app_key key =
        pawl__app_key_idempotency(partition->seq.app, request->workspace, request->key);
    pawl_view view = pawl__app_key_view(&key);
    const struct app_entry *entry = NULL;
    struct app_value value;
    pawl_view hash;
    uint64_t offset = 0;
    pawl_status status = pawl__app_batch_find(&partition->batch, APP_KEYS, view, &entry, reterr);

    if (status != PAWL_OK || entry != NULL) {
        *ret_state = APP_DEFERRED;
        return status;
    }
    status = pawl__app_store_get(
        partition->seq.store, APP_KEYS, view, &partition->arena, &value, reterr);
    if (status != PAWL_OK || !value.found) {
        *ret_state = APP_RUN;
        return status;
    }
    if (!pawl__view_take(&value.bytes, sizeof(request->hash.bytes), &hash)
        || !pawl__view_take_u64be(&value.bytes, &offset)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "what is stored for the key is cut off");
    }
    if (memcmp(hash.data, request->hash.bytes, hash.len) != 0) {
        return pawl__fail_detail(reterr,
                                 PAWL_CONFLICT,
                                 PAWL_DETAIL_KEY_REUSED,
                                 "the idempotency key was used in workspace %" PRIu64
                                 " by another command, at PLog offset %" PRIu64,
                                 request->workspace,
                                 offset);
    }
    *ret_state = APP_ANSWERED;
    return answer_duplicate(partition, item, offset, reterr);
}

pawl_status pawl__app_examine(struct app_partition *partition,
                              struct app_item *item,
                              enum app_examined *ret_state,
                              pawl_error *reterr)
{
    *ret_state = APP_RUN;
    if (item->request.key.len > 0) {
        TRY(check_key(partition, item, ret_state, reterr));
    }
    if (*ret_state != APP_RUN) {
        return PAWL_OK;
    }
    TRY(find_targets(partition, item, reterr));
    return check_singletons(partition, &item->request, reterr);
}
