/* Snapshots: a ledger's events, turns and embeddings in one SQLite file at rest.
 *
 * copy.c copies the content of a backend into a file, snapshot.c makes a snapshot of that. dir.c keeps a
 * directory of them: publish.c moves damaged ones aside, choose.c finds the one to restore. restore.c
 * makes a ledger of one again, and prove.c shows that it would. */
#ifndef PAWL_LEDGER_SNAPSHOT_SNAPSHOT_H
#define PAWL_LEDGER_SNAPSHOT_SNAPSHOT_H

#include "ledger/core/backend.h"

void pawl__ledger_backend_close(struct ledger_backend **backend); /* for AUTO; NULL is nothing */

/* --- copy.c --- */

struct ledger_copy {
    struct ledger_backend *source;
    uint64_t from;  /* the target holds the events up to this one */
    uint64_t up_to; /* as of this offset, whatever was appended since */
    struct ledger_stage *stage;
};

/* Copies events with their offsets and hashes, the rows of turns as they were then, and embeddings into
 * a SQLite file, which is empty or a ledger. Nothing is checked: verify the result. The file is not
 * synced: it counts for nothing until it is published. */
PAWL_MUST_USE pawl_status pawl__ledger_copy_into(const char *path,
                                                 const struct ledger_copy *copy,
                                                 pawl_error *reterr);

/* --- snapshot.c --- */

/* One part of a long piece of work: its progress is a share of that of the whole, in thousandths. It also
 * says when to stop: the caller's progress returns false, or the ledger is interrupted. */
struct ledger_stage {
    pawl_watch watch;               /* of the whole */
    const atomic_bool *interrupted; /* the ledger's; NULL: it cannot be */
    uint64_t before;                /* thousandths that are done */
    uint64_t share;                 /* thousandths that this part is */
    uint64_t told;                  /* the last that was reported: it never goes back */
};

enum { STAGE_WHOLE = 1000 };

/* A pawl_progress whose context is a struct ledger_stage; NULL: nothing is reported, nothing stops it. */
bool pawl__ledger_stage_tell(void *context, uint64_t done, uint64_t total);
pawl_watch pawl__ledger_stage_watch(struct ledger_stage *stage);

/* The next part begins. */
void pawl__ledger_stage_next(struct ledger_stage *stage, uint64_t share);

/* A name for a file that is being made: "<path>.tmp-XXXXXX", which exists and is empty. Ended with
 * _done, which removes it and what SQLite has put beside it, unless it was published. */
struct ledger_scratch {
    char *path; /* NULL: none */
};

PAWL_MUST_USE pawl_status pawl__ledger_scratch_make(const char *path,
                                                    struct ledger_scratch *ret_scratch,
                                                    pawl_error *reterr);
void pawl__ledger_scratch_done(struct ledger_scratch *scratch);

/* Gives it its name; CONFLICT when that is taken. */
PAWL_MUST_USE pawl_status pawl__ledger_scratch_publish(struct ledger_scratch *scratch,
                                                       const char *path,
                                                       pawl_error *reterr);

/* "<path>-wal", "-shm" and ".anchor": what belongs to a ledger file. */
#define LEDGER_SIDE_FILES 3
extern const char *const pawl__ledger_side_suffixes[LEDGER_SIDE_FILES];

/* CONFLICT when there is such a file, or one of those that would be taken for a part of it. */
PAWL_MUST_USE pawl_status pawl__ledger_snapshot_check_free(const char *path, pawl_error *reterr);

/* Opens a ledger file to read from, without writing to it or beside it. */
PAWL_MUST_USE pawl_status pawl__ledger_snapshot_open(const char *path,
                                                     struct ledger_backend **ret_backend,
                                                     pawl_error *reterr);

/* Opens it and verifies all of it. `stage` may be NULL. */
PAWL_MUST_USE pawl_status pawl__ledger_snapshot_verify(const char *path,
                                                       struct ledger_stage *stage,
                                                       pawl_ledger_head *ret_head,
                                                       pawl_error *reterr);

/* CORRUPT while a snapshot is taken means that the ledger is: says what to do about it. Returns
 * `status`. */
