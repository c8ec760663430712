/* The table of statements becomes prepared ones, and is compared with what the server makes of it.
 */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "store/postgres/internal.h"

static const char *letters_of(const char *letters)
{
    return letters == NULL ? "" : letters;
}

static bool send_prepare(struct pawl__pg *pg, size_t index)
{
    const struct pawl__pg_statement *statement = &pg->options.statements[index];
    const char *params = letters_of(statement->params);
    Oid types[PAWL__PG_PARAMS_MAX];

    REQUIRE(strlen(params) <= PAWL__PG_PARAMS_MAX);
    for (size_t i = 0; params[i] != '\0'; i++) {
        types[i] = pawl__pg_param_type(params[i]);
    }
    pg->prepared[index].param_count = strlen(params);
    snprintf(pg->prepared[index].name, sizeof(pg->prepared[index].name), "s%zu", index);
    const char *name = pg->prepared[index].name;
    return PQsendPrepare(pg->conn, name, statement->sql, (int)strlen(params), types) == 1
           && PQsendDescribePrepared(pg->conn, name) == 1;
}

/* What the server says of a prepared statement against what the table says. */
static pawl_status check_columns(const struct pawl__pg_statement *statement,
                                 const PGresult *described,
                                 pawl_error *reterr)
{
    const char *columns = letters_of(statement->columns);

    if ((size_t)PQnparams(described) != strlen(letters_of(statement->params))) {
        return pawl__fail(reterr,
                          PAWL_FAILED,
                          "it has %d parameters, the table names %zu",
                          PQnparams(described),
                          strlen(letters_of(statement->params)));
    }
    if ((size_t)PQnfields(described) != strlen(columns)) {
        return pawl__fail(reterr,
                          PAWL_FAILED,
                          "it returns %d columns, the table names %zu",
                          PQnfields(described),
                          strlen(columns));
    }
    for (int i = 0; i < PQnfields(described); i++) {
        if (!pawl__pg_column_fits(columns[i], PQftype(described, i))) {
            return pawl__fail(reterr,
                              PAWL_FAILED,
                              "column '%s' has type %u, which is not '%c'",
                              PQfname(described, i),
                              PQftype(described, i),
                              columns[i]);
        }
    }
    return PAWL_OK;
}

/* Reads up to the sync, so that the connection can be used again, and keeps the first failure. Each
 * statement has two answers, of PREPARE and of DESCRIBE, each with a NULL behind it. */
static pawl_status read_prepared(struct pawl__pg *pg, pawl_error *reterr)
{
    pawl_status outcome = PAWL_OK;

    for (size_t answers = 0;;) {
        AUTO(pawl__pg_result_clear) PGresult *result = NULL;
        TRY(pawl__pg_next(pg, &result, reterr));
        if (result == NULL && !pg->broken) {
            answers++;
            continue;
        }
        if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            return outcome;
        }
        size_t index = MIN(answers / 2, pg->options.statement_count - 1);
        const struct pawl__pg_statement *statement = &pg->options.statements[index];
        if (outcome == PAWL_OK && PQresultStatus(result) != PGRES_COMMAND_OK) {
            outcome = pawl__pg_fail_result(pg, result, reterr);
        } else if (outcome == PAWL_OK && answers % 2 == 1) {
            outcome = check_columns(statement, result, reterr);
        } else {
            continue;
        }
        if (outcome != PAWL_OK) {
            pawl__fail_context(reterr, outcome, "statement %zu '%.80s'", index, statement->sql);
        }
        if (pg->broken) {
            return outcome;
        }
    }
}

pawl_status pawl__pg_prepare_all(struct pawl__pg *pg, pawl_error *reterr)
{
    if (pg->options.statement_count == 0) {
        return PAWL_OK;
    }
    if (PQenterPipelineMode(pg->conn) == 0) {
        return pawl__pg_fail_link(pg, reterr);
    }
    pg->answers_table = true;
    for (size_t i = 0; i < pg->options.statement_count; i++) {
        if (!send_prepare(pg, i)) {
            return pawl__pg_fail_link(pg, reterr);
        }
    }
    if (PQpipelineSync(pg->conn) == 0) {
        return pawl__pg_fail_link(pg, reterr);
    }
    pawl_status status = read_prepared(pg, reterr);
    if (!pg->broken && PQexitPipelineMode(pg->conn) == 0) {
        return pawl__pg_fail_link(pg, reterr);
    }
    return status;
}
