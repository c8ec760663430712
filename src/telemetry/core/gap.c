#include "telemetry/core/gap.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/grow.h"

static const char *const status_names[] = {
    [TELEMETRY_GAP_SUSPECTED] = "suspected",   [TELEMETRY_GAP_DETECTED] = "detected",
    [TELEMETRY_GAP_RECOVERING] = "recovering", [TELEMETRY_GAP_RECOVERED] = "recovered",
    [TELEMETRY_GAP_PERMANENT] = "permanent",
};
static const char *const reason_names[] = {
    [TELEMETRY_GAP_HOLE] = "hole",         [TELEMETRY_GAP_RETENTION] = "retention",
    [TELEMETRY_GAP_SESSION] = "session",   [TELEMETRY_GAP_FORK] = "fork",
    [TELEMETRY_GAP_ATTEMPTS] = "attempts",
};

const char *pawl__telemetry_gap_status_name(enum telemetry_gap_status status)
{
    REQUIRE((size_t)status < COUNT_OF(status_names));
    return status_names[status];
}

pawl_status pawl__telemetry_gap_status_parse(pawl_view name,
                                             enum telemetry_gap_status *ret_status,
                                             pawl_error *reterr)
{
    size_t i = pawl__view_index(name, status_names, COUNT_OF(status_names));

    if (i == COUNT_OF(status_names)) {
        return pawl__fail(reterr, PAWL_INVALID, "no gap status '%.*s'", VIEW_ARGS(name));
    }
    *ret_status = (enum telemetry_gap_status)i;
    return PAWL_OK;
}

const char *pawl__telemetry_gap_reason_name(enum telemetry_gap_reason reason)
{
    REQUIRE((size_t)reason < COUNT_OF(reason_names));
    return reason_names[reason];
}

pawl_status pawl__telemetry_gap_reason_parse(pawl_view name,
                                             enum telemetry_gap_reason *ret_reason,
                                             pawl_error *reterr)
{
    size_t i = pawl__view_index(name, reason_names, COUNT_OF(reason_names));

    if (i == COUNT_OF(reason_names)) {
        return pawl__fail(reterr, PAWL_INVALID, "no reason of a gap '%.*s'", VIEW_ARGS(name));
    }
    *ret_reason = (enum telemetry_gap_reason)i;
    return PAWL_OK;
}

bool pawl__telemetry_gap_is_open(enum telemetry_gap_status status)
{
    return status != TELEMETRY_GAP_RECOVERED && status != TELEMETRY_GAP_PERMANENT;
}

pawl_status pawl__telemetry_gaps_add(struct telemetry_gaps *gaps,
                                     const struct telemetry_gap *gap,
                                     pawl_error *reterr)
{
    struct telemetry_gap *at = pawl__grow(gaps->at, gaps->count, &gaps->room, sizeof(*at));

    TRY(pawl__check_memory(at, "a gap", reterr));
    gaps->at = at;
    at[gaps->count++] = *gap;
    return PAWL_OK;
}

void pawl__telemetry_gaps_done(struct telemetry_gaps *gaps)
{
    free(gaps->at);
    *gaps = (struct telemetry_gaps){ .at = NULL };
}

bool pawl__telemetry_gap_grace_is_over(const struct telemetry_gap *gap,
                                       const struct telemetry_gap_rules *rules,
                                       int64_t now_ns)
{
    int64_t since_ns = gap->run == rules->run ? gap->seen_ns : rules->run_began_ns;

    return now_ns - since_ns >= rules->grace_ns;
}

/* --- an answer --- */

struct judging {
    const struct telemetry_gap *gap;
    const struct telemetry_gap_rules *rules;
    struct telemetry_gaps *changes;
    struct telemetry_gap open; /* what a piece becomes that is still missing */
    size_t before;             /* changes before the first of this gap */
};

