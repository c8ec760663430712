/* The chain breaks at an offset: what happened there?
 *
 * Every event carries the hash it was given, over its own offset and the hash before it. So an
 * event that stands in the wrong place can be recognised: at its old offset, after its old
 * neighbour, its hash is right. Trying a few places tells an insertion from a removal, a swap or a
 * change. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "ledger/core/chain.h"
#include "ledger/verify/verify.h"

enum {
    WINDOW_EVENTS = 1000, /* how far after the break its event is searched */
    MOVED_MAX = 100,      /* the most events that one removal may have taken */
};

struct search {
    const struct ledger_verify_context *context;
    uint64_t bad; /* the offset at which the chain breaks */

    uint8_t stored[PAWL_LEDGER_HASH_BYTES];   /* the hash that stands there, ... */
    uint8_t computed[PAWL_LEDGER_HASH_BYTES]; /* ... and the one that its content gives */
    uint64_t
        forged; /* events inserted before it, with good hashes: without them its own is right */

    uint64_t home; /* the offset of the event that belongs at `bad`; 0: not found */
    uint8_t home_hash[PAWL_LEDGER_HASH_BYTES];
    uint8_t before_home[PAWL_LEDGER_HASH_BYTES]; /* the hash of the event before it */
    bool home_is_last;
    bool home_followed; /* the event that belongs after it follows it */
    bool swapped;       /* the event at `bad` belongs at `home` */

    bool next_continues_stored;   /* the event after `bad` continues its stored hash, ... */
    bool next_continues_computed; /* ... or its computed one */
    uint64_t moved;               /* the later events stand this many offsets too early */

    uint8_t last[PAWL_LEDGER_HASH_BYTES];
};

/* True when the event's hash is right at `offset` after `before`. */
static bool fits(const uint8_t *before, uint64_t offset, const pawl_event *event, uint8_t *ret_hash)
{
    pawl_ledger_head head = { .offset = offset - 1 };
    pawl_event moved = *event;

    memcpy(head.hash, before, sizeof(head.hash));
    moved.offset = offset;
    if (pawl__ledger_chain_extend(&head, &moved, NULL) != PAWL_OK) {
        return false;
    }
    if (ret_hash != NULL) {
        memcpy(ret_hash, head.hash, sizeof(head.hash));
    }
    return pawl__ledger_chain_hash_equal(head.hash, event->hash);
}

static const uint8_t *recent(const struct ledger_verify_context *context, uint64_t offset)
{
    static const uint8_t none[PAWL_LEDGER_HASH_BYTES];

    return offset == 0 ? none : context->recent[offset % LEDGER_VERIFY_RECENT].bytes;
}

static void inspect_bad(struct search *search, const pawl_event *event)
{
    const struct ledger_verify_context *context = search->context;
    uint64_t known = context->recent_count;

    /* The hash before the first event is known, too. */
    known += known == context->verified.offset && known < LEDGER_VERIFY_RECENT ? 1 : 0;
    memcpy(search->stored, event->hash, sizeof(search->stored));
    (void)fits(context->verified.hash, search->bad, event, search->computed);
    for (uint64_t back = 1; back < known && search->forged == 0; back++) {
        if (fits(recent(context, search->bad - back - 1), search->bad - back, event, NULL)) {
            search->forged = back;
        }
    }
}

static void inspect_next(struct search *search, const pawl_event *event)
{
    search->next_continues_stored = fits(search->stored, event->offset, event, NULL);
    search->next_continues_computed = fits(search->computed, event->offset, event, NULL);
    for (uint64_t by = 1; by <= MOVED_MAX && search->moved == 0; by++) {
        if (fits(search->stored, event->offset + by, event, NULL)) {
            search->moved = by;
        }
    }
}

static pawl_status inspect_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct search *search = context;

    (void)reterr;
    if (event->offset == search->bad) {
        inspect_bad(search, event);
    } else if (search->home == 0
               && fits(search->context->verified.hash, search->bad, event, search->home_hash)) {
        search->home = event->offset;
        search->home_is_last = true;
        memcpy(search->before_home, search->last, sizeof(search->before_home));
    } else if (search->home != 0 && event->offset == search->home + 1) {
        search->home_is_last = false;
        search->home_followed = fits(search->home_hash, search->bad + 1, event, NULL);
    }
    if (event->offset == search->bad + 1) {
        inspect_next(search, event);
    }
    memcpy(search->last, event->hash, sizeof(search->last));
    return PAWL_OK;
}

static pawl_status try_at_home(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct search *search = context;
    bool neighbours = search->home == search->bad + 1;

    (void)reterr;
    search->swapped =
        fits(neighbours ? search->home_hash : search->before_home, search->home, event, NULL);
    return PAWL_OK;
}

static void inspect_neighbours(struct search *search)
{
    struct ledger_backend *backend = search->context->backend;
    struct ledger_query query = {
        .from = search->bad - 1,
        .up_to = search->context->end,
        .limit = WINDOW_EVENTS,
    };

    /* A store that breaks off here has shown enough. */
    (void)!backend->ops->read(backend, &query, inspect_event, search, NULL);
    if (search->home != 0) {
        pawl_view no_id = { NULL, 0 };
        (void)!backend->ops->get(backend, no_id, search->bad, try_at_home, search, NULL);
    }
}

void pawl__ledger_verify_explain(const struct ledger_verify_context *context,
                                 uint64_t *ret_offset,
                                 char *ret_what,
                                 size_t what_size)
{
    struct search search = { .context = context, .bad = context->verified.offset + 1 };
    const char *change = "changed: it does not continue the chain";

    inspect_neighbours(&search);
    *ret_offset = search.bad - search.forged;
    if (search.forged > 0) {
        snprintf(ret_what,
                 what_size,
                 "inserted: the event that stood here is at offset %llu now",
                 (unsigned long long)search.bad);
        return;
    }
    if (search.home != 0) {
        bool inserted = !search.swapped && (search.home_followed || search.home_is_last);
        snprintf(ret_what,
                 what_size,
                 "%s: the event that stood here is at offset %llu now",
                 inserted ? "inserted" : "reordered",
                 (unsigned long long)search.home);
        return;
    }
    if (search.moved > 0) {
        snprintf(ret_what,
                 what_size,
                 "removed: %llu gone, and what followed has moved up",
                 (unsigned long long)search.moved);
        return;
    }
    if (search.next_continues_stored) {
        change = "changed: its content does not give its hash";
    } else if (search.next_continues_computed) {
        change = "changed: its hash is not the one of its content";
    }
    snprintf(ret_what, what_size, "%s", change);
}
