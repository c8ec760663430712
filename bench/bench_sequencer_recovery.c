/* What a start costs: the log is read from the offset on up to which its numbers are stored.
 *
 *   sequencer/recovery        all of a log of 1 M events, whose numbers were never stored, against the
 *                             1,000 events behind the stored offset of the same log
 *   sequencer/log, read only  the same log read to its end, which stores nothing, against those 1,000
 *
 * Opening the store is not in it. `bench_sequencer_recovery 10000000` takes a log of so many events, and
 * a quarter of an hour. The longer the log, the higher the ratio: 1,000 events stay 1,000. */
#include "bench.h"

#include <poll.h>

#include "base/core/macros.h"
#include "seq_store.h"

enum {
    EVENTS = 1000000,
    EVENTS_MIN = 100000,
    TAIL = 1000,
    ROUNDS = 5,
    WAIT_MS = 3600000,
};

static const uint64_t workspaces = 1000000;

/* In seconds, from the making of a sequencer until it gives out numbers. */
static double recover(const char *path, uint64_t next_offset)
{
    struct seq_store store;
    pawl_sequencer_status status = PAWL_SEQUENCER_STATUS_INIT;

    seq_store_open(path, &store);
    double start = bench_now_s();
    pawl_sequencer *seq = seq_store_sequencer(&store, 0);
    MUST(pawl_sequencer_wait(seq, WAIT_MS, err));
    double seconds = bench_now_s() - start;
    (void)!pawl_sequencer_get_status(seq, &status, NULL);
    REQUIRE(status.next_offset == next_offset);
    while (status.stored_offset != next_offset) { /* the end of it is written behind the caller */
        poll(NULL, 0, 1);
        (void)!pawl_sequencer_get_status(seq, &status, NULL);
    }
    pawl_sequencer_close(seq, 0, NULL);
    seq_store_close(&store);
    return seconds;
}

static pawl_status count_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    uint64_t *count = context;

    (void)event;
    (void)reterr;
    ++*count;
    return PAWL_OK;
}

static double read_log(const char *path, uint64_t events)
{
    struct seq_store store;
    uint64_t count = 0;

    seq_store_open(path, &store);
    double start = bench_now_s();
    MUST(pawl__app_seq_walk(&store.seq, 1, 0, count_event, &count, err));
    double seconds = bench_now_s() - start;
    REQUIRE(count == events);
    seq_store_close(&store);
    return seconds;
}

int main(int argc, char **argv)
{
    char path[SEQ_STORE_PATH_SIZE];
    uint64_t events = argc > 1 ? strtoul(argv[1], NULL, 10) : EVENTS;
    double tail_s = 0;

    if (events < EVENTS_MIN) {
        fprintf(stderr, "usage: bench_sequencer_recovery [EVENTS, at least %d]\n", EVENTS_MIN);
        return 2;
    }
    seq_store_path("log", path);
    seq_store_fill_log(path, 1, events, workspaces);
    double full_s = recover(path, events + 1);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t last = events + (i + 1) * TAIL;
        seq_store_fill_log(path, last - TAIL + 1, last, workspaces);
        tail_s += recover(path, last + 1) / ROUNDS;
    }
    double read_s = read_log(path, events + (uint64_t)ROUNDS * TAIL);
    bench_report("sequencer/recovery from the whole log",
                 "ms",
                 full_s * 1e3,
                 "1,000 events behind the stored offset",
                 tail_s * 1e3,
                 100);
    bench_report("sequencer/log, read only",
                 "ms",
                 read_s * 1e3,
                 "1,000 events behind the stored offset",
                 tail_s * 1e3,
                 0);
    return 0;
}
