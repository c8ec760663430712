#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/fs.h"
#include "ledger/snapshot/snapshot.h"

enum { PAGE_EVENTS = 1024, COMMIT_ROWS = 10000 };
#define COMMIT_BYTES ((size_t)16 << 20)

struct work {
    const struct ledger_copy *copy;
    struct ledger_backend *target;
    bool writing;          /* a transaction of the target is open, ... */
    size_t rows;           /* ... with so many rows ... */
    size_t bytes;          /* ... and bytes */
    pawl_ledger_head head; /* the target's, planned */
    pawl_status turn_status;
    pawl_error *reterr; /* for the visitor of turns, which cannot return a status */
};

static pawl_status begin(struct work *work, pawl_error *reterr)
{
    struct ledger_backend *target = work->target;
    pawl_ledger_head head;

    if (work->writing) {
        return PAWL_OK;
    }
    pawl_status status = target->ops->begin(target, &head, reterr);
    work->writing = true; /* also when it failed half-way: the rollback at the end is for that */
    work->rows = 0;
    work->bytes = 0;
    return status;
}

static pawl_status commit(struct work *work, pawl_error *reterr)
{
    struct ledger_backend *target = work->target;

    if (!work->writing) {
        return PAWL_OK;
    }
    work->writing = false;
    return target->ops->commit(target, reterr);
}

static pawl_status wrote(struct work *work, size_t bytes, pawl_error *reterr)
{
    work->rows++;
    work->bytes += bytes;
    return work->rows < COMMIT_ROWS && work->bytes < COMMIT_BYTES ? PAWL_OK : commit(work, reterr);
}

/* --- events --- */

static pawl_status copy_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct work *work = context;
    struct ledger_backend *target = work->target;

    if (event->offset != work->head.offset + 1) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "removed: offset %llu is followed by %llu",
                          (unsigned long long)work->head.offset,
                          (unsigned long long)event->offset);
    }
    TRY(begin(work, reterr));
    TRY(target->ops->insert(target, event, 1, reterr));
    work->head.offset = event->offset;
    return wrote(work, event->payload.len, reterr);
}

static pawl_status copy_events(struct work *work, pawl_error *reterr)
{
    const struct ledger_copy *copy = work->copy;
    struct ledger_backend *source = copy->source;

    while (work->head.offset < copy->up_to) {
        struct ledger_query query = {
            .from = work->head.offset,
            .up_to = copy->up_to,
            .limit = PAGE_EVENTS,
        };

        TRY(source->ops->read(source, &query, copy_event, work, reterr));
        if (work->head.offset == query.from) {
            return pawl__fail(reterr,
                              PAWL_CORRUPT,
                              "cut off: the log ends at offset %llu, its head is at %llu",
                              (unsigned long long)query.from,
                              (unsigned long long)copy->up_to);
        }
        if (!pawl__ledger_stage_tell(
                copy->stage, work->head.offset - copy->from, copy->up_to - copy->from)) {
            return pawl__fail(reterr, PAWL_CANCELLED, "the copy was cancelled");
        }
    }
    return PAWL_OK;
}

/* --- turns --- */

static pawl_status put_turn(struct work *work, const pawl_turn_info *info, pawl_error *reterr)
{
    struct ledger_backend *target = work->target;
    bool ended = info->end_offset != 0 && info->end_offset <= work->copy->up_to;
    struct ledger_turn turn = {
        .run_id = info->run_id,
        .turn = info->turn,
        .attempt = info->attempt,
        .state = ended ? info->state : PAWL_TURN_OPEN, /* it still was */
        .begin_offset = info->begin_offset,
        .end_offset = ended ? info->end_offset : 0,
    };

    TRY(begin(work, reterr));
    TRY(target->ops->turn_put(target, &turn, reterr));
    return wrote(work, 0, reterr);
}

static bool copy_turn(void *context, const pawl_turn_info *info)
{
    struct work *work = context;
    const struct ledger_copy *copy = work->copy;

    if (info->begin_offset > copy->up_to) {
        return false; /* they come in this order */
    }
    /* What was over when the target ended is in the target. */
    if (info->begin_offset > copy->from || info->end_offset > copy->from) {
        work->turn_status = put_turn(work, info, work->reterr);
    }
    return work->turn_status == PAWL_OK;
}

static pawl_status copy_turns(struct work *work, pawl_error *reterr)
{
    struct ledger_backend *source = work->copy->source;

    work->reterr = reterr;
    work->turn_status = PAWL_OK;
    TRY(source->ops->turns(source, (pawl_view){ NULL, 0 }, 0, copy_turn, work, reterr));
    return work->turn_status;
}

/* --- embeddings --- */

/* All of them: one may have been replaced since. */
static pawl_status copy_embedding(void *context,
                                  uint64_t offset,
                                  pawl_view vector,
                                  pawl_error *reterr)
{
    struct work *work = context;
    struct ledger_backend *target = work->target;

    if (offset > work->copy->up_to) {
        return PAWL_OK;
    }
    TRY(begin(work, reterr));
    TRY(target->ops->embed(target, offset, vector, reterr));
    return wrote(work, vector.len, reterr);
}

static pawl_status copy_all(struct work *work, pawl_error *reterr)
{
    struct ledger_backend *source = work->copy->source;

    TRY(copy_events(work, reterr));
    TRY(copy_turns(work, reterr));
    TRY(source->ops->embeddings(source, NULL, copy_embedding, work, reterr));
    return commit(work, reterr);
}

pawl_status pawl__ledger_copy_into(const char *path,
                                   const struct ledger_copy *copy,
                                   pawl_error *reterr)
{
    AUTO(pawl__ledger_backend_close) struct ledger_backend *target = NULL;
    AUTO(pawl__text_free) char *name = strdup(path);
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    const struct pawl__location location = {
        .scheme = PAWL__AT_SQLITE,
        .path = name,
        .durability_normal = true,
    };

    TRY(pawl__fs_check_path(name, reterr));
    options.must_exist = copy->from > 0;
    TRY(pawl__ledger_sqlite_open(&location, &options, &target, reterr));
    struct work work = { .copy = copy, .target = target, .head = { .offset = copy->from } };
    pawl_status status = copy_all(&work, reterr);
    if (work.writing) {
        target->ops->rollback(target);
    }
    return status == PAWL_OK ? pawl__ledger_sqlite_flush(target, reterr) : status;
}
