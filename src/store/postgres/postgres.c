#include "store/postgres/postgres.h"

#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "store/postgres/internal.h"

static size_t length_of(const char *letters)
{
    return letters == NULL ? 0 : strlen(letters);
}

pawl_status pawl__pg_send(struct pawl__pg *pg,
                          const struct pawl__pg_statement *statement,
                          const char *name,
                          const struct pg_bound *bound,
                          size_t count)
{
    int sent;

    pg->answers_table = name != NULL;
    if (name != NULL) {
        sent = PQsendQueryPrepared(
            pg->conn, name, (int)count, bound->data, bound->lengths, bound->formats, 1);
    } else {
        Oid types[PAWL__PG_PARAMS_MAX];
        for (size_t i = 0; i < count; i++) {
            types[i] = pawl__pg_param_type(statement->params[i]);
        }
        sent = PQsendQueryParams(pg->conn,
                                 statement->sql,
                                 (int)count,
                                 types,
                                 bound->data,
                                 bound->lengths,
                                 bound->formats,
                                 1);
    }
    return sent == 1 ? PAWL_OK : PAWL_UNAVAILABLE;
}

/* Sends one statement and hands its rows over. */
static pawl_status run(struct pawl__pg *pg,
                       const struct pawl__pg_statement *statement,
                       const char *name,
                       const struct pg_bound *bound,
                       struct pawl__pg_rows *ret_rows,
                       pawl_error *reterr)
{
    AUTO(pawl__pg_result_clear) PGresult *result = NULL;

    if (pawl__pg_send(pg, statement, name, bound, length_of(statement->params)) != PAWL_OK) {
        return pawl__pg_fail_link(pg, reterr);
    }
    TRY(pawl__pg_answer(pg, &result, reterr));
    if (ret_rows != NULL) {
        pawl__pg_rows_done(ret_rows);
        *ret_rows = pawl__pg_rows_of(STEAL(result), statement->columns);
    }
    return PAWL_OK;
}

pawl_status pawl__pg_query(struct pawl__pg *pg,
                           const struct pawl__pg_statement *statement,
                           const struct pawl__pg_value *values,
                           size_t count,
                           struct pawl__pg_rows *ret_rows,
                           pawl_error *reterr)
{
    struct pg_bound bound;

    REQUIRE(count == length_of(statement->params));
    TRY(pawl__pg_bind(statement->params, values, count, &bound, reterr));
    return run(pg, statement, NULL, &bound, ret_rows, reterr);
}

/* A statement on its own is durable when it returns: the points before and after are its commit's.
 */
static pawl_status run_alone(struct pawl__pg *pg,
                             const struct pawl__pg_statement *statement,
                             const char *name,
                             const struct pg_bound *bound,
                             struct pawl__pg_rows *ret_rows,
                             pawl_error *reterr)
{
    FAILPOINT("postgres.exec.before", reterr);
    pawl_status status = run(pg, statement, name, bound, ret_rows, reterr);
    if (status != PAWL_OK) {
        return pg->broken ? pawl__pg_fail_unknown(reterr, "statement") : status;
    }
    FAILPOINT("postgres.exec.after", reterr);
    return PAWL_OK;
}

static pawl_status bind_and_connect(struct pawl__pg *pg,
                                    size_t statement,
                                    const struct pawl__pg_value *values,
                                    size_t value_count,
                                    const struct pawl__pg_statement **ret_text,
                                    struct pg_bound *ret_bound,
                                    pawl_error *reterr)
{
    REQUIRE(statement < pg->options.statement_count);
    REQUIRE(value_count == pg->prepared[statement].param_count);
    *ret_text = &pg->options.statements[statement];
    TRY(pawl__pg_bind((*ret_text)->params, values, value_count, ret_bound, reterr));
    return pawl__pg_ready(pg, reterr);
}

