#include "ledger/core/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "ledger/core/chain.h"
#include "ledger/core/event.h"

/* Where a plan stood before a request, to go back to when the request fails. */
struct mark {
    pawl_ledger_head head;
    size_t insert_count;
    size_t change_count;
    size_t duplicate_count;
};

void pawl__ledger_plan_done(struct ledger_plan *plan)
{
    free(plan->inserts);
    free(plan->attempts);
    free(plan->changes);
    pawl__map_free(plan->known);
    pawl__arena_done(&plan->arena);
    *plan = (struct ledger_plan)LEDGER_PLAN_INIT;
}

/* At least `needed` elements of `size` bytes; what was in the array is not kept. */
static pawl_status reserve(
    void **array, size_t needed, size_t *cap, size_t size, pawl_error *reterr)
{
    if (needed <= *cap) {
        return PAWL_OK;
    }
    void *larger = calloc(needed, size);
    if (larger == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to plan %zu writes", needed);
    }
    free(*array);
    *array = larger;
    *cap = needed;
    return PAWL_OK;
}

static pawl_status make_room(struct ledger_plan *plan,
                             size_t events,
                             size_t turns,
                             pawl_error *reterr)
{
    /* A begin writes two events and two rows at the most: the old attempt's end, its own start. */
    void *inserts = plan->inserts;
    pawl_status status =
        reserve(&inserts, events + 2 * turns, &plan->insert_cap, sizeof(*plan->inserts), reterr);
    plan->inserts = inserts;
    if (status != PAWL_OK) {
        return status;
    }
    void *attempts = plan->attempts;
    status = reserve(&attempts, turns, &plan->attempt_cap, sizeof(*plan->attempts), reterr);
    plan->attempts = attempts;
    if (status != PAWL_OK) {
        return status;
    }
    void *changes = plan->changes;
    status = reserve(&changes, 2 * turns, &plan->change_cap, sizeof(*plan->changes), reterr);
    plan->changes = changes;
    return status;
}

pawl_status pawl__ledger_plan_start(struct ledger_plan *plan,
                                    const pawl_ledger_head *head,
                                    struct ledger_request *const *requests,
                                    size_t count,
                                    bool careful,
                                    pawl_error *reterr)
{
    size_t events = 0;
    size_t turns = 0;

    for (size_t i = 0; i < count; i++) {
        events += requests[i]->count;
        turns += requests[i]->in_turn ? 1 : requests[i]->turn_events;
    }
    plan->head = *head;
    plan->insert_count = 0;
    plan->attempt_count = 0;
    plan->change_count = 0;
    plan->duplicate_count = 0;
    plan->open = NULL;
    plan->doubtful = false;
    pawl__arena_clear(&plan->arena);
    pawl__map_free(plan->known);
    plan->known = NULL;
    TRY(make_room(plan, events, turns, reterr));
    return careful ? pawl__map_new(2 * (events + 2 * turns) + 1, &plan->known, reterr) : PAWL_OK;
}

pawl_status pawl__ledger_plan_stored(struct ledger_plan *plan,
                                     const pawl_event *event,
                                     pawl_error *reterr)
{
    pawl_event *copy = pawl__arena_take(&plan->arena, sizeof(*copy));

    if (copy == NULL || !pawl__ledger_event_copy(&plan->arena, event, copy)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a stored event");
    }
    return pawl__map_put(plan->known, copy->id, copy, NULL, reterr);
}

static struct ledger_turn *find_attempt(const struct ledger_plan *plan,
                                        pawl_view run_id,
                                        int64_t turn)
{
    for (size_t i = 0; i < plan->attempt_count; i++) {
        struct ledger_turn *attempt = &plan->attempts[i];
        if (attempt->turn == turn && pawl__view_equal(attempt->run_id, run_id)) {
            return attempt;
        }
    }
    return NULL;
}

