#include "telemetry/core/cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"

/* --- the cursor --- */

void pawl__telemetry_cursor_done(struct telemetry_cursor *cursor)
{
    free(cursor->generations);
    free(cursor->seen);
    *cursor = (struct telemetry_cursor){ .current = 0 };
}

pawl_status pawl__telemetry_cursor_add(struct telemetry_cursor *cursor,
                                       const struct telemetry_generation *generation,
                                       pawl_error *reterr)
{
    struct telemetry_generation *generations = pawl__grow(cursor->generations,
                                                          cursor->generation_count,
                                                          &cursor->generation_room,
                                                          sizeof(*generations));

    TRY(pawl__check_memory(generations, "a generation", reterr));
    cursor->generations = generations;
    generations[cursor->generation_count++] = *generation;
    return PAWL_OK;
}

pawl_status pawl__telemetry_cursor_see(struct telemetry_cursor *cursor,
                                       const struct telemetry_epoch *epoch,
                                       const struct telemetry_id *generation,
                                       pawl_error *reterr)
{
    struct telemetry_seen *seen =
        pawl__grow(cursor->seen, cursor->seen_count, &cursor->seen_room, sizeof(*seen));

    TRY(pawl__check_memory(seen, "an epoch", reterr));
    cursor->seen = seen;
    seen[cursor->seen_count++] = (struct telemetry_seen){ *epoch, *generation };
    return PAWL_OK;
}

pawl_status pawl__telemetry_cursor_copy(struct telemetry_cursor *cursor,
                                        const struct telemetry_cursor *from,
                                        pawl_error *reterr)
{
    AUTO(pawl__telemetry_cursor_done)
    struct telemetry_cursor copy = { .session = from->session, .current = from->current };

    for (size_t i = 0; i < from->generation_count; i++) {
        TRY(pawl__telemetry_cursor_add(&copy, &from->generations[i], reterr));
    }
    for (size_t i = 0; i < from->seen_count; i++) {
        TRY(pawl__telemetry_cursor_see(
            &copy, &from->seen[i].epoch, &from->seen[i].generation, reterr));
    }
    pawl__telemetry_cursor_done(cursor);
    *cursor = copy;
    copy = (struct telemetry_cursor){ .current = 0 };
    return PAWL_OK;
}

pawl_status pawl__telemetry_cursor_begin(struct telemetry_cursor *cursor,
                                         const struct telemetry_id *session,
                                         pawl_error *reterr)
{
    AUTO(pawl__telemetry_cursor_done) struct telemetry_cursor fresh = { .session = *session };
    const struct telemetry_generation first = { .first = 1 };

    TRY(pawl__telemetry_cursor_add(&fresh, &first, reterr));
    pawl__telemetry_cursor_done(cursor);
    *cursor = fresh;
    fresh = (struct telemetry_cursor){ .current = 0 };
    return PAWL_OK;
}

struct telemetry_generation *pawl__telemetry_current(const struct telemetry_cursor *cursor)
{
    REQUIRE(cursor->current < cursor->generation_count);
    return &cursor->generations[cursor->current];
}

static struct telemetry_generation *find_generation(const struct telemetry_cursor *cursor,
                                                    const struct telemetry_id *id)
{
    for (size_t i = 0; i < cursor->generation_count; i++) {
        if (pawl__telemetry_id_equal(&cursor->generations[i].id, id)) {
            return &cursor->generations[i];
        }
    }
    return NULL;
}

static const struct telemetry_seen *find_seen(const struct telemetry_cursor *cursor,
                                              const struct telemetry_id *id)
{
    for (size_t i = cursor->seen_count; i > 0; i--) {
        if (pawl__telemetry_id_equal(&cursor->seen[i - 1].epoch.id, id)) {
            return &cursor->seen[i - 1];
        }
    }
    return NULL;
}

struct telemetry_id pawl__telemetry_known_epoch(const struct telemetry_cursor *cursor)
{
    for (size_t i = cursor->seen_count; i > 0; i--) {
        if (pawl__telemetry_id_equal(&cursor->seen[i - 1].generation,
                                     &pawl__telemetry_current(cursor)->id)) {
            return cursor->seen[i - 1].epoch.id;
        }
    }
    return (struct telemetry_id){ "" };
}

uint64_t pawl__telemetry_reach(const struct telemetry_cursor *cursor,
                               const struct telemetry_id *generation)
{
    const struct telemetry_generation *at = pawl__telemetry_current(cursor);
    uint64_t reach = TELEMETRY_SEQ_MAX;

    while (!pawl__telemetry_id_equal(&at->id, generation)) {
        if (pawl__telemetry_id_is_none(&at->id)) {
            return 0; /* not an ancestor of the current one */
        }
        reach = MIN(reach, at->first - 1);
        at = find_generation(cursor, &at->parent);
        if (at == NULL) {
            return 0;
        }
    }
    return reach;
}

