#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "store/duckdb/internal.h"

/* The first row that fits decides. Results and appenders bring a type; a failed open or prepare
 * brings only its text, which begins with the type's name. Where one type means several things to a
 * caller, words of the text tell them apart. */
static const struct {
    int type;           /* duckdb_error_type; -1: any */
    const char *start;  /* how a text without type begins */
    const char *within; /* NULL: any */
    pawl_status status;
} rows[] = {
    { -1, "", "No space left on device", PAWL_NO_SPACE },
    { -1, "", "Disk quota exceeded", PAWL_NO_SPACE },
    { -1, "", "Input/output error", PAWL_IO },
    /* Files: what their headers, checksums and lengths say. */
    { DUCKDB_ERROR_IO, "IO Error", "Could not set lock on file", PAWL_BUSY },
    { DUCKDB_ERROR_IO, "IO Error", "Permission denied", PAWL_DENIED },
    { DUCKDB_ERROR_IO, "IO Error", "Read-only file system", PAWL_DENIED },
    { DUCKDB_ERROR_IO, "IO Error", "newer version of DuckDB", PAWL_UNSUPPORTED },
    { DUCKDB_ERROR_IO, "IO Error", "database file with version number", PAWL_UNSUPPORTED },
    { DUCKDB_ERROR_IO, "IO Error", "Failed to read WAL of version", PAWL_UNSUPPORTED },
    { DUCKDB_ERROR_IO, "IO Error", "not a valid DuckDB database file", PAWL_CORRUPT },
    { DUCKDB_ERROR_IO, "IO Error", "Could not read enough bytes", PAWL_CORRUPT },
    { -1, "", "Corrupt database file", PAWL_CORRUPT },
    { -1, "", "while replaying WAL", PAWL_CORRUPT },
    { DUCKDB_ERROR_SERIALIZATION, "Serialization Error", NULL, PAWL_CORRUPT },
    { DUCKDB_ERROR_IO, "IO Error", NULL, PAWL_IO },
    { DUCKDB_ERROR_FATAL, "FATAL Error", NULL, PAWL_IO },
    { DUCKDB_ERROR_INTERNAL, "INTERNAL Error", NULL, PAWL_FAILED },
    { DUCKDB_ERROR_CONSTRAINT, "Constraint Error", NULL, PAWL_CONFLICT },
    { DUCKDB_ERROR_DEPENDENCY, "Dependency Error", NULL, PAWL_CONFLICT },
    /* Two writers of a row or key, a commit that lost, a checkpoint beside writers: try again. */
    { DUCKDB_ERROR_TRANSACTION, "TransactionContext Error", "onflict", PAWL_BUSY },
    { DUCKDB_ERROR_TRANSACTION, "TransactionContext Error", "Failed to commit", PAWL_BUSY },
    { DUCKDB_ERROR_TRANSACTION, "TransactionContext Error", "other write trans", PAWL_BUSY },
    { DUCKDB_ERROR_TRANSACTION, "TransactionContext Error", "read-only mode", PAWL_DENIED },
    { DUCKDB_ERROR_INVALID_INPUT, "Invalid Input Error", "read-only mode", PAWL_DENIED },
    { DUCKDB_ERROR_TRANSACTION, "TransactionContext Error", NULL, PAWL_FAILED },
    { DUCKDB_ERROR_INTERRUPT, "INTERRUPT Error", NULL, PAWL_CANCELLED },
    { DUCKDB_ERROR_OUT_OF_MEMORY, "Out of Memory Error", NULL, PAWL_NOMEM },
    { DUCKDB_ERROR_PERMISSION, "Permission Error", NULL, PAWL_DENIED },
    { DUCKDB_ERROR_NOT_IMPLEMENTED, "Not implemented Error", NULL, PAWL_UNSUPPORTED },
    { DUCKDB_ERROR_MISSING_EXTENSION, "Missing Extension Error", NULL, PAWL_UNSUPPORTED },
    { DUCKDB_ERROR_NETWORK, "Network Error", NULL, PAWL_UNAVAILABLE },
    { DUCKDB_ERROR_HTTP, "HTTP Error", NULL, PAWL_UNAVAILABLE },
    { -1, "", NULL, PAWL_INVALID }, /* SQL or values that do not fit */
};

static pawl_status status_of(duckdb_error_type type, const char *text)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool fits = rows[i].type == -1
                    || (type != DUCKDB_ERROR_INVALID && rows[i].type == (int)type)
                    || (type == DUCKDB_ERROR_INVALID
                        && strncmp(text, rows[i].start, strlen(rows[i].start)) == 0);

        if (fits && (rows[i].within == NULL || strstr(text, rows[i].within) != NULL)) {
            return rows[i].status;
        }
    }
    return PAWL_FAILED;
}

/* One line: the excerpt of the statement with its caret goes, other line ends become blanks. */
static void one_line(const char *text, char *ret_line, size_t size)
{
    const char *excerpt = strstr(text, "\n\nLINE ");
    size_t len = excerpt != NULL ? (size_t)(excerpt - text) : strlen(text);

    len = MIN(len, size - 1);
    for (size_t i = 0; i < len; i++) {
        ret_line[i] = text[i] == '\n' ? ' ' : text[i];
    }
    ret_line[len] = '\0';
}

pawl_status pawl__duck_fail(duckdb_error_type type, const char *text, pawl_error *reterr)
{
    char line[PAWL_ERROR_MESSAGE_SIZE];

    text = text != NULL ? text : "DuckDB gave no reason";
    one_line(text, line, sizeof(line));
    pawl_status status = pawl__fail(reterr, status_of(type, text), "%s", line);
    if (reterr != NULL) {
        reterr->native = (int)type;
    }
    return status;
}

pawl_status pawl__duck_note(struct pawl__duck_conn *conn, pawl_status status, pawl_error *reterr)
{
    if (conn->in_transaction && conn->failure.status == PAWL_OK && status != PAWL_OK) {
        conn->failure = reterr != NULL ? *reterr : (pawl_error)PAWL_ERROR_INIT;
        conn->failure.status = status;
    }
    return status;
}

pawl_status pawl__duck_conn_fail(struct pawl__duck_conn *conn,
                                 duckdb_error_type type,
                                 const char *text,
                                 pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__duck_fail(type, text, &error);

    if (status == PAWL_CANCELLED) {
        pawl__lock(&conn->db->watch.lock);
        bool interrupted = conn->watched.interrupted;
        pawl__unlock(&conn->db->watch.lock);
        if (!interrupted) {
            status = pawl__fail(&error, PAWL_TIMEOUT, "the deadline of the statement passed");
        }
    }
    if (reterr != NULL) {
        *reterr = error;
    }
    return pawl__duck_note(conn, status, &error);
}
