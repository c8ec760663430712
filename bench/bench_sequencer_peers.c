/* Numbers from us and from what people use today, in one run; bench/sequencer_peers/run starts the
 * servers.
 *
 *   sequencer/one client    transactions of eight numbers of one workspace, one after the other; up to
 *                           10,000 numbers wait to be written, and beside it 500, the default
 *   app/64 clients          two numbers a transaction, on disk when they are there; ours come with the
 *                           event and the record that they are for
 *
 * bench_sequencer_peers POSTGRES_URL REDIS_PORT DURABLE_REDIS_PORT; a "-" leaves one out. */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"
#include "base/core/random.h"
#include "seq_app.h"
#include "seq_store.h"
#include "sequencer_peers/peer.h"

enum { ROUNDS = 3, CLIENTS = 64, PEERS_MAX = 8 };

static const double round_s = 1;

struct runner {
    const struct peer *peer;
    const char *name;
    const char *where;
    double rate; /* numbers a second, in the middle of the rounds */
};

struct client {
    pthread_t thread;
    const struct peer *peer;
    void *handle;
    uint64_t seed;
    int numbers;
    uint64_t transactions;
};

void peer_stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_sequencer_peers: %s: %s\n", what, why);
    exit(1);
}

static void *run_client(void *argument)
{
    struct client *client = argument;
    struct pawl__prng random = pawl__prng_seeded(client->seed);
    double end = bench_now_s() + round_s;

    while (bench_now_s() < end) {
        uint64_t workspace = 1 + pawl__prng_below(&random, PEER_WORKSPACES);
        client->peer->take(client->handle, workspace, client->numbers);
        client->transactions++;
    }
    return NULL;
}

/* Numbers a second that so many clients got in one round. */
static double run_round(const struct peer *peer, void **handles, int clients, int numbers)
{
    struct client all[CLIENTS];
    uint64_t transactions = 0;
    double start = bench_now_s();

    for (int i = 0; i < clients; i++) {
        all[i] = (struct client){
            .peer = peer, .handle = handles[i], .seed = (uint64_t)i + 1, .numbers = numbers
        };
        REQUIRE(pthread_create(&all[i].thread, NULL, run_client, &all[i]) == 0);
    }
    for (int i = 0; i < clients; i++) {
        pthread_join(all[i].thread, NULL);
        transactions += all[i].transactions;
    }
    return (double)transactions * numbers / (bench_now_s() - start);
}

/* All of them in each round, the first of which does not count. */
static void run_all(struct runner *runners, size_t count, int clients, int numbers)
{
    void *handles[PEERS_MAX][CLIENTS];
    double rates[PEERS_MAX][ROUNDS];

    for (size_t i = 0; i < count; i++) {
        for (int c = 0; c < clients; c++) {
            handles[i][c] = runners[i].peer->open(runners[i].where);
        }
    }
    for (int round = -1; round < ROUNDS; round++) {
        for (size_t i = 0; i < count; i++) {
            rates[i][MAX(round, 0)] = run_round(runners[i].peer, handles[i], clients, numbers);
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (int c = 0; c < clients; c++) {
            runners[i].peer->close(handles[i][c]);
        }
        runners[i].rate = bench_median(rates[i], ROUNDS);
    }
}

static void report(const char *name, const struct runner *runners, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        bench_report(name, "numbers/s", runners[0].rate, runners[i].name, runners[i].rate, 0);
    }
}

static size_t add(struct runner *runners, size_t count, struct runner runner)
{
    if (strcmp(runner.where, "-") == 0) {
        return count;
    }
    REQUIRE(count < PEERS_MAX);
    runners[count] = runner;
    return count + 1;
}

static void bench_one_client(const char *postgres, const char *redis, const char *durable_redis)
{
    struct runner runners[PEERS_MAX];
    char paths[3][SEQ_STORE_PATH_SIZE];
    size_t count = 0;

    seq_store_path("numbers", paths[0]);
    seq_store_path("numbers.duckdb", paths[1]);
    seq_store_path("default", paths[2]);
    count = add(runners, count, (struct runner){ &peer_wide_sequencer, "ours", paths[0], 0 });
    count =
        add(runners, count, (struct runner){ &peer_sequencer, "ours, 500 unflushed", paths[2], 0 });
    count = add(runners, count, (struct runner){ &peer_redis, "Redis INCR, in memory", redis, 0 });
    count = add(runners,
                count,
                (struct runner){ &peer_redis, "Redis INCR, fsync always", durable_redis, 0 });
    count =
        add(runners, count, (struct runner){ &peer_postgres, "PostgreSQL nextval", postgres, 0 });
    count = add(runners, count, (struct runner){ &peer_duckdb, "DuckDB nextval", paths[1], 0 });
    for (size_t i = 0; i < count; i++) {
        runners[i].peer->prepare(runners[i].where);
    }
    run_all(runners, count, 1, PEER_NUMBERS_MAX);
    report("sequencer/one client", runners, count);
}

/* The servers have been prepared. */
static void bench_durable(const char *postgres, const char *durable_redis)
{
    struct runner runners[PEERS_MAX];
    char path[SEQ_STORE_PATH_SIZE];
    size_t count = 0;

    seq_store_path("application", path);
    peer_application.prepare(path);
    count = add(runners, count, (struct runner){ &peer_application, "ours", path, 0 });
    count = add(runners,
                count,
                (struct runner){ &peer_redis, "Redis INCR, fsync always", durable_redis, 0 });
    count =
        add(runners, count, (struct runner){ &peer_postgres, "PostgreSQL nextval", postgres, 0 });
    run_all(runners, count, CLIENTS, SEQ_APP_NUMBERS);
    report("app/64 clients", runners, count);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: bench_sequencer_peers POSTGRES_URL REDIS_PORT DURABLE_REDIS_PORT (or -)\n",
              stderr);
        return 2;
    }
    bench_one_client(argv[1], argv[2], argv[3]);
    bench_durable(argv[1], argv[3]);
    return 0;
}