/* --- who is it? --- */

static pawl_status add_gap(struct telemetry_gaps *gaps,
                           const struct telemetry_gap *like,
                           const struct telemetry_id *generation,
                           uint64_t start,
                           uint64_t end,
                           pawl_error *reterr)
{
    struct telemetry_gap gap = *like;

    if (start > end) {
        return PAWL_OK;
    }
    gap.generation = *generation;
    gap.start = start;
    gap.end = end;
    return pawl__telemetry_gaps_add(gaps, &gap, reterr);
}

/* What was known to be given and never came. */
static pawl_status lose_tail(struct telemetry_generation *generation,
                             enum telemetry_gap_reason reason,
                             const struct telemetry_gap *like,
                             struct telemetry_gaps *gaps,
                             pawl_error *reterr)
{
    struct telemetry_gap lost = *like;

    lost.status = TELEMETRY_GAP_PERMANENT;
    lost.reason = reason;
    TRY(add_gap(
        gaps, &lost, &generation->id, generation->last + 1, generation->high_water, reterr));
    generation->last = MAX(generation->last, generation->high_water);
    return PAWL_OK;
}

/* Rows below the fork are still those of the generation that it forked from, and the agent has them. */
static pawl_status owe(struct telemetry_generation *generation,
                       uint64_t up_to,
                       const struct telemetry_gap *like,
                       struct telemetry_gaps *gaps,
                       pawl_error *reterr)
{
    struct telemetry_gap owed = *like;

    owed.status = TELEMETRY_GAP_DETECTED;
    owed.reason = TELEMETRY_GAP_FORK;
    return add_gap(gaps, &owed, &generation->id, generation->last + 1, up_to, reterr);
}

/* Up to which id the rows of an epoch are those of its generation: another copy of the database may have gone on from the
 * middle of it. */
static uint64_t bound_of(const struct telemetry_cursor *cursor, const struct telemetry_seen *seen)
{
    for (size_t i = (size_t)(seen - cursor->seen) + 1; i < cursor->seen_count; i++) {
        if (pawl__telemetry_id_equal(&cursor->seen[i].generation, &seen->generation)) {
            return cursor->seen[i].epoch.first - 1;
        }
    }
    return TELEMETRY_SEQ_MAX;
}

static pawl_status fork_at(struct telemetry_cursor *cursor,
                           struct telemetry_generation *base,
                           const struct telemetry_epoch *epoch,
                           uint64_t first,
                           const struct telemetry_gap *like,
                           struct telemetry_gaps *gaps,
                           pawl_error *reterr)
{
    struct telemetry_generation *left = pawl__telemetry_current(cursor);
    const struct telemetry_generation next = {
        .id = epoch->id,
        .parent = base->id,
        .first = first,
        .last = first - 1,
        .high_water = first - 1,
    };

    TRY(owe(base, first - 1, like, gaps, reterr));
    base->last = MAX(base->last, first - 1);
    TRY(lose_tail(left, TELEMETRY_GAP_FORK, like, gaps, reterr));
    TRY(pawl__telemetry_cursor_add(cursor, &next, reterr));
    cursor->current = cursor->generation_count - 1;
    return PAWL_OK;
}

/* The first epoch of the page that we have not seen, and the newest before it that we have. */
static size_t first_unseen(const struct telemetry_cursor *cursor,
                           const struct telemetry_page *page,
                           const struct telemetry_seen **ret_common)
{
    size_t unseen = 0;

    *ret_common = NULL;
    for (size_t i = 0; i < page->epoch_count; i++) {
        const struct telemetry_seen *seen = find_seen(cursor, &page->epochs[i].id);
        if (seen != NULL) {
            *ret_common = seen;
            unseen = i + 1;
        }
    }
    return unseen;
}

static pawl_status see_rest(struct telemetry_cursor *cursor,
                            const struct telemetry_page *page,
                            size_t from,
                            pawl_error *reterr)
{
    const struct telemetry_id generation = pawl__telemetry_current(cursor)->id;

    for (size_t i = from; i < page->epoch_count; i++) {
        TRY(pawl__telemetry_cursor_see(cursor, &page->epochs[i], &generation, reterr));
    }
    return PAWL_OK;
}

