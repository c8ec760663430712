/* Asks again for what is missing: suspected gaps after their grace, detected ones in rounds. */
#include <stdlib.h>

#include "base/core/error.h"
#include "telemetry/colony/internal.h"

enum {
    PASSES_MAX = 64
}; /* pages for one range in one round; what is left waits for the next round */

/* Whether the page tells of the database that the gap belongs to, and its range can still be asked for. */
static pawl_status may_answer(struct telemetry_feed *feed,
                              const struct telemetry_gap *gap,
                              bool *ret_may,
                              pawl_error *reterr)
{
    AUTO(pawl__telemetry_cursor_done) struct telemetry_cursor copy = { .current = 0 };
    AUTO(pawl__telemetry_gaps_done) struct telemetry_gaps ignored = { .at = NULL };
    enum telemetry_identity identity = TELEMETRY_OTHER_SESSION;

    TRY(pawl__telemetry_cursor_copy(&copy, &feed->cursor, reterr));
    TRY(pawl__telemetry_identify(&copy, &feed->page, gap, &identity, &ignored, reterr));
    *ret_may = identity == TELEMETRY_SAME
               && pawl__telemetry_id_equal(&gap->session, &feed->cursor.session)
               && gap->end <= pawl__telemetry_reach(&feed->cursor, &gap->generation);
    return PAWL_OK;
}

static pawl_status commit_gaps(struct telemetry_colony *colony,
                               struct telemetry_feed *feed,
                               const struct telemetry_gap *gap,
                               size_t row_count,
                               pawl_error *reterr)
{
    const struct telemetry_commit commit = {
        .agent = feed->agent,
        .type = feed->type,
        .session = gap->session,
        .generation = gap->generation,
        .rows = feed->page.rows,
        .row_count = row_count,
        .gaps = feed->gaps.at,
        .gap_count = feed->gaps.count,
    };

    return colony->store->ops->commit(colony->store, &commit, 1, reterr);
}

static pawl_status mark_recovering(struct telemetry_colony *colony,
                                   struct telemetry_feed *feed,
                                   struct telemetry_gap *gap,
                                   pawl_error *reterr)
{
    struct telemetry_gap marked = *gap;

    if (gap->status != TELEMETRY_GAP_DETECTED) {
        return PAWL_OK;
    }
    marked.status = TELEMETRY_GAP_RECOVERING;
    feed->gaps.count = 0;
    TRY(pawl__telemetry_gaps_add(&feed->gaps, &marked, reterr));
    TRY(commit_gaps(colony, feed, &marked, 0, reterr));
    *gap = marked;
    return PAWL_OK;
}

/* The first piece that is still open goes on in this round when there was progress. */
static bool next_piece(const struct telemetry_feed *feed, struct telemetry_gap *gap)
{
    bool has_progress = feed->page.count > 0;

    for (size_t i = 0; i < feed->gaps.count; i++) {
        if (pawl__telemetry_gap_is_open(feed->gaps.at[i].status)) {
            *gap = feed->gaps.at[i];
            return has_progress && gap->start > feed->page.scanned_to;
        }
    }
    return false;
}

static pawl_status ask_once(struct telemetry_colony *colony,
                            struct telemetry_feed *feed,
                            struct telemetry_gap *gap,
                            bool *ret_more,
                            pawl_error *reterr)
{
    bool may = false;

    *ret_more = false;
    TRY(pawl__telemetry_feed_ask(colony, feed, gap->start - 1, gap->end, reterr));
    TRY(may_answer(feed, gap, &may, reterr));
    if (!may) {
        return PAWL_OK; /* the next poll finds out what has become of it */
    }
    feed->gaps.count = 0;
    TRY(pawl__telemetry_gap_judge(gap, &feed->page, &colony->rules, &feed->gaps, reterr));
    TRY(commit_gaps(colony, feed, gap, feed->page.count, reterr));
    feed->counts.recovered += feed->page.count;
    pawl__telemetry_feed_count(feed, 0, feed->page.count);
    *ret_more = next_piece(feed, gap);
    return PAWL_OK;
}

