#include "app/core/stored.h"

#include <inttypes.h>

#include <string.h>

#include "base/core/crc32c.h"
#include "base/core/error.h"
#include "base/core/macros.h"

enum { NUMBERS_BYTES = 16 };

static uint32_t checksum(pawl_view key, pawl_view numbers)
{
    char space[APP_KEY_SIZE + NUMBERS_BYTES + 1];
    struct pawl__buf buf = BUF_OVER(space);

    pawl__buf_add(&buf, key);
    pawl__buf_add(&buf, numbers);
    return buf.broken ? 0 : pawl__crc32c(pawl__buf_view(&buf));
}

void pawl__app_stored_encode(const struct app_key *key,
                             const struct app_stored *stored,
                             char ret_bytes[APP_STORED_BYTES])
{
    char space[APP_STORED_BYTES + 1] = "";
    struct pawl__buf buf = BUF_OVER(space);

    pawl__buf_add_u64be(&buf, stored->number);
    pawl__buf_add_u64be(&buf, stored->offset);
    pawl__buf_add_u32be(&buf, checksum(pawl__app_key_view(key), pawl__buf_view(&buf)));
    REQUIRE(!buf.broken && buf.len == APP_STORED_BYTES);
    memcpy(ret_bytes, space, APP_STORED_BYTES);
}

static pawl_status fail_damaged(
    enum app_family family, pawl_view key, const char *name, const char *what, pawl_error *reterr)
{
    char space[192];
    struct pawl__buf place = BUF_OVER(space);
    struct app_key_parts parts;

    if (name != NULL && family == APP_SEQ && pawl__app_key_parse(family, key, &parts)) {
        pawl__buf_add_format(&place, "sequence '%s' of workspace %" PRIu64, name, parts.workspace);
    } else {
        pawl__app_key_describe(family, key, &place);
    }
    return pawl__fail_advised(reterr,
                              PAWL_CORRUPT,
                              "%s: what is stored %s; run 'pawl seq rebuild' to make the numbers "
                              "anew from the log, 'pawl seq verify --all' to see all that is wrong",
                              place.broken ? "a number" : space,
                              what);
}

pawl_status pawl__app_stored_decode(enum app_family family,
                                    pawl_view key,
                                    pawl_view bytes,
                                    bool accepts_short,
                                    const char *name,
                                    struct app_stored *ret_stored,
                                    pawl_error *reterr)
{
    struct app_stored stored = { 0, 0 };
    pawl_view rest = bytes;
    uint32_t crc = 0;

    if (accepts_short && bytes.len == APP_STORED_SHORT_BYTES) {
        (void)!pawl__view_take_u64be(&rest, &ret_stored->number);
        ret_stored->offset = 0;
        return PAWL_OK;
    }
    if (bytes.len != APP_STORED_BYTES || !pawl__view_take_u64be(&rest, &stored.number)
        || !pawl__view_take_u64be(&rest, &stored.offset) || !pawl__view_take_u32be(&rest, &crc)) {
        return fail_damaged(family, key, name, "is too short or too long", reterr);
    }
    if (crc != checksum(key, (pawl_view){ bytes.data, NUMBERS_BYTES })) {
        return fail_damaged(family, key, name, "is damaged: its checksum is wrong", reterr);
    }
    *ret_stored = stored;
    return PAWL_OK;
}
