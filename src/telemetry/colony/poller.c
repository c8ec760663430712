#include "telemetry/colony/poller.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "telemetry/colony/internal.h"

struct telemetry_colony_settings pawl__telemetry_colony_settings_default(void)
{
    return (struct telemetry_colony_settings){
        .grace_ns = 10 * NS_PER_S,
        .attempts_max = 3,
        .ranges_max = 100,
        .pages_max = 1000,
    };
}

void pawl__telemetry_colony_init(struct telemetry_colony *colony,
                                 struct telemetry_colony_store *store,
                                 struct pawl__clock *clock,
                                 const struct telemetry_colony_settings *settings,
                                 uint64_t run)
{
    *colony = (struct telemetry_colony){
        .store = store,
        .clock = clock,
        .settings = *settings,
        .rules = {
            .run = run,
            .run_began_ns = pawl__boot_ns(clock),
            .grace_ns = settings->grace_ns,
            .attempts_max = settings->attempts_max,
        },
    };
}

void pawl__telemetry_feed_done(struct telemetry_feed *feed)
{
    pawl__telemetry_cursor_done(&feed->cursor);
    pawl__telemetry_cursor_done(&feed->next);
    pawl__telemetry_cursor_done(&feed->ended);
    pawl__telemetry_gaps_done(&feed->gaps);
    pawl__telemetry_page_done(&feed->page);
}

int64_t pawl__telemetry_lag_ns(const struct telemetry_colony *colony,
                               const struct telemetry_feed *feed)
{
    return feed->met_ns == 0 ? -1 : pawl__monotonic_ns(colony->clock) - feed->met_ns;
}

struct telemetry_gap pawl__telemetry_new_gap(const struct telemetry_colony *colony,
                                             const struct telemetry_id *session)
{
    return (struct telemetry_gap){
        .session = *session,
        .run = colony->rules.run,
        .seen_ns = pawl__boot_ns(colony->clock),
    };
}

pawl_status pawl__telemetry_feed_load(struct telemetry_colony *colony,
                                      struct telemetry_feed *feed,
                                      pawl_error *reterr)
{
    if (feed->is_loaded) {
        return PAWL_OK;
    }
    TRY(colony->store->ops->load(
        colony->store, feed->agent, feed->type, NULL, &feed->cursor, reterr));
    feed->is_loaded = true;
    return PAWL_OK;
}

/* --- ask --- */

static bool is_new(const struct telemetry_cursor *cursor)
{
    return pawl__telemetry_id_is_none(&cursor->session);
}

pawl_status pawl__telemetry_feed_ask(struct telemetry_colony *colony,
                                     struct telemetry_feed *feed,
                                     uint64_t start,
                                     uint64_t end,
                                     pawl_error *reterr)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(feed->type);
    struct telemetry_query query = {
        .type = feed->type,
        .start = start,
        .end = end,
        .may_ack = true,
        .rows_max = colony->settings.rows_max == 0
                        ? info->batch_default
                        : MIN(colony->settings.rows_max, info->batch_max),
    };

    if (!is_new(&feed->cursor)) {
        query.ack = pawl__telemetry_current(&feed->cursor)->last;
        query.known_epoch = pawl__telemetry_known_epoch(&feed->cursor);
    }
    TRY(feed->source->query(feed->source, &query, &feed->page, reterr));
    TRY(pawl__telemetry_page_check(&query, &feed->page, reterr));
    return pawl__telemetry_page_decode(feed->type, &feed->page, reterr);
}

/* --- decide --- */

