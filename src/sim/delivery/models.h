/* What the three models share. */
#ifndef PAWL_SIM_DELIVERY_MODELS_H
#define PAWL_SIM_DELIVERY_MODELS_H

#include "base/core/error.h"
#include "sim/delivery/model.h"

#define SIM_OF(member, pointer) \
    ((struct sim_delivery *)(void *)((char *)(pointer)-offsetof(struct sim_delivery, member)))

/* Before a call: PAWL_OK lets it happen. CANCELLED: the process is dead, or dies now. Otherwise the call fails without
 * having done anything. */
static inline pawl_status sim_before(struct sim_delivery *sim,
                                     unsigned fail_per_mille,
                                     pawl_status failure,
                                     pawl_error *reterr)
{
    if (sim->is_alive && pawl__sim_strikes(sim, SIM_KILL | SIM_POWER, 4)) {
        pawl__sim_crash(sim);
    }
    if (!sim->is_alive) {
        return pawl__fail(reterr, PAWL_CANCELLED, "the process is dead");
    }
    if (pawl__sim_strikes(sim, SIM_CALLS, fail_per_mille)) {
        sim->faults++;
        pawl__sim_trace(&sim->world, "a call fails", (uint64_t)failure, 0);
        return pawl__fail(reterr, failure, "it does not answer");
    }
    return PAWL_OK;
}

/* After a call that did its work: the answer may be lost, with or without the process. */
static inline pawl_status sim_after(struct sim_delivery *sim,
                                    unsigned lose_per_mille,
                                    pawl_status failure,
                                    pawl_error *reterr)
{
    if (pawl__sim_strikes(sim, SIM_KILL | SIM_POWER, 6)) {
        pawl__sim_crash(sim);
        return pawl__fail(reterr, PAWL_CANCELLED, "the process is dead");
    }
    if (pawl__sim_strikes(sim, SIM_CALLS, lose_per_mille)) {
        sim->faults++;
        pawl__sim_trace(&sim->world, "an answer is lost", (uint64_t)failure, 0);
        return pawl__fail(reterr, failure, "the answer was lost");
    }
    return PAWL_OK;
}

struct delivery_source_ops pawl__sim_source_ops(void);
struct delivery_wal_ops pawl__sim_wal_ops(void);
struct delivery_sink_ops pawl__sim_sink_ops(void);

#endif
