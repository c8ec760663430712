/* What a group of requests does, against a model that takes them one after the other. The model is
 * what the header promises, written down with arrays; the code under test is the plan and the
 * writer that carries it out, on the backend that keeps everything in memory. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/random.h"
#include "ledger/core/backend.h"
#include "ledger/core/chain.h"
#include "ledger/core/event.h"
#include "ledger/core/write.h"
#include "lib/fault.h"

enum {
    IDS = 14,
    TURNS = 3,
    GROUP_MAX = 8,
    BATCH_MAX = 4,
    LOG_MAX = 4000,
    GROUPS = 40,
    ROUNDS = 300,
};

/* --- the model --- */

struct model_event {
    int id;      /* -1: the ledger's own */
    int content; /* payload; of its own: the kind */
    int64_t turn;
    uint32_t attempt; /* of its own */
};

struct model_turn {
    uint32_t attempt;
    pawl_turn_state state;
};

struct model {
    struct model_event log[LOG_MAX]; /* offset n stands at n - 1 */
    size_t count;
    struct model_turn turns[TURNS];
};

/* One request, in the model's terms and in the ledger's. */
struct trial {
    enum ledger_request_kind kind;
    bool in_turn;
    int turn;
    uint32_t attempt;
    size_t count;
    int ids[BATCH_MAX];
    int contents[BATCH_MAX];

    pawl_status status; /* what the model says */
    uint64_t offsets[BATCH_MAX];
    bool duplicates[BATCH_MAX];
    uint32_t ret_attempt;

    struct ledger_request request;
    pawl_event events[BATCH_MAX];
    pawl_append_result results[BATCH_MAX];
};

static const char *const id_texts[IDS] = { "a", "b", "c", "d", "e", "f", "g",
                                           "h", "i", "j", "k", "l", "m", "n" };
static const char *const payloads[] = { "{\"x\":1,\"y\":2}", "{\"y\":2, \"x\":1}", "[]" };

/* The first two payloads are the same value, written differently. */
static bool same_content(int a, int b)
{
    return (a == 2) == (b == 2);
}

static size_t find(const struct model *model, int id)
{
    for (size_t i = 0; i < model->count; i++) {
        if (model->log[i].id == id) {
            return i + 1;
        }
    }
    return 0;
}

static void add(struct model *model, struct model_event event)
{
    assert_true(model->count < LOG_MAX);
    model->log[model->count++] = event;
}

static void model_append(struct model *model, struct trial *trial)
{
    size_t before = model->count;

    for (size_t i = 0; i < trial->count; i++) {
        size_t offset = find(model, trial->ids[i]);
        int64_t turn = trial->in_turn ? trial->turn : 0;
        bool open = model->turns[turn].attempt > 0 && model->turns[turn].state == PAWL_TURN_OPEN;
        if (offset == 0 && !trial->in_turn && open) {
            trial->status = PAWL_CONFLICT; /* it names no attempt */
            model->count = before;
            return;
        }
        if (offset == 0) {
            add(model, (struct model_event){ trial->ids[i], trial->contents[i], turn, 0 });
            trial->offsets[i] = model->count;
            trial->duplicates[i] = false;
        } else if (same_content(model->log[offset - 1].content, trial->contents[i])
                   && model->log[offset - 1].turn == turn) {
            trial->offsets[i] = offset;
            trial->duplicates[i] = true;
        } else {
            trial->status = PAWL_CONFLICT;
            model->count = before; /* all or none */
            return;
        }
    }
}

static void model_own(struct model *model, int turn, enum ledger_request_kind kind)
{
    add(model, (struct model_event){ -1, (int)kind, turn, model->turns[turn].attempt });
}

static void model_end(struct model *model, struct trial *trial, pawl_turn_state wanted)
{
    struct model_turn *turn = &model->turns[trial->turn];

    if (turn->attempt == trial->attempt && turn->state == wanted) {
        return; /* it happened, the answer was lost */
    }
    if (turn->attempt != trial->attempt || turn->state != PAWL_TURN_OPEN) {
        trial->status = PAWL_LEASE_LOST;
        return;
    }
    model_own(model, trial->turn, trial->kind);
    turn->state = wanted;
}

static void model_begin(struct model *model, struct trial *trial)
{
    struct model_turn *turn = &model->turns[trial->turn];

    if (turn->attempt > 0 && turn->state == PAWL_TURN_COMMITTED) {
        trial->status = PAWL_CONFLICT;
        return;
    }
    if (turn->attempt > 0 && turn->state == PAWL_TURN_OPEN) {
        model_own(model, trial->turn, LEDGER_TURN_ABANDON);
    }
    turn->attempt++;
    turn->state = PAWL_TURN_OPEN;
    model_own(model, trial->turn, LEDGER_TURN_BEGIN);
    trial->ret_attempt = turn->attempt;
}

