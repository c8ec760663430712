/* The ledger on SQLite against SQLite itself, doing the same durable work in the same run.
 *
 *   ledger/batch     batches of 1,000 events against prepared inserts into the same table and
 *                    indexes, one transaction a batch
 *   ledger/threads   64 threads, one event a call, against one transaction an event, and against
 *                    transactions of as many events as the group commit reached
 *   ledger/tail      a reader over the log against a SELECT of the same columns
 *
 * Both sides have synchronous=FULL, ids in time order and 300 bytes of JSON an event. The bare side
 * is given its hashes; the ledger makes them. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include <pawl/ledger.h>

#include "base/core/macros.h"
#include "base/core/uuid.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "engine/committer.h"
#include "ledger/core/internal.h"

enum { BATCH = 1000, BATCHES = 20, ROUNDS = 5, THREADS = 64, ROUND_MS = 1000, PAYLOAD_BYTES = 300 };

struct place {
    char dir[64];
    char path[96];
    pawl_ledger *ledger;
    sqlite3 *db; /* the bare side, on a file with the same schema */
    sqlite3_stmt *insert;
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    int64_t offset;
};

#define MUST(call)                                                    \
    do {                                                              \
        pawl_error error_ = PAWL_ERROR_INIT;                          \
        pawl_error *err = &error_;                                    \
        if ((call) != PAWL_OK) {                                      \
            fprintf(stderr, "ledger: %s: %s\n", #call, err->message); \
            exit(1);                                                  \
        }                                                             \
    } while (0)

#define SQL(db, call)                                                       \
    do {                                                                    \
        if ((call) != SQLITE_OK) {                                          \
            fprintf(stderr, "ledger: %s: %s\n", #call, sqlite3_errmsg(db)); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

static char payload[PAYLOAD_BYTES + 1];

/* Like what an agent says: a few names, a number, mostly text. */
static void make_payload(void)
{
    int len =
        snprintf(payload,
                 sizeof(payload),
                 "{\"tick\":1234,\"mood\":0.75,\"to\":[\"ada\",\"ben\"],\"note\":\"line\\none\","
                 "\"text\":\"");

    memset(&payload[len], 'x', sizeof(payload) - (size_t)len);
    memcpy(&payload[PAYLOAD_BYTES - 2], "\"}", 3);
}

static void make_id(char ret_id[PAWL__UUID_TEXT_SIZE])
{
    struct pawl__uuid uuid;

    MUST(pawl__uuid_next(pawl__uuid_process(), &uuid, err));
    pawl__uuid_text(&uuid, ret_id);
}

static pawl_event make_event(const char *id)
{
    return (pawl_event){ .size = sizeof(pawl_event),
                         .id = { id, PAWL__UUID_TEXT_SIZE - 1 },
                         .run_id = pawl_view_of("village-2026-01-29"),
                         .turn = 17,
                         .kind = pawl_view_of("say"),
                         .actor = pawl_view_of("ada"),
                         .payload = { payload, PAYLOAD_BYTES } };
}

/* --- the bare side --- */

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt;

    SQL(db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL));
    return stmt;
}

static void open_bare(struct place *place)
{
    char path[128];
    pawl_ledger *schema;

    snprintf(path, sizeof(path), "%s/bare.db", place->dir);
    MUST(pawl_ledger_open(path, NULL, &schema, err)); /* the same tables, to the letter */
    pawl_ledger_close(schema, 0, NULL);
    SQL(place->db,
        sqlite3_open_v2(path, &place->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
    SQL(place->db,
        sqlite3_exec(place->db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
                     "PRAGMA wal_autocheckpoint=1000",
                     NULL,
                     NULL,
                     NULL));
    place->insert = prepare(place->db,
                            "INSERT INTO events (offset, id, run_id, turn, kind, actor, payload,"
                            " created_at, schema_version, hash) VALUES (?,?,?,?,?,?,?,?,?,?)");
    place->begin = prepare(place->db, "BEGIN IMMEDIATE");
    place->commit = prepare(place->db, "COMMIT");
}

static void bare_step(sqlite3_stmt *stmt)
{
    if (sqlite3_step(stmt) != SQLITE_DONE) {
        fprintf(stderr, "ledger: %s\n", sqlite3_errmsg(sqlite3_db_handle(stmt)));
        exit(1);
    }
    sqlite3_reset(stmt);
}

static void bare_insert(struct place *place, const pawl_event *event)
{
    static const char hash[PAWL_LEDGER_HASH_BYTES] = "01234567890123456789012345678901";
    sqlite3_stmt *s = place->insert;

    sqlite3_bind_int64(s, 1, ++place->offset);
    sqlite3_bind_text(s, 2, event->id.data, (int)event->id.len, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, event->run_id.data, (int)event->run_id.len, SQLITE_STATIC);
    sqlite3_bind_int64(s, 4, event->turn);
    sqlite3_bind_text(s, 5, event->kind.data, (int)event->kind.len, SQLITE_STATIC);
    sqlite3_bind_text(s, 6, event->actor.data, (int)event->actor.len, SQLITE_STATIC);
    sqlite3_bind_text(s, 7, event->payload.data, (int)event->payload.len, SQLITE_STATIC);
    sqlite3_bind_text(s, 8, "2026-01-29 10:20:30.123456", -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 9, 1);
    sqlite3_bind_blob(s, 10, hash, sizeof(hash), SQLITE_STATIC);
    bare_step(s);
}

static void bare_transaction(struct place *place, const pawl_event *events, size_t count)
{
    bare_step(place->begin);
    for (size_t i = 0; i < count; i++) {
        bare_insert(place, &events[i]);
    }
    bare_step(place->commit);
}

/* --- batches --- */

static char (*ids)[PAWL__UUID_TEXT_SIZE];
static pawl_event *events;

static void new_events(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        make_id(ids[i]);
        events[i] = make_event(ids[i]);
    }
}

static double ours_batches(struct place *place)
{
    double spent = 0;

    for (int i = 0; i < BATCHES; i++) {
        new_events(BATCH);
        double start = bench_now_s();
        MUST(pawl_ledger_append_many(place->ledger, events, BATCH, NULL, err));
        spent += bench_now_s() - start;
    }
    return BATCHES * BATCH / spent;
}

/* Batches of any size, so that it also stands beside the group commit. */
static double bare_batches(struct place *place, size_t batch, double seconds_max)
{
    double spent = 0;
    size_t done = 0;

    while (done < (size_t)BATCHES * BATCH && spent < seconds_max) {
        new_events(batch);
        double start = bench_now_s();
        bare_transaction(place, events, batch);
        spent += bench_now_s() - start;
        done += batch;
    }
    return (double)done / spent;
}

static void bench_batches(struct place *place)
{
    double ours = 0;
    double bare = 0;

    for (int i = 0; i < ROUNDS; i++) {
        ours += ours_batches(place) / ROUNDS;
        bare += bare_batches(place, BATCH, 60) / ROUNDS;
    }
    bench_report("ledger/batch", "events/s", ours, "SQLite, batches of 1,000", bare, 0.8);
}

/* --- threads --- */

struct caller {
    struct pawl__thread thread;
    pawl_ledger *ledger;
    double until_s;
    long done;
};

static void run_caller(void *context)
{
    struct caller *caller = context;
    char id[PAWL__UUID_TEXT_SIZE];

    while (bench_now_s() < caller->until_s) {
        make_id(id);
        pawl_event event = make_event(id);
        MUST(pawl_ledger_append(caller->ledger, &event, NULL, err));
        caller->done++;
    }
}

static double grouped_round(struct place *place)
{
    static struct caller callers[THREADS];
    double start = bench_now_s();
    long done = 0;

    for (int i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){ .ledger = place->ledger, .until_s = start + ROUND_MS / 1e3 };
        MUST(pawl__thread_start(&callers[i].thread, "caller", run_caller, &callers[i], err));
    }
    for (int i = 0; i < THREADS; i++) {
        pawl__thread_join(&callers[i].thread);
        done += callers[i].done;
    }
    return (double)done / (bench_now_s() - start);
}

static void bench_threads(struct place *place)
{
    uint64_t batches[2];
    uint64_t items[2];
    double grouped = 0;
    double single = 0;
    double bare = 0;

    pawl__commit_counts(place->ledger->engine.commit, &batches[0], &items[0]);
    grouped_round(place); /* to learn the size of the groups */
    pawl__commit_counts(place->ledger->engine.commit, &batches[1], &items[1]);
    double size = (double)(items[1] - items[0]) / (double)(batches[1] - batches[0]);
    for (int i = 0; i < ROUNDS; i++) {
        single += bare_batches(place, 1, ROUND_MS / 1e3) / ROUNDS;
        grouped += grouped_round(place) / ROUNDS;
        bare += bare_batches(place, MAX((size_t)(size + 0.5), (size_t)1), ROUND_MS / 1e3) / ROUNDS;
    }
    fprintf(stderr, "ledger: %.1f events a group\n", size);
    bench_report("ledger/threads-single", "events/s", grouped, "SQLite, one a commit", single, 5);
    bench_report("ledger/threads-group", "events/s", grouped, "SQLite, equal groups", bare, 0.8);
}

/* --- the tail --- */

static double ours_tail(struct place *place, uint64_t *ret_bytes)
{
    const pawl_event *event;
    pawl_reader *reader;
    uint64_t count = 0;
    uint64_t bytes = 0;
    double start = bench_now_s();

    MUST(pawl_reader_open(place->ledger, NULL, &reader, err));
    while (pawl_reader_next(reader, &event, NULL) == PAWL_OK) {
        bytes += event->id.len + event->run_id.len + event->kind.len + event->actor.len
                 + event->payload.len + event->hash[0];
        count++;
    }
    pawl_reader_free(reader);
    *ret_bytes = bytes;
    return (double)count / (bench_now_s() - start);
}

/* Every column is read, a text with its length, as whoever uses it must. */
static uint64_t row_bytes(sqlite3_stmt *stmt)
{
    static const int texts[] = { 1, 2, 4, 5, 6 };
    uint64_t bytes = 0;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        REQUIRE(sqlite3_column_text(stmt, texts[i]) != NULL);
        bytes += (uint64_t)sqlite3_column_bytes(stmt, texts[i]);
    }
    REQUIRE(sqlite3_column_int64(stmt, 0) > 0);
    REQUIRE(sqlite3_column_int64(stmt, 3) == 17);
    REQUIRE(sqlite3_column_text(stmt, 7) != NULL);
    REQUIRE(sqlite3_column_int64(stmt, 8) == 1);
    const unsigned char *hash = sqlite3_column_blob(stmt, 9);
    REQUIRE(sqlite3_column_bytes(stmt, 9) == PAWL_LEDGER_HASH_BYTES);
    return bytes + hash[0];
}

static double bare_tail(sqlite3 *db, uint64_t *ret_bytes)
{
    uint64_t count = 0;
    uint64_t bytes = 0;
    double start = bench_now_s();
    sqlite3_stmt *stmt = prepare(db,
                                 "SELECT offset, id, run_id, turn, kind, actor, payload,"
                                 " created_at, schema_version, hash FROM events"
                                 " WHERE offset > 0 ORDER BY offset");

    while (sqlite3_step(stmt) == SQLITE_ROW) {
        bytes += row_bytes(stmt);
        count++;
    }
    sqlite3_finalize(stmt);
    *ret_bytes = bytes;
    return (double)count / (bench_now_s() - start);
}

/* Both sides read the ledger's own file. */
static void bench_tail(struct place *place)
{
    double ours = 0;
    double bare = 0;
    uint64_t bytes[2];
    sqlite3 *db = NULL;

    SQL(db, sqlite3_open_v2(place->path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL));
    ours_tail(place, &bytes[0]); /* everything is warm for both */
    for (int i = 0; i < ROUNDS; i++) {
        bare += bare_tail(db, &bytes[1]) / ROUNDS;
        ours += ours_tail(place, &bytes[0]) / ROUNDS;
    }
    REQUIRE(bytes[0] == bytes[1]);
    sqlite3_close(db);
    bench_report("ledger/tail", "events/s", ours, "SELECT of the same columns", bare, 0.8);
}

static void open_place(struct place *place)
{
    const char *dir = getenv("TMPDIR");

    snprintf(place->dir, sizeof(place->dir), "%.40s/pawl-bench-XXXXXX", dir == NULL ? "/tmp" : dir);
    REQUIRE(mkdtemp(place->dir) != NULL);
    snprintf(place->path, sizeof(place->path), "%s/ledger.db", place->dir);
    MUST(pawl_ledger_open(place->path, NULL, &place->ledger, err));
    open_bare(place);
}

static void close_place(struct place *place)
{
    static const char *const names[] = {
        "ledger.db", "ledger.db.anchor", "bare.db", "bare.db.anchor"
    };
    char path[160];

    pawl_ledger_close(place->ledger, 0, NULL);
    sqlite3_finalize(place->insert);
    sqlite3_finalize(place->begin);
    sqlite3_finalize(place->commit);
    sqlite3_close(place->db);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", place->dir, names[i]);
        unlink(path);
    }
    rmdir(place->dir);
}

int main(int argc, char **argv)
{
    struct place place = { .offset = 0 };
    const char *only = argc > 1 ? argv[1] : "";

    make_payload();
    ids = calloc(BATCH, sizeof(*ids));
    events = calloc(BATCH, sizeof(*events));
    REQUIRE(ids != NULL);
    REQUIRE(events != NULL);
    open_place(&place);
    if (strcmp(only, "threads") != 0) {
        bench_batches(&place);
    }
    if (only[0] == '\0' || strcmp(only, "threads") == 0) {
        bench_threads(&place);
    }
    if (strcmp(only, "threads") != 0) {
        bench_tail(&place);
    }
    close_place(&place);
    free(ids);
    free(events);
    return 0;
}
