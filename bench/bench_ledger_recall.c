/* Recall against the loop that one would write first: one multiplication after the other over the
 * same vectors, with the same heap for the best ten.
 *
 *   ledger/recall memory   a ledger in memory; the loop goes over one large array
 *   ledger/recall sqlite   a ledger in a file, in the page cache; the loop goes over a SELECT
 *
 * 384 dimensions. `bench_ledger_recall 1000000` has a million events in memory instead. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include <pawl/ledger.h>

#include "base/core/macros.h"
#include "ledger/recall/recall.h"
#include "lib/tempdir.h"

enum { DIMENSIONS = 384, BATCH = 1000, QUERIES = 5, NEAREST = 10 };
enum { IN_MEMORY = 200000, IN_FILE = 50000 };

#define MUST(call)                                                           \
    do {                                                                     \
        pawl_error error_ = PAWL_ERROR_INIT;                                 \
        pawl_error *err = &error_;                                           \
        if ((call) != PAWL_OK) {                                             \
            fprintf(stderr, "ledger_recall: %s: %s\n", #call, err->message); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static void *must_have(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "ledger_recall: no memory\n");
        exit(1);
    }
    return memory;
}

/* The same vectors in every run; not of length 1, the ledger sees to that. */
static void make_vector(float *values, uint64_t number)
{
    uint64_t state = number * 0x9E3779B97F4A7C15U + 1;

    for (size_t i = 0; i < DIMENSIONS; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        values[i] = (float)(int32_t)(state >> 32);
    }
}

static void append_events(pawl_ledger *ledger, size_t count)
{
    static char ids[BATCH][24];
    static pawl_event events[BATCH];

    for (size_t done = 0; done < count; done += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            snprintf(ids[i], sizeof(ids[i]), "%zu", done + i);
            events[i] = (pawl_event){ .size = sizeof(pawl_event),
                                      .id = pawl_view_of(ids[i]),
                                      .run_id = pawl_view_of("r"),
                                      .kind = pawl_view_of("k"),
                                      .actor = pawl_view_of("a"),
                                      .payload = pawl_view_of("1") };
        }
        MUST(pawl_ledger_append_many(ledger, events, BATCH, NULL, err));
    }
}

static void embed_events(pawl_ledger *ledger, size_t count)
{
    float values[DIMENSIONS];

    for (size_t i = 0; i < count; i++) {
        make_vector(values, i);
        MUST(pawl_ledger_embed(ledger, i + 1, values, DIMENSIONS, err));
    }
}

/* Vectors that were looked at in a second. */
static double search_ledger(pawl_ledger *ledger, size_t count, uint64_t question)
{
    pawl_recalled found[NEAREST];
    float query[DIMENSIONS];
    size_t found_count;

    make_vector(query, question);
    double before_s = bench_now_s();
    MUST(pawl_ledger_recall(ledger, query, DIMENSIONS, NULL, found, NEAREST, &found_count, err));
    return (double)count / (bench_now_s() - before_s);
}

/* The cosine in plain C, one multiplication after the other: what the fast one is compared with. */
static double similarity_plain(const float *query, pawl_view vector, size_t dimensions)
{
    double total = 0;

    for (size_t i = 0; i < dimensions; i++) {
        float y;
        memcpy(&y, &vector.data[i * sizeof(float)], sizeof(y));
        total += (double)query[i] * (double)y;
    }
    return total;
}

static void look_at(struct recall_top *top, const float *query, uint64_t offset, pawl_view vector)
{
    double similarity = similarity_plain(query, vector, DIMENSIONS);

    pawl__ledger_recall_offer(top, (pawl_recalled){ offset, similarity });
}

/* What both loops go over: an array, or a database when there is no array. */
struct plain {
    float *vectors;
    size_t count;
    sqlite3 *db;
};

