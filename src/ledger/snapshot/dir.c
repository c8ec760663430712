/* A directory of snapshots. A snapshot's name holds its offset, so that the newest is known without
 * opening any; whether it is good, only its content says. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/decide/page.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "ledger/core/event.h"
#include "ledger/core/internal.h"
#include "ledger/snapshot/snapshot.h"
#include "ledger/verify/verify.h"
#include "store/lock.h"

#define NAME_FORMAT "snapshot-%020" PRIu64 ".db"
#define SCRATCH_STEM "snapshot"
enum { NAME_SIZE = sizeof("snapshot-01234567890123456789.db"), SNAPSHOTS_MAX = 100000 };

void pawl__ledger_snapshot_offsets_free(uint64_t **offsets)
{
    free(*offsets);
}

static void close_directory(DIR **directory)
{
    if (*directory != NULL) {
        closedir(*directory);
    }
}

char *pawl__ledger_snapshot_path(const char *directory, uint64_t offset)
{
    char name[NAME_SIZE];

    snprintf(name, sizeof(name), NAME_FORMAT, offset);
    return pawl__fs_join(directory, name);
}

/* --- what is there --- */

/* Writing the name again must give the same: that checks every character. */
static bool is_snapshot_name(const char *name, uint64_t *ret_offset)
{
    char again[NAME_SIZE];

    if (strlen(name) != NAME_SIZE - 1) {
        return false;
    }
    uint64_t offset = strtoull(name + strlen("snapshot-"), NULL, 10);
    snprintf(again, sizeof(again), NAME_FORMAT, offset);
    *ret_offset = offset;
    return strcmp(name, again) == 0;
}

/* Files that a schedule or a proof makes under the lock: after a crash they can be removed. A restore, or
 * a snapshot into a named file, needs no lock, and its file is named after its target. */
static bool is_scratch_name(const char *name)
{
    return strncmp(name, SCRATCH_STEM ".tmp-", strlen(SCRATCH_STEM ".tmp-")) == 0
           || strncmp(name, "proof.tmp-", strlen("proof.tmp-")) == 0;
}

/* Calls `take` with every name until it returns something else than PAWL_OK. */
static pawl_status each_name(const char *directory,
                             pawl_status (*take)(void *context,
                                                 const char *name,
                                                 pawl_error *reterr),
                             void *context,
                             pawl_error *reterr)
{
    AUTO(close_directory) DIR *dir = opendir(directory);

    if (dir == NULL) {
        return pawl__fail_errno(reterr, errno, "open directory '%s'", directory);
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            return errno == 0 ? PAWL_OK
                              : pawl__fail_errno(reterr, errno, "read directory '%s'", directory);
        }
        TRY(take(context, entry->d_name, reterr));
    }
}

struct offsets {
    uint64_t *values;
    size_t count;
    size_t cap;
};

static pawl_status add_offset(void *context, const char *name, pawl_error *reterr)
{
    struct offsets *offsets = context;
    uint64_t offset;

    if (!is_snapshot_name(name, &offset)) {
        return PAWL_OK;
    }
    if (offsets->count == SNAPSHOTS_MAX) {
        return pawl__fail(
            reterr, PAWL_INVALID, "more than %d snapshots in one directory", SNAPSHOTS_MAX);
    }
    if (offsets->count == offsets->cap) {
        size_t cap = MAX(offsets->cap * 2, (size_t)16);
        uint64_t *larger = realloc(offsets->values, cap * sizeof(*larger));
        if (larger == NULL) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for the names of snapshots");
        }
        offsets->values = larger;
        offsets->cap = cap;
    }
    offsets->values[offsets->count++] = offset;
    return PAWL_OK;
}

static int highest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

pawl_status pawl__ledger_snapshot_offsets(const char *directory,
                                          uint64_t **ret_offsets,
                                          size_t *ret_count,
                                          pawl_error *reterr)
{
    struct offsets offsets = { 0 };
    pawl_status status = each_name(directory, add_offset, &offsets, reterr);

    if (status != PAWL_OK) {
        free(offsets.values);
        return status;
    }
    if (offsets.count > 1) {
        qsort(offsets.values, offsets.count, sizeof(*offsets.values), highest_first);
    }
    *ret_offsets = offsets.values;
    *ret_count = offsets.count;
    return PAWL_OK;
}

/* --- the lock --- */

