/* Many at once: threads of one handle, handles of one store, processes of one machine. */
#include "lib/timed_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/thread/thread.h"
#include "lib/child.h"

enum { WRITERS = 20, EACH = 25, PROCESSES = 4, RACERS = 16, RACES = 20 };

#define HASH "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* --- Checkpoints --- */

struct writer {
    struct pawl__thread thread;
    pawl_work *work;
    int64_t numbers[EACH];
    pawl_status status;
    pawl_error error;
};

static void write_all(void *context)
{
    struct writer *writer = context;
    pawl_checkpoint checkpoint = {
        .size = sizeof(pawl_checkpoint),
        .task_id = pawl_view_of("t"),
        .type = PAWL_CHECKPOINT_TOOL_EXECUTED,
        .snapshot_data = pawl_view_of("{}"),
    };

    for (int i = 0; i < EACH && writer->status == PAWL_OK; i++) {
        writer->status = pawl_checkpoint_add(
            writer->work, &checkpoint, NULL, &writer->numbers[i], NULL, 0, &writer->error);
    }
}

/* Every number once; a writer's own ascend. */
static void note_numbers(const struct writer *writer, char *seen, int64_t max)
{
    for (int i = 0; i < EACH; i++) {
        assert_in_range(writer->numbers[i], 1, max);
        assert_int_equal(seen[writer->numbers[i]], 0);
        seen[writer->numbers[i]] = 1;
        assert_true(i == 0 || writer->numbers[i] > writer->numbers[i - 1]);
    }
}

static void test_twenty_writers_get_every_number_once(void **state)
{
    struct timed_fixture *f = *state;
    struct writer *writers = calloc(WRITERS, sizeof(*writers));
    char seen[WRITERS * EACH + 1] = { 0 };
    pawl_work *second = timed_fixture_second(f);

    assert_non_null(writers);
    timed_task(f, "t");
    for (int i = 0; i < WRITERS; i++) {
        writers[i].work = i % 2 == 1 && second != NULL ? second : f->work;
        assert_ok(pawl__thread_start(&writers[i].thread, "writer", write_all, &writers[i], &f->err),
                  &f->err);
    }
    for (int i = 0; i < WRITERS; i++) {
        pawl__thread_join(&writers[i].thread);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_ok(writers[i].status, &writers[i].error);
        note_numbers(&writers[i], seen, (int64_t)WRITERS * EACH);
    }
    pawl_work_close(second, 0, NULL);
    free(writers);
}

/* In the child: argv[2] is the location. */
static int run_child(char **argv)
{
    struct writer writer = { .status = PAWL_OK };

    if (pawl_work_open(argv[2], NULL, &writer.work, &writer.error) != PAWL_OK) {
        child_say("open: %s", writer.error.message);
        return 1;
    }
    write_all(&writer);
    for (int i = 0; i < EACH && writer.status == PAWL_OK; i++) {
        child_say("%lld", (long long)writer.numbers[i]);
    }
    if (writer.status != PAWL_OK) {
        child_say("add: %s", writer.error.message);
    }
    pawl_work_close(writer.work, 0, NULL);
    return 0;
}

static void test_processes_get_every_number_once(void **state)
{
    struct timed_fixture *f = *state;
    struct child children[PROCESSES];
    char seen[PROCESSES * EACH + 1] = { 0 };
    char line[600];

    if (timed_forgets(f)) {
        return;
    }
    timed_task(f, "t");
    for (int i = 0; i < PROCESSES; i++) {
        child_start(&children[i], (const char *const[]){ f->location, NULL });
    }
    for (int i = 0; i < PROCESSES; i++) {
        for (int k = 0; k < EACH; k++) {
            assert_true(child_line(&children[i], line, sizeof(line)));
            char *end = NULL;
            long number = strtol(line, &end, 10);
            if (end == line || *end != '\0') {
                fail_msg("%s", line);
            }
            assert_in_range(number, 1, PROCESSES * EACH);
            assert_int_equal(seen[number], 0);
            seen[number] = 1;
        }
        assert_int_equal(child_end(&children[i], 0), 0);
    }
}

/* --- Keys --- */

struct racer {
    struct pawl__thread thread;
    pawl_work *work;
    int answers[6];
    pawl_status status;
    pawl_error error;
};

