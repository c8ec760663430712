/* A reader takes the log in pages, copied into memory of its own, and holds nothing of the store
 * between calls.
 *
 * It goes in rounds. A round begins by asking how far the log reaches, and, when only complete
 * turns are wanted, which turns are not (turn_index.h says why in this order). Up to there
 * everything is decided, so a page that is shorter than its limit means that the rest of what it
 * was asked for was filtered out, and the position may move over it. */
#include "ledger/core/reader.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/thread/inside.h"
#include "ledger/core/event.h"
#include "ledger/core/internal.h"
#include "ledger/core/turn_index.h"

enum {
    PAGE_EVENTS_MAX = 512,
    PAGE_BYTES_MAX = 1 << 20, /* a page ends with the event that reaches this */
    WINDOW_OFFSETS = 1 << 16, /* one question to the store, so that none of them takes long */
};
#define AWAY_NS (200 * NS_PER_MS) /* between two tries to reach a server that is away */

struct pawl_reader {
    pawl_ledger *ledger;
    uint64_t from;  /* as it was given */
    uint64_t up_to; /* UINT64_MAX: no end */
    uint64_t as_of; /* for complete turns; see turn_index.h */
    bool complete_turns;
    bool filtered;
    pawl_event_filter filter;
    struct pawl__arena filter_texts;
    atomic_bool cancelled;
    struct pawl__watch_subscriber subscriber; /* of pawl_reader_on_events */
    pawl_reader_notify notify;
    void *notify_context;

    uint64_t position;     /* up to here returned or left out */
    uint64_t round_end;    /* up to here everything is decided */
    pawl_ledger_head head; /* how far the log reached when it was asked last; 0: never */
    uint32_t generation;   /* the watch's, from before the read that found nothing */
    struct ledger_turn_index index;

    struct pawl__arena page;
    pawl_event events[PAGE_EVENTS_MAX];
    size_t count;
    size_t next;
    uint64_t page_end; /* the position when the page is used up */

    size_t page_bytes; /* while it is filled */
    uint32_t asked;    /* rows that the store gave */
    bool full;
};

/* --- open and close --- */

static pawl_status copy_filter(pawl_reader *reader,
                               const pawl_event_filter *given,
                               pawl_error *reterr)
{
    pawl_event_filter *filter = &reader->filter;

    TRY(pawl__ledger_check_filter(given, filter, reterr));
    reader->filtered = given != NULL;
    if (!pawl__arena_copy(&reader->filter_texts, filter->run_id, &filter->run_id)
        || !pawl__arena_copy(&reader->filter_texts, filter->kind, &filter->kind)
        || !pawl__arena_copy(&reader->filter_texts, filter->actor, &filter->actor)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a filter");
    }
    return PAWL_OK;
}

pawl_status pawl_reader_open(pawl_ledger *ledger,
                             const pawl_reader_options *options,
                             pawl_reader **ret_reader,
                             pawl_error *reterr)
{
    pawl_reader_options read = PAWL_READER_OPTIONS_INIT;

    NEED(ledger, ret_reader, reterr);
    TRY(pawl__take_sized("reader options", options, &read, sizeof(read), reterr));
    AUTO(pawl_reader_free_p) pawl_reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a reader");
    }
    reader->ledger = ledger;
    reader->from = read.from;
    reader->position = read.from;
    reader->up_to = read.up_to == 0 ? UINT64_MAX : read.up_to;
    reader->as_of = reader->up_to;
    reader->complete_turns = read.complete_turns;
    reader->filter_texts = (struct pawl__arena)ARENA_INIT;
    reader->page = (struct pawl__arena)ARENA_INIT;
    reader->index = (struct ledger_turn_index)TURN_INDEX_INIT;
    atomic_init(&reader->cancelled, false);
    TRY(copy_filter(reader, read.filter, reterr));
    *ret_reader = STEAL(reader);
    return PAWL_OK;
}

void pawl__ledger_reader_as_of_now(pawl_reader *reader)
{
    reader->as_of = UINT64_MAX;
}

void pawl_reader_free(pawl_reader *reader)
{
    if (reader != NULL) {
        pawl__watch_unsubscribe(&reader->subscriber);
        pawl__ledger_turn_index_done(&reader->index);
        pawl__arena_done(&reader->page);
        pawl__arena_done(&reader->filter_texts);
        free(reader);
    }
}

