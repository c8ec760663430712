/* Numbers and commands.
 *
 *   sequencer/next      numbers of random workspaces that the cache holds, against a bare hash map with
 *                       a list of least recent use
 *   .../transactions    the same with start and flush, which a hash map does not have
 *   app/commands        64 clients on RocksDB against the same commands one by one, an fsync each
 *   app/trust           level 0 against level 2
 *
 * `bench_sequencer next` or `commands` does one of the two. */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"
#include "base/core/random.h"
#include "lib/seq_memory.h"
#include "lib/tempdir.h"
#include "must.h"
#include "seq_app.h"

enum {
    WORKSPACES = 50000,
    CACHE = 100000,
    ROUNDS = 9,            /* the one in the middle counts */
    TRANSACTIONS = 100000, /* a round */
    NEXTS = 8,             /* a transaction */
    CLIENTS = 64,
    COMMANDS = 100, /* a client, a round */
    ALONE = 300,    /* one by one, a round */
};

/* --- a hash map with a list of least recent use, and nothing else --- */

struct node {
    uint64_t key;
    uint64_t value;
    uint32_t chain; /* the next of its slot */
    uint32_t newer;
    uint32_t older;
};

struct bare {
    struct node *nodes; /* [0] is the end of the list */
    uint32_t *slots;
    uint32_t count;
};

static uint32_t slot_of(uint64_t key)
{
    return (uint32_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 46); /* 2^18 of them */
}

static void unlink_node(struct node *nodes, uint32_t at)
{
    nodes[nodes[at].older].newer = nodes[at].newer;
    nodes[nodes[at].newer].older = nodes[at].older;
}

static void link_newest(struct node *nodes, uint32_t at)
{
    nodes[at].older = nodes[0].older;
    nodes[at].newer = 0;
    nodes[nodes[0].older].newer = at;
    nodes[0].older = at;
}

static uint64_t bare_next(struct bare *bare, uint64_t key)
{
    uint32_t at = bare->slots[slot_of(key)];

    while (at != 0 && bare->nodes[at].key != key) {
        at = bare->nodes[at].chain;
    }
    if (at == 0) {
        at = ++bare->count;
        bare->nodes[at] = (struct node){ .key = key, .chain = bare->slots[slot_of(key)] };
        bare->slots[slot_of(key)] = at;
    } else {
        unlink_node(bare->nodes, at);
    }
    link_newest(bare->nodes, at);
    return ++bare->nodes[at].value;
}

/* Only the numbers are timed, not what stands around them; the clock costs both sides the same. */
static double run_bare(struct bare *bare, struct pawl__prng *random)
{
    uint64_t sum = 0;
    double seconds = 0;

    for (int i = 0; i < TRANSACTIONS; i++) {
        uint64_t workspace = 1 + pawl__prng_below(random, WORKSPACES);
        double start = bench_now_s();
        for (int n = 0; n < NEXTS; n++) {
            sum += bare_next(bare, workspace * 2 + (uint64_t)(n & 1));
        }
        seconds += bench_now_s() - start;
    }
    REQUIRE(sum > 0);
    return seconds;
}

/* --- ours --- */

static double run_sequencer(pawl_sequencer *seq, struct pawl__prng *random, double *ret_whole_s)
{
    double seconds = 0;
    double begin = bench_now_s();

    for (int i = 0; i < TRANSACTIONS; i++) {
        uint64_t workspace = 1 + pawl__prng_below(random, WORKSPACES);
        uint64_t out = 0;
        while (pawl_sequencer_start(seq, 1, workspace, &out, NULL) != PAWL_OK) {
        }
        double start = bench_now_s();
        for (int n = 0; n < NEXTS; n++) {
            REQUIRE(pawl_sequencer_next(seq, (uint16_t)(n & 1), &out, NULL) == PAWL_OK);
        }
        seconds += bench_now_s() - start;
        MUST(pawl_sequencer_flush(seq, err));
    }
    *ret_whole_s = bench_now_s() - begin;
    return seconds;
}

