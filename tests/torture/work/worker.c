#include "torture/work/worker.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/random.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "base/thread/thread.h"

enum { CLAIM_MAX = 3, STALLS = 100, SWEEP_MS = 50, WAIT_MS = 100, AHEAD_MAX = 16 };

void worker_id(uint64_t number, char ret_id[WORKER_ID_SIZE])
{
    snprintf(ret_id, WORKER_ID_SIZE, "i-%08" PRIu64, number);
}

uint64_t worker_number(pawl_view id)
{
    char text[WORKER_ID_SIZE];

    snprintf(text, sizeof(text), "%.*s", (int)MIN(id.len, sizeof(text) - 1), id.data);
    return strncmp(text, "i-", 2) == 0 ? strtoull(text + 2, NULL, 10) : 0;
}

struct worker_board *worker_map(const char *path, uint64_t items)
{
    AUTO(pawl__fs_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    size_t size = sizeof(struct worker_board) + (items + 1) * sizeof(struct worker_item);
    void *map = fd < 0 || ftruncate(fd, (off_t)size) != 0
                    ? MAP_FAILED
                    : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return map == MAP_FAILED ? NULL : map;
}

struct crew {
    pawl_work *work;
    struct worker_board *board;
    uint64_t items;
    uint64_t seed;
    bool ahead; /* leases ahead, and does not always wait for an end */
    atomic_bool done;
};

struct worker {
    struct crew *crew;
    struct pawl__prng random;
    char holder[32];
};

static void complain(struct crew *crew, const char *call, const pawl_error *error)
{
    if (atomic_fetch_add(&crew->board->failures, 1) == 0) {
        snprintf(crew->board->failure,
                 sizeof(crew->board->failure),
                 "%s: %s: %.180s",
                 call,
                 pawl_status_name(error->status),
                 error->message);
    }
}

/* Nobody knows what became of it: the same call again does, by its token. */
static bool outcome_unknown(pawl_status status)
{
    return status == PAWL_BUSY || status == PAWL_TIMEOUT || status == PAWL_UNAVAILABLE;
}

static int64_t boot_ns(void)
{
    return pawl__boot_ns(pawl__clock_real());
}

/* Sleeps past the lease, as a process does that is stopped, swapped out or partitioned. Then it
 * finishes as if nothing had happened. */
static void stall(void)
{
    struct pawl__clock *clock = pawl__clock_real();

    pawl__sleep_until(clock, pawl__monotonic_ns(clock) + 2 * (WORKER_LEASE_MS * NS_PER_MS));
}

static void note_completed(struct crew *crew, uint64_t number, uint64_t token)
{
    atomic_fetch_add(&crew->board->items[number].completions, 1);
    atomic_store(&crew->board->items[number].token, token);
    atomic_fetch_add(&crew->board->answered, 1);
}

static pawl_status end_item(struct worker *worker,
                            const pawl_lease *lease,
                            bool fails,
                            pawl_error *reterr)
{
    pawl_work *work = worker->crew->work;
    pawl_status status;

    do {
        status = fails ? pawl_work_fail(
                     work, lease, pawl_view_of("no luck"), (pawl_view){ 0 }, true, NULL, reterr)
                       : pawl_work_complete(work, lease, pawl_view_of("{\"done\":true}"), reterr);
    } while (outcome_unknown(status));
    return status;
}

static void note_end(
    struct crew *crew, const pawl_error *outcome, bool fails, bool zombie, const pawl_lease *lease)
{
    if (outcome->status == PAWL_LEASE_LOST) {
        atomic_fetch_add(&crew->board->lost, 1);
    } else if (outcome->status != PAWL_OK) {
        complain(crew, fails ? "fail" : "complete", outcome);
    } else {
        atomic_fetch_add(&crew->board->undead, zombie);
        if (!fails) {
            note_completed(crew, worker_number(lease->work_item_id), lease->token);
        }
    }
}

/* An end that nobody waits for. */
struct ending {
    struct crew *crew;
    bool zombie;
    uint64_t token;
    char id[WORKER_ID_SIZE];
};

static void take_answer(void *context, const pawl_error *outcome);

static void send_end(struct ending *ending)
{
    const pawl_lease lease = { sizeof(pawl_lease), pawl_view_of(ending->id), ending->token };
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl_work_complete_async(ending->crew->work,
                                 &lease,
                                 pawl_view_of("{\"done\":true}"),
                                 take_answer,
                                 ending,
                                 &error)
        != PAWL_OK) {
        if (error.status != PAWL_CLOSED) {
            complain(ending->crew, "complete without waiting", &error);
        }
        free(ending);
    }
}

static void take_answer(void *context, const pawl_error *outcome)
{
    struct ending *ending = context;
    const pawl_lease lease = { sizeof(pawl_lease), pawl_view_of(ending->id), ending->token };

    if (outcome_unknown(outcome->status)) {
        send_end(ending);
        return;
    }
    if (outcome->status != PAWL_CLOSED) {
        note_end(ending->crew, outcome, false, ending->zombie, &lease);
    }
    free(ending);
}

static bool end_without_waiting(struct crew *crew, const pawl_item *item, bool zombie)
{
    struct ending *ending = calloc(1, sizeof(*ending));

    if (ending == NULL) {
        return false;
    }
    ending->crew = crew;
    ending->zombie = zombie;
    ending->token = item->token;
    snprintf(ending->id, sizeof(ending->id), "%.*s", VIEW_ARGS(item->work_item_id));
    send_end(ending);
    return true;
}

