/* The pipelines of a data directory, wherever they are open: here, in a node (data/pawl.sock) or in a `pawl deliver` that runs
 * (data/deliver.sock). Its calls are those of <pawl/delivery.h>; asked of another process they answer the same. */
#ifndef PAWL_CLI_DELIVERY_REACH_H
#define PAWL_CLI_DELIVERY_REACH_H

#include <pawl/delivery.h>

#include "base/core/macros.h"
#include "cli/frame/run.h"

struct pawl__http_client;

struct pawl__cli_delivery {
    const struct pawl__cli_run *run;
    pawl_delivery *here;              /* NULL: another process has it */
    struct pawl__http_client *client; /* of that process */
};

/* Who has it is asked; else it is opened. Whoever does neither is waited for as the settings say. BUSY. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_reach(const struct pawl__cli_run *run,
                                                   struct pawl__cli_delivery *ret_delivery,
                                                   pawl_error *reterr);

/* The process that has it, without opening anything: NOT_FOUND: there is none. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_find_process(const struct pawl__cli_run *run,
                                                          struct pawl__cli_delivery *ret_delivery,
                                                          pawl_error *reterr);

/* Leaves it and returns `status`, or what closing failed with when that is PAWL_OK. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_leave(struct pawl__cli_delivery *delivery,
                                                   pawl_status status,
                                                   pawl_error *reterr);

/* Where a `pawl deliver` of this data directory listens; malloc'ed. */
PAWL_MUST_USE pawl_status pawl__cli_deliver_socket(const struct pawl__cli_run *run,
                                                   char **ret_path,
                                                   pawl_error *reterr);

/* Asks the process. The answer's text is added to `answer`; a problem fails here as it did there. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_ask(struct pawl__cli_delivery *delivery,
                                                 const char *method,
                                                 const char *target,
                                                 pawl_view body,
                                                 struct pawl__buf *answer,
                                                 pawl_error *reterr);

/* --- the calls (reach_calls.c) --- */

PAWL_MUST_USE pawl_status pawl__cli_pipeline_add(struct pawl__cli_delivery *delivery,
                                                 pawl_view declaration,
                                                 pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_pipeline_remove(struct pawl__cli_delivery *delivery,
                                                    const char *name,
                                                    bool unsafe_drop_pending,
                                                    pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_pipeline_start(struct pawl__cli_delivery *delivery,
                                                   const char *name,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_pipeline_pause(struct pawl__cli_delivery *delivery,
                                                   const char *name,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_pipeline_resume(struct pawl__cli_delivery *delivery,
                                                    const char *name,
                                                    pawl_error *reterr);
/* One, or all (NULL). */
PAWL_MUST_USE pawl_status pawl__cli_pipeline_visit(struct pawl__cli_delivery *delivery,
                                                   const char *name,
                                                   pawl_pipeline_visit visit,
                                                   void *context,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_pipeline_drain(struct pawl__cli_delivery *delivery,
                                                   const char *name,
                                                   uint32_t timeout_ms,
                                                   const pawl_watch *watch,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_wal_get_status(struct pawl__cli_delivery *delivery,
                                                   const char *name,
                                                   pawl_wal_status *ret_status,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_wal_read(struct pawl__cli_delivery *delivery,
                                             const char *name,
                                             const pawl_wal_filter *filter,
                                             pawl_page *page,
                                             pawl_wal_visit visit,
                                             void *context,
                                             pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_failed_list(struct pawl__cli_delivery *delivery,
                                                const char *pipeline,
                                                const pawl_failed_filter *filter,
                                                pawl_page *page,
                                                pawl_failed_visit visit,
                                                void *context,
                                                pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_failed_count(struct pawl__cli_delivery *delivery,
                                                 const char *pipeline,
                                                 pawl_failed_action action,
                                                 const pawl_failed_filter *filter,
                                                 uint64_t *ret_count,
                                                 pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_failed_act(struct pawl__cli_delivery *delivery,
                                               const char *pipeline,
                                               pawl_failed_action action,
                                               const pawl_failed_filter *filter,
                                               const pawl_failed_decision *decision,
                                               pawl_failed_result *ret_result,
                                               pawl_error *reterr);
/* Of a process that has the file. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_select(struct pawl__cli_delivery *delivery,
                                                    const char *sql,
                                                    const pawl_query_options *options,
                                                    pawl_query_visit visit,
                                                    void *context,
                                                    pawl_error *reterr);

#endif
