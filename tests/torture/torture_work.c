/* Many processes of workers on one store, killed at random and stalled past their leases.
 *
 *   torture_work sqlite|postgres [--rounds N] [--seed N] [--items N] [--processes N] [--threads N]
 *
 * Afterwards every item is completed, once, by the holder of the newest token; every call behind the
 * end of its lease was told so; none starved, none is stuck.
 *
 * The process itself is called as
 *
 *   torture_work work LOCATION BOARD ITEMS THREADS SEED */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/os/clock.h"
#include "lib/pg_server.h"
#include "lib/tempdir.h"
#include "torture/process.h"
#include "torture/work/worker.h"

enum {
    PROCESSES_MAX = 32,
    SUBMIT_MAX = 1000,
    LIFE_MS_MIN = 100, /* a process lives so long at the least ... */
    LIFE_MS_MAX = 2500,
    PATIENCE_S = 900, /* ... and all of it together so long at the most */
};

struct options {
    const char *store;
    uint64_t rounds;
    uint64_t seed;
    uint64_t items;
    uint64_t processes;
    uint64_t threads; /* a process */
};

struct totals {
    uint64_t acknowledged;
    uint64_t kills;
    uint64_t zombies;
    uint64_t lost;
};

struct round {
    const struct options *options;
    struct pawl__prng random;
    char dir[TEMPDIR_SIZE];
    char location[256];
    char board_path[TEMPDIR_SIZE + 16];
    char errors[TEMPDIR_SIZE + 16];
    struct pg_server *server;
    struct worker_board *board;
    struct process crews[PROCESSES_MAX];
    int64_t dies_ns[PROCESSES_MAX];
    uint64_t started;
    uint64_t kills;
};

/* --- before --- */

