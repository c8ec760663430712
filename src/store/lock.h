/* One process for a store that does not allow two: DuckDB files and RocksDB directories.
 *
 * The lock is an empty file that stays. Its name does not matter and its content is never read:
 * what counts is the kernel's lock on it, which ends with the process, also after kill -9. The
 * holder's pid comes from the kernel too. Two locks are held on the file:
 *
 *   byte 0  an open-file-description lock: it excludes a second open in this process as well, and a
 *           stranger in this process who opens and closes the file cannot drop it
 *   byte 1  a process lock, which F_GETLK answers with the pid of its holder
 *
 * A child of fork does not own the lock and does not prolong it: its copy of the descriptor is
 * closed at the fork. SQLite stores need none of this: any number of processes may share them.
 *
 * Any thread may call these. */
#ifndef PAWL_STORE_LOCK_H
#define PAWL_STORE_LOCK_H

#include <pawl/pawl.h>

#include <stdbool.h>

#include "base/core/macros.h"

struct pawl__store_lock;

/* Locks the store file `path`, which need not exist yet, by "<path>.lock" beside it. Symbolic links
 * are followed first, so that two names of one store mean one lock.
 *
 * BUSY when it is held: the message names the holder's pid and command and what to do. Does not
 * wait. */
PAWL_MUST_USE pawl_status pawl__store_lock_beside(const char *path,
                                                  struct pawl__store_lock **ret_lock,
                                                  pawl_error *reterr);

/* The same for a store that is a directory, which must exist: "<directory>/pawl.lock". */
PAWL_MUST_USE pawl_status pawl__store_lock_inside(const char *directory,
                                                  struct pawl__store_lock **ret_lock,
                                                  pawl_error *reterr);

/* Whether the lock could be taken now: PAWL_OK or BUSY as above. Takes nothing and creates nothing;
 * for `doctor`, since the answer may be old when it arrives. */
PAWL_MUST_USE pawl_status pawl__store_lock_inspect_beside(const char *path, pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__store_lock_inspect_inside(const char *directory,
                                                          pawl_error *reterr);

/* Whether the lock's file is still the one of its name. If not, the store was moved, replaced or deleted,
 * and what is written by its path goes to another one. One system call. */
bool pawl__store_lock_in_place(const struct pawl__store_lock *lock);

/* NULL is nothing */
DEFINE_AUTO(struct pawl__store_lock *, pawl__store_lock_release)

#endif
