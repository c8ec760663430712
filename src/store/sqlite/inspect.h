/* Looks at an SQLite store from outside, for `doctor`, and leaves nothing behind: no lock, no
 * shared-memory file, no migration. An ordinary reader of a WAL database would leave two files. */
#ifndef PAWL_STORE_SQLITE_INSPECT_H
#define PAWL_STORE_SQLITE_INSPECT_H

#include <pawl/pawl.h>

#include "store/migrate.h"

struct pawl__sqlite_inspection {
    int32_t application_id;
    const struct pawl__schema *schema;
    uint64_t check_bytes_max; /* a larger file is not read whole */
};

struct pawl__sqlite_facts {
    uint64_t bytes;
    uint64_t log_bytes; /* of the -wal file */
    bool wal;           /* journal mode WAL, as every store of ours */
    bool checked;       /* read whole, no damage found */
    size_t pending;     /* migrations that the next open for writing applies */
};

/* NOT_FOUND; INVALID for a file that is not this store; UNSUPPORTED when a newer version made it;
 * CORRUPT when it is damaged. An empty file is a store that nobody has written to yet.
 *
 * Do not call it while this process has the store open (POSIX locks). */
PAWL_MUST_USE pawl_status pawl__sqlite_inspect(const char *path,
                                               const struct pawl__sqlite_inspection *expected,
                                               struct pawl__sqlite_facts *ret_facts,
                                               pawl_error *reterr);

/* Whether `path` is a database that understands this one statement: tells foreign schemas apart.
 * As above, it leaves nothing behind. */
bool pawl__sqlite_answers(const char *path, const char *sql);

#endif
