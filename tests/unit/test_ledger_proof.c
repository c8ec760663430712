/* Verifying, copying and restoring on every backend: when the store was changed behind the ledger's
 * back, when memory runs out, and when the disk refuses in the middle. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/failpoint.h"
#include "lib/fault.h"
#include "lib/ledger_fixture.h"
#include "lib/ledger_sample.h"

struct proof {
    struct ledger_fixture *f;
    struct sample sample; /* only its error, and its functions */
    pawl_error *err;
    char dir[TEMPDIR_SIZE + 32];
    char copy[TEMPDIR_SIZE + 64];
    char restored[TEMPDIR_SIZE + 64];
};

static void begin(struct proof *proof, void **state)
{
    static const float vector[] = { 1, 2, 3 };

    *proof = (struct proof){ .f = *state };
    proof->err = &proof->sample.err;
    snprintf(proof->dir, sizeof(proof->dir), "%s/made", proof->f->dir);
    snprintf(proof->copy, sizeof(proof->copy), "%s/copy.db", proof->dir);
    snprintf(proof->restored, sizeof(proof->restored), "%s/restored.db", proof->dir);
    assert_int_equal(mkdir(proof->dir, 0700), 0);
    sample_fill(&proof->sample, proof->f->ledger);
    assert_ok(pawl_ledger_embed(proof->f->ledger, 4, vector, COUNT_OF(vector), proof->err),
              proof->err);
}

static void assert_made(struct proof *proof, const char *names)
{
    char found[1024];

    sample_names(proof->dir, found, sizeof(found));
    assert_string_equal(found, names);
}

/* --- changed behind its back --- */

static const struct {
    const char *sql;
    uint64_t offset;
    const char *what;
} deeds[] = {
    { "UPDATE events SET payload = '0' WHERE \"offset\" = 5", 5, "changed: its content" },
    { "UPDATE events SET actor = 'eve' WHERE \"offset\" = 5", 5, "changed: its content" },
    { "UPDATE events SET turn = 9 WHERE \"offset\" = 30", 30, "changed" },
    { "UPDATE events SET hash = (SELECT hash FROM events WHERE \"offset\" = 6)"
      " WHERE \"offset\" = 5",
      5,
      "changed: its hash" },
    { "DELETE FROM events WHERE \"offset\" = 5", 5, "removed" },
    { "DELETE FROM events WHERE \"offset\" > 27", 28, "" },
    { "UPDATE events SET \"offset\" = 99 WHERE \"offset\" = 5;"
      "UPDATE events SET \"offset\" = 5 WHERE \"offset\" = 9;"
      "UPDATE events SET \"offset\" = 9 WHERE \"offset\" = 99",
      5,
      "reordered" },
    { "UPDATE turns SET state = 2 WHERE turn = 1", 15, "changed" },
    { "DELETE FROM turns WHERE turn = 3", 22, "changed" },
};

static void test_a_changed_store_is_found_out(void **state)
{
    for (size_t i = 0; i < COUNT_OF(deeds); i++) {
        struct proof proof;
        pawl_verify_report report = { .size = sizeof(pawl_verify_report) };

        begin(&proof, state);
        if (strcmp(proof.f->backend, "sqlite") == 0) { /* the anchor comes when it is closed */
            assert_true(ledger_fixture_close(proof.f));
            ledger_fixture_open(proof.f, NULL);
        }
        assert_verifies(&proof.sample, proof.f->ledger, SAMPLE_EVENTS);
        if (!ledger_fixture_sql(proof.f, deeds[i].sql)) {
            return; /* nobody gets at it */
        }
        pawl_status status = pawl_ledger_verify(proof.f->ledger, NULL, &report, proof.err);
        if (status != PAWL_CORRUPT || report.first_bad_offset != deeds[i].offset
            || strstr(report.what, deeds[i].what) != report.what) {
            fail_msg("%s: %s at %llu: %s",
                     deeds[i].sql,
                     pawl_status_name(status),
                     (unsigned long long)report.first_bad_offset,
                     report.what);
        }
        /* What does not verify becomes no snapshot. */
        assert_status(pawl_ledger_snapshot_to(proof.f->ledger, proof.copy, NULL, NULL, proof.err),
                      PAWL_CORRUPT,
                      proof.err);
        assert_made(&proof, "");
        assert_int_equal(ledger_fixture_teardown(state), 0);
        assert_int_equal(ledger_fixture_setup(state), 0);
    }
}

