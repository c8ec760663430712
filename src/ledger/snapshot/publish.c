/* A damaged snapshot must not stand in the way of a good one: it gets another name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/fs.h"
#include "ledger/snapshot/snapshot.h"

enum { ASIDE_MAX = 1000 };

static pawl_status move(const char *from, const char *to, pawl_error *reterr)
{
    return rename(from, to) == 0 || errno == ENOENT
               ? PAWL_OK
               : pawl__fail_errno(reterr, errno, "rename '%s' to '%s'", from, to);
}

static pawl_status move_with_sides(const char *path, const char *aside, pawl_error *reterr)
{
    TRY(move(path, aside, reterr));
    for (size_t i = 0; i < LEDGER_SIDE_FILES; i++) {
        AUTO(pawl__text_free)
        char *from = pawl__fs_with_suffix(path, pawl__ledger_side_suffixes[i]);
        AUTO(pawl__text_free) char *to = pawl__fs_with_suffix(aside, pawl__ledger_side_suffixes[i]);
        TRY(pawl__fs_check_path(from, reterr));
        TRY(pawl__fs_check_path(to, reterr));
        TRY(move(from, to, reterr));
    }
    return pawl__fs_sync_parent(path, reterr);
}

static pawl_status set_aside(const char *path, const char *why, pawl_error *reterr)
{
    for (int number = 1; number <= ASIDE_MAX; number++) {
        char suffix[32];
        snprintf(suffix, sizeof(suffix), ".damaged-%d", number);
        AUTO(pawl__text_free) char *aside = pawl__fs_with_suffix(path, suffix);
        TRY(pawl__fs_check_path(aside, reterr));
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__ledger_snapshot_check_free(aside, &error);
        if (status == PAWL_CONFLICT) {
            continue;
        }
        status = status == PAWL_OK ? move_with_sides(path, aside, reterr)
                                   : pawl__fail_with(reterr, status, &error);
        if (status == PAWL_OK) {
            LOG_WARNING("a damaged snapshot was moved aside",
                        LOG_TEXT("snapshot", path),
                        LOG_TEXT("to", aside),
                        LOG_TEXT("why", why));
        }
        return status;
    }
    return pawl__fail(reterr, PAWL_CONFLICT, "'%s' was moved aside too often", path);
}

/* Whether what has this name, or belongs to it, is certainly no snapshot that anybody could restore.
 * A check that failed for another reason, or a newer version's file, says nothing. */
static bool is_damaged(const char *path, uint64_t offset, pawl_error *ret_why)
{
    pawl_status status = pawl__ledger_snapshot_check(path, offset, NULL, ret_why);

    return status == PAWL_CORRUPT || status == PAWL_INVALID || status == PAWL_NOT_FOUND;
}

pawl_status pawl__ledger_snapshot_publish(struct ledger_scratch *scratch,
                                          const char *path,
                                          uint64_t offset,
                                          pawl_error *reterr)
{
    pawl_error why = PAWL_ERROR_INIT;
    pawl_error exists = PAWL_ERROR_INIT;
    pawl_status status = pawl__ledger_scratch_publish(scratch, path, &exists);

    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    if (status != PAWL_CONFLICT || !is_damaged(path, offset, &why)) {
        return pawl__fail_with(reterr, status, &exists);
    }
    TRY(set_aside(path, why.message, reterr));
    return pawl__ledger_scratch_publish(scratch, path, reterr);
}
