/* Delivering again what the sink has lost: entries that the WAL still has, and messages that the source has once more. Steps
 * of the pipeline, like apply: one thread at a time. Whoever calls has asked the sink: nothing here is in it. */
#ifndef PAWL_DELIVERY_PIPELINE_REPLAY_H
#define PAWL_DELIVERY_PIPELINE_REPLAY_H

#include "delivery/pipeline/internal.h"

/* The sink may have other numbers of events than its cursor row says: somebody removed rows. Makes the row follow, so that
 * what is delivered again is not counted twice. */
PAWL_MUST_USE pawl_status pawl__delivery_recount(struct delivery_pipeline *pipeline,
                                                 const struct delivery_counters *there,
                                                 pawl_error *reterr);

/* Entries at or below the applied LSN that are no exceptions become exceptions, which are due at once: the same LSN, because
 * a sink that is made anew from the WAL must meet each event once. */
PAWL_MUST_USE pawl_status pawl__delivery_replay_entries(struct delivery_pipeline *pipeline,
                                                        const delivery_lsn *lsns,
                                                        size_t count,
                                                        pawl_error *reterr);

/* A message that neither sink nor WAL has. */
struct delivery_missing {
    const struct delivery_message *message;
    bool id_taken; /* the sink has its id with another payload: a conflict */
};

/* Appends them, durably, each event once. *ret_count: how many; duplicates among them are left out. */
PAWL_MUST_USE pawl_status pawl__delivery_replay_messages(struct delivery_pipeline *pipeline,
                                                         const struct delivery_missing *missing,
                                                         size_t count,
                                                         size_t *ret_count,
                                                         pawl_error *reterr);

#endif
