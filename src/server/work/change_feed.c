/* The feed of changes for any number of followers.
 *
 * One thread of the node reads the store, whoever follows. It keeps the latest changes in a ring, as the events that are
 * sent, and wakes the streams. A follower is a place in the feed and a filter: while its place is in the ring, it reads
 * from there, on the thread of its connection. One that is further behind gets pages that the thread reads for it.
 * So a follower costs no thread, a change costs one read, and a slow client holds nobody up. server/follow cannot do this:
 * there each follower reads the store itself, on the thread of its connection, which a store that hangs would stop.
 *
 * A follower whose next change was removed in the meantime ends; its client comes back with the id it saw last, and is
 * answered 410. */
#include "server/work/change_feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/thread/shutdown.h"
#include "server/work/change_ring.h"

enum {
    PAGE_MAX = 500,         /* changes of one read */
    PAGE_BYTES = 64 << 10,  /* a follower that is behind gets so much at a time */
    READY_BYTES = 32 << 10, /* and one that is not, at most */
    AGAIN_MS = 1000,        /* a store that failed is read again */
};

struct node_changes {
    struct pawl__lock lock; /* covers everything up to the thread */
    struct pawl__cond changed;
    bool stopping;
    bool news; /* the store may have more, or a follower needs something */
    uint64_t serials;
    struct change_follower *followers;
    struct change_ring ring;

    struct node_work *work;
    struct pawl__clock *clock;
    pawl_work_subscription *subscription; /* the thread's */
    struct pawl__thread thread;
};

static bool passes(const struct change_follower *follower, const struct ring_entry *entry)
{
    return (follower->task_id == NULL || strcmp(follower->task_id, entry->task_id) == 0)
           && (follower->work_type == NULL || strcmp(follower->work_type, entry->work_type) == 0)
           && (follower->statuses == 0 || (follower->statuses >> entry->to & 1) != 0);
}

/* --- followers, on the threads of their connections --- */

/* Adds what the ring has for it. */
static void read_ring_locked(struct node_changes *changes,
                             struct change_follower *follower,
                             struct pawl__buf *events) REQUIRES_LOCK(changes->lock)
{
    struct change_ring *ring = &changes->ring;
    size_t i = pawl__serve_ring_find(ring, &follower->at);

    for (; i < ring->count && events->len < READY_BYTES; i++) {
        const struct ring_entry *entry = pawl__serve_ring_at(ring, i);

        if (passes(follower, entry)) {
            pawl__buf_add(events, (pawl_view){ entry->event, entry->event_len });
        }
        follower->at = entry->position;
    }
    follower->waiting = events->len == 0;
}

bool pawl__serve_follower_next(void *context, struct pawl__buf *events)
{
    struct change_follower *follower = context;
    struct node_changes *changes = follower->changes;

    pawl__lock(&changes->lock);
    if (follower->page.len > 0) {
        *events = follower->page;
        follower->page = (struct pawl__buf)BUF_INIT(EVENT_BYTES_MAX);
    } else if (changes->ring.reading
               && !pawl__serve_position_is_before(&follower->at, &changes->ring.from)) {
        follower->behind = false;
        read_ring_locked(changes, follower, events);
    } else if (!follower->ended) {
        follower->behind = true;
        follower->waiting = true;
        changes->news = true;
        pawl__cond_signal(&changes->changed);
    }
    bool more = events->len > 0 || !(follower->ended || changes->stopping);
    pawl__unlock(&changes->lock);
    return more;
}

struct change_follower *pawl__serve_follower_new(void)
{
    struct change_follower *follower = calloc(1, sizeof(*follower));

    if (follower != NULL) {
        follower->page = (struct pawl__buf)BUF_INIT(EVENT_BYTES_MAX);
    }
    return follower;
}

void pawl__serve_follower_free(struct change_follower *follower)
{
    if (follower != NULL) {
        free(follower->task_id);
        free(follower->work_type);
        pawl__buf_done(&follower->page);
        free(follower);
    }
}

