/* One run of pawl's work queue, for bench/work/run, which does the same with other queues.
 *
 *   bench_work LOCATION ITEMS WORKERS waiting|batched
 *
 * prints {"enqueue_s":…,"drain_s":…}. LOCATION holds no work yet. Items go in by the thousand; then
 * every worker is a thread. One that is `waiting` completes an item and takes up the next only when
 * that is durable. One that is `batched` takes up the next at once, from some that were leased ahead,
 * and the run is over when the last end is durable. The workers share one handle, as those of one
 * program do. */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/work.h>

enum { BATCH = 1000, WORKERS_MAX = 64, AHEAD = 100 };

static pawl_work *work;
static bool batched;
static atomic_long ended;

#define MUST(call)                                                        \
    do {                                                                  \
        pawl_error error_ = PAWL_ERROR_INIT;                              \
        pawl_error *err = &error_;                                        \
        if ((call) != PAWL_OK) {                                          \
            fprintf(stderr, "bench_work: %s: %s\n", #call, err->message); \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

static void end_well(pawl_status status, const pawl_error *error)
{
    if (status != PAWL_OK && status != PAWL_NOT_FOUND) {
        fprintf(stderr, "bench_work: %s\n", error->message);
        exit(1);
    }
}

static void enqueue(long items)
{
    static pawl_submission batch[BATCH];
    static char inputs[BATCH][32];

    for (long from = 0; from < items; from += BATCH) {
        size_t count = 0;

        for (long i = from; i < items && count < BATCH; i++, count++) {
            snprintf(inputs[count], sizeof(inputs[count]), "{\"i\":%ld}", i);
            batch[count] = (pawl_submission)PAWL_SUBMISSION_INIT;
            batch[count].task_id = pawl_view_of("bench");
            batch[count].work_type = pawl_view_of("noop");
            batch[count].input_data = pawl_view_of(inputs[count]);
        }
        MUST(pawl_work_submit(work, batch, count, NULL, err));
    }
}

/* --- a worker that waits until each end is durable, and gets the next item with the answer --- */

static void drain_waiting(pawl_claim *claim)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_claimed *claimed = NULL;
    pawl_status status = pawl_work_claim(work, claim, &claimed, &error);

    while (status == PAWL_OK && claimed != NULL) {
        pawl_claimed *next = NULL;
        pawl_lease lease = { sizeof(pawl_lease),
                             claimed->items[0].work_item_id,
                             claimed->items[0].token };

        status = pawl_work_complete_and_claim(
            work, &lease, (pawl_view){ NULL, 0 }, claim, &next, &error);
        atomic_fetch_add_explicit(&ended, status == PAWL_OK, memory_order_relaxed);
        pawl_claimed_free(claimed);
        claimed = next;
    }
    end_well(status, &error);
}

/* --- a worker that takes up its next item meanwhile --- */

static void count_end(void *context, const pawl_error *outcome)
{
    (void)context;
    if (outcome->status != PAWL_OK) {
        fprintf(stderr, "bench_work: %s\n", outcome->message);
        exit(1);
    }
    atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
}

static void drain_batched(pawl_claim *claim)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_claimed *claimed = NULL;
    pawl_status status = pawl_work_claim(work, claim, &claimed, &error);

    while (status == PAWL_OK) {
        pawl_lease lease = { sizeof(pawl_lease),
                             claimed->items[0].work_item_id,
                             claimed->items[0].token };

        MUST(pawl_work_complete_async(work, &lease, (pawl_view){ NULL, 0 }, count_end, NULL, err));
        pawl_claimed_free(claimed);
        status = pawl_work_claim(work, claim, &claimed, &error);
    }
    end_well(status, &error);
}

static void *drain(void *argument)
{
    const int *number = argument;
    char holder[32];
    pawl_claim claim = PAWL_CLAIM_INIT;

    snprintf(holder, sizeof(holder), "worker-%d", *number);
    claim.holder = pawl_view_of(holder);
    if (batched) {
        drain_batched(&claim);
    } else {
        drain_waiting(&claim);
    }
    return NULL;
}

static void drain_with(int workers)
{
    pthread_t threads[WORKERS_MAX];
    int numbers[WORKERS_MAX];

    for (int i = 0; i < workers; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, drain, &numbers[i]) != 0) {
            fputs("bench_work: no thread\n", stderr);
            exit(1);
        }
    }
    for (int i = 0; i < workers; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
    long items = argc == 5 ? strtol(argv[2], NULL, 10) : 0;
    long workers = argc == 5 ? strtol(argv[3], NULL, 10) : 0;
    pawl_task task = { .size = sizeof(pawl_task),
                       .task_id = pawl_view_of("bench"),
                       .title = pawl_view_of("no-op items") };
    pawl_work_options options = PAWL_WORK_OPTIONS_INIT;

    if (items < 1 || workers < 1 || workers > WORKERS_MAX) {
        fputs("usage: bench_work LOCATION ITEMS WORKERS waiting|batched; bench/work/run runs it\n",
              stderr);
        return 2;
    }
    batched = strcmp(argv[4], "batched") == 0;
    options.claim_ahead = batched ? AHEAD : 0;
    MUST(pawl_work_open(argv[1], &options, &work, err));
    MUST(pawl_task_create(work, &task, NULL, 0, err));
    double start = bench_now_s();
    enqueue(items);
    double enqueue_s = bench_now_s() - start;
    start = bench_now_s();
    drain_with((int)workers);
    pawl_work_close(work, 0, NULL); /* what is not answered yet is answered now */
    double drain_s = bench_now_s() - start;
    if (atomic_load(&ended) != items) {
        fprintf(stderr, "bench_work: %ld of %ld items\n", atomic_load(&ended), items);
        return 1;
    }
    printf("{\"enqueue_s\":%.6f,\"drain_s\":%.6f}\n", enqueue_s, drain_s);
    return 0;
}
