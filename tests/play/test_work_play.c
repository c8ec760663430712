/* Random play of the model, SQLite and PostgreSQL side by side: see play.h.
 *
 *     test_work_play [--rounds STEPS] [--seed N] [--every N]
 *
 * After 5,000 steps it begins anew with empty stores and the next seed. Everything that the stores hold is
 * compared every 50 steps. A failure shows the last commands and how to play them again; with --every 1 it
 * stops at the command that made the difference. */
#include "play/play.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"
#include "lib/repeat.h"
#include "lib/virtual_clock.h"

enum { STEPS = 5000, EVERY = 50, TEXT_MAX = 1 << 26 };

static struct repeat asked;
static uint64_t every = EVERY;

/* --- what went wrong --- */

static void show_trace(const struct play *play)
{
    for (uint64_t i = PLAY_TRACE; i > 0; i--) {
        if (play->step + 1 >= i) {
            const struct pawl__buf *line = &play->trace[(play->step + 1 - i) % PLAY_TRACE];
            fprintf(stderr, "# %.*s\n", VIEW_ARGS(pawl__buf_view(line)));
        }
    }
}

/* The first line that differs. */
static void show_difference(const struct pawl__buf *texts, enum play_store store)
{
    pawl_view ours = pawl__buf_view(&texts[PLAY_MODEL]);
    pawl_view theirs = pawl__buf_view(&texts[store]);
    pawl_view a = { NULL, 0 };
    pawl_view b = { NULL, 0 };

    do {
        a = b = (pawl_view){ "(nothing)", 9 };
        bool more = pawl__view_split(&ours, '\n', &a);
        more |= pawl__view_split(&theirs, '\n', &b);
        if (!more) {
            return;
        }
    } while (pawl__view_equal(a, b));
    fprintf(stderr, "# model:    %.*s\n", VIEW_ARGS(a));
    fprintf(stderr, "# %-8s: %.*s\n", play_store_names[store], VIEW_ARGS(b));
}

static void compare(const struct play *play, const struct pawl__buf *texts, const char *what)
{
    for (size_t i = PLAY_MODEL + 1; i < PLAY_STORES; i++) {
        if (pawl__view_equal(pawl__buf_view(&texts[PLAY_MODEL]), pawl__buf_view(&texts[i]))) {
            continue;
        }
        show_trace(play);
        show_difference(texts, (enum play_store)i);
        fail_msg("step %" PRIu64 ": %s of %s differ; again with: test_work_play --seed %" PRIu64
                 " --rounds %" PRIu64 " --every 1",
                 play->step,
                 what,
                 play_store_names[i],
                 play->seed,
                 play->step + 1);
    }
}

/* --- one step --- */

/* What it tells is what it has done itself, and a lost try has done it, or some of it. Calls with a
 * token, and those by an id with content, tell the same again. */