pawl_status pawl__pg_exec(struct pawl__pg *pg,
                          size_t statement,
                          const struct pawl__pg_value *values,
                          size_t value_count,
                          struct pawl__pg_rows *ret_rows,
                          pawl_error *reterr)
{
    struct pg_bound bound;
    const struct pawl__pg_statement *text = NULL;

    TRY(bind_and_connect(pg, statement, values, value_count, &text, &bound, reterr));
    const char *name = pg->prepared[statement].name;
    return pg->in_transaction ? run(pg, text, name, &bound, ret_rows, reterr)
                              : run_alone(pg, text, name, &bound, ret_rows, reterr);
}

/* --- rows as they arrive --- */

/* What a walk was told to stop with, kept while the rest of the answer is read away. */
struct walk {
    pawl__pg_on_rows *on_row;
    void *context;
    const char *columns;
    size_t index;
    pawl_status stopped; /* PAWL_OK: it goes on */
    pawl_error why;      /* what the visitor said; one that has seen enough says nothing */
    size_t thrown_away;  /* bytes since then */
};

static size_t row_bytes(const PGresult *result)
{
    size_t bytes = 0;

    for (int i = 0; i < PQnfields(result); i++) {
        bytes += (size_t)PQgetlength(result, 0, i);
    }
    return bytes;
}

/* A cancel request is a connection of its own: a short rest is read away for less. */
static void throw_away(struct pawl__pg *pg, struct walk *walk, const PGresult *result)
{
    size_t before = walk->thrown_away;

    walk->thrown_away += row_bytes(result) + 1;
    if (before <= PG_REST_BYTES_MAX && walk->thrown_away > PG_REST_BYTES_MAX) {
        pawl__pg_cancel_running(pg, PAWL_CANCELLED);
    }
}

static void show_row(struct walk *walk, PGresult **result)
{
    AUTO(pawl__pg_rows_done)
    struct pawl__pg_rows rows = pawl__pg_rows_of(STEAL(*result), walk->columns);

    walk->stopped = walk->on_row(walk->context, walk->index, &rows, &walk->why);
    walk->index++;
}

static pawl_status walk_rows(struct pawl__pg *pg, struct walk *walk, pawl_error *reterr)
{
    pawl_status outcome = PAWL_OK;

    for (;;) {
        AUTO(pawl__pg_result_clear) PGresult *result = NULL;
        pawl_status status = pawl__pg_next(pg, &result, reterr);
        if (status != PAWL_OK) {
            return status;
        }
        if (result == NULL) {
            break;
        }
        ExecStatusType kind = PQresultStatus(result);
        if (kind == PGRES_SINGLE_TUPLE && walk->stopped != PAWL_OK) {
            throw_away(pg, walk, result);
        } else if (kind == PGRES_SINGLE_TUPLE) {
            show_row(walk, &result);
        } else if (kind != PGRES_TUPLES_OK && outcome == PAWL_OK) {
            outcome = pawl__pg_fail_result(pg, result, reterr);
        }
    }
    if (walk->stopped != PAWL_OK) {
        return walk->why.status == PAWL_OK ? walk->stopped
                                           : pawl__fail_with(reterr, walk->stopped, &walk->why);
    }
    return outcome == PAWL_OK && pg->broken ? pawl__pg_fail_link(pg, reterr) : outcome;
}

pawl_status pawl__pg_each(struct pawl__pg *pg,
                          size_t statement,
                          const struct pawl__pg_value *values,
                          size_t value_count,
                          pawl__pg_on_rows *on_row,
                          void *context,
                          pawl_error *reterr)
{
    struct pg_bound bound;
    const struct pawl__pg_statement *text = NULL;

    TRY(bind_and_connect(pg, statement, values, value_count, &text, &bound, reterr));
    if (pawl__pg_send(pg, text, pg->prepared[statement].name, &bound, value_count) != PAWL_OK
        || PQsetSingleRowMode(pg->conn) == 0) {
        return pawl__pg_fail_link(pg, reterr);
    }
    struct walk walk = {
        .on_row = on_row, .context = context, .columns = text->columns, .why = PAWL_ERROR_INIT
    };
    return walk_rows(pg, &walk, reterr);
}

