/* A transaction is one prepared SELECT of nextval, in this process. The name of a sequence has to be a
 * constant, so there is a statement for each workspace. */
#include "sequencer_peers/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <duckdb.h>

struct client {
    duckdb_database db;
    duckdb_connection conn;
    duckdb_prepared_statement statements[PEER_WORKSPACES];
    int numbers; /* what the statements ask for */
};

static void run(duckdb_connection conn, const char *sql)
{
    duckdb_result result;

    if (duckdb_query(conn, sql, &result) != DuckDBSuccess) {
        peer_stop("DuckDB", duckdb_result_error(&result));
    }
    duckdb_destroy_result(&result);
}

static void prepare(const char *where)
{
    duckdb_database db = NULL;
    duckdb_connection conn = NULL;
    char sql[96];

    if (duckdb_open(where, &db) != DuckDBSuccess || duckdb_connect(db, &conn) != DuckDBSuccess) {
        peer_stop("DuckDB", "cannot open its file");
    }
    run(conn, "BEGIN");
    for (int i = 0; i < PEER_WORKSPACES; i++) {
        snprintf(sql, sizeof(sql), "CREATE SEQUENCE a%d; CREATE SEQUENCE b%d", i, i);
        run(conn, sql);
    }
    run(conn, "COMMIT");
    duckdb_disconnect(&conn);
    duckdb_close(&db);
}

static void *open_client(const char *where)
{
    struct client *client = calloc(1, sizeof(*client));

    if (client == NULL || duckdb_open(where, &client->db) != DuckDBSuccess
        || duckdb_connect(client->db, &client->conn) != DuckDBSuccess) {
        peer_stop("DuckDB", "cannot open its file");
    }
    return client;
}

static void prepare_statements(struct client *client, int numbers)
{
    for (int i = 0; i < PEER_WORKSPACES; i++) {
        char sql[32 + PEER_NUMBERS_MAX * 24] = "SELECT 0";
        for (int n = 0; n < numbers; n++) {
            size_t len = strlen(sql);
            snprintf(&sql[len], sizeof(sql) - len, ", nextval('%c%d')", n % 2 == 0 ? 'a' : 'b', i);
        }
        duckdb_destroy_prepare(&client->statements[i]);
        if (duckdb_prepare(client->conn, sql, &client->statements[i]) != DuckDBSuccess) {
            peer_stop("DuckDB", duckdb_prepare_error(client->statements[i]));
        }
    }
    client->numbers = numbers;
}

static void take(void *context, uint64_t workspace, int numbers)
{
    struct client *client = context;
    duckdb_result result;

    if (client->numbers != numbers) {
        prepare_statements(client, numbers); /* in the round that warms up */
    }
    if (duckdb_execute_prepared(client->statements[workspace - 1], &result) != DuckDBSuccess) {
        peer_stop("DuckDB", duckdb_result_error(&result));
    }
    duckdb_destroy_result(&result);
}

static void close_client(void *context)
{
    struct client *client = context;

    for (int i = 0; i < PEER_WORKSPACES; i++) {
        duckdb_destroy_prepare(&client->statements[i]);
    }
    duckdb_disconnect(&client->conn);
    duckdb_close(&client->db);
    free(client);
}

const struct peer peer_duckdb = {
    .prepare = prepare,
    .open = open_client,
    .take = take,
    .close = close_client,
};