static pawl_status add_piece(struct judging *judging,
                             uint64_t start,
                             uint64_t end,
                             const struct telemetry_gap *like,
                             pawl_error *reterr)
{
    struct telemetry_gap piece = *like;

    if (start > end) {
        return PAWL_OK;
    }
    piece.id =
        judging->changes->count == judging->before ? judging->gap->id : 0; /* the first keeps it */
    piece.start = start;
    piece.end = end;
    return pawl__telemetry_gaps_add(judging->changes, &piece, reterr);
}

static struct telemetry_gap open_piece(const struct telemetry_gap *gap,
                                       const struct telemetry_gap_rules *rules,
                                       bool has_progress)
{
    struct telemetry_gap open = *gap;

    open.status = TELEMETRY_GAP_DETECTED;
    if (has_progress) {
        open.attempts = 0;
    } else if (gap->status != TELEMETRY_GAP_SUSPECTED) {
        open.attempts++;
    }
    if (open.attempts >= rules->attempts_max) {
        open.status = TELEMETRY_GAP_PERMANENT;
        open.reason = TELEMETRY_GAP_ATTEMPTS;
    }
    return open;
}

static pawl_status add_lost(struct judging *judging, uint64_t below, pawl_error *reterr)
{
    struct telemetry_gap lost = *judging->gap;

    lost.status = TELEMETRY_GAP_PERMANENT;
    lost.reason = TELEMETRY_GAP_RETENTION;
    return add_piece(judging, lost.start, MIN(below - 1, lost.end), &lost, reterr);
}

static pawl_status add_missing(struct judging *judging,
                               const struct telemetry_page *page,
                               uint64_t next,
                               pawl_error *reterr)
{
    for (size_t i = 0; i < page->count; i++) {
        TRY(add_piece(judging, next, page->rows[i].seq_id - 1, &judging->open, reterr));
        next = page->rows[i].seq_id + 1;
    }
    return add_piece(judging, next, judging->gap->end, &judging->open, reterr);
}

pawl_status pawl__telemetry_gap_judge(const struct telemetry_gap *gap,
                                      const struct telemetry_page *page,
                                      const struct telemetry_gap_rules *rules,
                                      struct telemetry_gaps *changes,
                                      pawl_error *reterr)
{
    struct judging judging = {
        gap, rules, changes, open_piece(gap, rules, page->count > 0), changes->count,
    };

    if (page->min_available > gap->start) {
        TRY(add_lost(&judging, page->min_available, reterr));
    }
    TRY(add_missing(&judging, page, MAX(gap->start, page->min_available), reterr));
    if (changes->count == judging.before) { /* every id is there */
        struct telemetry_gap whole = *gap;
        whole.status = TELEMETRY_GAP_RECOVERED;
        return pawl__telemetry_gaps_add(changes, &whole, reterr);
    }
    return PAWL_OK;
}

pawl_status pawl__telemetry_gap_cut(const struct telemetry_gap *gap,
                                    uint64_t limit,
                                    enum telemetry_gap_reason reason,
                                    struct telemetry_gaps *changes,
                                    pawl_error *reterr)
{
    struct telemetry_gap lost = *gap;

    if (gap->end <= limit) {
        return PAWL_OK;
    }
    lost.status = TELEMETRY_GAP_PERMANENT;
    lost.reason = reason;
    if (gap->start <= limit) {
        struct telemetry_gap kept = *gap;
        kept.end = limit;
        TRY(pawl__telemetry_gaps_add(changes, &kept, reterr));
        lost.id = 0;
        lost.start = limit + 1;
    }
    return pawl__telemetry_gaps_add(changes, &lost, reterr);
}

void pawl__telemetry_share(
    const size_t *waiting, size_t agents, size_t first, size_t budget, size_t *ret_shares)
{
    bool any = budget > 0 && agents > 0;

    for (size_t i = 0; i < agents; i++) {
        ret_shares[i] = 0;
    }
    while (any) {
        any = false;
        for (size_t i = 0; i < agents && budget > 0; i++) {
            size_t agent = (first + i) % agents;
            if (ret_shares[agent] < waiting[agent]) {
                ret_shares[agent]++;
                budget--;
                any = true;
            }
        }
        any = any && budget > 0;
    }
}
