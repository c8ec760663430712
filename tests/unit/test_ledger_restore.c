/* What a restore takes, what it refuses, and what it says: a loss is never passed over in silence. */
#include "lib/check.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pawl/ledger.h>

#include "base/core/macros.h"
#include "lib/child.h"
#include "lib/ledger_sample.h"
#include "store/layout.h"

struct restoring {
    struct sample *sample;
    pawl_error *err;
    char dir[TEMPDIR_SIZE + 32];    /* of snapshots 30 and 33 */
    char older[TEMPDIR_SIZE + 96];  /* of 30 */
    char newest[TEMPDIR_SIZE + 96]; /* of 33 */
    char target[TEMPDIR_SIZE + 64];
};

static void take(struct restoring *r)
{
    pawl_ledger *ledger = sample_open(r->sample, r->sample->path);

    assert_ok(pawl_ledger_snapshot_schedule(ledger, r->dir, 0, 9, NULL, r->err), r->err);
    pawl_ledger_close(ledger, 0, NULL);
}

static void append(struct restoring *r, int first, int last)
{
    pawl_ledger *ledger = sample_open(r->sample, r->sample->path);

    sample_append(r->sample, ledger, first, last);
    pawl_ledger_close(ledger, 0, NULL);
}

static struct restoring begin(void **state)
{
    struct restoring r = { .sample = *state };

    r.err = &r.sample->err;
    snprintf(r.dir, sizeof(r.dir), "%s/snapshots", r.sample->dir);
    snprintf(r.older, sizeof(r.older), "%s/snapshot-00000000000000000030.db", r.dir);
    snprintf(r.newest, sizeof(r.newest), "%s/snapshot-00000000000000000033.db", r.dir);
    snprintf(r.target, sizeof(r.target), "%s/target.db", r.sample->dir);
    take(&r);
    append(&r, 31, 33);
    take(&r);
    return r;
}

static void damage(const char *path)
{
    size_t size;
    char *bytes = file_read(path, &size);

    bytes[sample_find(bytes, size, "marker-0026") + 3] ^= 1;
    file_write(path, bytes, size);
    free(bytes);
}

static void assert_ends_with(const pawl_error *err, const char *end)
{
    size_t len = strlen(err->message);

    if (len < strlen(end) || strcmp(err->message + len - strlen(end), end) != 0) {
        fail_msg("'%s' does not end with '%s'", err->message, end);
    }
}

static void assert_nothing_left(struct restoring *r)
{
    char names[2048];
    const char *const places[] = { r->sample->dir, r->dir };

    assert_true(access(r->target, F_OK) != 0);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        sample_names(places[i], names, sizeof(names));
        if (strstr(names, ".tmp-") != NULL || strstr(names, "restored") != NULL) {
            fail_msg("left behind: %s", names);
        }
    }
}

static void assert_refused(struct restoring *r,
                           const char *snapshot,
                           const char *tail,
                           pawl_status status,
                           const char *message)
{
    assert_status(sample_restore(snapshot, r->target, tail, NULL, r->err), status, r->err);
    assert_message(r->err, message);
    assert_nothing_left(r);
}

/* --- which snapshot --- */

static void test_a_damaged_newest_snapshot_is_named_and_an_older_one_must_be_accepted(void **state)
{
    struct restoring r = begin(state);
    pawl_restore_options options = PAWL_RESTORE_OPTIONS_INIT;
    pawl_restored restored = PAWL_RESTORED_INIT;

    damage(r.newest);
    assert_refused(&r, r.dir, NULL, PAWL_CORRUPT, "snapshot-00000000000000000033.db");
    assert_message(r.err, "the newest good one is snapshot-00000000000000000030.db");
    assert_message(r.err, "offset 26");
    assert_ends_with(r.err, "add --accept-older");

    options.target = r.target;
    options.accept_older = true;
    assert_ok(pawl_snapshot_restore(r.dir, &options, &restored, r.err), r.err);
    assert_string_equal(restored.path, r.target);
    assert_string_equal(restored.snapshot, r.older);
    assert_string_equal(restored.passed_over, r.newest);
    assert_int_equal(restored.head.offset, SAMPLE_EVENTS);
    assert_int_equal(restored.lost, 3); /* 31 to 33 */
    assert_good_copy(r.sample, r.target, NULL, SAMPLE_EVENTS);
}

