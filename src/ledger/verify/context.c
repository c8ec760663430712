/* The chain breaks at an offset: what happened there?
 *
 * Every event carries the hash it was given, over its own offset and the hash before it. So an
 * event that stands in the wrong place can be recognised: at its old offset, behind its old
 * neighbour, its hash is right. Trying a few places tells an insertion from a removal, a swap or a
 * change. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "ledger/core/chain.h"
#include "ledger/verify/verify.h"

enum {
    WINDOW_EVENTS = 1000, /* how far behind the break its event is looked for */
    MOVED_MAX = 100,      /* how many events a removal is thought to have taken */
};

struct look {
    const struct ledger_scene *scene;
    uint64_t bad; /* the offset at which the chain breaks */

    uint8_t stored[PAWL_LEDGER_HASH_BYTES];   /* the hash that stands there, ... */
    uint8_t computed[PAWL_LEDGER_HASH_BYTES]; /* ... and the one that its content gives */
    uint64_t forged; /* so many events before it have good hashes, but it stood in their place */

    uint64_t home; /* where the event stands that belongs at `bad`; 0: not seen */
    uint8_t home_hash[PAWL_LEDGER_HASH_BYTES];
    uint8_t before_home[PAWL_LEDGER_HASH_BYTES]; /* what stands before it */
    bool home_is_last;
    bool home_followed; /* what belongs behind it follows it */
    bool swapped;       /* what stands at `bad` belongs at `home` */

    bool next_goes_on_stored;   /* the event behind `bad` continues its stored hash, ... */
    bool next_goes_on_computed; /* ... or its computed one */
    uint64_t moved;             /* the events behind stand so many offsets before their place */

    uint8_t last[PAWL_LEDGER_HASH_BYTES];
};

/* True when the event's hash is right at `offset` behind `before`. */
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

static const uint8_t *recent(const struct ledger_scene *scene, uint64_t offset)
{
    static const uint8_t none[PAWL_LEDGER_HASH_BYTES];

    return offset == 0 ? none : scene->recent[offset % LEDGER_SCENE_RECENT].bytes;
}

static void look_at_bad(struct look *look, const pawl_event *event)
{
    const struct ledger_scene *scene = look->scene;
    uint64_t known = scene->recent_count;

    /* The hash before the first event is known, too. */
    known += known == scene->verified.offset && known < LEDGER_SCENE_RECENT ? 1 : 0;
    memcpy(look->stored, event->hash, sizeof(look->stored));
    (void)fits(scene->verified.hash, look->bad, event, look->computed);
    for (uint64_t back = 1; back < known && look->forged == 0; back++) {
        if (fits(recent(scene, look->bad - back - 1), look->bad - back, event, NULL)) {
            look->forged = back;
        }
    }
}

static void look_at_next(struct look *look, const pawl_event *event)
{
    look->next_goes_on_stored = fits(look->stored, event->offset, event, NULL);
    look->next_goes_on_computed = fits(look->computed, event->offset, event, NULL);
    for (uint64_t by = 1; by <= MOVED_MAX && look->moved == 0; by++) {
        if (fits(look->stored, event->offset + by, event, NULL)) {
            look->moved = by;
        }
    }
}

static pawl_status look_at(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct look *look = context;

    (void)reterr;
    if (event->offset == look->bad) {
        look_at_bad(look, event);
    } else if (look->home == 0
               && fits(look->scene->verified.hash, look->bad, event, look->home_hash)) {
        look->home = event->offset;
        look->home_is_last = true;
        memcpy(look->before_home, look->last, sizeof(look->before_home));
    } else if (look->home != 0 && event->offset == look->home + 1) {
        look->home_is_last = false;
        look->home_followed = fits(look->home_hash, look->bad + 1, event, NULL);
    }
    if (event->offset == look->bad + 1) {
        look_at_next(look, event);
    }
    memcpy(look->last, event->hash, sizeof(look->last));
    return PAWL_OK;
}

static pawl_status try_at_home(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct look *look = context;
    bool neighbours = look->home == look->bad + 1;

    (void)reterr;
    look->swapped = fits(neighbours ? look->home_hash : look->before_home, look->home, event, NULL);
    return PAWL_OK;
}

static void look_around(struct look *look)
{
    struct ledger_backend *backend = look->scene->backend;
    struct ledger_query query = {
        .from = look->bad - 1,
        .up_to = look->scene->end,
        .limit = WINDOW_EVENTS,
    };

    /* A store that breaks off here has shown enough. */
    (void)!backend->ops->read(backend, &query, look_at, look, NULL);
    if (look->home != 0) {
        pawl_view no_id = { NULL, 0 };
        (void)!backend->ops->get(backend, no_id, look->bad, try_at_home, look, NULL);
    }
}

void pawl__ledger_verify_context(const struct ledger_scene *scene,
                                 uint64_t *ret_offset,
                                 char *ret_what,
                                 size_t what_size)
{
    struct look look = { .scene = scene, .bad = scene->verified.offset + 1 };
    const char *change = "changed: it does not continue the chain";

    look_around(&look);
    *ret_offset = look.bad - look.forged;
    if (look.forged > 0) {
        snprintf(ret_what,
                 what_size,
                 "inserted: the event that stood here is at offset %llu now",
                 (unsigned long long)look.bad);
        return;
    }
    if (look.home != 0) {
        bool inserted = !look.swapped && (look.home_followed || look.home_is_last);
        snprintf(ret_what,
                 what_size,
                 "%s: the event that stood here is at offset %llu now",
                 inserted ? "inserted" : "reordered",
                 (unsigned long long)look.home);
        return;
    }
    if (look.moved > 0) {
        snprintf(ret_what,
                 what_size,
                 "removed: %llu gone, and what was behind has moved up",
                 (unsigned long long)look.moved);
        return;
    }
    if (look.next_goes_on_stored) {
        change = "changed: its content does not give its hash";
    } else if (look.next_goes_on_computed) {
        change = "changed: its hash is not the one of its content";
    }
    snprintf(ret_what, what_size, "%s", change);
}
