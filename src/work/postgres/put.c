/* Items in PostgreSQL: how rows get where they belong. What is put is kept until the next trip, so
 * that all that a group changes goes out as one statement a kind. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

enum { CHUNK_ROWS_MAX = 1000 };           /* in one statement, ... */
enum { WORK_PG_NUMBERS = 65536 };         /* the step of work_submissions */
#define CHUNK_BYTES_MAX ((size_t)4 << 20) /* ... unless they have more bytes than this */

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for items");
}

/* --- keeping --- */

static bool make_room(struct work_postgres *backend, size_t more)
{
    size_t wanted = backend->put_count + more;
    size_t room = MAX(backend->put_room, (size_t)64);

    if (wanted <= backend->put_room) {
        return true;
    }
    while (room < wanted) {
        room *= 2;
    }
    struct work_pg_put *puts = realloc(backend->puts, room * sizeof(*puts));
    if (puts == NULL) {
        return false;
    }
    backend->puts = puts;
    backend->put_room = room;
    return true;
}

static enum work_pg_move move_of(enum work_home home, bool waits)
{
    switch (home) {
    case WORK_NOWHERE:
        return waits ? WORK_PG_INSERT_WAITING : WORK_PG_INSERT;
    case WORK_IN_ITEMS:
        return waits ? WORK_PG_MOVE_OUT : WORK_PG_UPDATE;
    case WORK_IN_WAITING:
        break;
    }
    return waits ? WORK_PG_UPDATE_WAITING : WORK_PG_MOVE_IN;
}

/* `first_new`: the index in this trip of the call's first new row. */
static pawl_status keep_put(struct work_postgres *backend,
                            struct work_row *row,
                            int64_t first_new,
                            pawl_error *reterr)
{
    bool waits = row->item.status == PAWL_ITEM_WAITING;
    struct work_pg_put *put = &backend->puts[backend->put_count];

    put->move = move_of(row->home, waits);
    if (put->move == WORK_PG_MOVE_IN) {
        row->entries++;
        /* A store notes a change by a time that differs from the one before. */
        row->item.updated_at_us += row->item.status != PAWL_ITEM_PENDING;
    }
    int64_t number = row->submission;
    if (row->home == WORK_NOWHERE) {
        number = -(first_new + row->submission);
        backend->put_new = MAX(backend->put_new, first_new + row->submission + 1);
        row->submission = 0; /* the server's to give */
    }
    row->home = waits ? WORK_IN_WAITING : WORK_IN_ITEMS;
    row->handle = backend->serial;
    put->row = *row;
    put->row.submission = number;
    /* The only text that may be the caller's own for this moment. */
    if (row->item.error_message.len > 0
        && !pawl__arena_copy(
            &backend->arena, row->item.error_message, &put->row.item.error_message)) {
        return no_memory(reterr);
    }
    backend->notify |= waits || row->item.status == PAWL_ITEM_PENDING;
    if (row->item.status == PAWL_ITEM_PENDING) {
        backend->brought.picked = false; /* it may come before what was brought */
        pawl__work_pg_came_in(backend, row);
    }
    backend->put_count++;
    return PAWL_OK;
}

/* Sends what was put before. */
static pawl_status flush(struct work_postgres *backend, pawl_error *reterr)
{
    struct work_pg_trip trip;
    pawl_status status = pawl__work_pg_trip_start(&trip, backend, reterr);

    return pawl__work_pg_trip_end(&trip, status, reterr);
}

pawl_status pawl__work_pg_put(struct work_backend *base,
                              const struct work_now *now,
                              struct work_row *const *rows,
                              size_t count,
                              pawl_error *reterr)
{
    struct work_postgres *backend = pawl__work_pg_of(base);
    pawl_status status = PAWL_OK;

    (void)now;
    if (backend->put_new + (int64_t)count > WORK_PG_NUMBERS) {
        status = flush(backend, reterr);
    }
    int64_t first_new = backend->put_new;
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        if (rows[i]->handle == backend->serial) {
            /* One statement can change a row but once. */
            status = flush(backend, reterr);
            first_new = 0;
        }
        if (status == PAWL_OK && !make_room(backend, count - i)) {
            status = no_memory(reterr);
        }
        if (status == PAWL_OK) {
            status = keep_put(backend, rows[i], first_new, reterr);
        }
    }
    return status;
}

/* --- sending --- */

/* Rows of one kind on their way into arrays. */
struct puts_walk {
    struct work_postgres *backend;
    size_t at;
    size_t statements;
    const struct work_pg_put *chunk[CHUNK_ROWS_MAX];
    size_t count;
};

static bool is_one_of(enum work_pg_move move, unsigned moves)
{
    return (moves >> move & 1) != 0;
}

