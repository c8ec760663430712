/* Each record must be stored as its last event left it. The logs are read backwards, so the first event that
 * names a record decides. Updated records are remembered until the event that created them; when there are too
 * many, the logs are read again for one part of the records at a time. */
#include <stdlib.h>

#include "app/verify/verify.h"
#include "base/core/error.h"
#include "base/core/macros.h"

/* Enough bits for about 100 million records; a part that turns out too large is halved. */
enum { SEEN_BITS = 1 << 26 };

struct app_verify_limits pawl__app_verify_limits = {
    .updated_max = 200000,
    .updated_per_part = 100000,
    .suspects_max = 1000,
};

static pawl_status start_part(struct verify_records *records, pawl_error *reterr)
{
    TRY(pawl__map_new(pawl__app_verify_limits.updated_max, &records->updated, reterr));
    return pawl__app_sketch_new(&records->sketch, reterr);
}

static void end_part(struct verify_records *records)
{
    pawl__map_free(STEAL(records->updated));
    pawl__app_sketch_free(STEAL(records->sketch));
    records->too_many = false;
}

pawl_status pawl__app_verify_records_start(struct app_verify *verify, pawl_error *reterr)
{
    struct verify_records *records = &verify->records;

    records->parts = 1;
    return start_part(records, reterr);
}

void pawl__app_verify_records_done(struct app_verify *verify)
{
    end_part(&verify->records);
    free(STEAL(verify->records.seen));
}

static uint64_t mix(uint64_t workspace, uint64_t id)
{
    return pawl__hash_fold(workspace ^ UINT64_C(0x9E3779B97F4A7C15),
                           id ^ UINT64_C(0xD6E8FEB86659FD93));
}

/* Whether it belongs to the part that is looked at. */
static bool is_of_part(const struct verify_records *records, uint64_t workspace, uint64_t id)
{
    return mix(workspace, id) % records->parts == records->part;
}

/* In the first reading, for how many parts there have to be. */
static pawl_status count_distinct(struct verify_records *records,
                                  uint64_t workspace,
                                  uint64_t id,
                                  pawl_error *reterr)
{
    uint64_t bit = mix(workspace, id) % SEEN_BITS;
    uint8_t mask = (uint8_t)(1U << (bit % 8));

    if (records->parts > 1) {
        return PAWL_OK;
    }
    if (records->seen == NULL) {
        records->seen = calloc(SEEN_BITS / 8, 1);
        if (records->seen == NULL) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory to count records");
        }
    }
    if ((records->seen[bit / 8] & mask) == 0) {
        records->seen[bit / 8] |= mask;
        records->distinct++;
    }
    return PAWL_OK;
}

static void expect_record(struct app_verify *verify,
                          uint64_t workspace,
                          const pawl_app_record *record)
{
    struct app_sketch *sketch = verify->records.sketch;

    pawl__buf_clear(&verify->bytes);
    pawl__app_record_encode(record, &verify->bytes);
    pawl__app_verify_expect(sketch,
                            &(struct verify_item){ .part = PAWL_APP_PART_RECORDS,
                                                   .workspace = workspace,
                                                   .number = record->id,
                                                   .content = pawl__app_sketch_hash(
                                                       sketch, pawl__buf_view(&verify->bytes)) });
}

static pawl_status add_record(struct app_verify *verify,
                              uint64_t workspace,
                              const pawl_app_record *record,
                              pawl_error *reterr)
{
    struct verify_records *records = &verify->records;
    struct app_key key = pawl__app_key_record(0, workspace, record->id);
    pawl_view view = pawl__app_key_view(&key);
    bool seen = pawl__map_get(records->updated, view) != NULL;

    if (!seen) {
        expect_record(verify, workspace, record);
    }
    if (!record->update) {
        (void)pawl__map_remove(records->updated, view);
        return PAWL_OK;
    }
    if (seen) {
        return PAWL_OK;
    }
    pawl_status status = records->too_many
                             ? PAWL_NO_SPACE
                             : pawl__map_put(records->updated, view, verify, NULL, reterr);
    records->too_many = status == PAWL_NO_SPACE;
    return records->too_many ? count_distinct(records, workspace, record->id, reterr) : status;
}

pawl_status pawl__app_verify_records_event(struct app_verify *verify,
                                           const pawl_app_event *event,
                                           pawl_error *reterr)
{
    for (size_t i = event->record_count; i > 0; i--) {
        const pawl_app_record *record = &event->records[i - 1];
        if (is_of_part(&verify->records, event->workspace, record->id)) {
            TRY(add_record(verify, event->workspace, record, reterr));
        }
    }
    return pawl__buf_check(&verify->bytes, "a record", reterr);
}

static void remove_stored(struct app_verify *verify,
                          const struct app_key_parts *parts,
                          pawl_view value)
{
    struct verify_records *records = &verify->records;
    const struct verify_item item = { .part = PAWL_APP_PART_RECORDS,
                                      .workspace = parts->workspace,
                                      .number = parts->number,
                                      .content = pawl__app_sketch_hash(records->sketch, value) };

    if (is_of_part(records, parts->workspace, parts->number)) {
        pawl__app_verify_found(records->sketch, &item);
    }
}

static pawl_status compare(struct app_verify *verify, pawl_error *reterr)
{
    static const struct verify_family family = { APP_RECORDS,
                                                 PAWL_APP_PART_RECORDS,
                                                 remove_stored };

    TRY(pawl__app_verify_family(verify, &family, reterr));
    verify->records.compared++;
    return pawl__app_verify_name_differences(verify, verify->records.sketch, reterr);
}

static pawl_status visit_event(void *context,
                               uint16_t partition,
                               const pawl_app_event *event,
                               pawl_view bytes,
                               pawl_error *reterr)
{
    (void)partition;
    (void)bytes;
    return pawl__app_verify_records_event(context, event, reterr);
}

/* Part `part` of `parts`. One that is too large for the map is halved: `part` and `part + parts` of twice as
 * many. */
static pawl_status compare_part(struct app_verify *verify,
                                uint64_t part,
                                uint64_t parts,
                                pawl_error *reterr)
{
    const struct verify_events events = { true, false, visit_event, verify };
    struct verify_records *records = &verify->records;

    end_part(records);
    records->parts = parts;
    records->part = part;
    TRY(start_part(records, reterr));
    TRY(pawl__app_verify_events(verify, &events, reterr));
    if (!records->too_many) {
        return compare(verify, reterr);
    }
    TRY(compare_part(verify, part, 2 * parts, reterr));
    return compare_part(verify, part + parts, 2 * parts, reterr);
}

pawl_status pawl__app_verify_records(struct app_verify *verify, pawl_error *reterr)
{
    struct verify_records *records = &verify->records;
    uint64_t distinct = records->distinct + pawl__app_verify_limits.updated_max;
    uint64_t parts = distinct / pawl__app_verify_limits.updated_per_part + 1;

    free(STEAL(records->seen));
    if (!records->too_many) {
        return compare(verify, reterr);
    }
    for (uint64_t i = 0; i < parts; i++) {
        TRY(compare_part(verify, i, parts, reterr));
    }
    verify->report.entries[PAWL_APP_PART_RECORDS] /= MAX(records->compared, 1);
    return PAWL_OK;
}