bool pawl__ledger_plan_knows_turn(const struct ledger_plan *plan, pawl_view run_id, int64_t turn)
{
    return find_attempt(plan, run_id, turn) != NULL;
}

void pawl__ledger_plan_turn(struct ledger_plan *plan, const struct ledger_turn *newest)
{
    REQUIRE(plan->attempt_count < plan->attempt_cap);
    plan->attempts[plan->attempt_count++] = *newest;
}

static void change_turn(struct ledger_plan *plan, const struct ledger_turn *turn)
{
    REQUIRE(plan->change_count < plan->change_cap);
    plan->changes[plan->change_count++] = *turn;
}

/* Gives the event the next offset and its hash, and puts it after the others. */
static pawl_status insert(struct ledger_plan *plan, const pawl_event *event, pawl_error *reterr)
{
    pawl_event *planned = &plan->inserts[plan->insert_count];

    REQUIRE(plan->insert_count < plan->insert_cap);
    if (plan->head.offset >= INT64_MAX) {
        return pawl__fail(reterr, PAWL_FAILED, "the ledger is full");
    }
    *planned = *event;
    planned->offset = plan->head.offset + 1;
    TRY(pawl__ledger_chain_extend(&plan->head, planned, reterr));
    memcpy(planned->hash, plan->head.hash, sizeof(planned->hash));
    plan->insert_count++;
    return plan->known == NULL ? PAWL_OK
                               : pawl__map_put(plan->known, planned->id, planned, NULL, reterr);
}

/* The open attempt at the event's turn, by what is stored and planned; 0: there is none. */
static uint32_t open_attempt(const struct ledger_plan *plan, const pawl_event *event)
{
    const struct ledger_turn *planned = find_attempt(plan, event->run_id, event->turn);

    if (planned != NULL) {
        return planned->attempt > 0 && planned->state == PAWL_TURN_OPEN ? planned->attempt : 0;
    }
    return plan->open == NULL
               ? 0
               : pawl__ledger_open_turns_find(plan->open, event->run_id, event->turn);
}

/* An event in an open turn belongs to its attempt and goes away with it: whoever does not know of the
 * attempt must not append to it. */
static pawl_status check_outside_turns(struct ledger_plan *plan,
                                       const pawl_event *event,
                                       pawl_error *reterr)
{
    uint32_t attempt = open_attempt(plan, event);

    if (attempt == 0) {
        return PAWL_OK;
    }
    plan->doubtful = plan->known == NULL;
    return pawl__fail_detail(
        reterr,
        PAWL_CONFLICT,
        PAWL_DETAIL_TURN_OPEN,
        "turn %lld of run '%.*s' is open: an append to it must name its attempt, "
        "which is %u",
        (long long)event->turn,
        VIEW_ARGS(event->run_id),
        attempt);
}

/* A new event is inserted; one that is there must have the same content. */
static pawl_status append_event(struct ledger_plan *plan,
                                const pawl_event *event,
                                bool outside_turns,
                                pawl_append_result *ret_result,
                                pawl_error *reterr)
{
    const pawl_event *found = plan->known == NULL ? NULL : pawl__map_get(plan->known, event->id);

    if (found == NULL) {
        if (outside_turns) {
            TRY(check_outside_turns(plan, event, reterr));
        }
        TRY(insert(plan, event, reterr));
        ret_result->offset = plan->head.offset;
        ret_result->duplicate = false;
        return PAWL_OK;
    }
    pawl_event same = *found;
    if (found->offset > plan->request_head.offset) {
        same.offset = 0; /* of this very request: should it fail, there is no such offset */
    }
    TRY(pawl__ledger_event_same_content(&same, event, reterr));
    ret_result->offset = found->offset;
    ret_result->duplicate = true;
    plan->duplicate_count++;
    return PAWL_OK;
}

