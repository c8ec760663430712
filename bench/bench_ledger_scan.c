/* Walking a whole ledger on SQLite.
 *
 *   verify   against a SELECT of all columns with a SHA-256 over the same bytes
 *   memory   while following and while verifying: what the process has after half of the log and
 *            after all of it must be the same
 *
 *     bench_ledger_scan             300,000 events
 *     bench_ledger_scan 10000000    as many as one likes; 5 GB and some minutes */
#include "bench.h"

#include <openssl/evp.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "ledger_events.h"

enum { EVENTS_DEFAULT = 300000, ROUNDS = 5, MANY_EVENTS = 1000000 };

static uint64_t total;

static double resident_mib(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file == NULL || fscanf(file, "%*u %llu", &pages) != 1) { /* NOLINT(cert-err34-c) */
        events_stop("memory", "cannot read /proc/self/statm");
    }
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

struct memory {
    double early_mib; /* after half, when caches have what they are allowed */
    double late_mib;  /* after all */
};

static void look_at_memory(struct memory *memory, uint64_t done)
{
    if (memory->early_mib <= 0 && done >= total / 2) {
        memory->early_mib = resident_mib();
    }
    if (done == total) {
        memory->late_mib = resident_mib();
    }
}

static void report_memory(const char *name, const struct memory *memory)
{
    bench_report(
        name, "MiB", memory->early_mib, "itself at the end of the log", memory->late_mib, 0.9);
}

static void follow(pawl_ledger *ledger)
{
    pawl_reader *reader = NULL;
    const pawl_event *event = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    struct memory memory = { 0, 0 };
    pawl_status status;

    events_check(pawl_reader_open(ledger, NULL, &reader, &error), &error);
    while ((status = pawl_reader_next(reader, &event, &error)) == PAWL_OK) {
        look_at_memory(&memory, event->offset);
    }
    if (status != PAWL_NOT_FOUND || pawl_reader_position(reader) != total) {
        events_stop("follow", error.message);
    }
    pawl_reader_free(reader);
    report_memory("ledger/memory-follow", &memory);
}

static bool on_progress(void *context, uint64_t done, uint64_t all)
{
    (void)all;
    look_at_memory(context, done);
    return true;
}

static double verify_ours(pawl_ledger *ledger, struct memory *memory)
{
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    pawl_verify_report report = PAWL_VERIFY_REPORT_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    double start = bench_now_s();

    const pawl_watch watch = { sizeof(pawl_watch), on_progress, memory };
    options.watch = &watch;
    events_check(pawl_ledger_verify(ledger, &options, &report, &error), &error);
    if (report.verified.offset != total) {
        events_stop("verify", "it did not reach the end");
    }
    return bench_now_s() - start;
}

/* What anybody would write: all of a row into the digest, column by column. */
static double hash_raw(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    unsigned char hash[EVP_MAX_MD_SIZE] = { 0 };
    uint64_t count = 0;
    double start = bench_now_s();

    if (sqlite3_prepare_v2(db,
                           "SELECT offset, id, run_id, turn, kind, actor, payload, created_at,"
                           " schema_version, hash FROM events ORDER BY offset",
                           -1,
                           &stmt,
                           NULL)
        != SQLITE_OK) {
        events_stop("select", sqlite3_errmsg(db));
    }
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        const int64_t numbers[] = { sqlite3_column_int64(stmt, 0),
                                    sqlite3_column_int64(stmt, 3),
                                    sqlite3_column_int64(stmt, 8) };
        EVP_DigestInit_ex(digest, EVP_sha256(), NULL);
        EVP_DigestUpdate(digest, hash, PAWL_LEDGER_HASH_BYTES);
        EVP_DigestUpdate(digest, numbers, sizeof(numbers));
        for (int column = 1; column < 8; column += column == 2 ? 2 : 1) {
            const void *text = sqlite3_column_text(stmt, column);
            EVP_DigestUpdate(digest, text, (size_t)sqlite3_column_bytes(stmt, column));
        }
        EVP_DigestFinal_ex(digest, hash, NULL);
        count += sqlite3_column_bytes(stmt, 9) == PAWL_LEDGER_HASH_BYTES;
    }
    sqlite3_finalize(stmt);
    EVP_MD_CTX_free(digest);
    if (count != total) {
        events_stop("select", "it did not reach the end");
    }
    return bench_now_s() - start;
}

static void verify(pawl_ledger *ledger, const char *path)
{
    sqlite3 *db = NULL;
    struct memory memory = { 0, 0 };
    int rounds = total > MANY_EVENTS ? 1 : ROUNDS;
    double ours_s = 0;
    double raw_s = 0;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        events_stop(path, "cannot be opened");
    }
    for (int half = 0; half < 2 * rounds; half++) {
        bool is_ours = (half + half / 2) % 2 == 0; /* ours first, then theirs first, ... */
        *(is_ours ? &ours_s : &raw_s) += is_ours ? verify_ours(ledger, &memory) : hash_raw(db);
    }
    bench_report("ledger/verify",
                 "events/s",
                 (double)total * rounds / ours_s,
                 "SELECT and SHA-256",
                 (double)total * rounds / raw_s,
                 0.5);
    report_memory("ledger/memory-verify", &memory);
    sqlite3_close(db);
}

int main(int argc, char **argv)
{
    char path[EVENTS_PATH_SIZE];
    char location[EVENTS_PATH_SIZE + 32];
    pawl_ledger *ledger = NULL;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    total = argc > 1 ? strtoull(argv[1], NULL, 10) : EVENTS_DEFAULT;
    if (total == 0 || total % EVENTS_BATCH != 0) {
        events_stop("usage", "bench_ledger_scan [EVENTS], in thousands");
    }
    events_path("scan.db", path);
    snprintf(location, sizeof(location), "sqlite:%s?durability=normal", path);
    events_fill(location, total); /* how fast is not asked here */
    options.read_only = true;
    events_check(pawl_ledger_open(path, &options, &ledger, &error), &error);
    follow(ledger);
    verify(ledger, path);
    pawl_ledger_close(ledger, 0, NULL);
    return 0;
}
