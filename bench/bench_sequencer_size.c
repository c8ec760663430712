/* Numbers on RocksDB with a cache of 100,000, by the number of workspaces: 200 K against 10 M.
 *
 *   sequencer/hit p99, miss p99   one number of a workspace that the cache holds, or does not hold
 *   sequencer/memory              of a process that did the same transactions in either store; with
 *                                 1 M, too, where the engine's cache of blocks is as full as with 10 M
 *
 * Four transactions of five are of 10,000 workspaces that are used again and again, one is of any. The
 * flusher writes behind, as it always does. Rounds of the two sizes alternate.
 *
 * `bench_sequencer_size 2000000` puts so many in place of 10 M, which take a minute to put in. */
#include "bench.h"

#include <poll.h>
#include <string.h>

#include "base/core/macros.h"
#include "base/core/random.h"
#include "seq_store.h"

enum {
    SMALL = 200000,
    MIDDLE = 1000000,
    LARGE = 10000000,
    HOT = 10000,
    TRANSACTIONS = 25000, /* a round */
    ROUNDS = 11,          /* the one in the middle counts; one before them fills the caches */
    MEMORY_TRANSACTIONS = 600000,
};

/* Of one round. */
struct samples {
    size_t count;
    double ns[TRANSACTIONS];
};

struct place {
    char path[SEQ_STORE_PATH_SIZE];
    uint64_t workspaces;
    struct seq_store store;
    pawl_sequencer *seq;
    struct pawl__prng random;
    uint64_t misses; /* as of the last transaction */
};

static void open_place(struct place *place)
{
    seq_store_open(place->path, &place->store);
    place->seq = seq_store_sequencer(&place->store, 0);
    place->random = pawl__prng_seeded(1);
    place->misses = 0;
    MUST(pawl_sequencer_wait(place->seq, 60000, err));
}

static void close_place(struct place *place)
{
    pawl_sequencer_close(place->seq, 0, NULL);
    seq_store_close(&place->store);
}

static uint64_t choose_workspace(struct place *place)
{
    uint64_t step = place->workspaces / HOT;

    return pawl__prng_below(&place->random, 5) == 0
               ? 1 + pawl__prng_below(&place->random, place->workspaces)
               : 1 + step * pawl__prng_below(&place->random, HOT);
}

static double now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* One number, in nanoseconds; *ret_miss: it came from the store. */
static double take_number(struct place *place, clockid_t clock, bool *ret_miss)
{
    uint64_t workspace = choose_workspace(place);
    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;
    uint64_t out = 0;

    while (pawl_sequencer_start(place->seq, SEQ_STORE_KIND, workspace, &out, NULL) != PAWL_OK) {
        poll(NULL, 0, 1); /* the flusher is behind */
    }
    double start = now_ns(clock);
    MUST(pawl_sequencer_next(place->seq, PAWL_APP_SEQ_WLOG_OFFSET, &out, err));
    double ns = now_ns(clock) - start;
    MUST(pawl_sequencer_flush(place->seq, err));
    (void)!pawl_sequencer_get_status(place->seq, &status, NULL);
    *ret_miss = status.misses != place->misses;
    place->misses = status.misses;
    return ns;
}

/* --- time --- */

enum { HIT, MISS, OUTCOMES };

/* The 99th percentiles of hits and misses in one round. */
static void run_round(struct place *place, clockid_t clock, double ret_p99[OUTCOMES])
{
    static struct samples samples[OUTCOMES];

    samples[HIT].count = 0;
    samples[MISS].count = 0;
    for (int i = 0; i < TRANSACTIONS; i++) {
        bool miss = false;
        double ns = take_number(place, clock, &miss);
        struct samples *outcome = &samples[miss ? MISS : HIT];
        outcome->ns[outcome->count++] = ns;
    }
    for (int i = 0; i < OUTCOMES; i++) {
        REQUIRE(samples[i].count > 0);
        qsort(samples[i].ns, samples[i].count, sizeof(double), bench_compare);
        ret_p99[i] = samples[i].ns[samples[i].count * 99 / 100];
    }
}