/* Every open gap of the feed in this session loses what the agent cannot have any more. */
static pawl_status cut_gaps(struct telemetry_colony *colony,
                            struct telemetry_feed *feed,
                            const struct telemetry_id *session,
                            enum telemetry_gap_reason reason,
                            pawl_error *reterr)
{
    AUTO(pawl__telemetry_gaps_done) struct telemetry_gaps open = { .at = NULL };
    const struct telemetry_gap_query query = {
        feed->agent, feed->type, TELEMETRY_GAPS_OPEN, *session, 0, SIZE_MAX,
    };

    TRY(colony->store->ops->gaps(colony->store, &query, &open, reterr));
    for (size_t i = 0; i < open.count; i++) {
        uint64_t limit = reason == TELEMETRY_GAP_SESSION
                             ? 0
                             : pawl__telemetry_reach(&feed->next, &open.at[i].generation);
        TRY(pawl__telemetry_gap_cut(&open.at[i], limit, reason, &feed->gaps, reterr));
    }
    return PAWL_OK;
}

/* The new session, where we were in it if it was here before. */
static pawl_status change_session(struct telemetry_colony *colony,
                                  struct telemetry_feed *feed,
                                  pawl_error *reterr)
{
    const struct telemetry_id session = feed->page.session;

    if (!is_new(&feed->cursor)) {
        const struct telemetry_gap like = pawl__telemetry_new_gap(colony, &feed->cursor.session);
        TRY(pawl__telemetry_cursor_copy(&feed->ended, &feed->cursor, reterr));
        TRY(pawl__telemetry_end_session(&feed->ended, &like, &feed->gaps, reterr));
        TRY(cut_gaps(colony, feed, &feed->cursor.session, TELEMETRY_GAP_SESSION, reterr));
    }
    TRY(colony->store->ops->load(
        colony->store, feed->agent, feed->type, &session, &feed->next, reterr));
    return is_new(&feed->next) ? pawl__telemetry_cursor_begin(&feed->next, &session, reterr)
                               : PAWL_OK;
}

static pawl_status decide(struct telemetry_colony *colony,
                          struct telemetry_feed *feed,
                          pawl_error *reterr)
{
    const struct telemetry_gap like = pawl__telemetry_new_gap(colony, &feed->page.session);
    enum telemetry_identity identity = TELEMETRY_OTHER_SESSION;
    size_t seen = feed->cursor.seen_count;

    if (!is_new(&feed->cursor)) {
        TRY(pawl__telemetry_cursor_copy(&feed->next, &feed->cursor, reterr));
        TRY(pawl__telemetry_identify(
            &feed->next, &feed->page, &like, &identity, &feed->gaps, reterr));
    }
    switch (identity) {
    case TELEMETRY_OTHER_SESSION:
        TRY(change_session(colony, feed, reterr));
        feed->identity_changed = true;
        break;
    case TELEMETRY_FORKED:
        TRY(cut_gaps(colony, feed, &feed->cursor.session, TELEMETRY_GAP_FORK, reterr));
        feed->identity_changed = true;
        break;
    default:
        TRY(pawl__telemetry_receive(
            &feed->next, &feed->page, 0, feed->page.count, &like, &feed->gaps, reterr));
        feed->identity_changed = feed->next.seen_count != seen;
        feed->has_pending = true;
        return PAWL_OK;
    }
    feed->page.count = 0; /* they are asked for again, from where the new cursor stands */
    feed->has_pending = true;
    return PAWL_OK;
}

static void forget_pending(struct telemetry_feed *feed)
{
    feed->has_pending = false;
    feed->identity_changed = false;
    feed->gaps.count = 0;
    pawl__telemetry_cursor_done(&feed->ended);
}

static pawl_status fetch(struct telemetry_colony *colony,
                         struct telemetry_feed *feed,
                         pawl_error *reterr)
{
    forget_pending(feed);
    TRY(pawl__telemetry_feed_load(colony, feed, reterr));
    uint64_t start = is_new(&feed->cursor) ? 0 : pawl__telemetry_current(&feed->cursor)->last;
    TRY(pawl__telemetry_feed_ask(colony, feed, start, 0, reterr));
    return decide(colony, feed, reterr);
}

/* --- commit --- */