static void bench_next(void)
{
    static const pawl_seq_type types[] = { { sizeof(pawl_seq_type), 1, 0, 1 },
                                           { sizeof(pawl_seq_type), 1, 1, 1 } };
    struct seq_memory *memory = NULL;
    pawl_sequencer_options options = PAWL_SEQUENCER_OPTIONS_INIT;
    pawl_sequencer *seq = NULL;
    struct bare bare = { calloc(CACHE + 1, sizeof(struct node)), calloc(1 << 18, 4), 0 };
    struct pawl__prng random = pawl__prng_seeded(1);
    double ours_s[ROUNDS];
    double whole_s[ROUNDS];
    double bare_s[ROUNDS];

    REQUIRE(bare.nodes != NULL);
    REQUIRE(bare.slots != NULL);
    MUST(seq_memory_new(&memory, err));
    pawl_seq_storage storage = seq_memory_storage(memory);
    options.types = types;
    options.type_count = COUNT_OF(types);
    options.storage = &storage;
    options.cache_size = CACHE;
    options.unflushed_max = 2 * WORKSPACES; /* the flusher shall not stand in the way */
    options.flush_interval_ms = 3600000;
    MUST(pawl_sequencer_open(&options, &seq, err));
    MUST(pawl_sequencer_wait(seq, 60000, err));
    run_sequencer(seq, &random, &whole_s[0]); /* everything is in both caches */
    run_bare(&bare, &random);
    for (int i = 0; i < ROUNDS; i++) {
        bare_s[i] = run_bare(&bare, &random);
        ours_s[i] = run_sequencer(seq, &random, &whole_s[i]);
    }
    const double numbers = (double)TRANSACTIONS * NEXTS;
    bench_report("sequencer/next",
                 "numbers/s",
                 numbers / bench_median(ours_s, ROUNDS),
                 "hash map with LRU",
                 numbers / bench_median(bare_s, ROUNDS),
                 0.5);
    bench_report("sequencer/transactions",
                 "numbers/s",
                 numbers / bench_median(whole_s, ROUNDS),
                 "hash map with LRU",
                 numbers / bench_median(bare_s, ROUNDS),
                 0);
    pawl_sequencer_close(seq, 0, NULL);
    seq_memory_free(memory);
    free(bare.nodes);
    free(bare.slots);
}

/* --- commands --- */

struct client {
    pthread_t thread;
    pawl_app *app;
    uint64_t number;
};

static void *run_client(void *argument)
{
    const struct client *client = argument;

    for (uint64_t i = 0; i < COMMANDS; i++) {
        seq_app_invoice(client->app, 1 + client->number * COMMANDS + i);
    }
    return NULL;
}

static double run_clients(pawl_app *app)
{
    struct client clients[CLIENTS];
    double start = bench_now_s();

    for (uint64_t i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){ .app = app, .number = i };
        REQUIRE(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) == 0);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
    }
    return CLIENTS * COMMANDS / (bench_now_s() - start);
}

static double run_alone(pawl_app *app)
{
    double start = bench_now_s();

    for (uint64_t i = 0; i < ALONE; i++) {
        seq_app_invoice(app, 1 + i);
    }
    return (double)ALONE / (bench_now_s() - start);
}

static void bench_commands(const char *dir)
{
    char paths[2][TEMPDIR_SIZE + 16];
    pawl_app *apps[2];
    double speed[2][ROUNDS];
    double alone[ROUNDS];

    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/level-%d", dir, i);
        apps[i] = seq_app_open(paths[i], i == 0 ? PAWL_APP_TRUST_0 : PAWL_APP_TRUST_2);
        run_clients(apps[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int turn = 0; turn < 2; turn++) {
            int i = (turn + round) % 2;
            speed[i][round] = run_clients(apps[i]);
        }
        alone[round] = run_alone(apps[0]);
    }
    double level_0 = bench_median(speed[0], ROUNDS);
    double level_2 = bench_median(speed[1], ROUNDS);
    bench_report("app/commands, 64 clients",
                 "commands/s",
                 level_0,
                 "one by one",
                 bench_median(alone, ROUNDS),
                 5);
    bench_report("app/trust level 0", "commands/s", level_0, "level 2", level_2, 1 / 1.3);
    pawl_app_close(apps[0], 0, NULL);
    pawl_app_close(apps[1], 0, NULL);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    char dir[TEMPDIR_SIZE];

    if (strcmp(only, "commands") != 0) {
        bench_next();
    }
    if (strcmp(only, "next") != 0) {
        MUST(tempdir_make(dir, "bench-seq", err));
        bench_commands(dir);
        tempdir_remove(dir);
    }
    return 0;
}
