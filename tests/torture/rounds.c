/* The faults, one kind of round each. */
#include "torture/torture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/clock.h"

#define BATCHES_SHORT 24
#define BATCHES_LONG 200  /* now and then, for what happens only after a while */
#define BATCHES_FULL 2000 /* a store looks at the free space ten times in a second */
#define BATCHES_AHEAD 500 /* more than a writer does in the moment before it is killed */
#define CHANGES_EARLY 100 /* of the disk: opening a store and its first batches */
#define CHANGES_LATE 20   /* the batch under way, or a checkpoint that it starts */
#define ERRORS_SOON 4     /* which of the next writes or fsyncs fails */
#define FULL_BYTES_MAX (UINT64_C(20) << 20) /* of the disk that are left */
#define KILL_DELAY_NS_MAX (2 * NS_PER_MS)
#define SERVER_LIVES_IN 4 /* rounds one, in which only its client is killed */
#define POINTS_MAX 64
#define POINT_SIZE 64
#define POINT_PASSES_MAX 8

static uint64_t draw_batches(struct torture *t)
{
    return pawl__prng_below(&t->random, 8) == 0 ? BATCHES_LONG : BATCHES_SHORT;
}

/* kill -9. */

static void wait_a_moment(struct torture *t)
{
    struct pawl__clock *clock = pawl__clock_real();
    int64_t moment = (int64_t)pawl__prng_below(&t->random, KILL_DELAY_NS_MAX);

    pawl__sleep_until(clock, pawl__monotonic_ns(clock) + moment);
}

static pawl_status round_kill(struct torture *t, pawl_error *reterr)
{
    struct process writer;
    uint64_t after = 1 + pawl__prng_below(&t->random, draw_batches(t));
    bool server = t->world.has_server && pawl__prng_below(&t->random, SERVER_LIVES_IN) != 0;
    bool through = false;
    pawl_status status = torture_start_writer(t, after + BATCHES_AHEAD, NULL, &writer, reterr);

    snprintf(t->round,
             sizeof(t->round),
             "kill%s after batch %llu",
             server ? " of the server" : "",
             (unsigned long long)after);
    if (status != PAWL_OK) {
        return status;
    }
    status = torture_follow(t, &writer, after, &through, reterr);
    wait_a_moment(t);
    if (status == PAWL_OK && server) {
        status = world_kill_server(&t->world, reterr);
    }
    pawl_status finished = torture_finish(t, &writer, &through, reterr);
    if (status == PAWL_OK && finished == PAWL_OK && server) {
        status = world_start_server(&t->world, reterr);
    }
    status = status == PAWL_OK ? finished : status;
    return status != PAWL_OK ? status : torture_judge(t, !through, reterr);
}

/* Power cut. */

struct cut {
    const char *mode;
    uint64_t batches; /* of the writer */
    uint64_t after;   /* so many batches the power may go */
    uint64_t change;  /* it goes before this change of the disk from then on */
    uint64_t seed;
};

/* One cut in four comes anywhere, in the middle of opening the store too; the others hit a writer
 * that is well under way. */
static struct cut draw_cut(struct torture *t)
{
    static const char *const modes[] = { "drop", "random", "prefix", "torn" };
    bool early = pawl__prng_below(&t->random, 4) == 0;
    uint64_t batches = draw_batches(t);

    return (struct cut){
        .mode = modes[t->options.control ? 0 : pawl__prng_below(&t->random, COUNT_OF(modes))],
        .batches = batches,
        .after = early ? 0 : pawl__prng_below(&t->random, batches),
        .change = 1 + pawl__prng_below(&t->random, early ? CHANGES_EARLY : CHANGES_LATE),
        .seed = pawl__prng_next(&t->random),
    };
}

static void describe_cut(struct torture *t, const struct cut *cut)
{
    snprintf(t->round,
             sizeof(t->round),
             "cut '%s' at change %llu after batch %llu, names %s",
             cut->mode,
             (unsigned long long)cut->change,
             (unsigned long long)cut->after,
             t->strict ? "strict" : "journal");
}

/* Until its disk is gone, on which it ends by itself, or until it is through. */
static pawl_status run_into_cut(struct torture *t, const struct cut *cut, pawl_error *reterr)
{
    struct process writer;
    bool through = false;
    pawl_status status = PAWL_OK;

    if (cut->after == 0) { /* before the store is opened */
        status = world_arm(&t->world, cut->change, cut->mode, cut->seed, reterr);
    }
    if (status == PAWL_OK) {
        status = torture_start_writer(t, cut->batches, NULL, &writer, reterr);
    }
    if (status != PAWL_OK) {
        return status;
    }
    if (cut->after > 0) {
        status = torture_follow(t, &writer, cut->after, &through, reterr);
        if (status == PAWL_OK) {
            status = world_arm(&t->world, cut->change, cut->mode, cut->seed, reterr);
        }
    }
    if (status == PAWL_OK) {
        status = torture_follow(t, &writer, UINT64_MAX, &through, reterr);
    }
    pawl_status finished = torture_finish(t, &writer, &through, reterr);
    return status == PAWL_OK ? finished : status;
}