static void loop_over_rows(const struct plain *plain, struct recall_top *top, const float *query)
{
    sqlite3_stmt *select = NULL;

    if (sqlite3_prepare_v2(plain->db, "SELECT offset, vector FROM embeddings", -1, &select, NULL)
        != SQLITE_OK) {
        fprintf(stderr, "ledger_recall: %s\n", sqlite3_errmsg(plain->db));
        exit(1);
    }
    while (sqlite3_step(select) == SQLITE_ROW) {
        pawl_view vector = { sqlite3_column_blob(select, 1), DIMENSIONS * sizeof(float) };
        look_at(top, query, (uint64_t)sqlite3_column_int64(select, 0), vector);
    }
    sqlite3_finalize(select);
}

static void loop_over_array(const struct plain *plain, struct recall_top *top, const float *query)
{
    for (size_t i = 0; i < plain->count; i++) {
        const float *values = &plain->vectors[i * DIMENSIONS];
        pawl_view vector = { (const char *)values, DIMENSIONS * sizeof(float) };
        look_at(top, query, i + 1, vector);
    }
}

static double search_plainly(const struct plain *plain, uint64_t question)
{
    pawl_recalled found[NEAREST];
    struct recall_top top = { found, 0, NEAREST };
    float query[DIMENSIONS];

    make_vector(query, question);
    double before_s = bench_now_s();
    (plain->vectors == NULL ? loop_over_rows : loop_over_array)(plain, &top, query);
    return (double)plain->count / (bench_now_s() - before_s);
}

static void compare(const char *name, pawl_ledger *ledger, const struct plain *plain)
{
    double ours = 0;
    double theirs = 0;

    for (uint64_t i = 0; i < QUERIES; i++) { /* the best of each, in turns */
        ours = MAX(ours, search_ledger(ledger, plain->count, i));
        theirs = MAX(theirs, search_plainly(plain, i));
    }
    fprintf(stderr,
            "%s: %zu events of %d dimensions: %.1f ms a question, the plain loop %.1f ms\n",
            name,
            plain->count,
            DIMENSIONS,
            1000 * (double)plain->count / ours,
            1000 * (double)plain->count / theirs);
    bench_report(name, "vectors/s", ours, "plain loop", theirs, 0);
}

static pawl_ledger *fill_ledger(const char *location, size_t count)
{
    pawl_ledger *ledger = NULL;

    MUST(pawl_ledger_open(location, NULL, &ledger, err));
    append_events(ledger, count);
    embed_events(ledger, count);
    return ledger;
}

static void compare_memory(size_t count)
{
    struct plain plain = { .count = count };
    pawl_ledger *ledger = fill_ledger("memory:", count);

    plain.vectors = must_have(calloc(count * DIMENSIONS, sizeof(float)));
    for (size_t i = 0; i < count; i++) {
        make_vector(&plain.vectors[i * DIMENSIONS], i);
    }
    compare("ledger/recall memory", ledger, &plain);
    pawl_ledger_close(ledger, 0, NULL);
    free(plain.vectors);
}

static void compare_sqlite(size_t count)
{
    char directory[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    char location[TEMPDIR_SIZE + 64];
    struct plain plain = { .count = count };

    MUST(tempdir_make(directory, "recall", err));
    snprintf(path, sizeof(path), "%s/ledger.db", directory);
    snprintf(location, sizeof(location), "%s?durability=normal", path);
    pawl_ledger *ledger = fill_ledger(location, count);
    if (sqlite3_open_v2(path, &plain.db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        fprintf(stderr, "ledger_recall: cannot open '%s'\n", path);
        exit(1);
    }
    compare("ledger/recall sqlite", ledger, &plain);
    sqlite3_close(plain.db);
    pawl_ledger_close(ledger, 0, NULL);
    tempdir_remove(directory);
}

int main(int argc, char **argv)
{
    size_t in_memory = argc > 1 ? strtoull(argv[1], NULL, 10) : IN_MEMORY;

    compare_memory(MAX(in_memory / BATCH, (size_t)1) * BATCH);
    compare_sqlite(IN_FILE);
    return 0;
}
