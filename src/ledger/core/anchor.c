#include "ledger/core/anchor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sealed.h"
#include "base/core/sha256.h"
#include "base/os/fs.h"

#define ANCHOR_BEGINS "pawl-anchor 1 "
enum { ANCHOR_BYTES_MAX = 160 };

char *pawl__ledger_anchor_path(const char *ledger_path)
{
    return pawl__fs_with_suffix(ledger_path, ".anchor");
}

/* Everything but the checksum, with the space before it. */
static void add_body(struct pawl__buf *buf, const pawl_ledger_head *head)
{
    struct pawl__sha256 hash;
    char hex[PAWL__SHA256_HEX_SIZE];

    memcpy(hash.bytes, head->hash, sizeof(hash.bytes));
    pawl__sha256_hex(&hash, hex);
    pawl__buf_add_format(buf, ANCHOR_BEGINS "%" PRIu64 " %s ", head->offset, hex);
}

pawl_status pawl__ledger_anchor_write(const char *path,
                                      const pawl_ledger_head *head,
                                      pawl_error *reterr)
{
    char space[ANCHOR_BYTES_MAX];
    struct pawl__buf text = BUF_OVER(space);

    add_body(&text, head);
    pawl__sealed_end(&text);
    REQUIRE(!text.broken);
    return pawl__fs_replace(path, pawl__buf_view(&text), reterr);
}

/* Only finds the parts: whether all of it is right, the comparison after it says. */
static bool parse_head(const char *text, pawl_ledger_head *ret_head)
{
    struct pawl__sha256 hash;
    char *rest = NULL;

    if (strncmp(text, ANCHOR_BEGINS, strlen(ANCHOR_BEGINS)) != 0) {
        return false;
    }
    uint64_t offset = strtoull(text + strlen(ANCHOR_BEGINS), &rest, 10);
    pawl_view line = pawl_view_of(rest);
    pawl_view space;
    pawl_view hex;
    if (!pawl__view_take(&line, 1, &space)
        || !pawl__view_take(&line, PAWL__SHA256_HEX_SIZE - 1, &hex)
        || pawl__sha256_parse(hex, &hash, NULL) != PAWL_OK) {
        return false;
    }
    ret_head->offset = offset;
    memcpy(ret_head->hash, hash.bytes, sizeof(ret_head->hash));
    return true;
}

pawl_status pawl__ledger_anchor_read(const char *path,
                                     pawl_ledger_head *ret_head,
                                     pawl_error *reterr)
{
    char text[ANCHOR_BYTES_MAX];
    char again[ANCHOR_BYTES_MAX];
    struct pawl__buf expected = BUF_OVER(again);
    pawl_ledger_head head = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    size_t len = 0;

    pawl_status status = pawl__fs_read_small(path, text, sizeof(text), &len, &error);
    if (status == PAWL_NOT_FOUND) {
        return status;
    }
    if (status != PAWL_OK) {
        (void)pawl__fail_with(reterr, status, &error);
        return status == PAWL_INVALID ? pawl__fail_context(reterr, PAWL_CORRUPT, "anchor") : status;
    }
    /* Writing what was read must give the same bytes: that checks every character, once. */
    if (parse_head(text, &head)) {
        add_body(&expected, &head);
        pawl__sealed_end(&expected);
        if (pawl__view_equal(pawl__buf_view(&expected), (pawl_view){ text, len })) {
            *ret_head = head;
            return PAWL_OK;
        }
    }
    return pawl__fail_advised(
        reterr,
        PAWL_CORRUPT,
        "'%s' is damaged: it is not what pawl wrote; if `pawl ledger verify` finds nothing "
        "else, remove it",
        path);
}
