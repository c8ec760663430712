/* Simulations that people and tests run: a seed in, a verdict out. */
#ifndef PAWL_SIM_SIM_H
#define PAWL_SIM_SIM_H

#include "base/core/buf.h"

/* Mistakes that a pipeline could make, planted into the models around it. A simulation that does not find them proves
 * nothing. */
enum sim_defect {
    SIM_NO_DEFECT,
    SIM_ACK_BEFORE_FSYNC,
    SIM_PROCESS_COUNTER_ID,
    SIM_CONFIRM_BEFORE_COMMIT,
    SIM_NO_FENCING,
    SIM_ACK_ALL, /* one acknowledgement stands for those before it, over a connection that loses some */
    SIM_SAME_EPOCH,   /* the sink is rebuilt without a new epoch */
    SIM_WAL_REPLACED, /* and nobody notices */
    SIM_TTL_BY_WALL_CLOCK,
    SIM_CONFLICT_AS_DUPLICATE,
    SIM_DEFECT_COUNT,
};
const char *pawl__sim_defect_name(enum sim_defect defect); /* "ack-before-fsync" */

/* What may happen in a run, as bits. */
enum sim_fault {
    SIM_KILL = 1 << 0,  /* the process dies, also in the middle of a commit that arrives late */
    SIM_POWER = 1 << 1, /* and the disk forgets what was not synced */
    SIM_CALLS = 1 << 2, /* calls fail, or do their work and lose the answer */
    SIM_CONNECTION = 1 << 3, /* messages and acknowledgements are lost or change their order */
    SIM_OUTAGE = 1 << 4,     /* the sink is out of order for a while */
    SIM_CLOCK = 1 << 5,      /* the wall clock steps by an hour */
    SIM_STREAM = 1 << 6,     /* it is purged, recreated, or loses its tail */
    SIM_STORES = 1 << 7,     /* WAL and sink are lost, or replaced by older copies */
    SIM_ALL_FAULTS = (1 << 8) - 1,
};
enum { SIM_FAULT_COUNT = 8 };
const char *pawl__sim_fault_name(size_t bit); /* "kill"; NULL beyond the last */

/* A pipeline's settings, for those who have others than the simulation. */
struct sim_settings {
    uint32_t retries_max;
    int64_t retry_interval_ns;
    int64_t retry_backoff_ns;
    int64_t entry_ttl_ns;
    int64_t lease_ns;
    bool no_sync; /* the WAL answers before its disk has the bytes */
};

struct sim_options {
    uint64_t seed;
    unsigned faults; /* of sim_fault */
    enum sim_defect defect;
    const struct sim_settings *settings; /* NULL: short times, so that more happens */
};

/* What a run did and found. */
struct sim_report {
    uint64_t hash;      /* of the trace */
    uint64_t published; /* messages that the broker acknowledged */
    uint64_t delivered; /* rows */
    uint64_t failed;    /* rows of failed_events */
    uint64_t on_record; /* rows of delivery_losses */
    uint64_t faults;    /* injected */
    uint64_t reopened;  /* how often the pipeline was opened */
    bool is_clean;
    char violation[200]; /* of the first promise that was broken; "" when it is clean */
};

/* Runs delivery once. `trace` may be NULL. FAILED or NOMEM: the simulation itself could not run. */
PAWL_MUST_USE pawl_status pawl__sim_delivery(const struct sim_options *options,
                                             struct pawl__buf *trace,
                                             struct sim_report *ret_report,
                                             pawl_error *reterr);

/* The same for telemetry. `published`: rows that agents took, `delivered`: rows of the colony, `failed`: rejected rows,
 * `on_record`: ids in permanent gaps, `reopened`: how often agents and colony were opened. */
enum sim_telemetry_defect {
    SIM_TELEMETRY_NO_DEFECT,
    SIM_UNRECORDED_HOLE,    /* the checkpoint passes a hole that is not recorded */
    SIM_REMOTE_GRACE,       /* the grace runs on the agent's clock */
    SIM_RECOVERED_WITHOUT,  /* a gap is recovered without its rows */
    SIM_UNBOUNDED_RECOVERY, /* a recovery query has no end */
    SIM_WALL_RETENTION,     /* an agent removes rows by the wall clock */
    SIM_SAME_SESSION,       /* a restored agent goes on as if nothing had happened */
    SIM_BAD_ROW_STOPS,      /* one bad row stops its data type */
    SIM_RESET_DOUBLES,      /* a reset reads rows again and keeps the old ones */
    SIM_TELEMETRY_DEFECT_COUNT,
};
const char *pawl__sim_telemetry_defect_name(
    enum sim_telemetry_defect defect); /* "unrecorded-hole" */

PAWL_MUST_USE pawl_status pawl__sim_telemetry(uint64_t seed,
                                              enum sim_telemetry_defect defect,
                                              struct pawl__buf *trace,
                                              struct sim_report *ret_report,
                                              pawl_error *reterr);

#endif
