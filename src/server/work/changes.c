/* GET /v1/work/changes: the feed of changes as server-sent events, to any number of followers.
 *
 * One thread of the node reads the store, whoever follows. It keeps the latest changes in a ring, as the events that are
 * sent, and wakes the streams. A follower is a place in the feed and a filter: while its place is in the ring, it reads
 * from there, on the thread of its connection. One that is further behind gets pages that the thread reads for it.
 * So a follower costs no thread, a change costs one read, and a slow client holds nobody up.
 *
 * A follower whose next change was removed in the meantime ends; its client comes back with the id it saw last, and is
 * answered 410. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/thread/shutdown.h"
#include "net/http/events.h"
#include "server/work/records.h"
#include "server/work/work.h"

enum {
    RING_MAX = 4096,        /* changes that are kept for followers, ... */
    RING_BYTES = 4 << 20,   /* ... and bytes of them */
    PAGE_MAX = 500,         /* changes of one read */
    PAGE_BYTES = 64 << 10,  /* a follower that is behind gets so much at a time */
    READY_BYTES = 32 << 10, /* and one that is not, at most */
    AGAIN_MS = 1000,        /* a store that failed is read again */
};
#define EVENT_BYTES_MAX ((size_t)1 << 20)

/* A change on its way to followers. */
struct ring_entry {
    pawl_work_position position;
    pawl_item_status to;
    char *task_id; /* and then the others: one allocation */
    char *work_type;
    char *event;
    size_t event_len;
};

struct follower {
    struct node_changes *changes;
    struct pawl__http_stream *stream;
    struct follower *next;
    struct follower *before;
    uint64_t serial;       /* no other follower of the node has it */
    pawl_work_position at; /* all up to here was sent, or does not pass the filter */
    char *task_id;         /* of the filter; NULL: any, as all of it */
    char *work_type;
    uint32_t statuses;
    bool behind;  /* its next change is not in the ring: the thread reads for it */
    bool waiting; /* it has been told that there is nothing, and is woken when there is */
    bool ended;
    struct pawl__buf page; /* what the thread has read for it */
};

struct node_changes {
    struct pawl__lock lock; /* covers everything up to the thread */
    struct pawl__cond changed;
    bool stopping;
    bool news; /* the store may have more, or a follower needs something */
    uint64_t serials;
    struct follower *followers;
    struct ring_entry ring[RING_MAX];
    size_t first; /* of the ring, and how many there are */
    size_t count;
    size_t bytes;
    bool reading;            /* the ring is valid: it has all changes between these two */
    pawl_work_position from; /* the last that is not in it any more */
    pawl_work_position to;   /* the last that was read */

    struct node_work *work;
    struct pawl__clock *clock;
    pawl_work_subscription *subscription; /* the thread's */
    struct pawl__thread thread;
};

static bool is_before(const pawl_work_position *a, const pawl_work_position *b)
{
    return a->transaction != b->transaction ? a->transaction < b->transaction : a->seq < b->seq;
}

/* --- the ring --- */

static void drop_oldest_locked(struct node_changes *changes) REQUIRES_LOCK(changes->lock)
{
    struct ring_entry *entry = &changes->ring[changes->first];

    changes->from = entry->position;
    changes->bytes -= entry->event_len;
    free(entry->task_id);
    changes->first = (changes->first + 1) % RING_MAX;
    changes->count--;
}

static void empty_ring_locked(struct node_changes *changes) REQUIRES_LOCK(changes->lock)
{
    while (changes->count > 0) {
        drop_oldest_locked(changes);
    }
    changes->reading = false;
}

static struct ring_entry *entry_locked(struct node_changes *changes, size_t index)
    REQUIRES_LOCK(changes->lock)
{
    return &changes->ring[(changes->first + index) % RING_MAX];
}

