/* A consumer WAL of either backend, and entries for it that their number determines. */
#ifndef TESTS_WAL_FIXTURE_H
#define TESTS_WAL_FIXTURE_H

#include "lib/check.h"

#include "delivery/core/wal.h"
#include "delivery/memory/wal.h"
#include "delivery/rocksdb/wal.h"
#include "lib/tempdir.h"

struct wal_fixture {
    bool in_memory;
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 16]; /* of the WAL, below dir */
    struct delivery_memory_wal memory;
    struct delivery_wal *wal;
    struct delivery_wal_meta meta; /* that append writes */
    struct delivery_page page;
    pawl_error error;
};

extern const struct delivery_rocksdb_options wal_options; /* small and without a reserve of disk */

void wal_fixture_open(struct wal_fixture *f, bool in_memory);
void wal_fixture_close(struct wal_fixture *f);
void wal_reopen(struct wal_fixture *f); /* what memory holds outlives it */

/* Room for the texts of one entry. */
struct wal_sample {
    char id[64];
    char transaction[80];
    char payload[160];
    struct delivery_header headers[2];
    struct delivery_entry entry;
};

/* The event `number` under `lsn`: the same event has the same key. */
void wal_sample(struct wal_sample *sample, delivery_lsn lsn, uint64_t number);
struct delivery_key wal_key_of(uint64_t number);

/* Appends events first..last under the same LSNs, in one batch. */
void wal_append(struct wal_fixture *f, delivery_lsn first, delivery_lsn last);
void wal_mark(struct wal_fixture *f, delivery_lsn lsn, enum delivery_entry_state state);

/* The LSNs of a page, "1 2p 5": with the first letter of the state but for pending ones. */
const char *wal_lsns(struct wal_fixture *f, delivery_lsn from, delivery_lsn to, unsigned states);

void wal_assert_entry(const struct delivery_entry *entry, delivery_lsn lsn, uint64_t number);
struct delivery_wal_stats wal_stats(struct wal_fixture *f);

#endif
