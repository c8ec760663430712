/* The anchor beside a ledger file: never ahead of the log, never going back, and believed. */
#include "lib/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/ledger.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "ledger/core/anchor.h"
#include "lib/child.h"
#include "lib/ledger_sample.h"

static pawl_ledger_head read_anchor(struct sample *sample)
{
    pawl_ledger_head head = { 0 };

    assert_ok(pawl__ledger_anchor_read(sample->anchor, &head, &sample->err), &sample->err);
    return head;
}

static void assert_corrupt(struct sample *sample, const char *path, const char *message)
{
    pawl_ledger *ledger = (pawl_ledger *)sample; /* stays as it is */

    assert_status(pawl_ledger_open(path, NULL, &ledger, &sample->err), PAWL_CORRUPT, &sample->err);
    assert_message(&sample->err, message);
    assert_ptr_equal(ledger, sample);
}

static void test_closing_leaves_an_anchor_at_the_head(void **state)
{
    struct sample *sample = *state;
    pawl_ledger_head anchor = read_anchor(sample);
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_ledger_head head = sample_head(sample, ledger);

    assert_int_equal(anchor.offset, SAMPLE_EVENTS);
    assert_memory_equal(anchor.hash, head.hash, sizeof(head.hash));
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_the_anchor_follows_while_the_ledger_is_open(void **state)
{
    struct sample *sample = *state;
    static const char *const locations[] = { "%s", "sqlite:%s?durability=normal" };
    int last = SAMPLE_EVENTS;

    for (size_t i = 0; i < COUNT_OF(locations); i++) {
        char location[sizeof(sample->path) + 64];
        snprintf(location,
                 sizeof(location),
                 i == 0 ? "%s" : "sqlite:%s?durability=normal",
                 sample->path);
        pawl_ledger *ledger = sample_open(sample, location);
        for (int step = 0; step < 2; step++) {
            sample_append(sample, ledger, last + 1, last + 5);
            last += 5;
            sample_await_anchor(sample, (uint64_t)last);
        }
        assert_verifies(sample, ledger, (uint64_t)last);
        pawl_ledger_close(ledger, 0, NULL);
    }
}

static void test_a_missing_anchor_is_fine_and_made_again(void **state)
{
    struct sample *sample = *state;

    assert_int_equal(unlink(sample->anchor), 0);
    pawl_ledger *ledger = sample_open(sample, sample->path);
    assert_verifies(sample, ledger, SAMPLE_EVENTS);
    pawl_ledger_close(ledger, 0, NULL);
    assert_int_equal(read_anchor(sample).offset, SAMPLE_EVENTS);
}

static void test_a_reader_writes_no_anchor(void **state)
{
    struct sample *sample = *state;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *ledger = NULL;

    assert_int_equal(unlink(sample->anchor), 0);
    options.read_only = true;
    assert_ok(pawl_ledger_open(sample->path, &options, &ledger, &sample->err), &sample->err);
    assert_verifies(sample, ledger, SAMPLE_EVENTS);
    pawl_ledger_close(ledger, 0, NULL);
    assert_true(access(sample->anchor, F_OK) != 0);
}

/* Every byte of it counts: with any other one it is not what pawl wrote. */
static void test_a_damaged_anchor_is_corrupt_and_nothing_changes(void **state)
{
    struct sample *sample = *state;
    size_t size;
    size_t db_size;
    char *bytes = file_read(sample->anchor, &size);
    char *db = file_read(sample->path, &db_size);
    char before[512];
    char after[512];

    sample_names(sample->dir, before, sizeof(before));
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 1;
        file_write(sample->anchor, bytes, size);
        assert_corrupt(sample, sample->path, "");
        bytes[i] ^= 1;
    }
    for (size_t len = 0; len < size; len++) {
        file_write(sample->anchor, bytes, len);
        assert_corrupt(sample, sample->path, "damaged");
    }
    size_t found_size;
    char *found = file_read(sample->path, &found_size);
    sample_names(sample->dir, after, sizeof(after));
    assert_int_equal(found_size, db_size);
    assert_memory_equal(found, db, db_size);
    assert_string_equal(after, before);
    file_write(sample->anchor, bytes, size);
    pawl_ledger_close(sample_open(sample, sample->path), 0, NULL);
    free(found);
    free(bytes);
    free(db);
}

