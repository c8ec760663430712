/* Files that are damaged, foreign or too new, directories that may not be written, disks that fill
 * up: a clear word, the right status, nothing lost and nothing half written. */
#include "lib/check.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pawl/ledger.h>

#include "base/core/macros.h"
#include "lib/child.h"
#include "lib/ledger_sample.h"

struct files {
    struct sample *sample;
    pawl_error *err;
    char dir[TEMPDIR_SIZE + 32];      /* of snapshots */
    char snapshot[TEMPDIR_SIZE + 96]; /* of offset 30, in it */
    char target[TEMPDIR_SIZE + 64];
    char names[4096];
};

/* A ledger with one snapshot, and one event more. */
static struct files begin(void **state)
{
    struct files files = { .sample = *state };
    struct sample *sample = files.sample;

    files.err = &sample->err;
    snprintf(files.dir, sizeof(files.dir), "%s/snapshots", sample->dir);
    snprintf(files.target, sizeof(files.target), "%s/target.db", sample->dir);
    snprintf(
        files.snapshot, sizeof(files.snapshot), "%s/snapshot-00000000000000000030.db", files.dir);
    pawl_ledger *ledger = sample_open(sample, sample->path);
    assert_ok(pawl_ledger_snapshot_schedule(ledger, files.dir, 0, 9, NULL, files.err), files.err);
    sample_append(sample, ledger, 31, 31);
    pawl_ledger_close(ledger, 0, NULL);
    return files;
}

static const char *names(struct files *files)
{
    sample_names(files->dir, files->names, sizeof(files->names));
    return files->names;
}

/* Restoring it fails so, and leaves neither a target nor half of one. */
static void assert_no_restore(struct files *files,
                              const char *snapshot,
                              const char *tail,
                              pawl_status expected,
                              const char *message)
{
    char path[PATH_MAX] = "as it was";

    assert_status(
        sample_restore(snapshot, files->target, tail, path, files->err), expected, files->err);
    assert_message(files->err, message);
    assert_string_equal(path, "as it was");
    assert_true(access(files->target, F_OK) != 0);
    sample_names(files->sample->dir, files->names, sizeof(files->names));
    if (strstr(files->names, ".tmp-") != NULL) {
        fail_msg("left behind: %s", files->names);
    }
}

static void flip(const char *path, const char *text)
{
    size_t size;
    char *bytes = file_read(path, &size);

    bytes[sample_find(bytes, size, text)] ^= 4;
    file_write(path, bytes, size);
    free(bytes);
}

/* --- what is no snapshot --- */

static void test_what_is_no_ledger_is_not_restored(void **state)
{
    struct files files = begin(state);
    char path[sizeof(files.dir) + 32];

    snprintf(path, sizeof(path), "%s/other", files.dir);
    assert_no_restore(&files, path, NULL, PAWL_NOT_FOUND, path);
    file_write(path, "", 0);
    assert_no_restore(&files, path, NULL, PAWL_NOT_FOUND, "empty");
    file_write(path, "dear diary, today nothing happened at all", 41);
    assert_no_restore(&files, path, NULL, PAWL_INVALID, "no ledger");
    assert_int_equal(unlink(path), 0);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    sample_sql(path, "CREATE TABLE diary (day TEXT)");
    assert_no_restore(&files, path, NULL, PAWL_INVALID, "not this store");
}

static void test_a_ledger_of_a_newer_version_is_not_touched(void **state)
{
    struct files files = begin(state);
    struct sample *sample = files.sample;
    static const char newer[] = "INSERT INTO schema_version VALUES "
                                "('ledger', '9.0.0', 2, 'future', '2030-01-01 00:00:00.000000')";
    pawl_ledger *ledger = NULL;

    sample_sql(files.snapshot, newer);
    assert_no_restore(&files, files.snapshot, NULL, PAWL_UNSUPPORTED, "9.0.0");
    sample_sql(sample->path, newer);
    assert_status(
        pawl_ledger_open(sample->path, NULL, &ledger, files.err), PAWL_UNSUPPORTED, files.err);
    assert_message(files.err, "9.0.0");
}

