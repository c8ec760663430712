/* Many processes append to one ledger, many follow it.
 *
 *   torture_ledger_many [--rounds N] [--seed N] [--events N] [--processes N] [--followers N]
 *
 * Each of the processes appends the ids of three stripes, its own and its neighbours', in batches of
 * its own size and order, so that every id comes from three of them. Afterwards: the offsets are
 * 1 .. n without a hole, every process was told the same offset for an id, every follower saw every
 * event exactly once and in order, and the ledger verifies.
 *
 * The other two ways to call it are the processes themselves:
 *
 *   torture_ledger_many append LOCATION NUMBER PROCESSES EVENTS SEED RESULTS
 *   torture_ledger_many follow LOCATION EVENTS */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/ledger.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/random.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "lib/tempdir.h"
#include "torture/process.h"

enum { BATCH_MAX = 40, PROCESSES_MAX = 64, STRIPES = 3, WAIT_MS = 60000 };

struct options {
    uint64_t rounds;
    uint64_t seed;
    uint64_t events;
    uint64_t processes;
    uint64_t followers;
};

/* --- a process that appends --- */

struct appender {
    pawl_ledger *ledger;
    uint32_t *results; /* shared with the driver: the offset of each id that was answered */
    pawl_event events[BATCH_MAX];
    char texts[BATCH_MAX][2][48];
};

static pawl_status append_batch(struct appender *a,
                                uint64_t first,
                                size_t count,
                                pawl_error *reterr)
{
    pawl_append_result results[BATCH_MAX] = { PAWL_APPEND_RESULT_INIT };

    for (size_t i = 0; i < count; i++) {
        uint64_t id = first + i;
        snprintf(a->texts[i][0], sizeof(a->texts[i][0]), "e-%" PRIu64, id);
        snprintf(a->texts[i][1], sizeof(a->texts[i][1]), "{\"n\":%" PRIu64 "}", id);
        a->events[i] = (pawl_event){
            .size = sizeof(pawl_event),
            .id = pawl_view_of(a->texts[i][0]),
            .run_id = pawl_view_of("many"),
            .turn = (int64_t)(id / 1000),
            .kind = pawl_view_of("said"),
            .actor = pawl_view_of("ada"),
            .payload = pawl_view_of(a->texts[i][1]),
        };
    }
    pawl_status status = pawl_ledger_append_many(a->ledger, a->events, count, results, reterr);
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        a->results[first + i] = (uint32_t)results[i].offset;
    }
    return status;
}

/* Sixteen that want the write lock at once may wait longer than one is patient. */
static pawl_status append_patiently(struct appender *a,
                                    uint64_t first,
                                    size_t count,
                                    pawl_error *reterr)
{
    pawl_status status;

    do {
        status = append_batch(a, first, count, reterr);
    } while (status == PAWL_BUSY);
    return status;
}

static pawl_status append_stripe(
    struct appender *a, uint64_t first, uint64_t end, struct pawl__prng *random, pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    while (status == PAWL_OK && first < end) {
        uint64_t drawn = 1 + pawl__prng_below(random, BATCH_MAX);
        size_t count = MIN(drawn, end - first);
        status = append_patiently(a, first, count, reterr);
        first += count;
    }
    return status;
}