static void test_a_cut_tail_is_noticed_at_open(void **state)
{
    struct sample *sample = *state;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *ledger = NULL;

    sample_sql(sample->path, "DELETE FROM events WHERE offset > 28");
    assert_corrupt(sample, sample->path, "cut off: the log ends at offset 28, its anchor is at 30");
    options.read_only = true;
    assert_int_equal(pawl_ledger_open(sample->path, &options, &ledger, NULL), PAWL_CORRUPT);
    assert_int_equal(read_anchor(sample).offset, SAMPLE_EVENTS); /* and still knows */

    sample_sql(sample->path, "DELETE FROM events");
    assert_corrupt(sample, sample->path, "cut off: the log ends at offset 0");
}

static void test_a_replaced_end_is_noticed_at_open(void **state)
{
    struct sample *sample = *state;

    sample_sql(sample->path, "UPDATE events SET hash = zeroblob(32) WHERE offset = 30");
    assert_corrupt(sample, sample->path, "replaced: offset 30");
}

static void test_a_ledger_that_is_gone_is_not_begun_anew(void **state)
{
    struct sample *sample = *state;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *ledger = NULL;

    options.read_only = true;
    file_write(sample->path, "", 0);
    assert_corrupt(sample, sample->path, "there is no log");
    assert_int_equal(pawl_ledger_open(sample->path, &options, &ledger, NULL), PAWL_CORRUPT);
    assert_int_equal(unlink(sample->path), 0);
    assert_corrupt(sample, sample->path, "there is no log");
    assert_int_equal(pawl_ledger_open(sample->path, &options, &ledger, NULL), PAWL_CORRUPT);
    assert_message(&sample->err, "to begin anew, remove");
    assert_true(access(sample->path, F_OK) != 0);
    assert_int_equal(unlink(sample->anchor), 0);
    pawl_ledger_close(sample_open(sample, sample->path), 0, NULL);
}

static void test_a_lost_log_file_is_noticed_at_open(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger = sample_open(sample, sample->path);
    char copy[sizeof(sample->path) + 32];
    char anchor[sizeof(sample->path) + 64];

    sample_append(sample, ledger, 31, 40); /* into the -wal file, and the anchor follows */
    sample_await_anchor(sample, 40);
    snprintf(copy, sizeof(copy), "%s/copy.db", sample->dir);
    snprintf(anchor, sizeof(anchor), "%s.anchor", copy);
    sample_copy(sample->path, copy);
    sample_copy(sample->anchor, anchor);
    pawl_ledger_close(ledger, 0, NULL);
    assert_corrupt(sample, copy, "cut off: the log ends at offset 30, its anchor is at 40");
}

static void test_two_names_of_a_file_have_one_anchor(void **state)
{
    struct sample *sample = *state;
    char link[sizeof(sample->path) + 32];
    char stray[sizeof(sample->path) + 64];

    snprintf(link, sizeof(link), "%s/link.db", sample->dir);
    snprintf(stray, sizeof(stray), "%s.anchor", link);
    assert_int_equal(symlink(sample->path, link), 0);
    pawl_ledger *ledger = sample_open(sample, link);
    sample_append(sample, ledger, 31, 35);
    pawl_ledger_close(ledger, 0, NULL);
    assert_int_equal(read_anchor(sample).offset, 35);
    assert_true(access(stray, F_OK) != 0);
    sample_sql(sample->path, "DELETE FROM events WHERE offset = 35");
    assert_corrupt(sample, link, "cut off");
}

