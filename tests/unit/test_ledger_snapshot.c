/* Snapshots, restores and proofs, on every backend. */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread/thread.h"
#include "ledger/core/internal.h"
#include "lib/ledger_fixture.h"
#include "lib/ledger_sample.h"

struct snapshots {
    struct ledger_fixture *f;
    struct sample sample; /* only its error, and its functions */
    char path[TEMPDIR_SIZE + 64];
    char dir[TEMPDIR_SIZE + 64];
    char names[2048];
};

static struct snapshots begin(void **state)
{
    struct snapshots s = { .f = *state };

    snprintf(s.path, sizeof(s.path), "%s/copy.db", s.f->dir);
    snprintf(s.dir, sizeof(s.dir), "%s/snapshots", s.f->dir);
    return s;
}

static void embed(struct snapshots *s, uint64_t offset, float x)
{
    float vector[] = { x, 2, 1 };

    assert_ok(pawl_ledger_embed(s->f->ledger, offset, vector, COUNT_OF(vector), &s->sample.err),
              &s->sample.err);
}

static void fill(struct snapshots *s)
{
    sample_fill(&s->sample, s->f->ledger);
    embed(s, 3, 1);
    embed(s, 27, -1);
}

static void commit_turn(struct snapshots *s, int64_t number)
{
    pawl_turn *turn = begin_turn(s->f, "r", number);

    turn_says(s->f, turn, "1 2");
    assert_ok(pawl_turn_commit(turn, &s->f->err), &s->f->err);
    pawl_turn_free(turn);
}

static const char *names(struct snapshots *s, const char *directory)
{
    sample_names(directory, s->names, sizeof(s->names));
    return s->names;
}

static void assert_nothing_half_made(struct snapshots *s, const char *directory)
{
    if (strstr(names(s, directory), ".tmp-") != NULL) {
        fail_msg("left behind: %s", s->names);
    }
}

static void test_a_snapshot_holds_everything_and_opens_like_any_ledger(void **state)
{
    struct snapshots s = begin(state);
    pawl_ledger_head head = { 0 };
    pawl_error *err = &s.sample.err;

    fill(&s);
    assert_ok(pawl_ledger_snapshot_to(s.f->ledger, s.path, NULL, &head, err), err);
    assert_int_equal(head.offset, SAMPLE_EVENTS);
    assert_good_copy(&s.sample, s.path, s.f->ledger, SAMPLE_EVENTS);

    /* It goes on as the ledger would have: duplicates, the open turn, the next offset. */
    pawl_ledger *copy = sample_open(&s.sample, s.path);
    sample_append(&s.sample, copy, 28, 31);
    assert_verifies(&s.sample, copy, SAMPLE_EVENTS + 1);
    pawl_ledger_close(copy, 0, NULL);
    assert_nothing_half_made(&s, s.f->dir);
}

static void test_an_empty_ledger_has_a_snapshot_too(void **state)
{
    struct snapshots s = begin(state);
    pawl_ledger_head head = { .offset = 9 };

    assert_ok(pawl_ledger_snapshot_to(s.f->ledger, s.path, NULL, &head, &s.f->err), &s.f->err);
    assert_int_equal(head.offset, 0);
    assert_good_copy(&s.sample, s.path, NULL, 0);
}

static void test_a_name_that_is_taken_is_a_conflict(void **state)
{
    struct snapshots s = begin(state);
    static const char *const taken[] = { "", "-wal", "-shm", ".anchor" };
    char name[sizeof(s.path) + 16];
    pawl_ledger_head head = { .offset = 9 };

    fill(&s);
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        snprintf(name, sizeof(name), "%s%s", s.path, taken[i]);
        file_write(name, "mine", 4);
        assert_status(pawl_ledger_snapshot_to(s.f->ledger, s.path, NULL, &head, &s.f->err),
                      PAWL_CONFLICT,
                      &s.f->err);
        assert_message(&s.f->err, name);
        size_t size;
        char *bytes = file_read(name, &size);
        assert_int_equal(size, 4);
        free(bytes);
        assert_int_equal(unlink(name), 0);
    }
    assert_int_equal(head.offset, 9);
    assert_nothing_half_made(&s, s.f->dir);
}