void pawl__serve_follower_leave(void *context)
{
    struct change_follower *follower = context;
    struct node_changes *changes = follower->changes;
    struct pawl__http_stream *stream = follower->stream;

    pawl__lock(&changes->lock);
    if (follower->before != NULL) {
        follower->before->next = follower->next;
    } else {
        changes->followers = follower->next;
    }
    if (follower->next != NULL) {
        follower->next->before = follower->before;
    }
    if (changes->followers == NULL) {
        pawl__serve_ring_end(&changes->ring); /* nobody reads on */
    }
    pawl__unlock(&changes->lock);
    pawl__serve_follower_free(follower);
    pawl__http_stream_release(stream);
}

/* --- the thread: what is new --- */

static void on_news(void *context)
{
    struct node_changes *changes = context;

    pawl__lock(&changes->lock);
    changes->news = true;
    pawl__cond_signal(&changes->changed);
    pawl__unlock(&changes->lock);
}

static void wake_locked(struct node_changes *changes, struct change_follower *follower)
    REQUIRES_LOCK(changes->lock)
{
    REQUIRE(follower->changes == changes);
    follower->waiting = false;
    pawl__http_stream_wake(follower->stream);
}

static void wake_waiting_locked(struct node_changes *changes) REQUIRES_LOCK(changes->lock)
{
    for (struct change_follower *at = changes->followers; at != NULL; at = at->next) {
        if (at->waiting && !at->behind) {
            wake_locked(changes, at);
        }
    }
}

static bool add_to_ring(void *context, const pawl_work_change *change)
{
    struct node_changes *changes = context;
    struct ring_entry entry;
    bool made = pawl__serve_ring_entry_make(change, &entry);

    pawl__lock(&changes->lock);
    if (!made) {
        pawl__serve_ring_end(
            &changes->ring); /* followers read from the store until it is filled anew */
    } else if (!changes->ring.reading) {
        pawl__serve_ring_entry_free(&entry);
    } else {
        pawl__serve_ring_add(&changes->ring, &entry);
    }
    bool reads_on = changes->ring.reading && !changes->stopping;
    pawl__unlock(&changes->lock);
    return reads_on;
}

/* The ring begins at the end of the feed: older changes are read for those who want them. */
static pawl_status begin_ring(struct node_changes *changes, pawl_work *store, pawl_error *reterr)
{
    pawl_work_position end;

    TRY(pawl_work_changes_end(store, &end, reterr));
    pawl__lock(&changes->lock);
    pawl__serve_ring_begin(&changes->ring, &end);
    pawl__unlock(&changes->lock);
    return PAWL_OK;
}