static void test_what_is_good_needs_no_acceptance_and_says_what_it_restored(void **state)
{
    struct restoring r = begin(state);
    pawl_restored restored = PAWL_RESTORED_INIT;

    damage(r.older); /* nobody needs that one */
    assert_ok(pawl_snapshot_restore(r.dir, NULL, &restored, r.err), r.err);
    assert_string_equal(restored.snapshot, r.newest);
    assert_string_equal(restored.passed_over, "");
    assert_int_equal(restored.head.offset, 33);
    assert_int_equal(restored.lost, 0);
    assert_good_copy(r.sample, restored.path, NULL, 33);
}

static void test_when_no_snapshot_is_good_accepting_an_older_one_does_not_help(void **state)
{
    struct restoring r = begin(state);

    damage(r.newest);
    damage(r.older);
    assert_refused(&r, r.dir, NULL, PAWL_CORRUPT, "no good snapshot; the newest, snapshot-");
    assert_ends_with(r.err, "restore another copy of the directory");
    assert_status(sample_restore_older(r.dir, r.target, NULL, NULL, r.err), PAWL_CORRUPT, r.err);
    assert_nothing_left(&r);
}

static void test_a_file_that_is_empty_or_no_database_is_passed_over_as_damaged(void **state)
{
    struct restoring r = begin(state);

    file_write(r.newest, "", 0);
    assert_refused(&r, r.dir, NULL, PAWL_CORRUPT, "snapshot-00000000000000000033.db");
    file_write(r.newest, "Dear diary, today I was no snapshot.", 36);
    assert_refused(&r, r.dir, NULL, PAWL_CORRUPT, "snapshot-00000000000000000033.db");
    assert_ends_with(r.err, "add --accept-older");
}

static void test_a_pipe_in_the_place_of_a_snapshot_is_passed_over_as_damaged(void **state)
{
    struct restoring r = begin(state);

    assert_int_equal(unlink(r.newest), 0);
    assert_int_equal(mkfifo(r.newest, 0600), 0); /* which nobody writes to */
    assert_refused(&r, r.dir, NULL, PAWL_CORRUPT, "snapshot-00000000000000000033.db");
    assert_message(r.err, "is not a file");
    assert_ends_with(r.err, "add --accept-older");
    assert_refused(&r, r.newest, NULL, PAWL_INVALID, "is not a file");
}

static void test_a_link_to_nowhere_in_the_place_of_a_snapshot_must_be_accepted(void **state)
{
    struct restoring r = begin(state);
    pawl_restore_options options = PAWL_RESTORE_OPTIONS_INIT;
    pawl_restored restored = PAWL_RESTORED_INIT;

    assert_int_equal(unlink(r.newest), 0);
    assert_int_equal(symlink("moved-away.db", r.newest), 0);
    assert_refused(&r, r.dir, NULL, PAWL_CORRUPT, "snapshot-00000000000000000033.db");
    assert_message(r.err, "the newest good one is snapshot-00000000000000000030.db");
    options.target = r.target;
    options.accept_older = true;
    assert_ok(pawl_snapshot_restore(r.dir, &options, &restored, r.err), r.err);
    assert_string_equal(restored.passed_over, r.newest);
}

