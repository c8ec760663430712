/* One more attempt at a failed event. */
#ifndef PAWL_DELIVERY_PIPELINE_RETRY_H
#define PAWL_DELIVERY_PIPELINE_RETRY_H

#include "delivery/pipeline/commit.h"

struct delivery_attempt {
    enum delivery_outcome_kind kind; /* ROW, FILTERED; TO_FAILED: refused, and pending again */
    char error[DELIVERY_ERROR_SIZE]; /* TO_FAILED */
};

/* PAWL_OK also when the event was refused. `decision` has who, when, notes and edited payload. After another status the
 * row may still be `retrying`: the next start or the next retry takes it up. */
PAWL_MUST_USE pawl_status pawl__delivery_retry_failed(struct delivery_pipeline *pipeline,
                                                      const struct delivery_failed_row *row,
                                                      const struct delivery_decision *decision,
                                                      struct delivery_attempt *ret_attempt,
                                                      pawl_error *reterr);

/* UNAVAILABLE: the breaker is open. Otherwise the sink can be written to. */
PAWL_MUST_USE pawl_status pawl__delivery_be_ready(struct delivery_pipeline *pipeline,
                                                  pawl_error *reterr);

/* In the WAL, durably. After a failure the pipeline has to be opened again, as after any other of the WAL. */
PAWL_MUST_USE pawl_status pawl__delivery_keep_decisions(struct delivery_pipeline *pipeline,
                                                        const struct delivery_decision *decisions,
                                                        size_t count,
                                                        pawl_error *reterr);

#endif
