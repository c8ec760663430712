/* Counters in a SQLite file: the capability (counter.c), its part of a node (part.c), its commands (main.c). */
#ifndef EXAMPLES_COUNTER_H
#define EXAMPLES_COUNTER_H

#include "engine/engine.h"
#include "server/part.h"
#include "store/sqlite/pool.h"

enum { NAME_MAX_BYTES = 64, BY_MAX = 1000000 };

struct counter {
    struct pawl__engine engine;  /* its watch tells of changes */
    struct pawl__sqlite *writer; /* the committer's */
    struct pawl__sqlite_pool readers;
    char path[4096];
};

struct change {
    uint64_t id;
    char name[NAME_MAX_BYTES + 1];
    int64_t value; /* of the counter, after the change */
};

pawl_status counter_open(const char *dir, struct counter **ret_counter, pawl_error *reterr);
/* TIMEOUT: the store hangs, and everything that its threads use stays. */
pawl_status counter_close(struct counter *counter, pawl_error *reterr);
/* Adds change->value to the counter of that name. Returns when it is on disk: many callers share a commit. */
pawl_status counter_add(struct counter *counter, struct change *change, pawl_error *reterr);
/* The newest change of a counter; without a name the first change after change->id. NOT_FOUND. */
pawl_status counter_read(struct counter *counter, struct change *change, pawl_error *reterr);

extern const struct pawl__serve_part counter_part;

#endif