static void test_a_snapshot_must_end_at_the_offset_its_name_says(void **state)
{
    struct restoring r = begin(state);
    char wrong[sizeof(r.newest)];
    char any_name[TEMPDIR_SIZE + 64];

    snprintf(wrong, sizeof(wrong), "%s/snapshot-00000000000000000077.db", r.dir);
    sample_copy(r.newest, wrong);
    assert_refused(&r, wrong, NULL, PAWL_CORRUPT, "it ends at offset 33, its name says 77");
    assert_ends_with(r.err, "the newest good one is taken");
    assert_refused(&r, r.dir, NULL, PAWL_CORRUPT, "its name says 77");
    assert_message(r.err, "the newest good one is snapshot-00000000000000000033.db");

    /* Under another name it promises nothing. */
    snprintf(any_name, sizeof(any_name), "%s/backup.db", r.sample->dir);
    sample_copy(wrong, any_name);
    assert_ok(sample_restore(any_name, r.target, NULL, NULL, r.err), r.err);
}

static void test_a_newest_snapshot_of_a_newer_version_is_unsupported_in_so_many_words(void **state)
{
    struct restoring r = begin(state);

    sample_sql(r.newest,
               "INSERT INTO schema_version (component, version, migration, name, applied_at) "
               "SELECT component, '9.9.9', max(migration) + 1, 'later', applied_at "
               "FROM schema_version WHERE component = 'ledger'");
    assert_refused(&r, r.dir, NULL, PAWL_UNSUPPORTED, "version 9.9.9");
    assert_message(r.err, "use a newer pawl; nothing was changed");
    assert_refused(&r, r.newest, NULL, PAWL_UNSUPPORTED, "use a newer pawl; nothing was changed");
}

/* --- the tail --- */

static void test_a_tail_that_was_cut_off_must_be_accepted(void **state)
{
    struct restoring r = begin(state);
    pawl_restore_options options = PAWL_RESTORE_OPTIONS_INIT;
    pawl_restored restored = PAWL_RESTORED_INIT;

    append(&r, 34, 40);
    sample_sql(r.sample->path, "DELETE FROM events WHERE offset > 35");
    assert_refused(&r, r.newest, r.sample->path, PAWL_CORRUPT, "ends at offset 35");
    assert_message(r.err, "its anchor is at 40");
    assert_ends_with(r.err, "add --accept-older");
    options.target = r.target;
    options.tail_location = r.sample->path;
    options.accept_older = true;
    assert_ok(pawl_snapshot_restore(r.newest, &options, &restored, r.err), r.err);
    assert_int_equal(restored.lost, 5); /* 36 to 40, which the anchor knows of */
    assert_good_copy(r.sample, r.target, NULL, 35);
}

static void test_a_tail_that_was_cut_off_shows_without_its_anchor(void **state)
{
    struct restoring r = begin(state);
    pawl_restore_options options = PAWL_RESTORE_OPTIONS_INIT;
    pawl_restored restored = PAWL_RESTORED_INIT;

    append(&r, 34, 40);
    sample_sql(r.sample->path, "DELETE FROM events WHERE offset > 35");
    assert_int_equal(unlink(r.sample->anchor), 0);
    assert_refused(&r, r.newest, r.sample->path, PAWL_CORRUPT, "ends at offset 35");
    assert_message(r.err, "but had events up to 40");
    assert_ends_with(r.err, "add --accept-older");
    options.target = r.target;
    options.tail_location = r.sample->path;
    options.accept_older = true;
    assert_ok(pawl_snapshot_restore(r.newest, &options, &restored, r.err), r.err);
    assert_int_equal(restored.lost, 5);
    assert_good_copy(r.sample, r.target, NULL, 35);
}

static void test_a_tail_that_is_shorter_than_the_snapshot_adds_nothing(void **state)
{
    struct restoring r = begin(state);
    char tail[TEMPDIR_SIZE + 64];

    snprintf(tail, sizeof(tail), "%s/tail.db", r.sample->dir);
    sample_copy(r.older, tail); /* an older copy, from which nothing is missing */
    assert_ok(sample_restore(r.newest, r.target, tail, NULL, r.err), r.err);
    assert_good_copy(r.sample, r.target, NULL, 33);

    /* Here something is: the anchor knows of 34, and nobody has it. */
    assert_int_equal(unlink(r.target), 0);
    append(&r, 34, 34);
    sample_sql(r.sample->path, "DELETE FROM events WHERE offset > 20");
    assert_status(sample_restore(r.newest, NULL, r.sample->path, NULL, r.err), PAWL_CORRUPT, r.err);
    assert_message(r.err, "it ends at offset 20, its anchor is at 34");
}

