/* Which snapshot of a directory is restored: the newest good one. When a newer one had to be passed
 * over, that is a loss that somebody has to accept. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/fs.h"
#include "ledger/snapshot/snapshot.h"

void pawl__ledger_snapshot_choice_done(struct snapshot_choice *choice)
{
    free(choice->path);
    free(choice->passed_over);
}

/* What certainly is no good snapshot, as opposed to one that this process could not look at. */
static pawl_status verdict(pawl_status status)
{
    return status == PAWL_INVALID || status == PAWL_NOT_FOUND ? PAWL_CORRUPT : status;
}

/* The walk ends: neither this snapshot nor an older one can be looked at. */
static bool is_about_us(pawl_status status)
{
    return status == PAWL_CANCELLED || status == PAWL_NOMEM;
}

/* A link that leads nowhere is still there. */
static bool is_gone(const char *path)
{
    struct stat info;

    return lstat(path, &info) != 0 && errno == ENOENT;
}

/* Looks at one. *ret_over when the search has an end: it is good, or the search itself failed. */
static pawl_status check_candidate(struct snapshot_choice *choice,
                                   char **path,
                                   uint64_t offset,
                                   struct ledger_stage *stage,
                                   bool *ret_over,
                                   pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__ledger_snapshot_check(*path, offset, stage, &error);

    *ret_over = status == PAWL_OK || is_about_us(status);
    if (status == PAWL_OK) {
        choice->path = STEAL(*path);
        choice->offset = offset;
    } else if (is_about_us(status)) {
        return pawl__fail_with(reterr, status, &error);
    } else if (choice->passed_over == NULL && !is_gone(*path)) { /* a prune may have been quicker */
        choice->passed_over = STEAL(*path);
        choice->newest = offset;
        choice->problem = error;
    }
    return PAWL_OK;
}

static pawl_status search(struct snapshot_choice *choice,
                          const char *directory,
                          struct ledger_stage *stage,
                          pawl_error *reterr)
{
    AUTO(pawl__ledger_snapshot_offsets_free) uint64_t *offsets = NULL;
    size_t count = 0;
    bool over = false;

    TRY(pawl__ledger_snapshot_offsets(directory, &offsets, &count, reterr));
    for (size_t i = 0; i < count && !over; i++) {
        AUTO(pawl__text_free) char *path = pawl__ledger_snapshot_path(directory, offsets[i]);
        TRY(pawl__fs_check_path(path, reterr));
        TRY(check_candidate(choice, &path, offsets[i], stage, &over, reterr));
    }
    return PAWL_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static pawl_status refuse(const struct snapshot_choice *choice, pawl_error *reterr)
{
    pawl_status status = verdict(choice->problem.status);
    const char *newest = base_name(choice->passed_over);

    if (choice->path == NULL) {
        pawl__fail(reterr,
                   status,
                   "no good snapshot; the newest, %s: %s",
                   newest,
                   choice->problem.message);
        return status == PAWL_CORRUPT
                   ? pawl__fail_advise(reterr, status, "restore another copy of the directory")
                   : status;
    }
    pawl__fail(reterr, status, "%s cannot be restored: %s", newest, choice->problem.message);
    return pawl__fail_advise(reterr,
                             status,
                             "the newest good one is %s: to restore that and lose what came after "
                             "it, add --accept-older",
                             base_name(choice->path));
}

static pawl_status decide(const struct snapshot_choice *choice,
                          bool accept_older,
                          pawl_error *reterr)
{
    if (choice->passed_over == NULL) {
        return choice->path != NULL ? PAWL_OK : pawl__fail(reterr, PAWL_NOT_FOUND, "no snapshot");
    }
    if (choice->path == NULL || !accept_older) {
        return refuse(choice, reterr);
    }
    LOG_WARNING("an older snapshot is restored, the newest cannot be",
                LOG_TEXT("snapshot", choice->path),
                LOG_TEXT("newest", choice->passed_over),
                LOG_TEXT("why", choice->problem.message));
    return PAWL_OK;
}

pawl_status pawl__ledger_snapshot_choose(const char *directory,
                                         bool accept_older,
                                         struct ledger_stage *stage,
                                         struct snapshot_choice *ret_choice,
                                         pawl_error *reterr)
{
    AUTO(pawl__ledger_snapshot_choice_done) struct snapshot_choice choice = { .path = NULL };

    TRY(search(&choice, directory, stage, reterr));
    TRY(decide(&choice, accept_older, reterr));
    *ret_choice = choice;
    choice = (struct snapshot_choice){ .path = NULL };
    return PAWL_OK;
}
