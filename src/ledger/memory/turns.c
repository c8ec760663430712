#include "ledger/memory/turns.h"

#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"

enum { KEY_BYTES_MAX = PAWL_LEDGER_NAME_BYTES_MAX + 8 };

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for turns in memory");
}

pawl_status pawl__ledger_memory_turns_init(struct memory_turns *turns,
                                           struct pawl__lock *lock,
                                           pawl_error *reterr)
{
    *turns = (struct memory_turns){ .lock = lock, .arena = ARENA_INIT };
    return pawl__map_new(SIZE_MAX / 64, &turns->newest, reterr);
}

void pawl__ledger_memory_turns_done(struct memory_turns *turns)
{
    free(turns->rows);
    free(turns->unfinished);
    free(turns->staged);
    pawl__map_free(turns->newest);
    pawl__arena_done(&turns->arena);
}

/* --- the committer's --- */

static void add_key(struct pawl__buf *key, pawl_view run_id, int64_t turn)
{
    pawl__buf_add_u64le(key, (uint64_t)turn);
    pawl__buf_add(key, run_id);
    REQUIRE(!key->broken);
}

static struct memory_row *newest_row(const struct memory_turns *turns,
                                     pawl_view run_id,
                                     int64_t turn)
{
    char space[KEY_BYTES_MAX + 1];
    struct pawl__buf key = BUF_OVER(space);

    add_key(&key, run_id, turn);
    return pawl__map_get(turns->newest, pawl__buf_view(&key));
}

void pawl__ledger_memory_turns_get(const struct memory_turns *turns,
                                   pawl_view run_id,
                                   int64_t turn,
                                   struct ledger_turn *ret_turn)
{
    const struct memory_row *row = newest_row(turns, run_id, turn);

    while (row != NULL && !row->applied) { /* of a transaction that was taken back */
        row = row->older;
    }
    *ret_turn = row == NULL ? (struct ledger_turn){ .turn = turn } : row->turn;
    ret_turn->run_id = run_id;
}

static struct memory_row *add_row(struct memory_turns *turns, const struct ledger_turn *turn)
{
    char space[KEY_BYTES_MAX + 1];
    struct pawl__buf key = BUF_OVER(space);
    struct memory_row *row = pawl__arena_take(&turns->arena, sizeof(*row));

    if (row == NULL) {
        return NULL;
    }
    *row = (struct memory_row){ .turn = *turn };
    row->older = newest_row(turns, turn->run_id, turn->turn);
    add_key(&key, turn->run_id, turn->turn);
    if (!pawl__arena_copy(&turns->arena, turn->run_id, &row->turn.run_id)
        || pawl__map_put(turns->newest, pawl__buf_view(&key), row, NULL, NULL) != PAWL_OK) {
        return NULL;
    }
    return row;
}

static struct memory_row *find_row(const struct memory_turns *turns, const struct ledger_turn *turn)
{
    struct memory_row *row = newest_row(turns, turn->run_id, turn->turn);

    while (row != NULL && row->turn.attempt != turn->attempt) {
        row = row->older;
    }
    return row;
}

pawl_status pawl__ledger_memory_turns_put(struct memory_turns *turns,
                                          const struct ledger_turn *turn,
                                          pawl_error *reterr)
{
    if (turns->staged_count == turns->staged_cap) {
        size_t cap = MAX(turns->staged_cap * 2, (size_t)16);
        struct memory_change *larger = realloc(turns->staged, cap * sizeof(*larger));
        if (larger == NULL) {
            return no_memory(reterr);
        }
        turns->staged = larger;
        turns->staged_cap = cap;
    }
    struct memory_row *row = find_row(turns, turn);
    if (row == NULL) {
        row = add_row(turns, turn);
    }
    if (row == NULL) {
        return no_memory(reterr);
    }
    struct memory_change *change = &turns->staged[turns->staged_count++];
    *change = (struct memory_change){ row, *turn };
    change->to.run_id = row->turn.run_id;
    return PAWL_OK;
}

static bool grow(struct memory_row ***rows, size_t cap)
{
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what the array holds */
    struct memory_row **larger = realloc(*rows, cap * sizeof(**rows));

    if (larger == NULL) {
        return false;
    }
    *rows = larger;
    return true;
}

