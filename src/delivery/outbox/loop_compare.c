/* Whether the stream still has what it acknowledged, and what may be forgotten. */
#include <stdio.h>

#include "base/core/error.h"
#include "base/log/log.h"
#include "delivery/outbox/loop_internal.h"

struct compared {
    struct outbox_loop *loop;
    const char *name;
    pawl_view view; /* of the same */
    struct outbox_stream stream;
};

/* The entry whose message stands at a kept sequence: the highest number of those that share it. */
static pawl_status newest_at(struct compared *in,
                             uint64_t sequence,
                             struct outbox_kept *ret_kept,
                             bool *ret_found,
                             pawl_error *reterr)
{
    struct outbox_store *store = in->loop->store;

    return store->ops->last_kept(store, in->view, sequence, ret_kept, ret_found, reterr);
}

/* *ret_status is the broker's. */
static pawl_status look_at(struct compared *in,
                           const struct outbox_kept *kept,
                           enum outbox_finding *ret_finding,
                           pawl_status *ret_status,
                           pawl_error *broker_error,
                           pawl_error *reterr)
{
    struct outbox_loop *loop = in->loop;
    struct delivery_hash key = { { 0 } };
    struct outbox_origin origin;
    uint64_t sequence = 0;
    bool found = false;

    TRY(loop->store->ops->read(loop->store, kept->number, &loop->read, &found, reterr));
    if (!found) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "entry %llu of the outbox is kept, but not there",
                          (unsigned long long)kept->number);
    }
    pawl_status status = loop->broker->ops->get(loop->broker,
                                                in->name,
                                                NULL,
                                                kept->sequence,
                                                &loop->text,
                                                &sequence,
                                                &origin,
                                                broker_error);
    *ret_status = status == PAWL_NOT_FOUND ? PAWL_OK : status;
    if (*ret_status != PAWL_OK) {
        return PAWL_OK;
    }
    bool same = false;
    if (status == PAWL_OK) {
        TRY(pawl__delivery_given_key(pawl__buf_view(&loop->text), &key, reterr));
        same = pawl__delivery_hash_equal(&key, &loop->read.entry.key);
    }
    *ret_finding = pawl__delivery_outbox_find(kept, &in->stream, status == PAWL_OK, same);
    return PAWL_OK;
}

/* The lowest sequence from which on everything is lost, known that `newest` is. */
static pawl_status find_lost(struct compared *in,
                             uint64_t newest,
                             uint64_t *ret_lost,
                             pawl_status *ret_status,
                             pawl_error *broker_error,
                             pawl_error *reterr)
{
    struct outbox_search search = { .yes = 0, .no = newest };
    uint64_t asked = 0;

    *ret_status = PAWL_OK;
    while (*ret_status == PAWL_OK && pawl__delivery_outbox_search_next(&search, &asked)) {
        struct outbox_store *store = in->loop->store;
        enum outbox_finding finding = OUTBOX_LOST;
        struct outbox_kept kept = { .sequence = UINT64_MAX };
        bool found = false;
        TRY(store->ops->first_kept(store, in->view, asked, &kept, &found, reterr));
        if (found && kept.sequence < search.no) {
            TRY(newest_at(in, kept.sequence, &kept, &found, reterr));
            TRY(look_at(in, &kept, &finding, ret_status, broker_error, reterr));
        }
        pawl__delivery_outbox_search_told(
            &search, asked, found ? kept.sequence : UINT64_MAX, finding != OUTBOX_LOST);
    }
    *ret_lost = search.no;
    return PAWL_OK;
}

static pawl_status requeue(struct compared *in, uint64_t lost, pawl_error *reterr)
{
    struct outbox_loop *loop = in->loop;
    uint64_t count = 0;

    TRY(loop->store->ops->requeue(loop->store, in->view, lost, &count, reterr));
    loop->progress.republished += count;
    for (size_t i = 0; i < loop->used; i++) { /* their pending entries begin further down now */
        loop->slots[i].state.from = 0;
        loop->slots[i].state.phase = OUTBOX_ASK;
        loop->slots[i].idle = false;
    }
    loop->rescan = true;
    LOG_DEBUG("the stream lost messages, which are published again",
              LOG_TEXT("stream", in->name),
              LOG_NATURAL("from", lost),
              LOG_NATURAL("count", count));
    return PAWL_OK;
}

/* NOT_FOUND: the stream is gone. It may come back, and with it what it held; until then nothing is forgotten. */
static pawl_status open_stream(struct compared *in, pawl_error *broker_error)
{
    struct outbox_broker *broker = in->loop->broker;

    return broker->ops->stream(broker, in->name, &in->stream, broker_error);
}

static pawl_status compare_one(struct compared *in,
                               pawl_status *ret_status,
                               pawl_error *broker_error,
                               pawl_error *reterr)
{
    struct outbox_loop *loop = in->loop;
    enum outbox_finding finding = OUTBOX_THERE;
    struct outbox_kept newest;
    bool found = false;
    uint64_t lost = 0;

    *ret_status = open_stream(in, broker_error);
    if (*ret_status != PAWL_OK) {
        *ret_status = *ret_status == PAWL_NOT_FOUND ? PAWL_OK : *ret_status;
        return PAWL_OK;
    }
    TRY(newest_at(in, UINT64_MAX, &newest, &found, reterr));
    if (!found) {
        return PAWL_OK;
    }
    TRY(look_at(in, &newest, &finding, ret_status, broker_error, reterr));
    if (*ret_status == PAWL_OK && finding == OUTBOX_LOST) {
        TRY(find_lost(in, newest.sequence, &lost, ret_status, broker_error, reterr));
        TRY(*ret_status == PAWL_OK ? requeue(in, lost, reterr) : PAWL_OK);
    }
    if (*ret_status != PAWL_OK) {
        return PAWL_OK;
    }
    return loop->store->ops->adopt(
        loop->store, in->view, loop->link.session, pawl__boot_ns(loop->clock), reterr);
}

