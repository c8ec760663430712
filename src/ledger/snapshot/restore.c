#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/log/log.h"
#include "base/os/fs.h"
#include "ledger/core/backend.h"
#include "ledger/core/chain.h"
#include "ledger/core/internal.h"
#include "ledger/snapshot/snapshot.h"
#include "ledger/verify/verify.h"

enum {
    RESTORED_MAX = 10000,
    RESTORE_PART = STAGE_WHOLE / 4, /* choosing, copying, the tail and verifying are equal parts */
};

/* --- snapshot and tail --- */

/* The shorter one's head must be in the longer one. */
static pawl_status check_same_ledger(struct ledger_backend *snapshot,
                                     struct ledger_backend *tail,
                                     const pawl_ledger_head *snapshot_head,
                                     const pawl_ledger_head *tail_head,
                                     pawl_error *reterr)
{
    bool longer = tail_head->offset >= snapshot_head->offset;
    pawl_status status =
        longer ? pawl__ledger_verify_contains(tail, snapshot_head, "the snapshot", NULL, reterr)
               : pawl__ledger_verify_contains(snapshot, tail_head, "the tail", NULL, reterr);

    if (status == PAWL_CORRUPT) {
        return pawl__fail(reterr,
                          PAWL_CONFLICT,
                          "the tail is not of the snapshot's ledger: they differ at offset %llu",
                          (unsigned long long)MIN(snapshot_head->offset, tail_head->offset));
    }
    return status;
}

static const char another_tail[] = "restore without it, or with a copy of it that is whole";
static const char another_snapshot[] =
    "restore another snapshot; given their directory, the newest good one is taken";
static const char accept_cut[] =
    "to restore as far as it goes and lose what came after, add --accept-older";

static pawl_status fail_for_tail(struct ledger_restored *restored,
                                 pawl_status status,
                                 pawl_error *reterr)
{
    restored->advice = another_tail;
    return pawl__fail_context(reterr, status, "the tail");
}

/* What is wrong after the snapshot came with the tail. */
static pawl_status verify_restored(const struct ledger_restore *restore,
                                   struct ledger_restored *restored,
                                   pawl_error *reterr)
{
    AUTO(pawl__ledger_backend_close) struct ledger_backend *backend = NULL;
    pawl_verify_report report = { .size = sizeof(pawl_verify_report), .first_bad_offset = 0 };
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    pawl_status status = pawl__ledger_snapshot_open(restore->scratch->path, &backend, reterr);

    const pawl_watch watch = pawl__ledger_stage_watch(restore->stage);
    options.watch = &watch;
    if (status == PAWL_OK) {
        status = pawl__ledger_verify_chain(backend, &options, &report, reterr);
    }
    restored->head = report.verified;
    return status == PAWL_CORRUPT && report.first_bad_offset > restored->snapshot.offset
               ? fail_for_tail(restored, status, reterr)
               : status;
}

/* Its anchor, or SQLite itself, knows of events that neither the tail nor the snapshot has. */
static pawl_status find_cut(struct ledger_backend *tail,
                            uint64_t tail_end,
                            struct ledger_restored *restored,
                            pawl_error *reterr)
{
    uint64_t end = MAX(tail_end, restored->snapshot.offset);
    pawl_ledger_head anchor = { 0 };
    pawl_status status =
        tail->ops->anchor == NULL ? PAWL_NOT_FOUND : tail->ops->anchor(tail, &anchor, reterr);

    if (status != PAWL_OK && status != PAWL_NOT_FOUND) {
        return status;
    }
    restored->known_end = MAX(restored->known_end, anchor.offset);
    if (restored->known_end <= end) {
        return PAWL_OK;
    }
    bool anchored = anchor.offset > end;
    return pawl__fail(reterr,
                      PAWL_CORRUPT,
                      "cut off: it ends at offset %llu, %s %llu",
                      (unsigned long long)tail_end,
                      anchored ? "its anchor is at" : "but had events up to",
                      (unsigned long long)(anchored ? anchor.offset : restored->known_end));
}

static pawl_status check_tail_end(const struct ledger_restore *restore,
                                  uint64_t tail_end,
                                  struct ledger_restored *restored,
                                  pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = find_cut(restore->tail, tail_end, restored, &error);

    if (status == PAWL_OK || restore->accept_cut_tail) {
        return PAWL_OK;
    }
    restored->advice = accept_cut;
    (void)pawl__fail_with(reterr, status, &error);
    return pawl__fail_context(reterr, status, "the tail");
}