/* --- stopping --- */

struct stopper {
    uint64_t calls;
    uint64_t stop_at;
    uint64_t last;
};

static bool stop_at(void *context, uint64_t done, uint64_t total)
{
    struct stopper *stopper = context;

    assert_true(done >= stopper->last && done <= total);
    stopper->last = done;
    return ++stopper->calls != stopper->stop_at;
}

static void test_a_restore_that_is_stopped_anywhere_leaves_nothing(void **state)
{
    struct restoring r = begin(state);
    pawl_restore_options options = PAWL_RESTORE_OPTIONS_INIT;
    struct stopper whole = { 0 };
    char path[TEMPDIR_SIZE + 128];

    append(&r, 34, 40);
    snprintf(path, sizeof(path), "%s/whole.db", r.sample->dir);
    options.target = path;
    options.tail_location = r.sample->path;
    pawl_watch watch = { sizeof(pawl_watch), stop_at, &whole };
    options.watch = &watch;
    assert_ok(pawl_snapshot_restore(r.dir, &options, NULL, r.err), r.err);
    assert_true(whole.calls >= 4);
    options.target = r.target;
    for (uint64_t at = 1; at <= whole.calls; at++) {
        struct stopper stopper = { .stop_at = at };
        watch.context = &stopper;
        assert_status(pawl_snapshot_restore(r.dir, &options, NULL, r.err), PAWL_CANCELLED, r.err);
        assert_nothing_left(&r);
    }
}

/* --- what to do next --- */

static void test_every_corrupt_answer_of_a_snapshot_says_what_to_do(void **state)
{
    struct restoring r = begin(state);
    pawl_proof proof = PAWL_PROOF_INIT;
    char path[TEMPDIR_SIZE + 128];

    pawl_ledger *ledger = sample_open(r.sample, r.sample->path);
    damage(r.newest);
    assert_refused(&r, r.newest, NULL, PAWL_CORRUPT, "offset 26");
    assert_ends_with(r.err, "given their directory, the newest good one is taken");
    assert_status(pawl_ledger_prove(ledger, r.dir, &proof, r.err), PAWL_CORRUPT, r.err);
    assert_ends_with(r.err, "move this snapshot away and take a new one");
    snprintf(path, sizeof(path), "%s/proof.json", r.dir);
    file_write(path, "{", 1);
    assert_status(pawl_ledger_last_proof(r.dir, &proof, r.err), PAWL_CORRUPT, r.err);
    assert_ends_with(r.err, "run `pawl ledger prove` again");
    sample_sql(r.sample->path, "UPDATE events SET payload = '0' WHERE offset = 5");
    assert_status(
        pawl_ledger_snapshot_to(ledger, r.target, NULL, NULL, r.err), PAWL_CORRUPT, r.err);
    assert_ends_with(r.err, "`pawl ledger restore` the newest good snapshot");
    sample_append(r.sample, ledger, 34, 34);
    assert_status(
        pawl_ledger_snapshot_schedule(ledger, r.dir, 0, 9, NULL, r.err), PAWL_CORRUPT, r.err);
    assert_ends_with(r.err, "`pawl ledger restore` the newest good snapshot");
    pawl_ledger_close(ledger, 0, NULL);
    assert_nothing_left(&r);
}

static void test_a_long_path_does_not_cut_off_what_to_do(void **state)
{
    struct restoring r = begin(state);
    char deep[PATH_MAX];
    size_t len = (size_t)snprintf(deep, sizeof(deep), "%s", r.sample->dir);

    for (int i = 0; i < 2; i++) { /* SQLite takes paths of up to 512 bytes */
        len += (size_t)snprintf(deep + len, sizeof(deep) - len, "/%0180d", i);
        assert_int_equal(mkdir(deep, 0700), 0);
    }
    snprintf(deep + len, sizeof(deep) - len, "/snapshots");
    assert_int_equal(rename(r.dir, deep), 0);
    len = strlen(deep);
    snprintf(deep + len, sizeof(deep) - len, "/snapshot-%020d.db", 33);
    damage(deep);
    deep[len] = '\0';
    assert_status(sample_restore(deep, r.target, NULL, NULL, r.err), PAWL_CORRUPT, r.err);
    assert_message(r.err, "snapshot-00000000000000000033.db");
    assert_message(r.err, "snapshot-00000000000000000030.db");
    assert_ends_with(r.err, "add --accept-older");
}