static pawl_status remove_scratch(void *context, const char *name, pawl_error *reterr)
{
    const char *directory = context;

    if (is_scratch_name(name)) {
        AUTO(pawl__text_free) char *path = pawl__fs_join(directory, name);
        TRY(pawl__fs_check_path(path, reterr));
        if (unlink(path) != 0 && errno != ENOENT) {
            return pawl__fail_errno(reterr, errno, "remove '%s'", path);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__ledger_snapshot_lock(const char *directory,
                                       struct pawl__store_lock **ret_lock,
                                       pawl_error *reterr)
{
    AUTO(pawl__store_lock_release_p) struct pawl__store_lock *lock = NULL;
    char *name = (char *)(uintptr_t)directory; /* only read */

    TRY(pawl__store_lock_inside(directory, &lock, reterr));
    TRY(each_name(directory, remove_scratch, name, reterr));
    *ret_lock = STEAL(lock);
    return PAWL_OK;
}

/* --- which are good --- */

/* The content must end where the name says. */
static pawl_status check_name(uint64_t offset, const pawl_ledger_head *head, pawl_error *reterr)
{
    return head->offset == offset
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "it ends at offset %" PRIu64 ", its name says %" PRIu64,
                            head->offset,
                            offset);
}

pawl_status pawl__ledger_snapshot_check_name(const char *path, uint64_t ends_at, pawl_error *reterr)
{
    const char *slash = strrchr(path, '/');
    pawl_ledger_head head = { .offset = ends_at };
    uint64_t offset;

    return is_snapshot_name(slash == NULL ? path : slash + 1, &offset)
               ? check_name(offset, &head, reterr)
               : PAWL_OK;
}

pawl_status pawl__ledger_snapshot_check(const char *path,
                                        uint64_t offset,
                                        struct ledger_stage *stage,
                                        pawl_error *reterr)
{
    pawl_ledger_head head;

    TRY(pawl__ledger_snapshot_verify(path, stage, &head, reterr));
    return check_name(offset, &head, reterr);
}

/* Whether it is a snapshot of this very ledger, by its end: this costs the same however long the log
 * is. */
static pawl_status check_end(const char *path,
                             uint64_t offset,
                             struct ledger_backend *ledger,
                             pawl_error *reterr)
{
    AUTO(pawl__ledger_backend_close) struct ledger_backend *snapshot = NULL;
    pawl_ledger_head head = { 0 };

    TRY(pawl__ledger_snapshot_open(path, &snapshot, reterr));
    TRY(snapshot->ops->head(snapshot, &head, reterr));
    TRY(check_name(offset, &head, reterr));
    return pawl__ledger_verify_contains(ledger, &head, "the snapshot", NULL, reterr);
}

static int64_t taken_at_us(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0
               ? (int64_t)info.st_mtim.tv_sec * US_PER_S + info.st_mtim.tv_nsec / NS_PER_US
               : 0;
}

static pawl_status show_snapshot(const char *directory,
                                 uint64_t offset,
                                 pawl_snapshot_visit visit,
                                 void *context,
                                 bool *ret_wants_more,
                                 pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = pawl__ledger_snapshot_path(directory, offset);
    pawl_error error = PAWL_ERROR_INIT;

    TRY(pawl__fs_check_path(path, reterr));
    pawl_snapshot_info info = {
        .size = sizeof(pawl_snapshot_info),
        .path = path,
        .offset = offset,
        .taken_at_us = taken_at_us(path),
        .status = pawl__ledger_snapshot_check(path, offset, NULL, &error),
        .problem = error.message,
    };
    *ret_wants_more = visit(context, &info);
    return PAWL_OK;
}

pawl_status pawl_snapshot_list(const char *directory,
                               pawl_page *page,
                               pawl_snapshot_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    AUTO(pawl__ledger_snapshot_offsets_free) uint64_t *offsets = NULL;
    struct pawl__page walk;
    size_t count = 0;
    bool goes_on = true;

    NEED_TEXT(directory, reterr);
    NEED(visit, reterr);
    TRY(pawl__page_take(page, &walk, reterr));
    uint64_t newest = walk.page.from == 0 ? UINT64_MAX : walk.page.from;
    TRY(pawl__ledger_snapshot_offsets(directory, &offsets, &count, reterr));
    for (size_t i = 0; goes_on && i < count; i++) {
        bool wants_more = true;
        if (offsets[i] > newest) {
            continue;
        }
        goes_on = pawl__page_admits(&walk, offsets[i]);
        if (goes_on) {
            TRY(show_snapshot(directory, offsets[i], visit, context, &wants_more, reterr));
            goes_on = pawl__page_show(&walk, wants_more);
        }
    }
    pawl__page_answer(&walk, page);
    return PAWL_OK;
}

/* --- pruning --- */

static pawl_status remove_snapshot(const char *path, pawl_error *reterr)
{
    /* First what belongs to it: a log without its file would be taken for the next one's. */
    for (size_t i = 0; i < LEDGER_SIDE_FILES; i++) {
        AUTO(pawl__text_free)
        char *side = pawl__fs_with_suffix(path, pawl__ledger_side_suffixes[i]);
        TRY(pawl__fs_check_path(side, reterr));
        if (unlink(side) != 0 && errno != ENOENT) {
            return pawl__fail_errno(reterr, errno, "remove '%s'", side);
        }
    }
    FAILPOINT("ledger.prune.remove.before", reterr);
    return unlink(path) == 0 || errno == ENOENT
               ? PAWL_OK
               : pawl__fail_errno(reterr, errno, "remove '%s'", path);
}

/* Ours is what opens as a ledger, good or not. */
static bool is_ours(const char *path)
{
    AUTO(pawl__ledger_backend_close) struct ledger_backend *backend = NULL;

    return pawl__ledger_snapshot_open(path, &backend, NULL) == PAWL_OK;
}

struct pruning {
    const char *directory;
    uint32_t keep;
    struct ledger_backend *ledger; /* whose they are: comparing the end is enough; NULL: verify */
};

/* A bad snapshot is kept but not counted. It is logged now, before a restore needs it. */
static pawl_status count_good(const struct pruning *pruning,
                              const char *path,
                              uint64_t offset,
                              uint32_t *good,
                              pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pruning->ledger == NULL
                             ? pawl__ledger_snapshot_check(path, offset, NULL, &error)
                             : check_end(path, offset, pruning->ledger, &error);

    if (status == PAWL_CANCELLED) {
        return pawl__fail_with(reterr, status, &error);
    }
    if (status != PAWL_OK) {
        LOG_WARNING("a snapshot is not good and does not count as one",
                    LOG_TEXT("snapshot", path),
                    LOG_TEXT("why", error.message));
    }
    *good += status == PAWL_OK;
    return PAWL_OK;
}

static pawl_status prune(const struct pruning *pruning, uint32_t *ret_removed, pawl_error *reterr)
{
    AUTO(pawl__ledger_snapshot_offsets_free) uint64_t *offsets = NULL;
    size_t count = 0;
    uint32_t good = 0;

    *ret_removed = 0;
    TRY(pawl__ledger_snapshot_offsets(pruning->directory, &offsets, &count, reterr));
    if (count <= pruning->keep) {
        return PAWL_OK; /* none can go: read none */
    }
    for (size_t i = 0; i < count; i++) {
        AUTO(pawl__text_free)
        char *path = pawl__ledger_snapshot_path(pruning->directory, offsets[i]);
        TRY(pawl__fs_check_path(path, reterr));
        if (good < pruning->keep) {
            TRY(count_good(pruning, path, offsets[i], &good, reterr));
        } else if (is_ours(path)) {
            TRY(remove_snapshot(path, reterr));
            ++*ret_removed;
        }
    }
    return *ret_removed > 0 ? pawl__fs_sync_dir(pruning->directory, reterr) : PAWL_OK;
}

pawl_status pawl_snapshot_prune(const char *directory,
                                uint32_t keep,
                                uint32_t *ret_removed,
                                pawl_error *reterr)
{
    AUTO(pawl__store_lock_release_p) struct pawl__store_lock *lock = NULL;
    uint32_t removed = 0;

    NEED_TEXT(directory, reterr);
    if (keep == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "keep: is 0, the least is 1");
    }
    struct pruning pruning = { .directory = directory, .keep = keep };
    pawl_status status = pawl__ledger_snapshot_lock(directory, &lock, reterr);
    if (status == PAWL_OK) {
        status = prune(&pruning, &removed, reterr);
    }
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "prune '%s'", directory);
    }
    if (ret_removed != NULL) {
        *ret_removed = removed;
    }
    return PAWL_OK;
}