static pawl_status check_sources(const struct ledger_restore *restore,
                                 struct ledger_backend *source,
                                 struct ledger_restored *restored,
                                 pawl_ledger_head *ret_tail,
                                 pawl_error *reterr)
{
    struct ledger_backend *tail = restore->tail;

    TRY(source->ops->head(source, &restored->snapshot, reterr));
    TRY(pawl__ledger_snapshot_check_name(restore->snapshot, restored->snapshot.offset, reterr));
    if (tail == NULL) {
        return PAWL_OK;
    }
    if (tail->ops->highest != NULL) { /* before its head: it may be growing */
        TRY(tail->ops->highest(tail, &restored->known_end, reterr));
    }
    TRY(tail->ops->head(tail, ret_tail, reterr));
    TRY(check_same_ledger(source, tail, &restored->snapshot, ret_tail, reterr));
    return check_tail_end(restore, ret_tail->offset, restored, reterr);
}

pawl_status pawl__ledger_restore_into(const struct ledger_restore *restore,
                                      struct ledger_restored *ret_restored,
                                      pawl_error *reterr)
{
    AUTO(pawl__ledger_backend_close) struct ledger_backend *source = NULL;
    const char *path = restore->scratch->path;
    pawl_ledger_head tail_head = { 0 };

    *ret_restored = (struct ledger_restored){ .advice = another_snapshot };
    TRY(pawl__ledger_snapshot_open(restore->snapshot, &source, reterr));
    TRY(check_sources(restore, source, ret_restored, &tail_head, reterr));
    pawl__ledger_stage_next(restore->stage, RESTORE_PART);
    TRY(source->ops->copy_to(source, path, pawl__ledger_stage_tell, restore->stage, reterr));
    pawl__ledger_stage_next(restore->stage, RESTORE_PART);
    const struct ledger_copy copy = {
        .source = restore->tail,
        .from = ret_restored->snapshot.offset,
        .up_to = restore->up_to == 0 ? tail_head.offset : MIN(restore->up_to, tail_head.offset),
        .stage = restore->stage,
    };
    if (copy.up_to > copy.from) {
        pawl_status status = pawl__ledger_copy_into(path, &copy, reterr);
        if (status != PAWL_OK) {
            return fail_for_tail(ret_restored, status, reterr);
        }
    }
    pawl__ledger_stage_next(restore->stage, RESTORE_PART);
    return verify_restored(restore, ret_restored, reterr);
}

/* --- names --- */

/* The file itself, or the newest good one in a directory. */
static pawl_status find_snapshot(const char *name,
                                 bool accept_older,
                                 struct ledger_stage *stage,
                                 struct snapshot_choice *ret_choice,
                                 pawl_error *reterr)
{
    struct stat info;

    if (stat(name, &info) == 0 && S_ISDIR(info.st_mode)) {
        return pawl__ledger_snapshot_choose(name, accept_older, stage, ret_choice, reterr);
    }
    ret_choice->path = strdup(name);
    return pawl__fs_check_path(ret_choice->path, reterr);
}

/* "<name>.restored-N.db" beside the snapshot. */
static char *restored_name(const char *snapshot, int number)
{
    char suffix[32];
    size_t len = strlen(snapshot);
    size_t stem = len > 3 && strcmp(snapshot + len - 3, ".db") == 0 ? len - 3 : len;
    AUTO(pawl__text_free) char *name = strndup(snapshot, stem);

    snprintf(suffix, sizeof(suffix), ".restored-%d.db", number);
    return name == NULL ? NULL : pawl__fs_with_suffix(name, suffix);
}

/* Takes the first name that is free; two that restore at once get two. */
static pawl_status publish_numbered(struct ledger_scratch *scratch,
                                    const char *snapshot,
                                    char **ret_path,
                                    pawl_error *reterr)
{
    for (int number = 1; number <= RESTORED_MAX; number++) {
        AUTO(pawl__text_free) char *path = restored_name(snapshot, number);
        TRY(pawl__fs_check_path(path, reterr));
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__ledger_scratch_publish(scratch, path, &error);
        if (status == PAWL_OK) {
            *ret_path = STEAL(path);
            return PAWL_OK;
        }
        if (status != PAWL_CONFLICT) {
            return pawl__fail_with(reterr, status, &error);
        }
    }
    return pawl__fail(reterr, PAWL_CONFLICT, "'%s' was restored too often", snapshot);
}

static pawl_status publish(struct ledger_scratch *scratch,
                           const char *snapshot,
                           const char *target,
                           char **ret_path,
                           pawl_error *reterr)
{
    if (target == NULL) {
        return publish_numbered(scratch, snapshot, ret_path, reterr);
    }
    AUTO(pawl__text_free) char *path = strdup(target);
    TRY(pawl__fs_check_path(path, reterr));
    TRY(pawl__ledger_scratch_publish(scratch, target, reterr));
    *ret_path = STEAL(path);
    return PAWL_OK;
}

