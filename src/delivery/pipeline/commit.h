/* One transaction of the sink: the only way in which anything is settled. The normal path, retries and recovery all
 * end here. */
#ifndef PAWL_DELIVERY_PIPELINE_COMMIT_H
#define PAWL_DELIVERY_PIPELINE_COMMIT_H

#include "delivery/pipeline/internal.h"

/* Commits the outcomes, the losses that wait, and a cursor row that says `applied`. *ret_blame is set when it fails.
 * An outage opens the breaker; a lost fence breaks the pipeline. */
PAWL_MUST_USE pawl_status pawl__delivery_commit(struct delivery_pipeline *pipeline,
                                                const struct delivery_outcome *outcomes,
                                                size_t count,
                                                delivery_lsn applied,
                                                enum delivery_blame *ret_blame,
                                                pawl_error *reterr);

/* Commits changes of failed events, and what retries made of them; the applied LSN stays where it is. The rest as
 * above. */
PAWL_MUST_USE pawl_status
pawl__delivery_commit_changes(struct delivery_pipeline *pipeline,
                              const struct delivery_outcome *outcomes,
                              size_t count,
                              const struct delivery_failed_change *changes,
                              size_t change_count,
                              enum delivery_blame *ret_blame,
                              pawl_error *reterr);

/* False: nothing may be committed now, the breaker is open. Otherwise the lease is checked, and a commit whose outcome
 * nobody knows is looked up. */
PAWL_MUST_USE pawl_status pawl__delivery_ready(struct delivery_pipeline *pipeline,
                                               bool *ret_ready,
                                               pawl_error *reterr);

#endif
