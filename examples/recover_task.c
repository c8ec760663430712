/* recover_task: a task that goes on behind its last finished iteration.
 *
 *     recover_task --task squares --until 100 jobs.sqlite
 *
 * State lives in checkpoints: an iteration_start says what is about to happen, an iteration_end what
 * came of it. After a crash the newest iteration_end is where it goes on; what was begun behind it
 * is done again. With nothing there it starts at the beginning.
 *
 * The task here adds up squares, so a number that was added twice or left out shows in the sum.
 *
 * Build it alone with
 *
 *     cc recover_task.c $(pkg-config --cflags --libs pawl) */
#include <pawl/work.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SNAPSHOT_SIZE = 100 };

struct settings {
    const char *location; /* NULL: DATABASE_URL */
    const char *task;
    long until;
    long die_at; /* in the middle of this iteration; 0: never */
};

struct state {
    long iteration; /* the last that is finished */
    long long sum;
};

static void check(pawl_status status, const char *what, const pawl_error *error)
{
    if (status != PAWL_OK) {
        fprintf(stderr, "recover_task: %s: %s\n", what, error->message);
        exit(pawl_status_exit_code(status));
    }
}

/* Ours, in the form that save() wrote. */
static struct state restore(const pawl_checkpoint *checkpoint)
{
    struct state state = { 0, 0 };

    if (checkpoint != NULL
        && sscanf(checkpoint->snapshot_data.data, /* NOLINT(cert-err34-c): it ends with a NUL */
                  "{\"iteration\":%ld,\"sum\":%lld}",
                  &state.iteration,
                  &state.sum)
               != 2) {
        fprintf(stderr, "recover_task: this is not our task\n");
        exit(1);
    }
    return state;
}

static void save(pawl_work *work,
                 const struct settings *settings,
                 pawl_checkpoint_type type,
                 const struct state *state)
{
    char snapshot[SNAPSHOT_SIZE];
    pawl_error error = PAWL_ERROR_INIT;

    snprintf(snapshot,
             sizeof(snapshot),
             "{\"iteration\":%ld,\"sum\":%lld}",
             state->iteration,
             state->sum);
    pawl_checkpoint checkpoint = {
        .size = sizeof(pawl_checkpoint),
        .task_id = pawl_view_of(settings->task),
        .type = type,
        .snapshot_data = pawl_view_of(snapshot),
    };
    check(
        pawl_checkpoint_add(work, &checkpoint, NULL, NULL, NULL, 0, &error), "checkpoint", &error);
}

static void continue_execution(pawl_work *work, const struct settings *settings, struct state state)
{
    while (state.iteration < settings->until) {
        save(work, settings, PAWL_CHECKPOINT_ITERATION_START, &state);
        state.iteration++;
        state.sum += (long long)state.iteration * state.iteration;
        if (state.iteration == settings->die_at) {
            _exit(9);
        }
        save(work, settings, PAWL_CHECKPOINT_ITERATION_END, &state);
    }
    printf("sum %lld\n", state.sum);
}

static void recover_task(pawl_work *work, const struct settings *settings)
{
    pawl_task task = { .size = sizeof(pawl_task),
                       .task_id = pawl_view_of(settings->task),
                       .title = pawl_view_of("the sum of squares") };
    pawl_recovery *recovery = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    check(pawl_task_create(work, &task, NULL, 0, &error), "task", &error); /* there already: fine */
    check(pawl_work_recover(work, task.task_id, &recovery, &error), "recover", &error);
    struct state state = restore(recovery->iteration_end);
    printf("goes on behind iteration %ld\n", state.iteration);
    fflush(stdout);
    pawl_recovery_free(recovery);
    continue_execution(work, settings, state);
}

static void usage(void)
{
    fprintf(stderr, "usage: recover_task --task ID --until N [--die-at N] [LOCATION]\n");
    exit(2);
}

static long number_of(const char *text)
{
    char *end = NULL;
    long number = strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < 0 || number > 1000000) {
        usage();
    }
    return number;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "task", required_argument, NULL, 't' },
                                             { "until", required_argument, NULL, 'u' },
                                             { "die-at", required_argument, NULL, 'x' },
                                             { NULL, 0, NULL, 0 } };
    struct settings settings = { .location = NULL };
    pawl_work *work = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 't') {
            settings.task = optarg;
        } else if (option == 'u') {
            settings.until = number_of(optarg);
        } else if (option == 'x') {
            settings.die_at = number_of(optarg);
        } else {
            usage();
        }
    }
    settings.location = optind < argc ? argv[optind++] : NULL;
    if (settings.task == NULL || optind < argc) {
        usage();
    }
    check(pawl_work_open(settings.location, NULL, &work, &error), "open", &error);
    recover_task(work, &settings);
    pawl_work_close(work, 0, NULL);
    return 0;
}