static pawl_status open_tail(const char *location,
                             struct ledger_backend **ret_backend,
                             pawl_error *reterr)
{
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;

    if (location == NULL) {
        return PAWL_OK;
    }
    options.read_only = true;
    pawl_status status =
        pawl__open_backend(&pawl__ledger_backends, location, NULL, &options, ret_backend, reterr);
    if (status == PAWL_CORRUPT) {
        (void)pawl__fail_advise_default(reterr, status, another_tail);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "the tail");
}

static void fill_restored(const struct snapshot_choice *choice,
                          const char *path,
                          const struct ledger_restored *restored,
                          pawl_restored *ret_restored)
{
    uint64_t known_end = MAX(restored->known_end, choice->newest);

    *ret_restored = (pawl_restored){ .size = sizeof(pawl_restored), .head = restored->head };
    if (known_end > restored->head.offset) {
        ret_restored->lost = known_end - restored->head.offset;
        LOG_WARNING(
            "events are lost: they were there, and neither the snapshot nor the tail has them",
            LOG_TEXT("restored", path),
            LOG_NATURAL("lost", ret_restored->lost),
            LOG_NATURAL("first_lost_offset", restored->head.offset + 1),
            LOG_NATURAL("last_known_offset", known_end));
    }
    snprintf(ret_restored->path, sizeof(ret_restored->path), "%s", path);
    snprintf(ret_restored->snapshot, sizeof(ret_restored->snapshot), "%s", choice->path);
    snprintf(ret_restored->passed_over,
             sizeof(ret_restored->passed_over),
             "%s",
             choice->passed_over == NULL ? "" : choice->passed_over);
}

static pawl_status restore(const char *snapshot,
                           const pawl_restore_options *options,
                           pawl_restored *ret_restored,
                           pawl_error *reterr)
{
    AUTO(pawl__ledger_backend_close) struct ledger_backend *tail = NULL;
    AUTO(pawl__ledger_scratch_done) struct ledger_scratch scratch = { NULL };
    AUTO(pawl__ledger_snapshot_choice_done) struct snapshot_choice choice = { .path = NULL };
    AUTO(pawl__text_free) char *path = NULL;
    const char *target = options->target;
    struct ledger_stage stage = { .watch = PAWL_WATCH_INIT, .share = RESTORE_PART };
    struct ledger_restored restored = { 0 };

    TRY(pawl__take_sized("watch", options->watch, &stage.watch, sizeof(stage.watch), reterr));
    if (target != NULL) {
        TRY(pawl__ledger_snapshot_check_free(target, reterr));
    }
    TRY(find_snapshot(snapshot, options->accept_older, &stage, &choice, reterr));
    TRY(open_tail(options->tail_location, &tail, reterr));
    TRY(pawl__ledger_scratch_make(target == NULL ? choice.path : target, &scratch, reterr));
    struct ledger_restore work = {
        .snapshot = choice.path,
        .tail = tail,
        .accept_cut_tail = options->accept_older,
        .scratch = &scratch,
        .stage = &stage,
    };
    pawl_status status = pawl__ledger_restore_into(&work, &restored, reterr);
    if (status == PAWL_CORRUPT) {
        return pawl__fail_advise(reterr, status, "%s", restored.advice);
    }
    TRY(status);
    TRY(publish(&scratch, choice.path, target, &path, reterr));
    fill_restored(&choice, path, &restored, ret_restored);
    return PAWL_OK;
}

static pawl_status check_texts(const pawl_restore_options *options, pawl_error *reterr)
{
    const char *target = options->target;
    const char *tail_location = options->tail_location;

    if (target != NULL) {
        NEED_TEXT(target, reterr);
    }
    if (tail_location != NULL) {
        NEED_TEXT(tail_location, reterr);
    }
    return PAWL_OK;
}

pawl_status pawl_snapshot_restore(const char *snapshot,
                                  const pawl_restore_options *options,
                                  pawl_restored *ret_restored,
                                  pawl_error *reterr)
{
    pawl_restore_options read = PAWL_RESTORE_OPTIONS_INIT;
    pawl_restored made = PAWL_RESTORED_INIT;

    NEED_TEXT(snapshot, reterr);
    TRY(pawl__check_sized("ret_restored", ret_restored, reterr));
    TRY(pawl__take_sized("restore options", options, &read, sizeof(read), reterr));
    TRY(check_texts(&read, reterr));
    pawl_status status = restore(snapshot, &read, &made, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "restore '%s'", snapshot);
    }
    pawl__give_sized(&made, sizeof(made), ret_restored);
    return PAWL_OK;
}
