/* Items in PostgreSQL: how rows get where they belong. They are collected until the next trip, so that
 * all that a group changes goes out as one statement per kind of move. */
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

/* --- collecting --- */

static bool make_room(struct work_postgres *backend, size_t more)
{
    size_t wanted = backend->write_count + more;
    size_t room = MAX(backend->write_room, (size_t)64);

    if (wanted <= backend->write_room) {
        return true;
    }
    while (room < wanted) {
        room *= 2;
    }
    struct work_pg_write *writes = realloc(backend->writes, room * sizeof(*writes));
    if (writes == NULL) {
        return false;
    }
    backend->writes = writes;
    backend->write_room = room;
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
static pawl_status collect(struct work_postgres *backend,
                           struct work_row *row,
                           int64_t first_new,
                           pawl_error *reterr)
{
    bool waits = row->item.status == PAWL_ITEM_WAITING;
    struct work_pg_write *write = &backend->writes[backend->write_count];

    write->move = move_of(row->home, waits);
    if (write->move == WORK_PG_MOVE_IN) {
        row->entries++;
        /* A store notes a change by a time that differs from the one before. */
        row->item.updated_at_us += row->item.status != PAWL_ITEM_PENDING;
    }
    int64_t number = row->submission;
    if (row->home == WORK_NOWHERE) {
        number = -(first_new + row->submission);
        backend->new_count = MAX(backend->new_count, first_new + row->submission + 1);
        row->submission = 0; /* the server's to give */
    }
    row->home = waits ? WORK_IN_WAITING : WORK_IN_ITEMS;
    row->handle = backend->serial;
    write->row = *row;
    write->row.submission = number;
    /* The only text that may be the caller's own for this moment. */
    if (row->item.error_message.len > 0
        && !pawl__arena_copy(
            &backend->arena, row->item.error_message, &write->row.item.error_message)) {
        return no_memory(reterr);
    }
    backend->notify |= waits || row->item.status == PAWL_ITEM_PENDING;
    if (row->item.status == PAWL_ITEM_PENDING) {
        backend->prefetched.picked = false; /* it may come before those that were picked */
        pawl__work_pg_came_in(backend, row);
    }
    backend->write_count++;
    return PAWL_OK;
}

/* Sends what was collected before. */
static pawl_status flush(struct work_postgres *backend, pawl_error *reterr)
{
    struct work_pg_trip trip;

    pawl__work_pg_trip_start(&trip, backend, reterr);
    return pawl__work_pg_trip_end(&trip);
}

pawl_status pawl__work_pg_put(struct work_backend *base,
                              struct work_row *const *rows,
                              size_t count,
                              pawl_error *reterr)
{
    struct work_postgres *backend = pawl__work_pg_of(base);

    if (backend->new_count + (int64_t)count > WORK_PG_NUMBERS) {
        TRY(flush(backend, reterr));
    }
    int64_t first_new = backend->new_count;
    for (size_t i = 0; i < count; i++) {
        if (rows[i]->handle == backend->serial) {
            TRY(flush(backend, reterr)); /* one statement can change a row but once */
            first_new = 0;
        }
        if (!make_room(backend, count - i)) {
            return no_memory(reterr);
        }
        TRY(collect(backend, rows[i], first_new, reterr));
    }
    return PAWL_OK;
}

/* --- sending --- */

/* Rows of one kind on their way into arrays. */
struct sending {
    struct work_postgres *backend;
    size_t at;
    size_t statements;
    const struct work_pg_write *chunk[CHUNK_ROWS_MAX];
    size_t count;
};

static bool is_one_of(enum work_pg_move move, unsigned moves)
{
    return (moves >> move & 1) != 0;
}

static size_t bytes_of(const struct work_pg_write *write)
{
    const pawl_item *item = &write->row.item;

    return item->input_data.len + item->output_data.len + item->error_message.len;
}

/* The next rows of these kinds; false at the end. `unless_pending`: not those that are. */
static bool next_chunk(struct sending *sending, unsigned moves, bool unless_pending)
{
    const struct work_postgres *backend = sending->backend;
    size_t bytes = 0;

    sending->count = 0;
    for (; sending->at < backend->write_count && sending->count < CHUNK_ROWS_MAX; sending->at++) {
        const struct work_pg_write *write = &backend->writes[sending->at];
        if (!is_one_of(write->move, moves)
            || (unless_pending && write->row.item.status == PAWL_ITEM_PENDING)) {
            continue;
        }
        bytes += bytes_of(write);
        if (sending->count > 0 && bytes > CHUNK_BYTES_MAX) {
            break;
        }
        sending->chunk[sending->count++] = write;
    }
    return sending->count > 0;
}

/* The values of a row in one of the statements below. */
static size_t values_of(const struct work_pg_write *write,
                        size_t statement,
                        struct work_value *ret_values)
{
    struct work_row row = write->row;

    switch (statement) {
    case WORK_PG_ITEM_UPDATE:
        pawl__work_sql_update_values(&row.item,
                                     row.item.status == PAWL_ITEM_WAITING ? PAWL_ITEM_PENDING
                                                                          : row.item.status,
                                     ret_values);
        return WORK_UPDATE_VALUES;
    case WORK_PG_ITEM_INSERT:
        /* One that is not pending is changed once more: then with another time. */
        row.item.updated_at_us -=
            write->move == WORK_PG_MOVE_IN && row.item.status != PAWL_ITEM_PENDING;
        pawl__work_sql_insert_values(&row, ret_values);
        return WORK_INSERT_VALUES;
    case WORK_PG_WAITING_INSERT:
        pawl__work_sql_insert_waiting_values(&row, ret_values);
        return WORK_INSERT_WAITING_VALUES;
    case WORK_PG_WAITING_UPDATE:
        pawl__work_sql_update_waiting_values(&row, ret_values);
        return WORK_UPDATE_WAITING_VALUES;
    default:
        ret_values[0] = sql_text(row.item.work_item_id);
        return 1;
    }
}

static pawl_status send_chunk(struct sending *sending, size_t statement, pawl_error *reterr)
{
    struct pawl__pg_array *arrays = sending->backend->arrays;
    const char *letters = pawl__work_pg_statements[statement].params;
    struct pawl__pg_value values[WORK_PG_ARRAYS];
    size_t count = strlen(letters);

    for (size_t i = 0; i < count; i++) {
        pawl__pg_array_start(&arrays[i], letters[i], sending->count);
    }
    for (size_t i = 0; i < sending->count; i++) {
        struct work_value row[WORK_PG_ARRAYS];
        size_t row_count = values_of(sending->chunk[i], statement, row);
        REQUIRE(row_count == count);
        pawl__work_pg_add_row(arrays, row, count);
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = pawl__pg_array_value(&arrays[i]);
    }
    sending->statements++;
    return pawl__pg_pipeline_add(sending->backend->pg.writer, statement, values, count, reterr);
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

static pawl_status send_all(struct sending *sending, pawl_error *reterr)
{
    struct work_postgres *backend = sending->backend;
    unsigned moves = 0;

    for (size_t i = 0; i < backend->write_count; i++) {
        moves |= 1U << backend->writes[i].move;
    }
    if (backend->new_count > 0) {
        sending->statements++;
        TRY(pawl__pg_pipeline_add(backend->pg.writer, WORK_PG_NUMBER, PG_NO_ARGS, reterr));
    }
    for (size_t i = 0; i < COUNT_OF(sendings); i++) {
        sending->at = 0;
        while ((sendings[i].moves & moves) != 0
               && next_chunk(sending, sendings[i].moves, sendings[i].unless_pending)) {
            TRY(send_chunk(sending, sendings[i].statement, reterr));
        }
    }
    return PAWL_OK;
}

pawl_status pawl__work_pg_add_writes(struct work_postgres *backend,
                                     size_t *ret_count,
                                     pawl_error *reterr)
{
    struct sending sending = { .backend = backend };
    pawl_status status = send_all(&sending, reterr);

    backend->write_count = 0;
    backend->new_count = 0;
    backend->serial++;
    *ret_count = sending.statements;
    return status;
}