static bool tells_what_it_did(const struct play_command *command)
{
    switch (command->kind) {
    case PLAY_CANCEL:          /* "has ended" */
    case PLAY_SCHEDULE_REMOVE: /* "no such" */
    case PLAY_SWEEP:
    case PLAY_RETENTION:
    case PLAY_CANCEL_TASK:
    case PLAY_SCHEDULE_FIRE:
    case PLAY_SUBMIT: /* "again" */
        return true;
    default:
        return false;
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* What several tries have leased is listed in another order than one claim hands it out. */
static void sort_leases(struct pawl__buf *answer)
{
    static char parts[64][160];
    size_t count = 0;
    pawl_view rest = pawl__buf_view(answer);
    pawl_view part;

    while (count < COUNT_OF(parts) && pawl__view_split(&rest, ',', &part)) {
        snprintf(parts[count++], sizeof(parts[0]), "%.*s", VIEW_ARGS(part));
    }
    qsort(parts, count, sizeof(parts[0]), by_text);
    pawl__buf_clear(answer);
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_format(answer, "%s,", parts[i]);
    }
}

static void note(struct play *play, const struct play_command *command)
{
    struct pawl__buf *line = &play->trace[play->step % PLAY_TRACE];

    pawl__buf_clear(line);
    pawl__buf_add_format(line, "%" PRIu64 ": ", play->step);
    play_describe(command, line);
    pawl__buf_add_text(line, " =>");
    for (size_t i = 0; i < PLAY_STORES; i++) {
        pawl__buf_add_format(line, " [%.*s]", VIEW_ARGS(pawl__buf_view(&play->answers[i])));
    }
}

static void carry_out(struct play *play, struct play_command *command)
{
    uint64_t repeated = play->repeated;

    for (size_t i = 0; i < PLAY_STORES; i++) {
        pawl__buf_clear(&play->answers[i]);
    }
    play_postgres(play, command);
    (void)play_act(play, PLAY_SQLITE, command);
    (void)play_act(play, PLAY_MODEL, command);
    for (size_t i = 0; i < PLAY_STORES && command->cut != PLAY_WHOLE; i++) {
        sort_leases(&play->answers[i]);
    }
    note(play, command);
    if (repeated == play->repeated || !tells_what_it_did(command)) {
        compare(play, play->answers, "answers");
    }
}

static void compare_states(struct play *play)
{
    for (size_t i = 0; i < PLAY_STORES; i++) {
        play_state(play, (enum play_store)i);
    }
    compare(play, play->states, "states");
}

static void pass(struct play *play, int64_t us)
{
    int64_t ticks = us / PLAY_TICK_US + 1;

    pawl__clock_advance(&play->clock, ticks * PLAY_TICK_US * NS_PER_US);
}

static void take_step(struct play *play)
{
    struct play_command command;

    play_draw(play, &command);
    play->done[command.kind]++;
    if (command.kind == PLAY_PASS) {
        for (size_t i = 0; i < PLAY_STORES; i++) {
            pawl__buf_clear(&play->answers[i]);
        }
        note(play, &command);
        pass(play, command.pass_us);
    } else {
        carry_out(play, &command);
    }
    pass(play, pawl__prng_between(&play->prng, 1, 3000));
    if ((play->step + 1) % every == 0) {
        compare_states(play);
    }
}

/* --- the whole --- */

static void open_stores(struct play *play)
{
    pg_admin(&play->postgres, "DROP SCHEMA IF EXISTS pawl CASCADE");
    assert_ok(tempdir_make_in_memory(play->dir, "play", 1 << 28, &play->err), &play->err);
    for (size_t i = 0; i < PLAY_STORES; i++) {
        play->answers[i] = play->states[i] = (struct pawl__buf)BUF_INIT(TEXT_MAX);
        assert_ok(play_open(play, (enum play_store)i), &play->err);
    }
    for (size_t i = 0; i < PLAY_TRACE; i++) {
        play->trace[i] = (struct pawl__buf)BUF_INIT(TEXT_MAX);
    }
}

static int close_stores(void **state)
{
    struct play *play = *state;

    for (size_t i = 0; i < PLAY_STORES; i++) {
        pawl_work_close(play->work[i], 0, NULL);
        pawl__buf_done(&play->answers[i]);
        pawl__buf_done(&play->states[i]);
    }
    for (size_t i = 0; i < PLAY_TRACE; i++) {
        pawl__buf_done(&play->trace[i]);
    }
    tempdir_remove(play->dir);
    free(play->aliases);
    *play = (struct play){ .postgres = play->postgres };
    return 0;
}

/* One world: empty stores, and so many steps. */
static void play_world(struct play *play, uint64_t seed, uint64_t steps)
{
    play->seed = seed;
    play->prng = pawl__prng_seeded(seed);
    play->clock = pawl__clock_virtual_at(INT64_C(1769680000) * US_PER_S, 1000 * NS_PER_S);
    open_stores(play);
    for (; play->step < steps; play->step++) {
        take_step(play);
    }
    play->step--;
    compare_states(play);
}

static void test_three_stores_answer_and_hold_the_same(void **state)
{
    struct play *play = *state;
    uint64_t cuts = 0;
    uint64_t repeated = 0;

    if (play->postgres.server == NULL) {
        skip();
    }
    for (uint64_t at = 0; at < asked.rounds; at += STEPS) {
        uint64_t steps = MIN(asked.rounds - at, (uint64_t)STEPS);
        play_world(play, asked.seed + at / STEPS, steps);
        cuts += play->cuts;
        repeated += play->repeated;
        /* By one statement, as production does it. */
        assert_true(pg_number(&play->postgres, "SELECT sum(steps)::bigint FROM work_items") > 0);
        for (size_t i = 0; i < PLAY_KINDS && steps == STEPS; i++) {
            assert_true(play->done[i] > 0);
        }
        close_stores(state);
    }
    assert_true(asked.rounds < STEPS || (cuts > 0 && repeated > 0));
    printf("# result rounds=%" PRIu64 " faults=%" PRIu64 "\n", asked.rounds, cuts);
}

static bool parse_every(int *argc, char **argv)
{
    if (*argc == 3 && strcmp(argv[1], "--every") == 0) {
        every = strtoull(argv[2], NULL, 10);
        *argc = 1;
    }
    return *argc == 1 && every > 0;
}

/* A sanitizer takes its time, and finds what it finds soon. */
static uint64_t steps_of_this_build(void)
{
    const char *variant = getenv("PAWL_TEST_VARIANT");

    return variant != NULL && strcmp(variant, "asan") == 0 ? STEPS / 5 : STEPS;
}

static int start_server(void **state)
{
    static const struct pg_server_options options = {
        .settings = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n",
    };
    struct play *play = calloc(1, sizeof(*play));

    if (play == NULL) {
        return -1;
    }
    *state = play;
    pawl_status status = pg_server_start(&options, &play->postgres.server, &play->err);
    return status == PAWL_OK || status == PAWL_UNSUPPORTED ? 0 : -1;
}

static int stop_server(void **state)
{
    struct play *play = *state;

    pg_server_free(play->postgres.server);
    free(play);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_three_stores_answer_and_hold_the_same, close_stores),
    };

    if (!repeat_parse(&argc, argv, &asked) || !parse_every(&argc, argv)) {
        fprintf(stderr, "usage: %s [--rounds STEPS] [--seed N] [--every N]\n", argv[0]);
        return 2;
    }
    if (asked.rounds == 0) {
        asked.rounds = steps_of_this_build();
    }
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
