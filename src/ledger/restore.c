#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/fs.h"
#include "ledger/backend_sqlite.h"
#include "ledger/chain.h"
#include "ledger/ledger_internal.h"
#include "ledger/snapshot.h"
#include "ledger/verify.h"

enum { RESTORED_MAX = 10000 };

static void free_text(char **text)
{
    free(*text);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory to restore");
}

/* --- snapshot and tail --- */

/* The shorter one's head must be in the longer one. */
static pawl_status check_kinship(struct ledger_backend *snapshot,
                                 struct ledger_backend *tail,
                                 const pawl_ledger_head *snapshot_head,
                                 const pawl_ledger_head *tail_head,
                                 pawl_error *reterr)
{
    bool longer = tail_head->offset >= snapshot_head->offset;
    pawl_status status =
        longer ? pawl__verify_contains(tail, snapshot_head, "the snapshot", NULL, reterr)
               : pawl__verify_contains(snapshot, tail_head, "the tail", NULL, reterr);

    if (status == PAWL_CORRUPT) {
        return pawl__fail(reterr,
                          PAWL_CONFLICT,
                          "the tail is not of the snapshot's ledger: they differ at offset %llu",
                          (unsigned long long)MIN(snapshot_head->offset, tail_head->offset));
    }
    return status;
}

static pawl_status append_tail(struct ledger_backend *tail,
                               uint64_t from,
                               uint64_t up_to,
                               const char *path,
                               pawl_error *reterr)
{
    AUTO(pawl__backend_close) struct ledger_backend *target = NULL;
    AUTO(free_text) char *name = strdup(path);
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    struct pawl__location location = {
        .scheme = PAWL__AT_SQLITE,
        .path = name,
        .durability_normal = true, /* synced when it is published */
    };

    if (name == NULL) {
        return no_memory(reterr);
    }
    options.must_exist = true;
    pawl_status status = pawl__ledger_sqlite_open(&location, &options, &target, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    struct ledger_copy copy = { .source = tail, .target = target, .from = from, .up_to = up_to };
    status = pawl__copy(&copy, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "the tail");
    }
    return pawl__ledger_sqlite_flush(target, reterr);
}

/* What is wrong behind the snapshot came with the tail. */
static pawl_status verify_restored(const char *path,
                                   struct ledger_restored *restored,
                                   pawl_error *reterr)
{
    AUTO(pawl__backend_close) struct ledger_backend *backend = NULL;
    pawl_verify_report report = { .first_bad_offset = 0 };
    pawl_status status = pawl__snapshot_open(path, &backend, reterr);

    if (status == PAWL_OK) {
        status = pawl__verify(backend, NULL, &report, reterr);
    }
    restored->head = report.verified;
    return status == PAWL_CORRUPT && report.first_bad_offset > restored->snapshot.offset
               ? pawl__fail_context(reterr, status, "the tail")
               : status;
}

pawl_status pawl__restore_into(const char *snapshot,
                               struct ledger_backend *tail,
                               uint64_t up_to,
                               const struct ledger_scratch *scratch,
                               struct ledger_restored *ret_restored,
                               pawl_error *reterr)
{
    AUTO(pawl__backend_close) struct ledger_backend *source = NULL;
    struct ledger_restored restored;
    pawl_ledger_head tail_head = { 0 };

    pawl_status status = pawl__snapshot_open(snapshot, &source, reterr);
    if (status == PAWL_OK) {
        status = source->ops->head(source, &restored.snapshot, reterr);
    }
    if (status == PAWL_OK && tail != NULL) {
        status = tail->ops->head(tail, &tail_head, reterr);
    }
    if (status == PAWL_OK && tail != NULL) {
        status = check_kinship(source, tail, &restored.snapshot, &tail_head, reterr);
    }
    if (status == PAWL_OK) {
        status = source->ops->copy_to(source, scratch->path, NULL, NULL, reterr);
    }
    uint64_t end = up_to == 0 ? tail_head.offset : MIN(up_to, tail_head.offset);
    if (status == PAWL_OK && end > restored.snapshot.offset) {
        status = append_tail(tail, restored.snapshot.offset, end, scratch->path, reterr);
    }
    if (status == PAWL_OK) {
        status = verify_restored(scratch->path, &restored, reterr);
    }
    if (status == PAWL_OK) {
        *ret_restored = restored;
    }
    return status;
}

