/* What a store must bring for statistics and retention. See work/core/backend.h for who calls what when. */
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

    /* Gives up to `pages` free pages back to the file system; *ret_bytes is 0 when there are no more.
     * NULL: the store does not, or does it by itself. */
    pawl_status (*give_back)(struct work_backend *base,
                             size_t pages,
                             uint64_t *ret_bytes,
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

    /* Up to `count` items behind `after_id` that have ended before `ended_before_us`, by id, with
     * the number of their rows of history. */
    pawl_status (*old_items)(struct work_backend *base,
                             int64_t ended_before_us,
                             pawl_view after_id,
                             size_t count,
                             bool (*visit)(void *context, pawl_view id, uint64_t history),
                             void *context,
                             pawl_error *reterr);

    /* What give_back has left to give, in bytes. NULL with it. */
    pawl_status (*free_bytes)(struct work_backend *base, uint64_t *ret_bytes, pawl_error *reterr);
};

#endif
