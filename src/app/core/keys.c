#include "app/core/keys.h"

#include <inttypes.h>
#include <string.h>

#include "base/core/macros.h"

static const char *const family_names[] = { "meta", "plog",    "wlog", "records",
                                            "seq",  "offsets", "keys", "numbers" };
_Static_assert(COUNT_OF(family_names) == APP_FAMILY_COUNT, "one name a family");

const char *pawl__app_family_name(enum app_family family)
{
    REQUIRE((size_t)family < COUNT_OF(family_names));
    return family_names[family];
}

static void put(struct app_key *key, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        key->bytes[key->len++] = (char)(value >> (8 * (bytes - 1 - i)));
    }
}

static struct app_key begin(uint32_t app)
{
    struct app_key key;

    key.len = 0;
    put(&key, app, 4);
    return key;
}

struct app_key pawl__app_key_meta(uint32_t app)
{
    return begin(app);
}

struct app_key pawl__app_key_format(uint32_t app)
{
    static const char word[] = "format";
    struct app_key key = begin(app);

    memcpy(&key.bytes[key.len], word, strlen(word));
    key.len += strlen(word);
    return key;
}

struct app_key pawl__app_key_plog(uint32_t app, uint16_t partition, uint64_t offset)
{
    struct app_key key = begin(app);

    put(&key, partition, 2);
    put(&key, offset, 8);
    return key;
}

static struct app_key in_workspace(uint32_t app, uint64_t workspace, uint64_t number)
{
    struct app_key key = begin(app);

    put(&key, workspace, 8);
    put(&key, number, 8);
    return key;
}

struct app_key pawl__app_key_wlog(uint32_t app, uint64_t workspace, uint64_t offset)
{
    return in_workspace(app, workspace, offset);
}

struct app_key pawl__app_key_record(uint32_t app, uint64_t workspace, uint64_t id)
{
    return in_workspace(app, workspace, id);
}

struct app_key pawl__app_key_seq(uint32_t app,
                                 uint16_t partition,
                                 uint64_t workspace,
                                 uint16_t sequence)
{
    struct app_key key = begin(app);

    put(&key, partition, 2);
    put(&key, workspace, 8);
    put(&key, sequence, 2);
    return key;
}

struct app_key pawl__app_key_offset(uint32_t app, uint16_t partition)
{
    struct app_key key = begin(app);

    put(&key, partition, 2);
    return key;
}

struct app_key pawl__app_key_used(uint32_t app,
                                  uint64_t workspace,
                                  uint16_t sequence,
                                  uint64_t number)
{
    struct app_key key = begin(app);

    put(&key, workspace, 8);
    put(&key, sequence, 2);
    put(&key, number, 8);
    return key;
}

struct app_key pawl__app_key_idempotency(uint32_t app, uint64_t workspace, pawl_view text)
{
    struct app_key key = begin(app);

    REQUIRE(text.len >= 1 && text.len <= PAWL_APP_KEY_BYTES_MAX);
    put(&key, workspace, 8);
    memcpy(&key.bytes[key.len], text.data, text.len);
    key.len += text.len;
    return key;
}

pawl_view pawl__app_key_view(const struct app_key *key)
{
    return (pawl_view){ key->bytes, key->len };
}

bool pawl__app_key_number(enum app_family family, pawl_view key, uint64_t *ret_number)
{
    size_t before = family == APP_PLOG ? 6 : 12;
    pawl_view skipped;
    uint64_t number = 0;

    if ((family != APP_PLOG && family != APP_WLOG && family != APP_RECORDS)
        || !pawl__view_take(&key, before, &skipped) || !pawl__view_take_u64be(&key, &number)
        || key.len != 0) {
        return false;
    }
    *ret_number = number;
    return true;
}

/* --- back --- */

static bool is_printable(pawl_view text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < ' ' || text.data[i] > '~') {
            return false;
        }
    }
    return true;
}