/* PostgreSQL relies on an fsync of a new file saving its name, as every disk file system of Linux
 * does: a checkpoint syncs new tables and not their directory. So no strict names for it. */
static bool draw_strict(struct torture *t)
{
    bool strict = pawl__prng_below(&t->random, 2) == 0 || t->options.control;

    return strict && !t->world.has_server;
}

static pawl_status round_power(struct torture *t, pawl_error *reterr)
{
    struct cut cut = draw_cut(t);
    bool next_strict = draw_strict(t);

    describe_cut(t, &cut);
    pawl_status status = run_into_cut(t, &cut, reterr);
    if (status == PAWL_OK) {
        /* When the writer was through before its time, the power goes now. */
        status = world_lose_power(&t->world, cut.mode, cut.seed, next_strict, reterr);
    }
    if (status != PAWL_OK) {
        return status;
    }
    t->strict = next_strict;
    return torture_judge(t, true, reterr);
}

/* The disk fails. */

/* What happens to the disk: a write or an fsync fails, or all that would change it. */
struct disk_fault {
    const char *command; /* of lossfs, with one number */
    uint64_t number;
    uint64_t batches; /* of the writer */
};

/* A writer whose store survived the error goes on; whatever it then acknowledges has to be there.
 * *ret_through: it noticed nothing. */
static pawl_status run_into_error(struct torture *t,
                                  const struct disk_fault *fault,
                                  bool *ret_through,
                                  pawl_error *reterr)
{
    struct process writer;
    unsigned long long number = fault->number;
    uint64_t after = 1 + pawl__prng_below(&t->random, BATCHES_SHORT - 1);
    pawl_status status = torture_start_writer(t, fault->batches, NULL, &writer, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    status = torture_follow(t, &writer, after, ret_through, reterr);
    if (status == PAWL_OK) {
        status = lossfs_tell(&t->world.fs, reterr, "%s %llu", fault->command, number);
    }
    if (status == PAWL_OK) {
        status = torture_follow(t, &writer, UINT64_MAX, ret_through, reterr);
    }
    pawl_status finished = torture_finish(t, &writer, ret_through, reterr);
    return status == PAWL_OK ? finished : status;
}

static pawl_status lose_power_after_error(struct torture *t, pawl_error *reterr)
{
    uint64_t seed = pawl__prng_next(&t->random);
    bool next_strict = draw_strict(t);
    pawl_status status = world_lose_power(&t->world, "drop", seed, next_strict, reterr);

    t->strict = status == PAWL_OK ? next_strict : t->strict;
    return status;
}

static pawl_status round_disk(struct torture *t, pawl_error *reterr)
{
    bool write = pawl__prng_below(&t->random, 4) == 0;
    struct disk_fault fault = { .command = write ? "fail-write" : "fail-fsync",
                                .number = 1 + pawl__prng_below(&t->random, ERRORS_SOON),
                                .batches = BATCHES_SHORT };
    uint64_t errors = 0;
    bool through = false;

    snprintf(
        t->round, sizeof(t->round), "%s %llu", fault.command, (unsigned long long)fault.number);
    pawl_status status = run_into_error(t, &fault, &through, reterr);
    if (status == PAWL_OK) {
        status = lossfs_counter(&t->world.fs, "errors", &errors, reterr);
    }
    if (status == PAWL_OK) {
        status = lose_power_after_error(t, reterr);
    }
    return status == PAWL_OK ? torture_judge(t, errors > 0, reterr) : status;
}

/* As a kernel does it with a file system that has errors. */
static pawl_status round_read_only(struct torture *t, pawl_error *reterr)
{
    const struct disk_fault fault = { .command = "read-only",
                                      .number = 1,
                                      .batches = BATCHES_SHORT };
    bool through = false;

    snprintf(t->round, sizeof(t->round), "the disk becomes read-only");
    pawl_status status = run_into_error(t, &fault, &through, reterr);
    if (status == PAWL_OK) {
        status = lose_power_after_error(t, reterr);
    }
    return status == PAWL_OK ? torture_judge(t, !through, reterr) : status;
}

/* Somebody else fills the disk, at once: up to what a store keeps back for itself, or beyond it. */
static pawl_status round_full(struct torture *t, pawl_error *reterr)
{
    struct disk_fault fault = { .command = "quota", .batches = BATCHES_FULL };
    uint64_t left = pawl__prng_below(&t->random, FULL_BYTES_MAX);
    bool through = false;
    pawl_status status = lossfs_counter(&t->world.fs, "bytes", &fault.number, reterr);

    fault.number += left;
    snprintf(t->round,
             sizeof(t->round),
             "%llu MiB are left of the disk",
             (unsigned long long)(left >> 20));
    if (status == PAWL_OK) {
        status = run_into_error(t, &fault, &through, reterr);
    }
    if (status == PAWL_OK) {
        status = lose_power_after_error(t, reterr);
    }
    return status == PAWL_OK ? torture_judge(t, !through, reterr) : status;
}

/* kill -9 at every failpoint. */

struct points {
    char names[POINTS_MAX][POINT_SIZE];
    size_t count;
};

static pawl_status read_points(const char *path, struct points *ret_points, pawl_error *reterr)
{
    FILE *file = fopen(path, "re");

    while (file != NULL && ret_points->count < POINTS_MAX
           && fgets(ret_points->names[ret_points->count], POINT_SIZE, file) != NULL) {
        char *name = ret_points->names[ret_points->count++];
        name[strcspn(name, "\n")] = '\0';
    }
    if (file != NULL) {
        fclose(file);
        unlink(path);
    }
    return ret_points->count > 0
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_UNSUPPORTED, "the writer passed no failpoints");
}

