/* A command becomes an event: it gets its numbers, and the batch gets all that it does. */
#include <inttypes.h>
#include <string.h>

#include "app/core/apply.h"
#include "app/core/ids.h"
#include "app/core/item.h"
#include "base/core/error.h"

/* An event that is being made. */
struct build {
    struct app_partition *partition;
    struct app_item *item;
    pawl_app_event event;
    pawl_app_record *records;
    pawl_app_number *numbers; /* offset, ids, then those for holes */
    size_t number_count;
    uint64_t *ids; /* by place of the create */
};

static pawl_status next_number(struct build *build,
                               uint16_t sequence,
                               uint64_t *ret_number,
                               pawl_error *reterr)
{
    uint64_t number = 0;
    pawl_status status =
        pawl_sequencer_next(build->partition->sequencer, sequence, &number, reterr);

    bool exhausted = status != PAWL_OK && reterr != NULL && reterr->detail == PAWL_DETAIL_EXHAUSTED;
    if (exhausted || (status == PAWL_OK && number > PAWL_APP_C_ID_MAX)) {
        return pawl__fail_detail(reterr,
                                 PAWL_FAILED,
                                 PAWL_DETAIL_EXHAUSTED,
                                 "workspace %" PRIu64 ": the last number of sequence '%s' is used",
                                 build->event.workspace,
                                 pawl_app_sequence_name(build->partition->app, sequence));
    }
    if (status != PAWL_OK) {
        return status;
    }
    build->numbers[build->number_count++] = (pawl_app_number){ sequence, number };
    *ret_number = number;
    return PAWL_OK;
}

static pawl_status number_records(struct build *build, pawl_error *reterr)
{
    const struct app_request *request = &build->item->request;

    for (size_t i = 0; i < request->create_count; i++) {
        pawl_app_class class = request->creates[i].record_class;
        uint16_t sequence = pawl__app_sequence_of(class);
        build->ids[i] = request->creates[i].singleton;
        TRY(sequence == 0 ? PAWL_OK : next_number(build, sequence, &build->ids[i], reterr));
        if (!pawl__app_id_fits(class, build->ids[i])) {
            return pawl__fail_detail(reterr,
                                     PAWL_FAILED,
                                     PAWL_DETAIL_EXHAUSTED,
                                     "workspace %" PRIu64 ": %" PRIu64 " is no id of a %s any more",
                                     request->workspace,
                                     build->ids[i],
                                     pawl__app_class_name(class));
        }
    }
    return PAWL_OK;
}

