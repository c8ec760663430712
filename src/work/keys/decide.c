#include "work/keys/decide.h"

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/decide/lease.h"
#include "base/json/json.h"

static const char *const state_texts[] = {
    [WORK_KEY_PENDING] = "pending",
    [WORK_KEY_COMPLETED] = "completed",
    [WORK_KEY_FAILED] = "failed",
};

const char *pawl__work_key_state_text(enum work_key_state state)
{
    REQUIRE((size_t)state < COUNT_OF(state_texts));
    return state_texts[state];
}

bool pawl__work_key_state_parse(pawl_view text, enum work_key_state *ret_state)
{
    size_t found = pawl__view_index(text, state_texts, COUNT_OF(state_texts));

    if (found == COUNT_OF(state_texts)) {
        return false;
    }
    *ret_state = (enum work_key_state)found;
    return true;
}

static bool is_live(const struct work_key_row *row, const struct work_now *now)
{
    return row->state == WORK_KEY_PENDING && row->leased && now->ns < row->deadline_ns;
}

static bool was_given_up(const struct work_key_row *row)
{
    return row->state == WORK_KEY_PENDING && !row->leased && row->owner_token > 0;
}

bool pawl__work_key_is_over(const struct work_key_row *row, const struct work_now *now)
{
    return now->ns >= row->over_ns && !is_live(row, now);
}

pawl_idem_answer pawl__work_key_inspect(const struct work_key_row *row, const struct work_now *now)
{
    if (row->state == WORK_KEY_COMPLETED) {
        return PAWL_IDEM_DONE;
    }
    if (row->state == WORK_KEY_FAILED) {
        return PAWL_IDEM_FAILED;
    }
    return is_live(row, now) ? PAWL_IDEM_IN_FLIGHT : PAWL_IDEM_IN_DOUBT;
}

static pawl_idem_answer answer_of(const struct work_key_row *row,
                                  const struct work_key_begin *given,
                                  const struct work_now *now)
{
    if (!row->known || pawl__work_key_is_over(row, now) || was_given_up(row)) {
        return PAWL_IDEM_NEW;
    }
    if (!pawl__view_equal(row->request_hash, given->request_hash)) {
        return PAWL_IDEM_HASH_CONFLICT;
    }
    pawl_idem_answer answer = pawl__work_key_inspect(row, now);
    bool open = answer == PAWL_IDEM_IN_DOUBT || answer == PAWL_IDEM_FAILED;
    return open && given->take_over ? PAWL_IDEM_NEW : answer;
}

static int64_t add_capped(int64_t a, int64_t b, int64_t max)
{
    return a > max - b ? max : a + b;
}

pawl_status pawl__work_key_decide_begin(struct work_key_row *row,
                                        const struct work_key_begin *given,
                                        const struct work_now *now,
                                        pawl_idem_answer *ret_answer,
                                        pawl_error *reterr)
{
    pawl_idem_answer answer = answer_of(row, given, now);

    if (answer != PAWL_IDEM_NEW) {
        *ret_answer = answer;
        return PAWL_OK;
    }
    if (row->owner_token >= PAWL__LEASE_TOKEN_MAX) {
        return pawl__fail(
            reterr, PAWL_FAILED, "the tokens of key '%.*s' are used up", VIEW_ARGS(given->key));
    }
    struct work_key_row begun = {
        .known = row->known,
        .key = given->key,
        .request_hash = given->request_hash,
        .task_id = given->task_id,
        .work_item_id = given->work_item_id,
        .state = WORK_KEY_PENDING,
        .owner = given->owner,
        .owner_token = row->owner_token + 1,
        .leased = true,
        .deadline_ns = add_capped(now->ns, given->lease_ns, INT64_MAX),
        .lease_expires_at_us =
            add_capped(now->wall_us, given->lease_ns / NS_PER_US, PAWL__WALL_US_MAX),
        .created_at_us = now->wall_us,
        .expires_at_us = add_capped(now->wall_us, given->ttl_us, PAWL__WALL_US_MAX),
        .over_ns = given->ttl_us > (INT64_MAX - 1 - now->ns) / NS_PER_US
                       ? INT64_MAX - 1
                       : now->ns + given->ttl_us * NS_PER_US,
    };
    REQUIRE(begun.owner_token > row->owner_token); /* or an earlier owner could still end it */
    *row = begun;
    *ret_answer = answer;
    return PAWL_OK;
}

static pawl_status check_owner(const struct work_key_row *row,
                               uint64_t owner_token,
                               pawl_error *reterr)
{
    if (!row->known) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no key '%.*s'", VIEW_ARGS(row->key));
    }
    if (owner_token == 0 || owner_token != row->owner_token) {
        return pawl__fail(
            reterr, PAWL_LEASE_LOST, "key '%.*s' was begun by another owner", VIEW_ARGS(row->key));
    }
    return PAWL_OK;
}

pawl_status pawl__work_key_decide_end(struct work_key_row *row,
                                      uint64_t owner_token,
                                      enum work_key_state end,
                                      pawl_view response,
                                      const struct work_now *now,
                                      bool *ret_changed,
                                      pawl_error *reterr)
{
    REQUIRE(end != WORK_KEY_PENDING);
    TRY(check_owner(row, owner_token, reterr));
    bool same = row->state == end;
    if (same) {
        TRY(pawl__json_same(row->response, response, &same, reterr));
    }
    if (same) {
        *ret_changed = false;
        return PAWL_OK;
    }
    if (row->state != WORK_KEY_PENDING || !row->leased) {
        return pawl__fail(reterr,
                          PAWL_LEASE_LOST,
                          "key '%.*s' %s",
                          VIEW_ARGS(row->key),
                          row->state == WORK_KEY_COMPLETED ? "is completed, with another response"
                          : row->state == WORK_KEY_FAILED  ? "has failed for good"
                                                           : "was given up");
    }
    row->state = end;
    row->response = response;
    row->completed_at_us = now->wall_us;
    row->leased = false;
    row->lease_expires_at_us = 0;
    *ret_changed = true;
    return PAWL_OK;
}

pawl_status pawl__work_key_decide_release(struct work_key_row *row,
                                          uint64_t owner_token,
                                          bool *ret_changed,
                                          pawl_error *reterr)
{
    TRY(check_owner(row, owner_token, reterr));
    if (row->state != WORK_KEY_PENDING) {
        return pawl__fail(
            reterr, PAWL_LEASE_LOST, "key '%.*s' is ended already", VIEW_ARGS(row->key));
    }
    *ret_changed = row->leased;
    row->leased = false;
    row->lease_expires_at_us = 0;
    return PAWL_OK;
}
