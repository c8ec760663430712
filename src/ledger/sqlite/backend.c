/* A ledger in one SQLite file, open in any number of processes.
 *
 * One handle writes and belongs to the committer. Readers borrow a handle of their own from a small
 * pool, so that in WAL mode nobody waits for anybody. */
#include "ledger/sqlite/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "ledger/core/anchor.h"
#include "ledger/transfer/transfer.h"
#include "store/layout.h"
#include "store/schemas.h"

/* The four indexes of a long log are written all over: what SQLite keeps by itself is too little.
 */
enum { WRITER_CACHE_KIB = 16 << 10 };

static struct sqlite_backend *of(struct ledger_backend *base)
{
    return (struct sqlite_backend *)base; /* base is its first member */
}

pawl_status pawl__ledger_sqlite_head(struct pawl__sqlite *db,
                                     pawl_ledger_head *ret_head,
                                     pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, LEDGER_SQL_HEAD);
    pawl_ledger_head head = { 0 };
    bool row;

    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    if (row) {
        pawl_view hash = pawl__sqlite_blob(&stmt, 1);
        head.offset = (uint64_t)pawl__sqlite_i64(&stmt, 0);
        if (hash.len != sizeof(head.hash)) {
            return pawl__fail(reterr, PAWL_CORRUPT, "the hash of the last event is not whole");
        }
        memcpy(head.hash, hash.data, sizeof(head.hash));
    }
    *ret_head = head;
    return PAWL_OK;
}

/* --- writing --- */

static pawl_status sqlite_begin(struct ledger_backend *base,
                                pawl_ledger_head *ret_head,
                                pawl_error *reterr)
{
    struct pawl__sqlite *db = of(base)->writer;

    /* IMMEDIATE: the write lock before the head is read, so that no two appenders see the same. */
    TRY(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, reterr));
    return pawl__ledger_sqlite_head(db, ret_head, reterr);
}

/* An INSERT that did nothing is no error to SQLite: RAISE(IGNORE), ON CONFLICT IGNORE. */
static pawl_status check_changed(struct pawl__sqlite *db, const char *table, pawl_error *reterr)
{
    int64_t changed = pawl__sqlite_changes(db);

    return changed == 1
               ? PAWL_OK
               : pawl__fail_advised(reterr,
                                    PAWL_CORRUPT,
                                    "one row was written to '%s' and %lld were stored: look for a "
                                    "trigger on it; nothing was appended",
                                    table,
                                    (long long)changed);
}

static pawl_status insert_one(struct pawl__sqlite *db, const pawl_event *event, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, LEDGER_SQL_INSERT);
    char created_at[PAWL__TIME_SIZE];

    pawl__time_store(event->created_at_us, created_at);
    pawl__sqlite_bind_i64(&stmt, 1, (int64_t)event->offset);
    pawl__sqlite_bind_text(&stmt, 2, event->id);
    pawl__sqlite_bind_text(&stmt, 3, event->run_id);
    pawl__sqlite_bind_i64(&stmt, 4, event->turn);
    pawl__sqlite_bind_text(&stmt, 5, event->kind);
    pawl__sqlite_bind_text(&stmt, 6, event->actor);
    pawl__sqlite_bind_text(&stmt, 7, event->payload);
    pawl__sqlite_bind_text(&stmt, 8, pawl_view_of(created_at));
    pawl__sqlite_bind_i64(&stmt, 9, event->schema_version);
    pawl__sqlite_bind_blob(
        &stmt, 10, (pawl_view){ (const char *)event->hash, sizeof(event->hash) });
    TRY(pawl__sqlite_run(&stmt, reterr));
    return check_changed(db, "events", reterr);
}

/* What the transaction has written so far is what it was told to write: an AFTER trigger can take a
 * row back that was counted. */
static pawl_status read_back(struct pawl__sqlite *db,
                             const pawl_event *events,
                             size_t count,
                             pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, LEDGER_SQL_READ_BACK);
    const pawl_event *last = &events[count - 1];
    bool row;

    pawl__sqlite_bind_i64(&stmt, 1, (int64_t)events[0].offset - 1);
    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    pawl_view hash = row ? pawl__sqlite_blob(&stmt, 1) : (pawl_view){ NULL, 0 };
    bool same = row && pawl__sqlite_i64(&stmt, 0) == (int64_t)last->offset
                && pawl__sqlite_i64(&stmt, 2) == (int64_t)count && hash.len == sizeof(last->hash)
                && memcmp(hash.data, last->hash, hash.len) == 0;
    return same ? PAWL_OK
                : pawl__fail_advised(
                    reterr,
                    PAWL_CORRUPT,
                    "%zu events were written, and reading them back shows others: look for "
                    "a trigger on 'events'; nothing was appended",
                    count);
}