/* --- rights and disks, in a process of their own --- */

static int restore_without_rights(char **argv)
{
    pawl_error err = PAWL_ERROR_INIT;

    if (!child_drop_rights()) {
        return 2;
    }
    child_say("%s", pawl_status_name(sample_restore(argv[3], argv[4], NULL, NULL, &err)));
    child_say("%s", err.message);
    child_say("%s", pawl_status_name(sample_restore_older(argv[3], argv[4], NULL, NULL, &err)));
    return 0;
}

static void test_a_newest_snapshot_that_may_not_be_read_is_denied_not_damaged(void **state)
{
    struct restoring r = begin(state);
    struct child child;
    char target[TEMPDIR_SIZE + 64];
    const char *arguments[] = { "rights", r.dir, target, NULL };
    char line[PAWL_ERROR_MESSAGE_SIZE + 1];

    if (geteuid() != 0) {
        skip();
    }
    snprintf(target, sizeof(target), "%s/own", r.sample->dir);
    assert_int_equal(mkdir(target, 0777), 0);
    assert_int_equal(chmod(target, 0777), 0);
    snprintf(target, sizeof(target), "%s/own/target.db", r.sample->dir);
    assert_int_equal(chmod(r.sample->dir, 0755), 0);
    assert_int_equal(chmod(r.dir, 0755), 0);
    assert_int_equal(chmod(r.older, 0444), 0);
    assert_int_equal(chmod(r.newest, 0000), 0);
    child_start(&child, arguments);
    assert_true(child_line(&child, line, sizeof(line)));
    assert_string_equal(line, "DENIED");
    assert_true(child_line(&child, line, sizeof(line)));
    assert_non_null(strstr(line, "snapshot-00000000000000000033.db cannot be restored"));
    assert_non_null(strstr(line, "the newest good one is snapshot-00000000000000000030.db"));
    assert_true(child_line(&child, line, sizeof(line)));
    assert_string_equal(line, "OK");
    assert_int_equal(child_end(&child, 0), 0);
    assert_good_copy(r.sample, target, NULL, SAMPLE_EVENTS);
}

static int open_on_a_read_only_disk(char **argv)
{
    pawl_error err = PAWL_ERROR_INIT;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *ledger = NULL;
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/copy.db", argv[3]);
    if (!child_mount_tmpfs(argv[3], "size=8m")) {
        return 3;
    }
    sample_copy(argv[4], path);
    if (!child_remount_read_only(argv[3])) {
        return 4;
    }
    options.read_only = true;
    child_say("%s", pawl_status_name(pawl_ledger_open(path, &options, &ledger, &err)));
    child_say("%s", err.message);
    child_say("%s", pawl_status_name(sample_restore(path, argv[5], NULL, NULL, &err)));
    return 0;
}

static void test_a_snapshot_on_a_read_only_disk_is_denied_and_restores_elsewhere(void **state)
{
    struct restoring r = begin(state);
    struct child child;
    char disk[TEMPDIR_SIZE + 32];
    const char *arguments[] = { "disk", disk, r.newest, r.target, NULL };
    char line[PAWL_ERROR_MESSAGE_SIZE + 1];

    if (geteuid() != 0) {
        skip();
    }
    snprintf(disk, sizeof(disk), "%s/disk", r.sample->dir);
    assert_int_equal(mkdir(disk, 0700), 0);
    child_start(&child, arguments);
    assert_true(child_line(&child, line, sizeof(line)));
    assert_string_equal(line, "DENIED");
    assert_true(child_line(&child, line, sizeof(line)));
    assert_non_null(strstr(line, "copy the file to one"));
    assert_true(child_line(&child, line, sizeof(line)));
    assert_string_equal(line, "OK");
    assert_int_equal(child_end(&child, 0), 0);
    assert_good_copy(r.sample, r.target, NULL, 33);
}

