/* What an event does to a store, and doing it again at the start. */
#include "app/core/apply.h"
#include "app/core/internal.h"
#include "base/core/error.h"

enum { KEY_VALUE_SIZE = 32 + 8 + 1 };

static pawl_status add_wlog(struct app_batch *batch,
                            uint32_t app,
                            const pawl_app_event *event,
                            pawl_view bytes,
                            enum app_mode mode,
                            pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(APP_EVENT_BYTES_MAX + 8);
    struct app_key key = pawl__app_key_wlog(app, event->workspace, event->wlog_offset);

    pawl__buf_add_u64be(&value, event->plog_offset);
    pawl__buf_add(&value, bytes);
    TRY(pawl__buf_check(&value, "the event", reterr));
    return pawl__app_batch_add(batch, APP_WLOG, mode, &key, pawl__buf_view(&value), reterr);
}

static pawl_status add_records(struct app_batch *batch,
                               uint32_t app,
                               const pawl_app_event *event,
                               enum app_mode mode,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(APP_EVENT_BYTES_MAX);

    for (size_t i = 0; i < event->record_count; i++) {
        const pawl_app_record *record = &event->records[i];
        struct app_key key = pawl__app_key_record(app, event->workspace, record->id);
        pawl__buf_clear(&value);
        pawl__app_record_encode(record, &value);
        TRY(pawl__buf_check(&value, "the record", reterr));
        TRY(pawl__app_batch_add(batch,
                                APP_RECORDS,
                                record->update ? APP_PUT : mode,
                                &key,
                                pawl__buf_view(&value),
                                reterr));
    }
    return PAWL_OK;
}

/* A later command with the key finds the event, and in it the response. */
static pawl_status add_key(struct app_batch *batch,
                           uint32_t app,
                           const pawl_app_event *event,
                           pawl_error *reterr)
{
    struct app_key key = pawl__app_key_idempotency(app, event->workspace, event->key);
    char space[KEY_VALUE_SIZE];
    struct pawl__buf value = BUF_OVER(space);

    pawl__buf_add(&value,
                  (pawl_view){ (const char *)event->request_hash, sizeof(event->request_hash) });
    pawl__buf_add_u64be(&value, event->plog_offset);
    return pawl__app_batch_add(batch, APP_KEYS, APP_PUT, &key, pawl__buf_view(&value), reterr);
}

bool pawl__app_is_numbered(pawl_app_trust trust)
{
    return trust == PAWL_APP_TRUST_0 || trust == PAWL_APP_TRUST_1;
}

pawl_status pawl__app_apply_numbers(struct app_batch *batch,
                                    uint32_t app,
                                    const pawl_app_event *event,
                                    enum app_mode mode,
                                    pawl_error *reterr)
{
    char space[8 + 1];
    struct pawl__buf value = BUF_OVER(space);
    pawl__buf_add_u64be(&value, event->plog_offset);
    for (size_t i = 0; i < event->number_count; i++) {
        const pawl_app_number *used = &event->numbers[i];
        if (used->sequence >= PAWL_APP_SEQ_OWN_MIN) {
            struct app_key key =
                pawl__app_key_used(app, event->workspace, used->sequence, used->number);
            TRY(pawl__app_batch_add(
                batch, APP_NUMBERS, mode, &key, pawl__buf_view(&value), reterr));
        }
    }
    return PAWL_OK;
}

pawl_status pawl__app_apply(struct app_batch *batch,
                            uint32_t app,
                            const pawl_app_event *event,
                            pawl_view bytes,
                            const struct app_modes *modes,
                            pawl_error *reterr)
{
    TRY(add_wlog(batch, app, event, bytes, modes->events, reterr));
    TRY(add_records(batch, app, event, modes->records, reterr));
    if (modes->numbers != APP_SKIP) {
        TRY(pawl__app_apply_numbers(batch, app, event, modes->numbers, reterr));
    }
    return event->key.len > 0 ? add_key(batch, app, event, reterr) : PAWL_OK;
}

/* Whether the entries of a family are stored as they are in the batch. */
static pawl_status compare_family(struct app_store *store,
                                  const struct app_batch *batch,
                                  enum app_family family,
                                  bool *ret_same,
                                  pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_view *keys = pawl__arena_take(&arena, batch->count * sizeof(*keys));
    struct app_value *values = pawl__arena_take(&arena, batch->count * sizeof(*values));
    struct app_lookup lookup = { .family = family, .keys = keys };

    if (keys == NULL || values == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu values", batch->count);
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->entries[i].family == family) {
            keys[lookup.count++] = batch->entries[i].key;
        }
    }
    TRY(lookup.count == 0 ? PAWL_OK : store->ops->get_many(store, &lookup, &arena, values, reterr));
    for (size_t i = 0, k = 0; i < batch->count; i++) {
        if (batch->entries[i].family == family) {
            *ret_same = *ret_same && values[k].found
                        && pawl__view_equal(values[k].bytes, batch->entries[i].value);
            k++;
        }
    }
    return PAWL_OK;
}

/* An event is written together with its effects, so as a rule they are there. Then opening writes nothing, and
 * works on a disk that has no space for commands. */
static pawl_status is_applied(struct app_store *store,
                              const struct app_batch *batch,
                              bool *ret_applied,
                              pawl_error *reterr)
{
    bool same = true;
    for (int family = 0; family < APP_FAMILY_COUNT && same; family++) {
        TRY(compare_family(store, batch, (enum app_family)family, &same, reterr));
    }
    *ret_applied = same;
    return PAWL_OK;
}

pawl_status pawl__app_reapply(const struct app_seq *seq, pawl_error *reterr)
{
    const struct app_modes modes = { APP_PUT, APP_PUT, seq->numbered ? APP_PUT : APP_SKIP };
    AUTO(pawl__app_page_done) struct app_page page = { .count = 0 };
    AUTO(pawl__app_batch_done) struct app_batch batch = { .count = 0 };
    bool found = false;
    bool applied = false;
    pawl_app_event event;

    TRY(pawl__app_seq_last(seq, &page, &found, &event, reterr));
    if (!found) {
        return PAWL_OK;
    }
    TRY(pawl__app_apply(&batch, seq->app, &event, page.entries[0].value, &modes, reterr));
    TRY(is_applied(seq->store, &batch, &applied, reterr));
    return applied ? PAWL_OK
                   : seq->store->ops->write(seq->store, batch.entries, batch.count, reterr);
}
