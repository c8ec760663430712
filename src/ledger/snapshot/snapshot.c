#include "ledger/snapshot/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "base/thread/inside.h"
#include "ledger/core/backend.h"
#include "ledger/core/internal.h"
#include "ledger/verify/verify.h"

const char *const pawl__ledger_side_suffixes[LEDGER_SIDE_FILES] = { "-wal", "-shm", ".anchor" };

void pawl__ledger_backend_close(struct ledger_backend **backend)
{
    if (*backend != NULL) {
        (*backend)->ops->close(*backend);
        *backend = NULL;
    }
}

/* --- files that are being made --- */

pawl_status pawl__ledger_scratch_make(const char *path,
                                      struct ledger_scratch *ret_scratch,
                                      pawl_error *reterr)
{
    AUTO(pawl__fs_close) int fd = -1;

    return pawl__fs_create_beside(path, ".tmp-", &ret_scratch->path, &fd, reterr);
}

void pawl__ledger_scratch_done(struct ledger_scratch *scratch)
{
    if (scratch->path == NULL) {
        return;
    }
    unlink(scratch->path);
    for (size_t i = 0; i < LEDGER_SIDE_FILES; i++) {
        AUTO(pawl__text_free)
        char *side = pawl__fs_with_suffix(scratch->path, pawl__ledger_side_suffixes[i]);
        if (side != NULL) {
            unlink(side);
        }
    }
    free(scratch->path);
    scratch->path = NULL;
}

pawl_status pawl__ledger_scratch_publish(struct ledger_scratch *scratch,
                                         const char *path,
                                         pawl_error *reterr)
{
    TRY(pawl__ledger_snapshot_check_free(path, reterr));
    return pawl__fs_publish(scratch->path, path, reterr);
}

static pawl_status check_absent(const char *path, pawl_error *reterr)
{
    struct stat info;

    if (lstat(path, &info) == 0) {
        return pawl__fail_detail(
            reterr, PAWL_CONFLICT, PAWL_DETAIL_FILE_EXISTS, "'%s' exists", path);
    }
    return errno == ENOENT ? PAWL_OK : pawl__fail_errno(reterr, errno, "look at '%s'", path);
}

pawl_status pawl__ledger_snapshot_check_free(const char *path, pawl_error *reterr)
{
    TRY(check_absent(path, reterr));
    for (size_t i = 0; i < LEDGER_SIDE_FILES; i++) {
        AUTO(pawl__text_free)
        char *side = pawl__fs_with_suffix(path, pawl__ledger_side_suffixes[i]);
        TRY(pawl__fs_check_path(side, reterr));
        TRY(check_absent(side, reterr));
    }
    return PAWL_OK;
}

/* --- reading one --- */

/* A snapshot that was opened as a ledger and not closed has a log beside it, which belongs to it:
 * then it is read as any ledger is. */
static bool has_log(const char *path)
{
    AUTO(pawl__text_free) char *log = pawl__fs_with_suffix(path, "-wal");
    struct stat info;

    return log != NULL && stat(log, &info) == 0 && info.st_size > 0;
}

pawl_status pawl__ledger_snapshot_open(const char *path,
                                       struct ledger_backend **ret_backend,
                                       pawl_error *reterr)
{
    AUTO(pawl__text_free) char *copy = strdup(path);
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    struct pawl__location location = {
        .scheme = PAWL__AT_SQLITE,
        .path = copy,
        .at_rest = !has_log(path),
    };

    TRY(pawl__fs_check_path(copy, reterr));
    options.read_only = true;
    return pawl__ledger_sqlite_open(&location, &options, ret_backend, reterr);
}

pawl_status pawl__ledger_snapshot_verify(const char *path,
                                         struct ledger_stage *stage,
                                         pawl_ledger_head *ret_head,
                                         pawl_error *reterr)
{
    AUTO(pawl__ledger_backend_close) struct ledger_backend *backend = NULL;
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    pawl_verify_report report = { .size = sizeof(pawl_verify_report) };

    const pawl_watch watch = pawl__ledger_stage_watch(stage);
    options.watch = &watch;
    TRY(pawl__ledger_snapshot_open(path, &backend, reterr));
    TRY(pawl__ledger_verify_chain(backend, &options, &report, reterr));
    *ret_head = report.verified;
    return PAWL_OK;
}

/* --- taking one --- */