static pawl_status submit_some(pawl_work *work, uint64_t first, uint64_t count, pawl_error *reterr)
{
    static pawl_submission submissions[SUBMIT_MAX];
    static char ids[SUBMIT_MAX][WORKER_ID_SIZE];

    for (uint64_t i = 0; i < count; i++) {
        worker_id(first + i, ids[i]);
        submissions[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
        submissions[i].work_item_id = pawl_view_of(ids[i]);
        submissions[i].task_id = pawl_view_of(WORKER_TASK);
        submissions[i].work_type = pawl_view_of(WORKER_TYPE);
        submissions[i].priority = (int32_t)(i % 3);
        submissions[i].max_retries = WORKER_RETRIES;
    }
    return pawl_work_submit(work, submissions, count, NULL, reterr);
}

static pawl_status submit_all(struct round *round, pawl_error *reterr)
{
    const pawl_task task = { .size = sizeof(pawl_task),
                             .task_id = pawl_view_of(WORKER_TASK),
                             .title = pawl_view_of("torture") };
    pawl_work *work = NULL;
    pawl_status status = pawl_work_open(round->location, NULL, &work, reterr);

    if (status == PAWL_OK) {
        status = pawl_task_create(work, &task, NULL, 0, reterr);
    }
    for (uint64_t first = 1; status == PAWL_OK && first <= round->options->items;) {
        uint64_t count = MIN((uint64_t)SUBMIT_MAX, round->options->items - first + 1);
        status = submit_some(work, first, count, reterr);
        first += count;
    }
    pawl_work_close(work, 0, NULL);
    return status;
}

static pawl_status prepare(struct round *round, pawl_error *reterr)
{
    pawl_status status = tempdir_make(round->dir, "work", reterr);

    if (status != PAWL_OK) {
        return status;
    }
    snprintf(round->location, sizeof(round->location), "%s/work.sqlite", round->dir);
    snprintf(round->board_path, sizeof(round->board_path), "%s/board", round->dir);
    snprintf(round->errors, sizeof(round->errors), "%s/errors", round->dir);
    if (strcmp(round->options->store, "postgres") == 0) {
        status = pg_server_start(&(struct pg_server_options){ 0 }, &round->server, reterr);
        if (status != PAWL_OK) {
            return status;
        }
        snprintf(round->location, sizeof(round->location), "%s", pg_server_url(round->server));
    }
    round->board = worker_map(round->board_path, round->options->items);
    if (round->board == NULL) {
        return pawl__fail(reterr, PAWL_IO, "'%s' cannot be mapped", round->board_path);
    }
    return submit_all(round, reterr);
}

/* --- meanwhile --- */

static pawl_status start_crew(struct round *round, uint64_t place, pawl_error *reterr)
{
    char items[32];
    char threads[32];
    char seed[32];
    const char *argv[] = {
        "/proc/self/exe", "work", round->location, round->board_path, items, threads, seed, NULL
    };
    struct process_options how = { .argv = argv, .errors = round->errors };

    snprintf(items, sizeof(items), "%" PRIu64, round->options->items);
    snprintf(threads, sizeof(threads), "%" PRIu64, round->options->threads);
    snprintf(seed, sizeof(seed), "%" PRIu64, round->options->seed * 100000 + round->started++);
    round->dies_ns[place] =
        pawl__monotonic_ns(pawl__clock_real())
        + pawl__prng_between(&round->random, LIFE_MS_MIN, LIFE_MS_MAX) * NS_PER_MS;
    return process_start(&round->crews[place], &how, reterr);
}

/* A crew that ends by itself has found everything done. */
static pawl_status wait_or_kill(struct round *round,
                                uint64_t place,
                                bool *ret_done,
                                pawl_error *reterr)
{
    struct process *crew = &round->crews[place];
    char line[64];
    enum process_event event = process_next(crew, round->dies_ns[place], line, sizeof(line));

    if (event == PROCESS_EOF) {
        *ret_done = true;
        return process_end(crew) == 0
                   ? PAWL_OK
                   : pawl__fail(reterr, PAWL_FAILED, "a process of workers failed");
    }
    process_kill(crew);
    process_end(crew);
    round->kills++;
    return start_crew(round, place, reterr);
}

static uint64_t next_to_die(const struct round *round)
{
    uint64_t next = 0;

    for (uint64_t i = 1; i < round->options->processes; i++) {
        next = round->dies_ns[i] < round->dies_ns[next] ? i : next;
    }
    return next;
}

static pawl_status torment(struct round *round, pawl_error *reterr)
{
    int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + PATIENCE_S * NS_PER_S;
    bool done = false;
    pawl_status status = PAWL_OK;

    for (uint64_t i = 0; i < round->options->processes && status == PAWL_OK; i++) {
        status = start_crew(round, i, reterr);
    }
    while (status == PAWL_OK && !done) {
        if (pawl__monotonic_ns(pawl__clock_real()) > deadline_ns) {
            return pawl__fail(reterr,
                              PAWL_TIMEOUT,
                              "stuck at %" PRIu64 " of %" PRIu64 " items",
                              atomic_load(&round->board->answered),
                              round->options->items);
        }
        status = wait_or_kill(round, next_to_die(round), &done, reterr);
    }
    return status;
}

static void end_crews(struct round *round)
{
    for (uint64_t i = 0; i < round->options->processes; i++) {
        if (round->crews[i].pid > 0) {
            process_kill(&round->crews[i]);
            process_end(&round->crews[i]);
        }
    }
}

/* --- afterwards --- */

struct story {
    uint64_t claims;
    uint64_t completions;
    uint64_t token;    /* of the newest claim */
    uint64_t ended_by; /* token of the completion */
    bool ordered;
};

static bool read_story(void *context, const pawl_item_event *event)
{
    struct story *story = context;

    if (strcmp(event->to, "in_progress") == 0) {
        story->claims++;
        story->ordered = story->ordered && event->token == story->token + 1;
        story->token = event->token;
    } else if (strcmp(event->to, "completed") == 0) {
        story->completions++;
        story->ended_by = event->token;
    }
    return true;
}

static pawl_status judge_item(pawl_work *work,
                              const struct worker_board *board,
                              uint64_t number,
                              pawl_error *reterr)
{
    struct story story = { .ordered = true };
    uint32_t answers = atomic_load(&board->items[number].completions);
    uint64_t token = atomic_load(&board->items[number].token);
    char id[WORKER_ID_SIZE];

    worker_id(number, id);
    pawl_status status =
        pawl_work_history(work, pawl_view_of(id), NULL, read_story, &story, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    if (story.completions != 1 || story.ended_by != story.token || !story.ordered || answers > 1
        || (answers == 1 && token != story.token)) {
        return pawl__fail(reterr,
                          PAWL_FAILED,
                          "%s: claimed %" PRIu64 " times, completed %" PRIu64
                          " times by token %" PRIu64 " where %" PRIu64 " is the newest; %" PRIu32
                          " workers were told so, the last by %" PRIu64,
                          id,
                          story.claims,
                          story.completions,
                          story.ended_by,
                          story.token,
                          answers,
                          token);
    }
    return PAWL_OK;
}

static pawl_status judge_board(const struct worker_board *board, pawl_error *reterr)
{
    if (atomic_load(&board->failures) > 0) {
        return pawl__fail(reterr, PAWL_FAILED, "%s", board->failure);
    }
    if (atomic_load(&board->undead) > 0) {
        return pawl__fail(reterr,
                          PAWL_FAILED,
                          "%" PRIu64 " calls behind the end of their lease were let through",
                          atomic_load(&board->undead));
    }
    return PAWL_OK;
}

static pawl_status judge_task(pawl_work *work, uint64_t items, pawl_error *reterr)
{
    pawl_task *task = NULL;
    pawl_status status = pawl_task_get(work, pawl_view_of(WORKER_TASK), &task, reterr);

    if (status == PAWL_OK && (task->completed != items || task->status != PAWL_TASK_SUCCEEDED)) {
        status = pawl__fail(reterr,
                            PAWL_FAILED,
                            "the task has %" PRIu64 " completed items and status %d",
                            task->completed,
                            (int)task->status);
    }
    pawl_task_free(task);
    return status;
}

static pawl_status judge(struct round *round, pawl_error *reterr)
{
    pawl_work *work = NULL;
    pawl_sweep_report report = PAWL_SWEEP_REPORT_INIT;
    pawl_status status = judge_board(round->board, reterr);

    if (status == PAWL_OK) {
        status = pawl_work_open(round->location, NULL, &work, reterr);
    }
    if (status == PAWL_OK) { /* brings the task up to date when its last worker was killed */
        status = pawl_work_sweep(work, &report, reterr);
    }
    if (status == PAWL_OK) {
        status = judge_task(work, round->options->items, reterr);
    }
    for (uint64_t i = 1; status == PAWL_OK && i <= round->options->items; i++) {
        status = judge_item(work, round->board, i, reterr);
    }
    pawl_work_close(work, 0, NULL);
    return status;
}

static pawl_status run_round(const struct options *options,
                             struct totals *totals,
                             pawl_error *reterr)
{
    static struct round round;

    round = (struct round){ .options = options, .random = pawl__prng_seeded(options->seed) };
    pawl_status status = prepare(&round, reterr);
    if (status == PAWL_OK) {
        status = torment(&round, reterr);
        end_crews(&round);
    }
    if (status == PAWL_OK) {
        status = judge(&round, reterr);
    }
    if (round.board != NULL) {
        totals->acknowledged += atomic_load(&round.board->answered);
        totals->zombies += atomic_load(&round.board->zombies);
        totals->lost += atomic_load(&round.board->lost);
        totals->kills += round.kills;
    }
    pg_server_free(round.server);
    tempdir_remove(round.dir);
    return status;
}

static bool parse(int argc, char **argv, struct options *ret_options)
{
    static const struct option known[] = {
        { "rounds", required_argument, NULL, 'r' },  { "seed", required_argument, NULL, 's' },
        { "items", required_argument, NULL, 'i' },   { "processes", required_argument, NULL, 'p' },
        { "threads", required_argument, NULL, 't' }, { NULL, 0, NULL, 0 },
    };
    struct options options = { "sqlite", 1, 1, 100000, 8, 8 };
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
        case 'i':
            options.items = value;
            break;
        case 'p':
            options.processes = value;
            break;
        case 't':
            options.threads = value;
            break;
        default:
            valid = false;
        }
    }
    options.store = optind + 1 == argc ? argv[optind] : "";
    *ret_options = options;
    return valid && (strcmp(options.store, "sqlite") == 0 || strcmp(options.store, "postgres") == 0)
           && options.processes >= 1 && options.processes <= PROCESSES_MAX && options.threads >= 1
           && options.threads <= WORKER_THREADS_MAX && options.items >= 1;
}

