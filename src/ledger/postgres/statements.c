/* Every statement of the PostgreSQL backend. `offset` is a word of SQL, hence the quotes. */
#include "ledger/postgres/backend.h"

#define COLUMNS \
    "\"offset\", id, run_id, turn, kind, actor, payload, created_at, schema_version, hash"
#define COLUMN_TYPES "ittitttzix"
#define SELECT_EVENTS "SELECT " COLUMNS " FROM events WHERE "

/* $1 and $2 the range, $3 the limit, $4 run, $5 kind, $6 actor, $7 and $8 turns, $9 and $10 times.
 * The statements that go by an index name their column without a way out, so that a plan which was
 * made once for all values uses it. */
#define IN_RANGE " AND \"offset\" > $1 AND \"offset\" <= $2"
#define BY_RUN " AND ($4::text IS NULL OR run_id = $4)"
#define BY_KIND " AND ($5::text IS NULL OR kind = $5)"
#define BY_ACTOR " AND ($6::text IS NULL OR actor = $6)"
#define BY_TURN_AND_TIME " AND turn BETWEEN $7 AND $8 AND created_at >= $9 AND created_at < $10"
#define IN_ORDER " ORDER BY \"offset\" LIMIT $3"
#define READ_TYPES "iiitttiizz"

/* The same without range and limit, from $1 on. */
#define MATCHING                                                                   \
    " WHERE ($1::text IS NULL OR run_id = $1) AND ($2::text IS NULL OR kind = $2)" \
    " AND ($3::text IS NULL OR actor = $3) AND turn BETWEEN $4 AND $5"             \
    " AND created_at >= $6 AND created_at < $7"
#define MATCHING_TYPES "tttiizz"

#define TURN_COLUMNS "run_id, turn, attempt, state, begin_offset, end_offset"
#define TURN_TYPES "tiiiii"

#define QUERY_VECTOR(parameter) \
    "WITH asked AS MATERIALIZED (SELECT embedding_of(" parameter ") AS vector) "

#define OUR_TABLES \
    "('events'::regclass, 'ledger_head'::regclass, 'turns'::regclass, 'embeddings'::regclass)"