static pawl_status append_events(struct ledger_plan *plan, struct ledger_request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        pawl_append_result nobody_asks = { .size = sizeof(pawl_append_result) };
        pawl_append_result *result = request->results == NULL ? &nobody_asks : &request->results[i];
        pawl_status status = append_event(
            plan, &request->events[i], !request->in_turn, result, &request->item.outcome);

        if (status != PAWL_OK) {
            return pawl__ledger_event_name(&request->item.outcome, request->count, i, status);
        }
    }
    return PAWL_OK;
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a turn's events");
}

/* The ledger's own event about an attempt: pawl.turn.begin, .commit or .abandon. Its id follows
 * from what it says, so saying it again is a duplicate. */
static pawl_status turn_event(struct ledger_plan *plan,
                              const struct ledger_request *request,
                              const char *what,
                              uint32_t attempt,
                              pawl_view reason,
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf payload = BUF_INIT(2048);
    pawl_event event = {
        .size = sizeof(pawl_event),
        .run_id = request->run_id,
        .turn = request->turn,
        .kind = pawl_view_of(what),
        .actor = pawl_view_of("pawl"),
        .created_at_us = request->now_us,
        .schema_version = 1,
    };
    char *id = pawl__arena_take(&plan->arena, PAWL__EVENT_ID_SIZE);

    if (id == NULL) {
        return no_memory(reterr);
    }
    TRY(pawl__ledger_event_turn_payload(attempt, reason, &payload, reterr));
    if (!pawl__arena_copy(&plan->arena, pawl__buf_view(&payload), &event.payload)) {
        return no_memory(reterr);
    }
    TRY(pawl__ledger_event_derive_id(&event, attempt, 0, id, reterr));
    event.id = pawl_view_of(id);
    return insert(plan, &event, reterr);
}

static pawl_status abandon_attempt(struct ledger_plan *plan,
                                   const struct ledger_request *request,
                                   struct ledger_turn *turn,
                                   pawl_view reason,
                                   pawl_error *reterr)
{
    TRY(turn_event(plan, request, PAWL__KIND_TURN_ABANDON, turn->attempt, reason, reterr));
    turn->state = PAWL_TURN_ABANDONED;
    turn->end_offset = plan->head.offset;
    change_turn(plan, turn);
    return PAWL_OK;
}

static pawl_status begin_turn(struct ledger_plan *plan,
                              struct ledger_request *request,
                              struct ledger_turn *turn)
{
    pawl_error *reterr = &request->item.outcome;

    if (turn->attempt > 0 && turn->state == PAWL_TURN_COMMITTED) {
        return pawl__fail_detail(reterr,
                                 PAWL_CONFLICT,
                                 PAWL_DETAIL_TURN_COMMITTED,
                                 "turn %lld of run '%.*s' is committed already",
                                 (long long)request->turn,
                                 VIEW_ARGS(request->run_id));
    }
    if (turn->attempt == UINT32_MAX) {
        return pawl__fail(
            reterr, PAWL_FAILED, "turn %lld was attempted too often", (long long)request->turn);
    }
    if (turn->attempt > 0 && turn->state == PAWL_TURN_OPEN) {
        TRY(abandon_attempt(plan, request, turn, pawl_view_of("a new attempt began"), reterr));
    }
    TRY(turn_event(
        plan, request, PAWL__KIND_TURN_BEGIN, turn->attempt + 1, (pawl_view){ NULL, 0 }, reterr));
    turn->attempt++;
    turn->state = PAWL_TURN_OPEN;
    turn->begin_offset = plan->head.offset;
    turn->end_offset = 0;
    request->attempt = turn->attempt;
    change_turn(plan, turn);
    return PAWL_OK;
}