/* Reads on into the ring. *ret_more: there may be more. */
static pawl_status read_news(struct node_changes *changes,
                             pawl_work *store,
                             bool *ret_more,
                             pawl_error *reterr)
{
    uint64_t count = 0;

    pawl__lock(&changes->lock);
    bool reading = changes->ring.reading;
    pawl_work_position position = changes->ring.to;
    pawl__unlock(&changes->lock);
    if (!reading) {
        *ret_more = true;
        return begin_ring(changes, store, reterr);
    }
    pawl_status status =
        pawl_work_changes(store, NULL, PAGE_MAX, &position, add_to_ring, changes, &count, reterr);
    pawl__lock(&changes->lock);
    if (status == PAWL_NOT_FOUND) { /* another store is in its place */
        pawl__serve_ring_end(&changes->ring);
    } else if (status == PAWL_OK && changes->ring.reading) {
        changes->ring.to = position;
    }
    wake_waiting_locked(changes);
    pawl__unlock(&changes->lock);
    *ret_more = count == PAGE_MAX || status == PAWL_NOT_FOUND;
    return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

/* --- the thread: for those who are behind --- */

/* What is read for a follower, which may leave meanwhile. */
struct page {
    uint64_t serial; /* 0: nobody is behind */
    char task_id[PAWL_WORK_NAME_BYTES_MAX + 1];
    char work_type[PAWL_WORK_NAME_BYTES_MAX + 1];
    pawl_change_filter filter;
    pawl_work_position at;
    pawl_work_position ring_from; /* when it was asked for */
    struct pawl__buf events;
};

static pawl_view copy_name(char *to, size_t size, const char *name)
{
    (void)snprintf(to, size, "%s", name == NULL ? "" : name);
    return pawl_view_of(to);
}

static void plan_page(struct node_changes *changes, uint64_t after_serial, struct page *page)
{
    *page = (struct page){ .filter = PAWL_CHANGE_FILTER_INIT,
                           .events = BUF_INIT(PAGE_BYTES + EVENT_BYTES_MAX) };
    pawl__lock(&changes->lock);
    const struct change_follower *chosen = NULL;
    for (const struct change_follower *at = changes->followers; at != NULL; at = at->next) {
        if (at->behind && at->waiting && at->page.len == 0 && at->serial > after_serial
            && (chosen == NULL || at->serial < chosen->serial)) {
            chosen = at;
        }
    }
    if (chosen != NULL) {
        page->serial = chosen->serial;
        page->at = chosen->at;
        page->ring_from = changes->ring.from;
        page->filter.task_id = copy_name(page->task_id, sizeof(page->task_id), chosen->task_id);
        page->filter.work_type =
            copy_name(page->work_type, sizeof(page->work_type), chosen->work_type);
        page->filter.statuses = chosen->statuses;
    }
    pawl__unlock(&changes->lock);
}

static bool add_to_page(void *context, const pawl_work_change *change)
{
    struct page *page = context;

    pawl__serve_change_write(change, &page->events);
    return !page->events.broken && page->events.len < PAGE_BYTES;
}

/* *ret_again: the follower is still behind, and nothing was found for it. */
static void hand_page_locked(struct node_changes *changes,
                             struct page *page,
                             bool gone,
                             bool *ret_again) REQUIRES_LOCK(changes->lock)
{
    struct change_follower *follower = changes->followers;

    while (follower != NULL && follower->serial != page->serial) {
        follower = follower->next;
    }
    if (follower == NULL) {
        return;
    }
    follower->at = page->at;
    follower->ended = gone || page->events.broken;
    if (!follower->ended) {
        follower->page = page->events;
        page->events = (struct pawl__buf)BUF_INIT(EVENT_BYTES_MAX);
    }
    bool behind = pawl__serve_position_is_before(&follower->at, &changes->ring.from);
    *ret_again = behind && follower->page.len == 0 && !follower->ended;
    if (!*ret_again) {
        wake_locked(changes, follower);
    }
}

/* One page for each follower that is behind. */
static pawl_status read_pages(struct node_changes *changes,
                              pawl_work *store,
                              bool *ret_more,
                              pawl_error *reterr)
{
    struct page page;
    uint64_t last = 0;

    for (plan_page(changes, last, &page); page.serial != 0; plan_page(changes, last, &page)) {
        uint64_t count = 0;
        pawl_status status = pawl_work_changes(
            store, &page.filter, PAGE_MAX, &page.at, add_to_page, &page, &count, reterr);
        bool gone = status == PAWL_NOT_FOUND;
        bool again = false;

        if (status == PAWL_OK && count == 0
            && pawl__serve_position_is_before(&page.at, &page.ring_from)) {
            page.at = page.ring_from; /* there was nothing in between */
        }
        if (status == PAWL_OK || gone) {
            pawl__lock(&changes->lock);
            hand_page_locked(changes, &page, gone, &again);
            pawl__unlock(&changes->lock);
        }
        pawl__buf_done(&page.events);
        *ret_more |= again;
        last = page.serial;
        TRY(gone ? PAWL_OK : status);
    }
    return PAWL_OK;
}

/* --- the thread --- */

static pawl_status read_store(struct node_changes *changes, bool *ret_more, pawl_error *reterr)
{
    pawl_work *store = NULL;

    TRY(pawl__serve_work_find(changes->work, NODE_WORK_THAT_EXISTS, &store, reterr));
    if (changes->subscription == NULL) {
        TRY(pawl_work_changes_subscribe(store, on_news, changes, &changes->subscription, reterr));
    }
    TRY(read_news(changes, store, ret_more, reterr));
    return read_pages(changes, store, ret_more, reterr);
}

/* Returns when to read again without news. */
static int64_t read_once(struct node_changes *changes)
{
    pawl_error error = PAWL_ERROR_INIT;
    bool more = false;

    if (read_store(changes, &more, &error) != PAWL_OK) {
        pawl__serve_work_log_outcome(changes->work, &error);
        return pawl__monotonic_ns(changes->clock) + AGAIN_MS * NS_PER_MS;
    }
    if (more) {
        on_news(changes);
    }
    return INT64_MAX;
}

static void run(void *context)
{
    struct node_changes *changes = context;
    int64_t until_ns = INT64_MAX;

    pawl__lock(&changes->lock);
    while (!changes->stopping) {
        bool idle = changes->followers == NULL;

        if (idle || (!changes->news && until_ns > pawl__monotonic_ns(changes->clock))) {
            (void)pawl__cond_wait_until(
                &changes->changed, &changes->lock, idle ? INT64_MAX : until_ns);
            continue;
        }
        changes->news = false;
        pawl__unlock(&changes->lock);
        until_ns = read_once(changes);
        pawl__lock(&changes->lock);
    }
    pawl__unlock(&changes->lock);
    pawl_work_changes_unsubscribe(changes->subscription);
}

pawl_status pawl__serve_follower_join(struct node_changes *changes,
                                      struct change_follower *follower,
                                      pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    follower->changes = changes;
    pawl__lock(&changes->lock);
    if (!changes->thread.started && !changes->stopping) {
        status = pawl__thread_start(&changes->thread, "pawl-changes", run, changes, reterr);
    }
    if (status == PAWL_OK) {
        follower->serial = ++changes->serials;
        follower->next = changes->followers;
        if (follower->next != NULL) {
            follower->next->before = follower;
        }
        changes->followers = follower;
        changes->news = true;
        pawl__cond_signal(&changes->changed);
    }
    pawl__unlock(&changes->lock);
    return status;
}

/* --- beginning and end --- */

pawl_status pawl__serve_changes_new(struct node_work *work,
                                    struct pawl__clock *clock,
                                    struct node_changes **ret_changes,
                                    pawl_error *reterr)
{
    struct node_changes *changes = calloc(1, sizeof(*changes));

    if (changes == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for changes");
    }
    changes->work = work;
    changes->clock = clock;
    pawl__lock_cond_init(&changes->lock, &changes->changed);
    *ret_changes = changes;
    return PAWL_OK;
}

pawl_status pawl__serve_changes_stop(struct node_changes *changes,
                                     int64_t deadline_ns,
                                     pawl_error *reterr)
{
    if (changes == NULL) {
        return PAWL_OK;
    }
    pawl__lock(&changes->lock);
    changes->stopping = true;
    pawl__cond_signal(&changes->changed);
    pawl__unlock(&changes->lock);
    struct pawl__stop stop = { "the reader of changes", &changes->thread };
    return pawl__stop_threads(NULL, &stop, 1, deadline_ns, reterr);
}

void pawl__serve_changes_free(struct node_changes *changes)
{
    if (changes != NULL) {
        pawl__lock(&changes->lock);
        pawl__serve_ring_end(&changes->ring);
        pawl__unlock(&changes->lock);
        pawl__lock_cond_done(&changes->lock, &changes->changed);
        free(changes);
    }
}