const struct pawl__pg_statement pawl__ledger_pg_statements[PG_COUNT] = {
    [PG_HEAD] = { "SELECT \"offset\", hash FROM ledger_head", NULL, "ix" },
    [PG_HEAD_LOCK] = { "SELECT \"offset\", hash FROM ledger_head FOR UPDATE", NULL, "ix" },
    [PG_HEAD_SET] = { "UPDATE ledger_head SET \"offset\" = $1, hash = $2", "ix", NULL },
    [PG_HEAD_AND_LAST] = { "SELECT ledger_head.\"offset\", ledger_head.hash, last.\"offset\","
                           " last.hash, (SELECT min(\"offset\") FROM events)"
                           " FROM ledger_head LEFT JOIN (SELECT \"offset\", hash"
                           " FROM events ORDER BY \"offset\" DESC LIMIT 1) AS last ON true",
                           NULL,
                           "ixixi" },
    /* What the transaction has written so far, and whether a trigger, a rule or a key that is gone could
     * have meddled: nobody can change that before it ends. Both bounds: with one of them the server plans
     * to read the whole table, once for all. */
    [PG_READ_BACK] = { "SELECT (SELECT count(*) FROM events WHERE \"offset\" > $1 AND \"offset\" "
                       "<= $2),"
                       " (SELECT hash FROM events WHERE \"offset\" = $2), \"offset\", hash,"
                       " EXISTS (SELECT FROM pg_trigger WHERE tgrelid IN " OUR_TABLES
                       "  AND NOT tgisinternal)"
                       " OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class IN " OUR_TABLES ")"
                       " OR 5 > (SELECT count(*) FROM pg_index WHERE indrelid IN " OUR_TABLES
                       "  AND indisunique AND indisvalid) FROM ledger_head",
                       "ii",
                       "ixixb" },
    [PG_NOTIFY] = { "SELECT true FROM pg_notify('" PAWL__LEDGER_CHANNEL "', $1::bigint::text)",
                    "i",
                    "b" },
    [PG_INSERT] = { "INSERT INTO events (" COLUMNS ") SELECT $1 + ordinal - 1, id, run_id, turn,"
                    " kind, actor, payload::json, created_at, schema_version, hash"
                    " FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10) WITH ORDINALITY"
                    " AS given (id, run_id, turn, kind, actor, payload, created_at,"
                    " schema_version, hash, ordinal)",
                    "iTTITTTZIX",
                    NULL },
    [PG_LOOKUP] = { SELECT_EVENTS "id = ANY ($1)", "T", COLUMN_TYPES },
    [PG_BY_ID] = { SELECT_EVENTS "id = $1", "t", COLUMN_TYPES },
    [PG_BY_OFFSET] = { SELECT_EVENTS "\"offset\" = $1", "i", COLUMN_TYPES },
    [PG_READ] = { SELECT_EVENTS "true" IN_RANGE IN_ORDER, "iii", COLUMN_TYPES },
    [PG_READ_FILTER] = { SELECT_EVENTS
                         "true" IN_RANGE BY_RUN BY_KIND BY_ACTOR BY_TURN_AND_TIME IN_ORDER,
                         READ_TYPES,
                         COLUMN_TYPES },
    [PG_READ_RUN] = { SELECT_EVENTS
                      "run_id = $4" IN_RANGE BY_KIND BY_ACTOR BY_TURN_AND_TIME IN_ORDER,
                      READ_TYPES,
                      COLUMN_TYPES },
    [PG_READ_KIND] = { SELECT_EVENTS "kind = $5" IN_RANGE BY_RUN BY_ACTOR BY_TURN_AND_TIME IN_ORDER,
                       READ_TYPES,
                       COLUMN_TYPES },
    [PG_READ_ACTOR] = { SELECT_EVENTS
                        "actor = $6" IN_RANGE BY_RUN BY_KIND BY_TURN_AND_TIME IN_ORDER,
                        READ_TYPES,
                        COLUMN_TYPES },
    [PG_TURN_GET] = { "SELECT attempt, state, begin_offset, end_offset FROM turns"
                      " WHERE run_id = $1 AND turn = $2 ORDER BY attempt DESC LIMIT 1",
                      "ti",
                      "iiii" },
    [PG_TURN_PUT] = { "INSERT INTO turns (" TURN_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6)"
                      " ON CONFLICT (run_id, turn, attempt) DO UPDATE SET state = EXCLUDED.state,"
                      " begin_offset = EXCLUDED.begin_offset, end_offset = EXCLUDED.end_offset",
                      "tiiiii",
                      NULL },
    /* Two rows with one begin are not the ledger's, but verify has to see both of them. */
    [PG_TURNS] = { "SELECT " TURN_COLUMNS " FROM turns WHERE ($1::text IS NULL OR run_id = $1)"
                   " AND begin_offset >= $2 AND (begin_offset, run_id, turn, attempt)"
                   " > ($2, $4::text COLLATE \"C\", $5::bigint, $6::bigint)"
                   " ORDER BY begin_offset, run_id, turn, attempt LIMIT $3",
                   "tiitii",
                   TURN_TYPES },
    [PG_TURNS_UNFINISHED] = { "SELECT " TURN_COLUMNS " FROM turns"
                              " WHERE state <> 1 AND (end_offset = 0 OR end_offset > $1)",
                              "i",
                              TURN_TYPES },
    [PG_LAST_COMPLETE] = { "SELECT max(turn) FROM turns WHERE run_id = $1 AND state = 1",
                           "t",
                           "i" },
    [PG_MAX_TURN] = { "SELECT max(turn) FROM events WHERE $1::text IS NULL OR run_id = $1",
                      "t",
                      "i" },
    [PG_COUNT_RUN] = { "SELECT run_id, count(*) FROM events" MATCHING " GROUP BY 1 ORDER BY 1",
                       MATCHING_TYPES,
                       "ti" },
    [PG_COUNT_KIND] = { "SELECT kind, count(*) FROM events" MATCHING " GROUP BY 1 ORDER BY 1",
                        MATCHING_TYPES,
                        "ti" },
    [PG_COUNT_ACTOR] = { "SELECT actor, count(*) FROM events" MATCHING " GROUP BY 1 ORDER BY 1",
                         MATCHING_TYPES,
                         "ti" },
    [PG_EMBED_ANY] = { "SELECT octet_length(vector) FROM embeddings LIMIT 1", NULL, "i" },
    [PG_EMBED_DELETE] = { "DELETE FROM embeddings WHERE \"offset\" = $1", "i", NULL },
    [PG_EMBED] = { "INSERT INTO embeddings (\"offset\", vector)"
                   " SELECT \"offset\", $2 FROM events WHERE \"offset\" = $1",
                   "ix",
                   NULL },
    [PG_EMBEDDINGS] = { "SELECT \"offset\", vector FROM embeddings ORDER BY \"offset\"",
                        NULL,
                        "ix" },
    [PG_EMBEDDINGS_FILTER] = { "SELECT \"offset\", vector FROM embeddings"
                               " JOIN events USING (\"offset\")" MATCHING " ORDER BY \"offset\"",
                               MATCHING_TYPES,
                               "ix" },

    /* The question is turned into a vector once, not once a row. Nothing but a sort by distance:
     * an index of pgvector's would answer with some of the nearest. */
    [PG_VECTOR_EMBED] = { "INSERT INTO embeddings (\"offset\", vector, embedding)"
                          " SELECT \"offset\", $2, embedding_of($3) FROM events"
                          " WHERE \"offset\" = $1",
                          "ixt",
                          NULL },
    [PG_VECTOR_MISSING] = { "SELECT \"offset\", vector FROM embeddings WHERE embedding IS NULL"
                            " ORDER BY \"offset\" LIMIT $1",
                            "i",
                            "ix" },
    [PG_VECTOR_FILL] = { "UPDATE embeddings SET embedding = embedding_of($3)"
                         " WHERE \"offset\" = $1 AND vector = $2",
                         "ixt",
                         NULL },
    [PG_VECTOR_NEAREST] = { QUERY_VECTOR("$1") "SELECT \"offset\", embeddings.vector"
                                               " FROM embeddings, asked"
                                               " ORDER BY embedding_distance(embedding, "
                                               "asked.vector), \"offset\""
                                               " LIMIT $2",
                            "ti",
                            "ix" },
    [PG_VECTOR_NEAREST_FILTER] = { QUERY_VECTOR("$8") "SELECT \"offset\", embeddings.vector"
                                                      " FROM asked, embeddings JOIN events USING "
                                                      "(\"offset\")" MATCHING
                                                      " ORDER BY embedding_distance(embedding, "
                                                      "asked.vector),"
                                                      " \"offset\" LIMIT $9",
                                   MATCHING_TYPES "ti",
                                   "ix" },
};
