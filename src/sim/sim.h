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
PAWL_MUST_USE pawl_status pawl__sim_delivery(uint64_t seed,
                                             enum sim_defect defect,
                                             struct pawl__buf *trace,
                                             struct sim_report *ret_report,
                                             pawl_error *reterr);

#endif
