/* Polls agents: asks, decides, commits. Steps that a caller drives, on a store, sources and a clock; no thread, no wait.
 *
 * A feed is one data type of one agent. `poll` drains a group of feeds: in each round every feed that is not drained asks
 * for one page, and the pages of a round share a transaction. When that fails, each feed commits alone; when a feed alone
 * is refused for what is in its rows, its rows are halved until the one at fault is found and rejected. */
#ifndef PAWL_TELEMETRY_COLONY_POLLER_H
#define PAWL_TELEMETRY_COLONY_POLLER_H

#include "telemetry/colony/store.h"

struct telemetry_colony_settings {
    int64_t grace_ns;      /* 10 s */
    uint32_t attempts_max; /* 3 */
    size_t ranges_max;     /* that one round of recovery asks for: 100 */
    uint32_t rows_max;     /* of a page; 0: the default of each type */
    uint32_t pages_max;    /* of one feed in one poll; what is left waits for the next poll */
};
struct telemetry_colony_settings pawl__telemetry_colony_settings_default(void);

/* What happened to gaps and generations, for logs and metrics. Ids, not ranges. */
struct telemetry_feed_counts {
    uint64_t rows;
    uint64_t rejected;
    uint64_t suspected;
    uint64_t detected;
    uint64_t recovered;
    uint64_t permanent;
    uint64_t forks;
    uint64_t sessions;
    uint64_t failures; /* polls that ended with an error */
};

/* Starts with zeroes but for the first three. Ends with _feed_done. */
struct telemetry_feed {
    const char *agent;
    enum telemetry_type type;
    struct telemetry_source *source;

    bool is_loaded; /* the cursor is what the store has */
    struct telemetry_cursor cursor;
    bool is_drained;    /* it has met the high-water mark in this poll */
    int64_t met_ns;     /* when it last did, on the monotonic clock; 0: never */
    pawl_status status; /* of the last poll */
    pawl_error error;
    struct telemetry_feed_counts counts;

    /* Between a question and its commit. */
    struct telemetry_page page;
    struct telemetry_cursor next;
    struct telemetry_cursor ended;
    struct telemetry_gaps gaps;
    bool identity_changed;
    bool has_pending;
};
void pawl__telemetry_feed_done(struct telemetry_feed *feed);

struct telemetry_colony {
    struct telemetry_colony_store *store;
    struct pawl__clock *clock;
    struct telemetry_colony_settings settings;
    struct telemetry_gap_rules rules;
    size_t first; /* the agent that the next round of recovery begins with */
};

/* `run` is a random number: it tells this run of the colony from others. */
void pawl__telemetry_colony_init(struct telemetry_colony *colony,
                                 struct telemetry_colony_store *store,
                                 struct pawl__clock *clock,
                                 const struct telemetry_colony_settings *settings,
                                 uint64_t run);

/* Each feed's `status` says how it went: one that fails does not hold up the others. */
void pawl__telemetry_poll(struct telemetry_colony *colony,
                          struct telemetry_feed *feeds,
                          size_t count);

enum telemetry_recovery {
    TELEMETRY_RECHECK, /* suspected gaps whose grace is over: with every poll */
    TELEMETRY_RECOVER, /* detected ones: every 5 minutes */
};

/* One round. An agent that cannot be asked costs no attempt. Each feed's `status` says how it went. */
void pawl__telemetry_recover(struct telemetry_colony *colony,
                             struct telemetry_feed *feeds,
                             size_t count,
                             enum telemetry_recovery recovery);

/* Nanoseconds since the feed last met the high-water mark; -1: it never did. */
int64_t pawl__telemetry_lag_ns(const struct telemetry_colony *colony,
                               const struct telemetry_feed *feed);

#endif