static pawl_status sqlite_insert(struct ledger_backend *base,
                                 const pawl_event *events,
                                 size_t count,
                                 pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        TRY(insert_one(of(base)->writer, &events[i], reterr));
    }
    return read_back(of(base)->writer, events, count, reterr);
}

static pawl_status sqlite_turn_get(struct ledger_backend *base,
                                   pawl_view run_id,
                                   int64_t turn,
                                   struct ledger_turn *ret_turn,
                                   pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, LEDGER_SQL_TURN_GET);
    struct ledger_turn found = { .run_id = run_id, .turn = turn };
    bool row;

    pawl__sqlite_bind_text(&stmt, 1, run_id);
    pawl__sqlite_bind_i64(&stmt, 2, turn);
    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    if (row) {
        found.attempt = (uint32_t)pawl__sqlite_i64(&stmt, 0);
        found.state = (pawl_turn_state)pawl__sqlite_i64(&stmt, 1);
        found.begin_offset = (uint64_t)pawl__sqlite_i64(&stmt, 2);
        found.end_offset = (uint64_t)pawl__sqlite_i64(&stmt, 3);
    }
    *ret_turn = found;
    return PAWL_OK;
}

static pawl_status sqlite_turn_put(struct ledger_backend *base,
                                   const struct ledger_turn *turn,
                                   pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, LEDGER_SQL_TURN_PUT);

    pawl__sqlite_bind_text(&stmt, 1, turn->run_id);
    pawl__sqlite_bind_i64(&stmt, 2, turn->turn);
    pawl__sqlite_bind_i64(&stmt, 3, turn->attempt);
    pawl__sqlite_bind_i64(&stmt, 4, turn->state);
    pawl__sqlite_bind_i64(&stmt, 5, (int64_t)turn->begin_offset);
    pawl__sqlite_bind_i64(&stmt, 6, (int64_t)turn->end_offset);
    TRY(pawl__sqlite_run(&stmt, reterr));
    return check_changed(of(base)->writer, "turns", reterr);
}

/* Bytes of the embeddings that are there; 0: none yet. */
static pawl_status vector_bytes(struct pawl__sqlite *db, size_t *ret_bytes, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, LEDGER_SQL_EMBED_ANY);
    bool row;

    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    *ret_bytes = row ? (size_t)pawl__sqlite_i64(&stmt, 0) : 0;
    return PAWL_OK;
}

static pawl_status sqlite_embed(struct ledger_backend *base,
                                uint64_t offset,
                                pawl_view vector,
                                pawl_error *reterr)
{
    struct pawl__sqlite *db = of(base)->writer;
    size_t bytes;

    TRY(vector_bytes(db, &bytes, reterr));
    if (bytes % sizeof(float) != 0) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "an embedding of this ledger has %zu bytes, which are no vector",
                          bytes);
    }
    TRY(pawl__ledger_check_dimensions(vector.len, bytes, reterr));
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, LEDGER_SQL_EMBED);
    pawl__sqlite_bind_i64(&stmt, 1, (int64_t)offset);
    pawl__sqlite_bind_blob(&stmt, 2, vector);
    pawl_status status = pawl__sqlite_run(&stmt, reterr);
    if (status == PAWL_CONFLICT) { /* the foreign key */
        return pawl__ledger_fail_no_offset(offset, reterr);
    }
    return status == PAWL_OK ? check_changed(db, "embeddings", reterr) : status;
}

static pawl_status sqlite_commit(struct ledger_backend *base, pawl_error *reterr)
{
    return pawl__sqlite_commit(of(base)->writer, reterr);
}

static void sqlite_rollback(struct ledger_backend *base)
{
    pawl__sqlite_rollback(of(base)->writer);
}

