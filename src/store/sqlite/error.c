/* What SQLite's failures mean to us, and how long we wait for others. */
#include "store/sqlite/internal.h"

#include <errno.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/decide/backoff.h"

/* The errno of a failed system call, where it tells more than SQLite's code does. It may be an older one:
 * SQLite 3.46 leaves ENOENT there when an fsync fails. So it counts only when it names the disk's state. */
static pawl_status status_of_system_errno(struct pawl__sqlite *db, pawl_status otherwise)
{
    int error_number = sqlite3_system_errno(db->native);
    pawl_status status = error_number == 0 ? otherwise : pawl__status_of_errno(error_number);

    switch (status) {
    case PAWL_NO_SPACE:
    case PAWL_DENIED:
    case PAWL_NOMEM:
        return status;
    default:
        return otherwise;
    }
}

/* When the file itself is there, what could not be opened or made is the shared memory beside it, on a
 * disk or in a directory that is read-only. */
static pawl_status status_of_cantopen(struct pawl__sqlite *db)
{
    bool is_missing = sqlite3_system_errno(db->native) == ENOENT && access(db->path, F_OK) != 0;

    return is_missing ? PAWL_NOT_FOUND : status_of_system_errno(db, PAWL_DENIED);
}

static pawl_status status_of_ioerr(struct pawl__sqlite *db, int rc)
{
    switch (rc) {
    case SQLITE_IOERR_NOMEM:
        return PAWL_NOMEM;
    case SQLITE_IOERR_CORRUPTFS: /* a disk that gives EIO; SQLite itself tells most of them as CORRUPT */
    case SQLITE_IOERR_DATA:
        return PAWL_CORRUPT;
    case SQLITE_IOERR_BLOCKED:
        return PAWL_BUSY;
    default:
        return status_of_system_errno(db, PAWL_IO);
    }
}

static pawl_status status_of(struct pawl__sqlite *db, int rc)
{
    switch (rc & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: /* lost the race for the shared memory file too often */
        /* An interrupt ends the wait for a lock. */
        return pawl__sqlite_is_interrupted(db) ? PAWL_CANCELLED : PAWL_BUSY;
    case SQLITE_FULL:
        return PAWL_NO_SPACE;
    case SQLITE_CANTOPEN:
        return status_of_cantopen(db);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return PAWL_DENIED;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return PAWL_CORRUPT;
    case SQLITE_CONSTRAINT:
        return PAWL_CONFLICT; /* SQLite's message names the constraint */
    case SQLITE_NOMEM:
        return PAWL_NOMEM;
    case SQLITE_IOERR:
        return status_of_ioerr(db, rc);
    case SQLITE_TOOBIG:
        return PAWL_INVALID;
    case SQLITE_INTERRUPT:
        return PAWL_CANCELLED;
    default: /* ERROR, MISUSE, RANGE, ...: our SQL or our calls are wrong */
        return PAWL_FAILED;
    }
}

void pawl__sqlite_note_sync(struct pawl__sqlite *db, int rc)
{
    if (rc == SQLITE_IOERR_FSYNC || rc == SQLITE_IOERR_DIR_FSYNC) {
        atomic_fetch_or(&db->stop, STOP_POISONED);
    }
}

/* The handle's last message belongs to `rc` only when the codes agree. */
static const char *text_of(struct pawl__sqlite *db, int rc)
{
    return sqlite3_extended_errcode(db->native) == rc ? sqlite3_errmsg(db->native)
                                                      : sqlite3_errstr(rc);
}

pawl_status pawl__sqlite_fail(struct pawl__sqlite *db, int rc, pawl_error *reterr)
{
    pawl_status status = status_of(db, rc);

    pawl__sqlite_note_sync(db, rc);
    if (db->in_transaction && sqlite3_get_autocommit(db->native)) {
        atomic_fetch_or(&db->stop, STOP_ABORTED);
    }
    if (db->busy_waited_ns > 0 && status == PAWL_BUSY) {
        pawl__fail(reterr,
                   status,
                   "'%s': %s, waited %lld ms",
                   db->path,
                   text_of(db, rc),
                   (long long)(db->busy_waited_ns / NS_PER_MS));
    } else {
        pawl__fail(reterr, status, "'%s': %s", db->path, text_of(db, rc));
    }
    if (reterr != NULL) {
        reterr->native = rc;
    }
    return status;
}

bool pawl__sqlite_is_interrupted(struct pawl__sqlite *db)
{
    if (db->interrupted != NULL && atomic_load_explicit(db->interrupted, memory_order_relaxed)) {
        atomic_fetch_or(&db->stop, STOP_INTERRUPTED);
    }
    return atomic_load_explicit(&db->stop, memory_order_relaxed) & STOP_INTERRUPTED;
}

pawl_status pawl__sqlite_check_stop(struct pawl__sqlite *db, pawl_error *reterr)
{
    (void)pawl__sqlite_is_interrupted(db);
    unsigned stop = atomic_load_explicit(&db->stop, memory_order_relaxed);

    if (__builtin_expect(stop == 0, 1)) {
        return PAWL_OK;
    }
    if (stop & STOP_POISONED) {
        return pawl__fail(reterr,
                          PAWL_IO,
                          "'%s': an fsync failed earlier: close the store and open it again",
                          db->path);
    }
    if (stop & STOP_INTERRUPTED) {
        return pawl__fail(reterr, PAWL_CANCELLED, "'%s': interrupted", db->path);
    }
    return pawl__fail(reterr,
                      PAWL_FAILED,
                      "'%s': an earlier error took this transaction back: roll it back and start "
                      "again",
                      db->path);
}

/* Other processes give no signal when they let go, so this is the one wait that asks again and
 * again: soon at first, then at intervals of half the longest nap to all of it. */
int pawl__sqlite_busy(void *context, int count)
{
    struct pawl__sqlite *db = context;
    struct pawl__backoff backoff = { .first_ns = NS_PER_MS, .max_ns = db->busy_nap_ns_max };
    int64_t now = pawl__monotonic_ns(db->clock);

    if (count == 0) {
        db->busy_since_ns = now;
    }
    db->busy_waited_ns = now - db->busy_since_ns;
    if (db->busy_waited_ns >= db->busy_ns_max || pawl__sqlite_is_interrupted(db)) {
        return 0;
    }
    /* The clock's low bits are random enough to part two waiters. */
    uint64_t random = (uint64_t)now * UINT64_C(0x9E3779B97F4A7C15);
    int64_t until = now + pawl__backoff_ns(&backoff, (uint64_t)count + 1, random);
    pawl__sleep_until(db->clock, MIN(until, db->busy_since_ns + db->busy_ns_max));
    return 1;
}