pawl_status pawl__ledger_memory_turns_reserve(struct memory_turns *turns, pawl_error *reterr)
{
    size_t needed = turns->count + turns->staged_count;

    if (needed <= turns->cap) {
        return PAWL_OK;
    }
    size_t cap = MAX(needed, MAX(turns->cap * 2, (size_t)16));
    pawl__lock(turns->lock);
    bool good = grow(&turns->rows, cap) && grow(&turns->unfinished, cap);
    turns->cap = good ? cap : turns->cap;
    pawl__unlock(turns->lock);
    return good ? PAWL_OK : no_memory(reterr);
}

static void finish_row(struct memory_turns *turns, const struct memory_row *row)
{
    size_t i = turns->unfinished_count;

    while (i > 0 && turns->unfinished[i - 1] != row) { /* most likely one of the last */
        i--;
    }
    REQUIRE(i > 0);
    turns->unfinished[i - 1] = turns->unfinished[--turns->unfinished_count];
}

void pawl__ledger_memory_turns_apply_locked(struct memory_turns *turns)
{
    for (size_t i = 0; i < turns->staged_count; i++) {
        struct memory_row *row = turns->staged[i].row;
        bool was_listed = row->applied && row->turn.state != PAWL_TURN_COMMITTED;

        if (!row->applied) {
            turns->rows[turns->count++] = row;
        }
        row->applied = true;
        row->turn = turns->staged[i].to;
        bool is_listed = row->turn.state != PAWL_TURN_COMMITTED;
        if (is_listed && !was_listed) {
            turns->unfinished[turns->unfinished_count++] = row;
        } else if (was_listed && !is_listed) {
            finish_row(turns, row);
        }
    }
    turns->staged_count = 0;
}

void pawl__ledger_memory_turns_drop(struct memory_turns *turns)
{
    turns->staged_count = 0; /* new rows stay, unseen, until the attempt is tried again */
}

/* --- everybody's --- */

static pawl_turn_info info_of(const struct ledger_turn *turn)
{
    return (pawl_turn_info){ sizeof(pawl_turn_info), turn->run_id, turn->turn,
                             turn->attempt,          turn->state,  turn->begin_offset,
                             turn->end_offset };
}

/* A copy of the row, so that no lock is held while a visitor reads it; its name does not move. */
static bool row_at(struct memory_turns *turns, size_t index, struct ledger_turn *ret_turn)
{
    pawl__lock(turns->lock);
    bool there = index < turns->count;
    if (there) {
        *ret_turn = turns->rows[index]->turn;
    }
    pawl__unlock(turns->lock);
    return there;
}

void pawl__ledger_memory_turns_visit(struct memory_turns *turns,
                                     pawl_view run_id,
                                     uint64_t from,
                                     pawl_turn_visit visit,
                                     void *context)
{
    struct ledger_turn turn;
    bool going = true;

    for (size_t i = 0; going && row_at(turns, i, &turn); i++) {
        if (turn.begin_offset >= from
            && (run_id.len == 0 || pawl__view_equal(run_id, turn.run_id))) {
            pawl_turn_info info = info_of(&turn);
            going = visit(context, &info);
        }
    }
}

void pawl__ledger_memory_turns_unfinished(struct memory_turns *turns,
                                          uint64_t since,
                                          pawl_turn_visit visit,
                                          void *context)
{
    /* Held over the visits: rows leave this list. The visitors of this method only copy. */
    pawl__lock(turns->lock);
    for (size_t i = 0; i < turns->unfinished_count; i++) {
        const struct ledger_turn *turn = &turns->unfinished[i]->turn;
        pawl_turn_info info = info_of(turn);
        if ((turn->state == PAWL_TURN_OPEN || turn->end_offset > since) && !visit(context, &info)) {
            break;
        }
    }
    pawl__unlock(turns->lock);
}

int64_t pawl__ledger_memory_turns_last_complete(struct memory_turns *turns, pawl_view run_id)
{
    struct ledger_turn turn;
    int64_t highest = -1;

    for (size_t i = 0; row_at(turns, i, &turn); i++) {
        if (turn.state == PAWL_TURN_COMMITTED && turn.turn > highest
            && pawl__view_equal(turn.run_id, run_id)) {
            highest = turn.turn;
        }
    }
    return highest;
}