static size_t bytes_of(const struct work_pg_put *put)
{
    const pawl_item *item = &put->row.item;

    return item->input_data.len + item->output_data.len + item->error_message.len;
}

/* The next rows of these kinds; false at the end. `unless_pending`: not those that are. */
static bool next_chunk(struct puts_walk *walk, unsigned moves, bool unless_pending)
{
    const struct work_postgres *backend = walk->backend;
    size_t bytes = 0;

    walk->count = 0;
    for (; walk->at < backend->put_count && walk->count < CHUNK_ROWS_MAX; walk->at++) {
        const struct work_pg_put *put = &backend->puts[walk->at];
        if (!is_one_of(put->move, moves)
            || (unless_pending && put->row.item.status == PAWL_ITEM_PENDING)) {
            continue;
        }
        bytes += bytes_of(put);
        if (walk->count > 0 && bytes > CHUNK_BYTES_MAX) {
            break;
        }
        walk->chunk[walk->count++] = put;
    }
    return walk->count > 0;
}

static void start_arrays(struct work_postgres *backend, const char *letters, size_t count)
{
    for (size_t i = 0; letters[i] != '\0'; i++) {
        pawl__pg_array_start(&backend->arrays[i], letters[i], count);
    }
}

static pawl_status send_arrays(struct puts_walk *walk, size_t statement, pawl_error *reterr)
{
    struct work_postgres *backend = walk->backend;
    struct pawl__pg_value values[WORK_PG_ARRAYS];
    size_t count = strlen(pawl__work_pg_statements[statement].params);

    for (size_t i = 0; i < count; i++) {
        values[i] = pawl__pg_array_value(&backend->arrays[i]);
    }
    walk->statements++;
    return pawl__pg_pipeline_add(backend->pg.writer, statement, values, count, reterr);
}

static void add_updates(struct puts_walk *walk)
{
    struct pawl__pg_array *a = walk->backend->arrays;

    start_arrays(walk->backend, pawl__work_pg_statements[WORK_PG_ITEM_UPDATE].params, walk->count);
    for (size_t i = 0; i < walk->count; i++) {
        const pawl_item *item = &walk->chunk[i]->row.item;
        pawl_item_status status =
            item->status == PAWL_ITEM_WAITING ? PAWL_ITEM_PENDING : item->status;
        pawl__pg_array_add_view(&a[0], item->work_item_id);
        pawl__pg_array_add_view(&a[1], pawl_view_of(pawl__work_item_status_text(status)));
        pawl__pg_array_add_i64(&a[2], item->retry_count);
        pawl__pg_array_add_i64(&a[3], item->attempts);
        pawl__pg_array_add_i64(&a[4], (int64_t)item->token);
        pawl__work_pg_add_optional(&a[5], item->lease_holder);
        pawl__work_pg_add_optional(&a[6], item->output_data);
        pawl__work_pg_add_optional(&a[7], item->error_message);
        pawl__work_pg_add_time(&a[8], item->started_at_us);
        pawl__work_pg_add_time(&a[9], item->completed_at_us);
        pawl__work_pg_add_time(&a[10], item->updated_at_us);
        pawl__work_pg_add_time(&a[11], item->lease_acquired_at_us);
        pawl__work_pg_add_time(&a[12], item->lease_expires_at_us);
        pawl__work_pg_add_time(&a[13], item->heartbeat_at_us);
    }
}

static const char *reason_text(enum work_reason reason)
{
    return reason == WORK_BACKOFF ? "backoff" : reason == WORK_DEPENDENCY ? "dependency" : "delay";
}

/* Both tables begin alike. */
static void add_inserts(struct puts_walk *walk, size_t statement)
{
    struct pawl__pg_array *a = walk->backend->arrays;

    start_arrays(walk->backend, pawl__work_pg_statements[statement].params, walk->count);
    for (size_t i = 0; i < walk->count; i++) {
        const struct work_row *row = &walk->chunk[i]->row;
        pawl__pg_array_add_view(&a[0], row->item.work_item_id);
        pawl__pg_array_add_view(&a[1], row->item.task_id);
        pawl__pg_array_add_view(&a[2], row->item.work_type);
        pawl__pg_array_add_i64(&a[3], row->item.priority);
        pawl__pg_array_add_i64(&a[4], row->item.retry_count);
        pawl__pg_array_add_i64(&a[5], row->item.max_retries);
        pawl__pg_array_add_i64(&a[6], row->item.attempts);
        pawl__pg_array_add_i64(&a[7], (int64_t)row->item.token);
        pawl__pg_array_add_i64(&a[8], row->entries);
        pawl__work_pg_add_optional(&a[9], row->item.input_data);
        pawl__work_pg_add_optional(&a[10], row->item.error_message);
        pawl__work_pg_add_time(&a[11], row->item.created_at_us);
        pawl__work_pg_add_time(&a[12], row->item.started_at_us);
        /* One that is not pending is changed once more: then with another time. */
        pawl__work_pg_add_time(&a[13],
                               row->item.updated_at_us
                                   - (walk->chunk[i]->move == WORK_PG_MOVE_IN
                                      && row->item.status != PAWL_ITEM_PENDING));
        pawl__pg_array_add_i64(&a[14], row->submission);
        if (statement == WORK_PG_WAITING_INSERT) {
            pawl__pg_array_add_view(&a[15], pawl_view_of(reason_text(row->reason)));
            pawl__work_pg_add_time(&a[16], row->item.due_at_us);
            pawl__pg_array_add_i64(&a[17], row->waits_for);
        }
    }
}