static void test_a_ledger_with_a_foreign_mark_is_not_taken_for_the_original_schema(void **state)
{
    struct files files = begin(state);
    pawl_ledger *ledger = NULL;

    sample_sql(files.sample->path, "PRAGMA application_id = 12345");
    assert_status(
        pawl_ledger_open(files.sample->path, NULL, &ledger, files.err), PAWL_INVALID, files.err);
    assert_message(files.err, "not this store (application id 0x00003039");
}

static void test_a_ledger_without_a_part_of_its_schema_is_corrupt(void **state)
{
    static const struct {
        const char *sql;
        const char *message;
    } parts[] = {
        { "DROP TABLE turns", "there is no table 'turns'" },
        { "DROP TABLE embeddings", "there is no table 'embeddings'" },
        { "DROP INDEX idx_kind", "there is no index 'idx_kind'" },
        { "DROP INDEX idx_turns_unfinished", "there is no index 'idx_turns_unfinished'" },
        { "ALTER TABLE events RENAME COLUMN actor TO who",
          "the table 'events' is not the one that pawl made" },
        { "DELETE FROM schema_version", "schema_version, is empty or gone" },
        { "DROP TABLE schema_version", "schema_version, is empty or gone" },
        { "UPDATE schema_version SET component = 'work'",
          "schema_version records those of 'work' and none of 'ledger'" },
    };
    struct files files = begin(state);
    char kept[sizeof(files.sample->path) + 8];

    snprintf(kept, sizeof(kept), "%s.kept", files.sample->path);
    sample_copy(files.sample->path, kept);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        sample_copy(kept, files.sample->path);
        sample_sql(files.sample->path, parts[i].sql);
        for (int read_only = 0; read_only < 2; read_only++) {
            pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
            pawl_ledger *ledger = NULL;
            options.read_only = read_only == 1;
            assert_status(pawl_ledger_open(files.sample->path, &options, &ledger, files.err),
                          PAWL_CORRUPT,
                          files.err);
            assert_message(files.err, parts[i].message);
        }
    }
}

