/* The colony's store: rows, checkpoints and gaps of every agent, committed together.
 *
 *   Commits     rows, rejected rows, gaps and the checkpoint of each part are one transaction: all or nothing.
 *   Checkpoint  a commit names the one that it continues. Another one in the store is a CONFLICT, and nothing changes: an
 *               earlier commit has happened after all, or somebody else polls. Within a session and generation it never
 *               goes back.
 *   Rows        are named by (agent, type, session, generation, sequence id). One writer: a name that is stored twice is
 *               our mistake, and the store does not look for it. */
#ifndef PAWL_TELEMETRY_COLONY_STORE_H
#define PAWL_TELEMETRY_COLONY_STORE_H

#include "telemetry/core/cursor.h"

enum { TELEMETRY_AGENT_BYTES_MAX = 200 };

/* What one data type of one agent adds to a transaction. */
struct telemetry_commit {
    const char *agent;
    enum telemetry_type type;
    const struct telemetry_cursor
        *before; /* the cursor that it continues; its session is "" for a first one */
    const struct telemetry_cursor *cursor; /* after it; NULL: the checkpoint stays (recovery) */
    bool identity_changed;                 /* its sessions and epochs are to be written again */
    const struct telemetry_cursor
        *ended;                  /* the session that it left, to be written too; NULL: none */
    struct telemetry_id session; /* of the rows */
    struct telemetry_id generation;
    const struct telemetry_row *rows; /* decoded: with values or with a reason */
    size_t row_count;
    struct telemetry_gap *gaps; /* new ones (id 0) get their ids */
    size_t gap_count;
};

struct telemetry_gap_query {
    const char *agent;
    enum telemetry_type type;
    unsigned statuses;           /* 1 << enum telemetry_gap_status */
    struct telemetry_id session; /* "": any */
    uint64_t after_id;           /* for the next page */
    size_t limit;
};
#define TELEMETRY_GAPS_OPEN \
    (1u << TELEMETRY_GAP_SUSPECTED | 1u << TELEMETRY_GAP_DETECTED | 1u << TELEMETRY_GAP_RECOVERING)

struct telemetry_colony_store;

struct telemetry_colony_ops {
    /* The cursor of the session that is polled (`session` NULL), or of one that was here once. Its session is "" when
     * there is none. Replaces *cursor. */
    pawl_status (*load)(struct telemetry_colony_store *store,
                        const char *agent,
                        enum telemetry_type type,
                        const struct telemetry_id *session,
                        struct telemetry_cursor *cursor,
                        pawl_error *reterr);
    pawl_status (*commit)(struct telemetry_colony_store *store,
                          const struct telemetry_commit *commits,
                          size_t count,
                          pawl_error *reterr);
    /* Adds to `gaps`, by ascending id. */
    pawl_status (*gaps)(struct telemetry_colony_store *store,
                        const struct telemetry_gap_query *query,
                        struct telemetry_gaps *gaps,
                        pawl_error *reterr);
    /* Closed gaps that are older go. */
    pawl_status (*clean_gaps)(struct telemetry_colony_store *store,
                              int64_t before_us,
                              pawl_error *reterr);
    /* How many rows are stored and rejected under this name. */
    pawl_status (*count)(struct telemetry_colony_store *store,
                         const char *agent,
                         enum telemetry_type type,
                         const struct telemetry_id *session,
                         const struct telemetry_id *generation,
                         uint64_t *ret_rows,
                         uint64_t *ret_rejected,
                         pawl_error *reterr);
    /* What the engine needs now and then. */
    pawl_status (*maintain)(struct telemetry_colony_store *store, pawl_error *reterr);
    void (*close)(struct telemetry_colony_store *store);
};

struct telemetry_colony_store {
    const struct telemetry_colony_ops *ops;
};

/* CONFLICT: the checkpoint in the store, whose session is "" when there is none, is not the one before, or would go back.
 * For stores. */
struct telemetry_checkpoint {
    struct telemetry_id session;
    struct telemetry_id generation;
    uint64_t last;
};
PAWL_MUST_USE pawl_status pawl__telemetry_commit_check(const struct telemetry_commit *commit,
                                                       const struct telemetry_checkpoint *stored,
                                                       pawl_error *reterr);

#endif
