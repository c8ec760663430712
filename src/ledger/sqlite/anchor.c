/* The anchor of a SQLite ledger; anchor.h says what it is for. */
#include "ledger/sqlite/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "ledger/core/anchor.h"
#include "ledger/core/chain.h"

/* Reads the log's head; *ret_behind when the anchor is to be moved to it. The anchor is read first:
 * others move it, and it must not look as if it were ahead of the log. It never goes back, and one
 * that is damaged or really ahead stays for the next open to find. */
static pawl_status compare(struct sqlite_backend *backend,
                           pawl_ledger_head *ret_head,
                           bool *ret_behind,
                           pawl_error *reterr)
{
    pawl_ledger_head anchor = { 0 };
    pawl_ledger_head head;
    pawl_status status = pawl__ledger_anchor_read(backend->anchor_path, &anchor, reterr);

    if (status != PAWL_OK && status != PAWL_NOT_FOUND) {
        return status;
    }
    TRY(pawl__ledger_sqlite_head(backend->anchor_db, &head, reterr));
    if (anchor.offset > head.offset
        || (anchor.offset == head.offset
            && !pawl__ledger_chain_hash_equal(anchor.hash, head.hash))) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the anchor is not part of the log");
    }
    *ret_head = head;
    *ret_behind = anchor.offset < head.offset;
    return PAWL_OK;
}

/* Commits of a process that opened the ledger with durability=normal are in the log file, but may
 * not be on disk: so the file is synced before the anchor speaks of them. What was moved out of it
 * into the database was synced then. */
static pawl_status sync_log(struct sqlite_backend *backend, pawl_error *reterr)
{
    AUTO(pawl__fs_close) int fd = open(backend->log_path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", backend->log_path);
    }
    FAILPOINT("ledger.anchor.sync.before", reterr);
    if (fsync(fd) != 0) {
        backend->anchor_spoilt = true; /* the next fsync would say that all is well */
        return pawl__fail_errno(reterr, errno, "fsync '%s'", backend->log_path);
    }
    return pawl__fs_sync_parent(backend->log_path, reterr); /* its name is as young as itself */
}

/* Under the write lock: what is in the log now is all there is, and of two processes the one that
 * sees the longer log writes last. */
static pawl_status write_anchor_locked(struct sqlite_backend *backend, pawl_error *reterr)
{
    pawl_ledger_head head;
    bool is_old = false;

    TRY(compare(backend, &head, &is_old, reterr));
    if (!is_old) {
        return PAWL_OK;
    }
    TRY(sync_log(backend, reterr));
    FAILPOINT("ledger.anchor.write.before", reterr);
    TRY(pawl__ledger_anchor_write(backend->anchor_path, &head, reterr));
    FAILPOINT("ledger.anchor.write.after", reterr);
    return PAWL_OK;
}

static pawl_status open_anchor_db(struct sqlite_backend *backend, pawl_error *reterr)
{
    struct pawl__sqlite_options options = backend->pool.options;

    options.mode = PAWL__SQLITE_MUST_EXIST;
    /* A committer under load leaves the lock for a moment only, between two groups. Who asks as
     * seldom as writers do would wait for more than the second that is promised. */
    options.busy_nap_ms_max = 1;
    return pawl__sqlite_open(backend->path, &options, &backend->anchor_db, reterr);
}

pawl_status pawl__ledger_sqlite_write_anchor(struct ledger_backend *base, pawl_error *reterr)
{
    struct sqlite_backend *backend = (struct sqlite_backend *)base;
    pawl_ledger_head head;
    bool is_old = false;

    if (backend->anchor_spoilt) {
        return pawl__fail(reterr, PAWL_IO, "the log could not be synced before");
    }
    if (backend->anchor_db == NULL) {
        TRY(open_anchor_db(backend, reterr));
    }
    TRY(compare(backend, &head, &is_old, reterr));
    if (!is_old) {
        return PAWL_OK; /* nothing is new: no lock is needed */
    }
    TRY(pawl__sqlite_begin(backend->anchor_db, PAWL__SQLITE_IMMEDIATE, reterr));
    pawl_status status = write_anchor_locked(backend, reterr);
    pawl__sqlite_rollback(backend->anchor_db);
    return status;
}

pawl_status pawl__ledger_sqlite_anchor(struct ledger_backend *base,
                                       pawl_ledger_head *ret_head,
                                       pawl_error *reterr)
{
    return pawl__ledger_anchor_read(((struct sqlite_backend *)base)->anchor_path, ret_head, reterr);
}
