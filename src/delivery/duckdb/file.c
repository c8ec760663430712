/* The file: opened, its id, opened again. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "delivery/duckdb/internal.h"
#include "store/schemas.h"

static pawl_status take_id(pawl_view bytes, struct delivery_uuid *ret_id, pawl_error *reterr)
{
    if (bytes.len != sizeof(ret_id->bytes)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "an id has %zu bytes", bytes.len);
    }
    memcpy(ret_id->bytes, bytes.data, sizeof(ret_id->bytes));
    return PAWL_OK;
}

static pawl_status read_id(struct pawl__duck_conn *conn,
                           struct delivery_uuid *ret_id,
                           bool *ret_found,
                           pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query_text(
        conn, pawl__delivery_duck_statements[DELIVERY_DUCK_SINK_ID], DUCK_NO_ARGS, &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    *ret_found = pawl__duck_has_row(rows);
    return *ret_found ? take_id(pawl__duck_get_bytes(rows, 0), ret_id, reterr) : PAWL_OK;
}

static pawl_status make_id(struct delivery_duckdb_file *file,
                           struct pawl__duck_conn *conn,
                           struct pawl__random *random,
                           pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    struct delivery_uuid id;

    TRY(pawl__random_bytes(random, id.bytes, sizeof(id.bytes), reterr));
    TRY(pawl__duck_query_text(
        conn,
        pawl__delivery_duck_statements[DELIVERY_DUCK_SINK_ID_ADD],
        DUCK_ARGS(pawl__duck_bytes((pawl_view){ (const char *)id.bytes, sizeof(id.bytes) }),
                  pawl__duck_time(pawl__wall_us(file->clock))),
        &rows,
        reterr));
    file->sink_id = id;
    return PAWL_OK;
}

/* `random` NULL: the file must have the id that we know. */
static pawl_status open_db(struct delivery_duckdb_file *file,
                           struct pawl__random *random,
                           bool *ret_new,
                           pawl_error *reterr)
{
    AUTO(pawl__duck_close_p) struct pawl__duck *db = NULL;
    struct pawl__duck_conn *conn = NULL;
    struct delivery_uuid id;
    bool is_found = false;

    TRY(pawl__duck_open(file->path, &file->options, &db, reterr));
    TRY(pawl__duck_connect(db, &conn, reterr));
    pawl_status status =
        pawl__migrate(&pawl__duck_migrate_ops, conn, &pawl__schema_duckdb_delivery, reterr);
    if (status == PAWL_OK) {
        status = read_id(conn, &id, &is_found, reterr);
    }
    if (status == PAWL_OK && random != NULL) {
        if (is_found) {
            file->sink_id = id;
        } else {
            status = make_id(file, conn, random, reterr);
        }
    } else if (status == PAWL_OK && (!is_found || memcmp(&id, &file->sink_id, sizeof(id)) != 0)) {
        status = pawl__fail(
            reterr, PAWL_CORRUPT, "'%s' is not the file that was open before", file->path);
    }
    pawl__duck_disconnect(conn);
    TRY(status);
    file->db = STEAL(db);
    *ret_new = !is_found;
    return PAWL_OK;
}

/* A file that is not there is no reason to stop. */
static pawl_status move_aside(const char *path, int *ret_number, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__duck_quarantine(path, ret_number, &error);

    return status == PAWL_OK || status == PAWL_NOT_FOUND ? PAWL_OK
                                                         : pawl__fail_with(reterr, status, &error);
}

static pawl_status open_or_quarantine(struct delivery_duckdb_file *file,
                                      const struct delivery_duckdb_options *options,
                                      struct delivery_duckdb_opened *opened,
                                      pawl_error *reterr)
{
    struct pawl__random *random = options->random != NULL ? options->random : pawl__random_real();
    pawl_error error = PAWL_ERROR_INIT;

    if (options->replace) {
        TRY(move_aside(file->path, &opened->quarantined, reterr));
    }
    pawl_status status = open_db(file, random, &opened->is_new, &error);

    if (status == PAWL_CORRUPT && options->quarantine) {
        opened->why = error;
        TRY(pawl__duck_quarantine(file->path, &opened->quarantined, reterr));
        TRY(open_db(file, random, &opened->is_new, reterr));
    } else if (status != PAWL_OK) {
        return pawl__fail_with(reterr, status, &error);
    }
    opened->cut_bytes = pawl__duck_cut_bytes(file->db);
    return PAWL_OK;
}

pawl_status pawl__delivery_duckdb_open(const struct delivery_duckdb_options *options,
                                       struct delivery_duckdb_file **ret_file,
                                       struct delivery_duckdb_opened *ret_opened,
                                       pawl_error *reterr)
{
    AUTO(pawl__delivery_duckdb_close_p)
    struct delivery_duckdb_file *file = calloc(1, sizeof(*file));
    struct delivery_duckdb_opened opened = { .why = PAWL_ERROR_INIT };

    TRY(pawl__check_memory(file, "a sink's file", reterr));
    pawl__lock_cond_init(&file->lock, &file->left);
    file->options = options->duck;
    file->clock = pawl__clock_or_real(options->duck.clock);
    file->path = strdup(options->path);
    TRY(pawl__check_memory(file->path, "a path", reterr));
    TRY(open_or_quarantine(file, options, &opened, reterr));
    if (ret_opened != NULL) {
        *ret_opened = opened;
    }
    *ret_file = STEAL(file);
    return PAWL_OK;
}

void pawl__delivery_duckdb_close(struct delivery_duckdb_file *file)
{
    if (file == NULL) {
        return;
    }
    REQUIRE(file->sinks == NULL && file->readers == NULL);
    pawl__duck_close(file->db);
    pawl__lock_cond_done(&file->lock, &file->left);
    free(file->path);
    free(file);
}