/* --- every stream --- */

typedef pawl_status stream_fn(struct compared *in,
                              pawl_status *ret_status,
                              pawl_error *broker_error,
                              pawl_error *reterr);

static pawl_status each_stream(struct outbox_loop *loop,
                               stream_fn *each,
                               bool *ret_done,
                               pawl_error *reterr)
{
    char room[OUTBOX_STREAM_SIZE];
    struct pawl__buf name = BUF_OVER(room);
    pawl_error broker_error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;
    bool found = false;

    *ret_done = false;
    TRY(loop->store->ops->next_stream(loop->store, pawl_view_of(""), &name, &found, reterr));
    while (found) {
        struct compared in = { .loop = loop, .name = room, .view = pawl__buf_view(&name) };
        TRY(each(&in, &status, &broker_error, reterr));
        if (status != PAWL_OK) {
            return pawl__delivery_outbox_loop_suffer(loop, &broker_error, reterr);
        }
        TRY(loop->store->ops->next_stream(
            loop->store, pawl__buf_view(&name), &name, &found, reterr));
    }
    *ret_done = true;
    return PAWL_OK;
}

pawl_status pawl__delivery_outbox_loop_compare(struct outbox_loop *loop,
                                               bool *ret_done,
                                               pawl_error *reterr)
{
    return each_stream(loop, compare_one, ret_done, reterr);
}

/* --- forgetting --- */

/* The highest kept sequence up to which all is ripe; 0: none is. */
static pawl_status find_ripe(struct compared *in, uint64_t *ret_ripe, pawl_error *reterr)
{
    struct outbox_loop *loop = in->loop;
    struct outbox_search search = { .yes = 0, .no = UINT64_MAX };
    int64_t now_ns = pawl__boot_ns(loop->clock);
    uint64_t asked = 0;

    while (pawl__delivery_outbox_search_next(&search, &asked)) {
        struct outbox_kept kept = { .sequence = UINT64_MAX };
        bool found = false;
        TRY(loop->store->ops->first_kept(loop->store, in->view, asked, &kept, &found, reterr));
        bool is_ripe =
            found
            && pawl__delivery_outbox_ripe(&kept, loop->link.session, loop->options.keep_ns, now_ns);
        pawl__delivery_outbox_search_told(
            &search, asked, found ? kept.sequence : UINT64_MAX, is_ripe);
    }
    *ret_ripe = search.yes;
    return PAWL_OK;
}

static pawl_status forget_one(struct compared *in,
                              pawl_status *ret_status,
                              pawl_error *broker_error,
                              pawl_error *reterr)
{
    struct outbox_loop *loop = in->loop;
    enum outbox_finding finding = OUTBOX_LOST;
    struct outbox_kept newest;
    bool found = false;
    uint64_t ripe = 0;
    uint64_t count = 0;

    TRY(find_ripe(in, &ripe, reterr));
    TRY(newest_at(in, ripe, &newest, &found, reterr));
    if (ripe == 0 || !found) {
        return PAWL_OK;
    }
    *ret_status = open_stream(in, broker_error);
    if (*ret_status == PAWL_OK) {
        TRY(look_at(in, &newest, &finding, ret_status, broker_error, reterr));
    }
    if (*ret_status == PAWL_NOT_FOUND || (*ret_status == PAWL_OK && finding == OUTBOX_LOST)) {
        *ret_status = PAWL_OK;
        loop->compared = false; /* the next step finds out what else is lost */
        return PAWL_OK;
    }
    return *ret_status == PAWL_OK
               ? loop->store->ops->forget(loop->store, in->view, ripe, &count, reterr)
               : PAWL_OK;
}

static pawl_status trim_ids(struct outbox_loop *loop, pawl_error *reterr)
{
    struct outbox_stats stats;
    uint64_t number = 0;
    uint64_t count = 0;

    TRY(loop->store->ops->stats(loop->store, &stats, reterr));
    if (stats.running_ns > loop->options.horizon_ns) {
        TRY(loop->store->ops->accepted_before(
            loop->store, stats.running_ns - loop->options.horizon_ns, &number, reterr));
        TRY(loop->store->ops->trim(loop->store, number, UINT64_MAX, &count, reterr));
    }
    uint64_t left = stats.ids - count;
    if (left > loop->options.ids_max) {
        TRY(loop->store->ops->trim(
            loop->store, UINT64_MAX, left - loop->options.ids_max, &count, reterr));
        loop->progress.trimmed += count;
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_outbox_loop_forget(struct outbox_loop *loop,
                                              bool *ret_done,
                                              pawl_error *reterr)
{
    TRY(each_stream(loop, forget_one, ret_done, reterr));
    return trim_ids(loop, reterr);
}
