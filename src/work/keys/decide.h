/* Decides what happens to an idempotency key: row, request and time in, one of six answers and the row out.
 *
 * Pure: no clock, no store; texts are pointed to.
 *
 * Everything is decided by `now->ns`: a store turns its columns into times on that clock. The TTL of a
 * key that was begun in this boot runs on the boot clock; after a reboot its date decides.
 *
 * The owner token grows with every NEW and stays in the row when the key begins again, so an earlier owner
 * cannot end it later. */
#ifndef PAWL_WORK_KEYS_DECIDE_H
#define PAWL_WORK_KEYS_DECIDE_H

#include "work/core/backend.h"

enum work_key_state { WORK_KEY_PENDING, WORK_KEY_COMPLETED, WORK_KEY_FAILED };

const char *pawl__work_key_state_text(enum work_key_state state);
PAWL_MUST_USE bool pawl__work_key_state_parse(pawl_view text, enum work_key_state *ret_state);

struct work_key_row {
    bool known; /* it is stored */
    pawl_view key;
    pawl_view request_hash;
    pawl_view task_id;
    pawl_view work_item_id;
    enum work_key_state state;
    pawl_view response; /* empty: NULL in the store */
    pawl_view owner;
    uint64_t
        owner_token;     /* 0: foreign SQL made it. Not known: that of every key that was removed */
    bool leased;         /* false with a token: its owner gave it up, and nothing happened */
    int64_t deadline_ns; /* leased: run out from here on */
    int64_t lease_expires_at_us;
    int64_t created_at_us;
    int64_t completed_at_us; /* 0: not yet */
    int64_t expires_at_us;   /* 0: never; for people */
    int64_t over_ns;         /* past its TTL from here on; INT64_MAX: never */
};

/* A request that was checked: lease and TTL are positive. */
struct work_key_begin {
    pawl_view key;
    pawl_view request_hash;
    pawl_view owner;
    pawl_view task_id;
    pawl_view work_item_id;
    int64_t lease_ns;
    int64_t ttl_us;
    bool take_over;
};

/* True: past its TTL, and no lease is live. Retention may remove it. */
bool pawl__work_key_is_over(const struct work_key_row *row, const struct work_now *now);

/* The answer for a reader; the row is known. */
pawl_idem_answer pawl__work_key_inspect(const struct work_key_row *row, const struct work_now *now);

/* NEW: the row is what it should become, to be stored in place of what was there. Any other answer
 * leaves it alone. FAILED when the tokens are used up. */
PAWL_MUST_USE pawl_status pawl__work_key_decide_begin(struct work_key_row *row,
                                                      const struct work_key_begin *given,
                                                      const struct work_now *now,
                                                      pawl_idem_answer *ret_answer,
                                                      pawl_error *reterr);

/* Ends a key by its owner. PAWL_OK with *ret_changed: store the row; without: it had been done so by
 * this token before. NOT_FOUND, LEASE_LOST: the row is as it was. An expired lease is accepted
 * while nobody has taken the key over: the work was done, and its response is worth storing. */
PAWL_MUST_USE pawl_status pawl__work_key_decide_end(struct work_key_row *row,
                                                    uint64_t owner_token,
                                                    enum work_key_state end,
                                                    pawl_view response,
                                                    const struct work_now *now,
                                                    bool *ret_changed,
                                                    pawl_error *reterr);

/* Releases a key whose work did not happen: the next begin is NEW, for any request. Otherwise as
 * above. */
PAWL_MUST_USE pawl_status pawl__work_key_decide_release(struct work_key_row *row,
                                                        uint64_t owner_token,
                                                        bool *ret_changed,
                                                        pawl_error *reterr);

#endif