/* Rounds of the two places alternate. */
static void run_rounds(struct place *places[2], clockid_t clock, double ret_p99[2][OUTCOMES])
{
    double p99[2][OUTCOMES][ROUNDS];

    for (int round = -1; round < ROUNDS; round++) {
        for (int turn = 0; turn < 2; turn++) {
            double of_round[OUTCOMES];
            int i = (turn + round + 1) % 2;
            run_round(places[i], clock, of_round);
            p99[i][HIT][MAX(round, 0)] = of_round[HIT];
            p99[i][MISS][MAX(round, 0)] = of_round[MISS];
        }
    }
    for (int i = 0; i < 2; i++) {
        ret_p99[i][HIT] = bench_median(p99[i][HIT], ROUNDS);
        ret_p99[i][MISS] = bench_median(p99[i][MISS], ROUNDS);
    }
}

static void report(const char *what, double small, double large, double wanted)
{
    char name[64];

    snprintf(name, sizeof(name), "sequencer/%s p99, 200 K workspaces", what);
    bench_report(name, "ns", small, "the largest store", large, wanted);
}

/* The processor's time of a miss leaves out what others had of the machine, and what a disk takes. */
static void bench_time(struct place *small, struct place *large)
{
    struct place *places[] = { small, large };
    double p99[2][OUTCOMES];

    open_place(small);
    open_place(large);
    run_rounds(places, CLOCK_MONOTONIC, p99);
    report("hit", p99[0][HIT], p99[1][HIT], 0.5);
    report("miss", p99[0][MISS], p99[1][MISS], 0.5);
    run_rounds(places, CLOCK_THREAD_CPUTIME_ID, p99);
    report("miss, processor", p99[0][MISS], p99[1][MISS], 0);
    close_place(small);
    close_place(large);
}

/* --- memory --- */

/* What the process holds and no file stands behind. */
static double anonymous_mib(void)
{
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "re");

    REQUIRE(file != NULL);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "RssAnon:", strlen("RssAnon:")) == 0) {
            kib = strtod(line + strlen("RssAnon:"), NULL);
        }
    }
    fclose(file);
    REQUIRE(kib > 0);
    return kib / 1024;
}

static double use_memory(void *context)
{
    struct place *place = context;
    double mib = 0;

    open_place(place);
    for (int i = 0; i < MEMORY_TRANSACTIONS; i++) {
        bool miss = false;
        take_number(place, CLOCK_MONOTONIC, &miss);
        if (i % 1000 == 0) {
            mib = MAX(mib, anonymous_mib());
        }
    }
    close_place(place);
    seq_store_forget_offset(place->path);
    return mib;
}

static double fill(void *context)
{
    const struct place *place = context;

    seq_store_fill_numbers(place->path, place->workspaces);
    return 0;
}

static void bench_memory(struct place *small, struct place *middle, struct place *large)
{
    double small_mib = seq_store_in_child(use_memory, small);
    double middle_mib = seq_store_in_child(use_memory, middle);
    double large_mib = seq_store_in_child(use_memory, large);

    /* With few workspaces not even the cache of blocks, which is bounded, is full. */
    bench_report("sequencer/memory, 200 K workspaces",
                 "MiB",
                 small_mib,
                 "the largest store",
                 large_mib,
                 1 / 1.5);
    bench_report("sequencer/memory, 1 M workspaces",
                 "MiB",
                 middle_mib,
                 "the largest store",
                 large_mib,
                 1 / 1.1);
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "small", "middle", "large" };
    struct place places[] = { { .workspaces = SMALL },
                              { .workspaces = MIDDLE },
                              { .workspaces = LARGE } };

    if (argc > 1) {
        places[2].workspaces = strtoul(argv[1], NULL, 10);
    }
    if (places[2].workspaces < MIDDLE) {
        fprintf(stderr, "usage: bench_sequencer_size [WORKSPACES, at least %d]\n", MIDDLE);
        return 2;
    }
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        seq_store_path(names[i], places[i].path);
        seq_store_in_child(fill, &places[i]);
    }
    bench_memory(&places[0], &places[1], &places[2]);
    bench_time(&places[0], &places[2]);
    return 0;
}
