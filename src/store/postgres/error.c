#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "store/postgres/internal.h"

/* The first row whose prefix fits wins, so single codes stand before their class. */
static const struct {
    const char *prefix;
    pawl_status status;
} sqlstates[] = {
    { "08", PAWL_UNAVAILABLE }, /* connection exceptions */
    { "0A", PAWL_UNSUPPORTED },
    { "22", PAWL_INVALID },        /* data exceptions */
    { "23", PAWL_CONFLICT },       /* integrity constraints */
    { "25006", PAWL_DENIED },      /* read-only transaction: a standby */
    { "25P03", PAWL_UNAVAILABLE }, /* idle in transaction for too long: the server hung up */
    { "28", PAWL_DENIED },         /* wrong user or password */
    { "3D", PAWL_NOT_FOUND },      /* no such database */
    { "40", PAWL_BUSY },           /* serialization failure, deadlock: roll back, try again */
    { "42501", PAWL_DENIED },
    { "42", PAWL_FAILED }, /* SQL that does not fit the schema: see is_gone */
    { "53100", PAWL_NO_SPACE },
    { "53200", PAWL_NOMEM },     /* the server's memory, not ours */
    { "53", PAWL_BUSY },         /* too many connections and other limits */
    { "54", PAWL_INVALID },      /* too large for the server */
    { "55P03", PAWL_BUSY },      /* lock timeout */
    { "55006", PAWL_BUSY },      /* object in use */
    { "57P", PAWL_UNAVAILABLE }, /* shutdown, crash, starting up */
    { "58030", PAWL_IO },
    { "58", PAWL_FAILED },
    { "XX001", PAWL_CORRUPT }, /* data and */
    { "XX002", PAWL_CORRUPT }, /* index corrupted */
};

/* The one place where a SQLSTATE becomes a status. `gave_up` tells who cancelled a statement. */
static pawl_status status_of(const char *sqlstate, pawl_status gave_up)
{
    if (strcmp(sqlstate, "57014") == 0) {
        /* Cancelled: by us, else by statement_timeout or an administrator. */
        return gave_up == PAWL_CANCELLED ? PAWL_CANCELLED : PAWL_TIMEOUT;
    }
    for (size_t i = 0; i < COUNT_OF(sqlstates); i++) {
        if (strncmp(sqlstate, sqlstates[i].prefix, strlen(sqlstates[i].prefix)) == 0) {
            return sqlstates[i].status;
        }
    }
    return PAWL_FAILED;
}

/* The statements of the table are prepared after the migrations: a table or a column that they name and
 * that is not there was taken away. In any other text it is that text's mistake. */
static bool is_gone(const struct pawl__pg *pg, const char *sqlstate)
{
    return pg->answers_table && (strcmp(sqlstate, "42P01") == 0 || strcmp(sqlstate, "42703") == 0);
}

/* See all_or_none in sql/postgres/fragments.sql; nothing else in the statements of the table divides. */
static bool is_short(const struct pawl__pg *pg, const char *sqlstate)
{
    return pg->answers_table && strcmp(sqlstate, "22012") == 0;
}

static void keep_sqlstate(pawl_error *reterr, const char *sqlstate)
{
    if (reterr != NULL) {
        snprintf(reterr->sqlstate, sizeof(reterr->sqlstate), "%.5s", sqlstate);
    }
}

bool pawl__pg_is_fatal(const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

    return severity != NULL && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

pawl_status pawl__pg_fail_result(struct pawl__pg *pg, const PGresult *result, pawl_error *reterr)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);

    if (sqlstate == NULL || message == NULL) {
        return pawl__pg_fail_link(pg, reterr);
    }
    if (pawl__pg_is_fatal(result)) {
        pg->broken = true; /* the server hangs up after this */
    }
    pawl_status status = is_gone(pg, sqlstate) ? PAWL_CORRUPT : status_of(sqlstate, pg->gave_up);
    if (is_short(pg, sqlstate)) {
        status = pawl__fail_advised(
            reterr,
            PAWL_CORRUPT,
            "the server dropped rows that it was sent, so none was stored: look for a "
            "trigger or rule that is not pawl's, and remove it");
    } else if (status == PAWL_CONFLICT && constraint != NULL) {
        /* The message without the row's values: those belong to the user, not into a log. */
        pawl__fail(reterr, status, "constraint '%s': %s", constraint, message);
    } else {
        pawl__fail(reterr, status, "%s", message);
    }
    keep_sqlstate(reterr, sqlstate);
    return status;
}

/* libpq's messages have several lines, of which those that start with a tab are advice. */
static void first_lines(const char *text, char *ret_text, size_t size)
{
    size_t len = 0;
    bool advice = false;

    for (; *text != '\0' && len + 3 < size; text++) {
        if (*text == '\n') {
            advice = text[1] == '\t';
            if (text[1] != '\0' && !advice) {
                ret_text[len++] = ';';
                ret_text[len++] = ' ';
            }
        } else if (!advice) {
            ret_text[len++] = *text;
        }
    }
    ret_text[len] = '\0';
}

pawl_status pawl__pg_fail_link(struct pawl__pg *pg, pawl_error *reterr)
{
    char text[PAWL_ERROR_MESSAGE_SIZE] = "";

    pg->broken = true;
    if (pg->conn != NULL) {
        first_lines(PQerrorMessage(pg->conn), text, sizeof(text));
    }
    return pawl__fail(reterr,
                      PAWL_UNAVAILABLE,
                      "the connection to '%s' is lost%s%s",
                      pg->server.location,
                      text[0] == '\0' ? "" : ": ",
                      text);
}

/* With verbose errors the server's refusal reads "FATAL:  28P01: text", the first word in any
 * language. There is no other way to the code of a failed connection. */
static const char *find_sqlstate(const char *message)
{
    for (const char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
        const char *code = at + strlen(":  ");
        size_t len = 0;

        while (isdigit((unsigned char)code[len]) || isupper((unsigned char)code[len])) {
            len++;
        }
        if (len == 5 && code[5] == ':' && code[6] == ' ') {
            return code;
        }
    }
    return NULL;
}

pawl_status pawl__pg_fail_connect(const PGconn *conn, pawl_error *reterr)
{
    char text[PAWL_ERROR_MESSAGE_SIZE];
    const char *message = PQerrorMessage(conn);
    const char *sqlstate = find_sqlstate(message);

    if (sqlstate == NULL) {
        first_lines(message, text, sizeof(text));
        return pawl__fail(
            reterr, PQconnectionNeedsPassword(conn) ? PAWL_DENIED : PAWL_UNAVAILABLE, "%s", text);
    }
    const char *words = sqlstate + strlen("28P01: ");
    pawl_status status = status_of(sqlstate, PAWL_OK);
    pawl__fail(reterr,
               status,
               "cannot connect to '%s@%s:%s/%s': %.*s",
               PQuser(conn),
               PQhost(conn),
               PQport(conn),
               PQdb(conn),
               (int)strcspn(words, "\n"),
               words);
    keep_sqlstate(reterr, sqlstate);
    return status;
}

pawl_status pawl__pg_fail_unknown(pawl_error *reterr, const char *what)
{
    pawl_status status = pawl__fail_context(
        reterr, PAWL_UNAVAILABLE, "whether the %s was stored is not known", what);

    if (reterr != NULL) {
        reterr->retryable = true;
    }
    keep_sqlstate(reterr, "08007");
    return status;
}
