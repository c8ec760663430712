/* What both SQL databases share: the operations of work/core/backend.h whose statements take the same
 * values and return the same columns in SQLite and in PostgreSQL. Each database runs the statements in
 * its own way (struct work_sql_ops); sqlite/ and postgres/ also have the operations that differ. */
#ifndef PAWL_WORK_SQL_SQL_H
#define PAWL_WORK_SQL_SQL_H

#include "work/checkpoints/backend.h"
#include "work/core/backend.h"
#include "work/core/backend_maintenance.h"
#include "work/keys/backend.h"
#include "work/schedules/backend.h"

/* Statements that both databases have (sql/ENGINE/work/statements). */
/* clang-format off */
#define WORK_STATEMENTS(X) \
    X(BOUNDARY) X(CHANGES) X(CHANGES_BOUNDS) X(CHECKPOINT_ADD) X(CHECKPOINT_ARCHIVE) X(CHECKPOINT_CROWDED) X(CHECKPOINT_GET) \
    X(CHECKPOINT_ID_LOCK) X(CHECKPOINT_LIST) X(CHECKPOINT_LIST_TYPE) X(CHECKPOINT_NEWEST) \
    X(CHECKPOINT_NEWEST_TYPE) X(CHECKPOINT_REMOVE) X(CHECKPOINT_VERIFIED) X(CHECKPOINT_WALK) \
    X(COMES_AFTER) X(EDGES) X(EDGE_INSERT) X(EVIDENCE_ADD) X(EVIDENCE_RESULT) X(EXPIRED) X(GET) \
    X(HISTORY) X(KEY_CACHED) X(KEY_END) X(KEY_FLOOR) X(KEY_GET) X(KEY_INSERT) X(KEY_LOAD) \
    X(KEY_PRUNABLE) X(KEY_PRUNE_OLD) X(KEY_PRUNE_OVER) X(KEY_REPLACE) X(LEFT_EXPIRED) X(LIST) \
    X(LIST_OPEN) X(LIST_TASK) X(LOAD) X(LOAD_WAITING) X(OLD_HISTORY_REMOVE) X(OLD_ITEMS) \
    X(OLD_ITEMS_REMOVE) X(ORPHANS) X(PAGE) X(PAGE_BUSY) X(PAGE_TASK) X(SCHEDULE_FIRE) \
    X(SCHEDULE_FIRED) X(SCHEDULE_FORGET) X(SCHEDULE_LIST) X(SCHEDULE_LOAD) X(SCHEDULE_MOVE) \
    X(SCHEDULE_PUT) X(SCHEDULE_REMOVE) X(STATS_GROWTH) X(STATS_ITEMS) X(STATS_KEYS) \
    X(STATS_LEASES) X(STATS_TYPES) X(TASKS) X(TASKS_PAGE) X(TASKS_UNSETTLED) X(TASK_FACTS) \
    X(TASK_GET) X(TASK_INSERT) X(TASK_LOAD) X(TASK_SET) X(UNFINISHED)
/* clang-format on */

#define WORK_STATEMENT_ENUM(name) WORK_STMT_##name,
enum work_statement { WORK_STATEMENTS(WORK_STATEMENT_ENUM) WORK_STMT_COUNT };

enum { WORK_ROW_EXISTS_MS_MAX = 10000 }; /* of a SELECT that is evidence */

/* --- values --- */

enum work_value_kind {
    WORK_VALUE_NULL,
    WORK_VALUE_TEXT,
    WORK_VALUE_INT,
    WORK_VALUE_BOOL,
    WORK_VALUE_TIME,
    WORK_VALUE_TEXTS,
};

/* A parameter of a statement; texts are borrowed for the call. */
struct work_value {
    enum work_value_kind kind;
    union {
        pawl_view text;
        int64_t number;
        /* TEXTS: `count` views, each `stride` bytes after the one before. PostgreSQL takes them as one
         * array; SQLite runs the statement once per element. */
        struct {
            const pawl_view *first;
            size_t stride;
            size_t count;
        };
    };
};