static struct telemetry_commit commit_of(struct telemetry_feed *feed, size_t from, size_t to)
{
    return (struct telemetry_commit){
        .agent = feed->agent,
        .type = feed->type,
        .before = &feed->cursor,
        .cursor = &feed->next,
        .identity_changed = feed->identity_changed,
        .ended = is_new(&feed->ended) ? NULL : &feed->ended,
        .session = feed->next.session,
        .generation = pawl__telemetry_current(&feed->next)->id,
        .rows = feed->page.count == 0 ? NULL : &feed->page.rows[from],
        .row_count = to - from,
        .gaps = feed->gaps.at,
        .gap_count = feed->gaps.count,
    };
}

static void count_change(struct telemetry_feed_counts *counts, const struct telemetry_gap *gap)
{
    uint64_t ids = gap->end - gap->start + 1;

    switch (gap->status) {
    case TELEMETRY_GAP_SUSPECTED:
        counts->suspected += ids;
        break;
    case TELEMETRY_GAP_DETECTED:
        counts->detected += ids;
        break;
    case TELEMETRY_GAP_PERMANENT:
        counts->permanent += ids;
        break;
    default:
        break;
    }
}

void pawl__telemetry_feed_count(struct telemetry_feed *feed, size_t from, size_t to)
{
    for (size_t i = 0; i < feed->gaps.count; i++) {
        count_change(&feed->counts, &feed->gaps.at[i]);
    }
    for (size_t i = from; i < to; i++) {
        feed->counts.rows += feed->page.rows[i].reason == NULL;
        feed->counts.rejected += feed->page.rows[i].reason != NULL;
    }
}

static void committed(struct telemetry_feed *feed, size_t from, size_t to)
{
    struct telemetry_cursor kept = feed->cursor;
    bool is_other = !pawl__telemetry_id_equal(&feed->cursor.session, &feed->next.session);

    pawl__telemetry_feed_count(feed, from, to);
    feed->counts.sessions += is_other;
    feed->counts.forks += !is_other && feed->cursor.current != feed->next.current;
    feed->cursor = feed->next;
    feed->next = kept;
    forget_pending(feed);
}

/* --- one bad row --- */

static pawl_status commit_part(struct telemetry_colony *colony,
                               struct telemetry_feed *feed,
                               size_t from,
                               size_t to,
                               pawl_error *reterr)
{
    const struct telemetry_gap like = pawl__telemetry_new_gap(colony, &feed->page.session);
    enum telemetry_identity identity = TELEMETRY_SAME;

    feed->gaps.count = 0;
    TRY(pawl__telemetry_cursor_copy(&feed->next, &feed->cursor, reterr));
    TRY(pawl__telemetry_identify(&feed->next, &feed->page, &like, &identity, &feed->gaps, reterr));
    TRY(pawl__telemetry_receive(&feed->next, &feed->page, from, to, &like, &feed->gaps, reterr));
    feed->identity_changed = true;
    const struct telemetry_commit commit = commit_of(feed, from, to);
    TRY(colony->store->ops->commit(colony->store, &commit, 1, reterr));
    committed(feed, from, to);
    return PAWL_OK;
}

static bool is_rows_fault(pawl_status status)
{
    return status == PAWL_INVALID;
}

/* A transaction of these rows was refused for what is in them. */
static pawl_status commit_halves(struct telemetry_colony *colony,
                                 struct telemetry_feed *feed,
                                 size_t from,
                                 size_t to,
                                 pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = commit_part(colony, feed, from, to, &error);

    if (!is_rows_fault(status)) {
        return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
    }
    if (to - from > 1) {
        size_t middle = from + (to - from) / 2;
        TRY(commit_halves(colony, feed, from, middle, reterr));
        return commit_halves(colony, feed, middle, to, reterr);
    }
    if (to == from || feed->page.rows[from].reason != NULL) {
        return pawl__fail_with(reterr, status, &error); /* not the row's fault after all */
    }
    pawl_view reason;
    if (!pawl__arena_copy(&feed->page.arena, pawl_view_of(error.message), &reason)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a reason");
    }
    feed->page.rows[from].values = NULL;
    feed->page.rows[from].reason = reason.data;
    return commit_part(colony, feed, from, to, reterr);
}