/* A writer that nothing happens to says which points there are. */
static pawl_status find_points(struct torture *t, struct points *ret_points, pawl_error *reterr)
{
    char path[TEMPDIR_SIZE + 8];
    char setting[TEMPDIR_SIZE + 64];
    struct process writer;
    bool through = false;

    snprintf(path, sizeof(path), "%s/points", t->world.dir);
    snprintf(setting, sizeof(setting), "PAWL_FAILPOINTS_LOG=%s", path);
    pawl_status status = torture_start_writer(t, BATCHES_SHORT, setting, &writer, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    status = torture_follow(t, &writer, UINT64_MAX, &through, reterr);
    process_close_input(&writer);
    if (process_end(&writer) != 0 && status == PAWL_OK) {
        status = pawl__fail(reterr, PAWL_FAILED, "the writer failed by itself");
    }
    snprintf(t->round, sizeof(t->round), "undisturbed");
    if (status == PAWL_OK) {
        status = torture_judge(t, false, reterr);
    }
    return status != PAWL_OK ? status : read_points(path, ret_points, reterr);
}

static pawl_status round_point(struct torture *t,
                               const char *name,
                               uint64_t pass,
                               pawl_error *reterr)
{
    char setting[POINT_SIZE + 64];
    struct process writer;
    bool through = false;

    snprintf(t->round, sizeof(t->round), "kill at %s, pass %llu", name, (unsigned long long)pass);
    snprintf(
        setting, sizeof(setting), "PAWL_FAILPOINTS=%s=kill@%llu", name, (unsigned long long)pass);
    pawl_status status = torture_start_writer(t, BATCHES_SHORT, setting, &writer, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    status = torture_follow(t, &writer, UINT64_MAX, &through, reterr);
    pawl_status finished = torture_finish(t, &writer, &through, reterr);
    status = status == PAWL_OK ? finished : status;
    return status != PAWL_OK ? status : torture_judge(t, !through, reterr);
}

/* Points on the way of making a store are passed only where there is none. */
static pawl_status start_over(struct torture *t, pawl_error *reterr)
{
    torture_remember_nothing(t);
    if (t->world.has_server) {
        return torture_drop_store(t, reterr);
    }
    world_end(&t->world);
    return world_make(&t->world, &t->world_options, reterr);
}

static pawl_status walk_points(struct torture *t, pawl_error *reterr)
{
    struct points points = { .count = 0 };
    pawl_status status = find_points(t, &points, reterr);

    t->totals.rounds = 0; /* the one without a fault does not count */
    t->totals.empty = 0;
    for (size_t i = 0; status == PAWL_OK && i < points.count; i++) {
        uint64_t later = 2 + pawl__prng_below(&t->random, POINT_PASSES_MAX - 1);
        status = start_over(t, reterr);
        if (status == PAWL_OK) {
            status = round_point(t, points.names[i], 1, reterr);
        }
        if (status == PAWL_OK) {
            status = round_point(t, points.names[i], later, reterr);
        }
    }
    return status;
}

pawl_status torture_run(struct torture *t, pawl_error *reterr)
{
    static pawl_status (*const round_of[])(struct torture *, pawl_error *) = {
        [TORTURE_KILL] = round_kill, [TORTURE_POWER] = round_power,
        [TORTURE_DISK] = round_disk, [TORTURE_READ_ONLY] = round_read_only,
        [TORTURE_FULL] = round_full,
    };
    pawl_status status = world_make(&t->world, &t->world_options, reterr);

    if (status == PAWL_OK && t->options.fault == TORTURE_FAILPOINT) {
        return walk_points(t, reterr);
    }
    for (uint64_t i = 0; status == PAWL_OK && i < t->options.rounds; i++) {
        status = round_of[t->options.fault](t, reterr);
    }
    return status;
}
