/* Copies of records that own their texts: in an arena, or handed to a caller as one block of memory. */
#ifndef PAWL_WORK_CORE_COPY_H
#define PAWL_WORK_CORE_COPY_H

#include "work/keys/decide.h"

/* --- into an arena; false without memory: the copy is incomplete --- */

PAWL_MUST_USE bool pawl__work_copy_checkpoint(struct pawl__arena *arena,
                                              const pawl_checkpoint *from,
                                              pawl_checkpoint *ret_copy);
PAWL_MUST_USE bool pawl__work_copy_item(struct pawl__arena *arena,
                                        const pawl_item *from,
                                        pawl_item *ret_copy);
PAWL_MUST_USE bool pawl__work_copy_task(struct pawl__arena *arena,
                                        const pawl_task *from,
                                        pawl_task *ret_copy);
PAWL_MUST_USE bool pawl__work_copy_schedule(struct pawl__arena *arena,
                                            const pawl_schedule *from,
                                            pawl_schedule *ret_copy);
PAWL_MUST_USE bool pawl__work_copy_key(struct pawl__arena *arena,
                                       const struct work_key_row *from,
                                       struct work_key_row *ret_copy);

/* A list of ids in an arena, in the order in which they were added. */
struct work_id_list {
    struct pawl__arena *arena;
    struct work_id {
        pawl_view id;
        struct work_id *next;
    } * first, *last;
    bool nomem; /* one could not be added */
};
bool pawl__work_id_list_add(struct work_id_list *ids,
                            pawl_view id); /* a copy; false without memory */

/* --- out to a caller --- */

/* A record of zeros that a caller gets, and the arena of what it points to; NULL without memory. */
void *pawl__work_record_new(size_t size, struct pawl__arena **ret_arena);
void pawl__work_record_free(void *record); /* with its arena; NULL is fine */

PAWL_MUST_USE pawl_status pawl__work_copy_out_rows(struct work_row *const *rows,
                                                   size_t count,
                                                   pawl_claimed **ret_claimed,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_copy_out_items(const pawl_item *items,
                                                    size_t count,
                                                    pawl_claimed **ret_claimed,
                                                    pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_copy_out_item(const pawl_item *item,
                                                   pawl_item **ret_item,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_copy_out_task(const pawl_task *task,
                                                   pawl_task **ret_task,
                                                   pawl_error *reterr);

#endif