static void run_model(struct model *model, struct trial *trial)
{
    const struct model_turn *turn = &model->turns[trial->turn];

    trial->status = PAWL_OK;
    if (trial->kind == LEDGER_TURN_BEGIN) {
        model_begin(model, trial);
    } else if (trial->kind == LEDGER_TURN_COMMIT) {
        model_end(model, trial, PAWL_TURN_COMMITTED);
    } else if (trial->kind == LEDGER_TURN_ABANDON) {
        model_end(model, trial, PAWL_TURN_ABANDONED);
    } else if (trial->in_turn
               && (turn->attempt != trial->attempt || turn->state != PAWL_TURN_OPEN)) {
        trial->status = PAWL_LEASE_LOST;
    } else {
        model_append(model, trial);
    }
}

/* --- random groups --- */

static void make_trial(struct pawl__prng *prng, const struct model *model, struct trial *trial)
{
    static const enum ledger_request_kind kinds[] = {
        LEDGER_APPEND, LEDGER_APPEND,      LEDGER_APPEND,     LEDGER_APPEND,
        LEDGER_APPEND, LEDGER_TURN_COMMIT, LEDGER_TURN_BEGIN, LEDGER_TURN_ABANDON,
    };

    *trial = (struct trial){ .kind = kinds[pawl__prng_below(prng, COUNT_OF(kinds))] };
    trial->in_turn = trial->kind != LEDGER_APPEND || pawl__prng_below(prng, 3) == 0;
    trial->turn = trial->in_turn ? (int)pawl__prng_below(prng, TURNS) : 0;
    trial->attempt = MAX(model->turns[trial->turn].attempt, 1U);
    if (trial->attempt > 1 && pawl__prng_below(prng, 4) == 0) {
        trial->attempt--; /* an old handle */
    }
    trial->count = trial->kind == LEDGER_APPEND ? 1 + pawl__prng_below(prng, BATCH_MAX) : 0;
    for (size_t i = 0; i < trial->count; i++) {
        trial->ids[i] = (int)pawl__prng_below(prng, IDS);
        trial->contents[i] = pawl__prng_below(prng, 12) == 0 ? 2 : (int)pawl__prng_below(prng, 2);
    }
}

static void make_request(struct trial *trial)
{
    for (size_t i = 0; i < trial->count; i++) {
        trial->events[i] = (pawl_event){
            .size = sizeof(pawl_event),
            .id = pawl_view_of(id_texts[trial->ids[i]]),
            .run_id = pawl_view_of("r"),
            .turn = trial->in_turn ? trial->turn : 0,
            .kind = pawl_view_of("k"),
            .actor = pawl_view_of("a"),
            .payload = pawl_view_of(payloads[trial->contents[i]]),
            .schema_version = 1,
        };
    }
    trial->request = (struct ledger_request){
        .kind = trial->kind,
        .events = trial->events,
        .count = trial->count,
        .results = trial->results,
        .in_turn = trial->in_turn,
        .run_id = pawl_view_of("r"),
        .turn = trial->turn,
        .attempt = trial->kind == LEDGER_TURN_BEGIN ? 0 : trial->attempt,
        .now_us = 1,
    };
}

static void assert_answer(const struct trial *trial)
{
    assert_status(trial->request.item.outcome.status, trial->status, &trial->request.item.outcome);
    if (trial->status != PAWL_OK) {
        return;
    }
    for (size_t i = 0; i < trial->count; i++) {
        assert_int_equal(trial->results[i].offset, trial->offsets[i]);
        assert_int_equal(trial->results[i].duplicate, trial->duplicates[i]);
    }
    if (trial->kind == LEDGER_TURN_BEGIN) {
        assert_int_equal(trial->request.attempt, trial->ret_attempt);
    }
}

/* --- comparing the logs --- */

struct comparison {
    const struct model *model;
    size_t seen;
    pawl_ledger_head head;
};

static const char *own_kind(int kind)
{
    switch ((enum ledger_request_kind)kind) {
    case LEDGER_TURN_BEGIN:
        return PAWL__KIND_TURN_BEGIN;
    case LEDGER_TURN_COMMIT:
        return PAWL__KIND_TURN_COMMIT;
    default:
        return PAWL__KIND_TURN_ABANDON;
    }
}