bool pawl__ledger_stage_tell(void *context, uint64_t done, uint64_t total)
{
    struct ledger_stage *stage = context;

    if (stage == NULL) {
        return true;
    }
    if (stage->interrupted != NULL && atomic_load(stage->interrupted)) {
        return false;
    }
    if (stage->watch.progress == NULL) {
        return true;
    }
    double part = total == 0 ? 1 : (double)done / (double)total;
    stage->told = MAX(stage->told, stage->before + (uint64_t)(part * (double)stage->share));
    return stage->watch.progress(stage->watch.context, stage->told, STAGE_WHOLE);
}

pawl_watch pawl__ledger_stage_watch(struct ledger_stage *stage)
{
    return (pawl_watch){ .size = sizeof(pawl_watch),
                         .progress = pawl__ledger_stage_tell,
                         .context = stage };
}

void pawl__ledger_stage_next(struct ledger_stage *stage, uint64_t share)
{
    if (stage != NULL) {
        stage->before += stage->share;
        stage->share = share;
    }
}

/* From any backend into a new file, through the same statements that write a ledger. */
static pawl_status fill(struct ledger_backend *source,
                        const char *path,
                        struct ledger_stage *stage,
                        pawl_error *reterr)
{
    pawl_ledger_head head;

    TRY(source->ops->head(source, &head, reterr));
    const struct ledger_copy copy = { .source = source, .up_to = head.offset, .stage = stage };
    return pawl__ledger_copy_into(path, &copy, reterr);
}

pawl_status pawl__ledger_snapshot_make(struct ledger_backend *source,
                                       const struct ledger_scratch *scratch,
                                       struct ledger_stage *stage,
                                       pawl_ledger_head *ret_head,
                                       pawl_error *reterr)
{
    pawl_ledger_head head;

    stage->share = STAGE_WHOLE / 2;
    /* A copy of a log that was cut off would verify: what is missing is known only here. */
    TRY(pawl__ledger_verify_ends(source, reterr));
    TRY(source->ops->copy_to != NULL
            ? source->ops->copy_to(source, scratch->path, pawl__ledger_stage_tell, stage, reterr)
            : fill(source, scratch->path, stage, reterr));
    FAILPOINT("ledger.snapshot.verify.before", reterr);
    pawl__ledger_stage_next(stage, STAGE_WHOLE / 2);
    TRY(pawl__ledger_snapshot_verify(scratch->path, stage, &head, reterr));
    TRY(pawl__ledger_verify_contains(source, &head, "the snapshot", NULL, reterr));
    *ret_head = head;
    return PAWL_OK;
}

pawl_status pawl__ledger_snapshot_advise(pawl_error *reterr, pawl_status status)
{
    return status == PAWL_CORRUPT ? pawl__fail_advise_default(
               reterr,
               status,
               "the ledger itself is damaged: run `pawl ledger verify`, then "
               "`pawl ledger restore` the newest good snapshot")
                                  : status;
}

static pawl_status snapshot_to(struct ledger_backend *source,
                               const char *path,
                               struct ledger_stage *stage,
                               pawl_ledger_head *ret_head,
                               pawl_error *reterr)
{
    AUTO(pawl__ledger_scratch_done) struct ledger_scratch scratch = { NULL };

    TRY(pawl__ledger_snapshot_check_free(path, reterr));
    TRY(pawl__ledger_scratch_make(path, &scratch, reterr));
    TRY(pawl__ledger_snapshot_make(source, &scratch, stage, ret_head, reterr));
    return pawl__ledger_scratch_publish(&scratch, path, reterr);
}

pawl_status pawl_ledger_snapshot_to(pawl_ledger *ledger,
                                    const char *path,
                                    const pawl_watch *watch,
                                    pawl_ledger_head *ret_head,
                                    pawl_error *reterr)
{
    pawl_ledger_head head;

    NEED(ledger, reterr);
    NEED_TEXT(path, reterr);
    INSIDE(ledger);
    struct ledger_stage stage = { .watch = PAWL_WATCH_INIT,
                                  .interrupted = &ledger->engine.interrupted };
    TRY(pawl__take_sized("watch", watch, &stage.watch, sizeof(stage.watch), reterr));
    pawl_status status = snapshot_to(ledger->backend, path, &stage, &head, reterr);
    if (status != PAWL_OK) {
        pawl__fail_context(reterr, status, "snapshot to '%s'", path);
        return pawl__ledger_snapshot_advise(reterr, status);
    }
    if (ret_head != NULL) {
        *ret_head = head;
    }
    return PAWL_OK;
}
