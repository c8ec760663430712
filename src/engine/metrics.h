/* How committers are doing, as metrics; the label `store` tells them apart: "ledger", "work", "app/NAME".
 *
 *   pawl_commit_batches_total   transactions of the committer, whether they succeeded or not
 *   pawl_commit_calls_total     calls that they served: divided by the batches, how many share a commit
 *   pawl_commit_waiting         calls whose turn has not come */
#ifndef PAWL_ENGINE_METRICS_H
#define PAWL_ENGINE_METRICS_H

#include "base/log/metrics.h"
#include "engine/committer.h"

struct pawl__commit_totals {
    uint64_t batches;
    uint64_t calls;
    size_t waiting;
};

/* Adds those of a committer. NULL, that of a handle which only reads, adds nothing. */
void pawl__commit_totals_add(struct pawl__commit_totals *totals, struct pawl__commit *commit);

/* Adds the metrics. */
PAWL_MUST_USE pawl_status pawl__commit_metrics_add(const struct pawl__commit_totals *totals,
                                                   const char *store,
                                                   struct pawl__metrics *registry,
                                                   pawl_error *reterr);

/* These metrics alone as text: malloc'ed, NUL-terminated. `ret_len` may be NULL. */
PAWL_MUST_USE pawl_status pawl__commit_metrics_text(const struct pawl__commit_totals *totals,
                                                    const char *store,
                                                    char **ret_text,
                                                    size_t *ret_len,
                                                    pawl_error *reterr);

#endif