/* The index of the first entry after a position. */
static size_t find_locked(struct node_changes *changes, const pawl_work_position *after)
    REQUIRES_LOCK(changes->lock)
{
    size_t low = 0;
    size_t high = changes->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(after, &entry_locked(changes, middle)->position)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* --- events --- */

static void write_event(const pawl_work_change *change, struct pawl__buf *buf)
{
    char id[PAWL_WORK_POSITION_SIZE];
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (pawl_work_change_to_json(change, &json, &len, NULL) != PAWL_OK
        || pawl_work_position_format(&change->position, id, sizeof(id), NULL) != PAWL_OK) {
        buf->broken = true;
        return;
    }
    pawl__http_event_write(
        pawl_view_of(id), pawl_view_of(change->to), (pawl_view){ json, len }, buf);
}

static bool passes(const struct follower *follower, const struct ring_entry *entry)
{
    return (follower->task_id == NULL || strcmp(follower->task_id, entry->task_id) == 0)
           && (follower->work_type == NULL || strcmp(follower->work_type, entry->work_type) == 0)
           && (follower->statuses == 0 || (follower->statuses >> entry->to & 1) != 0);
}

/* --- followers, on the threads of their connections --- */

/* Adds what the ring has for it. */
static void read_ring_locked(struct node_changes *changes,
                             struct follower *follower,
                             struct pawl__buf *events) REQUIRES_LOCK(changes->lock)
{
    size_t i = find_locked(changes, &follower->at);

    for (; i < changes->count && events->len < READY_BYTES; i++) {
        const struct ring_entry *entry = entry_locked(changes, i);

        if (passes(follower, entry)) {
            pawl__buf_add(events, (pawl_view){ entry->event, entry->event_len });
        }
        follower->at = entry->position;
    }
    follower->waiting = events->len == 0;
}

static bool follow(void *context, struct pawl__buf *events)
{
    struct follower *follower = context;
    struct node_changes *changes = follower->changes;

    pawl__lock(&changes->lock);
    if (follower->page.len > 0) {
        *events = follower->page;
        follower->page = (struct pawl__buf)BUF_INIT(EVENT_BYTES_MAX);
    } else if (changes->reading && !is_before(&follower->at, &changes->from)) {
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

static void free_follower(struct follower *follower)
{
    if (follower != NULL) {
        free(follower->task_id);
        free(follower->work_type);
        pawl__buf_done(&follower->page);
        free(follower);
    }
}

static void unfollow(void *context)
{
    struct follower *follower = context;
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
        empty_ring_locked(changes); /* nobody reads on */
    }
    pawl__unlock(&changes->lock);
    free_follower(follower);
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

static void wake_locked(struct node_changes *changes, struct follower *follower)
    REQUIRES_LOCK(changes->lock)
{
    REQUIRE(follower->changes == changes);
    follower->waiting = false;
    pawl__http_stream_wake(follower->stream);
}

static void wake_waiting_locked(struct node_changes *changes) REQUIRES_LOCK(changes->lock)
{
    for (struct follower *at = changes->followers; at != NULL; at = at->next) {
        if (at->waiting && !at->behind) {
            wake_locked(changes, at);
        }
    }
}

static char *put_text(char **at, const char *text, size_t len)
{
    char *put = *at;

    if (len > 0) {
        memcpy(put, text, len);
    }
    put[len] = '\0';
    *at += len + 1;
    return put;
}

/* False: no memory. */
static bool make_entry(const pawl_work_change *change, struct ring_entry *ret_entry)
{
    AUTO(pawl__buf_done) struct pawl__buf event = BUF_INIT(EVENT_BYTES_MAX);

    write_event(change, &event);
    char *at =
        event.broken ? NULL : malloc(change->task_id.len + change->work_type.len + event.len + 3);
    if (at == NULL) {
        return false;
    }
    *ret_entry = (struct ring_entry){ .position = change->position, .event_len = event.len };
    (void)!pawl_item_status_parse(pawl_view_of(change->to), &ret_entry->to, NULL);
    ret_entry->task_id = put_text(&at, change->task_id.data, change->task_id.len);
    ret_entry->work_type = put_text(&at, change->work_type.data, change->work_type.len);
    ret_entry->event = put_text(&at, event.data, event.len);
    return true;
}

static bool add_to_ring(void *context, const pawl_work_change *change)
{
    struct node_changes *changes = context;
    struct ring_entry entry;
    bool made = make_entry(change, &entry);

    pawl__lock(&changes->lock);
    if (!made) {
        empty_ring_locked(changes); /* followers read from the store until it is filled anew */
    } else if (!changes->reading) {
        free(entry.task_id);
    } else {
        while (changes->count == RING_MAX
               || (changes->count > 0 && changes->bytes + entry.event_len > RING_BYTES)) {
            drop_oldest_locked(changes);
        }
        *entry_locked(changes, changes->count++) = entry;
        changes->bytes += entry.event_len;
        changes->to = entry.position;
    }
    bool reads_on = changes->reading && !changes->stopping;
    pawl__unlock(&changes->lock);
    return reads_on;
}

/* The ring begins at the end of the feed: older changes are read for those who want them. */
static pawl_status begin_ring(struct node_changes *changes, pawl_work *store, pawl_error *reterr)
{
    pawl_work_position end;

    TRY(pawl_work_changes_end(store, &end, reterr));
    pawl__lock(&changes->lock);
    changes->reading = true;
    changes->from = end;
    changes->to = end;
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
    bool reading = changes->reading;
    pawl_work_position position = changes->to;
    pawl__unlock(&changes->lock);
    if (!reading) {
        *ret_more = true;
        return begin_ring(changes, store, reterr);
    }
    pawl_status status =
        pawl_work_changes(store, NULL, PAGE_MAX, &position, add_to_ring, changes, &count, reterr);
    pawl__lock(&changes->lock);
    if (status == PAWL_NOT_FOUND) { /* another store is in its place */
        empty_ring_locked(changes);
    } else if (status == PAWL_OK && changes->reading) {
        changes->to = position;
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
    const struct follower *chosen = NULL;
    for (const struct follower *at = changes->followers; at != NULL; at = at->next) {
        if (at->behind && at->waiting && at->page.len == 0 && at->serial > after_serial
            && (chosen == NULL || at->serial < chosen->serial)) {
            chosen = at;
        }
    }
    if (chosen != NULL) {
        page->serial = chosen->serial;
        page->at = chosen->at;
        page->ring_from = changes->from;
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

    write_event(change, &page->events);
    return !page->events.broken && page->events.len < PAGE_BYTES;
}

/* *ret_again: the follower is still behind, and nothing was found for it. */
static void hand_page_locked(struct node_changes *changes,
                             struct page *page,
                             bool gone,
                             bool *ret_again) REQUIRES_LOCK(changes->lock)
{
    struct follower *follower = changes->followers;

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
    bool behind = is_before(&follower->at, &changes->from);
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

        if (status == PAWL_OK && count == 0 && is_before(&page.at, &page.ring_from)) {
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

/* One pass. When to make the next one without news. */
static int64_t pass(struct node_changes *changes)
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
        until_ns = pass(changes);
        pawl__lock(&changes->lock);
    }
    pawl__unlock(&changes->lock);
    pawl_work_changes_unsubscribe(changes->subscription);
}

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
        empty_ring_locked(changes);
        pawl__unlock(&changes->lock);
        pawl__lock_cond_done(&changes->lock, &changes->changed);
        free(changes);
    }
}

/* --- requests --- */

static pawl_status copy_name_of(pawl_view name, char **ret_copy, pawl_error *reterr)
{
    if (name.len == 0) {
        return PAWL_OK;
    }
    *ret_copy = pawl__view_dup(name);
    return *ret_copy == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a filter") : PAWL_OK;
}

static pawl_status read_statuses(pawl_view rest, uint32_t *ret_statuses, pawl_error *reterr)
{
    while (rest.len > 0) {
        const char *comma = memchr(rest.data, ',', rest.len);
        size_t len = comma == NULL ? rest.len : (size_t)(comma - rest.data);
        pawl_item_status status = PAWL_ITEM_PENDING;

        TRY(pawl_item_status_parse((pawl_view){ rest.data, len }, &status, reterr));
        *ret_statuses |= 1U << status;
        len += comma != NULL;
        rest = (pawl_view){ rest.data + len, rest.len - len };
    }
    return PAWL_OK;
}

static pawl_status set_filter(struct follower *follower,
                              const struct change_list *asked,
                              pawl_error *reterr)
{
    TRY(copy_name_of(asked->task, &follower->task_id, reterr));
    TRY(copy_name_of(asked->type, &follower->work_type, reterr));
    return read_statuses(asked->status, &follower->statuses, reterr);
}

static bool see_one(void *context, const pawl_work_change *change)
{
    (void)context;
    (void)change;
    return false;
}

static pawl_status find_position(struct pawl__serve_call *call,
                                 pawl_work_position *ret_at,
                                 pawl_error *reterr)
{
    const struct changes_start *start = call->state;
    pawl_work_position at = start->at;
    pawl_work *store = NULL;

    TRY(pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr));
    if (start->at_end) {
        return pawl_work_changes_end(store, ret_at, reterr);
    }
    pawl_status status = pawl_work_changes(store, NULL, 1, &at, see_one, NULL, NULL, reterr);
    if (status == PAWL_NOT_FOUND) {
        return pawl__serve_refuse(
            call, &pawl__http_gone, reterr, "%s", "begin anew, at start or end");
    }
    *ret_at = start->at;
    return status;
}

static pawl_status link(struct node_changes *changes, struct follower *follower, pawl_error *reterr)
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

static pawl_status make_follower(struct pawl__serve_call *call,
                                 struct follower **ret_follower,
                                 pawl_error *reterr)
{
    struct follower *follower = calloc(1, sizeof(*follower));

    *ret_follower = follower;
    if (follower == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a follower");
    }
    follower->page = (struct pawl__buf)BUF_INIT(EVENT_BYTES_MAX);
    TRY(set_filter(follower, call->parameters, reterr));
    TRY(find_position(call, &follower->at, reterr));
    follower->stream = pawl__http_stream_new(call->request);
    if (follower->stream == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a stream");
    }
    pawl_status status = link(pawl__serve_work_changes_of(call->part), follower, reterr);
    if (status != PAWL_OK) {
        pawl__http_stream_release(follower->stream);
    }
    return status;
}

/* On a thread that may block. */
static pawl_status start_following(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct follower *follower = NULL;
    pawl_status status = make_follower(call, &follower, reterr);

    if (status != PAWL_OK) {
        free_follower(follower);
        return status;
    }
    /* The stream's from here on, which closes it in any case. */
    const struct pawl__http_event_source source = { .next = follow,
                                                    .close = unfollow,
                                                    .context = follower };
    pawl__http_answer_events(call->request, &source, follower->stream);
    pawl__serve_resume(call, NULL);
    return PAWL_OK;
}

/* The header says more than the query: a client that comes back sends both. */
pawl_status pawl__serve_work_changes(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct change_list *asked = call->parameters;
    const char *header = pawl__http_header(call->request, "Last-Event-ID");
    bool in_header = header != NULL && header[0] != '\0';
    pawl_view from = in_header ? pawl_view_of(header) : asked->from;
    struct changes_start *start = call->state;

    start->at_end = from.len == 0 || pawl__view_is(from, "end");
    if (!start->at_end && !pawl__view_is(from, "start")
        && pawl_work_position_parse(from, &start->at, NULL) != PAWL_OK) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: is no id of an event, as 0-17 is; 'from' may be start or end, too",
                          in_header ? "Last-Event-ID" : "from");
    }
    pawl__serve_hand_over(call, start_following);
    return PAWL_OK;
}