static pawl_status ask_for(struct telemetry_colony *colony,
                           struct telemetry_feed *feed,
                           struct telemetry_gap *gap,
                           pawl_error *reterr)
{
    bool more = true;

    TRY(mark_recovering(colony, feed, gap, reterr));
    for (int i = 0; more && i < PASSES_MAX; i++) {
        TRY(ask_once(colony, feed, gap, &more, reterr));
    }
    return PAWL_OK;
}

/* --- a round --- */

static pawl_status waiting(struct telemetry_colony *colony,
                           struct telemetry_feed *feed,
                           enum telemetry_recovery recovery,
                           struct telemetry_gaps *gaps,
                           pawl_error *reterr)
{
    struct telemetry_gap_query query = {
        .agent = feed->agent,
        .type = feed->type,
        .statuses = recovery == TELEMETRY_RECHECK
                        ? 1u << TELEMETRY_GAP_SUSPECTED
                        : 1u << TELEMETRY_GAP_DETECTED | 1u << TELEMETRY_GAP_RECOVERING,
        .limit = colony->settings.ranges_max,
    };
    size_t kept = 0;

    TRY(pawl__telemetry_feed_load(colony, feed, reterr));
    query.session = feed->cursor.session;
    if (pawl__telemetry_id_is_none(&query.session)) {
        return PAWL_OK;
    }
    TRY(colony->store->ops->gaps(colony->store, &query, gaps, reterr));
    for (size_t i = 0; i < gaps->count; i++) {
        if (recovery == TELEMETRY_RECOVER
            || pawl__telemetry_gap_grace_is_over(
                &gaps->at[i], &colony->rules, pawl__boot_ns(colony->clock))) {
            gaps->at[kept++] = gaps->at[i];
        }
    }
    gaps->count = kept;
    return PAWL_OK;
}

static void recover_feed(struct telemetry_colony *colony,
                         struct telemetry_feed *feed,
                         const struct telemetry_gaps *gaps,
                         size_t share)
{
    for (size_t i = 0; i < share && feed->status == PAWL_OK; i++) {
        pawl_error error = PAWL_ERROR_INIT;
        struct telemetry_gap gap = gaps->at[i];
        feed->status = ask_for(colony, feed, &gap, &error);
        if (feed->status != PAWL_OK) {
            feed->error = error;
            feed->is_loaded = false;
        }
    }
}

struct round {
    struct telemetry_gaps *gaps; /* per feed, as the next two */
    size_t *waiting;
    size_t *shares;
};

static void run_round(struct telemetry_colony *colony,
                      struct telemetry_feed *feeds,
                      size_t count,
                      enum telemetry_recovery recovery,
                      struct round *round)
{
    for (size_t i = 0; i < count; i++) {
        pawl_error error = PAWL_ERROR_INIT;
        feeds[i].status = waiting(colony, &feeds[i], recovery, &round->gaps[i], &error);
        if (feeds[i].status != PAWL_OK) {
            feeds[i].error = error;
        }
        round->waiting[i] = feeds[i].status == PAWL_OK ? round->gaps[i].count : 0;
    }
    pawl__telemetry_share(
        round->waiting, count, colony->first, colony->settings.ranges_max, round->shares);
    for (size_t i = 0; i < count; i++) {
        recover_feed(colony, &feeds[i], &round->gaps[i], round->shares[i]);
        pawl__telemetry_gaps_done(&round->gaps[i]);
    }
    colony->first = count == 0 ? 0 : (colony->first + 1) % count;
}

void pawl__telemetry_recover(struct telemetry_colony *colony,
                             struct telemetry_feed *feeds,
                             size_t count,
                             enum telemetry_recovery recovery)
{
    struct round round = {
        calloc(count + 1, sizeof(*round.gaps)),
        calloc(count + 1, sizeof(*round.waiting)),
        calloc(count + 1, sizeof(*round.shares)),
    };

    if (round.gaps != NULL && round.waiting != NULL && round.shares != NULL) {
        run_round(colony, feeds, count, recovery, &round);
    } else {
        for (size_t i = 0; i < count; i++) {
            feeds[i].status =
                pawl__fail(&feeds[i].error, PAWL_NOMEM, "no memory for a round of recovery");
        }
    }
    free(round.gaps);
    free(round.waiting);
    free(round.shares);
}