static pawl_status sqlite_watch(struct ledger_backend *base,
                                int64_t deadline_ns,
                                struct pawl__cancel *cancel,
                                pawl_error *reterr)
{
    return pawl__sqlite_pool_watch(&of(base)->pool, deadline_ns, cancel, reterr);
}

/* --- the whole --- */

static pawl_status sqlite_copy_to(struct ledger_backend *base,
                                  const char *path,
                                  pawl_progress progress,
                                  void *progress_context,
                                  pawl_error *reterr)
{
    struct pawl__sqlite_backup_options options = { .progress = progress,
                                                   .context = progress_context };
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return pawl__sqlite_backup(reader.db, path, &options, reterr);
}

pawl_status pawl__ledger_sqlite_flush(struct ledger_backend *base, pawl_error *reterr)
{
    return pawl__sqlite_checkpoint(of(base)->writer, PAWL__SQLITE_TRUNCATE, NULL, reterr);
}

static void sqlite_close(struct ledger_backend *base)
{
    struct sqlite_backend *backend = of(base);

    pawl__sqlite_pool_done(&backend->pool);
    pawl__sqlite_close(backend->anchor_db);
    pawl__sqlite_close(backend->writer);
    free(backend->log_path);
    free(backend->anchor_path);
    free(backend->path);
    free(backend);
}

static const struct ledger_backend_ops sqlite_ops = {
    .name = "sqlite",
    .close = sqlite_close,
    .begin = sqlite_begin,
    .lookup = pawl__ledger_sqlite_lookup,
    .insert = sqlite_insert,
    .turn_get = sqlite_turn_get,
    .open_turns = pawl__ledger_sqlite_open_turns,
    .turn_put = sqlite_turn_put,
    .embed = sqlite_embed,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .read = pawl__ledger_sqlite_read,
    .head = pawl__ledger_sqlite_get_head,
    .get = pawl__ledger_sqlite_get,
    .turn_of = pawl__ledger_sqlite_turn_of,
    .counts = pawl__ledger_sqlite_counts,
    .turns = pawl__ledger_sqlite_turns,
    .unfinished = pawl__ledger_sqlite_unfinished,
    .embeddings = pawl__ledger_sqlite_embeddings,
    .watch = sqlite_watch,
    .write_anchor = pawl__ledger_sqlite_write_anchor,
    .anchor = pawl__ledger_sqlite_anchor,
    .highest = pawl__ledger_sqlite_highest,
    .check = pawl__ledger_sqlite_check,
    .schema = pawl__ledger_sqlite_schema,
    .entries = pawl__ledger_sqlite_entries,
    .copy_to = sqlite_copy_to,
};

/* --- opening --- */

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a ledger");
}

static bool has_content(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && info.st_size > 0;
}

/* Two names of one file must mean one anchor. *ret_exists: whether something is in such a file. */
static pawl_status set_paths(struct sqlite_backend *backend,
                             const char *path,
                             bool *ret_exists,
                             pawl_error *reterr)
{
    char *real = realpath(path, NULL);

    if (real == NULL && errno != ENOENT) {
        return pawl__fail_errno(reterr, errno, "open '%s'", path);
    }
    *ret_exists = real != NULL && has_content(real);
    free(backend->path);
    free(backend->anchor_path);
    free(backend->log_path);
    backend->path = real != NULL ? real : strdup(path);
    backend->pool.path = backend->path;
    backend->anchor_path = backend->path == NULL ? NULL : pawl__ledger_anchor_path(backend->path);
    backend->log_path = backend->path == NULL ? NULL : pawl__fs_with_suffix(backend->path, "-wal");
    return backend->anchor_path != NULL && backend->log_path != NULL ? PAWL_OK : no_memory(reterr);
}

/* Before anything is created or migrated. The file is checked after its anchor was read: another
 * process may be creating both, and the anchor comes last. */