struct progress {
    uint64_t done;
    uint64_t total;
    uint64_t stop_at;
};

static bool see(void *context, uint64_t done, uint64_t total)
{
    struct progress *progress = context;

    assert_true(done >= progress->done && done <= total);
    progress->done = done;
    progress->total = total;
    return done < progress->stop_at;
}

static void test_a_cancelled_snapshot_leaves_nothing(void **state)
{
    struct snapshots s = begin(state);
    struct progress whole = { .stop_at = UINT64_MAX };
    static const uint64_t stops[] = { 0, 600 };

    fill(&s);
    for (size_t i = 0; i < COUNT_OF(stops); i++) {
        struct progress progress = { .stop_at = stops[i] };
        assert_status(pawl_ledger_snapshot_to(s.f->ledger,
                                              s.path,
                                              &(pawl_watch){ sizeof(pawl_watch), see, &progress },
                                              NULL,
                                              &s.f->err),
                      PAWL_CANCELLED,
                      &s.f->err);
        assert_true(access(s.path, F_OK) != 0);
        assert_nothing_half_made(&s, s.f->dir);
    }
    assert_ok(
        pawl_ledger_snapshot_to(
            s.f->ledger, s.path, &(pawl_watch){ sizeof(pawl_watch), see, &whole }, NULL, &s.f->err),
        &s.f->err);
    assert_int_equal(whole.done, whole.total);
}

/* --- while writers go on --- */

enum { WRITERS = 3, WRITES = 60 };

struct writer {
    struct pawl__thread thread;
    pawl_ledger *ledger;
    int number;
    pawl_status status;
};

static void write_on(void *context)
{
    struct writer *writer = context;
    char id[32];

    for (int i = 0; i < WRITES && writer->status == PAWL_OK; i++) {
        snprintf(id, sizeof(id), "w-%d-%d", writer->number, i);
        pawl_event event = event_of(id, 99, "{}"); /* no turn that is ever open */
        writer->status = pawl_ledger_append(writer->ledger, &event, NULL, NULL);
    }
}

static void test_snapshots_are_taken_while_writers_go_on(void **state)
{
    struct snapshots s = begin(state);
    struct writer writers[WRITERS];
    pawl_error *err = &s.sample.err;
    pawl_ledger_head head = { 0 };
    uint64_t before = 0;

    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .ledger = s.f->ledger, .number = i };
        assert_ok(pawl__thread_start(&writers[i].thread, "writer", write_on, &writers[i], err),
                  err);
    }
    for (int i = 0; i < 4; i++) {
        commit_turn(&s, i + 1); /* the writers append outside of it */
        char path[sizeof(s.path) + 8];
        snprintf(path, sizeof(path), "%s.%d", s.path, i);
        assert_ok(pawl_ledger_snapshot_to(s.f->ledger, path, NULL, &head, err), err);
        assert_true(head.offset >= before + 4);
        before = head.offset;
        assert_good_copy(&s.sample, path, NULL, head.offset);
    }
    for (int i = 0; i < WRITERS; i++) {
        pawl__thread_join(&writers[i].thread);
        assert_int_equal(writers[i].status, PAWL_OK);
    }
    assert_verifies(&s.sample, s.f->ledger, 4 * 4 + WRITERS * WRITES);
}

/* A snapshot writes each embedding to the disk while it walks over them. */
static pawl_status append_meanwhile(void *context,
                                    uint64_t offset,
                                    pawl_view vector,
                                    pawl_error *reterr)
{
    const struct snapshots *s = context;
    pawl_event event = event_of(offset == 3 ? "a" : "b", 0, "0");

    (void)vector;
    return pawl_ledger_append(s->f->ledger, &event, NULL, reterr);
}