/* --- the schedule --- */

/* The newest one that is of this ledger and ends as it should; 0 without one. One at `head` makes
 * another needless, so all of it is verified; head 0: none is. */
static pawl_status newest_of(struct ledger_backend *ledger,
                             const char *directory,
                             uint64_t head,
                             struct ledger_stage *stage,
                             uint64_t *ret_offset,
                             pawl_error *reterr)
{
    AUTO(pawl__ledger_snapshot_offsets_free) uint64_t *offsets = NULL;
    size_t count = 0;
    uint64_t newest = 0;

    TRY(pawl__ledger_snapshot_offsets(directory, &offsets, &count, reterr));
    for (size_t i = 0; i < count && newest == 0; i++) {
        AUTO(pawl__text_free) char *path = pawl__ledger_snapshot_path(directory, offsets[i]);
        TRY(pawl__fs_check_path(path, reterr));
        if (check_end(path, offsets[i], ledger, NULL) == PAWL_OK
            && (offsets[i] != head
                || pawl__ledger_snapshot_check(path, offsets[i], stage, NULL) == PAWL_OK)) {
            newest = offsets[i];
        }
    }
    *ret_offset = newest;
    return PAWL_OK;
}

static pawl_status count_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    (void)event;
    (void)reterr;
    ++*(uint32_t *)context;
    return PAWL_OK;
}