static void test_an_anchor_ahead_of_the_log_is_never_taken_back(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_ledger_head ahead = sample_head(sample, ledger);

    ahead.offset += 100; /* somebody cut the log while we had it open */
    assert_ok(pawl__ledger_anchor_write(sample->anchor, &ahead, &sample->err), &sample->err);
    sample_append(sample, ledger, 31, 40);
    pawl_ledger_close(ledger, 0, NULL);
    assert_int_equal(read_anchor(sample).offset, SAMPLE_EVENTS + 100);
    assert_corrupt(sample, sample->path, "cut off");
}

static void test_an_anchor_that_cannot_be_written_is_tried_again(void **state)
{
    struct sample *sample = *state;
    static const char *const points[] = { "ledger.anchor.sync.before",
                                          "ledger.anchor.write.before",
                                          "fs.replace.sync.before",
                                          "fs.replace.rename.before" };
    int last = SAMPLE_EVENTS;
    char names[512];

    for (size_t i = 0; i < COUNT_OF(points); i++) {
        char rule[96];
        snprintf(rule, sizeof(rule), "%s=error:NO_SPACE", points[i]);
        assert_ok(pawl__failpoint_set(rule, &sample->err), &sample->err);
        pawl_ledger *ledger = sample_open(sample, sample->path);
        uint64_t before = read_anchor(sample).offset;
        sample_append(sample, ledger, last + 1, last + 3); /* the events do not depend on it */
        last += 3;
        pawl_ledger_close(ledger, 0, NULL);
        assert_int_equal(read_anchor(sample).offset, before);
        assert_ok(pawl__failpoint_set(NULL, &sample->err), &sample->err);
        sample_names(sample->dir, names, sizeof(names));
        assert_string_equal(names, "ledger.db ledger.db.anchor ");
    }
    pawl_ledger_close(sample_open(sample, sample->path), 0, NULL);
    assert_int_equal(read_anchor(sample).offset, last);
}

/* --- other processes --- */

/* PATH, then: "until-killed" appends for ever; anything else appends ten and closes. */
static int run_child(char **argv)
{
    static struct sample sample;
    pawl_ledger *ledger = NULL;
    long first = strtol(argv[4], NULL, 10);

    if (pawl_ledger_open(argv[2], NULL, &ledger, &sample.err) != PAWL_OK) {
        child_say("%s", sample.err.message);
        return 1;
    }
    child_say("open");
    bool for_ever = strcmp(argv[3], "until-killed") == 0;
    for (int i = 0; for_ever || i < 10; i++) {
        char id[32];
        snprintf(id, sizeof(id), "c-%ld-%d", first, i);
        pawl_event event = {
            .size = sizeof(pawl_event),
            .id = pawl_view_of(id),
            .run_id = pawl_view_of("r"),
            .kind = pawl_view_of("said"),
            .actor = pawl_view_of("child"),
            .payload = pawl_view_of("{}"),
        };
        if (pawl_ledger_append(ledger, &event, NULL, &sample.err) != PAWL_OK) {
            child_say("%s", sample.err.message);
            return 1;
        }
    }
    pawl_ledger_close(ledger, 0, NULL);
    child_say("closed");
    return 0;
}

static void start_child(struct sample *sample, struct child *child, const char *how, int first)
{
    char number[16];
    char line[512];
    const char *arguments[] = { sample->path, how, number, NULL };

    snprintf(number, sizeof(number), "%d", first);
    child_start(child, arguments);
    if (!child_line(child, line, sizeof(line)) || strcmp(line, "open") != 0) {
        fail_msg("%s", line);
    }
}

