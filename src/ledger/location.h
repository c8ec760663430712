/* Where a ledger lives: memory:, a path, sqlite:path?durability=normal,
 * postgres://...?connections=4 */
#ifndef PAWL_LEDGER_LOCATION_H
#define PAWL_LEDGER_LOCATION_H

#include <pawl/pawl.h>

enum ledger_scheme { LEDGER_MEMORY, LEDGER_SQLITE, LEDGER_POSTGRES };

struct ledger_location {
    enum ledger_scheme scheme;
    char *path; /* a file's path, or the whole postgres:// URL; NULL for memory */
    bool durability_normal;
    bool at_rest;         /* SQLite, and not to be written in a location: see pawl__snapshot_open */
    uint32_t connections; /* PostgreSQL: at the most this many; 0: the backend's default */
};

void pawl__location_done(struct ledger_location *location);

/* INVALID names an unknown scheme or parameter and the allowed ones. */
PAWL_MUST_USE pawl_status pawl__location_parse(const char *text,
                                               struct ledger_location *ret_location,
                                               pawl_error *reterr);

#endif