static void test_whoever_walks_over_embeddings_holds_no_writer_up(void **state)
{
    struct snapshots s = begin(state);
    struct ledger_backend *backend = s.f->ledger->backend;

    fill(&s); /* with two embeddings */
    assert_ok(backend->ops->embeddings(backend, NULL, append_meanwhile, &s, &s.f->err), &s.f->err);
    assert_int_equal(latest_offset(s.f), SAMPLE_EVENTS + 2);
}

/* --- the schedule --- */

static bool schedule(struct snapshots *s, uint32_t every_turns, uint32_t keep)
{
    bool taken = false;

    assert_ok(pawl_ledger_snapshot_schedule(
                  s->f->ledger, s->dir, every_turns, keep, &taken, &s->sample.err),
              &s->sample.err);
    return taken;
}

static void test_the_schedule_counts_committed_turns_and_keeps_the_newest(void **state)
{
    struct snapshots s = begin(state);

    for (int64_t turn = 1; turn <= 9; turn++) {
        commit_turn(&s, turn); /* four events each */
        assert_int_equal(schedule(&s, 3, 2), turn % 3 == 0);
    }
    assert_string_equal(names(&s, s.dir),
                        "pawl.lock snapshot-00000000000000000024.db "
                        "snapshot-00000000000000000036.db ");
    pawl_turn *open =
        begin_turn(s.f, "r", 10); /* an open turn is none, but something was appended */
    assert_false(schedule(&s, 1, 2));
    assert_true(schedule(&s, 0, 2));
    assert_false(schedule(&s, 0, 2)); /* nothing is new */
    pawl_turn_free(open);
    assert_string_equal(names(&s, s.dir),
                        "pawl.lock snapshot-00000000000000000036.db "
                        "snapshot-00000000000000000037.db ");
    assert_int_equal(pawl_ledger_snapshot_schedule(s.f->ledger, s.dir, 1, 0, NULL, NULL),
                     PAWL_INVALID);
}

/* --- restore and proof --- */

static void test_a_restore_brings_back_the_snapshot_and_its_tail(void **state)
{
    struct snapshots s = begin(state);
    char restored[PATH_MAX];
    pawl_error *err = &s.sample.err;

    fill(&s);
    assert_ok(pawl_ledger_snapshot_to(s.f->ledger, s.path, NULL, NULL, err), err);
    assert_ok(sample_restore(s.path, NULL, NULL, restored, err), err);
    assert_good_copy(&s.sample, restored, s.f->ledger, SAMPLE_EVENTS);

    pawl_turn *turn = begin_turn(s.f, "r", 3); /* ends the attempt that the snapshot has as open */
    turn_says(s.f, turn, "1 2 3");
    assert_ok(pawl_turn_commit(turn, err), err);
    pawl_turn_free(turn);
    embed(&s, 31, 4);
    embed(&s, 3, 5); /* one that the snapshot has otherwise */
    uint64_t latest = latest_offset(s.f);
    if (strcmp(s.f->backend, "memory") != 0) { /* others cannot open that one */
        assert_ok(sample_restore(s.path, NULL, s.f->location, restored, err), err);
        assert_good_copy(&s.sample, restored, s.f->ledger, latest);
        char expected[sizeof(s.path) + 32];
        snprintf(expected, sizeof(expected), "%s/copy.restored-2.db", s.f->dir);
        assert_string_equal(restored, expected);
    }
    assert_nothing_half_made(&s, s.f->dir);
}

/* Prunes until it is told to stop: every time it also clears away what a crash left. */
struct pruner {
    struct pawl__thread thread;
    const char *directory;
    atomic_bool stop;
    pawl_status status;
};

static void prune_on(void *context)
{
    struct pruner *pruner = context;

    while (!atomic_load(&pruner->stop) && pruner->status == PAWL_OK) {
        pruner->status = pawl_snapshot_prune(pruner->directory, 1, NULL, NULL);
    }
}

