#include "delivery/core/reconcile.h"

#include <string.h>

const char *pawl__delivery_pairing_name(enum delivery_pairing pairing)
{
    static const char *const names[] = {
        [DELIVERY_FIRST] = "first",     [DELIVERY_RESUME] = "resume", [DELIVERY_REPLAY] = "replay",
        [DELIVERY_REBUILD] = "rebuild", [DELIVERY_ADOPT] = "adopt",
    };
    REQUIRE((size_t)pairing < COUNT_OF(names));
    return names[pairing];
}

struct judgement {
    enum delivery_pairing pairing;
    const char *why;
};

static bool is_same(const struct delivery_uuid *a, const struct delivery_uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* The WAL is not the newest that this sink has seen. Every opener writes its fence to the WAL first and then to
 * the sink, so a sink that knows a higher one has been fed by a later WAL. */
static const char *why_wal_is_stale(const struct delivery_sides *sides)
{
    if (!sides->wal_found) {
        return "the WAL is lost";
    }
    if (!is_same(&sides->meta.wal_id, &sides->cursor.wal_id)) {
        return "the sink was fed by another WAL";
    }
    if (sides->cursor.fence > sides->meta.fence || sides->cursor.epoch > sides->meta.epoch) {
        return "the WAL is an older copy: the sink was opened since";
    }
    /* One that was adopted is empty, and knows what had been applied before. */
    if (sides->cursor.applied > MAX(sides->stats.last, sides->meta.applied)) {
        return "the WAL is an older copy: the sink has applied more than it holds";
    }
    return NULL;
}

/* The sink misses something that the WAL no longer has. */
static const char *why_sink_is_incomplete(const struct delivery_sides *sides)
{
    if (!sides->sink_found) {
        return "the sink is lost";
    }
    if (sides->cursor.epoch < sides->meta.epoch) {
        return "the sink is older than the last rebuild, or that was not finished";
    }
    if (sides->cursor.applied < sides->stats.cleaned) {
        return "the sink is an older copy, and the WAL has forgotten what it misses";
    }
    if (sides->exception_missing) {
        return "the sink is an older copy, and waits for an entry that the WAL has forgotten";
    }
    return NULL;
}

static struct judgement judge(const struct delivery_sides *sides)
{
    if (!sides->wal_found && !sides->sink_found) {
        return (struct judgement){ DELIVERY_FIRST, "neither WAL nor sink has a record" };
    }
    const char *why = sides->sink_found ? why_wal_is_stale(sides) : NULL;
    if (why != NULL) {
        return (struct judgement){ DELIVERY_ADOPT, why };
    }
    why = why_sink_is_incomplete(sides);
    if (why != NULL) {
        return (struct judgement){ DELIVERY_REBUILD, why };
    }
    if (sides->cursor.applied < sides->meta.applied) {
        return (struct judgement){ DELIVERY_REPLAY,
                                   "the sink is older than what it had confirmed" };
    }
    return (struct judgement){ DELIVERY_RESUME, "WAL and sink agree" };
}

struct delivery_plan pawl__delivery_reconcile(const struct delivery_sides *sides)
{
    struct judgement judgement = judge(sides);
    delivery_lsn last = sides->wal_found ? sides->stats.last : 0;
    delivery_lsn applied = sides->sink_found ? sides->cursor.applied : 0;
    uint64_t epoch =
        MAX(sides->wal_found ? sides->meta.epoch : 0, sides->sink_found ? sides->cursor.epoch : 0);
    uint64_t fence =
        MAX(sides->wal_found ? sides->meta.fence : 0, sides->sink_found ? sides->cursor.fence : 0);
    bool repairs = judgement.pairing == DELIVERY_REBUILD || judgement.pairing == DELIVERY_ADOPT;
    bool is_new = judgement.pairing == DELIVERY_FIRST;

    return (struct delivery_plan){
        .pairing = judgement.pairing,
        .why = judgement.why,
        .new_wal_id = is_new || judgement.pairing == DELIVERY_ADOPT,
        .make_index = repairs,
        .restart_source = repairs || (sides->wal_found && sides->meta.restart_source),
        .epoch = epoch + (repairs || is_new ? 1 : 0),
        .fence = fence + 1,
        .look_up = repairs && sides->sink_found,
        .applied = repairs && sides->sink_found ? MAX(applied, last) : applied,
        .next_lsn = MAX(applied, last) + 1,
    };
}