/* `over_ns`: the lease is over by then at the latest. Whoever begins a call behind it is a zombie, and
 * must be told so. */
static void finish(struct worker *worker, const pawl_item *item, int64_t over_ns)
{
    struct crew *crew = worker->crew;
    const pawl_lease lease = { sizeof(pawl_lease), item->work_item_id, item->token };
    pawl_error error = PAWL_ERROR_INIT;
    bool fails = pawl__prng_below(&worker->random, 20) == 0;
    bool zombie = boot_ns() > over_ns;

    atomic_fetch_add(&crew->board->zombies, zombie);
    if (crew->ahead && !fails && pawl__prng_below(&worker->random, 2) == 0
        && end_without_waiting(crew, item, zombie)) {
        return;
    }
    error.status = end_item(worker, &lease, fails, &error);
    note_end(crew, &error, fails, zombie, &lease);
}

static int64_t lease_over_ns(void)
{
    return boot_ns() + WORKER_LEASE_MS * NS_PER_MS;
}

static void do_item(struct worker *worker, const pawl_item *item, int64_t over_ns)
{
    const pawl_lease lease = { sizeof(pawl_lease), item->work_item_id, item->token };

    if (pawl__prng_below(&worker->random, 10) == 0
        && pawl_work_heartbeat(worker->crew->work, &lease, 0, NULL, NULL) == PAWL_OK) {
        over_ns = lease_over_ns();
    }
    if (pawl__prng_below(&worker->random, 1 + worker->crew->items / STALLS) == 0) {
        stall();
    }
    if (pawl__prng_below(&worker->random, 50) == 0
        && pawl_work_release(worker->crew->work, &lease, NULL) == PAWL_OK) {
        return;
    }
    finish(worker, item, over_ns);
}

static void work_on(struct worker *worker)
{
    struct crew *crew = worker->crew;
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    claim.holder = pawl_view_of(worker->holder);
    claim.wait_ms = WAIT_MS;
    while (!atomic_load(&crew->done)) {
        pawl_claimed *claimed = NULL;
        claim.count_max = 1 + (uint32_t)pawl__prng_below(&worker->random, CLAIM_MAX);
        pawl_status status = pawl_work_claim(crew->work, &claim, &claimed, &error);
        int64_t over_ns = lease_over_ns();
        for (size_t i = 0; status == PAWL_OK && i < claimed->count; i++) {
            do_item(worker, &claimed->items[i], over_ns);
        }
        pawl_claimed_free(claimed);
        if (status != PAWL_OK && status != PAWL_NOT_FOUND && !outcome_unknown(status)) {
            complain(crew, "claim", &error);
            return;
        }
    }
}

static void run_worker(void *context)
{
    work_on(context);
}

/* The watchdog of a process. All of them sweep the same store. */
static void watch_over(struct crew *crew)
{
    struct pawl__clock *clock = pawl__clock_real();
    pawl_error error = PAWL_ERROR_INIT;

    while (!atomic_load(&crew->done)) {
        pawl_sweep_report report = PAWL_SWEEP_REPORT_INIT;
        pawl_work_stats stats = PAWL_WORK_STATS_INIT;
        pawl_status status = pawl_work_sweep(crew->work, &report, &error);
        if (status == PAWL_OK) {
            status = pawl_work_get_stats(crew->work, &stats, &error);
            atomic_store(&crew->done, status == PAWL_OK && stats.completed == crew->items);
        }
        if (status != PAWL_OK && !outcome_unknown(status)) {
            complain(crew, "sweep", &error);
            atomic_store(&crew->done, true);
        }
        pawl__sleep_until(clock, pawl__monotonic_ns(clock) + SWEEP_MS * NS_PER_MS);
    }
}

pawl_status worker_run(const char *location,
                       struct worker_board *board,
                       uint64_t items,
                       uint64_t threads,
                       uint64_t seed,
                       pawl_error *reterr)
{
    static struct worker workers[WORKER_THREADS_MAX];
    struct pawl__thread running[WORKER_THREADS_MAX] = { 0 };
    struct crew crew = { .board = board, .items = items, .seed = seed, .ahead = seed % 2 == 1 };
    pawl_work_options options = PAWL_WORK_OPTIONS_INIT;

    options.lease_ms = WORKER_LEASE_MS;
    options.retry_first_ms = 1;
    options.retry_max_ms = 20;
    options.must_exist = true;
    options.claim_ahead = crew.ahead ? AHEAD_MAX : 0;
    pawl_status status = pawl_work_open(location, &options, &crew.work, reterr);
    for (uint64_t i = 0; i < threads && status == PAWL_OK; i++) {
        workers[i] = (struct worker){ .crew = &crew,
                                      .random = pawl__prng_seeded(seed * WORKER_THREADS_MAX + i) };
        snprintf(workers[i].holder, sizeof(workers[i].holder), "%d-%" PRIu64, (int)getpid(), i);
        status = pawl__thread_start(&running[i], "worker", run_worker, &workers[i], reterr);
    }
    if (status == PAWL_OK) {
        watch_over(&crew);
    }
    atomic_store(&crew.done, true);
    for (uint64_t i = 0; i < threads; i++) {
        pawl__thread_join(&running[i]);
    }
    pawl_work_close(crew.work, 0, NULL);
    return status;
}