static void test_a_restore_beside_its_snapshot_is_left_alone(void **state)
{
    struct snapshots s = begin(state);
    pawl_error *err = &s.sample.err;
    char path[sizeof(s.dir) + 64];
    char restored[PATH_MAX];

    fill(&s);
    assert_true(schedule(&s, 0, 1));
    struct pruner pruner = { .directory = s.dir };
    assert_ok(pawl__thread_start(&pruner.thread, "pruner", prune_on, &pruner, err), err);
    for (int i = 0; i < 10; i++) {
        assert_ok(sample_restore(s.dir, NULL, NULL, restored, err), err);
        snprintf(path, sizeof(path), "%s/snapshot-%020d.db", s.dir, i + 1); /* names, no more */
        assert_ok(pawl_ledger_snapshot_to(s.f->ledger, path, NULL, NULL, err), err);
        assert_int_equal(unlink(path) == 0 || errno == ENOENT, 1);
    }
    atomic_store(&pruner.stop, true);
    pawl__thread_join(&pruner.thread);
    assert_int_equal(pruner.status, PAWL_OK);
    assert_good_copy(&s.sample, restored, s.f->ledger, SAMPLE_EVENTS);
    assert_nothing_half_made(&s, s.dir);
}

static void test_a_proof_restores_replays_and_compares(void **state)
{
    struct snapshots s = begin(state);
    pawl_error *err = &s.sample.err;
    pawl_proof proof = PAWL_PROOF_INIT;
    pawl_proof again = { .size = sizeof(pawl_proof), .replayed = 77 };

    fill(&s);
    assert_true(schedule(&s, 0, 3));
    assert_status(pawl_ledger_last_proof(s.dir, &again, err), PAWL_NOT_FOUND, err);
    assert_int_equal(again.replayed, 77);
    commit_turn(&s, 9);
    assert_ok(pawl_ledger_prove(s.f->ledger, s.dir, &proof, err), err);
    assert_int_equal(proof.snapshot_offset, SAMPLE_EVENTS);
    assert_int_equal(proof.replayed, 4);
    assert_int_equal(proof.head.offset, SAMPLE_EVENTS + 4);
    pawl_ledger_head head = sample_head(&s.sample, s.f->ledger);
    assert_memory_equal(proof.head.hash, head.hash, sizeof(head.hash));
    assert_ok(pawl_ledger_last_proof(s.dir, &again, err), err);
    assert_memory_equal(&again, &proof, sizeof(proof));
    assert_string_equal(names(&s, s.dir), "pawl.lock proof.json snapshot-00000000000000000030.db ");
}

static void test_a_directory_without_snapshots_proves_nothing(void **state)
{
    struct snapshots s = begin(state);
    pawl_proof proof = { .size = sizeof(pawl_proof), .replayed = 77 };

    assert_status(
        pawl_ledger_prove(s.f->ledger, s.dir, &proof, &s.f->err), PAWL_NOT_FOUND, &s.f->err);
    assert_status(
        pawl_ledger_prove(s.f->ledger, s.f->dir, &proof, &s.f->err), PAWL_NOT_FOUND, &s.f->err);
    assert_int_equal(proof.replayed, 77);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_a_snapshot_holds_everything_and_opens_like_any_ledger),
        LEDGER_TEST(test_an_empty_ledger_has_a_snapshot_too),
        LEDGER_TEST(test_a_name_that_is_taken_is_a_conflict),
        LEDGER_TEST(test_a_cancelled_snapshot_leaves_nothing),
        LEDGER_TEST(test_snapshots_are_taken_while_writers_go_on),
        LEDGER_TEST(test_whoever_walks_over_embeddings_holds_no_writer_up),
        LEDGER_TEST(test_the_schedule_counts_committed_turns_and_keeps_the_newest),
        LEDGER_TEST(test_a_restore_brings_back_the_snapshot_and_its_tail),
        LEDGER_TEST(test_a_restore_beside_its_snapshot_is_left_alone),
        LEDGER_TEST(test_a_proof_restores_replays_and_compares),
        LEDGER_TEST(test_a_directory_without_snapshots_proves_nothing),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
