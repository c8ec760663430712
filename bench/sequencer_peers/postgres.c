/* A transaction is one prepared SELECT of nextval, a round trip. What it gives out is on disk: a
 * sequence logs 32 numbers ahead, and the transaction that does it waits for the log. */
#include "sequencer_peers/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

enum { OID_SIZE = 16 };

struct client {
    PGconn *conn;
    char oids[PEER_WORKSPACES][2][OID_SIZE];
};

static PGresult *ask(PGconn *conn, PGresult *result)
{
    ExecStatusType kind = PQresultStatus(result);

    if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK) {
        peer_stop("PostgreSQL", PQerrorMessage(conn));
    }
    return result;
}

static PGconn *connect_to(const char *where)
{
    PGconn *conn = PQconnectdb(where);

    if (PQstatus(conn) != CONNECTION_OK) {
        peer_stop("PostgreSQL", PQerrorMessage(conn));
    }
    return conn;
}

static void prepare(const char *where)
{
    PGconn *conn = connect_to(where);
    char sql[256];

    snprintf(sql,
             sizeof(sql),
             "DO $$ BEGIN FOR i IN 0..%d LOOP EXECUTE 'CREATE SEQUENCE a' || i;"
             " EXECUTE 'CREATE SEQUENCE b' || i; END LOOP; END $$",
             PEER_WORKSPACES - 1);
    PQclear(ask(conn, PQexec(conn, sql)));
    PQfinish(conn);
}

static void read_oids(struct client *client)
{
    char sql[160];

    snprintf(sql,
             sizeof(sql),
             "SELECT ('a' || i)::regclass::oid, ('b' || i)::regclass::oid"
             " FROM generate_series(0, %d) AS i ORDER BY i",
             PEER_WORKSPACES - 1);
    PGresult *result = ask(client->conn, PQexec(client->conn, sql));
    for (int i = 0; i < PEER_WORKSPACES; i++) {
        for (int sequence = 0; sequence < 2; sequence++) {
            snprintf(client->oids[i][sequence], OID_SIZE, "%s", PQgetvalue(result, i, sequence));
        }
    }
    PQclear(result);
}

/* "take4" asks for four numbers. */
static void prepare_statement(const struct client *client, int numbers)
{
    static const Oid types[] = { 26, 26 }; /* oid */
    char name[16];
    char sql[64 + PEER_NUMBERS_MAX * 24] = "SELECT 0";

    snprintf(name, sizeof(name), "take%d", numbers);
    for (int i = 0; i < numbers; i++) {
        strcat(sql, i % 2 == 0 ? ", nextval($1::regclass)" : ", nextval($2::regclass)");
    }
    PQclear(ask(client->conn, PQprepare(client->conn, name, sql, 2, types)));
}

static void *open_client(const char *where)
{
    struct client *client = calloc(1, sizeof(*client));

    if (client == NULL) {
        peer_stop("PostgreSQL", "no memory");
    }
    client->conn = connect_to(where);
    read_oids(client);
    for (int numbers = 2; numbers <= PEER_NUMBERS_MAX; numbers += 2) {
        prepare_statement(client, numbers);
    }
    return client;
}

static void take(void *context, uint64_t workspace, int numbers)
{
    struct client *client = context;
    const char *values[] = { client->oids[workspace - 1][0], client->oids[workspace - 1][1] };
    char name[16];

    snprintf(name, sizeof(name), "take%d", numbers);
    PQclear(ask(client->conn, PQexecPrepared(client->conn, name, 2, values, NULL, NULL, 1)));
}

static void close_client(void *context)
{
    struct client *client = context;

    PQfinish(client->conn);
    free(client);
}

const struct peer peer_postgres = {
    .prepare = prepare,
    .open = open_client,
    .take = take,
    .close = close_client,
};
