/* The agent's store: numbers rows, keeps them until the colony has them, answers queries.
 *
 *   Ids         consecutive per data type, given in the transaction that stores the rows. A failed append gives none, a
 *               duplicate gets none.
 *   Session     made once with the store. Every open adds an epoch (core/epochs.h).
 *   Answers     one snapshot: rows, high-water mark and the first id that is left belong together. */
#ifndef PAWL_TELEMETRY_AGENT_STORE_H
#define PAWL_TELEMETRY_AGENT_STORE_H

#include "telemetry/core/page.h"
#include "telemetry/core/retention.h"

struct telemetry_appended {
    uint64_t first; /* ids of this batch; first > last: none */
    uint64_t last;
    size_t stored;
    size_t duplicates; /* an exporter's retry */
};

struct telemetry_agent_status {
    struct telemetry_id session;
    struct telemetry_id epoch; /* of this open */
    size_t epoch_count;
    struct telemetry_kept kept[TELEMETRY_TYPE_COUNT]; /* `aged` is not filled in */
    uint64_t used_bytes;
};

struct telemetry_agent_store;

struct telemetry_agent_ops {
    /* Rows that pawl__telemetry_row_check has passed. All of them or none. */
    pawl_status (*append)(struct telemetry_agent_store *store,
                          enum telemetry_type type,
                          const struct telemetry_values *rows,
                          size_t count,
                          struct telemetry_appended *ret_appended,
                          pawl_error *reterr);
    /* Fills a page that was cleared. An acknowledgement in the query counts before the answer is made. */
    pawl_status (*query)(struct telemetry_agent_store *store,
                         const struct telemetry_query *query,
                         struct telemetry_page *page,
                         pawl_error *reterr);
    /* Retention, and what the engine needs now and then. *ret_removed, unless NULL: rows that went. */
    pawl_status (*maintain)(struct telemetry_agent_store *store,
                            uint64_t *ret_removed,
                            pawl_error *reterr);
    pawl_status (*status)(struct telemetry_agent_store *store,
                          struct telemetry_agent_status *ret_status,
                          pawl_error *reterr);
    void (*close)(struct telemetry_agent_store *store);
};

struct telemetry_agent_store {
    const struct telemetry_agent_ops *ops;
};

/* A store as a source of pages, for a colony in the same process. */
struct telemetry_local_source {
    struct telemetry_source base;
    struct telemetry_agent_store *store;
};
struct telemetry_local_source pawl__telemetry_local_source(struct telemetry_agent_store *store);

#endif
