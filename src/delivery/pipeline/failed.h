/* What people do about failed events. The states and which of them follow each other stand in core/failed.h.
 *
 * These are steps of the pipeline, like apply: one thread at a time. An action that returned PAWL_OK is in the sink and
 * in the WAL, so that either of them can be lost. In between, in this order:
 *
 *   retry     1. `retrying` is committed      a crash here: `pending` again on start
 *             2. the row, `resolved` and the cursor row in one transaction
 *             3. the decision in the WAL      a crash before it: copied from the sink on start
 *   resolve   as from 2, without a row
 *   abandon
 *
 * Reading needs no pipeline: read_failed and count_failed of the sink. */
#ifndef PAWL_DELIVERY_PIPELINE_FAILED_H
#define PAWL_DELIVERY_PIPELINE_FAILED_H

#include "delivery/pipeline/pipeline.h"

struct delivery_failed_request {
    enum delivery_failed_action action;
    struct delivery_failed_query query; /* its page does not count. With an id: that one */
    uint64_t expected;                  /* without an id: how many were counted before */
    pawl_view who;                      /* must be given */
    pawl_view notes;
    pawl_view
        edited_payload; /* retry of one id: JSON in place of the payload, which is kept. Empty: as it is */
};

struct delivery_failed_result {
    uint64_t matched;
    uint64_t delivered;              /* retry: they are rows now */
    uint64_t filtered;               /* retry: the mapping wants no row */
    uint64_t refused;                /* retry: they failed again and are pending */
    uint64_t closed;                 /* resolve, abandon */
    char error[DELIVERY_ERROR_SIZE]; /* of the last one that was refused */
};

/* NOT_FOUND: no such id. CONFLICT: it is resolved already, or other than `expected` match by now. INVALID: nobody is
 * named, texts are too long, an edited payload is not JSON. UNAVAILABLE: the sink is out. After an error the result
 * says what was done before it. */
PAWL_MUST_USE pawl_status pawl__delivery_failed_act(struct delivery_pipeline *pipeline,
                                                    const struct delivery_failed_request *request,
                                                    struct delivery_failed_result *ret_result,
                                                    pawl_error *reterr);

/* How many the action would be about: `expected`. */
PAWL_MUST_USE pawl_status pawl__delivery_failed_count(struct delivery_sink *sink,
                                                      enum delivery_failed_action action,
                                                      const struct delivery_failed_query *query,
                                                      uint64_t *ret_count,
                                                      pawl_error *reterr);

/* Calls `write` with each row that the query means as a line of JSON, in pages of its own. */
typedef pawl_status delivery_failed_writer(void *context, pawl_view line, pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_failed_export(struct delivery_sink *sink,
                                                       const struct delivery_failed_query *query,
                                                       delivery_failed_writer *write,
                                                       void *context,
                                                       pawl_error *reterr);

/* After a start: decisions that the sink has lost are made again, and those that the WAL lacks are copied. Nothing to
 * do once it is done. A decision on an entry that is still to be applied waits for it. */
PAWL_MUST_USE pawl_status pawl__delivery_restore_decisions(struct delivery_pipeline *pipeline,
                                                           pawl_error *reterr);

#endif
