/* A turn's handle: which attempt it is, and which ordinal the next event of an actor and kind has.
 *
 * Ordinals move only when an append is known to be durable. So a caller that appends the same
 * events again after a lost answer gives them the same ids and finds them stored. */
#include <stdlib.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/map.h"
#include "base/core/sized.h"
#include "base/os/clock.h"
#include "ledger/core/event.h"
#include "ledger/core/internal.h"

enum { ORDINALS_MAX = 1000000 }; /* pairs of actor and kind in one turn */

/* The events of one actor and kind that have no id. */
struct ordinal {
    uint64_t durable; /* ... and are known to be stored, or said to be when it was resumed */
    uint64_t under_way;
    bool agreed;          /* with the store; until then an append asks */
    struct ordinal *next; /* of those with some under way */
};

struct pawl_turn {
    pawl_ledger *ledger;
    char *run_id;
    int64_t turn;
    uint32_t attempt;
    uint64_t first_ordinal; /* when it was resumed */
    bool resumed;
    struct pawl__map *ordinals; /* actor, NUL, kind -> struct ordinal in the arena */
    struct ordinal *under_way;
    struct pawl__arena arena;
};

static pawl_view run_of(const pawl_turn *turn)
{
    return pawl_view_of(turn->run_id);
}

static struct ledger_request request_for(const pawl_turn *turn, enum ledger_request_kind kind)
{
    return (struct ledger_request){
        .kind = kind,
        .in_turn = true,
        .run_id = run_of(turn),
        .turn = turn->turn,
        .attempt = turn->attempt,
        .now_us = pawl__wall_us(turn->ledger->engine.clock),
    };
}

static pawl_status check_turn(pawl_view run_id, int64_t number, pawl_error *reterr)
{
    pawl_event probe = {
        .size = sizeof(pawl_event),
        .id = pawl_view_of("x"),
        .run_id = run_id,
        .turn = number,
        .kind = pawl_view_of("x"),
        .actor = pawl_view_of("x"),
        .payload = pawl_view_of("0"),
        .schema_version = 1,
    };

    return pawl__ledger_event_check(&probe, 1, reterr);
}

static void free_turn(pawl_turn **turn)
{
    pawl_turn_free(*turn);
}

/* A handle to no attempt yet. */
static pawl_status new_turn(
    pawl_ledger *ledger, pawl_view run_id, int64_t turn, pawl_turn **ret_turn, pawl_error *reterr)
{
    NEED(ledger, ret_turn, reterr);
    TRY(check_turn(run_id, turn, reterr));
    AUTO(free_turn) pawl_turn *handle = calloc(1, sizeof(*handle));
    if (handle == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a turn");
    }
    *handle = (pawl_turn){ .ledger = ledger, .turn = turn, .arena = ARENA_INIT };
    handle->run_id = pawl__view_dup(run_id);
    if (handle->run_id == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a turn");
    }
    TRY(pawl__map_new(ORDINALS_MAX, &handle->ordinals, reterr));
    *ret_turn = STEAL(handle);
    return PAWL_OK;
}

pawl_status pawl_turn_begin(
    pawl_ledger *ledger, pawl_view run_id, int64_t turn, pawl_turn **ret_turn, pawl_error *reterr)
{
    AUTO(free_turn) pawl_turn *handle = NULL;

    TRY(new_turn(ledger, run_id, turn, ret_turn == NULL ? NULL : &handle, reterr));
    struct ledger_request request = request_for(handle, LEDGER_TURN_BEGIN);
    TRY(pawl__ledger_submit(ledger, &request, reterr));
    handle->attempt = request.attempt;
    *ret_turn = STEAL(handle);
    return PAWL_OK;
}

pawl_status pawl_turn_resume(pawl_ledger *ledger,
                             pawl_view run_id,
                             int64_t turn,
                             uint32_t attempt,
                             uint64_t ordinal,
                             pawl_turn **ret_turn,
                             pawl_error *reterr)
{
    pawl_turn *handle = NULL;

    if (attempt == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "attempt: is 0, they count from 1");
    }
    TRY(new_turn(ledger, run_id, turn, ret_turn == NULL ? NULL : &handle, reterr));
    handle->attempt = attempt;
    handle->first_ordinal = ordinal;
    handle->resumed = true;
    *ret_turn = handle;
    return PAWL_OK;
}

void pawl_turn_free(pawl_turn *turn)
{
    if (turn != NULL) {
        pawl__map_free(turn->ordinals);
        pawl__arena_done(&turn->arena);
        free(turn->run_id);
        free(turn);
    }
}

uint32_t pawl_turn_attempt(const pawl_turn *turn)
{
    return turn == NULL ? 0 : turn->attempt;
}

/* --- appending --- */

/* Finds or makes the ordinal of an actor and kind, both checked; NULL without memory. */
static struct ordinal *ordinal_of(pawl_turn *turn, const pawl_event *event, pawl_error *reterr)
{
    char space[2 * PAWL_LEDGER_NAME_BYTES_MAX + 2];
    struct pawl__buf key = BUF_OVER(space);

    pawl__buf_add(&key, event->actor);
    pawl__buf_add_u8(&key, 0); /* stands in no name, so no two pairs share a key */
    pawl__buf_add(&key, event->kind);
    REQUIRE(!key.broken);
    struct ordinal *ordinal = pawl__map_get(turn->ordinals, pawl__buf_view(&key));
    if (ordinal != NULL) {
        return ordinal;
    }
    ordinal = pawl__arena_take(&turn->arena, sizeof(*ordinal));
    if (ordinal == NULL
        || pawl__map_put(turn->ordinals, pawl__buf_view(&key), ordinal, NULL, NULL) != PAWL_OK) {
        pawl__fail(reterr, PAWL_NOMEM, "no memory for the ordinals of a turn");
        return NULL;
    }
    *ordinal = (struct ordinal){
        .durable = turn->first_ordinal == PAWL_ORDINAL_FIRST ? 0 : turn->first_ordinal,
        .agreed = !turn->resumed,
    };
    return ordinal;
}

