/* Shared by the files of the SQLite backend: sqlite_store.c (open, transactions, handles) and one
 * file a subject. */
#ifndef PAWL_WORK_SQLITE_BACKEND_H
#define PAWL_WORK_SQLITE_BACKEND_H

#include "store/sqlite/pool.h"
#include "work/core/backend.h"
#include "work/sqlite/statements.h"

struct work_sqlite {
    struct work_backend base;
    struct pawl__clock *clock;
    const char *boot_id;
    _Atomic int64_t lowest_us; /* see work/core/age.h */
    char *path;                /* of the file itself, the same after a chdir */
    struct pawl__sqlite_pool pool;
    struct pawl__sqlite *writer; /* the committer's */
    struct work_now now;         /* of the transaction, ... */
    bool numbers;                /* ... which has submitted something, ... */
    int64_t submissions;         /* ... up to this number */
};

static inline struct work_sqlite *pawl__work_sqlite_of(struct work_backend *base)
{
    return (struct work_sqlite *)base; /* base is its first member */
}

/* A deadline of columns (boot id, boot clock, wall) as one on this boot's clock: another boot's has
 * passed, one without a boot goes by the wall. */
int64_t pawl__work_sqlite_deadline(const struct work_sqlite *backend,
                                   const struct work_now *now,
                                   pawl_view boot_id,
                                   int64_t deadline_ns,
                                   int64_t wall_us);

/* Columns that hold a time: NULL is 0. What is no time reads as 0, too. */
void pawl__work_bind_time(struct pawl__sqlite_stmt *stmt, int parameter, int64_t wall_us);
int64_t pawl__work_time(struct pawl__sqlite_stmt *stmt, int column);

/* An empty view is NULL. */
void pawl__work_bind_optional(struct pawl__sqlite_stmt *stmt, int parameter, pawl_view text);

/* The row that `stmt` stands on, with its texts as the statement has them: until the next step. */
void pawl__work_sqlite_row(const struct work_sqlite *backend,
                           const struct work_now *now,
                           struct pawl__sqlite_stmt *stmt,
                           struct work_row *ret_row);

/* The methods of items that are in files of their own: sqlite_put.c, sqlite_tasks.c, sqlite_look.c,
 * sqlite_edges.c. */
pawl_status pawl__work_sqlite_put(struct work_backend *base,
                                  const struct work_now *now,
                                  struct work_row *const *rows,
                                  size_t count,
                                  pawl_error *reterr);
/* Before the commit: the number of the last submission. */
PAWL_MUST_USE pawl_status pawl__work_sqlite_store_numbers(struct work_sqlite *backend,
                                                          pawl_error *reterr);
pawl_status pawl__work_sqlite_tasks(struct work_backend *base,
                                    const pawl_view *ids,
                                    size_t count,
                                    struct pawl__arena *arena,
                                    struct work_task *ret_tasks,
                                    pawl_error *reterr);
pawl_status pawl__work_sqlite_task_insert(struct work_backend *base,
                                          const struct work_now *now,
                                          const pawl_task *task,
                                          pawl_error *reterr);
pawl_status pawl__work_sqlite_task_set(struct work_backend *base,
                                       const struct work_now *now,
                                       pawl_view task_id,
                                       pawl_task_status status,
                                       bool by_user,
                                       pawl_error *reterr);
pawl_status pawl__work_sqlite_derive(struct work_backend *base,
                                     const struct work_now *now,
                                     const pawl_view *task_ids,
                                     size_t count,
                                     pawl_error *reterr);
pawl_status pawl__work_sqlite_settle(struct work_backend *base,
                                     const struct work_now *now,
                                     size_t count,
                                     uint64_t *ret_settled,
                                     pawl_error *reterr);
pawl_status pawl__work_sqlite_get(struct work_backend *base,
                                  pawl_view id,
                                  work_row_visit visit,
                                  void *context,
                                  pawl_error *reterr);
pawl_status pawl__work_sqlite_list(struct work_backend *base,
                                   const pawl_item_filter *filter,
                                   work_row_visit visit,
                                   void *context,
                                   pawl_error *reterr);
pawl_status pawl__work_sqlite_history(struct work_backend *base,
                                      pawl_view id,
                                      pawl_item_event_visit visit,
                                      void *context,
                                      pawl_error *reterr);
pawl_status pawl__work_sqlite_task_read(struct work_backend *base,
                                        const struct work_task_query *query,
                                        pawl_task_visit visit,
                                        void *context,
                                        pawl_error *reterr);

pawl_status pawl__work_sqlite_edges(struct work_backend *base,
                                    const pawl_view *after_ids,
                                    size_t count,
                                    void (*visit)(void *context, const struct work_edge *edge),
                                    void *context,
                                    pawl_error *reterr);
pawl_status pawl__work_sqlite_add_edges(struct work_backend *base,
                                        const struct work_edge *edges,
                                        size_t count,
                                        pawl_error *reterr);
pawl_status pawl__work_sqlite_comes_after(struct work_backend *base,
                                          pawl_view id,
                                          struct pawl__arena *arena,
                                          pawl_view *ret_ids,
                                          size_t room,
                                          size_t *ret_count,
                                          pawl_error *reterr);
pawl_status pawl__work_sqlite_orphans(struct work_backend *base,
                                      size_t count,
                                      struct pawl__arena *arena,
                                      pawl_view *ret_ids,
                                      size_t *ret_count,
                                      pawl_error *reterr);

extern const struct work_item_ops pawl__work_sqlite_items;
extern const struct work_checkpoint_ops pawl__work_sqlite_checkpoints;
extern const struct work_key_ops pawl__work_sqlite_keys;
extern const struct work_schedule_ops pawl__work_sqlite_schedules;
extern const struct work_maintenance_ops pawl__work_sqlite_maintenance;

#endif
