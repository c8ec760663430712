/* Records: of each, the store has what the last event made of it. From the last event to the first, the first
 * time that a record turns up counts; a record that was updated is remembered until the event that made it. When
 * there are too many of those, the logs are read again for a part of the records at a time. */
#include <stdlib.h>

#include "base/error.h"
#include "sequencer/app_check.h"

enum { UPDATED_MAX = 200000, UPDATED_A_PART = 100000 };

pawl_status pawl__check_records_start(struct check *check, pawl_error *reterr)
{
    struct check_records *records = &check->records;
    pawl_status status = pawl__map_new(UPDATED_MAX, &records->updated, reterr);

    records->parts = 1;
    return status == PAWL_OK ? pawl__sketch_new(&records->sketch, reterr) : status;
}

void pawl__check_records_done(struct check *check)
{
    pawl__map_free(check->records.updated);
    pawl__sketch_free(check->records.sketch);
}

/* Whether it belongs to the part that is looked at. */
static bool is_of_part(const struct check_records *records, uint64_t workspace, uint64_t id)
{
    uint64_t mixed = pawl__hash_fold(workspace ^ UINT64_C(0x9E3779B97F4A7C15),
                                     id ^ UINT64_C(0xD6E8FEB86659FD93));

    return mixed % records->parts == records->part;
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
    records->updates++;
    if (seen || records->too_many) {
        return PAWL_OK;
    }
    pawl_status status = pawl__map_put(records->updated, view, check, NULL, reterr);
    records->too_many = status == PAWL_NO_SPACE;
    return records->too_many ? PAWL_OK : status;
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

static pawl_status compare_part(struct check *check, uint64_t part, pawl_error *reterr)
{
    const struct check_events events = { true, false, take_event, check };
    uint64_t parts = check->records.parts;

    pawl__check_records_done(check);
    check->records = (struct check_records){ .parts = 1 };
    pawl_status status = pawl__check_records_start(check, reterr);
    check->records.parts = parts;
    check->records.part = part;
    if (status == PAWL_OK) {
        status = pawl__check_events(check, &events, reterr);
    }
    return status == PAWL_OK ? compare(check, reterr) : status;
}

pawl_status pawl__check_records(struct check *check, pawl_error *reterr)
{
    struct check_records *records = &check->records;
    pawl_status status = PAWL_OK;

    if (!records->too_many) {
        return compare(check, reterr);
    }
    records->parts = records->updates / UPDATED_A_PART + 1;
    for (uint64_t i = 0, parts = records->parts; i < parts && status == PAWL_OK; i++) {
        status = compare_part(check, i, reterr);
    }
    check->report.entries[PAWL_APP_PART_RECORDS] /= MAX(records->parts, 1);
    return status;
}