static uint32_t *map_results(const char *path, uint64_t events, pawl_error *reterr)
{
    AUTO(pawl__fs_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    size_t size = (events + 1) * sizeof(uint32_t);
    void *map = fd < 0 || ftruncate(fd, (off_t)size) != 0
                    ? MAP_FAILED
                    : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (map == MAP_FAILED) {
        (void)pawl__fail_errno(reterr, errno, "map '%s'", path);
        return NULL;
    }
    return map;
}

static pawl_status run_appender(char **argv, pawl_error *reterr)
{
    static struct appender a;
    uint64_t number = strtoull(argv[3], NULL, 10);
    uint64_t processes = strtoull(argv[4], NULL, 10);
    uint64_t events = strtoull(argv[5], NULL, 10);
    struct pawl__prng random = pawl__prng_seeded(strtoull(argv[6], NULL, 10) * 1000 + number);

    a.results = map_results(argv[7], events, reterr);
    pawl_status status =
        a.results == NULL ? reterr->status : pawl_ledger_open(argv[2], NULL, &a.ledger, reterr);
    for (uint64_t i = 0; i < STRIPES && status == PAWL_OK; i++) {
        uint64_t stripe = (number + (i + number) % STRIPES) % processes; /* not all in one order */
        status = append_stripe(&a,
                               1 + stripe * events / processes,
                               1 + (stripe + 1) * events / processes,
                               &random,
                               reterr);
    }
    pawl_ledger_close(a.ledger, 0, NULL);
    return status;
}

/* --- a process that follows --- */

static pawl_status see(const pawl_event *event,
                       uint64_t expected,
                       unsigned char *seen,
                       uint64_t events,
                       pawl_error *reterr)
{
    char id[32];

    snprintf(id, sizeof(id), "%.*s", (int)MIN(event->id.len, (size_t)30), event->id.data);
    uint64_t number = strncmp(id, "e-", 2) == 0 ? strtoull(id + 2, NULL, 10) : 0;
    if (event->offset != expected || number == 0 || number > events || seen[number]++ != 0) {
        return pawl__fail(reterr,
                          PAWL_FAILED,
                          "saw '%s' at offset %" PRIu64 " where %" PRIu64 " was to come",
                          id,
                          event->offset,
                          expected);
    }
    return PAWL_OK;
}

static pawl_status run_follower(char **argv, pawl_error *reterr)
{
    uint64_t events = strtoull(argv[3], NULL, 10);
    unsigned char *seen = calloc(events + 1, 1);
    pawl_ledger *ledger = NULL;
    pawl_reader *reader = NULL;
    pawl_status status = pawl_ledger_open(argv[2], NULL, &ledger, reterr);

    REQUIRE(seen != NULL);
    if (status == PAWL_OK) {
        status = pawl_reader_open(ledger, NULL, &reader, reterr);
    }
    for (uint64_t next = 1; status == PAWL_OK && next <= events;) {
        const pawl_event *event = NULL;
        status = pawl_reader_next(reader, &event, reterr);
        if (status == PAWL_NOT_FOUND) {
            status = pawl_reader_wait(reader, WAIT_MS, reterr);
        } else if (status == PAWL_OK) {
            status = see(event, next++, seen, events, reterr);
        }
    }
    pawl_reader_free(reader);
    pawl_ledger_close(ledger, 0, NULL);
    free(seen);
    return status;
}

static int run_process(char **argv)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        strcmp(argv[1], "append") == 0 ? run_appender(argv, &error) : run_follower(argv, &error);

    if (status != PAWL_OK) {
        fprintf(stderr, "%s: %s: %s\n", argv[1], pawl_status_name(status), error.message);
    }
    return status == PAWL_OK ? 0 : 1;
}

/* --- the driver --- */

struct round {
    struct options options;
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 16];
    char errors[TEMPDIR_SIZE + 16];
    struct process appenders[PROCESSES_MAX];
    struct process followers[PROCESSES_MAX];
};

static pawl_status start_all(struct round *round, const char *program, pawl_error *reterr)
{
    const struct options *options = &round->options;
    char numbers[4][32];
    char results[TEMPDIR_SIZE + 32];
    pawl_status status = PAWL_OK;

    snprintf(numbers[1], sizeof(numbers[1]), "%" PRIu64, options->processes);
    snprintf(numbers[2], sizeof(numbers[2]), "%" PRIu64, options->events);
    snprintf(numbers[3], sizeof(numbers[3]), "%" PRIu64, options->seed);
    for (uint64_t i = 0; i < options->followers && status == PAWL_OK; i++) {
        const char *argv[] = { program, "follow", round->path, numbers[2], NULL };
        struct process_options how = { .argv = argv, .errors = round->errors };
        status = process_start(&round->followers[i], &how, reterr);
    }
    for (uint64_t i = 0; i < options->processes && status == PAWL_OK; i++) {
        snprintf(numbers[0], sizeof(numbers[0]), "%" PRIu64, i);
        snprintf(results, sizeof(results), "%s/results-%" PRIu64, round->dir, i);
        const char *argv[] = { program,    "append",   round->path, numbers[0], numbers[1],
                               numbers[2], numbers[3], results,     NULL };
        struct process_options how = { .argv = argv, .errors = round->errors };
        status = process_start(&round->appenders[i], &how, reterr);
    }
    return status;
}

