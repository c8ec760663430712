/* The interface of a store for checkpoints. See work/core/backend.h for who calls what when. */
#ifndef PAWL_WORK_CHECKPOINTS_BACKEND_H
#define PAWL_WORK_CHECKPOINTS_BACKEND_H

#include "work/core/backend.h"

/* What came of looking at one piece of evidence. */
struct work_checkpoint_result {
    size_t ordinal;
    bool ok;
    pawl_view detail;
};

/* Which checkpoints of a task. */
struct work_checkpoint_query {
    pawl_view task_id;
    pawl_view work_item_id;           /* empty: any; as it was given, also when the item is gone */
    const pawl_checkpoint_type *type; /* NULL: any */
    bool verified_only;
    int64_t below;     /* numbers below this one; 0: all */
    int64_t from;      /* numbers from this one on; 0: all */
    int64_t exactly;   /* this number; 0: any */
    bool newest_first; /* else in the order of their numbers */
    uint64_t limit;    /* 0: none */
};

/* False ends the walk. Texts are borrowed for the call. */
typedef bool (*work_checkpoint_light_visit)(void *context,
                                            pawl_view checkpoint_id,
                                            pawl_checkpoint_type type,
                                            bool verified);

struct work_checkpoint_ops {
    /* --- inside of a transaction --- */

    /* The checkpoint with its evidence, in the arena; *ret_checkpoint is NULL when there is none. */
    pawl_status (*find)(struct work_backend *base,
                        pawl_view checkpoint_id,
                        struct pawl__arena *arena,
                        pawl_checkpoint **ret_checkpoint,
                        pawl_error *reterr);

    /* Stores it under the task's next number, which comes from the counter row, locked until the
     * transaction ends, and is never given twice, also when checkpoints were removed. The task is
     * there, and so is the item, in either of its homes. Its evidence is stored with one good result
     * each. sequence_number and created_at_us are not looked at. */
    pawl_status (*add)(struct work_backend *base,
                       const struct work_now *now,
                       const pawl_checkpoint *checkpoint,
                       int64_t *ret_sequence,
                       pawl_error *reterr);

    /* Stores results and whether all of them were good. A checkpoint that is gone is no error. */
    pawl_status (*record)(struct work_backend *base,
                          const struct work_now *now,
                          const pawl_checkpoint *checkpoint,
                          const struct work_checkpoint_result *results,
                          size_t count,
                          pawl_error *reterr);

    /* All checkpoints of a task, newest first, until `visit` says no. */
    pawl_status (*walk)(struct work_backend *base,
                        pawl_view task_id,
                        work_checkpoint_light_visit visit,
                        void *context,
                        pawl_error *reterr);

    /* Removes them with evidence and results; with `archive` into checkpoints_archive first. */
    pawl_status (*remove)(struct work_backend *base,
                          const struct work_now *now,
                          pawl_view task_id,
                          const pawl_view *ids,
                          size_t count,
                          bool archive,
                          pawl_error *reterr);

    /* --- reading --- */

    pawl_status (*get)(struct work_backend *base,
                       pawl_view checkpoint_id,
                       pawl_checkpoint_visit visit,
                       void *context,
                       pawl_error *reterr); /* NOT_FOUND */
    pawl_status (*list)(struct work_backend *base,
                        const struct work_checkpoint_query *query,
                        pawl_checkpoint_visit visit,
                        void *context,
                        pawl_error *reterr);

    /* Tasks with more than `more_than` checkpoints. */
    pawl_status (*crowded)(struct work_backend *base,
                           uint64_t more_than,
                           work_count_visit *visit,
                           void *context,
                           pawl_error *reterr);
};

#endif
