#include "ledger/core/open_turns.h"

#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "ledger/core/chain.h"
#include "ledger/core/plan.h"

enum { OPEN_MAX = 1 << 24, KEY_BYTES = PAWL_LEDGER_NAME_BYTES_MAX + 8 + 1 };

struct key {
    char bytes[KEY_BYTES];
};

static pawl_view key_of(struct key *key, pawl_view run_id, int64_t turn)
{
    struct pawl__buf buf = BUF_OVER(key->bytes);

    pawl__buf_add_u64le(&buf, (uint64_t)turn); /* first: it has one length */
    pawl__buf_add(&buf, run_id);
    return buf.broken ? (pawl_view){ NULL, 0 } : (pawl_view){ key->bytes, buf.len };
}

void pawl__ledger_open_turns_done(struct ledger_open_turns *turns)
{
    pawl__map_free(turns->attempts);
    *turns = (struct ledger_open_turns){ .known = false };
}

pawl_status pawl__ledger_open_turns_start(struct ledger_open_turns *turns,
                                          const pawl_ledger_head *head,
                                          pawl_error *reterr)
{
    pawl__ledger_open_turns_done(turns);
    TRY(pawl__map_new(OPEN_MAX, &turns->attempts, reterr));
    turns->as_of = *head;
    turns->known = true;
    return PAWL_OK;
}

pawl_status pawl__ledger_open_turns_add(struct ledger_open_turns *turns,
                                        pawl_view run_id,
                                        int64_t turn,
                                        uint32_t attempt,
                                        pawl_error *reterr)
{
    struct key space;
    pawl_view key = key_of(&space, run_id, turn);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the map's values are the caller's business */
    void *value = (void *)(uintptr_t)attempt;

    if (key.len == 0 || attempt == 0) { /* no row that the ledger wrote */
        return PAWL_OK;
    }
    pawl_status status = pawl__map_put(turns->attempts, key, value, NULL, reterr);
    if (status != PAWL_OK) {
        turns->known = false;
    }
    return status;
}

bool pawl__ledger_open_turns_are_of(const struct ledger_open_turns *turns,
                                    const pawl_ledger_head *head)
{
    return turns->known && turns->as_of.offset == head->offset
           && pawl__ledger_chain_hash_equal(turns->as_of.hash, head->hash);
}

uint32_t pawl__ledger_open_turns_find(const struct ledger_open_turns *turns,
                                      pawl_view run_id,
                                      int64_t turn)
{
    struct key space;

    if (!turns->known || pawl__map_count(turns->attempts) == 0) {
        return 0;
    }
    pawl_view key = key_of(&space, run_id, turn);
    return key.len == 0 ? 0 : (uint32_t)(uintptr_t)pawl__map_get(turns->attempts, key);
}

void pawl__ledger_open_turns_commit(struct ledger_open_turns *turns,
                                    const struct ledger_turn *changes,
                                    size_t count,
                                    const pawl_ledger_head *head)
{
    for (size_t i = 0; i < count && turns->known; i++) {
        const struct ledger_turn *change = &changes[i];
        struct key space;

        if (change->state != PAWL_TURN_OPEN) {
            pawl__map_remove(turns->attempts, key_of(&space, change->run_id, change->turn));
        } else if (pawl__ledger_open_turns_add(
                       turns, change->run_id, change->turn, change->attempt, NULL)
                   != PAWL_OK) {
            return; /* forgotten */
        }
    }
    turns->as_of = *head;
}