static pawl_status commit_alone(struct telemetry_colony *colony,
                                struct telemetry_feed *feed,
                                pawl_error *reterr)
{
    const struct telemetry_commit commit = commit_of(feed, 0, feed->page.count);
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = colony->store->ops->commit(colony->store, &commit, 1, &error);

    if (status == PAWL_OK) {
        committed(feed, 0, feed->page.count);
        return PAWL_OK;
    }
    return is_rows_fault(status) && feed->page.count > 0
               ? commit_halves(colony, feed, 0, feed->page.count, reterr)
               : pawl__fail_with(reterr, status, &error);
}

/* --- a round --- */

static void fail_feed(struct telemetry_feed *feed, pawl_status status, const pawl_error *error)
{
    feed->status = status;
    feed->error = *error;
    feed->counts.failures++;
    feed->is_drained = true; /* nothing more in this poll */
    feed->is_loaded = false; /* a commit may have happened although it failed */
    forget_pending(feed);
}

static void note_mark(struct telemetry_colony *colony, struct telemetry_feed *feed, bool was_rows)
{
    const struct telemetry_generation *current = pawl__telemetry_current(&feed->cursor);

    if (was_rows && current->last >= current->high_water) {
        feed->is_drained = true;
        feed->met_ns = pawl__monotonic_ns(colony->clock);
    }
}

static pawl_status commit_together(struct telemetry_colony *colony,
                                   struct telemetry_feed *feeds,
                                   size_t count,
                                   pawl_error *reterr)
{
    struct telemetry_commit *commits = calloc(count + 1, sizeof(*commits));
    size_t pending = 0;

    TRY(pawl__check_memory(commits, "a transaction", reterr));
    for (size_t i = 0; i < count; i++) {
        if (feeds[i].has_pending) {
            commits[pending++] = commit_of(&feeds[i], 0, feeds[i].page.count);
        }
    }
    pawl_status status = pending == 0
                             ? PAWL_OK
                             : colony->store->ops->commit(colony->store, commits, pending, reterr);
    free(commits);
    return status;
}

/* After IO nobody knows whether the transaction of all was committed: then the store has to be asked first. */
static void settle(struct telemetry_colony *colony,
                   struct telemetry_feed *feed,
                   pawl_status together,
                   const pawl_error *why)
{
    pawl_error error = *why;
    pawl_status status = together;
    bool was_rows = is_new(&feed->ended) && !is_new(&feed->cursor)
                    && feed->cursor.current == feed->next.current;

    if (together == PAWL_OK) {
        committed(feed, 0, feed->page.count);
    } else if (together != PAWL_IO) {
        status = commit_alone(colony, feed, &error);
    }
    if (status == PAWL_OK) {
        note_mark(colony, feed, was_rows);
    } else {
        fail_feed(feed, status, &error);
    }
}

static void fetch_or_fail(struct telemetry_colony *colony, struct telemetry_feed *feed)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = fetch(colony, feed, &error);

    if (status != PAWL_OK) {
        fail_feed(feed, status, &error);
    }
}

static bool poll_round(struct telemetry_colony *colony, struct telemetry_feed *feeds, size_t count)
{
    pawl_error error = PAWL_ERROR_INIT;
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (!feeds[i].is_drained) {
            fetch_or_fail(colony, &feeds[i]);
            any = true;
        }
    }
    pawl_status status = commit_together(colony, feeds, count, &error);
    for (size_t i = 0; i < count; i++) {
        if (feeds[i].has_pending) {
            settle(colony, &feeds[i], status, &error);
        }
    }
    return any;
}

void pawl__telemetry_poll(struct telemetry_colony *colony,
                          struct telemetry_feed *feeds,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        feeds[i].is_drained = false;
        feeds[i].status = PAWL_OK;
    }
    for (uint32_t page = 0; page < colony->settings.pages_max && poll_round(colony, feeds, count);
         page++) {
    }
}