static bool is_derived(const struct ledger_batch *batch, size_t i)
{
    return batch->events[i].id.data == batch->results[i].derived_id;
}

/* Gives every event its place: run, turn and, where it has none, room for an id. What stands in
 * that room until the event is checked is an id that passes. */
static pawl_status set_run_and_turn(const pawl_turn *turn,
                                    struct ledger_batch *batch,
                                    pawl_error *reterr)
{
    static const char room[] = "t-00000000000000000000000000000000";

    for (size_t i = 0; i < batch->count; i++) {
        pawl_event *event = &batch->events[i];
        pawl_status status = pawl__ledger_event_check_views(event, reterr);
        if (status != PAWL_OK) {
            return pawl__ledger_event_name(reterr, batch->count, i, status);
        }
        if (event->run_id.len > 0 && !pawl__view_equal(event->run_id, run_of(turn))) {
            status = pawl__fail(
                reterr, PAWL_INVALID, "run_id: is not '%s', the run of this turn", turn->run_id);
            return pawl__ledger_event_name(reterr, batch->count, i, status);
        }
        event->run_id = run_of(turn);
        event->turn = turn->turn;
        if (event->id.len == 0) {
            memcpy(batch->results[i].derived_id, room, sizeof(room));
            event->id = pawl_view_of(batch->results[i].derived_id);
        }
    }
    return PAWL_OK;
}

/* Room for a question about every event, which is more than enough. */
static pawl_status make_room(const pawl_turn *turn,
                             const struct ledger_batch *batch,
                             struct ledger_request *request,
                             pawl_error *reterr)
{
    if (!turn->resumed) {
        return PAWL_OK;
    }
    request->ordinals = calloc(batch->count, sizeof(*request->ordinals));
    return request->ordinals != NULL
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for the ordinals of a turn");
}

static pawl_status derive_id(pawl_turn *turn,
                             struct ledger_batch *batch,
                             size_t index,
                             struct ledger_request *request,
                             pawl_error *reterr)
{
    const pawl_event *event = &batch->events[index];
    struct ordinal *ordinal = ordinal_of(turn, event, reterr);

    if (ordinal == NULL) {
        return PAWL_NOMEM;
    }
    TRY(pawl__ledger_event_derive_id(event,
                                     turn->attempt,
                                     ordinal->durable + ordinal->under_way,
                                     batch->results[index].derived_id,
                                     reterr));
    if (ordinal->under_way++ == 0) {
        ordinal->next = turn->under_way;
        turn->under_way = ordinal;
        if (!ordinal->agreed) {
            request->ordinals[request->ordinal_count++] =
                (struct ledger_ordinal){ .event = index, .given = turn->first_ordinal };
        }
    }
    return PAWL_OK;
}

static pawl_status derive_ids(pawl_turn *turn,
                              struct ledger_batch *batch,
                              struct ledger_request *request,
                              pawl_error *reterr)
{
    TRY(make_room(turn, batch, request, reterr));
    for (size_t i = 0; i < batch->count; i++) {
        if (is_derived(batch, i)) {
            TRY(derive_id(turn, batch, i, request, reterr));
        }
    }
    return PAWL_OK;
}

/* What is under way is stored, or was for nothing. */
static void finish_ordinals(pawl_turn *turn, bool stored)
{
    for (struct ordinal *ordinal = turn->under_way; ordinal != NULL; ordinal = ordinal->next) {
        ordinal->durable += stored ? ordinal->under_way : 0;
        ordinal->agreed |= stored;
        ordinal->under_way = 0;
    }
    turn->under_way = NULL;
}

pawl_status pawl_turn_append(pawl_turn *turn,
                             const pawl_event *events,
                             size_t count,
                             pawl_append_result *ret_results,
                             pawl_error *reterr)
{
    AUTO(pawl__ledger_batch_done) struct ledger_batch batch = { 0 };

    NEED(turn, reterr);
    TRY(pawl__check_sized("ret_results", ret_results, reterr));
    TRY(pawl__ledger_batch_init(&batch, events, count, reterr));
    TRY(set_run_and_turn(turn, &batch, reterr));
    TRY(pawl__ledger_batch_check(turn->ledger, &batch, reterr));
    if (count == 0) {
        return PAWL_OK;
    }
    struct ledger_request request = request_for(turn, LEDGER_APPEND);
    pawl_status status = derive_ids(turn, &batch, &request, reterr);
    if (status == PAWL_OK) {
        status = pawl__ledger_batch_submit(turn->ledger, &batch, &request, ret_results, reterr);
    }
    finish_ordinals(turn, status == PAWL_OK);
    free(request.ordinals);
    return status;
}

/* --- the end --- */

pawl_status pawl_turn_commit(pawl_turn *turn, pawl_error *reterr)
{
    NEED(turn, reterr);
    struct ledger_request request = request_for(turn, LEDGER_TURN_COMMIT);

    return pawl__ledger_submit(turn->ledger, &request, reterr);
}

pawl_status pawl_turn_abandon(pawl_turn *turn, pawl_view reason, pawl_error *reterr)
{
    NEED(turn, reterr);
    struct ledger_request request = request_for(turn, LEDGER_TURN_ABANDON);

    if (reason.len > 0) {
        TRY(pawl__ledger_event_check_name("reason", reason, reterr));
    }
    request.reason = reason;
    return pawl__ledger_submit(turn->ledger, &request, reterr);
}