uint64_t pawl_reader_position(const pawl_reader *reader)
{
    return reader == NULL ? 0 : reader->position;
}

/* --- pages --- */

static const pawl_event_filter *filter_of(const pawl_reader *reader)
{
    return reader->filtered ? &reader->filter : NULL;
}

pawl_status pawl__ledger_reader_check_from(uint64_t from, uint64_t end, pawl_error *reterr)
{
    return from <= end ? PAWL_OK
                       : pawl__fail(reterr,
                                    PAWL_INVALID,
                                    "from: is %llu, but the ledger ends at offset %llu",
                                    (unsigned long long)from,
                                    (unsigned long long)end);
}

/* Waiting for the log to reach a position that it was never at would skip what comes until then. */
static pawl_status check_position(const pawl_reader *reader, uint64_t end, pawl_error *reterr)
{
    bool was_read = reader->position > end && reader->position != reader->from;

    if (!was_read && end >= reader->head.offset) {
        return pawl__ledger_reader_check_from(reader->position, end, reterr);
    }
    return pawl__fail(reterr,
                      PAWL_CORRUPT,
                      "cut off: offset %llu was %s, now the ledger ends at %llu",
                      (unsigned long long)(was_read ? reader->position : reader->head.offset),
                      was_read ? "read" : "there",
                      (unsigned long long)end);
}

static pawl_status note_hash(void *context, const pawl_event *event, pawl_error *reterr)
{
    pawl_ledger_head *found = context;

    (void)reterr;
    found->offset = event->offset;
    memcpy(found->hash, event->hash, sizeof(found->hash));
    return PAWL_OK;
}

/* A log that grew still has the event that was its last. Another log in its place, a copy that was
 * written over the file, has a different one there, and following it would mix the two. */
static pawl_status check_same_log(const pawl_reader *reader,
                                  const pawl_ledger_head *head,
                                  pawl_error *reterr)
{
    struct ledger_backend *backend = reader->ledger->backend;
    uint64_t last = reader->head.offset;
    pawl_ledger_head found = *head;

    if (last == 0) {
        return PAWL_OK;
    }
    if (head->offset != last) {
        struct ledger_query query = { .from = last - 1, .up_to = last, .limit = 1 };
        found.offset = 0;
        TRY(backend->ops->read(backend, &query, note_hash, &found, reterr));
    }
    return found.offset == last && memcmp(found.hash, reader->head.hash, sizeof(found.hash)) == 0
               ? PAWL_OK
               : pawl__fail_advised(
                   reterr,
                   PAWL_CORRUPT,
                   "replaced: offset %llu has another event than when it was read, so this is "
                   "another log; run `pawl ledger verify`, and read the log from its beginning",
                   (unsigned long long)last);
}

/* Head first, then turns. */
static pawl_status start_round(pawl_reader *reader, pawl_error *reterr)
{
    struct ledger_backend *backend = reader->ledger->backend;
    pawl_ledger_head head;

    TRY(backend->ops->head(backend, &head, reterr));
    TRY(check_position(reader, head.offset, reterr));
    TRY(check_same_log(reader, &head, reterr));
    reader->head = head;
    uint64_t end = MIN(head.offset, reader->up_to);
    if (reader->complete_turns && end > reader->position) {
        struct ledger_turn_question question = { .since = reader->position,
                                                 .as_of = reader->as_of,
                                                 .filter = filter_of(reader) };
        TRY(pawl__ledger_turn_index_load(&reader->index, backend, &question, reterr));
        end = MIN(end, reader->index.barrier - 1);
    }
    reader->round_end = end;
    return PAWL_OK;
}

/* Offsets have no holes. A reader that passed over one would lose an event silently. */
static pawl_status fail_missing(uint64_t offset, pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_CORRUPT, "offset %llu is missing", (unsigned long long)offset);
}

/* Any other status than PAWL_OK ends the store's walk; `full` tells this one from errors. */
static pawl_status add_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    pawl_reader *reader = context;

    if (!reader->filtered && event->offset != reader->page_end + 1) {
        return fail_missing(reader->page_end + 1, reterr);
    }
    reader->asked++;
    reader->page_end = event->offset;
    if (reader->complete_turns && pawl__ledger_turn_index_skips(&reader->index, event)) {
        return PAWL_OK;
    }
    if (!pawl__ledger_event_copy(&reader->page, event, &reader->events[reader->count])) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a page of events");
    }
    reader->count++;
    reader->page_bytes += pawl__ledger_event_text_bytes(event);
    reader->full = reader->page_bytes >= PAGE_BYTES_MAX;
    return reader->full ? PAWL_CANCELLED : PAWL_OK;
}

