/* Pipelines. Three things go wrong in hand-written ones, and are closed here:
 *
 *   Both sides write and nobody reads.
 *       The socket never blocks; whenever it takes no more, what has arrived is read and handed
 *       out.
 *   Memory grows with the batch.
 *       At most PG_WINDOW statements are unanswered and about PG_UNSENT_MAX bytes unsent; the
 *       server is asked to flush its answers twice a window, so that a full window is one that is
 *       being answered already, not a stall.
 *   Half a batch is committed.
 *       There is one sync, at the end, so everything before it is in one transaction. When our side
 *       fails (a bad value, on_rows, an abandoned pipeline) a statement that must fail goes out
 *       before the sync and takes the rest with it. */
#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "store/postgres/internal.h"

/* Fails inside and outside a transaction, and its name explains it in the server's log. */
#define UNDO_SQL "ROLLBACK TO SAVEPOINT pawl_pipeline_abandoned"

pawl_status pawl__pg_pipeline_begin(struct pawl__pg *pg,
                                    pawl__pg_on_rows *on_rows,
                                    void *context,
                                    pawl_error *reterr)
{
    pawl_status status = pawl__pg_ready(pg, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    if (PQenterPipelineMode(pg->conn) == 0) {
        return pawl__pg_fail_link(pg, reterr);
    }
    struct pg_pipeline *pipeline = &pg->pipeline;
    pipeline->open = true;
    pipeline->server_failed = false;
    pipeline->refused = false;
    pipeline->synced = false;
    pipeline->begun = 0;
    pipeline->commit_at = SIZE_MAX;
    pipeline->committed = false;
    pipeline->on_rows = on_rows;
    pipeline->context = context;
    pipeline->added = 0;
    pipeline->answered = 0;
    pipeline->unsent = 0;
    pipeline->failure.status = PAWL_OK;
    return PAWL_OK;
}

/* Returns the pipeline's failure, which is the first there was. */
static pawl_status failed(const struct pg_pipeline *pipeline, pawl_error *reterr)
{
    if (reterr != NULL) {
        *reterr = pipeline->failure;
    }
    return pipeline->failure.status;
}

static void keep_failure(struct pg_pipeline *pipeline, const pawl_error *error, size_t index)
{
    if (pipeline->failure.status == PAWL_OK) {
        pipeline->failure = *error;
        pawl__fail_context(
            &pipeline->failure, error->status, "statement %zu", index + 1 - pipeline->begun);
    }
}

/* One result of statement number `answered`. */
static void take_result(struct pawl__pg *pg, PGresult *taken)
{
    AUTO(pawl__pg_result_clear) PGresult *result = taken;
    struct pg_pipeline *pipeline = &pg->pipeline;
    ExecStatusType kind = PQresultStatus(result);
    pawl_error error = PAWL_ERROR_INIT;

    if (kind == PGRES_PIPELINE_ABORTED) {
        return; /* skipped because of the failure we have seen */
    }
    if (kind != PGRES_TUPLES_OK && kind != PGRES_COMMAND_OK) {
        pipeline->server_failed = true;
        error.status = pawl__pg_fail_result(pg, result, &error);
        pipeline->refused |= !pg->broken;
        /* After the sync a lost link says nothing about any statement: see end_without_answer. */
        if (!pg->broken || !pipeline->synced) {
            keep_failure(pipeline, &error, pipeline->answered);
        }
        return;
    }
    size_t statement = pipeline->window[pipeline->answered % PG_WINDOW];
    if (pipeline->answered == pipeline->commit_at) {
        /* The server answers ROLLBACK, and no error, when the transaction had failed. */
        pipeline->committed = strcmp(PQcmdStatus(result), "COMMIT") == 0;
        pipeline->refused |= !pipeline->committed;
    }
    if (statement == PG_OWN_WORD || pipeline->on_rows == NULL
        || pipeline->failure.status != PAWL_OK) {
        return;
    }
    AUTO(pawl__pg_rows_done)
    struct pawl__pg_rows rows =
        pawl__pg_rows_of(STEAL(result), pg->options.statements[statement].columns);
    size_t index =
        pipeline->answered - pipeline->begun - (pipeline->answered > pipeline->commit_at ? 1 : 0);
    error.status = pipeline->on_rows(pipeline->context, index, &rows, &error);
    if (error.status != PAWL_OK) {
        keep_failure(pipeline, &error, pipeline->answered);
    }
}

/* Hands out what has arrived, without waiting. */
static void take_ready(struct pawl__pg *pg)
{
    struct pg_pipeline *pipeline = &pg->pipeline;

    while (pipeline->answered < pipeline->added && !pg->broken && !PQisBusy(pg->conn)) {
        PGresult *result = PQgetResult(pg->conn);

        if (PQstatus(pg->conn) == CONNECTION_BAD) {
            pg->broken = true;
        }
        if (result == NULL) {
            pipeline->answered++;
        } else {
            take_result(pg, result);
        }
    }
}

static pawl_status link_failed(struct pawl__pg *pg, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    pawl__pg_fail_link(pg, &error);
    keep_failure(&pg->pipeline, &error, pg->pipeline.added);
    return failed(&pg->pipeline, reterr);
}

static pawl_status fail_while_sending(pawl_error *reterr)
{
    FAILPOINT("postgres.pipeline.wait", reterr);
    return PAWL_OK;
}

/* Sends until the output is empty and at most `open_max` statements are unanswered, reading all the
 * while. */
static pawl_status relieve(struct pawl__pg *pg, size_t open_max, pawl_error *reterr)
{
    struct pg_pipeline *pipeline = &pg->pipeline;
    int64_t deadline_ns = pawl__pg_answer_deadline(pg);
    size_t answered = pipeline->answered;

    for (;;) {
        take_ready(pg);
        int unsent = pg->broken ? -1 : PQflush(pg->conn);
        if (unsent < 0) {
            return link_failed(pg, reterr);
        }
        if (unsent == 0 && pipeline->added - pipeline->answered <= open_max) {
            pipeline->unsent = 0;
            return PAWL_OK;
        }
        if (pipeline->answered != answered) {
            answered = pipeline->answered;
            deadline_ns = pawl__pg_answer_deadline(pg); /* it moves: that is all we ask for */
        }
        pawl_error error = PAWL_ERROR_INIT;
        if (fail_while_sending(&error) != PAWL_OK
            || pawl__pg_step(pg, unsent > 0, deadline_ns, &error) != PAWL_OK) {
            keep_failure(pipeline, &error, pipeline->answered);
            return failed(pipeline, reterr);
        }
    }
}

/* Counts what was just sent, and makes room when there is none. */
static pawl_status sent(struct pawl__pg *pg, size_t word, size_t bytes, pawl_error *reterr)
{
    struct pg_pipeline *pipeline = &pg->pipeline;

    pipeline->window[pipeline->added % PG_WINDOW] = (uint16_t)word;
    pipeline->added++;
    pipeline->unsent += bytes;
    if (pipeline->added % (PG_WINDOW / 2) == 0 && PQsendFlushRequest(pg->conn) == 0) {
        return link_failed(pg, reterr);
    }
    bool full = pipeline->added - pipeline->answered == PG_WINDOW;
    return full || pipeline->unsent > PG_UNSENT_MAX ? relieve(pg, PG_WINDOW - 1, reterr) : PAWL_OK;
}

static pawl_status add_own_word(struct pawl__pg *pg, const char *sql, pawl_error *reterr)
{
    if (PQsendQueryParams(pg->conn, sql, 0, NULL, NULL, NULL, NULL, 1) == 0) {
        return link_failed(pg, reterr);
    }
    return sent(pg, PG_OWN_WORD, strlen(sql), reterr);
}

pawl_status pawl__pg_pipeline_begin_transaction(struct pawl__pg *pg,
                                                pawl__pg_on_rows *on_rows,
                                                void *context,
                                                pawl_error *reterr)
{
    REQUIRE(!pg->in_transaction);
    TRY(pawl__pg_pipeline_begin(pg, on_rows, context, reterr));
    pg->in_transaction = true;
    pg->pipeline.begun = 1;
    return add_own_word(pg, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", reterr);
}

static pawl_status fail_before_commit(pawl_error *reterr)
{
    FAILPOINT("postgres.commit.before", reterr);
    return PAWL_OK;
}

pawl_status pawl__pg_pipeline_commit(struct pawl__pg *pg, pawl_error *reterr)
{
    struct pg_pipeline *pipeline = &pg->pipeline;
    pawl_error error = PAWL_ERROR_INIT;

    REQUIRE(pipeline->open && pg->in_transaction && pipeline->commit_at == SIZE_MAX);
    if (pipeline->failure.status == PAWL_OK && fail_before_commit(&error) != PAWL_OK) {
        keep_failure(pipeline, &error, pipeline->added);
    }
    if (pipeline->failure.status != PAWL_OK) {
        return failed(pipeline, reterr);
    }
    pipeline->commit_at = pipeline->added;
    return add_own_word(pg, "COMMIT", reterr);
}

pawl_status pawl__pg_pipeline_add(struct pawl__pg *pg,
                                  size_t statement,
                                  const struct pawl__pg_value *values,
                                  size_t value_count,
                                  pawl_error *reterr)
{
    struct pg_pipeline *pipeline = &pg->pipeline;
    struct pg_bound bound;
    pawl_error error = PAWL_ERROR_INIT;

    REQUIRE(pipeline->open);
    REQUIRE(statement < pg->options.statement_count);
    REQUIRE(value_count == pg->prepared[statement].param_count);
    if (pipeline->failure.status != PAWL_OK) {
        return failed(pipeline, reterr);
    }
    const struct pawl__pg_statement *text = &pg->options.statements[statement];
    if (pawl__pg_bind(text->params, values, value_count, &bound, &error) != PAWL_OK) {
        if (pipeline->commit_at != SIZE_MAX) {
            return pawl__fail(reterr, error.status, "%s", error.message); /* but a question */
        }
        keep_failure(pipeline, &error, pipeline->added);
        return failed(pipeline, reterr);
    }
    if (pawl__pg_send(pg, text, pg->prepared[statement].name, &bound, value_count) != PAWL_OK) {
        return link_failed(pg, reterr);
    }
    return sent(pg, statement, bound.bytes, reterr);
}

pawl_status pawl__pg_pipeline_push(struct pawl__pg *pg, pawl_error *reterr)
{
    REQUIRE(pg->pipeline.open);
    return pg->pipeline.failure.status == PAWL_OK ? relieve(pg, PG_WINDOW, reterr)
                                                  : failed(&pg->pipeline, reterr);
}

/* Waits for the answer to the sync; everything before it is handed out on the way. */
static pawl_status read_to_sync(struct pawl__pg *pg, pawl_error *reterr)
{
    struct pg_pipeline *pipeline = &pg->pipeline;

    for (;;) {
        PGresult *result = NULL;
        TRY(pawl__pg_next(pg, &result, reterr));
        if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            return PAWL_OK;
        }
        if (result != NULL) {
            take_result(pg, result);
        } else if (pipeline->answered < pipeline->added) {
            pipeline->answered++;
        }
        if (pg->broken) {
            return pawl__pg_fail_link(pg, reterr);
        }
    }
}

/* The visitor may refuse a row, and must see all of them before the sync commits. That
 * costs a round trip. Inside a transaction the sync commits nothing: see undo_refused. */
static pawl_status show_all_rows(struct pawl__pg *pg, pawl_error *reterr)
{
    if (pg->pipeline.on_rows == NULL || pg->pipeline.failure.status != PAWL_OK
        || pg->in_transaction) {
        return PAWL_OK;
    }
    return PQsendFlushRequest(pg->conn) == 0 ? link_failed(pg, reterr) : relieve(pg, 0, reterr);
}

/* Everything from the last statement to the answer of the sync. */
static pawl_status synchronise(struct pawl__pg *pg, pawl_error *reterr)
{
    struct pg_pipeline *pipeline = &pg->pipeline;

    if (pg->broken || (show_all_rows(pg, reterr) != PAWL_OK && pg->broken)) {
        return pawl__pg_fail_link(pg, reterr);
    }
    if (pipeline->failure.status != PAWL_OK && !pipeline->server_failed
        && PQsendQueryParams(pg->conn, UNDO_SQL, 0, NULL, NULL, NULL, NULL, 1) == 0) {
        return pawl__pg_fail_link(pg, reterr);
    }
    pipeline->synced = true;
    if (PQpipelineSync(pg->conn) == 0) {
        return pawl__pg_fail_link(pg, reterr);
    }
    pawl_status status = read_to_sync(pg, reterr);
    if (status == PAWL_OK && PQexitPipelineMode(pg->conn) == 0) {
        return pawl__pg_fail_link(pg, reterr);
    }
    return status;
}

/* The link died behind a COMMIT: it was answered, or refused, or nobody knows. */
static pawl_status end_with_commit(struct pawl__pg *pg, pawl_error *reterr)
{
    pg->in_transaction = false;
    if (pg->pipeline.committed) {
        return PAWL_OK;
    }
    return pg->pipeline.refused ? failed(&pg->pipeline, reterr)
                                : pawl__pg_fail_unknown(reterr, "transaction");
}

/* The link died on the way. Without a transaction around it, a pipeline that had not failed may
 * have been committed. */
static pawl_status end_without_answer(struct pawl__pg *pg, pawl_error *reterr)
{
    bool failed_before = pg->pipeline.failure.status != PAWL_OK;

    pawl__pg_drop(pg);
    if (pg->pipeline.commit_at != SIZE_MAX) {
        return end_with_commit(pg, reterr);
    }
    if (failed_before) {
        return failed(&pg->pipeline, reterr);
    }
    return pg->in_transaction || !pg->pipeline.synced ? PAWL_UNAVAILABLE
                                                      : pawl__pg_fail_unknown(reterr, "pipeline");
}

/* What on_rows refused behind the sync aborts the transaction as it does before it. */
static void undo_refused(struct pawl__pg *pg)
{
    const struct pg_pipeline *pipeline = &pg->pipeline;

    if (pg->in_transaction && pipeline->failure.status != PAWL_OK && !pipeline->server_failed
        && !pg->broken) {
        (void)!pawl__pg_simple(pg, UNDO_SQL, NULL);
    }
}

/* All answers are there. */
static pawl_status end_answered(struct pawl__pg *pg, pawl_error *reterr)
{
    struct pg_pipeline *pipeline = &pg->pipeline;

    if (pipeline->commit_at == SIZE_MAX) {
        undo_refused(pg);
        return pipeline->failure.status == PAWL_OK ? PAWL_OK : failed(pipeline, reterr);
    }
    pg->in_transaction = PQtransactionStatus(pg->conn) != PQTRANS_IDLE;
    if (pipeline->committed) {
        return PAWL_OK;
    }
    return pipeline->failure.status != PAWL_OK
               ? failed(pipeline, reterr)
               : pawl__fail(reterr, PAWL_FAILED, "the server rolled the transaction back");
}

static pawl_status end_now(struct pawl__pg *pg, pawl_error *reterr)
{
    struct pg_pipeline *pipeline = &pg->pipeline;
    pawl_error error = PAWL_ERROR_INIT;

    pipeline->open = false;
    pawl_status status = synchronise(pg, &error);
    if (status != PAWL_OK) {
        if (reterr != NULL) {
            *reterr = error;
        }
        return end_without_answer(pg, reterr);
    }
    return end_answered(pg, reterr);
}

static pawl_status fail_before(pawl_error *reterr)
{
    FAILPOINT("postgres.pipeline.before", reterr);
    return PAWL_OK;
}

static pawl_status fail_after(const struct pg_pipeline *pipeline, pawl_error *reterr)
{
    if (pipeline->commit_at != SIZE_MAX) {
        FAILPOINT("postgres.commit.after", reterr);
    } else {
        FAILPOINT("postgres.pipeline.after", reterr);
    }
    return PAWL_OK;
}

pawl_status pawl__pg_pipeline_end(struct pawl__pg *pg, pawl_error *reterr)
{
    struct pg_pipeline *pipeline = &pg->pipeline;
    pawl_error error = PAWL_ERROR_INIT;

    REQUIRE(pipeline->open);
    if (pipeline->commit_at == SIZE_MAX && fail_before(&error) != PAWL_OK) {
        keep_failure(pipeline, &error, pipeline->added);
    }
    TRY(end_now(pg, reterr));
    return fail_after(pipeline, reterr);
}

void pawl__pg_pipeline_abandon(struct pawl__pg *pg)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (pg == NULL || !pg->pipeline.open) {
        return;
    }
    REQUIRE(pg->pipeline.commit_at == SIZE_MAX || pg->pipeline.failure.status != PAWL_OK);
    pawl__fail(&error, PAWL_CANCELLED, "the pipeline was abandoned");
    keep_failure(&pg->pipeline, &error, pg->pipeline.added);
    /* Like a rollback, it has its own moment and then the link is closed. */
    pg->gave_up = PAWL_CANCELLED;
    pg->patience_ns = pawl__pg_now_ns(pg) + PG_GRACE_MS * NS_PER_MS;
    pawl_status expected = end_now(pg, NULL);
    REQUIRE(expected != PAWL_OK);
    pg->gave_up = PAWL_OK;
}