static bool parse_parts(enum app_family family, pawl_view key, struct app_key_parts *parts)
{
    bool fits = pawl__view_take_u32be(&key, &parts->app);

    switch (family) {
    case APP_META:
        parts->text = key;
        return fits && is_printable(key);
    case APP_PLOG:
        fits = fits && pawl__view_take_u16be(&key, &parts->partition)
               && pawl__view_take_u64be(&key, &parts->number);
        break;
    case APP_WLOG:
    case APP_RECORDS:
        fits = fits && pawl__view_take_u64be(&key, &parts->workspace)
               && pawl__view_take_u64be(&key, &parts->number);
        break;
    case APP_SEQ:
        fits = fits && pawl__view_take_u16be(&key, &parts->partition)
               && pawl__view_take_u64be(&key, &parts->workspace)
               && pawl__view_take_u16be(&key, &parts->sequence);
        break;
    case APP_OFFSETS:
        fits = fits && pawl__view_take_u16be(&key, &parts->partition);
        break;
    case APP_KEYS:
        fits = fits && pawl__view_take_u64be(&key, &parts->workspace);
        parts->text = key;
        return fits && key.len > 0 && is_printable(key);
    case APP_NUMBERS:
        fits = fits && pawl__view_take_u64be(&key, &parts->workspace)
               && pawl__view_take_u16be(&key, &parts->sequence)
               && pawl__view_take_u64be(&key, &parts->number);
        break;
    default:
        return false;
    }
    return fits && key.len == 0;
}

bool pawl__app_key_parse(enum app_family family, pawl_view key, struct app_key_parts *ret_parts)
{
    struct app_key_parts parts = { 0 };
    bool parsed = parse_parts(family, key, &parts);

    if (parsed) {
        *ret_parts = parts;
    }
    return parsed;
}

/* --- for people --- */

static void describe_parts(enum app_family family,
                           const struct app_key_parts *p,
                           struct pawl__buf *buf)
{
    switch (family) {
    case APP_META:
        pawl__buf_add_text(buf, "the ");
        pawl__buf_add(buf, p->text.len == 0 ? pawl_view_of("descriptor") : p->text);
        break;
    case APP_PLOG:
        pawl__buf_add_format(
            buf, "offset %" PRIu64 " of the PLog of partition %u", p->number, p->partition);
        break;
    case APP_WLOG:
        pawl__buf_add_format(
            buf, "offset %" PRIu64 " of the WLog of workspace %" PRIu64, p->number, p->workspace);
        break;
    case APP_RECORDS:
        pawl__buf_add_format(
            buf, "record %" PRIu64 " of workspace %" PRIu64, p->number, p->workspace);
        break;
    case APP_SEQ:
        pawl__buf_add_format(buf,
                             "sequence %u of workspace %" PRIu64 " in partition %u",
                             p->sequence,
                             p->workspace,
                             p->partition);
        break;
    case APP_OFFSETS:
        pawl__buf_add_format(buf, "the sequences' offset of partition %u", p->partition);
        break;
    case APP_NUMBERS:
        pawl__buf_add_format(buf,
                             "number %" PRIu64 " of sequence %u of workspace %" PRIu64,
                             p->number,
                             p->sequence,
                             p->workspace);
        break;
    default:
        pawl__buf_add_format(
            buf, "key '%.*s' of workspace %" PRIu64, VIEW_ARGS(p->text), p->workspace);
        break;
    }
    pawl__buf_add_format(buf, " (application %" PRIu32 ")", p->app);
}

void pawl__app_key_describe(enum app_family family, pawl_view key, struct pawl__buf *buf)
{
    struct app_key_parts parts;

    if (pawl__app_key_parse(family, key, &parts)) {
        describe_parts(family, &parts, buf);
        return;
    }
    pawl__buf_add_format(buf, "key ");
    for (size_t i = 0; i < key.len; i++) {
        pawl__buf_add_format(buf, "%02x", (unsigned char)key.data[i]);
    }
    pawl__buf_add_format(buf, " of '%s'", pawl__app_family_name(family));
}