static int run_crew(char **argv)
{
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t items = strtoull(argv[4], NULL, 10);
    struct worker_board *board = worker_map(argv[3], items);
    pawl_status status = board == NULL ? pawl__fail(&error, PAWL_IO, "no board")
                                       : worker_run(argv[2],
                                                    board,
                                                    items,
                                                    strtoull(argv[5], NULL, 10),
                                                    strtoull(argv[6], NULL, 10),
                                                    &error);

    if (status != PAWL_OK) {
        fprintf(stderr, "work: %s: %s\n", pawl_status_name(status), error.message);
    }
    return status == PAWL_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options options;
    struct totals totals = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;
    uint64_t done = 0;

    if (argc == 7 && strcmp(argv[1], "work") == 0) {
        return run_crew(argv);
    }
    if (!parse(argc, argv, &options)) {
        fprintf(stderr,
                "usage: %s sqlite|postgres [--rounds N] [--seed N] [--items N] [--processes N] "
                "[--threads N]\n",
                argv[0]);
        return 2;
    }
    printf("1..1\n");
    int64_t start_ns = pawl__monotonic_ns(pawl__clock_real());
    for (; status == PAWL_OK && done < options.rounds; done += status == PAWL_OK) {
        status = run_round(&options, &totals, &error);
        options.seed++;
    }
    if (status == PAWL_UNSUPPORTED && done == 0) {
        printf("ok 1 - %s # SKIP %s\n", options.store, error.message);
        return 0;
    }
    if (status != PAWL_OK) {
        printf("# %s\n", error.message);
    }
    printf("# result rounds=%" PRIu64 " faults=%" PRIu64 " acknowledged=%" PRIu64
           " lost=%d duplicated=%d broken=%d zombies=%" PRIu64 " lease_lost=%" PRIu64
           " items=%" PRIu64 " ms=%" PRId64 "\n",
           done,
           totals.kills,
           totals.acknowledged,
           status != PAWL_OK,
           0,
           status != PAWL_OK,
           totals.zombies,
           totals.lost,
           options.items,
           (pawl__monotonic_ns(pawl__clock_real()) - start_ns) / NS_PER_MS);
    bool good = status == PAWL_OK && totals.kills > 0 && totals.zombies > 0;
    printf("%sok 1 - every item is completed once, by the newest token, and zombies are told\n",
           good ? "" : "not ");
    return good ? 0 : 1;
}
