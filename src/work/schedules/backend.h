/* The interface of a store for schedules. See work/core/backend.h for who calls what when. */
#ifndef PAWL_WORK_SCHEDULES_BACKEND_H
#define PAWL_WORK_SCHEDULES_BACKEND_H

#include "work/core/backend.h"

struct work_schedule_ops {
    /* --- inside of a transaction --- */

    /* The schedule, in the arena, locked against other nodes (it waits for them); *ret_schedule is
     * NULL when there is none. */
    pawl_status (*load)(struct work_backend *base,
                        pawl_view schedule_id,
                        struct pawl__arena *arena,
                        pawl_schedule **ret_schedule,
                        pawl_error *reterr);

    /* Inserts or replaces it as it is, next_slot_us included. Its task is there, or empty. What it
     * fired stays. */
    pawl_status (*put)(struct work_backend *base,
                       const struct work_now *now,
                       const pawl_schedule *schedule,
                       pawl_error *reterr);

    pawl_status (*remove)(struct work_backend *base,
                          pawl_view schedule_id,
                          bool *ret_removed,
                          pawl_error *reterr);

    /* Whether the slot has fired. */
    pawl_status (*fired)(struct work_backend *base,
                         pawl_view schedule_id,
                         int64_t slot_us,
                         bool *ret_fired,
                         pawl_error *reterr);

    /* Notes that it has. */
    pawl_status (*fire)(struct work_backend *base,
                        pawl_view schedule_id,
                        int64_t slot_us,
                        pawl_view work_item_id,
                        pawl_error *reterr);

    /* Forgets which slots before `before_us` have fired. */
    pawl_status (*forget)(struct work_backend *base,
                          pawl_view schedule_id,
                          int64_t before_us,
                          pawl_error *reterr);

    pawl_status (*move)(struct work_backend *base,
                        const struct work_now *now,
                        pawl_view schedule_id,
                        int64_t next_slot_us,
                        pawl_error *reterr);

    /* --- reading --- */

    /* By id, with last_slot_us. */
    pawl_status (*list)(struct work_backend *base,
                        pawl_schedule_visit visit,
                        void *context,
                        pawl_error *reterr);
};

#endif