static pawl_status note_offset(void *context, const pawl_event *event, pawl_error *reterr)
{
    (void)reterr;
    *(uint64_t *)context = event->offset;
    return PAWL_OK;
}

/* A window in which the filter let nothing through has events all the same. Without any, the head is not
 * where the log ends: walking up to it might take for ever. */
static pawl_status check_window(pawl_reader *reader,
                                const struct ledger_query *asked,
                                pawl_error *reterr)
{
    struct ledger_backend *backend = reader->ledger->backend;
    struct ledger_query query = { .from = asked->from, .up_to = asked->up_to, .limit = 1 };
    uint64_t first = 0;

    TRY(backend->ops->read(backend, &query, note_offset, &first, reterr));
    return first == 0 ? fail_missing(asked->from + 1, reterr) : PAWL_OK;
}

/* One window of the round into the empty page. */
static pawl_status read_window(pawl_reader *reader, pawl_error *reterr)
{
    struct ledger_backend *backend = reader->ledger->backend;
    uint64_t left = reader->round_end - reader->position;
    struct ledger_query query = {
        .from = reader->position,
        .up_to = reader->position + MIN(left, (uint64_t)WINDOW_OFFSETS),
        .limit = PAGE_EVENTS_MAX,
        .filter = filter_of(reader),
    };

    pawl_error error = PAWL_ERROR_INIT;

    reader->asked = 0;
    reader->full = false;
    reader->page_end = reader->position;
    pawl_status status = backend->ops->read(backend, &query, add_event, reader, &error);
    if (reader->full || (status == PAWL_OK && reader->asked == query.limit)) {
        return PAWL_OK;
    }
    if (status != PAWL_OK) {
        return pawl__fail_with(reterr, status, &error);
    }
    if (!reader->filtered && reader->page_end != query.up_to) {
        return fail_missing(reader->page_end + 1, reterr);
    }
    reader->page_end = query.up_to;
    return reader->asked == 0 ? check_window(reader, &query, reterr) : PAWL_OK;
}

static void drop_page(pawl_reader *reader)
{
    pawl__arena_clear(&reader->page);
    reader->count = 0;
    reader->next = 0;
    reader->page_bytes = 0;
}

/* Leaves the page empty when there is nothing for now. What fails leaves it empty, too, and the
 * position where it was: the next call asks again. */
static pawl_status fill_page(pawl_reader *reader, pawl_error *reterr)
{
    uint32_t generation = pawl__watch_generation(&reader->ledger->engine.watch);

    drop_page(reader);
    while (reader->count == 0) {
        if (reader->position >= reader->round_end) {
            TRY(start_round(reader, reterr));
            if (reader->position >= reader->round_end) {
                reader->generation = generation;
                return PAWL_OK;
            }
        }
        pawl_status status = read_window(reader, reterr);
        if (status != PAWL_OK) {
            drop_page(reader);
            reader->round_end = 0; /* the index has moved on: begin again */
            return status;
        }
        if (reader->count == 0) {
            reader->position = reader->page_end;
            if (atomic_load(&reader->cancelled)) {
                return pawl__fail(reterr, PAWL_CANCELLED, "the reader was cancelled");
            }
        }
    }
    return PAWL_OK;
}

static bool page_is_used_up(pawl_reader *reader)
{
    if (reader->next < reader->count) {
        return false;
    }
    if (reader->count > 0) {
        reader->position = reader->page_end;
    }
    return true;
}

pawl_status pawl_reader_next(pawl_reader *reader, const pawl_event **ret_event, pawl_error *reterr)
{
    NEED(reader, ret_event, reterr);
    if (page_is_used_up(reader)) {
        TRY(fill_page(reader, reterr));
    }
    if (reader->count == 0) {
        return pawl__fail(reterr,
                          PAWL_NOT_FOUND,
                          "no event after offset %llu",
                          (unsigned long long)reader->position);
    }
    const pawl_event *event = &reader->events[reader->next++];
    reader->position = event->offset;
    *ret_event = event;
    return PAWL_OK;
}