/* --- a ledger that was never finished --- */

static void test_a_creation_that_was_cut_short_holds_no_ledger_yet(void **state)
{
    struct restoring r = begin(state);
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *ledger = NULL;
    char anchor[sizeof(r.target) + 8];
    char sql[128];

    /* The file is marked as a ledger, and the power fails before its tables are made. */
    file_write(r.target, "", 0);
    snprintf(sql,
             sizeof(sql),
             "PRAGMA journal_mode=WAL; PRAGMA application_id=%d",
             PAWL__LEDGER_APPLICATION_ID);
    sample_sql(r.target, sql);
    options.read_only = true;
    assert_status(pawl_ledger_open(r.target, &options, &ledger, r.err), PAWL_NOT_FOUND, r.err);
    assert_message(r.err, "its creation was cut short");

    /* One whose anchor knows of events was more than that. */
    snprintf(anchor, sizeof(anchor), "%s.anchor", r.target);
    sample_copy(r.sample->anchor, anchor);
    assert_status(pawl_ledger_open(r.target, &options, &ledger, r.err), PAWL_CORRUPT, r.err);
    assert_message(r.err, "its anchor is at offset 33");
    assert_int_equal(unlink(anchor), 0);

    options.read_only = false;
    assert_ok(pawl_ledger_open(r.target, &options, &ledger, r.err), r.err);
    sample_append(r.sample, ledger, 1, 1);
    assert_verifies(r.sample, ledger, 1);
    pawl_ledger_close(ledger, 0, NULL);
}

static int run_child(char **argv)
{
    return strcmp(argv[2], "rights") == 0 ? restore_without_rights(argv)
                                          : open_on_a_read_only_disk(argv);
}

int main(int argc, char **argv)
{
    if (child_is_one(argc, argv)) {
        return run_child(argv);
    }
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(test_a_damaged_newest_snapshot_is_named_and_an_older_one_must_be_accepted),
        SAMPLE_TEST(test_what_is_good_needs_no_acceptance_and_says_what_it_restored),
        SAMPLE_TEST(test_when_no_snapshot_is_good_accepting_an_older_one_does_not_help),
        SAMPLE_TEST(test_a_file_that_is_empty_or_no_database_is_passed_over_as_damaged),
        SAMPLE_TEST(test_a_pipe_in_the_place_of_a_snapshot_is_passed_over_as_damaged),
        SAMPLE_TEST(test_a_link_to_nowhere_in_the_place_of_a_snapshot_must_be_accepted),
        SAMPLE_TEST(test_a_snapshot_must_end_at_the_offset_its_name_says),
        SAMPLE_TEST(test_a_newest_snapshot_of_a_newer_version_is_unsupported_in_so_many_words),
        SAMPLE_TEST(test_a_tail_that_was_cut_off_must_be_accepted),
        SAMPLE_TEST(test_a_tail_that_was_cut_off_shows_without_its_anchor),
        SAMPLE_TEST(test_a_tail_that_is_shorter_than_the_snapshot_adds_nothing),
        SAMPLE_TEST(test_a_restore_that_is_stopped_anywhere_leaves_nothing),
        SAMPLE_TEST(test_every_corrupt_answer_of_a_snapshot_says_what_to_do),
        SAMPLE_TEST(test_a_long_path_does_not_cut_off_what_to_do),
        SAMPLE_TEST(test_a_newest_snapshot_that_may_not_be_read_is_denied_not_damaged),
        SAMPLE_TEST(test_a_snapshot_on_a_read_only_disk_is_denied_and_restores_elsewhere),
        SAMPLE_TEST(test_a_creation_that_was_cut_short_holds_no_ledger_yet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