pawl_status pawl__ledger_snapshot_advise(pawl_error *reterr, pawl_status status);

/* Copies `source` as of now into the scratch file and verifies the copy. */
PAWL_MUST_USE pawl_status pawl__ledger_snapshot_make(struct ledger_backend *source,
                                                     const struct ledger_scratch *scratch,
                                                     struct ledger_stage *stage,
                                                     pawl_ledger_head *ret_head,
                                                     pawl_error *reterr);

/* --- dir.c --- */

struct pawl__store_lock;

/* One schedule, prune or proof at a time works in a directory; BUSY. What a crash left half made in
 * it is removed. */
PAWL_MUST_USE pawl_status pawl__ledger_snapshot_lock(const char *directory,
                                                     struct pawl__store_lock **ret_lock,
                                                     pawl_error *reterr);

/* The offsets in the names of the snapshots in a directory, highest first; malloc'ed. */
PAWL_MUST_USE pawl_status pawl__ledger_snapshot_offsets(const char *directory,
                                                        uint64_t **ret_offsets,
                                                        size_t *ret_count,
                                                        pawl_error *reterr);
void pawl__ledger_snapshot_offsets_free(uint64_t **offsets); /* for AUTO */

/* "<directory>/snapshot-<20 digits>.db", malloc'ed; NULL without memory. */
char *pawl__ledger_snapshot_path(const char *directory, uint64_t offset);

/* CORRUPT when the file's name, in whatever directory, is that of a snapshot of another offset. */
PAWL_MUST_USE pawl_status pawl__ledger_snapshot_check_name(const char *path,
                                                           uint64_t ends_at,
                                                           pawl_error *reterr);

/* Verifies all of it, and that it ends at `offset`. `stage` may be NULL. */
PAWL_MUST_USE pawl_status pawl__ledger_snapshot_check(const char *path,
                                                      uint64_t offset,
                                                      struct ledger_stage *stage,
                                                      pawl_error *reterr);

/* --- publish.c --- */

/* Publishes the snapshot of `offset`. A damaged one that has its name gets another,
 * "<path>.damaged-N", with what belongs to it, and a warning says so. */
PAWL_MUST_USE pawl_status pawl__ledger_snapshot_publish(struct ledger_scratch *scratch,
                                                        const char *path,
                                                        uint64_t offset,
                                                        pawl_error *reterr);

/* --- choose.c --- */

struct snapshot_choice {
    char *path; /* the newest good one */
    uint64_t offset;
    uint64_t newest;    /* the offset in the name of the newest of all */
    char *passed_over;  /* the newest of all, when that is another one; NULL */
    pawl_error problem; /* why */
};

void pawl__ledger_snapshot_choice_done(struct snapshot_choice *choice);

/* Finds the newest good snapshot of a directory. When a newer one had to be passed over, it fails
 * with the reason (CORRUPT when that one is damaged) and names both, unless `accept_older`. Ended
 * with _done. */
PAWL_MUST_USE pawl_status pawl__ledger_snapshot_choose(const char *directory,
                                                       bool accept_older,
                                                       struct ledger_stage *stage,
                                                       struct snapshot_choice *ret_choice,
                                                       pawl_error *reterr);

/* --- restore.c --- */

struct ledger_restore {
    const char *snapshot;
    struct ledger_backend *tail; /* NULL: none */
    uint64_t up_to;              /* take the tail as of this offset; 0: as of now */
    bool accept_cut_tail;        /* one that is shorter than it was */
    const struct ledger_scratch *scratch;
    struct ledger_stage *stage;
};

struct ledger_restored {
    pawl_ledger_head snapshot;
    pawl_ledger_head head; /* of the whole */
    uint64_t known_end;    /* so many events the tail had at least; 0: unknown */
    const char *advice;    /* set when it is CORRUPT: what to do */
};

/* Copies a snapshot into `scratch`, appends what the tail has after it and verifies the result.
 * CONFLICT when the two are not of the same ledger. CORRUPT when the snapshot does not end where its
 * name says. */
PAWL_MUST_USE pawl_status pawl__ledger_restore_into(const struct ledger_restore *restore,
                                                    struct ledger_restored *ret_restored,
                                                    pawl_error *reterr);

#endif