static void race(void *context)
{
    struct racer *racer = context;

    for (int i = 0; i < RACES && racer->status == PAWL_OK; i++) {
        pawl_idem_request request = PAWL_IDEM_REQUEST_INIT;
        pawl_idem *idem = NULL;
        char key[20];
        snprintf(key, sizeof(key), "key-%d", i);
        request.key = pawl_view_of(key);
        request.request_hash = pawl_view_of(HASH);
        racer->status = pawl_idem_begin(racer->work, &request, &idem, &racer->error);
        if (racer->status == PAWL_OK) {
            racer->answers[idem->answer]++;
            if (idem->answer == PAWL_IDEM_NEW) {
                racer->status = pawl_idem_complete(
                    racer->work, request.key, idem->owner_token, pawl_view_of("1"), &racer->error);
            }
            pawl_idem_free(idem);
        }
    }
}

static void test_of_many_callers_one_gets_new(void **state)
{
    struct timed_fixture *f = *state;
    struct racer *racers = calloc(RACERS, sizeof(*racers));
    pawl_work *second = timed_fixture_second(f);
    int answers[6] = { 0 };

    assert_non_null(racers);
    for (int i = 0; i < RACERS; i++) {
        racers[i].work = i % 2 == 1 && second != NULL ? second : f->work;
        assert_ok(pawl__thread_start(&racers[i].thread, "racer", race, &racers[i], &f->err),
                  &f->err);
    }
    for (int i = 0; i < RACERS; i++) {
        pawl__thread_join(&racers[i].thread);
    }
    for (int i = 0; i < RACERS; i++) {
        assert_ok(racers[i].status, &racers[i].error);
        for (int k = 0; k < 6; k++) {
            answers[k] += racers[i].answers[k];
        }
    }
    assert_int_equal(answers[PAWL_IDEM_NEW], RACES);
    assert_int_equal(answers[PAWL_IDEM_IN_FLIGHT] + answers[PAWL_IDEM_DONE], (RACERS - 1) * RACES);
    pawl_work_close(second, 0, NULL);
    free(racers);
}

/* --- Schedules --- */

struct firer {
    struct pawl__thread thread;
    pawl_work *work;
    uint64_t fired;
    pawl_status status;
    pawl_error error;
};

static void fire(void *context)
{
    struct firer *firer = context;

    firer->status = pawl_schedule_fire(firer->work, &firer->fired, &firer->error);
}

static void test_a_slot_fires_once_however_many_fire(void **state)
{
    struct timed_fixture *f = *state;
    struct firer firers[8] = { { .work = NULL } };
    pawl_work *second = timed_fixture_second(f);
    pawl_schedule schedule = {
        .size = sizeof(pawl_schedule),
        .schedule_id = pawl_view_of("s"),
        .cron = pawl_view_of("@hourly"),
        .work_type = pawl_view_of("type"),
        .max_retries = -1,
    };
    uint64_t fired = 0;

    assert_ok(pawl_schedule_put(f->work, &schedule, &f->err), &f->err);
    bool travelled = timed_fixture_wait(f, 3600);
    for (size_t i = 0; i < COUNT_OF(firers); i++) {
        firers[i].work = i % 2 == 1 && second != NULL ? second : f->work;
        assert_ok(pawl__thread_start(&firers[i].thread, "firer", fire, &firers[i], &f->err),
                  &f->err);
    }
    for (size_t i = 0; i < COUNT_OF(firers); i++) {
        pawl__thread_join(&firers[i].thread);
    }
    for (size_t i = 0; i < COUNT_OF(firers); i++) {
        assert_ok(firers[i].status, &firers[i].error);
        fired += firers[i].fired;
    }
    assert_true(!travelled || fired == 1);
    pawl_work_close(second, 0, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(test_twenty_writers_get_every_number_once),
        TIMED_TEST(test_processes_get_every_number_once),
        TIMED_TEST(test_of_many_callers_one_gets_new),
        TIMED_TEST(test_a_slot_fires_once_however_many_fire),
    };

    if (child_is_one(argc, argv)) {
        return run_child(argv);
    }
    return timed_suite(argc, argv, tests, COUNT_OF(tests));
}