static pawl_status check_paths(struct sqlite_backend *backend, pawl_error *reterr)
{
    pawl_ledger_head anchor;
    pawl_status status = pawl__ledger_anchor_read(backend->anchor_path, &anchor, reterr);

    if (status == PAWL_OK && anchor.offset > 0 && !has_content(backend->path)) {
        return pawl__fail_advised(
            reterr,
            PAWL_CORRUPT,
            "cut off: there is no log, but its anchor is at offset %llu; restore the "
            "newest snapshot with `pawl ledger restore`, or to begin anew, remove "
            "'%s'",
            (unsigned long long)anchor.offset,
            backend->anchor_path);
    }
    return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

static enum pawl__sqlite_mode open_mode(const pawl_ledger_options *options)
{
    return options->must_exist ? PAWL__SQLITE_MUST_EXIST : PAWL__SQLITE_CREATE;
}

/* What SQLite says about a file that is not ours helps nobody. */
static pawl_status explain(const struct sqlite_backend *backend,
                           pawl_status status,
                           pawl_error *reterr)
{
    if (status == PAWL_INVALID && pawl__ledger_is_seed(backend->path)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' holds events of the original schema, without hashes: `pawl ledger "
                          "import` takes them into a new ledger",
                          backend->path);
    }
    /* Our statements fit our schema: what they do not fit is another one. */
    if (status == PAWL_FAILED) {
        return pawl__fail_context(
            reterr, PAWL_CORRUPT, "a table or an index is missing or was changed");
    }
    /* So is what is empty, when its anchor knows of events. */
    pawl_ledger_head anchor;
    if (status == PAWL_NOT_FOUND && has_content(backend->path)
        && pawl__ledger_anchor_read(backend->anchor_path, &anchor, NULL) == PAWL_OK
        && anchor.offset > 0) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "cut off: the log is empty, but its anchor is at offset %llu",
                          (unsigned long long)anchor.offset);
    }
    /* With an anchor beside it, it was a ledger once. */
    if (status == PAWL_CORRUPT && access(backend->anchor_path, F_OK) != 0
        && !pawl__ledger_begins_like_sqlite(backend->path)) {
        return pawl__fail(reterr, PAWL_INVALID, "it is no ledger, and no SQLite database at all");
    }
    return status;
}

static pawl_status open_first(struct sqlite_backend *backend,
                              const pawl_ledger_options *options,
                              pawl_error *reterr)
{
    struct pawl__sqlite_options first = backend->pool.options;
    struct pawl__sqlite *db;

    first.mode = options->read_only ? first.mode : open_mode(options);
    first.schema_unchecked = options->accept_damage;
    first.cache_kib = WRITER_CACHE_KIB;
    pawl_status status = pawl__sqlite_open(backend->path, &first, &db, reterr);
    if (status != PAWL_OK) {
        return explain(backend, status, reterr);
    }
    if (options->read_only) {
        pawl__sqlite_pool_add(&backend->pool, db);
    } else {
        backend->writer = db;
    }
    return PAWL_OK;
}

static pawl_status open_at(struct sqlite_backend *backend,
                           const char *path,
                           const pawl_ledger_options *options,
                           pawl_error *reterr)
{
    bool exists = false;

    TRY(set_paths(backend, path, &exists, reterr));
    if (!options->read_only || !exists) {
        TRY(check_paths(backend, reterr));
    }
    TRY(open_first(backend, options, reterr));
    return exists ? PAWL_OK : set_paths(backend, path, &exists, reterr);
}

pawl_status pawl__ledger_sqlite_open(const struct pawl__location *location,
                                     const void *setup,
                                     void *ret_backend,
                                     pawl_error *reterr)
{
    const pawl_ledger_options *options = setup;
    struct pawl__sqlite_options readers = PAWL__SQLITE_OPTIONS_INIT;
    struct sqlite_backend *backend = calloc(1, sizeof(*backend));

    if (backend == NULL) {
        return no_memory(reterr);
    }
    backend->base.ops = &sqlite_ops;
    readers.application_id = PAWL__LEDGER_APPLICATION_ID;
    readers.schema = &pawl__schema_sqlite_ledger;
    readers.statements = pawl__ledger_sql_statements;
    readers.statement_count = LEDGER_SQL_COUNT;
    readers.busy_ms_max = options->busy_ms_max;
    readers.sync_normal = location->durability_normal;
    readers.interrupted = location->interrupted;
    pawl__sqlite_pool_init(&backend->pool,
                           &readers,
                           location->at_rest ? PAWL__SQLITE_AT_REST : PAWL__SQLITE_READ_ONLY);
    pawl_status status = open_at(backend, location->path, options, reterr);
    if (status != PAWL_OK) {
        sqlite_close(&backend->base);
        return status;
    }
    *(struct ledger_backend **)ret_backend = &backend->base;
    return PAWL_OK;
}
