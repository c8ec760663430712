/* What a power cut leaves of one file.
 *
 * The live file system holds what programs see. Here we keep what the disk is known to have (the
 * durable bytes) and, in order, every change since the last fsync. An fsync moves all of them to
 * the durable bytes; a cut decides which of them happened to reach the disk and forgets the others.
 */
#ifndef TESTS_LOSSFS_FILE_H
#define TESTS_LOSSFS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/random.h"

/* A disk writes this many bytes at once or not at all. */
#define LOSS_SECTOR_BYTES 512

enum loss_cut {
    LOSS_CUT_DROP,   /* nothing that was not synced */
    LOSS_CUT_KEEP,   /* everything: what a killed process leaves behind */
    LOSS_CUT_RANDOM, /* any subset */
    LOSS_CUT_PREFIX, /* the first few of each file */
    LOSS_CUT_TORN,   /* the first few, and some sectors of the next one */
    LOSS_CUT_COUNT
};

/* "drop", "keep", "random", "prefix", "torn". */
const char *loss_cut_name(enum loss_cut cut);
bool loss_cut_parse(const char *name, enum loss_cut *ret_cut);

struct loss_change {
    struct loss_change *next;
    bool resize; /* to `offset` bytes; else a write of `len` bytes at `offset` */
    bool synced; /* by O_SYNC: durable although older changes are not */
    uint64_t offset;
    size_t len;
    char data[];
};

struct loss_file {
    char *durable; /* `durable_len` bytes; zeros behind them up to `durable_cap` */
    size_t durable_len;
    size_t durable_cap;
    uint64_t live_len;
    struct loss_change *oldest;
    struct loss_change *newest;
    size_t pending; /* changes that a cut may lose */
};

void loss_file_done(struct loss_file *file);

/* `synced` is what O_SYNC and O_DSYNC promise: this write, and no other, is durable. */
void loss_file_write(
    struct loss_file *file, uint64_t offset, const char *data, size_t len, bool synced);
void loss_file_resize(struct loss_file *file, uint64_t len);

void loss_file_sync(struct loss_file *file);

/* What an fsync that failed does on Linux: the pages are marked clean and will never be written, so
 * the changes are lost although the program still reads them. */
void loss_file_forget(struct loss_file *file);

/* Returns how many changes were lost, in whole or in part. */
size_t loss_file_cut(struct loss_file *file, enum loss_cut cut, struct pawl__prng *random);

#endif
