/* Where a store lives, for those that may live in several places: memory:, a path, sqlite:path?durability=normal,
 * postgres://...?connections=4. An application lives in a directory: memory:, a path, postgres://...?app=NAME */
#ifndef PAWL_STORE_LOCATION_H
#define PAWL_STORE_LOCATION_H

#include <pawl/pawl.h>

#include <stdatomic.h>

enum pawl__scheme {
    PAWL__AT_MEMORY,
    PAWL__AT_SQLITE,
    PAWL__AT_POSTGRES,
    PAWL__AT_DIRECTORY,
    PAWL__SCHEMES
};

struct pawl__location {
    enum pawl__scheme scheme;
    char *path; /* of a file or a directory, or the postgres:// URL for libpq; NULL for memory */
    char *app;  /* PostgreSQL: which application of the database; NULL: it does not say */
    bool durability_normal;
    bool at_rest; /* SQLite, and not to be written in a location: see pawl__ledger_snapshot_open */
    uint32_t connections; /* PostgreSQL: at the most this many; 0: the backend's default */
    /* Not in the text, for who opens it: the store's calls end soon once it is true. Or NULL. */
    const atomic_bool *interrupted;
};

void pawl__location_done(struct pawl__location *location);

/* Whether it begins with postgres:// or postgresql://. */
bool pawl__location_is_postgres(const char *text);

/* INVALID names an unknown scheme or parameter and the allowed ones. */
typedef pawl_status pawl__location_parser(const char *text,
                                          struct pawl__location *ret_location,
                                          pawl_error *reterr);
PAWL_MUST_USE pawl__location_parser pawl__location_parse;
PAWL_MUST_USE pawl__location_parser pawl__location_parse_app; /* that of an application */

#endif
