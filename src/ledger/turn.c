/* A turn's handle: which attempt it is, and which ordinal the next event of an actor and kind has.
 *
 * Ordinals move only when an append is known to be durable. So a caller that appends the same events
 * again after a lost answer gives them the same ids and finds them stored. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/map.h"
#include "ledger/event.h"
#include "ledger/ledger_internal.h"

enum { ORDINALS_MAX = 1000000 }; /* pairs of actor and kind in one turn */

struct pawl_turn {
    pawl_ledger *ledger;
    char *run_id;
    int64_t turn;
    uint32_t attempt;
    struct pawl__map *ordinals; /* actor, NUL, kind -> how many, plus one */
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
        .now_us = pawl__wall_us(pawl__clock_real()),
    };
}

static pawl_status check_turn(pawl_view run_id, int64_t number, pawl_error *reterr)
{
    pawl_event probe = {
        .id = pawl_view_of("x"),
        .run_id = run_id,
        .turn = number,
        .kind = pawl_view_of("x"),
        .actor = pawl_view_of("x"),
        .payload = pawl_view_of("0"),
        .schema_version = 1,
    };

    return pawl__event_check(&probe, 1, reterr);
}

static pawl_status
begin(pawl_turn *turn, pawl_view run_id, pawl_error *reterr)
{
    turn->run_id = pawl__view_dup(run_id);
    if (turn->run_id == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a turn");
    }
    pawl_status status = pawl__map_new(ORDINALS_MAX, &turn->ordinals, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    struct ledger_request request = request_for(turn, LEDGER_TURN_BEGIN);
    status = pawl__ledger_submit(turn->ledger, &request, reterr);
    turn->attempt = request.attempt;
    return status;
}

pawl_status pawl_turn_begin(pawl_ledger *ledger,
                            pawl_view run_id,
                            int64_t turn,
                            pawl_turn **ret_turn,
                            pawl_error *reterr)
{
    if (ledger == NULL || ret_turn == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "ledger or ret_turn: is NULL");
    }
    pawl_status status = check_turn(run_id, turn, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    pawl_turn *handle = calloc(1, sizeof(*handle));
    if (handle == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a turn");
    }
    handle->ledger = ledger;
    handle->turn = turn;
    status = begin(handle, run_id, reterr);
    if (status != PAWL_OK) {
        pawl_turn_free(handle);
        return status;
    }
    *ret_turn = handle;
    return PAWL_OK;
}

void pawl_turn_free(pawl_turn *turn)
{
    if (turn != NULL) {
        pawl__map_free(turn->ordinals);
        free(turn->run_id);
        free(turn);
    }
}

uint32_t pawl_turn_attempt(const pawl_turn *turn)
{
    return turn->attempt;
}

pawl_status pawl_turn_commit(pawl_turn *turn, pawl_error *reterr)
{
    struct ledger_request request = request_for(turn, LEDGER_TURN_COMMIT);

    return pawl__ledger_submit(turn->ledger, &request, reterr);
}

pawl_status pawl_turn_abandon(pawl_turn *turn, pawl_view reason, pawl_error *reterr)
{
    struct ledger_request request = request_for(turn, LEDGER_TURN_ABANDON);

    if (reason.len > PAWL_LEDGER_NAME_BYTES_MAX || !pawl__view_is_utf8(reason)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "reason: must be UTF-8 of at most %d bytes",
                          PAWL_LEDGER_NAME_BYTES_MAX);
    }
    request.reason = reason;
    return pawl__ledger_submit(turn->ledger, &request, reterr);
}
