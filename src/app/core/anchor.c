#include "app/core/anchor.h"

#include <inttypes.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/sealed.h"

#define ANCHOR_BEGINS "pawl-app-anchor "

enum { VERSION_BARE = 1, VERSION = 2 };

void pawl__app_anchor_write(const struct app_anchor *anchor, struct pawl__buf *text)
{
    char hex[PAWL__SHA256_HEX_SIZE] = "";

    pawl__buf_add_format(text,
                         ANCHOR_BEGINS "%d %s %" PRIu32 " %" PRIu64 " %u",
                         anchor->has_descriptor ? VERSION : VERSION_BARE,
                         anchor->name,
                         anchor->id,
                         anchor->born_us,
                         anchor->partitions);
    if (anchor->has_descriptor) {
        pawl__sha256_hex(&anchor->descriptor, hex);
        pawl__buf_add_format(text, " %s", hex);
    }
    pawl__buf_add_char(text, '\n');
    for (uint16_t i = 0; i < anchor->partitions; i++) {
        if (anchor->ends[i].offset > 0) {
            pawl__sha256_hex(&anchor->ends[i].hash, hex);
            pawl__buf_add_format(text, "%u %" PRIu64 " %s\n", i, anchor->ends[i].offset, hex);
        }
    }
    pawl__sealed_end(text);
}

static bool parse_word(pawl_view *line, pawl_view *ret_word)
{
    return pawl__view_split(line, ' ', ret_word) && ret_word->len > 0;
}

static bool parse_number(pawl_view *line, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;
    pawl_view word;

    if (!parse_word(line, &word)) {
        return false;
    }
    for (size_t i = 0; i < word.len; i++) {
        uint64_t digit = (uint64_t)(word.data[i] - '0');
        if (digit > 9 || number > (max - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *ret_number = number;
    return true;
}

/* The version; the rest of the line is what it has. */
static bool parse_version(pawl_view *line, uint64_t *ret_version)
{
    pawl_view begin;

    return pawl__view_take(line, strlen(ANCHOR_BEGINS), &begin)
           && pawl__view_is(begin, ANCHOR_BEGINS) && parse_number(line, UINT32_MAX, ret_version)
           && *ret_version >= VERSION_BARE;
}

static bool parse_hash(pawl_view *line, struct pawl__sha256 *ret_hash)
{
    pawl_view hex;

    return parse_word(line, &hex) && pawl__sha256_parse(hex, ret_hash, NULL) == PAWL_OK;
}

static bool parse_head(pawl_view line, uint64_t version, struct app_anchor *anchor)
{
    pawl_view name;
    uint64_t id = 0;
    uint64_t partitions = 0;

    anchor->has_descriptor = version > VERSION_BARE;
    if (!parse_word(&line, &name) || name.len > PAWL_APP_NAME_BYTES_MAX
        || !parse_number(&line, UINT32_MAX, &id)
        || !parse_number(&line, UINT64_MAX, &anchor->born_us)
        || !parse_number(&line, PAWL_APP_PARTITIONS_MAX, &partitions)
        || (anchor->has_descriptor && !parse_hash(&line, &anchor->descriptor))) {
        return false;
    }
    memcpy(anchor->name, name.data, name.len);
    anchor->id = (uint32_t)id;
    anchor->partitions = (uint16_t)partitions;
    return line.len == 0;
}

static bool parse_end(pawl_view line, struct app_anchor *anchor)
{
    uint64_t partition = 0;
    uint64_t offset = 0;
    struct pawl__sha256 hash;

    if (!parse_number(&line, UINT16_MAX, &partition) || !parse_number(&line, UINT64_MAX, &offset)
        || !parse_hash(&line, &hash) || line.len != 0 || partition >= anchor->partitions) {
        return false;
    }
    anchor->ends[partition] = (struct app_log_end){ offset, hash };
    return true;
}

pawl_status pawl__app_anchor_parse(pawl_view text,
                                   struct app_anchor *ret_anchor,
                                   pawl_error *reterr)
{
    pawl_view rest;
    pawl_view line;
    uint64_t version = 0;

    memset(ret_anchor, 0, sizeof(*ret_anchor));
    bool whole = pawl__sealed_open(text, &rest) && pawl__view_split(&rest, '\n', &line)
                 && parse_version(&line, &version);
    if (whole && version > VERSION) {
        return pawl__fail(reterr,
                          PAWL_UNSUPPORTED,
                          "it has version %" PRIu64 ", this pawl knows %d: use the newer pawl that "
                          "wrote it",
                          version,
                          VERSION);
    }
    whole = whole && parse_head(line, version, ret_anchor);
    while (whole && pawl__view_split(&rest, '\n', &line)) {
        whole = parse_end(line, ret_anchor);
    }
    return whole ? PAWL_OK
                 : pawl__fail(reterr, PAWL_CORRUPT, "it is damaged: it is not what pawl wrote");
}

pawl_status pawl__app_anchor_check_descriptor(const struct app_anchor *anchor,
                                              const struct pawl__sha256 *stored,
                                              const char *where,
                                              pawl_error *reterr)
{
    return !anchor->has_descriptor || pawl__sha256_equal(&anchor->descriptor, stored)
               ? PAWL_OK
               : pawl__fail_advised(
                   reterr,
                   PAWL_CORRUPT,
                   "the stored descriptor of application '%s' was altered: it is not the "
                   "one that the anchor knows; restore it from a backup, or to accept it "
                   "as it is remove the anchor (%s)",
                   anchor->name,
                   where);
}

/* The partition with the longest log; UINT16_MAX: there are no events. */
static uint16_t longest_of(const struct app_anchor *anchor)
{
    uint16_t longest = UINT16_MAX;

    for (uint16_t i = 0; i < anchor->partitions; i++) {
        if (anchor->ends[i].offset > 0
            && (longest == UINT16_MAX || anchor->ends[i].offset > anchor->ends[longest].offset)) {
            longest = i;
        }
    }
    return longest;
}

pawl_status pawl__app_anchor_check_new(const struct app_anchor *anchor,
                                       const char *where,
                                       pawl_error *reterr)
{
    uint16_t longest = longest_of(anchor);

    return longest == UINT16_MAX
               ? PAWL_OK
               : pawl__fail_advised(
                   reterr,
                   PAWL_CORRUPT,
                   "cut off: there is no application '%s', but its anchor is at offset "
                   "%" PRIu64 " of partition %u; restore it, or to begin anew remove the "
                   "anchor (%s)",
                   anchor->name,
                   anchor->ends[longest].offset,
                   longest,
                   where);
}
