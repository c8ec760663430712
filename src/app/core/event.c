#include "app/core/event.h"

#include <inttypes.h>
#include <string.h>

#include "app/core/ids.h"
#include "base/core/crc32c.h"
#include "base/core/error.h"

enum {
    VERSION = 1,
    RECORD_BYTES_MIN = 17, /* of one in an event */
    NUMBER_BYTES = 10,
};

/* --- writing --- */

/* The checksum is filled in at the end. */
static size_t begin(struct pawl__buf *buf)
{
    pawl__buf_add_u8(buf, VERSION);
    pawl__buf_add_u32be(buf, 0);
    return buf->len;
}

static void end(struct pawl__buf *buf, size_t start)
{
    if (buf->broken) {
        return;
    }
    uint32_t crc = pawl__crc32c((pawl_view){ &buf->data[start], buf->len - start });
    for (size_t i = 0; i < 4; i++) {
        buf->data[start - 4 + i] = (char)(crc >> (8 * (3 - i)));
    }
}

static void add_short(struct pawl__buf *buf, pawl_view text)
{
    REQUIRE(text.len <= UINT8_MAX);
    pawl__buf_add_u8(buf, (uint8_t)text.len);
    pawl__buf_add(buf, text);
}

static void add_record(struct pawl__buf *buf, const pawl_app_record *record)
{
    REQUIRE(pawl__app_id_fits(record->record_class, record->id));
    REQUIRE(record->raw_id <= PAWL_APP_RAW_ID_MAX);
    pawl__buf_add_u8(buf, (uint8_t)record->record_class);
    pawl__buf_add_u8(buf, record->update);
    pawl__buf_add_u16be(buf, (uint16_t)record->raw_id);
    pawl__buf_add_u64be(buf, record->id);
    add_short(buf, record->table);
    pawl__buf_add_u32be(buf, (uint32_t)record->data.len);
    pawl__buf_add(buf, record->data);
}

void pawl__app_event_encode(const pawl_app_event *event, struct pawl__buf *buf)
{
    size_t start = begin(buf);

    pawl__buf_add_u64be(buf, event->workspace);
    pawl__buf_add_u64be(buf, event->plog_offset);
    pawl__buf_add_u64be(buf, event->wlog_offset);
    pawl__buf_add_u16be(buf, event->kind);
    add_short(buf, event->key);
    if (event->key.len > 0) {
        pawl__buf_add(
            buf, (pawl_view){ (const char *)event->request_hash, sizeof(event->request_hash) });
    }
    pawl__buf_add_u32be(buf, (uint32_t)event->record_count);
    for (size_t i = 0; i < event->record_count; i++) {
        add_record(buf, &event->records[i]);
    }
    pawl__buf_add_u32be(buf, (uint32_t)event->number_count);
    for (size_t i = 0; i < event->number_count; i++) {
        pawl__buf_add_u16be(buf, event->numbers[i].sequence);
        pawl__buf_add_u64be(buf, event->numbers[i].number);
    }
    end(buf, start);
}

void pawl__app_record_encode(const pawl_app_record *record, struct pawl__buf *buf)
{
    size_t start = begin(buf);

    pawl__buf_add_u8(buf, (uint8_t)record->record_class);
    add_short(buf, record->table);
    pawl__buf_add(buf, record->data);
    end(buf, start);
}

/* --- reading --- */

/* The checksum before the version: bytes that are no event at all are damage, not a newer format. */
static pawl_status open_bytes(pawl_view *bytes, const char *what, pawl_error *reterr)
{
    uint8_t version = 0;
    uint32_t crc = 0;

    if (!pawl__view_take_u8(bytes, &version) || !pawl__view_take_u32be(bytes, &crc)
        || pawl__crc32c(*bytes) != crc || version == 0) {
        return pawl__fail(reterr, PAWL_CORRUPT, "%s is damaged: its checksum is wrong", what);
    }
    return version == VERSION ? PAWL_OK
                              : pawl__fail(reterr,
                                           PAWL_UNSUPPORTED,
                                           "%s has version %u, this is made for %d",
                                           what,
                                           version,
                                           VERSION);
}

static pawl_status fail_cut_off(const char *what, pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_CORRUPT, "%s of an event is cut off or wrong", what);
}

static bool decode_short(pawl_view *in, pawl_view *ret_text)
{
    pawl_view rest = *in;
    uint8_t len = 0;

    if (!pawl__view_take_u8(&rest, &len) || !pawl__view_take(&rest, len, ret_text)) {
        return false;
    }
    *in = rest;
    return true;
}

