#include "lib/ledger_sample.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "ledger/core/anchor.h"

int sample_setup(void **state)
{
    struct sample *sample = calloc(1, sizeof(*sample));

    assert_non_null(sample);
    *state = sample;
    assert_ok(tempdir_make(sample->dir, "sample", &sample->err), &sample->err);
    snprintf(sample->path, sizeof(sample->path), "%s/ledger.db", sample->dir);
    snprintf(sample->anchor, sizeof(sample->anchor), "%s.anchor", sample->path);
    pawl_ledger *ledger = sample_open(sample, sample->path);
    sample_fill(sample, ledger);
    pawl_ledger_close(ledger, 0, NULL);
    return 0;
}

int sample_teardown(void **state)
{
    struct sample *sample = *state;

    tempdir_remove(sample->dir);
    free(sample);
    return 0;
}

pawl_ledger *sample_open(struct sample *sample, const char *location)
{
    pawl_ledger *ledger = NULL;

    assert_ok(pawl_ledger_open(location, NULL, &ledger, &sample->err), &sample->err);
    return ledger;
}

void sample_append(struct sample *sample, pawl_ledger *ledger, int first, int last)
{
    enum { BATCH = 1000 };
    static char texts[BATCH][2][64];
    static pawl_event events[BATCH];

    while (first <= last) {
        int count = MIN(last - first + 1, (int)BATCH);
        for (int i = 0; i < count; i++) {
            snprintf(texts[i][0], sizeof(texts[i][0]), "e-%d", first + i);
            snprintf(texts[i][1],
                     sizeof(texts[i][1]),
                     "{\"n\":%d,\"text\":\"marker-%04d\"}",
                     first + i,
                     first + i);
            events[i] = (pawl_event){
                .size = sizeof(pawl_event),
                .id = pawl_view_of(texts[i][0]),
                .run_id = pawl_view_of("r"),
                .kind = pawl_view_of("said"),
                .actor = pawl_view_of("ada"),
                .payload = pawl_view_of(texts[i][1]),
            };
        }
        assert_ok(pawl_ledger_append_many(ledger, events, (size_t)count, NULL, &sample->err),
                  &sample->err);
        first += count;
    }
}

static void take_turn(
    struct sample *sample, pawl_ledger *ledger, int64_t number, int events, bool commit)
{
    pawl_turn *turn = NULL;
    pawl_event event = { .size = sizeof(pawl_event),
                         .kind = pawl_view_of("did"),
                         .actor = pawl_view_of("bob"),
                         .payload = pawl_view_of("[1,2]") };

    assert_ok(pawl_turn_begin(ledger, pawl_view_of("r"), number, &turn, &sample->err),
              &sample->err);
    for (int i = 0; i < events; i++) {
        assert_ok(pawl_turn_append(turn, &event, 1, NULL, &sample->err), &sample->err);
    }
    if (commit) {
        assert_ok(pawl_turn_commit(turn, &sample->err), &sample->err);
    }
    pawl_turn_free(turn);
}

void sample_fill(struct sample *sample, pawl_ledger *ledger)
{
    sample_append(sample, ledger, 1, 10);
    take_turn(sample, ledger, 1, 3, true);
    take_turn(sample, ledger, 2, 1, false);
    take_turn(sample, ledger, 2, 1, true);
    take_turn(sample, ledger, 3, 1, false);
    sample_append(sample, ledger, 24, SAMPLE_EVENTS);
}

pawl_ledger_head sample_head(struct sample *sample, pawl_ledger *ledger)
{
    pawl_ledger_head head = { 0 };

    assert_ok(pawl_ledger_get_head(ledger, &head, &sample->err), &sample->err);
    return head;
}

void assert_verifies(struct sample *sample, pawl_ledger *ledger, uint64_t offset)
{
    pawl_verify_report report = PAWL_VERIFY_REPORT_INIT;

    assert_ok(pawl_ledger_verify(ledger, NULL, &report, &sample->err), &sample->err);
    assert_int_equal(report.verified.offset, offset);
    assert_int_equal(report.first_bad_offset, 0);
    assert_string_equal(report.what, "");
}

/* --- comparing --- */

static void add_events(struct sample *sample, pawl_ledger *ledger, struct pawl__buf *text)
{
    pawl_reader *reader = NULL;
    const pawl_event *event = NULL;

    assert_ok(pawl_reader_open(ledger, NULL, &reader, &sample->err), &sample->err);
    while (pawl_reader_next(reader, &event, &sample->err) == PAWL_OK) {
        pawl__buf_add_format(text,
                             "%llu %lld %lld %lld ",
                             (unsigned long long)event->offset,
                             (long long)event->turn,
                             (long long)event->created_at_us,
                             (long long)event->schema_version);
        pawl__buf_add(text, event->id);
        pawl__buf_add(text, event->run_id);
        pawl__buf_add(text, event->kind);
        pawl__buf_add(text, event->actor);
        pawl__buf_add(text, event->payload);
        pawl__buf_add(text, (pawl_view){ (const char *)event->hash, sizeof(event->hash) });
    }
    pawl_reader_free(reader);
}