/* While two processes write: whatever the anchor says is in the log, and it never goes back. */
static void test_two_processes_move_one_anchor_forward(void **state)
{
    struct sample *sample = *state;
    struct child children[2];
    pawl_ledger *ledger = sample_open(sample, sample->path);
    struct pawl__clock *clock = pawl__clock_real();
    int64_t deadline = pawl__monotonic_ns(clock) + 30 * NS_PER_S;
    uint64_t before = 0;

    for (int i = 0; i < 2; i++) {
        start_child(sample, &children[i], "until-killed", i);
    }
    for (int moves = 0; moves < 5;) {
        pawl_ledger_head anchor = read_anchor(sample);
        pawl_event *event = NULL;
        assert_true(anchor.offset >= before);
        assert_ok(
            pawl_ledger_get(ledger, (pawl_view){ NULL, 0 }, anchor.offset, &event, &sample->err),
            &sample->err);
        assert_memory_equal(event->hash, anchor.hash, sizeof(anchor.hash));
        pawl_event_free(event);
        moves += anchor.offset > before;
        before = anchor.offset;
        assert_true(pawl__monotonic_ns(clock) < deadline);
    }
    for (int i = 0; i < 2; i++) {
        child_end(&children[i], SIGKILL);
    }
    pawl_ledger_close(ledger, 0, NULL);
    ledger = sample_open(sample, sample->path);
    assert_verifies(sample, ledger, sample_head(sample, ledger).offset);
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_a_process_that_dies_at_the_anchor_leaves_a_good_one(void **state)
{
    struct sample *sample = *state;
    static const char *const points[] = {
        "ledger.anchor.sync.before", "ledger.anchor.write.before", "fs.replace.sync.before",
        "fs.replace.rename.before",  "fs.sync_dir.before",         "ledger.anchor.write.after",
    };

    for (size_t i = 0; i < COUNT_OF(points); i++) {
        struct child child;
        char rule[96];
        char line[512];
        uint64_t before = read_anchor(sample).offset;

        snprintf(rule, sizeof(rule), "%s=kill", points[i]);
        assert_int_equal(setenv("PAWL_FAILPOINTS", rule, 1), 0);
        start_child(sample, &child, "ten", (int)i);
        assert_int_equal(unsetenv("PAWL_FAILPOINTS"), 0);
        assert_false(child_line(&child, line, sizeof(line)));
        int ended = child_end(&child, 0);
        assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);

        assert_true(read_anchor(sample).offset >= before);
        pawl_ledger *ledger = sample_open(sample, sample->path);
        uint64_t head = sample_head(sample, ledger).offset;
        assert_int_equal(head, SAMPLE_EVENTS + 10 * (i + 1));
        assert_verifies(sample, ledger, head);
        pawl_ledger_close(ledger, 0, NULL);
        assert_int_equal(read_anchor(sample).offset, head);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(test_closing_leaves_an_anchor_at_the_head),
        SAMPLE_TEST(test_the_anchor_follows_while_the_ledger_is_open),
        SAMPLE_TEST(test_a_missing_anchor_is_fine_and_made_again),
        SAMPLE_TEST(test_a_reader_writes_no_anchor),
        SAMPLE_TEST(test_a_damaged_anchor_is_corrupt_and_nothing_changes),
        SAMPLE_TEST(test_a_cut_tail_is_noticed_at_open),
        SAMPLE_TEST(test_a_replaced_end_is_noticed_at_open),
        SAMPLE_TEST(test_a_ledger_that_is_gone_is_not_begun_anew),
        SAMPLE_TEST(test_a_lost_log_file_is_noticed_at_open),
        SAMPLE_TEST(test_two_names_of_a_file_have_one_anchor),
        SAMPLE_TEST(test_an_anchor_ahead_of_the_log_is_never_taken_back),
        SAMPLE_TEST(test_an_anchor_that_cannot_be_written_is_tried_again),
        SAMPLE_TEST(test_two_processes_move_one_anchor_forward),
        SAMPLE_TEST(test_a_process_that_dies_at_the_anchor_leaves_a_good_one),
    };

    if (child_is_one(argc, argv)) {
        return run_child(argv);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