static uint64_t count_failed(struct process *processes, uint64_t count)
{
    uint64_t failed = 0;

    for (uint64_t i = 0; i < count; i++) {
        failed += process_end(&processes[i]) != 0;
    }
    return failed;
}

/* Answers that differ from what is in the ledger. */
static pawl_status compare_answers(struct round *round,
                                   const uint32_t *offsets,
                                   uint64_t *ret_wrong,
                                   uint64_t *ret_answers,
                                   pawl_error *reterr)
{
    for (uint64_t p = 0; p < round->options.processes; p++) {
        char path[TEMPDIR_SIZE + 32];
        snprintf(path, sizeof(path), "%s/results-%" PRIu64, round->dir, p);
        const uint32_t *results = map_results(path, round->options.events, reterr);
        if (results == NULL) {
            return reterr->status;
        }
        for (uint64_t id = 1; id <= round->options.events; id++) {
            *ret_answers += results[id] != 0;
            *ret_wrong += results[id] != 0 && results[id] != offsets[id];
        }
        munmap((void *)(uintptr_t)results, (round->options.events + 1) * sizeof(*results));
    }
    return PAWL_OK;
}

static pawl_status read_offsets(pawl_ledger *ledger,
                                uint64_t events,
                                uint32_t *ret_offsets,
                                pawl_error *reterr)
{
    pawl_reader *reader = NULL;
    const pawl_event *event = NULL;
    unsigned char *seen = calloc(events + 1, 1);
    uint64_t next = 1;
    pawl_status status = pawl_reader_open(ledger, NULL, &reader, reterr);

    REQUIRE(seen != NULL);
    while (status == PAWL_OK && (status = pawl_reader_next(reader, &event, reterr)) == PAWL_OK) {
        status = see(event, next, seen, events, reterr);
        if (status == PAWL_OK) {
            ret_offsets[strtoull(event->id.data + 2, NULL, 10)] = (uint32_t)next++;
        }
    }
    pawl_reader_free(reader);
    free(seen);
    if (status == PAWL_NOT_FOUND && next != events + 1) {
        return pawl__fail(reterr, PAWL_FAILED, "%" PRIu64 " events are there", next - 1);
    }
    return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

static pawl_status judge(struct round *round, uint64_t *ret_answers, pawl_error *reterr)
{
    uint32_t *offsets = calloc(round->options.events + 1, sizeof(*offsets));
    pawl_ledger *ledger = NULL;
    uint64_t wrong = 0;
    pawl_status status = pawl_ledger_open(round->path, NULL, &ledger, reterr);

    REQUIRE(offsets != NULL);
    if (status == PAWL_OK) {
        status = pawl_ledger_verify(ledger, NULL, NULL, reterr);
    }
    if (status == PAWL_OK) {
        status = read_offsets(ledger, round->options.events, offsets, reterr);
    }
    if (status == PAWL_OK) {
        status = compare_answers(round, offsets, &wrong, ret_answers, reterr);
    }
    pawl_ledger_close(ledger, 0, NULL);
    free(offsets);
    if (status == PAWL_OK && wrong > 0) {
        return pawl__fail(reterr, PAWL_FAILED, "%" PRIu64 " answers were wrong", wrong);
    }
    return status;
}

static void print_errors(const char *path)
{
    char line[600];
    FILE *file = fopen(path, "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        printf("# %s", line);
    }
    if (file != NULL) {
        fclose(file);
    }
}

static pawl_status run_round(const struct options *options,
                             const char *program,
                             uint64_t *ret_answers,
                             pawl_error *reterr)
{
    static struct round round;

    round = (struct round){ .options = *options };
    pawl_status status = tempdir_make(round.dir, "many", reterr);
    if (status != PAWL_OK) {
        return status;
    }
    snprintf(round.path, sizeof(round.path), "%s/ledger.db", round.dir);
    snprintf(round.errors, sizeof(round.errors), "%s/errors", round.dir);
    status = start_all(&round, program, reterr);
    if (status == PAWL_OK) {
        uint64_t failed = count_failed(round.appenders, options->processes);
        for (uint64_t i = 0; i < options->followers && failed > 0; i++) {
            process_kill(&round.followers[i]); /* what they wait for never comes */
        }
        failed += count_failed(round.followers, options->followers);
        if (failed > 0) {
            print_errors(round.errors);
            status = pawl__fail(reterr, PAWL_FAILED, "%" PRIu64 " processes failed", failed);
        }
    }
    if (status == PAWL_OK) {
        status = judge(&round, ret_answers, reterr);
    }
    tempdir_remove(round.dir);
    return status;
}

static bool parse(int argc, char **argv, struct options *ret_options)
{
    static const struct option known[] = {
        { "rounds", required_argument, NULL, 'r' },
        { "seed", required_argument, NULL, 's' },
        { "events", required_argument, NULL, 'e' },
        { "processes", required_argument, NULL, 'p' },
        { "followers", required_argument, NULL, 'f' },
        { NULL, 0, NULL, 0 },
    };
    struct options options = { 1, 1, 100000, 16, 4 };
    bool valid = true;

    for (int option = 0; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        uint64_t value = optarg == NULL ? 0 : strtoull(optarg, NULL, 10);
        switch (option) {
        case 'r':
            options.rounds = value;
            break;
        case 's':
            options.seed = value;
            break;
        case 'e':
            options.events = value;
            break;
        case 'p':
            options.processes = value;
            break;
        case 'f':
            options.followers = value;
            break;
        default:
            valid = false;
        }
    }
    *ret_options = options;
    return valid && optind == argc && options.processes >= STRIPES
           && options.processes <= PROCESSES_MAX && options.followers <= PROCESSES_MAX
           && options.events >= options.processes;
}

int main(int argc, char **argv)
{
    struct options options;
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t answers = 0;
    uint64_t done = 0;

    if ((argc == 8 && strcmp(argv[1], "append") == 0)
        || (argc == 4 && strcmp(argv[1], "follow") == 0)) {
        return run_process(argv);
    }
    if (!parse(argc, argv, &options)) {
        fprintf(stderr,
                "usage: %s [--rounds N] [--seed N] [--events N] [--processes N] [--followers N]\n",
                argv[0]);
        return 2;
    }
    printf("1..1\n");
    int64_t start_ns = pawl__monotonic_ns(pawl__clock_real());
    pawl_status status = PAWL_OK;
    for (; status == PAWL_OK && done < options.rounds; done += status == PAWL_OK) {
        status = run_round(&options, "/proc/self/exe", &answers, &error);
        options.seed++;
    }
    if (status != PAWL_OK) {
        printf("# %s\n", error.message);
    }
    printf("# result rounds=%" PRIu64 " acknowledged=%" PRIu64 " lost=%d duplicated=%d broken=%d "
           "processes=%" PRIu64 " followers=%" PRIu64 " events=%" PRIu64 " ms=%" PRId64 "\n",
           done,
           answers,
           status != PAWL_OK,
           0,
           status != PAWL_OK,
           options.processes,
           options.followers,
           options.events,
           (pawl__monotonic_ns(pawl__clock_real()) - start_ns) / NS_PER_MS);
    printf("%sok 1 - no event is lost, stored twice or passed over\n",
           status == PAWL_OK ? "" : "not ");
    return status == PAWL_OK ? 0 : 1;
}
