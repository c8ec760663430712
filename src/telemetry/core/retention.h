/* What an agent may remove: only the oldest rows of a type, in whole groups, and only
 *
 *   by age    rows that arrived longer ago than the limit and that the colony has acknowledged
 *   by size   one group at a time while the database is over its limit: acknowledged rows first, then any
 *
 * Arrival is on the boot clock. A wall clock that steps removes nothing. */
#ifndef PAWL_TELEMETRY_CORE_RETENTION_H
#define PAWL_TELEMETRY_CORE_RETENTION_H

#include "telemetry/core/types.h"

struct telemetry_retention {
    int64_t age_ns;      /* 0: no limit */
    uint64_t used_max;   /* bytes in use; 0: no limit */
    uint64_t group_rows; /* of a row group; 1 or more */
};

/* When rows arrived: every row up to `last` that an older mark does not cover. */
struct telemetry_arrival {
    uint64_t last;
    int64_t boot_ns;
};
enum { TELEMETRY_ARRIVALS_MAX = 512 };

/* Marks are joined when there are too many: the younger of two counts, so nothing goes early. */
struct telemetry_arrivals {
    struct telemetry_arrival at[TELEMETRY_ARRIVALS_MAX];
    size_t count;
};
void pawl__telemetry_arrived(struct telemetry_arrivals *arrivals, uint64_t last, int64_t boot_ns);
/* The last id that arrived at or before `boot_ns`; 0: none. */
uint64_t pawl__telemetry_arrived_by(const struct telemetry_arrivals *arrivals, int64_t boot_ns);
/* Forgets marks of rows that are gone. */
void pawl__telemetry_arrivals_forget(struct telemetry_arrivals *arrivals, uint64_t removed);

struct telemetry_kept {
    uint64_t removed; /* ids up to here are gone */
    uint64_t counter; /* the last id given */
    uint64_t acked;
    uint64_t aged; /* ids up to here are older than the limit */
};

/* Up to which id the rows of a type go by age; `removed` when none does. */
uint64_t pawl__telemetry_remove_by_age(const struct telemetry_retention *retention,
                                       const struct telemetry_kept *kept);

/* The next step while too much is used: which type loses its oldest group, and up to which id. False: enough is free, or
 * there is nothing left to remove. */
bool pawl__telemetry_remove_by_size(const struct telemetry_retention *retention,
                                    const struct telemetry_kept kept[TELEMETRY_TYPE_COUNT],
                                    uint64_t used,
                                    enum telemetry_type *ret_type,
                                    uint64_t *ret_up_to);

#endif
