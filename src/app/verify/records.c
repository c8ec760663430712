/* Records: of each, the store has what the last event made of it. From the last event to the first, the first
 * time that a record turns up counts; a record that was updated is remembered until the event that made it. When
 * there are too many of those, the logs are read again for a part of the records at a time. */
#include <stdlib.h>

#include "app/verify/check.h"
#include "base/core/error.h"
#include "base/core/macros.h"

/* So many bits tell some 100 million records apart well enough: a part that turns out too large is halved. */
enum { MET_BITS = 1 << 26 };

struct check_limits pawl__check_limits = {
    .updated_max = 200000,
    .updated_a_part = 100000,
    .doubtful_max = 1000,
};

static pawl_status start_part(struct check_records *records, pawl_error *reterr)
{
    TRY(pawl__map_new(pawl__check_limits.updated_max, &records->updated, reterr));
    return pawl__sketch_new(&records->sketch, reterr);
}

static void end_part(struct check_records *records)
{
    pawl__map_free(STEAL(records->updated));
    pawl__sketch_free(STEAL(records->sketch));
    records->too_many = false;
}

pawl_status pawl__check_records_start(struct check *check, pawl_error *reterr)
{
    struct check_records *records = &check->records;

    records->parts = 1;
    return start_part(records, reterr);
}

void pawl__check_records_done(struct check *check)
{
    end_part(&check->records);
    free(STEAL(check->records.met));
}

static uint64_t mix(uint64_t workspace, uint64_t id)
{
    return pawl__hash_fold(workspace ^ UINT64_C(0x9E3779B97F4A7C15),
                           id ^ UINT64_C(0xD6E8FEB86659FD93));
}

/* Whether it belongs to the part that is looked at. */
static bool is_of_part(const struct check_records *records, uint64_t workspace, uint64_t id)
{
    return mix(workspace, id) % records->parts == records->part;
}

/* In the first reading, for how many parts there have to be. */
static pawl_status count_distinct(struct check_records *records,
                                  uint64_t workspace,
                                  uint64_t id,
                                  pawl_error *reterr)
{
    uint64_t bit = mix(workspace, id) % MET_BITS;
    uint8_t mask = (uint8_t)(1U << (bit % 8));

    if (records->parts > 1) {
        return PAWL_OK;
    }
    if (records->met == NULL) {
        records->met = calloc(MET_BITS / 8, 1);
        if (records->met == NULL) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory to count records");
        }
    }
    if ((records->met[bit / 8] & mask) == 0) {
        records->met[bit / 8] |= mask;
        records->distinct++;
    }
    return PAWL_OK;
}

static void expect_record(struct check *check, uint64_t workspace, const pawl_app_record *record)
{
    struct sketch *sketch = check->records.sketch;

    pawl__buf_clear(&check->bytes);
    pawl__app_record_encode(record, &check->bytes);
    struct sketch_item item =
        pawl__check_item(PAWL_APP_PART_RECORDS,
                         0,
                         workspace,
                         record->id,
                         0,
                         pawl__sketch_hash(sketch, pawl__buf_view(&check->bytes)));
    pawl__sketch_add(sketch, &item);
}

static pawl_status take_record(struct check *check,
                               uint64_t workspace,
                               const pawl_app_record *record,
                               pawl_error *reterr)
{
    struct check_records *records = &check->records;
    struct app_key key = pawl__app_key_record(0, workspace, record->id);
    pawl_view view = pawl__app_key_view(&key);
    bool seen = pawl__map_get(records->updated, view) != NULL;

    if (!seen) {
        expect_record(check, workspace, record);
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
                             : pawl__map_put(records->updated, view, check, NULL, reterr);
    records->too_many = status == PAWL_NO_SPACE;
    return records->too_many ? count_distinct(records, workspace, record->id, reterr) : status;
}

pawl_status pawl__check_records_event(struct check *check,
                                      const pawl_app_event *event,
                                      pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    for (size_t i = event->record_count; i > 0 && status == PAWL_OK; i--) {
        const pawl_app_record *record = &event->records[i - 1];
        if (is_of_part(&check->records, event->workspace, record->id)) {
            status = take_record(check, event->workspace, record, reterr);
        }
    }
    return pawl__buf_check(&check->bytes, "a record", reterr) == PAWL_OK ? status : PAWL_NOMEM;
}

static pawl_status take_stored(struct check *check,
                               const struct app_key_parts *parts,
                               pawl_view value,
                               pawl_error *reterr)
{
    struct check_records *records = &check->records;

    (void)reterr;
    if (is_of_part(records, parts->workspace, parts->number)) {
        struct sketch_item item = pawl__check_item(PAWL_APP_PART_RECORDS,
                                                   0,
                                                   parts->workspace,
                                                   parts->number,
                                                   0,
                                                   pawl__sketch_hash(records->sketch, value));
        pawl__sketch_remove(records->sketch, &item);
    }
    return PAWL_OK;
}

static pawl_status compare(struct check *check, pawl_error *reterr)
{
    static const struct check_family family = { APP_RECORDS, PAWL_APP_PART_RECORDS, take_stored };
    pawl_status status = pawl__check_family(check, &family, reterr);

    check->records.compared++;
    return status == PAWL_OK ? pawl__check_name(check, check->records.sketch, reterr) : status;
}

static pawl_status take_event(void *context,
                              uint16_t partition,
                              const pawl_app_event *event,
                              pawl_view bytes,
                              pawl_error *reterr)
{
    (void)partition;
    (void)bytes;
    return pawl__check_records_event(context, event, reterr);
}

/* Part `part` of `parts`. One that is too large for the map is halved: `part` and `part + parts` of twice as
 * many. */
static pawl_status compare_part(struct check *check,
                                uint64_t part,
                                uint64_t parts,
                                pawl_error *reterr)
{
    const struct check_events events = { true, false, take_event, check };
    struct check_records *records = &check->records;

    end_part(records);
    records->parts = parts;
    records->part = part;
    pawl_status status = start_part(records, reterr);
    if (status == PAWL_OK) {
        status = pawl__check_events(check, &events, reterr);
    }
    if (status != PAWL_OK || !records->too_many) {
        return status == PAWL_OK ? compare(check, reterr) : status;
    }
    status = compare_part(check, part, 2 * parts, reterr);
    return status == PAWL_OK ? compare_part(check, part + parts, 2 * parts, reterr) : status;
}

pawl_status pawl__check_records(struct check *check, pawl_error *reterr)
{
    struct check_records *records = &check->records;
    uint64_t distinct = records->distinct + pawl__check_limits.updated_max;
    uint64_t parts = distinct / pawl__check_limits.updated_a_part + 1;
    pawl_status status = PAWL_OK;

    free(STEAL(records->met));
    if (!records->too_many) {
        return compare(check, reterr);
    }
    for (uint64_t i = 0; i < parts && status == PAWL_OK; i++) {
        status = compare_part(check, i, parts, reterr);
    }
    check->report.entries[PAWL_APP_PART_RECORDS] /= MAX(records->compared, 1);
    return status;
}
