/* The interface of a store for statistics and retention. See work/core/backend.h for who calls what when. */
#ifndef PAWL_WORK_CORE_BACKEND_MAINTENANCE_H
#define PAWL_WORK_CORE_BACKEND_MAINTENANCE_H

#include "work/core/backend.h"

/* When statistics are taken. */
struct work_stats_at {
    int64_t wall_us;
    int64_t stale_before_us; /* a lease whose last heartbeat is older is stale */
};

struct work_maintenance_ops {
    /* --- inside of a transaction --- */

    /* Removes those of the items that have ended before `ended_before_us` (updated_at), with their
     * history. */
    pawl_status (*remove_items)(struct work_backend *base,
                                int64_t ended_before_us,
                                const pawl_view *ids,
                                size_t count,
                                uint64_t *ret_items,
                                uint64_t *ret_history,
                                pawl_error *reterr);

    /* --- reading --- */

    pawl_status (*stats)(struct work_backend *base,
                         const struct work_stats_at *at,
                         pawl_work_stats *ret_stats,
                         pawl_error *reterr);
    pawl_status (*type_stats)(struct work_backend *base,
                              const struct work_now *now,
                              pawl_type_stats_visit visit,
                              void *context,
                              pawl_error *reterr);
    pawl_status (*growth)(struct work_backend *base,
                          pawl_checkpoint_growth_visit visit,
                          void *context,
                          pawl_error *reterr);

    /* Up to `count` items after `after_id` that have ended before `ended_before_us`, by id, with
     * the number of their rows of history. */
    pawl_status (*old_items)(struct work_backend *base,
                             int64_t ended_before_us,
                             pawl_view after_id,
                             size_t count,
                             work_count_visit *visit,
                             void *context,
                             pawl_error *reterr);
};

#endif
