/* The interface of a store for idempotency keys. See work/core/backend.h for who calls what when. */
#ifndef PAWL_WORK_KEYS_BACKEND_H
#define PAWL_WORK_KEYS_BACKEND_H

#include "work/keys/decide.h"

/* False ends the walk. Texts are borrowed for the call. */
typedef bool (*work_key_visit)(void *context, const struct work_key_row *row);

/* Keys that `id` names: itself, or those of a task. */
typedef pawl_status work_key_walk_fn(struct work_backend *base,
                                     const struct work_now *now,
                                     pawl_view id,
                                     work_key_visit visit,
                                     void *context,
                                     pawl_error *reterr);

struct work_key_ops {
    /* --- inside of a transaction --- */

    /* The row, its texts in the arena, locked against other nodes; `known` is false when there is
     * none, and its owner_token is then the highest that a removed key had. Its deadline is on
     * now->ns: INT64_MIN for one that another boot set. */
    pawl_status (*load)(struct work_backend *base,
                        const struct work_now *now,
                        pawl_view key,
                        struct pawl__arena *arena,
                        struct work_key_row *ret_row,
                        pawl_error *reterr);

    /* Stores a row that was loaded and decided on. `known` false: it is new, and CONFLICT when
     * another node was quicker. The task is there, and so is the item, in either of its homes. */
    pawl_status (*put)(struct work_backend *base,
                       const struct work_key_row *row,
                       pawl_error *reterr);

    /* Removes up to `count` keys: those past their TTL whose owner's lease is not live, and those
     * that were completed before `completed_before_us`. */
    pawl_status (*prune)(struct work_backend *base,
                         const struct work_now *now,
                         int64_t completed_before_us,
                         size_t count,
                         uint64_t *ret_removed,
                         pawl_error *reterr);

    /* --- reading --- */

    work_key_walk_fn *get; /* NOT_FOUND */
    /* The completed ones of a task that are not past their TTL, by key. */
    work_key_walk_fn *cached;

    /* How many prune would remove in all. */
    pawl_status (*prunable)(struct work_backend *base,
                            const struct work_now *now,
                            int64_t completed_before_us,
                            uint64_t *ret_count,
                            pawl_error *reterr);
};

#endif
