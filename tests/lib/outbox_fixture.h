/* An outbox of either backend, and entries for it that their number determines. */
#ifndef TESTS_OUTBOX_FIXTURE_H
#define TESTS_OUTBOX_FIXTURE_H

#include "lib/check.h"

#include "delivery/outbox/memory.h"
#include "delivery/outbox/rocksdb.h"
#include "lib/tempdir.h"

struct outbox_fixture {
    bool in_memory;
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 16]; /* of the store, below dir */
    struct outbox_memory memory;
    struct outbox_store *store;
    struct outbox_read read;
    pawl_error error;
};

extern const struct delivery_rocksdb_options
    outbox_options; /* small and without a reserve of disk */

void outbox_fixture_open(struct outbox_fixture *f, bool in_memory);
void outbox_fixture_close(struct outbox_fixture *f);
void outbox_reopen(struct outbox_fixture *f); /* what memory holds outlives it */

/* Room for the texts of one entry. */
struct outbox_sample {
    char id[32];
    char payload[64];
    struct delivery_header header;
    struct outbox_entry entry;
};

/* The entry of that number: the event "e<number>" of source "s", to the subject. */
void outbox_sample(struct outbox_sample *sample, uint64_t number, const char *subject);

/* Appends entries up to `last`, all to the subject, in one batch. */
void outbox_append(struct outbox_fixture *f, uint64_t last, const char *subject);
void outbox_keep(struct outbox_fixture *f, const char *stream, uint64_t number, uint64_t sequence);

/* Pending numbers of a subject from `from` on, "1 2 5". */
const char *outbox_pending(struct outbox_fixture *f, const char *subject, uint64_t from);
/* Kept ones of a stream, "1@7 2@8". */
const char *outbox_kept(struct outbox_fixture *f, const char *stream);
struct outbox_stats outbox_stats(struct outbox_fixture *f);

#endif