static pawl_status lost_turn(const struct ledger_request *request,
                             const struct ledger_turn *turn,
                             pawl_error *reterr)
{
    static const char *const states[] = {
        [PAWL_TURN_OPEN] = "is open",
        [PAWL_TURN_COMMITTED] = "was committed",
        [PAWL_TURN_ABANDONED] = "was abandoned",
    };

    if (turn->attempt == 0) { /* a handle that was resumed from somewhere else */
        return pawl__fail(reterr,
                          PAWL_LEASE_LOST,
                          "turn %lld of run '%.*s' was never begun here",
                          (long long)request->turn,
                          VIEW_ARGS(request->run_id));
    }
    return pawl__fail(reterr,
                      PAWL_LEASE_LOST,
                      "attempt %u at turn %lld of run '%.*s' is over: attempt %u %s",
                      request->attempt,
                      (long long)request->turn,
                      VIEW_ARGS(request->run_id),
                      turn->attempt,
                      states[turn->state]);
}

/* A commit whose answer was lost is asked for again: it finds itself. So is an abandon. */
static bool has_happened(const struct ledger_request *request, const struct ledger_turn *turn)
{
    return (request->kind == LEDGER_TURN_COMMIT && turn->state == PAWL_TURN_COMMITTED)
           || (request->kind == LEDGER_TURN_ABANDON && turn->state == PAWL_TURN_ABANDONED);
}

static pawl_status in_turn(struct ledger_plan *plan,
                           struct ledger_request *request,
                           struct ledger_turn *turn)
{
    pawl_error *reterr = &request->item.outcome;

    if (request->kind == LEDGER_TURN_BEGIN) {
        return begin_turn(plan, request, turn);
    }
    if (turn->attempt == request->attempt && has_happened(request, turn)) {
        return PAWL_OK;
    }
    if (turn->attempt != request->attempt || turn->state != PAWL_TURN_OPEN) {
        return lost_turn(request, turn, reterr);
    }
    if (request->kind == LEDGER_APPEND) {
        TRY(pawl__ledger_plan_check_ordinals(plan, request, reterr));
        return append_events(plan, request);
    }
    if (request->kind == LEDGER_TURN_ABANDON) {
        return abandon_attempt(plan, request, turn, request->reason, reterr);
    }
    TRY(turn_event(
        plan, request, PAWL__KIND_TURN_COMMIT, turn->attempt, (pawl_view){ NULL, 0 }, reterr));
    turn->state = PAWL_TURN_COMMITTED;
    turn->end_offset = plan->head.offset;
    change_turn(plan, turn);
    return PAWL_OK;
}

/* --- copies --- */

static pawl_status odd_turn(const pawl_event *event,
                            const struct ledger_turn *turn,
                            uint32_t attempt,
                            pawl_error *reterr)
{
    static const char *const states[] = {
        [PAWL_TURN_OPEN] = "is open",
        [PAWL_TURN_COMMITTED] = "was committed",
        [PAWL_TURN_ABANDONED] = "was abandoned",
    };
    char here[48] = "has no attempt here";

    if (turn->attempt > 0) {
        snprintf(
            here, sizeof(here), "of which attempt %u %s here", turn->attempt, states[turn->state]);
    }
    return pawl__fail(reterr,
                      PAWL_CONFLICT,
                      "a %.*s of attempt %u at turn %lld of run '%.*s', %s%s",
                      VIEW_ARGS(event->kind),
                      attempt,
                      (long long)event->turn,
                      VIEW_ARGS(event->run_id),
                      turn->attempt > 0 ? "" : "which ",
                      here);
}

/* The row of the attempt that a copied event is about. The events of one ledger, in their order,
 * always fit; those of two that used the same run may not. */