static void add_waiting_updates(struct puts_walk *walk)
{
    struct pawl__pg_array *a = walk->backend->arrays;

    start_arrays(
        walk->backend, pawl__work_pg_statements[WORK_PG_WAITING_UPDATE].params, walk->count);
    for (size_t i = 0; i < walk->count; i++) {
        const struct work_row *row = &walk->chunk[i]->row;
        pawl__pg_array_add_view(&a[0], row->item.work_item_id);
        pawl__work_pg_add_time(&a[1], row->item.updated_at_us);
        pawl__pg_array_add_view(&a[2], pawl_view_of(reason_text(row->reason)));
        pawl__pg_array_add_i64(&a[3], row->waits_for);
    }
}

static void add_ids(struct puts_walk *walk)
{
    start_arrays(walk->backend, "T", walk->count);
    for (size_t i = 0; i < walk->count; i++) {
        pawl__pg_array_add_view(&walk->backend->arrays[0], walk->chunk[i]->row.item.work_item_id);
    }
}

static void add_chunk(struct puts_walk *walk, size_t statement)
{
    switch (statement) {
    case WORK_PG_ITEM_UPDATE:
        add_updates(walk);
        return;
    case WORK_PG_ITEM_INSERT:
    case WORK_PG_WAITING_INSERT:
        add_inserts(walk, statement);
        return;
    case WORK_PG_WAITING_UPDATE:
        add_waiting_updates(walk);
        return;
    default:
        add_ids(walk);
    }
}

/* What is sent, in this order: an item that moves is in the other table before it leaves the one, so
 * that the DELETE finds its token there (0002_numbers.sql). */
static const struct {
    size_t statement;
    unsigned moves;
    bool unless_pending;
} sendings[] = {
    { WORK_PG_ITEM_UPDATE, 1U << WORK_PG_UPDATE | 1U << WORK_PG_MOVE_OUT, false },
    { WORK_PG_WAITING_INSERT, 1U << WORK_PG_INSERT_WAITING | 1U << WORK_PG_MOVE_OUT, false },
    { WORK_PG_ITEM_DELETE, 1U << WORK_PG_MOVE_OUT, false },
    { WORK_PG_WAITING_UPDATE, 1U << WORK_PG_UPDATE_WAITING, false },
    { WORK_PG_ITEM_INSERT, 1U << WORK_PG_INSERT | 1U << WORK_PG_MOVE_IN, false },
    { WORK_PG_WAITING_DELETE, 1U << WORK_PG_MOVE_IN, false },
    { WORK_PG_RELINK_CHECKPOINTS, 1U << WORK_PG_MOVE_IN, false },
    { WORK_PG_RELINK_KEYS, 1U << WORK_PG_MOVE_IN, false },
    { WORK_PG_ITEM_UPDATE, 1U << WORK_PG_MOVE_IN, true },
};

pawl_status pawl__work_pg_add_puts(struct work_postgres *backend,
                                   size_t *ret_count,
                                   pawl_error *reterr)
{
    struct puts_walk walk = { .backend = backend };
    unsigned moves = 0;
    pawl_status status = PAWL_OK;

    *ret_count = 0;
    for (size_t i = 0; i < backend->put_count; i++) {
        moves |= 1U << backend->puts[i].move;
    }
    if (backend->put_new > 0) {
        walk.statements++;
        status = pawl__pg_pipeline_add(backend->pg.writer, WORK_PG_NUMBER, PG_NO_ARGS, reterr);
    }
    for (size_t i = 0; i < COUNT_OF(sendings); i++) {
        walk.at = 0;
        while (status == PAWL_OK && (sendings[i].moves & moves) != 0
               && next_chunk(&walk, sendings[i].moves, sendings[i].unless_pending)) {
            add_chunk(&walk, sendings[i].statement);
            status = send_arrays(&walk, sendings[i].statement, reterr);
        }
    }
    backend->put_count = 0;
    backend->put_new = 0;
    backend->serial++;
    *ret_count = walk.statements;
    return status;
}