/* --- one caller at a time --- */

/* They return soon: DuckDB ends what it is doing for them, and they wait for nobody. */
static void cut_readers_locked(struct delivery_duckdb_file *file) REQUIRES_LOCK(file->lock)
{
    file->is_reopening = true;
    for (struct delivery_duckdb_reader *reader = file->readers; reader != NULL;
         reader = reader->next) {
        pawl__duck_interrupt(reader->conn);
    }
    while (file->readers != NULL) {
        pawl__cond_wait(&file->left, &file->lock);
    }
    file->is_reopening = false;
}

static pawl_status reopen_locked(struct delivery_duckdb_file *file, pawl_error *reterr)
    REQUIRES_LOCK(file->lock)
{
    bool is_new = false;

    if (file->is_reopening) { /* the one who does it waits for readers, perhaps for the caller */
        return pawl__fail(reterr, PAWL_BUSY, "'%s' is being opened again", file->path);
    }
    cut_readers_locked(file);
    for (struct delivery_duckdb_sink *sink = file->sinks; sink != NULL; sink = sink->next) {
        pawl__duck_disconnect(STEAL(sink->conn));
    }
    pawl__duck_close(STEAL(file->db));
    TRY(open_db(file, NULL, &is_new, reterr));
    file->is_in_doubt = false;
    return PAWL_OK;
}

/* --- readers --- */

static size_t count_readers_locked(const struct delivery_duckdb_file *file)
    REQUIRES_LOCK(file->lock)
{
    size_t count = 0;

    for (const struct delivery_duckdb_reader *reader = file->readers; reader != NULL;
         reader = reader->next) {
        count++;
    }
    return count;
}

static pawl_status admit_reader_locked(struct delivery_duckdb_file *file,
                                       struct delivery_duckdb_reader *reader,
                                       pawl_error *reterr) REQUIRES_LOCK(file->lock)
{
    if (file->is_reopening || file->is_in_doubt || file->db == NULL) {
        return pawl__fail(reterr, PAWL_BUSY, "'%s' is being opened again", file->path);
    }
    if (count_readers_locked(file) >= DELIVERY_READERS_MAX) {
        return pawl__fail(
            reterr, PAWL_BUSY, "%d queries run at the moment, the limit", DELIVERY_READERS_MAX);
    }
    TRY(pawl__duck_connect(file->db, &reader->conn, reterr));
    reader->next = file->readers;
    file->readers = reader;
    return PAWL_OK;
}

pawl_status pawl__delivery_duckdb_begin_reading(struct delivery_duckdb_file *file,
                                                struct pawl__duck_conn **ret_conn,
                                                pawl_error *reterr)
{
    struct delivery_duckdb_reader *reader = calloc(1, sizeof(*reader));

    TRY(pawl__check_memory(reader, "a query", reterr));
    pawl__lock(&file->lock);
    pawl_status status = admit_reader_locked(file, reader, reterr);
    pawl__unlock(&file->lock);
    if (status != PAWL_OK) {
        free(reader);
        return status;
    }
    *ret_conn = reader->conn;
    return PAWL_OK;
}

void pawl__delivery_duckdb_end_reading(struct delivery_duckdb_file *file,
                                       struct pawl__duck_conn *conn)
{
    pawl__lock(&file->lock);
    struct delivery_duckdb_reader **link = &file->readers;
    while ((*link)->conn != conn) {
        link = &(*link)->next;
    }
    struct delivery_duckdb_reader *reader = *link;
    *link = reader->next;
    pawl__duck_disconnect(conn);
    free(reader);
    pawl__cond_broadcast(&file->left);
    pawl__unlock(&file->lock);
}

static pawl_status connect_sink(struct delivery_duckdb_sink *sink, pawl_error *reterr)
{
    TRY(pawl__duck_connect(sink->file->db, &sink->conn, reterr));
    pawl_status status = pawl__delivery_duckdb_fit_table(sink, reterr);
    if (status == PAWL_OK) {
        status = pawl__duck_prepare(
            sink->conn, pawl__delivery_duck_statements, DELIVERY_DUCK_COUNT, reterr);
    }
    if (status != PAWL_OK) {
        pawl__duck_disconnect(STEAL(sink->conn));
    }
    return status;
}

static pawl_status make_ready_locked(struct delivery_duckdb_sink *sink, pawl_error *reterr)
    REQUIRES_LOCK(sink->file->lock)
{
    if (sink->file->is_in_doubt || sink->file->db == NULL) {
        TRY(reopen_locked(sink->file, reterr));
    }
    return sink->conn == NULL ? connect_sink(sink, reterr) : PAWL_OK;
}

pawl_status pawl__delivery_duckdb_enter(struct delivery_duckdb_sink *sink,
                                        pawl_error *reterr) NO_LOCK_ANALYSIS
{
    pawl__lock(&sink->file->lock);
    return make_ready_locked(sink, reterr);
}

/* After these DuckDB may have given the database up ("invalidated"), or our wrapper the handle. */
static bool may_be_spoilt(pawl_status status)
{
    switch (status) {
    case PAWL_IO:
    case PAWL_NO_SPACE:
    case PAWL_CORRUPT:
    case PAWL_FAILED:
    case PAWL_UNAVAILABLE:
        return true;
    default:
        return false;
    }
}

pawl_status pawl__delivery_duckdb_leave(struct delivery_duckdb_sink *sink,
                                        pawl_status status) NO_LOCK_ANALYSIS
{
    sink->file->is_in_doubt |= may_be_spoilt(status);
    pawl__unlock(&sink->file->lock);
    return status;
}
