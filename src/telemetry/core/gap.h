/* Gaps: ranges of sequence ids that the colony does not have, and what becomes of them.
 *
 *                      asked again after the grace                 3 attempts without progress
 *     hole -> suspected -------------------------> detected <-> recovering ----------------> permanent
 *        |        |                                    |                                        ^
 *        |        +---------- every id is there -------+--> recovered                           |
 *        +------- below min_available_seq_id, or its session or generation has ended -----------+
 *
 * A gap that is open or permanent covers exactly the ids that are missing: what is found leaves it. */
#ifndef PAWL_TELEMETRY_CORE_GAP_H
#define PAWL_TELEMETRY_CORE_GAP_H

#include "base/os/clock.h"
#include "telemetry/core/page.h"

enum telemetry_gap_status {
    TELEMETRY_GAP_SUSPECTED,
    TELEMETRY_GAP_DETECTED,
    TELEMETRY_GAP_RECOVERING,
    TELEMETRY_GAP_RECOVERED,
    TELEMETRY_GAP_PERMANENT,
    TELEMETRY_GAP_STATUS_COUNT,
};
const char *pawl__telemetry_gap_status_name(enum telemetry_gap_status status); /* "suspected" */
PAWL_MUST_USE pawl_status pawl__telemetry_gap_status_parse(pawl_view name,
                                                           enum telemetry_gap_status *ret_status,
                                                           pawl_error *reterr);
bool pawl__telemetry_gap_is_open(enum telemetry_gap_status status);

enum telemetry_gap_reason {
    TELEMETRY_GAP_HOLE,      /* rows were missing between others */
    TELEMETRY_GAP_RETENTION, /* the agent says that it has removed them */
    TELEMETRY_GAP_SESSION,   /* the agent's database was replaced */
    TELEMETRY_GAP_FORK,      /* the agent's database was restored */
    TELEMETRY_GAP_ATTEMPTS,  /* asked for in vain */
    TELEMETRY_GAP_REASON_COUNT,
};
const char *pawl__telemetry_gap_reason_name(enum telemetry_gap_reason reason); /* "retention" */
PAWL_MUST_USE pawl_status pawl__telemetry_gap_reason_parse(pawl_view name,
                                                           enum telemetry_gap_reason *ret_reason,
                                                           pawl_error *reterr);

struct telemetry_gap {
    uint64_t id; /* 0: not stored yet */
    struct telemetry_id session;
    struct telemetry_id generation;
    uint64_t start; /* both included */
    uint64_t end;
    enum telemetry_gap_status status;
    enum telemetry_gap_reason reason;
    uint32_t attempts;
    uint64_t run;    /* the run of the colony that saw it first ... */
    int64_t seen_ns; /* ... and when, on that run's boot clock */
};

/* Starts with zeroes. */
struct telemetry_gaps {
    struct telemetry_gap *at;
    size_t count;
    size_t room;
};
PAWL_MUST_USE pawl_status pawl__telemetry_gaps_add(struct telemetry_gaps *gaps,
                                                   const struct telemetry_gap *gap,
                                                   pawl_error *reterr);
void pawl__telemetry_gaps_done(struct telemetry_gaps *gaps);

/* When this run of the colony began, and how long it waits. */
struct telemetry_gap_rules {
    uint64_t run;
    int64_t run_began_ns;
    int64_t grace_ns;
    uint32_t attempts_max;
};

/* Whether a suspected gap is to be asked for again. The grace of a gap that an earlier run saw begins with this run:
 * clocks of two runs do not compare, and later is safe. */
bool pawl__telemetry_gap_grace_is_over(const struct telemetry_gap *gap,
                                       const struct telemetry_gap_rules *rules,
                                       int64_t now_ns);

/* What an answer to a query for exactly this range makes of the gap: `changes` gets the gap itself (its id first) and
 * what it was split into. The rows of the page are to be stored in the same transaction. */
PAWL_MUST_USE pawl_status pawl__telemetry_gap_judge(const struct telemetry_gap *gap,
                                                    const struct telemetry_page *page,
                                                    const struct telemetry_gap_rules *rules,
                                                    struct telemetry_gaps *changes,
                                                    pawl_error *reterr);

/* The part of an open gap above `limit` is lost: adds to `changes` what changes. */
PAWL_MUST_USE pawl_status pawl__telemetry_gap_cut(const struct telemetry_gap *gap,
                                                  uint64_t limit,
                                                  enum telemetry_gap_reason reason,
                                                  struct telemetry_gaps *changes,
                                                  pawl_error *reterr);

/* How many of each agent's waiting ranges a round asks for: at most `budget` in all, one from each in turn, beginning
 * with agent `first`. */
void pawl__telemetry_share(
    const size_t *waiting, size_t agents, size_t first, size_t budget, size_t *ret_shares);

#endif