static inline struct work_value sql_null(void)
{
    return (struct work_value){ .kind = WORK_VALUE_NULL };
}

static inline struct work_value sql_text(pawl_view text)
{
    return (struct work_value){ .kind = WORK_VALUE_TEXT, .text = text };
}

/* An empty text is NULL. */
static inline struct work_value sql_optional(pawl_view text)
{
    return text.len == 0 ? sql_null() : sql_text(text);
}

static inline struct work_value sql_name(const char *text)
{
    return sql_text(pawl_view_of(text));
}

static inline struct work_value sql_int(int64_t number)
{
    return (struct work_value){ .kind = WORK_VALUE_INT, .number = number };
}

static inline struct work_value sql_bool(bool value)
{
    return (struct work_value){ .kind = WORK_VALUE_BOOL, .number = value };
}

static inline struct work_value sql_time(int64_t wall_us)
{
    return (struct work_value){ .kind = WORK_VALUE_TIME, .number = wall_us };
}

/* The time 0 is NULL. */
static inline struct work_value sql_optional_time(int64_t wall_us)
{
    return wall_us == 0 ? sql_null() : sql_time(wall_us);
}

/* The limit of a list: 0 is none. */
static inline struct work_value sql_limit(uint64_t limit)
{
    return sql_int(limit == 0 || limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
}

static inline struct work_value sql_field_of(const pawl_view *first, size_t stride, size_t count)
{
    return (struct work_value){
        .kind = WORK_VALUE_TEXTS, .first = first, .stride = stride, .count = count
    };
}

static inline struct work_value sql_texts(const pawl_view *texts, size_t count)
{
    return sql_field_of(texts, sizeof(*texts), count);
}

static inline pawl_view pawl__work_value_at(const struct work_value *value, size_t index)
{
    return *(const pawl_view *)((const char *)value->first + index * value->stride);
}

/* The values of one statement, in order. PostgreSQL's statement takes as many of them as it has
 * parameters: those of SQLite alone (boot id, boot clock) come last. */
#define SQL_ARGS(...)                           \
    (const struct work_value[]){ __VA_ARGS__ }, \
        sizeof((const struct work_value[]){ __VA_ARGS__ }) / sizeof(struct work_value)
#define SQL_NO_ARGS NULL, 0

/* --- rows --- */

enum work_cell_kind {
    WORK_CELL_TEXT,
    WORK_CELL_INT,
    WORK_CELL_BOOL,
    WORK_CELL_REAL,
    WORK_CELL_TIME,
    WORK_CELL_IS_NULL,
};

union work_cell {
    pawl_view text;
    int64_t number; /* INT and TIME */
    bool truth;     /* BOOL and IS_NULL */
    double real;
};

/* The row that a statement stands on. Columns count from 0; NULL reads as 0 and as the empty view. */
struct work_columns {
    union work_cell (*cell)(const struct work_columns *row,
                            size_t column,
                            enum work_cell_kind kind);
    const void *result; /* the database's own */
    size_t index;
};

static inline pawl_view col_text(const struct work_columns *row, size_t column)
{
    return row->cell(row, column, WORK_CELL_TEXT).text;
}

static inline int64_t col_int(const struct work_columns *row, size_t column)
{
    return row->cell(row, column, WORK_CELL_INT).number;
}

static inline uint64_t col_count(const struct work_columns *row, size_t column)
{
    return (uint64_t)col_int(row, column);
}

static inline bool col_bool(const struct work_columns *row, size_t column)
{
    return row->cell(row, column, WORK_CELL_BOOL).truth;
}

static inline double col_real(const struct work_columns *row, size_t column)
{
    return row->cell(row, column, WORK_CELL_REAL).real;
}

static inline int64_t col_time(const struct work_columns *row, size_t column)
{
    return row->cell(row, column, WORK_CELL_TIME).number;
}

static inline bool col_is_null(const struct work_columns *row, size_t column)
{
    return row->cell(row, column, WORK_CELL_IS_NULL).truth;
}

/* Sees a row. CANCELLED ends the walk without an error; any other status but OK is the statement's. */
typedef pawl_status work_on_row(void *context, const struct work_columns *row, pawl_error *reterr);

/* A caller who sees records one by one. */
struct work_walk {
    union {
        pawl_checkpoint_growth_visit growth;
        pawl_item_event_visit event;
        pawl_work_change_visit change;
        pawl_schedule_visit schedule;
        pawl_task_visit task;
        pawl_type_stats_visit type_stats;
        work_checkpoint_light_visit checkpoint;
        work_count_visit *count;
        work_edge_visit *edge;
    } visit;
    void *context;
};

/* What a visitor's answer means to a walk. */
static inline pawl_status pawl__work_go_on(bool more)
{
    return more ? PAWL_OK : PAWL_CANCELLED;
}

/* --- statements --- */

struct work_step {
    enum work_statement statement;
    const struct work_value *values;
    size_t value_count;
    work_on_row *on_row; /* NULL: nobody looks at its rows */
    void *context;
    uint64_t *changed; /* grows by the number of rows it changed; NULL: nobody asks */
    bool locks;        /* it may wait for other nodes: PostgreSQL reads its clock again after it */
};

struct work_sql_backend {
    struct work_backend base;
    const struct work_sql_ops *ops;
    struct pawl__clock *clock;
    const char *boot_id;
    struct work_now now; /* of the transaction */
};

static inline struct work_sql_backend *pawl__work_sql_of(struct work_backend *base)
{
    return (struct work_sql_backend *)base; /* base is its first member */
}

struct work_sql_ops {
    /* Inside of a transaction. PostgreSQL: in one round trip. */
    pawl_status (*run)(struct work_sql_backend *sql,
                       const struct work_step *steps,
                       size_t count,
                       pawl_error *reterr);
    /* Reading: on a connection of the pool. Several statements see one moment. */
    pawl_status (*read)(struct work_sql_backend *sql,
                        const struct work_step *steps,
                        size_t count,
                        pawl_error *reterr);
    /* A deadline on now->ns from its column for people. SQLite also has columns with the boot id and the
     * boot clock, `column` and the next one: those of another boot say nothing, and then the deadline
     * has passed, or else `by_wall` leaves it to the wall time. */
    int64_t (*deadline)(const struct work_sql_backend *sql,
                        const struct work_now *now,
                        const struct work_columns *row,
                        size_t column,
                        int64_t wall_us,
                        bool by_wall);
    int load_tries; /* how often an item that is found in neither home is looked for */
};

/* A statement with its values, and one without. */
#define SQL_STEP(name, ...) pawl__work_step(name, SQL_ARGS(__VA_ARGS__))
#define SQL_STEP_ALONE(name) pawl__work_step(name, NULL, 0)

static inline struct work_step pawl__work_step(enum work_statement statement,
                                               const struct work_value *values,
                                               size_t value_count)
{
    return (
        struct work_step){ .statement = statement, .values = values, .value_count = value_count };
}

/* Runs one statement inside of a transaction. */
PAWL_MUST_USE pawl_status pawl__work_sql_run(struct work_backend *base,
                                             struct work_step step,
                                             pawl_error *reterr);

/* The same, and `on_row` sees its rows. _lock: it may wait for other nodes. _read: as a reader. */
typedef pawl_status work_sql_ask_fn(struct work_backend *base,
                                    struct work_step step,
                                    work_on_row *on_row,
                                    void *context,
                                    pawl_error *reterr);
PAWL_MUST_USE work_sql_ask_fn pawl__work_sql_ask;
PAWL_MUST_USE work_sql_ask_fn pawl__work_sql_lock;
PAWL_MUST_USE work_sql_ask_fn pawl__work_sql_read;

/* --- rows of items and tasks --- */

/* The item that a row holds; its texts are the row's. */
void pawl__work_sql_item(const struct work_sql_backend *sql,
                         const struct work_now *now,
                         const struct work_columns *row,
                         struct work_row *ret_row);
/* The same with its texts in the arena; NULL: no memory. */
struct work_row *pawl__work_sql_copy_item(const struct work_sql_backend *sql,
                                          const struct work_columns *row,
                                          struct pawl__arena *arena);

/* Adds the item of a row to those found. */
struct work_found {
    const struct work_sql_backend *sql;
    struct work_rows *rows;
};
work_on_row pawl__work_sql_add_item; /* its context is a struct work_found */
work_on_row pawl__work_sql_add_id;   /* its context is a struct work_ids */

work_on_row pawl__work_sql_read_int;   /* the first column; its context is an int64_t */
work_on_row pawl__work_sql_show_count; /* an id and a number; its context is a struct work_walk */

/* Gives rows that were loaded, in the order of their ids, to those ids that have none yet. */
void pawl__work_sql_match_rows(const pawl_view *ids,
                               size_t count,
                               const struct work_rows *found,
                               struct work_row **ret_rows);

/* The values that store a row: of a new item, of one that waits, of a change, and of a change of one
 * that waits. */
enum {
    WORK_INSERT_VALUES = 15,
    WORK_INSERT_WAITING_VALUES = WORK_INSERT_VALUES + 3,
    WORK_UPDATE_VALUES = 14,
    WORK_UPDATE_WAITING_VALUES = 4,
};
void pawl__work_sql_insert_values(const struct work_row *row, struct work_value *ret_values);
void pawl__work_sql_insert_waiting_values(const struct work_row *row,
                                          struct work_value *ret_values);
void pawl__work_sql_update_values(const pawl_item *item,
                                  pawl_item_status status,
                                  struct work_value *ret_values);
void pawl__work_sql_update_waiting_values(const struct work_row *row,
                                          struct work_value *ret_values);

/* What the task of a row of TASK_FACTS should be; true when it is not. */
bool pawl__work_sql_task_changes(const struct work_columns *row, pawl_task_status *ret_status);

/* --- operations --- */

work_load_fn pawl__work_sql_load;
work_load_fn pawl__work_sql_load_missing; /* those that ret_rows has not yet */
work_expired_fn pawl__work_sql_expired;
work_unfinished_fn pawl__work_sql_unfinished;
work_boundaries_fn pawl__work_sql_boundaries;
work_edges_fn pawl__work_sql_edges;
work_add_edges_fn pawl__work_sql_add_edges;
work_comes_after_fn pawl__work_sql_comes_after;
work_orphans_fn pawl__work_sql_orphans;
work_get_fn pawl__work_sql_get;
work_list_fn pawl__work_sql_list;
work_history_fn pawl__work_sql_history;
work_changes_fn pawl__work_sql_changes;
work_tasks_fn pawl__work_sql_tasks;
work_task_insert_fn pawl__work_sql_task_insert;
work_task_set_fn pawl__work_sql_task_set;
work_task_read_fn pawl__work_sql_task_read;

/* Operations that neither database has for itself. */
#define WORK_SQL_ITEM_OPS                                                                      \
    .expired = pawl__work_sql_expired, .unfinished = pawl__work_sql_unfinished,                \
    .boundaries = pawl__work_sql_boundaries, .comes_after = pawl__work_sql_comes_after,        \
    .orphans = pawl__work_sql_orphans, .get = pawl__work_sql_get, .list = pawl__work_sql_list, \
    .history = pawl__work_sql_history, .changes = pawl__work_sql_changes,                      \
    .tasks = pawl__work_sql_tasks, .task_insert = pawl__work_sql_task_insert,                  \
    .task_set = pawl__work_sql_task_set, .task_read = pawl__work_sql_task_read

extern const struct work_checkpoint_ops pawl__work_sql_checkpoints;
extern const struct work_key_ops pawl__work_sql_keys;
extern const struct work_schedule_ops pawl__work_sql_schedules;
extern const struct work_maintenance_ops pawl__work_sql_maintenance;

/* The tables of a backend that are all ours. */
#define WORK_SQL_SUBJECT_OPS                                                  \
    .checkpoints = &pawl__work_sql_checkpoints, .keys = &pawl__work_sql_keys, \
    .schedules = &pawl__work_sql_schedules, .maintenance = &pawl__work_sql_maintenance

#endif
