/* Most events are new. So the first try looks nothing up: it gives every event the next offset and
 * inserts them all; the unique index of the store finds out about duplicates, and then the group is
 * rolled back and planned again with what is stored under its ids. Duplicates come in runs (a job
 * that starts over, a file imported twice), so the careful way is kept for a while. */
#include "ledger/core/write.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "ledger/core/event.h"

enum { CAREFUL_GROUPS = 16 };

void pawl__ledger_writer_done(struct ledger_writer *writer)
{
    pawl__ledger_plan_done(&writer->plan);
    pawl__ledger_open_turns_done(&writer->open);
}

static pawl_status load_turn(struct ledger_writer *writer,
                             pawl_view run_id,
                             int64_t turn,
                             pawl_error *reterr)
{
    struct ledger_backend *backend = writer->backend;
    struct ledger_turn newest;

    if (pawl__ledger_plan_knows_turn(&writer->plan, run_id, turn)) {
        return PAWL_OK;
    }
    TRY(backend->ops->turn_get(backend, run_id, turn, &newest, reterr));
    pawl__ledger_plan_turn(&writer->plan, &newest);
    return PAWL_OK;
}

static pawl_status load_copied_turns(struct ledger_writer *writer,
                                     const struct ledger_request *request,
                                     pawl_error *reterr)
{
    for (size_t i = 0; i < request->count; i++) {
        const pawl_event *event = &request->events[i];
        if (pawl__ledger_event_is_reserved(event)) {
            TRY(load_turn(writer, event->run_id, event->turn, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status load_turns(struct ledger_writer *writer,
                              struct ledger_request *const *requests,
                              size_t count,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        const struct ledger_request *request = requests[i];
        if (request->in_turn) {
            TRY(load_turn(writer, request->run_id, request->turn, reterr));
        } else if (request->turn_events > 0) {
            TRY(load_copied_turns(writer, request, reterr));
        }
    }
    return PAWL_OK;
}

struct open_reader {
    struct ledger_open_turns *open;
    pawl_status status;
    pawl_error *reterr;
};

static bool add_open(void *context, const pawl_turn_info *info)
{
    struct open_reader *reader = context;

    reader->status = info->state != PAWL_TURN_OPEN
                         ? PAWL_OK
                         : pawl__ledger_open_turns_add(
                             reader->open, info->run_id, info->turn, info->attempt, reader->reterr);
    return reader->status == PAWL_OK;
}

static bool appends_outside_turns(struct ledger_request *const *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == LEDGER_APPEND && !requests[i]->in_turn) {
            return true;
        }
    }
    return false;
}

/* Asks the store only when another process has moved the head since the last group. */
static pawl_status load_open_turns(struct ledger_writer *writer,
                                   const pawl_ledger_head *head,
                                   pawl_error *reterr)
{
    struct ledger_backend *backend = writer->backend;
    struct open_reader reader = { &writer->open, PAWL_OK, reterr };

    if (pawl__ledger_open_turns_are_of(&writer->open, head)) {
        return PAWL_OK;
    }
    pawl_status status = pawl__ledger_open_turns_start(&writer->open, head, reterr);
    if (status == PAWL_OK) {
        status = backend->ops->open_turns(backend, add_open, &reader, reterr);
    }
    status = status == PAWL_OK ? reader.status : status;
    if (status != PAWL_OK) {
        writer->open.known = false;
    }
    return status;
}

static pawl_status add_stored(void *context, const pawl_event *event, pawl_error *reterr)
{
    return pawl__ledger_plan_stored(context, event, reterr);
}

static void free_ids(pawl_view **ids)
{
    free(*ids);
}

/* Asks the store for every id of the group at once. */
static pawl_status load_stored(struct ledger_writer *writer,
                               struct ledger_request *const *requests,
                               size_t count,
                               pawl_error *reterr)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total += requests[i]->count;
    }
    if (total == 0) {
        return PAWL_OK;
    }
    AUTO(free_ids) pawl_view *ids = calloc(total, sizeof(*ids));
    if (ids == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to look up %zu ids", total);
    }
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < requests[i]->count; j++) {
            ids[next++] = requests[i]->events[j].id;
        }
    }
    TRY(writer->backend->ops->lookup(
        writer->backend, ids, total, add_stored, &writer->plan, reterr));
    for (size_t i = 0; i < count; i++) {
        TRY(pawl__ledger_count_ordinals(writer->backend, requests[i], reterr));
    }
    return PAWL_OK;
}

/* An embedding that does not fit fails alone: the statement leaves no trace. */
static pawl_status write_embeddings(struct ledger_writer *writer,
                                    struct ledger_request *const *requests,
                                    size_t count,
                                    pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        struct ledger_request *request = requests[i];
        if (request->kind != LEDGER_EMBED) {
            continue;
        }
        pawl_status status = writer->backend->ops->embed(
            writer->backend, request->offset, request->vector, &request->item.outcome);
        if (status == PAWL_OK) {
            writer->embedded++;
        } else if (status != PAWL_INVALID && status != PAWL_NOT_FOUND) {
            *reterr = request->item.outcome;
            return status;
        }
    }
    return PAWL_OK;
}