pawl_status pawl__pg_script(struct pawl__pg *pg, const char *sql, pawl_error *reterr)
{
    TRY(pawl__pg_ready(pg, reterr));
    pawl_status status = pawl__pg_simple(pg, sql, reterr);
    return status != PAWL_OK && pg->broken && !pg->in_transaction
               ? pawl__pg_fail_unknown(reterr, "script")
               : status;
}

pawl_status pawl__pg_begin(struct pawl__pg *pg,
                           enum pawl__pg_isolation isolation,
                           pawl_error *reterr)
{
    static const char *const texts[] = {
        [PAWL__PG_READ_COMMITTED] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        [PAWL__PG_REPEATABLE_READ] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
        [PAWL__PG_SERIALIZABLE] = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
        [PAWL__PG_READ_ONLY] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    };

    REQUIRE(!pg->in_transaction);
    REQUIRE(isolation < COUNT_OF(texts));
    pawl_status status = pawl__pg_ready(pg, reterr);
    if (status == PAWL_OK) {
        status = pawl__pg_simple(pg, texts[isolation], reterr);
    }
    pg->in_transaction = status == PAWL_OK;
    return status;
}

bool pawl__pg_in_transaction(const struct pawl__pg *pg)
{
    return pg->in_transaction;
}

static pawl_status commit_now(struct pawl__pg *pg, pawl_error *reterr)
{
    AUTO(pawl__pg_result_clear) PGresult *result = NULL;

    FAILPOINT("postgres.commit.before", reterr);
    pg->answers_table = false;
    if (PQsendQuery(pg->conn, "COMMIT") == 0) {
        return pawl__pg_fail_link(pg, reterr); /* nothing left this process */
    }
    pg->in_transaction = false;
    pawl_status status = pawl__pg_answer(pg, &result, reterr);
    if (status != PAWL_OK) {
        return pg->broken ? pawl__pg_fail_unknown(reterr, "transaction") : status;
    }
    /* The server answers ROLLBACK, and no error, when the transaction had failed. */
    if (strcmp(PQcmdStatus(result), "COMMIT") != 0) {
        return pawl__fail(reterr, PAWL_FAILED, "the server rolled the transaction back");
    }
    FAILPOINT("postgres.commit.after", reterr);
    return PAWL_OK;
}

pawl_status pawl__pg_commit(struct pawl__pg *pg, pawl_error *reterr)
{
    REQUIRE(pg->in_transaction);
    pawl_status status = pawl__pg_ready(pg, reterr);
    if (status == PAWL_OK && PQtransactionStatus(pg->conn) != PQTRANS_INTRANS) {
        status = pawl__fail(reterr,
                            PAWL_FAILED,
                            "a statement of the transaction has failed before: nothing is stored");
    }
    if (status == PAWL_OK) {
        status = commit_now(pg, reterr);
    }
    pawl__pg_rollback(pg); /* nothing to do after a commit that was sent */
    return status;
}

void pawl__pg_rollback(struct pawl__pg *pg)
{
    if (pg == NULL || !pg->in_transaction) {
        return;
    }
    pawl__pg_pipeline_abandon(pg);
    if (!pg->broken) {
        /* Neither interrupt nor deadline: it has its own moment, and then the link is closed. */
        pg->gave_up = PAWL_TIMEOUT;
        pg->patience_ns = pawl__pg_now_ns(pg) + PG_GRACE_MS * NS_PER_MS;
        if (pawl__pg_simple(pg, "ROLLBACK", NULL) != PAWL_OK) {
            pawl__pg_drop(pg);
        }
        pg->gave_up = PAWL_OK;
    }
    pg->in_transaction = false;
}