static bool decode_record(pawl_view *in, pawl_app_record *ret_record)
{
    uint8_t class = 0;
    uint8_t update = 0;
    uint16_t raw_id = 0;
    uint32_t len = 0;

    if (!pawl__view_take_u8(in, &class) || !pawl__view_take_u8(in, &update)
        || !pawl__view_take_u16be(in, &raw_id) || !pawl__view_take_u64be(in, &ret_record->id)
        || !decode_short(in, &ret_record->table) || !pawl__view_take_u32be(in, &len)
        || !pawl__view_take(in, len, &ret_record->data)) {
        return false;
    }
    ret_record->size = sizeof(*ret_record);
    ret_record->record_class = (pawl_app_class) class;
    ret_record->update = update == 1;
    ret_record->raw_id = raw_id;
    return update <= 1 && pawl__app_id_fits(ret_record->record_class, ret_record->id);
}

static pawl_status decode_records(pawl_view *in,
                                  struct pawl__arena *arena,
                                  pawl_app_event *event,
                                  pawl_error *reterr)
{
    uint32_t count = 0;

    /* Before anything is allocated: a count that the bytes could not hold is a lie. */
    if (!pawl__view_take_u32be(in, &count) || count > in->len / RECORD_BYTES_MIN) {
        return fail_cut_off("the number of records", reterr);
    }
    pawl_app_record *records = pawl__arena_take(arena, (count + 1) * sizeof(*records));
    if (records == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %" PRIu32 " records", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!decode_record(in, &records[i])) {
            return fail_cut_off("a record", reterr);
        }
    }
    event->records = records;
    event->record_count = count;
    return PAWL_OK;
}

static pawl_status decode_numbers(pawl_view *in,
                                  struct pawl__arena *arena,
                                  pawl_app_event *event,
                                  pawl_error *reterr)
{
    uint32_t count = 0;

    if (!pawl__view_take_u32be(in, &count) || in->len % NUMBER_BYTES != 0
        || count != in->len / NUMBER_BYTES) {
        return fail_cut_off("the number of numbers", reterr);
    }
    pawl_app_number *numbers = pawl__arena_take(arena, (count + 1) * sizeof(*numbers));
    if (numbers == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %" PRIu32 " numbers", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!pawl__view_take_u16be(in, &numbers[i].sequence)
            || !pawl__view_take_u64be(in, &numbers[i].number) || numbers[i].number == 0) {
            return fail_cut_off("a number", reterr);
        }
    }
    event->numbers = numbers;
    event->number_count = count;
    return PAWL_OK;
}

static bool decode_head(pawl_view *in, pawl_app_event *event)
{
    pawl_view hash = { NULL, 0 };

    if (!pawl__view_take_u64be(in, &event->workspace)
        || !pawl__view_take_u64be(in, &event->plog_offset)
        || !pawl__view_take_u64be(in, &event->wlog_offset)
        || !pawl__view_take_u16be(in, &event->kind) || !decode_short(in, &event->key)
        || (event->key.len > 0 && !pawl__view_take(in, sizeof(event->request_hash), &hash))) {
        return false;
    }
    if (hash.len > 0) {
        memcpy(event->request_hash, hash.data, hash.len);
    }
    return event->workspace != 0 && event->plog_offset != 0 && event->wlog_offset != 0;
}

pawl_status pawl__app_event_decode(pawl_view bytes,
                                   struct pawl__arena *arena,
                                   pawl_app_event *ret_event,
                                   pawl_error *reterr)
{
    pawl_app_event event = { .size = sizeof(pawl_app_event), .workspace = 0 };

    TRY(open_bytes(&bytes, "the event", reterr));
    if (!decode_head(&bytes, &event)) {
        return fail_cut_off("the head", reterr);
    }
    TRY(decode_records(&bytes, arena, &event, reterr));
    TRY(decode_numbers(&bytes, arena, &event, reterr));
    *ret_event = event;
    return PAWL_OK;
}

pawl_status pawl__app_record_decode(pawl_view bytes,
                                    pawl_app_record *ret_record,
                                    pawl_error *reterr)
{
    pawl_app_record record = { .size = sizeof(pawl_app_record), .id = 0 };
    uint8_t class = 0;

    TRY(open_bytes(&bytes, "the record", reterr));
    if (!pawl__view_take_u8(&bytes, &class) || class > PAWL_APP_W_RECORD
        || !decode_short(&bytes, &record.table)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the head of the record is wrong");
    }
    record.record_class = (pawl_app_class) class;
    record.data = bytes;
    *ret_record = record;
    return PAWL_OK;
}
