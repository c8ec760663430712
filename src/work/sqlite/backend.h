/* Shared by the files of the SQLite backend: backend.c (open, transactions, handles), run.c (how
 * statements run), items.c, write_items.c and tasks.c (operations that PostgreSQL has otherwise). */
#ifndef PAWL_WORK_SQLITE_BACKEND_H
#define PAWL_WORK_SQLITE_BACKEND_H

#include "store/sqlite/pool.h"
#include "work/sql/sql.h"
#include "work/sqlite/statements.h"

struct work_sqlite {
    struct work_sql_backend sql;
    _Atomic int64_t lowest_us; /* see work/core/age.h */
    char *path;                /* of the file itself, the same after a chdir */
    struct pawl__sqlite_pool pool;
    struct pawl__sqlite *writer; /* the committer's */
    bool numbers;                /* the transaction has submitted something, ... */
    int64_t submissions;         /* ... up to this number */
};

static inline struct work_sqlite *pawl__work_sqlite_of(struct work_backend *base)
{
    return (struct work_sqlite *)base; /* it is its first member's first member */
}

extern const struct work_sql_ops pawl__work_sqlite_sql;

/* Runs a statement of this database alone. For each row it calls `on_row`, which may be NULL. */
PAWL_MUST_USE pawl_status pawl__work_sqlite_run(struct pawl__sqlite *db,
                                                size_t statement,
                                                const struct work_value *values,
                                                size_t value_count,
                                                work_on_row *on_row,
                                                void *context,
                                                pawl_error *reterr);

work_put_fn pawl__work_sqlite_put;
work_derive_fn pawl__work_sqlite_derive;
work_settle_fn pawl__work_sqlite_settle;

/* Before the commit: stores the number of the last submission. */
PAWL_MUST_USE pawl_status pawl__work_sqlite_store_numbers(struct work_sqlite *backend,
                                                          pawl_error *reterr);

extern const struct work_item_ops pawl__work_sqlite_items;

#endif