/* What the plan has to know of the store. */
static pawl_status start_plan(struct ledger_writer *writer,
                              struct ledger_request *const *requests,
                              size_t count,
                              bool careful,
                              pawl_error *reterr)
{
    struct ledger_plan *plan = &writer->plan;
    pawl_ledger_head head;

    TRY(writer->backend->ops->begin(writer->backend, &head, reterr));
    TRY(pawl__ledger_plan_start(plan, &head, requests, count, careful, reterr));
    TRY(load_turns(writer, requests, count, reterr));
    if (appends_outside_turns(requests, count)) {
        TRY(load_open_turns(writer, &head, reterr));
        plan->open = &writer->open;
    }
    return careful ? load_stored(writer, requests, count, reterr) : PAWL_OK;
}

/* From the write lock to the last row, everything but the commit. */
static pawl_status write_rows(struct ledger_writer *writer,
                              struct ledger_request *const *requests,
                              size_t count,
                              bool careful,
                              pawl_error *reterr)
{
    struct ledger_backend *backend = writer->backend;
    struct ledger_plan *plan = &writer->plan;

    writer->embedded = 0;
    TRY(start_plan(writer, requests, count, careful, reterr));
    for (size_t i = 0; i < count; i++) {
        pawl__ledger_plan_request(plan, requests[i]);
    }
    if (plan->doubtful) {
        return pawl__fail(reterr, PAWL_CONFLICT, "an event of an open turn may be a duplicate");
    }
    if (plan->insert_count > 0) {
        TRY(backend->ops->insert(backend, plan->inserts, plan->insert_count, reterr));
    }
    for (size_t i = 0; i < plan->change_count; i++) {
        TRY(backend->ops->turn_put(backend, &plan->changes[i], reterr));
    }
    return write_embeddings(writer, requests, count, reterr);
}

/* A turn that begins again is a conflict, unless its event is known to be a duplicate. Ordinals that a
 * caller gives are compared with what is stored. */
static bool needs_stored(struct ledger_request *const *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->turn_events > 0 || requests[i]->ordinal_count > 0) {
            return true;
        }
    }
    return false;
}

static pawl_status write_with_retry(struct ledger_writer *writer,
                                    struct ledger_request *const *requests,
                                    size_t count,
                                    pawl_error *reterr)
{
    struct ledger_backend *backend = writer->backend;
    bool careful = writer->careful > 0 || needs_stored(requests, count);
    pawl_status status = write_rows(writer, requests, count, careful, reterr);

    if (status == PAWL_CONFLICT && !careful) {
        backend->ops->rollback(backend);
        writer->careful = CAREFUL_GROUPS;
        careful = true;
        status = write_rows(writer, requests, count, careful, reterr);
    }
    if (status == PAWL_OK && writer->careful > 0 && writer->plan.duplicate_count == 0) {
        writer->careful--;
    }
    return status;
}

static pawl_status finish(struct ledger_writer *writer, pawl_error *reterr)
{
    struct ledger_backend *backend = writer->backend;

    if (writer->plan.insert_count == 0 && writer->embedded == 0) {
        backend->ops->rollback(backend); /* nothing but duplicates and refusals: no fsync */
        return PAWL_OK;
    }
    pawl_status status = backend->ops->commit(backend, reterr);
    if (status == PAWL_OK) {
        pawl__ledger_open_turns_commit(
            &writer->open, writer->plan.changes, writer->plan.change_count, &writer->plan.head);
    } else {
        writer->open.known = false; /* nobody knows what is stored */
    }
    return status;
}

/* Each id that the request gives was looked up under the write lock. */
static void fail_taken(struct ledger_request *request)
{
    bool is_turns_own = request->in_turn && request->kind != LEDGER_APPEND;

    if (is_turns_own) {
        pawl__fail_detail(
            &request->item.outcome,
            PAWL_CONFLICT,
            PAWL_DETAIL_ID_TAKEN,
            "somebody appended an event under the id that turn %lld of run '%.*s' has for its "
            "own",
            (long long)request->turn,
            VIEW_ARGS(request->run_id));
    } else {
        pawl__fail(&request->item.outcome, PAWL_CORRUPT, "an id appeared that was not there");
    }
}

/* When one of the requests cannot be carried out for a reason that only the store knows, so that
 * the others do not fail with it. */
static void write_one_by_one(struct ledger_writer *writer,
                             struct ledger_request *const *requests,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct ledger_request *request = requests[i];
        pawl_error *reterr = &request->item.outcome;
        pawl_status status = write_rows(writer, &request, 1, true, reterr);

        if (status == PAWL_OK) {
            (void)!finish(writer, reterr); /* the answer is in the outcome */
            continue;
        }
        writer->backend->ops->rollback(writer->backend);
        if (status == PAWL_CONFLICT) {
            fail_taken(request);
        }
    }
}

pawl_status pawl__ledger_write_group(struct ledger_writer *writer,
                                     struct ledger_request *const *requests,
                                     size_t count,
                                     pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = write_with_retry(writer, requests, count, &error);

    if (status == PAWL_OK) {
        return finish(writer, reterr);
    }
    writer->backend->ops->rollback(writer->backend);
    if (status == PAWL_CONFLICT) {
        write_one_by_one(writer, requests, count);
        return PAWL_OK;
    }
    return pawl__fail_with(reterr, status, &error);
}