static pawl_status compare_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct comparison *comparison = context;
    const struct model_event *expected = &comparison->model->log[comparison->seen++];
    char attempt[32];

    assert_true(comparison->seen <= comparison->model->count);
    assert_int_equal(event->offset, comparison->seen);
    assert_int_equal(event->turn, expected->turn);
    if (expected->id >= 0) {
        assert_true(pawl__view_is(event->id, id_texts[expected->id]));
        assert_true(pawl__view_is(event->payload, payloads[expected->content]));
    } else {
        snprintf(attempt, sizeof(attempt), "{\"attempt\":%u", expected->attempt);
        assert_true(pawl__view_is(event->kind, own_kind(expected->content)));
        assert_memory_equal(event->payload.data, attempt, strlen(attempt));
    }
    assert_ok(pawl__ledger_chain_extend(&comparison->head, event, reterr), reterr);
    assert_memory_equal(comparison->head.hash, event->hash, sizeof(event->hash));
    return PAWL_OK;
}

static void assert_logs_equal(struct ledger_backend *backend, const struct model *model)
{
    struct comparison comparison = { .model = model };
    struct ledger_query all = { .up_to = UINT64_MAX, .limit = UINT32_MAX };
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(backend->ops->read(backend, &all, compare_event, &comparison, &error), &error);
    assert_int_equal(comparison.seen, model->count);
    for (int i = 0; i < TURNS; i++) {
        struct ledger_turn newest;
        assert_ok(backend->ops->turn_get(backend, pawl_view_of("r"), i, &newest, &error), &error);
        assert_int_equal(newest.attempt, model->turns[i].attempt);
        assert_int_equal(newest.state, newest.attempt == 0 ? 0 : model->turns[i].state);
    }
}

static struct ledger_backend *open_memory(void)
{
    struct pawl__location location = { .scheme = PAWL__AT_MEMORY };
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    struct ledger_backend *backend;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__ledger_memory_open(&location, &options, &backend, &error), &error);
    return backend;
}

static void write_trials(struct ledger_writer *writer, struct trial *trials, size_t count)
{
    struct ledger_request *requests[GROUP_MAX];
    pawl_error error = PAWL_ERROR_INIT;

    for (size_t i = 0; i < count; i++) {
        make_request(&trials[i]);
        requests[i] = &trials[i].request;
    }
    assert_ok(pawl__ledger_write_group(writer, requests, count, &error), &error);
}

static void test_random_groups_do_what_single_requests_would(void **state)
{
    (void)state;
    struct pawl__prng prng = pawl__prng_seeded(3);
    static struct model model;
    static struct trial trials[GROUP_MAX];

    for (int round = 0; round < ROUNDS; round++) {
        struct ledger_backend *backend = open_memory();
        struct ledger_writer writer = LEDGER_WRITER_INIT(backend);
        model.count = 0;
        memset(model.turns, 0, sizeof(model.turns));
        for (int group = 0; group < GROUPS; group++) {
            size_t count = 1 + pawl__prng_below(&prng, GROUP_MAX);
            for (size_t i = 0; i < count; i++) {
                make_trial(&prng, &model, &trials[i]);
                run_model(&model, &trials[i]);
            }
            write_trials(&writer, trials, count);
            for (size_t i = 0; i < count; i++) {
                assert_answer(&trials[i]);
            }
        }
        assert_logs_equal(backend, &model);
        pawl__ledger_writer_done(&writer);
        backend->ops->close(backend);
    }
}

/* --- by hand --- */

static struct trial append_of(const int *ids, size_t count, int content)
{
    struct trial trial = { .kind = LEDGER_APPEND, .count = count };

    for (size_t i = 0; i < count; i++) {
        trial.ids[i] = ids[i];
        trial.contents[i] = content;
    }
    return trial;
}

static void test_nothing_of_a_failed_request_is_taken_for_stored(void **state)
{
    (void)state;
    struct ledger_backend *backend = open_memory();
    struct ledger_writer writer = LEDGER_WRITER_INIT(backend);
    static struct model model;
    struct trial first = append_of((const int[]){ 0 }, 1, 0);
    struct trial trials[] = {
        append_of((const int[]){ 1, 2, 0 }, 3, 2), /* fails at its last: 0 has other content */
        append_of((const int[]){ 2 }, 1, 0),       /* so this one is new, with another content */
        append_of((const int[]){ 1, 2 }, 2, 0),
    };

    model.count = 0;
    run_model(&model, &first);
    write_trials(&writer, &first, 1);
    for (size_t i = 0; i < COUNT_OF(trials); i++) {
        run_model(&model, &trials[i]);
    }
    write_trials(&writer, trials, COUNT_OF(trials));
    assert_int_equal(trials[0].request.item.outcome.status, PAWL_CONFLICT);
    assert_int_equal(trials[1].results[0].offset, 2);
    assert_false(trials[1].results[0].duplicate);
    for (size_t i = 0; i < COUNT_OF(trials); i++) {
        assert_answer(&trials[i]);
    }
    assert_logs_equal(backend, &model);
    pawl__ledger_writer_done(&writer);
    backend->ops->close(backend);
}