/* --- waiting --- */

void pawl_reader_cancel(pawl_reader *reader)
{
    if (reader != NULL) {
        atomic_store(&reader->cancelled, true);
        pawl__watch_bump(&reader->ledger->engine.watch);
    }
}

/* The reader is not used after `notify`, which may have closed it. */
static void tell(void *context)
{
    const pawl_reader *reader = context;
    INSIDE(reader->ledger);

    reader->notify(reader->notify_context);
}

pawl_status pawl_reader_on_events(pawl_reader *reader,
                                  pawl_reader_notify notify,
                                  void *context,
                                  pawl_error *reterr)
{
    NEED(reader, reterr);
    struct pawl__watch *watch = &reader->ledger->engine.watch;

    if (notify != NULL) {
        TRY(pawl__watch_outside(watch, reterr));
    }
    pawl__watch_unsubscribe(&reader->subscriber);
    reader->notify = notify;
    reader->notify_context = context;
    return notify == NULL ? PAWL_OK
                          : pawl__watch_subscribe(watch, &reader->subscriber, tell, reader, reterr);
}

/* Set before the watch is bumped: a thread that reads the generation first sees one of both. */
static bool is_ended(const pawl_reader *reader)
{
    return atomic_load(&reader->cancelled) || atomic_load(&reader->ledger->engine.interrupted);
}

static pawl_status fail_ended(const pawl_reader *reader, pawl_error *reterr)
{
    return pawl__fail(reterr,
                      PAWL_CANCELLED,
                      atomic_load(&reader->cancelled) ? "the reader was cancelled"
                                                      : "the ledger was interrupted");
}

/* The store is a server that is gone for now. */
static bool is_away(pawl_status status)
{
    return status == PAWL_UNAVAILABLE || status == PAWL_TIMEOUT;
}

/* Lets a server that is away come back; false when the deadline has passed. */
static bool wait_for_store(pawl_reader *reader, int64_t deadline_ns)
{
    const struct pawl__calls *calls = &reader->ledger->engine.calls;
    struct pawl__watch *watch = &reader->ledger->engine.watch;
    uint32_t generation = pawl__watch_generation(watch);
    int64_t again_ns = pawl__calls_now_ns(calls) + AWAY_NS;

    if (!is_ended(reader)) {
        (void)pawl__watch_wait(watch, generation, MIN(again_ns, deadline_ns));
    }
    return pawl__calls_now_ns(calls) < deadline_ns;
}

pawl_status pawl_reader_wait(pawl_reader *reader, uint32_t timeout_ms, pawl_error *reterr)
{
    NEED(reader, reterr);
    TRY(pawl__ledger_check_may_wait(reader->ledger, reterr));
    struct pawl__watch *watch = &reader->ledger->engine.watch;
    int64_t deadline_ns =
        pawl__calls_now_ns(&reader->ledger->engine.calls) + (int64_t)timeout_ms * NS_PER_MS;
    pawl_error error = PAWL_ERROR_INIT; /* what was survived is not told */
    pawl_status status = pawl__watch_outside(watch, &error);

    for (bool in_time = true; status == PAWL_OK;) {
        if (is_ended(reader)) {
            return fail_ended(reader, reterr);
        }
        if (!page_is_used_up(reader)) {
            return PAWL_OK;
        }
        if (reader->position >= reader->up_to) {
            return pawl__fail(reterr,
                              PAWL_NOT_FOUND,
                              "the reader ends at offset %llu",
                              (unsigned long long)reader->up_to);
        }
        if (!in_time) {
            return pawl__fail(reterr, PAWL_TIMEOUT, "no event within %u ms", timeout_ms);
        }
        status = fill_page(reader, &error);
        if (is_away(status)) {
            /* TIMEOUT is ours to say: no event. A server that has stalled is away. */
            bool again = wait_for_store(reader, deadline_ns) || is_ended(reader);
            status = again ? PAWL_OK : PAWL_UNAVAILABLE;
            error.status = status;
            continue;
        }
        /* Cancelled before fill_page took the generation: nothing would wake us any more. */
        if (status == PAWL_OK && reader->count == 0 && !is_ended(reader)) {
            in_time = pawl__watch_wait(watch, reader->generation, deadline_ns);
        }
    }
    return pawl__fail_with(reterr, status, &error);
}