static pawl_status number_holes(struct build *build,
                                const struct app_text *text,
                                pawl_error *reterr)
{
    for (size_t i = 0; i < text->hole_count; i++) {
        uint64_t number = 0;
        if (text->holes[i].next) {
            TRY(next_number(build, text->holes[i].sequence, &number, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status number_event(struct build *build, pawl_error *reterr)
{
    const struct app_request *request = &build->item->request;

    TRY(next_number(build, PAWL_APP_SEQ_WLOG_OFFSET, &build->event.wlog_offset, reterr));
    TRY(number_records(build, reterr));
    for (size_t i = 0; i < request->create_count; i++) {
        TRY(number_holes(build, &request->creates[i].data, reterr));
    }
    for (size_t i = 0; i < request->update_count; i++) {
        TRY(number_holes(build, &request->updates[i].data, reterr));
    }
    return PAWL_OK;
}

static pawl_status fill_data(struct build *build,
                             const struct app_text *text,
                             const pawl_app_number **numbers,
                             pawl_view *ret_data,
                             pawl_error *reterr)
{
    struct app_partition *partition = build->partition;

    if (text->hole_count == 0) {
        *ret_data = text->text;
        return PAWL_OK;
    }
    pawl__buf_clear(&partition->bytes);
    *numbers += pawl__app_text_fill(text, build->ids, *numbers, &partition->bytes);
    TRY(pawl__buf_check(&partition->bytes, "the data", reterr));
    if (!pawl__arena_copy(&partition->arena, pawl__buf_view(&partition->bytes), ret_data)) {
        TRY(pawl__fail(reterr, PAWL_NOMEM, "no memory for a record"));
    }
    return PAWL_OK;
}

static pawl_status make_records(struct build *build, pawl_error *reterr)
{
    const struct app_request *request = &build->item->request;
    /* Those for holes are the last ones. */
    const pawl_app_number *next = &build->numbers[build->number_count - request->next_count];
    pawl_app_record *record = build->records;
    for (size_t i = 0; i < request->create_count; i++, record++) {
        const struct app_new *create = &request->creates[i];
        *record = (pawl_app_record){ .size = sizeof(pawl_app_record),
                                     .record_class = create->record_class,
                                     .raw_id = create->raw_id,
                                     .id = build->ids[i],
                                     .table = create->table };
        TRY(fill_data(build, &create->data, &next, &record->data, reterr));
    }
    for (size_t i = 0; i < request->update_count; i++, record++) {
        const struct app_change *update = &request->updates[i];
        *record = build->item->targets[i];
        record->update = true;
        record->id = update->id;
        TRY(fill_data(build, &update->data, &next, &record->data, reterr));
    }
    return PAWL_OK;
}

static void respond(const struct build *build)
{
    const struct app_request *request = &build->item->request;
    struct app_item *item = build->item;
    size_t ids = 0;

    item->response->plog_offset = build->event.plog_offset;
    item->response->wlog_offset = build->event.wlog_offset;
    for (size_t i = 0; i < request->create_count; i++) {
        if (request->creates[i].raw_id != 0) {
            item->ids[ids++] = (pawl_app_id){ request->creates[i].raw_id, build->ids[i] };
        }
    }
    if (request->next_count > 0) {
        memcpy(item->numbers,
               &build->numbers[build->number_count - request->next_count],
               request->next_count * sizeof(*item->numbers));
    }
}

static pawl_status add_event(const struct build *build, pawl_error *reterr)
{
    static const struct app_modes modes[] = {
        [PAWL_APP_TRUST_0] = { APP_INSERT, APP_INSERT, APP_INSERT },
        [PAWL_APP_TRUST_1] = { APP_INSERT, APP_PUT, APP_INSERT },
        [PAWL_APP_TRUST_2] = { APP_PUT, APP_PUT, APP_SKIP },
    };
    struct app_partition *partition = build->partition;
    const struct app_modes *mode = &modes[partition->app->definition.descriptor.trust];
    uint32_t app = partition->seq.app;
    struct app_key key =
        pawl__app_key_plog(app, partition->seq.partition, build->event.plog_offset);

    pawl__buf_clear(&partition->bytes);
    pawl__app_event_encode(&build->event, &partition->bytes);
    TRY(pawl__buf_check(&partition->bytes, "the event", reterr));
    TRY(pawl__app_batch_add(&partition->batch,
                            APP_PLOG,
                            mode->events,
                            &key,
                            pawl__buf_view(&partition->bytes),
                            reterr));
    return pawl__app_apply(
        &partition->batch, app, &build->event, pawl__buf_view(&partition->bytes), mode, reterr);
}

pawl_status pawl__app_build_event(struct app_partition *partition,
                                  struct app_item *item,
                                  uint64_t offset,
                                  pawl_error *reterr)
{
    const struct app_request *request = &item->request;
    size_t records = request->create_count + request->update_count;
    size_t numbers = 1 + request->create_count + request->next_count;
    struct pawl__arena *arena = &partition->arena;
    struct build build = {
        .partition = partition,
        .item = item,
        .event = { .size = sizeof(pawl_app_event),
                   .workspace = request->workspace,
                   .plog_offset = offset,
                   .kind = request->kind->id,
                   .key = request->key },
        .records = pawl__arena_take(arena, (records + 1) * sizeof(*build.records)),
        .numbers = pawl__arena_take(arena, numbers * sizeof(*build.numbers)),
        .ids = pawl__arena_take(arena, (request->create_count + 1) * sizeof(*build.ids)),
    };

    if (build.records == NULL || build.numbers == NULL || build.ids == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an event");
    }
    memcpy(build.event.request_hash, request->hash.bytes, sizeof(request->hash.bytes));
    TRY(number_event(&build, reterr));
    TRY(make_records(&build, reterr));
    build.event.records = build.records;
    build.event.record_count = records;
    build.event.numbers = build.numbers;
    build.event.number_count = build.number_count;
    respond(&build);
    return add_event(&build, reterr);
}