static void test_a_database_of_the_original_schema_names_the_import(void **state)
{
    struct files files = begin(state);
    pawl_ledger *ledger = NULL;

    close(open(files.target, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    sample_sql(files.target,
               "CREATE TABLE events (offset INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT "
               "NULL, run_id TEXT NOT NULL, turn INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT "
               "NOT NULL, payload TEXT NOT NULL, created_at TEXT NOT NULL, schema_version INTEGER "
               "NOT NULL DEFAULT 1); CREATE INDEX idx_run_id ON events(run_id)");
    size_t size;
    char *before = file_read(files.target, &size);
    assert_status(
        pawl_ledger_open(files.target, NULL, &ledger, files.err), PAWL_INVALID, files.err);
    assert_message(files.err, "`pawl ledger import`");
    size_t size_after;
    char *after = file_read(files.target, &size_after);
    assert_int_equal(size_after, size);
    assert_memory_equal(after, before, size);
    free(before);
    free(after);
}

/* --- damage --- */

static void test_a_damaged_snapshot_is_corrupt_and_its_proof_too(void **state)
{
    struct files files = begin(state);
    struct sample *sample = files.sample;
    char newest[sizeof(files.snapshot)];

    snprintf(newest, sizeof(newest), "%s/snapshot-00000000000000000031.db", files.dir);
    pawl_ledger *ledger = sample_open(sample, sample->path);
    assert_ok(pawl_ledger_snapshot_schedule(ledger, files.dir, 0, 9, NULL, files.err), files.err);
    flip(newest, "marker-0026");
    assert_no_restore(&files, newest, NULL, PAWL_CORRUPT, "offset 26");

    /* A proof is about the newest one: it must not hide that it is damaged. */
    assert_status(pawl_ledger_prove(ledger, files.dir, NULL, files.err), PAWL_CORRUPT, files.err);
    assert_message(files.err, newest);
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_a_truncated_snapshot_is_corrupt(void **state)
{
    struct files files = begin(state);
    size_t size;
    char *bytes = file_read(files.snapshot, &size);

    for (size_t len = 4096; len < size; len += 4096) {
        file_write(files.snapshot, bytes, len);
        assert_no_restore(&files, files.snapshot, NULL, PAWL_CORRUPT, "");
    }
    file_write(files.snapshot, bytes, 100);
    assert_no_restore(&files, files.snapshot, NULL, PAWL_CORRUPT, "");
    /* None is left in the directory. */
    assert_no_restore(&files, files.dir, NULL, PAWL_CORRUPT, "no good snapshot");
    assert_int_equal(unlink(files.snapshot), 0);
    assert_no_restore(&files, files.dir, NULL, PAWL_NOT_FOUND, "no snapshot");
    free(bytes);
}

static void test_a_snapshot_under_a_wrong_name_is_not_good(void **state)
{
    struct files files = begin(state);
    char wrong[sizeof(files.snapshot)];

    snprintf(wrong, sizeof(wrong), "%s/snapshot-00000000000000000099.db", files.dir);
    assert_int_equal(rename(files.snapshot, wrong), 0);
    assert_no_restore(&files, files.dir, NULL, PAWL_CORRUPT, "its name says 99");
}

/* --- what a restore leaves alone, and what it takes --- */

static void test_a_restore_does_not_touch_the_snapshot(void **state)
{
    struct files files = begin(state);
    struct sample *sample = files.sample;
    size_t size;
    size_t size_after;
    char *before = file_read(files.snapshot, &size);
    struct stat info;
    struct stat info_after;

    assert_string_equal(names(&files), "pawl.lock snapshot-00000000000000000030.db ");
    assert_int_equal(stat(files.snapshot, &info), 0);
    assert_ok(sample_restore(files.snapshot, files.target, sample->path, NULL, files.err),
              files.err);
    assert_string_equal(names(&files), "pawl.lock snapshot-00000000000000000030.db ");
    char *after = file_read(files.snapshot, &size_after);
    assert_int_equal(size_after, size);
    assert_memory_equal(after, before, size);
    assert_int_equal(stat(files.snapshot, &info_after), 0);
    assert_memory_equal(&info.st_mtim, &info_after.st_mtim, sizeof(info.st_mtim));
    free(before);
    free(after);
    assert_good_copy(sample, files.target, NULL, SAMPLE_EVENTS + 1);
    assert_status(sample_restore(files.snapshot, files.target, NULL, NULL, files.err),
                  PAWL_CONFLICT,
                  files.err);
}

static void test_restored_names_count_up(void **state)
{
    struct files files = begin(state);
    char path[PATH_MAX];

    for (int i = 1; i <= 3; i++) {
        char expected[sizeof(files.dir) + 64];
        snprintf(expected,
                 sizeof(expected),
                 "%s/snapshot-00000000000000000030.restored-%d.db",
                 files.dir,
                 i);
        assert_ok(sample_restore(files.snapshot, NULL, NULL, path, files.err), files.err);
        assert_string_equal(path, expected);
    }
    /* What was restored is no snapshot: it stays. */
    uint32_t removed = 9;
    assert_ok(pawl_snapshot_prune(files.dir, 1, &removed, files.err), files.err);
    assert_int_equal(removed, 0);
}

/* A snapshot that was opened as a ledger and left without closing has a log beside it. */
static void test_a_snapshot_with_a_log_is_restored_with_it(void **state)
{
    struct files files = begin(state);
    struct sample *sample = files.sample;
    char copy[sizeof(files.dir) + 32];
    char from[sizeof(files.snapshot) + 8];
    char to[sizeof(copy) + 8];

    pawl_ledger *ledger = sample_open(sample, files.snapshot);
    sample_append(sample, ledger, 31, 33);
    snprintf(copy, sizeof(copy), "%s/left.db", files.dir);
    sample_copy(files.snapshot, copy);
    snprintf(from, sizeof(from), "%s-wal", files.snapshot);
    snprintf(to, sizeof(to), "%s-wal", copy);
    sample_copy(from, to);
    pawl_ledger_close(ledger, 0, NULL);
    size_t size;
    size_t log_size;
    char *bytes = file_read(copy, &size);
    char *log = file_read(to, &log_size);
    assert_ok(sample_restore(copy, files.target, NULL, NULL, files.err), files.err);
    assert_good_copy(sample, files.target, NULL, 33);
    size_t size_after;
    char *after = file_read(copy, &size_after);
    assert_true(size_after == size && memcmp(after, bytes, size) == 0);
    free(after);
    after = file_read(to, &size_after);
    assert_true(size_after == log_size && memcmp(after, log, log_size) == 0);
    free(after);
    free(bytes);
    free(log);
}

static void test_a_tail_must_be_of_the_same_ledger(void **state)
{
    struct files files = begin(state);
    struct sample *sample = files.sample;
    char other[TEMPDIR_SIZE + 64];

    snprintf(other, sizeof(other), "%s/other.db", sample->dir);
    pawl_ledger *ledger = sample_open(sample, other);
    sample_append(sample, ledger, 1, 50);
    pawl_ledger_close(ledger, 0, NULL);
    assert_no_restore(&files, files.snapshot, other, PAWL_CONFLICT, "differ at offset 30");
    snprintf(other, sizeof(other), "%s/none.db", sample->dir);
    assert_no_restore(&files, files.snapshot, other, PAWL_NOT_FOUND, "the tail");
    assert_true(access(other, F_OK) != 0);
}

/* Damage before the snapshot's end is what snapshots are for; behind it, it shows. */
static void test_a_damaged_tail_is_refused_by_its_offset(void **state)
{
    struct files files = begin(state);
    struct sample *sample = files.sample;

    pawl_ledger *ledger = sample_open(sample, sample->path);
    sample_append(sample, ledger, 32, 40);
    pawl_ledger_close(ledger, 0, NULL);
    sample_sql(sample->path, "UPDATE events SET payload = '0' WHERE offset = 5");
    assert_ok(sample_restore(files.snapshot, files.target, sample->path, NULL, files.err),
              files.err);
    assert_good_copy(sample, files.target, NULL, 40);
    sample_sql(sample->path, "UPDATE events SET payload = '0' WHERE offset = 33");
    unlink(files.target);
    char anchor[sizeof(files.target) + 8];
    snprintf(anchor, sizeof(anchor), "%s.anchor", files.target);
    unlink(anchor);
    assert_no_restore(&files, files.snapshot, sample->path, PAWL_CORRUPT, "offset 33");
    assert_message(files.err, "restore without it, or with a copy of it that is whole");
}

/* --- pruning --- */

/* Snapshots of the offsets 30 .. 34. */
static void take_more(struct files *files)
{
    pawl_ledger *ledger = sample_open(files->sample, files->sample->path);

    for (int offset = 31; offset <= 34; offset++) {
        sample_append(files->sample, ledger, offset, offset);
        assert_ok(pawl_ledger_snapshot_schedule(ledger, files->dir, 0, 9, NULL, files->err),
                  files->err);
    }
    pawl_ledger_close(ledger, 0, NULL);
}

static char *snapshot_of(struct files *files, int offset, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/snapshot-%020d.db", files->dir, offset);
    return ret_path;
}

static void test_pruning_keeps_the_newest_good_ones_and_what_is_not_ours(void **state)
{
    struct files files = begin(state);
    char path[sizeof(files.snapshot)];
    uint32_t removed = 0;

    take_more(&files);
    flip(snapshot_of(&files, 34, path, sizeof(path)), "marker-0033"); /* counts for nothing */
    file_write(snapshot_of(&files, 7, path, sizeof(path)), "a letter", 8);
    snprintf(path, sizeof(path), "%s/snapshot-30.db", files.dir);
    sample_copy(files.snapshot, path);
    assert_ok(pawl_snapshot_prune(files.dir, 2, &removed, files.err), files.err);
    assert_int_equal(removed, 2); /* 31 and 30 */
    assert_string_equal(names(&files),
                        "pawl.lock snapshot-00000000000000000007.db "
                        "snapshot-00000000000000000032.db snapshot-00000000000000000033.db "
                        "snapshot-00000000000000000034.db snapshot-30.db ");
    assert_int_equal(pawl_snapshot_prune(files.dir, 0, &removed, NULL), PAWL_INVALID);
    assert_int_equal(removed, 2);
}

static void test_the_last_good_snapshot_is_never_removed(void **state)
{
    struct files files = begin(state);
    char path[sizeof(files.snapshot)];
    uint32_t removed = 9;

    take_more(&files);
    for (int offset = 31; offset <= 34; offset++) {
        flip(snapshot_of(&files, offset, path, sizeof(path)), "marker-0025");
    }
    assert_ok(pawl_snapshot_prune(files.dir, 1, &removed, files.err), files.err);
    assert_int_equal(removed, 0);
    assert_ok(sample_restore_older(files.dir, files.target, NULL, NULL, files.err), files.err);
    assert_good_copy(files.sample, files.target, NULL, SAMPLE_EVENTS);
}

static void test_a_damaged_snapshot_does_not_stand_in_the_way_of_a_new_one(void **state)
{
    struct files files = begin(state);
    struct sample *sample = files.sample;
    pawl_ledger *ledger = sample_open(sample, sample->path); /* it has 31 events */
    char path[sizeof(files.snapshot)];
    char side[sizeof(path) + 8];
    bool taken = false;

    snapshot_of(&files, 31, path, sizeof(path));
    snprintf(side, sizeof(side), "%s.anchor", path);
    file_write(path, "a letter", 8);
    file_write(side, "its anchor", 10);
    assert_ok(pawl_ledger_snapshot_schedule(ledger, files.dir, 0, 9, &taken, files.err), files.err);
    assert_true(taken);
    assert_ok(pawl_ledger_prove(ledger, files.dir, NULL, files.err), files.err);
    /* One that is whole at its end: nothing is new, yet there is no good one of it. */
    flip(path, "marker-0026");
    assert_ok(pawl_ledger_snapshot_schedule(ledger, files.dir, 0, 9, &taken, files.err), files.err);
    assert_true(taken);
    assert_ok(pawl_ledger_prove(ledger, files.dir, NULL, files.err), files.err);
    assert_ok(pawl_ledger_snapshot_schedule(ledger, files.dir, 0, 9, &taken, files.err), files.err);
    assert_false(taken);
    assert_string_equal(names(&files),
                        "pawl.lock proof.json snapshot-00000000000000000030.db "
                        "snapshot-00000000000000000031.db "
                        "snapshot-00000000000000000031.db.damaged-1 "
                        "snapshot-00000000000000000031.db.damaged-1.anchor "
                        "snapshot-00000000000000000031.db.damaged-2 ");
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_what_is_no_snapshot_proves_nothing(void **state)
{
    struct files files = begin(state);
    static const char *const contents[] = { "", "x", "a letter to somebody" };
    pawl_ledger *ledger = sample_open(files.sample, files.sample->path);
    char path[sizeof(files.snapshot)];

    snapshot_of(&files, 31, path, sizeof(path));
    for (size_t i = 0; i < COUNT_OF(contents); i++) {
        file_write(path, contents[i], strlen(contents[i]));
        assert_status(
            pawl_ledger_prove(ledger, files.dir, NULL, files.err), PAWL_CORRUPT, files.err);
        assert_message(files.err, path);
    }
    pawl_ledger_close(ledger, 0, NULL);
}

struct listed {
    char text[512];
};

static bool list(void *context, const pawl_snapshot_info *info)
{
    struct listed *listed = context;
    size_t len = strlen(listed->text);

    snprintf(listed->text + len,
             sizeof(listed->text) - len,
             "%llu %s%s\n",
             (unsigned long long)info->offset,
             pawl_status_name(info->status),
             strstr(info->problem, "offset 25") != NULL ? " at 25" : "");
    assert_true(info->taken_at_us > 0);
    return info->offset > 32;
}

static void test_a_list_says_which_are_good(void **state)
{
    struct files files = begin(state);
    struct listed listed = { "" };
    char path[sizeof(files.snapshot)];

    take_more(&files);
    flip(snapshot_of(&files, 33, path, sizeof(path)), "marker-0025");
    assert_ok(pawl_snapshot_list(files.dir, NULL, list, &listed, files.err), files.err);
    assert_string_equal(listed.text, "34 OK\n33 CORRUPT at 25\n32 OK\n");
    pawl_page page = PAWL_PAGE_INIT;
    page.limit = 2;
    listed = (struct listed){ "" };
    assert_ok(pawl_snapshot_list(files.dir, &page, list, &listed, files.err), files.err);
    assert_string_equal(listed.text, "34 OK\n33 CORRUPT at 25\n");
    assert_true(page.more);
    assert_int_equal(page.from, 32);
    listed = (struct listed){ "" };
    page.limit = 1;
    assert_ok(pawl_snapshot_list(files.dir, &page, list, &listed, files.err), files.err);
    assert_string_equal(listed.text, "32 OK\n");
}

static void test_what_a_crash_left_half_made_is_swept_up(void **state)
{
    struct files files = begin(state);
    static const char *const left[] = {
        "snapshot.tmp-abc123", "snapshot.tmp-abc123-wal", "proof.tmp-abc123", "letter.tmp-abc123"
    };
    char path[sizeof(files.dir) + 64];

    for (size_t i = 0; i < COUNT_OF(left); i++) {
        snprintf(path, sizeof(path), "%s/%s", files.dir, left[i]);
        file_write(path, "half", 4);
    }
    assert_ok(pawl_snapshot_prune(files.dir, 1, NULL, files.err), files.err);
    assert_string_equal(names(&files),
                        "letter.tmp-abc123 pawl.lock snapshot-00000000000000000030.db ");
}

/* --- proof --- */

static void test_a_proof_of_another_ledger_fails(void **state)
{
    struct files files = begin(state);
    pawl_ledger *memory = sample_open(files.sample, "memory:");
    pawl_proof proof = { .size = sizeof(pawl_proof), .replayed = 7 };

    sample_append(files.sample, memory, 1, 40);
    assert_status(pawl_ledger_prove(memory, files.dir, &proof, files.err), PAWL_CORRUPT, files.err);
    assert_message(files.err, "not of the snapshot's ledger");
    assert_int_equal(proof.replayed, 7);
    assert_status(pawl_ledger_last_proof(files.dir, &proof, files.err), PAWL_NOT_FOUND, files.err);
    assert_string_equal(names(&files), "pawl.lock snapshot-00000000000000000030.db ");
    pawl_ledger_close(memory, 0, NULL);
}

static void test_a_damaged_proof_is_corrupt(void **state)
{
    struct files files = begin(state);
    char path[sizeof(files.dir) + 32];
    static const char *const texts[] = {
        "", "{}", "{\"version\":2}", "proof", "{\"version\":1,\"snapshot\":3}",
    };
    pawl_proof proof = { .size = sizeof(pawl_proof), .replayed = 7 };

    snprintf(path, sizeof(path), "%s/proof.json", files.dir);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        file_write(path, texts[i], strlen(texts[i]));
        assert_status(
            pawl_ledger_last_proof(files.dir, &proof, files.err), PAWL_CORRUPT, files.err);
        assert_message(files.err, path);
    }
    assert_int_equal(proof.replayed, 7);
    pawl_ledger *ledger = sample_open(files.sample, files.sample->path); /* a new one replaces it */
    assert_ok(pawl_ledger_prove(ledger, files.dir, &proof, files.err), files.err);
    assert_ok(pawl_ledger_last_proof(files.dir, &proof, files.err), files.err);
    assert_int_equal(proof.replayed, 1);
    pawl_ledger_close(ledger, 0, NULL);
}

/* --- rights, in a process that has none --- */

static int try_without_rights(char **argv)
{
    pawl_error err = PAWL_ERROR_INIT;
    pawl_ledger *memory = NULL;
    pawl_event event = {
        .size = sizeof(pawl_event),
        .id = pawl_view_of("e"),
        .run_id = pawl_view_of("r"),
        .kind = pawl_view_of("k"),
        .actor = pawl_view_of("a"),
        .payload = pawl_view_of("1"),
    };
    char path[512];

    if (!child_drop_rights() || pawl_ledger_open("memory:", NULL, &memory, &err) != PAWL_OK
        || pawl_ledger_append(memory, &event, NULL, &err) != PAWL_OK) {
        return 2;
    }
    snprintf(path, sizeof(path), "%s/new.db", argv[3]);
    child_say("%s", pawl_status_name(pawl_ledger_snapshot_to(memory, path, NULL, NULL, &err)));
    child_say("%s",
              pawl_status_name(pawl_ledger_snapshot_schedule(memory, argv[3], 0, 1, NULL, &err)));
    child_say("%s", pawl_status_name(pawl_snapshot_prune(argv[3], 1, NULL, &err)));
    child_say("%s", pawl_status_name(sample_restore(argv[4], NULL, NULL, NULL, &err)));
    /* Reading it is allowed, and needs no right to write beside it. */
    snprintf(path, sizeof(path), "%s/restored.db", argv[5]);
    child_say("%s", pawl_status_name(sample_restore(argv[4], path, NULL, NULL, &err)));
    pawl_ledger_close(memory, 0, NULL);
    return 0;
}

static void test_a_directory_without_permission_is_denied(void **state)
{
    struct files files = begin(state);
    struct child child;
    char own[TEMPDIR_SIZE + 32];
    const char *arguments[] = { "rights", files.dir, files.snapshot, own, NULL };
    static const char *const answers[] = { "DENIED", "DENIED", "DENIED", "DENIED", "OK" };
    char line[256];

    if (geteuid() != 0) {
        skip();
    }
    snprintf(own, sizeof(own), "%s/own", files.sample->dir);
    assert_int_equal(mkdir(own, 0777), 0);
    assert_int_equal(chmod(own, 0777), 0);
    assert_int_equal(chmod(files.sample->dir, 0755), 0);
    assert_int_equal(chmod(files.dir, 0555), 0);
    assert_int_equal(chmod(files.snapshot, 0444), 0);
    child_start(&child, arguments);
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        assert_true(child_line(&child, line, sizeof(line)));
        assert_string_equal(line, answers[i]);
    }
    assert_int_equal(child_end(&child, 0), 0);
    assert_string_equal(names(&files), "pawl.lock snapshot-00000000000000000030.db ");
}

/* --- full disks --- */

/* What the test learns on a small disk; asserted when it is unmounted again. */
struct full {
    bool mounted;
    int stored;
    pawl_status appending;
    pawl_status duplicate; /* of an event that was acknowledged */
    pawl_status reading;
    pawl_status snapshot;
    pawl_status schedule;
    pawl_status restore;
    char names[1024];
    pawl_status after; /* an append, when there is space again */
};

static pawl_status append_big(pawl_ledger *ledger, int number, pawl_error *reterr)
{
    static char payload[20000];
    char id[32];

    memset(payload, 'x', sizeof(payload));
    payload[0] = '"';
    payload[sizeof(payload) - 1] = '"';
    snprintf(id, sizeof(id), "big-%d", number);
    pawl_event event = {
        .size = sizeof(pawl_event),
        .id = pawl_view_of(id),
        .run_id = pawl_view_of("r"),
        .kind = pawl_view_of("k"),
        .actor = pawl_view_of("a"),
        .payload = { payload, sizeof(payload) },
    };
    return pawl_ledger_append(ledger, &event, NULL, reterr);
}

static void on_a_small_disk(struct sample *sample, const char *dir, struct full *full)
{
    char path[TEMPDIR_SIZE + 32];
    char ballast[TEMPDIR_SIZE + 32];
    char snapshots[TEMPDIR_SIZE + 32];
    pawl_ledger *ledger = NULL;

    snprintf(path, sizeof(path), "%s/ledger.db", dir);
    snprintf(ballast, sizeof(ballast), "%s/ballast", dir);
    snprintf(snapshots, sizeof(snapshots), "%s/snapshots", dir);
    static char heavy[200000];
    file_write(ballast, heavy, sizeof(heavy));
    full->appending = pawl_ledger_open(path, NULL, &ledger, &sample->err);
    while (full->appending == PAWL_OK && full->stored < 1000) {
        full->appending = append_big(ledger, full->stored, &sample->err);
        full->stored += full->appending == PAWL_OK;
    }
    if (ledger == NULL) {
        return;
    }
    full->duplicate = append_big(ledger, 0, &sample->err);
    full->reading = pawl_ledger_verify(ledger, NULL, NULL, &sample->err);
    char target[TEMPDIR_SIZE + 64];
    snprintf(target, sizeof(target), "%s/copy.db", dir);
    full->snapshot = pawl_ledger_snapshot_to(ledger, target, NULL, NULL, &sample->err);
    full->schedule = pawl_ledger_snapshot_schedule(ledger, snapshots, 0, 1, NULL, &sample->err);
    sample_names(dir, full->names, sizeof(full->names));
    unlink(ballast);
    full->after = append_big(ledger, full->stored, &sample->err);
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_a_full_disk_loses_nothing_and_keeps_no_half(void **state)
{
    struct sample *sample = *state;
    struct full full = { 0 };
    char dir[TEMPDIR_SIZE + 16];
    char copy[TEMPDIR_SIZE + 32];
    char small[TEMPDIR_SIZE + 64];

    snprintf(dir, sizeof(dir), "%s/small", sample->dir);
    snprintf(copy, sizeof(copy), "%s/kept.db", sample->dir);
    snprintf(small, sizeof(small), "%s/ledger.db", dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    if (mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "size=2m") != 0) {
        skip(); /* needs root */
    }
    on_a_small_disk(sample, dir, &full);
    /* A restore and a proof onto a disk that is too small for them. */
    full.restore = sample_restore(small, NULL, NULL, NULL, &sample->err);
    char after[1024];
    sample_names(dir, after, sizeof(after));
    sample_copy(small, copy);
    char small_log[sizeof(small) + 8];
    char copy_log[sizeof(copy) + 8];
    snprintf(small_log, sizeof(small_log), "%s-wal", small);
    snprintf(copy_log, sizeof(copy_log), "%s-wal", copy);
    if (access(small_log, F_OK) == 0) { /* without space it could not be moved into the file */
        sample_copy(small_log, copy_log);
    }
    /* Before any assertion: a failed one would leave the mount behind. */
    int unmounted = umount2(dir, MNT_DETACH);
    assert_int_equal(unmounted, 0);
    assert_int_equal(full.appending, PAWL_NO_SPACE);
    assert_in_range(full.stored, 10, 200);
    assert_int_equal(full.duplicate, PAWL_OK);
    assert_int_equal(full.reading, PAWL_OK);
    assert_int_equal(full.snapshot, PAWL_NO_SPACE);
    assert_int_equal(full.schedule, PAWL_NO_SPACE);
    assert_true(strstr(full.names, "tmp-") == NULL && strstr(full.names, "copy.db") == NULL);
    assert_int_equal(full.after, PAWL_OK);
    assert_int_equal(full.restore, PAWL_NO_SPACE);
    assert_true(strstr(after, "tmp-") == NULL && strstr(after, "restored") == NULL);
    assert_good_copy(sample, copy, NULL, (uint64_t)full.stored + 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(test_what_is_no_ledger_is_not_restored),
        SAMPLE_TEST(test_a_ledger_of_a_newer_version_is_not_touched),
        SAMPLE_TEST(test_a_ledger_with_a_foreign_mark_is_not_taken_for_the_original_schema),
        SAMPLE_TEST(test_a_ledger_without_a_part_of_its_schema_is_corrupt),
        SAMPLE_TEST(test_a_database_of_the_original_schema_names_the_import),
        SAMPLE_TEST(test_a_damaged_snapshot_is_corrupt_and_its_proof_too),
        SAMPLE_TEST(test_a_truncated_snapshot_is_corrupt),
        SAMPLE_TEST(test_a_snapshot_under_a_wrong_name_is_not_good),
        SAMPLE_TEST(test_a_restore_does_not_touch_the_snapshot),
        SAMPLE_TEST(test_restored_names_count_up),
        SAMPLE_TEST(test_a_snapshot_with_a_log_is_restored_with_it),
        SAMPLE_TEST(test_a_tail_must_be_of_the_same_ledger),
        SAMPLE_TEST(test_a_damaged_tail_is_refused_by_its_offset),
        SAMPLE_TEST(test_pruning_keeps_the_newest_good_ones_and_what_is_not_ours),
        SAMPLE_TEST(test_the_last_good_snapshot_is_never_removed),
        SAMPLE_TEST(test_a_damaged_snapshot_does_not_stand_in_the_way_of_a_new_one),
        SAMPLE_TEST(test_what_is_no_snapshot_proves_nothing),
        SAMPLE_TEST(test_a_list_says_which_are_good),
        SAMPLE_TEST(test_what_a_crash_left_half_made_is_swept_up),
        SAMPLE_TEST(test_a_proof_of_another_ledger_fails),
        SAMPLE_TEST(test_a_damaged_proof_is_corrupt),
        SAMPLE_TEST(test_a_directory_without_permission_is_denied),
        SAMPLE_TEST(test_a_full_disk_loses_nothing_and_keeps_no_half),
    };

    if (child_is_one(argc, argv)) {
        return try_without_rights(argv);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