static pawl_status check_mark(const struct telemetry_cursor *cursor,
                              const struct telemetry_page *page,
                              pawl_error *reterr)
{
    const struct telemetry_generation *current = pawl__telemetry_current(cursor);
    uint64_t given = MAX(current->last, current->high_water);

    if (page->high_water >= given) {
        return PAWL_OK;
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "the agent's sequence went back from %" PRIu64 " to %" PRIu64
                      " without a new epoch",
                      given,
                      page->high_water);
}

pawl_status pawl__telemetry_identify(struct telemetry_cursor *cursor,
                                     const struct telemetry_page *page,
                                     const struct telemetry_gap *like,
                                     enum telemetry_identity *ret_identity,
                                     struct telemetry_gaps *gaps,
                                     pawl_error *reterr)
{
    const struct telemetry_seen *common;

    if (!pawl__telemetry_id_equal(&cursor->session, &page->session)) {
        *ret_identity = TELEMETRY_OTHER_SESSION;
        return PAWL_OK;
    }
    size_t unseen = first_unseen(cursor, page, &common);
    struct telemetry_generation *current = pawl__telemetry_current(cursor);
    struct telemetry_generation *base =
        common == NULL ? current : find_generation(cursor, &common->generation);
    REQUIRE(base != NULL);
    *ret_identity = TELEMETRY_SAME;
    const struct telemetry_epoch *next = unseen < page->epoch_count ? &page->epochs[unseen] : NULL;
    uint64_t bound = common == NULL ? TELEMETRY_SEQ_MAX : bound_of(cursor, common);
    if (next != NULL
        && (base != current || bound < next->first - 1
            || next->first <= MAX(current->last, current->high_water))) {
        uint64_t first = bound < next->first ? bound + 1 : next->first;
        TRY(fork_at(cursor, base, next, first, like, gaps, reterr));
        if (common != NULL && first < next->first) { /* the rest of that epoch is in it, too */
            const struct telemetry_epoch rest = { common->epoch.id, first };
            TRY(pawl__telemetry_cursor_see(cursor, &rest, &next->id, reterr));
        }
        *ret_identity = TELEMETRY_FORKED;
    } else if (base != current) {
        return pawl__fail(
            reterr, PAWL_INVALID, "the agent's database is an older one, and was not opened since");
    }
    TRY(see_rest(cursor, page, unseen, reterr));
    return check_mark(cursor, page, reterr);
}

pawl_status pawl__telemetry_end_session(struct telemetry_cursor *cursor,
                                        const struct telemetry_gap *like,
                                        struct telemetry_gaps *gaps,
                                        pawl_error *reterr)
{
    return lose_tail(pawl__telemetry_current(cursor), TELEMETRY_GAP_SESSION, like, gaps, reterr);
}

/* --- rows --- */

static pawl_status pass_retention(struct telemetry_generation *at,
                                  const struct telemetry_page *page,
                                  const struct telemetry_gap *like,
                                  struct telemetry_gaps *gaps,
                                  pawl_error *reterr)
{
    struct telemetry_gap lost = *like;

    if (page->min_available <= at->last + 1) {
        return PAWL_OK;
    }
    lost.status = TELEMETRY_GAP_PERMANENT;
    lost.reason = TELEMETRY_GAP_RETENTION;
    TRY(add_gap(gaps, &lost, &at->id, at->last + 1, page->min_available - 1, reterr));
    at->last = page->min_available - 1;
    return PAWL_OK;
}

pawl_status pawl__telemetry_receive(struct telemetry_cursor *cursor,
                                    const struct telemetry_page *page,
                                    size_t from,
                                    size_t to,
                                    const struct telemetry_gap *like,
                                    struct telemetry_gaps *gaps,
                                    pawl_error *reterr)
{
    struct telemetry_generation *at = pawl__telemetry_current(cursor);
    struct telemetry_gap hole = *like;

    hole.status = TELEMETRY_GAP_SUSPECTED;
    hole.reason = TELEMETRY_GAP_HOLE;
    TRY(check_mark(cursor, page, reterr));
    TRY(pass_retention(at, page, like, gaps, reterr));
    if (page->count == 0 && at->last < page->high_water) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the agent sent no row after %" PRIu64
                          ", and says that it has given %" PRIu64,
                          at->last,
                          page->high_water);
    }
    for (size_t i = from; i < to; i++) {
        TRY(add_gap(gaps, &hole, &at->id, at->last + 1, page->rows[i].seq_id - 1, reterr));
        at->last = page->rows[i].seq_id;
    }
    at->high_water = MAX(at->high_water, page->high_water);
    return PAWL_OK;
}