static void test_a_cut_tail_is_noticed_at_the_next_open(void **state)
{
    struct proof proof;
    pawl_ledger *ledger = NULL;

    begin(&proof, state);
    if (!ledger_fixture_close(proof.f)) {
        return;
    }
    assert_true(ledger_fixture_sql(proof.f, "DELETE FROM events WHERE \"offset\" > 27"));
    assert_status(
        pawl_ledger_open(proof.f->location, NULL, &ledger, proof.err), PAWL_CORRUPT, proof.err);
    assert_message(proof.err, "the log ends at offset 27");
}

/* --- memory --- */

/* Either it says that there was none, or it did all of it. */
static void assert_whole_or_nothing(struct proof *proof, pawl_status status, const char *path)
{
    if (status != PAWL_OK) {
        assert_true(fault_fired());
        assert_status(status, PAWL_NOMEM, proof->err);
        if (access(path, F_OK) == 0) {
            fail_msg("'%s' is there, but: %s", path, proof->err->message);
        }
        return;
    }
    if (path[0] != '\0') {
        assert_int_equal(unlink(path), 0);
    }
}

static void test_running_out_of_memory_leaves_no_half(void **state)
{
    struct proof proof;

    begin(&proof, state);
    if (strcmp(proof.f->backend, "postgres") == 0) {
        return; /* its wrapper has tests of its own; here every try is a connection */
    }
    pawl_ledger *ledger = proof.f->ledger;
    FAULT_WALK (verifying) {
        assert_whole_or_nothing(&proof, pawl_ledger_verify(ledger, NULL, NULL, proof.err), "");
    }
    FAULT_WALK (taking) {
        assert_whole_or_nothing(
            &proof, pawl_ledger_snapshot_to(ledger, proof.copy, NULL, NULL, proof.err), proof.copy);
        assert_made(&proof, "");
    }
    assert_ok(pawl_ledger_snapshot_to(ledger, proof.copy, NULL, NULL, proof.err), proof.err);
    FAULT_WALK (restoring) {
        assert_whole_or_nothing(&proof,
                                sample_restore(proof.copy, proof.restored, NULL, NULL, proof.err),
                                proof.restored);
        assert_made(&proof, "copy.db ");
    }
    assert_verifies(&proof.sample, ledger, SAMPLE_EVENTS);
}

/* --- a disk that refuses --- */

static void test_a_step_that_fails_leaves_no_half(void **state)
{
    static const char *const points[] = { "sqlite.backup.sync.before",
                                          "sqlite.backup.rename.before",
                                          "ledger.snapshot.verify.before",
                                          "fs.publish.sync.before",
                                          "fs.publish.rename.before" };
    struct proof proof;
    char snapshots[sizeof(proof.dir) + 16];

    begin(&proof, state);
    snprintf(snapshots, sizeof(snapshots), "%s/s", proof.f->dir);
    pawl_ledger *ledger = proof.f->ledger;
    bool pages = strcmp(proof.f->backend, "sqlite") == 0; /* others do not copy them */
    assert_ok(pawl_ledger_snapshot_schedule(ledger, snapshots, 0, 3, NULL, proof.err), proof.err);
    for (size_t i = pages ? 0 : 2; i < COUNT_OF(points); i++) {
        char rule[80];
        snprintf(rule, sizeof(rule), "%s=error:NO_SPACE", points[i]);
        assert_ok(pawl__failpoint_set(rule, proof.err), proof.err);
        assert_status(pawl_ledger_snapshot_to(ledger, proof.copy, NULL, NULL, proof.err),
                      PAWL_NO_SPACE,
                      proof.err);
        assert_made(&proof, "");
        if (i != 2) {
            assert_status(sample_restore(snapshots, proof.restored, NULL, NULL, proof.err),
                          PAWL_NO_SPACE,
                          proof.err);
            assert_made(&proof, "");
        }
        assert_ok(pawl__failpoint_set(NULL, proof.err), proof.err);
    }
    /* A proof that cannot be written down is none. */
    assert_ok(pawl__failpoint_set("fs.replace.rename.before=error", proof.err), proof.err);
    assert_status(pawl_ledger_prove(ledger, snapshots, NULL, proof.err), PAWL_IO, proof.err);
    assert_ok(pawl__failpoint_set(NULL, proof.err), proof.err);
    char names[256];
    sample_names(snapshots, names, sizeof(names));
    assert_string_equal(names, "pawl.lock snapshot-00000000000000000030.db ");
    assert_ok(pawl_ledger_prove(ledger, snapshots, NULL, proof.err), proof.err);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_a_changed_store_is_found_out),
        LEDGER_TEST(test_a_cut_tail_is_noticed_at_the_next_open),
        LEDGER_TEST(test_running_out_of_memory_leaves_no_half),
        LEDGER_TEST(test_a_step_that_fails_leaves_no_half),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
