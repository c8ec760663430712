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
 * A rest of less than 7 bytes in a block is not used. A record is a batch: u64 LE sequence number of its first entry, u32 LE
 * how many it has, the entries.
 *
 * Writes that nobody syncs make it harder: behind the hole there may be whole records then. So each batch carries a
 * note for the log alone: up to which sequence number the log was synced when it was written. A hole is the end that a
 * power cut left if no note behind it tells of a sync beyond the last good record; otherwise something that was
 * acknowledged is gone, and a person must decide. Logs without notes are older: there a whole record behind the hole is
 * damage. */
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

/* Ends with what is no zero, so that the end of a record shows whether it was written. */
static const char note_mark[] = "pawl:synced";
enum { NOTE_MARK_LEN = sizeof(note_mark) - 1 };
_Static_assert((int)ROCKS_NOTE_LEN == 8 + (int)NOTE_MARK_LEN, "a number and the mark");

struct log_walk {
    uint64_t good;     /* the end of the last whole record */
    uint64_t good_to;  /* the sequence number of its last entry */
    uint64_t begun_to; /* the same of the record that was begun last */
    bool has_notes;    /* up to there */
    bool hole;         /* zeros where a record should begin */
    bool orphan;       /* behind it: a continuation without a start */
    bool other;        /* anything else that is not as it should be: a person must decide */
};

void pawl__rocks_note(uint64_t synced, char ret_note[ROCKS_NOTE_LEN])
{
    for (int i = 0; i < 8; i++) {
        ret_note[i] = (char)(unsigned char)(synced >> (8 * i));
    }
    memcpy(&ret_note[8], note_mark, NOTE_MARK_LEN);
}

/* The highest sequence number that a note in these bytes tells of. False: there is none. */
static bool find_notes(pawl_view bytes, uint64_t *synced)
{
    bool found = false;
    const char *at = bytes.data;
    size_t left = bytes.len;
    const char *mark = NULL;

    while (left > 0 && (mark = memmem(at, left, note_mark, NOTE_MARK_LEN)) != NULL) {
        if (mark - bytes.data >= 8) {
            pawl_view number = { mark - 8, 8 };
            uint64_t told = 0;
            found |= pawl__view_take_u64le(&number, &told);
            *synced = MAX(*synced, told);
        }
        at = mark + NOTE_MARK_LEN;
        left = bytes.len - (size_t)(at - bytes.data);
    }
    return found;
}

/* The first fragment of a record begins with the batch's own header. */
static void begin_record(struct log_walk *walk, pawl_view payload)
{
    uint64_t sequence = 0;
    uint32_t count = 0;

    if (pawl__view_take_u64le(&payload, &sequence) && pawl__view_take_u32le(&payload, &count)) {
        walk->begun_to = sequence + count - (count > 0);
    }
}

/* Where the rest of a record should be are zeros: its beginning is on disk, its end is not. */
static bool ends_in_zeros(pawl_view payload)
{
    static const char zeros[ROCKS_NOTE_LEN];

    return payload.len >= sizeof(zeros)
           && memcmp(&payload.data[payload.len - sizeof(zeros)], zeros, sizeof(zeros)) == 0;
}

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
        walk->hole |= len <= in.len && ends_in_zeros((pawl_view){ in.data, len });
        walk->other = true;
        return 0;
    }
    if (!walk->hole) {
        uint64_t synced = 0;
        walk->has_notes |= find_notes((pawl_view){ in.data, len }, &synced);
        if (type == WHOLE || type == FIRST) {
            begin_record(walk, (pawl_view){ in.data, len });
        }
    }
    if (walk->hole) {
        walk->orphan = walk->orphan || type == MIDDLE || type == LAST;
        walk->other = walk->other || (type != MIDDLE && type != LAST);
    } else if (type == WHOLE || type == LAST) {
        walk->good = at + HEADER + len;
        walk->good_to = walk->begun_to;
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

/* Whether something behind the last good record tells that more than that was synced. The hole may be at the very start
 * of a log: what is behind it has notes then, too. */
static pawl_status more_was_synced(int fd,
                                   struct log_walk *walk,
                                   bool *ret_more,
                                   pawl_error *reterr)
{
    char *block = malloc(BLOCK);
    uint64_t offset = walk->good;
    uint64_t synced = 0;
    ssize_t got = 0;

    TRY(pawl__check_memory(block, "a block", reterr));
    while ((got = pread(fd, block, BLOCK, (off_t)offset)) > 0) {
        walk->has_notes |= find_notes((pawl_view){ block, (size_t)got }, &synced);
        offset += (size_t)got == BLOCK ? BLOCK - ROCKS_NOTE_LEN : (size_t)got;
    }
    free(block);
    *ret_more = synced > walk->good_to;
    return got < 0 ? pawl__fail_errno(reterr, errno, "read the log") : PAWL_OK;
}

static pawl_status is_torn_end(int fd, bool *ret_torn, uint64_t *ret_good, pawl_error *reterr)
{
    struct log_walk walk = { .good = 0 };
    bool more = true;

    TRY(walk_log(fd, &walk, reterr));
    if (walk.hole) {
        TRY(more_was_synced(fd, &walk, &more, reterr));
    }
    *ret_torn = walk.hole && (walk.has_notes ? !more : walk.orphan && !walk.other);
    *ret_good = walk.good;
    return PAWL_OK;
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
    bool is_torn = false;
    uint64_t good = 0;

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
    TRY(is_torn_end(fd, &is_torn, &good, reterr));
    if (!is_torn) {
        return PAWL_OK;
    }
    if (ftruncate(fd, (off_t)good) != 0 || fsync(fd) != 0) {
        return pawl__fail_errno(reterr, errno, "cut the torn end of '%s'", path);
    }
    *ret_mended = true;
    return PAWL_OK;
}