static bool add_turn(void *context, const pawl_turn_info *info)
{
    pawl__buf_add_format(context,
                         "%.*s %lld %u %d %llu %llu\n",
                         VIEW_ARGS(info->run_id),
                         (long long)info->turn,
                         info->attempt,
                         (int)info->state,
                         (unsigned long long)info->begin_offset,
                         (unsigned long long)info->end_offset);
    return true;
}

static void add_embeddings(struct sample *sample, pawl_ledger *ledger, struct pawl__buf *text)
{
    static const float query[] = { 1, 2, 3 };
    pawl_recalled found[10];
    size_t count = 0;

    assert_ok(
        pawl_ledger_recall(
            ledger, query, COUNT_OF(query), NULL, found, COUNT_OF(found), &count, &sample->err),
        &sample->err);
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_format(
            text, "%llu %.5f\n", (unsigned long long)found[i].offset, found[i].similarity);
    }
}

void assert_same_ledgers(struct sample *sample, pawl_ledger *a, pawl_ledger *b)
{
    pawl_ledger *const both[] = { a, b };
    struct pawl__buf texts[] = { BUF_INIT(1 << 24), BUF_INIT(1 << 24) };
    pawl_view all_runs = { NULL, 0 };

    for (size_t i = 0; i < COUNT_OF(both); i++) {
        add_events(sample, both[i], &texts[i]);
        assert_ok(pawl_ledger_turns(both[i], all_runs, NULL, add_turn, &texts[i], &sample->err),
                  &sample->err);
        add_embeddings(sample, both[i], &texts[i]);
        assert_false(texts[i].broken);
    }
    assert_int_equal(texts[0].len, texts[1].len);
    assert_memory_equal(texts[0].data, texts[1].data, texts[0].len);
    pawl__buf_done(&texts[0]);
    pawl__buf_done(&texts[1]);
}

void assert_good_copy(struct sample *sample, const char *path, pawl_ledger *like, uint64_t offset)
{
    pawl_ledger *copy = sample_open(sample, path);

    assert_verifies(sample, copy, offset);
    if (like != NULL) {
        assert_same_ledgers(sample, copy, like);
    }
    pawl_ledger_close(copy, 0, NULL);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

void sample_names(const char *directory, char *ret_names, size_t size)
{
    static char names[64][128];
    size_t count = 0;
    DIR *dir = opendir(directory);

    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != '.') {
            assert_true(count < COUNT_OF(names));
            snprintf(names[count++], sizeof(names[0]), "%.120s", entry->d_name);
        }
    }
    closedir(dir);
    qsort(names, count, sizeof(names[0]), by_text);
    ret_names[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(ret_names);
        snprintf(ret_names + len, size - len, "%s ", names[i]);
    }
}

/* --- behind its back --- */

void sample_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

void sample_await_anchor(struct sample *sample, uint64_t offset)
{
    struct pawl__clock *clock = pawl__clock_real();
    int64_t deadline = pawl__monotonic_ns(clock) + 30 * NS_PER_S;
    pawl_ledger_head anchor = { 0 };

    while (pawl__ledger_anchor_read(sample->anchor, &anchor, NULL) != PAWL_OK
           || anchor.offset < offset) {
        int64_t now = pawl__monotonic_ns(clock);
        assert_true(now < deadline);
        pawl__sleep_until(clock, now + 5 * NS_PER_MS);
    }
}

void sample_copy(const char *from, const char *to)
{
    size_t size;
    char *bytes = file_read(from, &size);

    file_write(to, bytes, size);
    free(bytes);
}

size_t sample_find(const char *bytes, size_t size, const char *text)
{
    const char *found = memmem(bytes, size, text, strlen(text));

    assert_non_null(found);
    return (size_t)(found - bytes);
}

static pawl_status restore(const char *snapshot,
                           const pawl_restore_options *options,
                           char *ret_path,
                           pawl_error *reterr)
{
    pawl_restored restored = PAWL_RESTORED_INIT;
    pawl_status status = pawl_snapshot_restore(snapshot, options, &restored, reterr);

    if (status == PAWL_OK && ret_path != NULL) {
        memcpy(ret_path, restored.path, sizeof(restored.path));
    }
    return status;
}

pawl_status sample_restore(const char *snapshot,
                           const char *target,
                           const char *tail_location,
                           char *ret_path,
                           pawl_error *reterr)
{
    pawl_restore_options options = PAWL_RESTORE_OPTIONS_INIT;

    options.target = target;
    options.tail_location = tail_location;
    return restore(snapshot, &options, ret_path, reterr);
}

pawl_status sample_restore_older(const char *snapshot,
                                 const char *target,
                                 const char *tail_location,
                                 char *ret_path,
                                 pawl_error *reterr)
{
    pawl_restore_options options = PAWL_RESTORE_OPTIONS_INIT;

    options.target = target;
    options.tail_location = tail_location;
    options.accept_older = true;
    return restore(snapshot, &options, ret_path, reterr);
}
