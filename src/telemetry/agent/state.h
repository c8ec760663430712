/* What every agent store decides alike, whatever it stores rows in. Starts with zeroes. */
#ifndef PAWL_TELEMETRY_AGENT_STATE_H
#define PAWL_TELEMETRY_AGENT_STATE_H

#include "telemetry/agent/store.h"
#include "telemetry/core/dedupe.h"
#include "telemetry/core/epochs.h"

enum { TELEMETRY_WINDOW_NAMES = 65536 }; /* names of rows per data type */

struct telemetry_agent_state {
    struct telemetry_id session;
    struct telemetry_epochs epochs;
    struct telemetry_retention retention;
    uint64_t counters[TELEMETRY_TYPE_COUNT];
    uint64_t removed[TELEMETRY_TYPE_COUNT];
    uint64_t acked[TELEMETRY_TYPE_COUNT];
    struct telemetry_arrivals arrivals[TELEMETRY_TYPE_COUNT];
    struct telemetry_window *windows[TELEMETRY_TYPE_COUNT];
};

PAWL_MUST_USE pawl_status pawl__telemetry_state_init(struct telemetry_agent_state *state,
                                                     const struct telemetry_retention *retention,
                                                     size_t window_names,
                                                     pawl_error *reterr);
void pawl__telemetry_state_done(struct telemetry_agent_state *state);

/* The store was opened with these counters and epochs: adds an epoch; every row counts as arrived now. */
PAWL_MUST_USE pawl_status pawl__telemetry_state_open(struct telemetry_agent_state *state,
                                                     const uint8_t random[16],
                                                     int64_t boot_ns,
                                                     pawl_error *reterr);

/* Remembers the name of a row that is stored. */
PAWL_MUST_USE pawl_status pawl__telemetry_state_remember(struct telemetry_agent_state *state,
                                                         enum telemetry_type type,
                                                         const struct telemetry_values *row,
                                                         pawl_error *reterr);

/* Which rows of a batch are new: their places, in order, and how many of them have names, for _undo. */
struct telemetry_admitted {
    size_t *places; /* as many as there are rows */
    size_t count;
    size_t named;
};
PAWL_MUST_USE pawl_status pawl__telemetry_state_admit(struct telemetry_agent_state *state,
                                                      enum telemetry_type type,
                                                      const struct telemetry_values *rows,
                                                      size_t count,
                                                      struct telemetry_admitted *admitted,
                                                      pawl_error *reterr);
void pawl__telemetry_state_undo(struct telemetry_agent_state *state,
                                enum telemetry_type type,
                                const struct telemetry_admitted *admitted);
/* They are stored: moves the counter and says what was given. */
struct telemetry_appended pawl__telemetry_state_stored(struct telemetry_agent_state *state,
                                                       enum telemetry_type type,
                                                       const struct telemetry_admitted *admitted,
                                                       size_t count,
                                                       int64_t boot_ns);

/* The acknowledgement of a query, and the part of its answer that has no rows. */
PAWL_MUST_USE pawl_status pawl__telemetry_state_answer(struct telemetry_agent_state *state,
                                                       const struct telemetry_query *query,
                                                       struct telemetry_page *page,
                                                       pawl_error *reterr);

/* Up to which id rows of the type go by age. */
uint64_t pawl__telemetry_state_aged(const struct telemetry_agent_state *state,
                                    enum telemetry_type type,
                                    int64_t boot_ns);
bool pawl__telemetry_state_oversized(const struct telemetry_agent_state *state,
                                     uint64_t used,
                                     enum telemetry_type *ret_type,
                                     uint64_t *ret_up_to);
void pawl__telemetry_state_removed(struct telemetry_agent_state *state,
                                   enum telemetry_type type,
                                   uint64_t up_to);
void pawl__telemetry_state_status(const struct telemetry_agent_state *state,
                                  struct telemetry_agent_status *ret_status);

/* Whether a row that a query scans is one that it asks for, by service and time. */
bool pawl__telemetry_query_wants(const struct telemetry_query *query,
                                 const struct telemetry_values *row);

#endif