/* --- names --- */

struct newest {
    char *path;
    char problem[160]; /* of the newest damaged one */
    bool no_memory;
};

static bool take_newest(void *context, const pawl_snapshot_info *info)
{
    struct newest *newest = context;

    if (info->status != PAWL_OK) {
        if (newest->problem[0] == '\0') {
            snprintf(newest->problem, sizeof(newest->problem), "%s", info->problem);
        }
        return true;
    }
    newest->path = strdup(info->path);
    newest->no_memory = newest->path == NULL;
    return false;
}

/* The file itself, or the newest good one in a directory; malloc'ed. */
static pawl_status find_snapshot(const char *name, char **ret_path, pawl_error *reterr)
{
    struct newest newest = { 0 };
    struct stat info;

    if (stat(name, &info) != 0 || !S_ISDIR(info.st_mode)) {
        *ret_path = strdup(name);
        return *ret_path == NULL ? no_memory(reterr) : PAWL_OK;
    }
    pawl_status status = pawl_snapshot_list(name, take_newest, &newest, reterr);
    if (status != PAWL_OK) {
        free(newest.path);
        return status;
    }
    if (newest.no_memory) {
        return no_memory(reterr);
    }
    if (newest.path == NULL) {
        return newest.problem[0] == '\0'
                   ? pawl__fail(reterr, PAWL_NOT_FOUND, "no snapshot in '%s'", name)
                   : pawl__fail(reterr,
                                PAWL_CORRUPT,
                                "no good snapshot in '%s'; the newest: %s",
                                name,
                                newest.problem);
    }
    *ret_path = newest.path;
    return PAWL_OK;
}

/* "<name>.restored-N.db" beside the snapshot. */
static char *restored_name(const char *snapshot, int number)
{
    char suffix[32];
    size_t len = strlen(snapshot);
    size_t stem = len > 3 && strcmp(snapshot + len - 3, ".db") == 0 ? len - 3 : len;
    AUTO(free_text) char *name = strndup(snapshot, stem);

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
        AUTO(free_text) char *path = restored_name(snapshot, number);
        if (path == NULL) {
            return no_memory(reterr);
        }
        pawl_status status = pawl__scratch_publish(scratch, path, reterr);
        if (status == PAWL_OK) {
            *ret_path = STEAL(path);
        }
        if (status != PAWL_CONFLICT) {
            return status;
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
    AUTO(free_text) char *path = strdup(target);
    if (path == NULL) {
        return no_memory(reterr);
    }
    pawl_status status = pawl__scratch_publish(scratch, target, reterr);
    if (status == PAWL_OK) {
        *ret_path = STEAL(path);
    }
    return status;
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
    pawl_status status = pawl__ledger_backend_open(location, NULL, &options, ret_backend, reterr);
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "the tail");
}

static pawl_status restore(const char *snapshot,
                           const char *target,
                           const char *tail_location,
                           char **ret_path,
                           pawl_error *reterr)
{
    AUTO(pawl__backend_close) struct ledger_backend *tail = NULL;
    AUTO(pawl__scratch_done) struct ledger_scratch scratch = { NULL };
    AUTO(free_text) char *source = NULL;
    struct ledger_restored restored;

    pawl_status status = target == NULL ? PAWL_OK : pawl__snapshot_check_free(target, reterr);
    if (status == PAWL_OK) {
        status = find_snapshot(snapshot, &source, reterr);
    }
    if (status == PAWL_OK) {
        status = open_tail(tail_location, &tail, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__scratch_make(target == NULL ? source : target, &scratch, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__restore_into(source, tail, 0, &scratch, &restored, reterr);
    }
    return status == PAWL_OK ? publish(&scratch, source, target, ret_path, reterr) : status;
}

pawl_status pawl_snapshot_restore(const char *snapshot,
                                  const char *target,
                                  const char *tail_location,
                                  char *ret_path,
                                  pawl_error *reterr)
{
    AUTO(free_text) char *path = NULL;

    if (snapshot == NULL || snapshot[0] == '\0') {
        return pawl__fail(reterr, PAWL_INVALID, "snapshot: is NULL or empty");
    }
    pawl_status status = restore(snapshot, target, tail_location, &path, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "restore '%s'", snapshot);
    }
    if (ret_path != NULL) {
        snprintf(ret_path, PATH_MAX, "%s", path);
    }
    return PAWL_OK;
}