/* An event under the id that a turn's begin will have: whoever did it, the others go on. */
static void test_a_taken_id_of_a_turns_own_event_fails_that_turn_alone(void **state)
{
    (void)state;
    struct ledger_backend *backend = open_memory();
    struct ledger_writer writer = LEDGER_WRITER_INIT(backend);
    pawl_event begin = { .size = sizeof(pawl_event),
                         .run_id = pawl_view_of("r"),
                         .turn = 1,
                         .kind = pawl_view_of(PAWL__KIND_TURN_BEGIN),
                         .actor = pawl_view_of("pawl") };
    char id[PAWL__EVENT_ID_SIZE];
    pawl_error error = PAWL_ERROR_INIT;
    struct trial taken = append_of((const int[]){ 0 }, 1, 0);
    struct trial trials[] = {
        append_of((const int[]){ 1 }, 1, 0),
        { .kind = LEDGER_TURN_BEGIN, .in_turn = true, .turn = 1 },
        append_of((const int[]){ 2, 1 }, 2, 0),
        { .kind = LEDGER_TURN_BEGIN, .in_turn = true, .turn = 2 },
    };

    assert_ok(pawl__ledger_event_derive_id(&begin, 1, 0, id, &error), &error);
    make_request(&taken);
    taken.events[0].id = pawl_view_of(id);
    struct ledger_request *request = &taken.request;
    assert_ok(pawl__ledger_write_group(&writer, &request, 1, &error), &error);

    write_trials(&writer, trials, COUNT_OF(trials));
    assert_int_equal(trials[0].request.item.outcome.status, PAWL_OK);
    assert_int_equal(trials[1].request.item.outcome.status, PAWL_CONFLICT);
    assert_message(&trials[1].request.item.outcome, "turn 1 of run 'r'");
    assert_int_equal(trials[2].request.item.outcome.status, PAWL_OK);
    assert_int_equal(trials[2].results[0].offset, 3);
    assert_int_equal(trials[2].results[1].offset, 2);
    assert_int_equal(trials[3].request.item.outcome.status, PAWL_OK);
    assert_int_equal(trials[3].request.attempt, 1);
    pawl__ledger_writer_done(&writer);
    backend->ops->close(backend);
}

static void test_a_group_survives_every_failed_allocation(void **state)
{
    (void)state;
    struct trial trials[] = {
        append_of((const int[]){ 0, 1 }, 2, 0),
        { .kind = LEDGER_TURN_BEGIN, .in_turn = true, .turn = 1 },
        append_of((const int[]){ 1, 2 }, 2, 0),
    };
    struct ledger_request *requests[COUNT_OF(trials)];

    for (size_t i = 0; i < COUNT_OF(trials); i++) {
        make_request(&trials[i]);
        requests[i] = &trials[i].request;
    }
    FAULT_WALK (walk) {
        fault_disarm();
        struct ledger_backend *backend = open_memory();
        struct ledger_writer writer = LEDGER_WRITER_INIT(backend);
        pawl_error error = PAWL_ERROR_INIT;
        fault_arm(walk.next);
        pawl_status status = pawl__ledger_write_group(&writer, requests, COUNT_OF(trials), &error);
        bool fired = fault_fired();
        fault_disarm();
        pawl_ledger_head head;
        assert_ok(backend->ops->head(backend, &head, &error), &error);
        if (status != PAWL_OK) {
            assert_true(fired);
            assert_int_equal(status, PAWL_NOMEM);
            assert_int_equal(head.offset, 0);
        } else if (!fired) {
            assert_int_equal(head.offset, 4);
        }
        /* With or without the failure, the same again succeeds and finds what is there. */
        assert_ok(pawl__ledger_write_group(&writer, requests, COUNT_OF(trials), &error), &error);
        assert_int_equal(trials[2].request.item.outcome.status, PAWL_OK);
        pawl__ledger_writer_done(&writer);
        backend->ops->close(backend);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_groups_do_what_single_requests_would),
        cmocka_unit_test(test_nothing_of_a_failed_request_is_taken_for_stored),
        cmocka_unit_test(test_a_taken_id_of_a_turns_own_event_fails_that_turn_alone),
        cmocka_unit_test(test_a_group_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests_name("ledger_plan", tests, NULL, NULL);
}