static pawl_status copy_turn(struct ledger_plan *plan, const pawl_event *event, pawl_error *reterr)
{
    struct ledger_turn *turn = find_attempt(plan, event->run_id, event->turn);
    uint32_t attempt;

    REQUIRE(turn != NULL);
    TRY(pawl__ledger_event_turn_attempt(event, &attempt, reterr));
    if (pawl__view_is(event->kind, PAWL__KIND_TURN_BEGIN)) {
        bool over = turn->attempt == 0 || turn->state == PAWL_TURN_ABANDONED;
        if (!over || attempt <= turn->attempt) {
            return odd_turn(event, turn, attempt, reterr);
        }
        turn->attempt = attempt;
        turn->state = PAWL_TURN_OPEN;
        turn->begin_offset = plan->head.offset;
        turn->end_offset = 0;
    } else {
        if (attempt != turn->attempt || turn->state != PAWL_TURN_OPEN) {
            return odd_turn(event, turn, attempt, reterr);
        }
        bool commits = pawl__view_is(event->kind, PAWL__KIND_TURN_COMMIT);
        turn->state = commits ? PAWL_TURN_COMMITTED : PAWL_TURN_ABANDONED;
        turn->end_offset = plan->head.offset;
    }
    change_turn(plan, turn);
    return PAWL_OK;
}

static pawl_status copy_event(struct ledger_plan *plan,
                              const pawl_event *event,
                              pawl_append_result *ret_result,
                              pawl_error *reterr)
{
    TRY(append_event(plan, event, false, ret_result, reterr));
    return !ret_result->duplicate && pawl__ledger_event_is_reserved(event)
               ? copy_turn(plan, event, reterr)
               : PAWL_OK;
}

static pawl_status copy_events(struct ledger_plan *plan, struct ledger_request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        pawl_append_result *result = &request->results[i];
        pawl_status status = copy_event(plan, &request->events[i], result, &request->item.outcome);
        if (status != PAWL_OK) {
            return pawl__ledger_event_name(&request->item.outcome, request->count, i, status);
        }
    }
    return PAWL_OK;
}

static pawl_status plan_copy(struct ledger_plan *plan, struct ledger_request *request)
{
    size_t bytes = plan->attempt_count * sizeof(*plan->attempts);
    struct ledger_turn *before = pawl__arena_take(&plan->arena, MAX(bytes, (size_t)1));

    if (before == NULL) {
        return no_memory(&request->item.outcome);
    }
    if (bytes > 0) {
        memcpy(before, plan->attempts, bytes);
    }
    pawl_status status = copy_events(plan, request);
    if (status != PAWL_OK && bytes > 0) {
        memcpy(plan->attempts, before, bytes);
    }
    return status;
}

/* Nothing of a failed request may be taken for stored by the requests after it. */
static void go_back(struct ledger_plan *plan, const struct mark *mark)
{
    for (size_t i = mark->insert_count; i < plan->insert_count && plan->known != NULL; i++) {
        pawl__map_remove(plan->known, plan->inserts[i].id);
    }
    plan->head = mark->head;
    plan->insert_count = mark->insert_count;
    plan->change_count = mark->change_count;
    plan->duplicate_count = mark->duplicate_count;
}

static pawl_status plan_in_turn(struct ledger_plan *plan, struct ledger_request *request)
{
    struct ledger_turn *turn = find_attempt(plan, request->run_id, request->turn);

    REQUIRE(turn != NULL);
    struct ledger_turn before = *turn;
    pawl_status status = in_turn(plan, request, turn);
    if (status != PAWL_OK) {
        *turn = before;
    }
    return status;
}

void pawl__ledger_plan_request(struct ledger_plan *plan, struct ledger_request *request)
{
    struct mark mark = {
        plan->head, plan->insert_count, plan->change_count, plan->duplicate_count
    };
    pawl_status status = PAWL_OK;

    plan->request_head = plan->head;
    request->item.outcome = (pawl_error)PAWL_ERROR_INIT; /* it may have been planned before */
    if (request->in_turn) {
        status = plan_in_turn(plan, request);
    } else if (request->kind == LEDGER_APPEND) {
        status = append_events(plan, request);
    } else if (request->kind == LEDGER_COPY) {
        status = plan_copy(plan, request);
    }
    if (status != PAWL_OK) {
        REQUIRE(request->item.outcome.status == status);
        go_back(plan, &mark);
    }
}