static pawl_status is_due(struct ledger_backend *ledger,
                          uint64_t since,
                          uint32_t every_turns,
                          bool *ret_due,
                          pawl_error *reterr)
{
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    struct ledger_query query = {
        .from = since,
        .up_to = UINT64_MAX,
        .limit = every_turns,
        .filter = &filter,
    };
    pawl_ledger_head head;
    uint32_t turns = 0;

    filter.kind = pawl_view_of(PAWL__KIND_TURN_COMMIT);
    TRY(ledger->ops->head(ledger, &head, reterr));
    if (every_turns > 0) {
        TRY(ledger->ops->read(ledger, &query, count_event, &turns, reterr));
    }
    *ret_due = turns >= every_turns && head.offset > since;
    return PAWL_OK;
}

static pawl_status snapshot_into(struct ledger_backend *ledger,
                                 const char *directory,
                                 struct ledger_stage *stage,
                                 pawl_error *reterr)
{
    AUTO(pawl__ledger_scratch_done) struct ledger_scratch scratch = { NULL };
    AUTO(pawl__text_free) char *stem = pawl__fs_join(directory, SCRATCH_STEM);
    pawl_ledger_head head;

    TRY(pawl__fs_check_path(stem, reterr));
    /* Writers continue: the name is known only when the copy is made. */
    TRY(pawl__ledger_scratch_make(stem, &scratch, reterr));
    TRY(pawl__ledger_snapshot_make(ledger, &scratch, stage, &head, reterr));
    AUTO(pawl__text_free) char *path = pawl__ledger_snapshot_path(directory, head.offset);
    TRY(pawl__fs_check_path(path, reterr));
    return pawl__ledger_snapshot_publish(&scratch, path, head.offset, reterr);
}

static pawl_status schedule(pawl_ledger *handle,
                            const struct pruning *pruning,
                            uint32_t every_turns,
                            bool *ret_taken,
                            pawl_error *reterr)
{
    AUTO(pawl__store_lock_release_p) struct pawl__store_lock *lock = NULL;
    struct ledger_stage stage = { .interrupted = &handle->engine.interrupted };
    struct ledger_backend *ledger = handle->backend;
    pawl_ledger_head head = { 0 };
    uint64_t newest = 0;
    uint32_t removed;
    bool due = false;

    TRY(pawl__ledger_snapshot_lock(pruning->directory, &lock, reterr));
    if (every_turns == 0) {
        TRY(ledger->ops->head(ledger, &head, reterr));
    }
    TRY(newest_of(ledger, pruning->directory, head.offset, &stage, &newest, reterr));
    TRY(is_due(ledger, newest, every_turns, &due, reterr));
    if (due) {
        TRY(snapshot_into(ledger, pruning->directory, &stage, reterr));
    }
    *ret_taken = due;
    return prune(pruning, &removed, reterr);
}

pawl_status pawl_ledger_snapshot_schedule(pawl_ledger *ledger,
                                          const char *directory,
                                          uint32_t every_turns,
                                          uint32_t keep,
                                          bool *ret_taken,
                                          pawl_error *reterr)
{
    bool taken = false;

    NEED(ledger, reterr);
    NEED_TEXT(directory, reterr);
    if (keep == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "keep: is 0, the least is 1");
    }
    struct pruning pruning = { directory, keep, ledger->backend };
    pawl_status status = pawl__fs_make_dir(directory, reterr);
    if (status == PAWL_OK) {
        status = schedule(ledger, &pruning, every_turns, &taken, reterr);
    }
    if (status != PAWL_OK) {
        pawl__fail_context(reterr, status, "snapshots in '%s'", directory);
        return pawl__ledger_snapshot_advise(reterr, status);
    }
    if (ret_taken != NULL) {
        *ret_taken = taken;
    }
    return PAWL_OK;
}
