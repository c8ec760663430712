/* The end of the engine's log after a power cut.
 *
 * A write that was not synced may be on disk in part, and not its beginning: a disk writes pages in the
 * order that it likes. In the log that is a hole of zeros, and behind it the continuation of a record
 * that has no start. The engine calls that corruption and does not open, though nothing that was
 * acknowledged is touched. A flipped bit looks different: it leaves no zeros where a record begins, and
 * whole records behind it.
 *
 * LOG, as the engine writes it: blocks of 32 KiB; in them fragments, none across a block's end
 *
 *   u32 LE  crc32c of type and payload, masked
 *   u16 LE  length of the payload
 *   u8      1 whole record, 2 first, 3 middle, 4 last fragment of one; 0: nothing, up to the block's end
 *
 * A rest of less than 7 bytes in a block is not used. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/crc32c.h"
#include "base/core/error.h"
#include "base/os/fs.h"
#include "store/rocksdb/internal.h"

enum { BLOCK = 32768, HEADER = 7, WHOLE = 1, FIRST = 2, MIDDLE = 3, LAST = 4 };

struct log_walk {
    uint64_t good; /* the end of the last whole record */
    bool hole;     /* zeros where a record should begin */
    bool orphan;   /* behind it: a continuation without a start */
    bool other;    /* anything else that is not as it should be: a person must decide */
};

static bool checksum_fits(const char *fragment, size_t len, uint32_t stored)
{
    uint32_t crc = pawl__crc32c((pawl_view){ fragment, len });

    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xA282EAD8) == stored;
}

/* One fragment. Returns its length with its header; 0: nothing more in this block. */
static size_t take_fragment(struct log_walk *walk, pawl_view rest, uint64_t at)
{
    pawl_view in = rest;
    uint32_t crc = 0;
    uint8_t low = 0;
    uint8_t high = 0;
    uint8_t type = 0;

    if (!pawl__view_take_u32le(&in, &crc) || !pawl__view_take_u8(&in, &low)
        || !pawl__view_take_u8(&in, &high) || !pawl__view_take_u8(&in, &type)) {
        return 0; /* the unused rest of a block, or a header that is cut off at the end */
    }
    size_t len = (size_t)low | (size_t)high << 8;
    if (type == 0 && len == 0) {
        walk->hole = true;
        return 0;
    }
    if (len > in.len || !checksum_fits(&rest.data[HEADER - 1], len + 1, crc)) {
        walk->other = true;
        return 0;
    }
    if (walk->hole) {
        walk->orphan = walk->orphan || type == MIDDLE || type == LAST;
        walk->other = walk->other || (type != MIDDLE && type != LAST);
    } else if (type == WHOLE || type == LAST) {
        walk->good = at + HEADER + len;
    } else if (type != FIRST && type != MIDDLE) {
        walk->other = true;
    }
    return HEADER + len;
}

static pawl_status walk_log(int fd, struct log_walk *walk, pawl_error *reterr)
{
    char *block = malloc(BLOCK);
    uint64_t offset = 0;
    ssize_t got = 0;

    TRY(pawl__check_memory(block, "a block", reterr));
    while (!walk->other && (got = pread(fd, block, BLOCK, (off_t)offset)) > 0) {
        size_t at = 0;
        size_t step = 1;
        while (step > 0 && !walk->other) {
            step = take_fragment(walk, (pawl_view){ &block[at], (size_t)got - at }, offset + at);
            at += step;
        }
        offset += (uint64_t)got;
    }
    free(block);
    return got < 0 ? pawl__fail_errno(reterr, errno, "read the log") : PAWL_OK;
}

/* "000012.log": the one with the highest number. False: there is none. */
static bool find_log(const char *dir, char ret_name[32])
{
    DIR *stream = opendir(dir);
    const struct dirent *entry = NULL;
    unsigned long long highest = 0;

    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char *end = NULL;
        unsigned long long number = strtoull(entry->d_name, &end, 10);
        if (end != entry->d_name && strcmp(end, ".log") == 0 && number >= highest
            && strlen(entry->d_name) < 32) {
            highest = number;
            snprintf(ret_name, 32, "%.31s", entry->d_name);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
    return highest > 0;
}

pawl_status pawl__rocks_mend_log(const char *dir, bool *ret_mended, pawl_error *reterr)
{
    char name[32];
    struct log_walk walk = { .good = 0 };

    *ret_mended = false;
    if (!find_log(dir, name)) {
        return PAWL_OK;
    }
    AUTO(pawl__text_free) char *path = pawl__fs_join(dir, name);
    TRY(pawl__check_memory(path, "a path", reterr));
    AUTO(pawl__fs_close) int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", path);
    }
    pawl_status status = walk_log(fd, &walk, reterr);
    if (status != PAWL_OK || walk.other || !walk.hole || !walk.orphan) {
        return status;
    }
    if (ftruncate(fd, (off_t)walk.good) != 0 || fsync(fd) != 0) {
        return pawl__fail_errno(reterr, errno, "cut the torn end of '%s'", path);
    }
    *ret_mended = true;
    return PAWL_OK;
}
