/* Checks the evidence of stored checkpoints again, and records the results. */
#include <stdio.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/checkpoints/checkpoint.h"
#include "work/checkpoints/evidence.h"
#include "work/items/item.h"

static pawl_status row_exists(void *context, pawl_view select, bool *ret_exists, pawl_error *reterr)
{
    pawl_work *work = context;

    return work->backend->store->row_exists(work->backend, select, ret_exists, reterr);
}

static void name_it(const pawl_evidence *evidence,
                    size_t ordinal,
                    const char *detail,
                    char *ret_what)
{
    char text[CHECKPOINT_WHAT_SIZE];
    struct pawl__buf buf = BUF_OVER(text);

    text[0] = '\0';
    pawl__buf_add_format(&buf,
                         "evidence %zu (%s '%.*s') does not hold: ",
                         ordinal,
                         pawl__work_evidence_kind_text(evidence->kind),
                         (int)MIN(evidence->subject.len, (size_t)200),
                         evidence->subject.data);
    (void)snprintf(ret_what, CHECKPOINT_WHAT_SIZE, "%s%.200s", text, detail);
}

pawl_status pawl__work_checkpoint_check_evidence(pawl_work *work,
                                                 const pawl_checkpoint *checkpoint,
                                                 struct pawl__arena *arena,
                                                 struct work_checkpoint_result *ret_results,
                                                 char *ret_what,
                                                 pawl_error *reterr)
{
    struct work_evidence_context world = { .row_exists = row_exists,
                                           .context = work,
                                           .clock = work->engine.calls.clock };
    bool named = false;

    for (size_t i = 0; i < checkpoint->evidence_count; i++) {
        char detail[EVIDENCE_DETAIL_SIZE];
        struct work_checkpoint_result *result = &ret_results[i];
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__work_evidence_check(
            &checkpoint->evidence[i], &world, &result->ok, detail, &error);
        if (status == PAWL_INVALID) { /* a SELECT on what was dropped since: it holds no more */
            result->ok = false;
            (void)snprintf(detail, sizeof(detail), "%s", error.message);
        } else if (status != PAWL_OK) {
            if (reterr != NULL) {
                *reterr = error;
            }
            return pawl__fail_context(reterr, status, "evidence %zu", i);
        }
        result->ordinal = i;
        if (!pawl__arena_copy(arena, pawl_view_of(detail), &result->detail)) {
            return pawl__fail(reterr, PAWL_NOMEM, "evidence");
        }
        if (!result->ok && !named && ret_what != NULL) {
            name_it(&checkpoint->evidence[i], i, detail, ret_what);
        }
        named = named || !result->ok;
    }
    return PAWL_OK;
}

struct record_request {
    struct work_request request; /* first */
    const pawl_checkpoint *checkpoint;
    const struct work_checkpoint_result *results;
};

static pawl_status run_record(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct record_request *record = (struct record_request *)request;

    return tx->backend->checkpoints->record(tx->backend,
                                            &tx->now,
                                            record->checkpoint,
                                            record->results,
                                            record->checkpoint->evidence_count,
                                            reterr);
}

static bool all_hold(const struct work_checkpoint_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!results[i].ok) {
            return false;
        }
    }
    return true;
}

pawl_status pawl__work_checkpoint_verify(pawl_work *work,
                                         const pawl_checkpoint *checkpoint,
                                         bool *ret_verified,
                                         char *ret_what,
                                         pawl_error *reterr)
{
    struct work_checkpoint_result results[PAWL_EVIDENCE_MAX];
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;

    if (checkpoint->evidence_count == 0) {
        *ret_verified = true;
        return PAWL_OK;
    }
    if (checkpoint->evidence_count > COUNT_OF(results)) { /* foreign SQL can add any number */
        return pawl__fail(
            reterr, PAWL_INVALID, "evidence: more than %d pieces are stored", PAWL_EVIDENCE_MAX);
    }
    TRY(pawl__work_checkpoint_check_evidence(work, checkpoint, &arena, results, ret_what, reterr));
    struct record_request record = {
        .request.run = run_record,
        .checkpoint = checkpoint,
        .results = results,
    };
    TRY(pawl__work_submit_request(work, &record.request, reterr));
    *ret_verified = all_hold(results, checkpoint->evidence_count);
    return PAWL_OK;
}

pawl_status pawl_checkpoint_verify(pawl_work *work,
                                   pawl_view checkpoint_id,
                                   bool *ret_verified,
                                   char *ret_what,
                                   size_t room,
                                   pawl_error *reterr)
{
    NEED(work, ret_verified, reterr);
    NEED_VIEW(checkpoint_id, reterr);
    pawl_checkpoint *checkpoint;
    char what[CHECKPOINT_WHAT_SIZE] = "";
    TRY(pawl__work_check_name("checkpoint_id", checkpoint_id, reterr));
    TRY(pawl_checkpoint_get(work, checkpoint_id, (pawl_view){ NULL, 0 }, 0, &checkpoint, reterr));
    pawl_status status = pawl__work_checkpoint_verify(work, checkpoint, ret_verified, what, reterr);
    pawl_checkpoint_free(checkpoint);
    if (status == PAWL_OK && ret_what != NULL && room > 0) {
        (void)snprintf(ret_what, room, "%s", what);
    }
    return status;
}
