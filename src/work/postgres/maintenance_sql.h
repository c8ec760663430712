/* The SQL of checkpoints, keys, schedules, statistics and retention. */
#ifndef PAWL_WORK_POSTGRES_MAINTENANCE_SQL_H
#define PAWL_WORK_POSTGRES_MAINTENANCE_SQL_H

#define WORK_PG_CHECKPOINT_COLUMNS                                                 \
    "checkpoint_id, c.task_id, coalesce(item_id, work_item_id), checkpoint_type, " \
    "sequence_number, snapshot_data, metadata, created_at, verified"
#define WORK_PG_CHECKPOINT_TYPES "ttttittzb"

/* With the evidence, a row a piece; without any, one row whose kind is null. */
#define WORK_PG_EVIDENCE_ "SELECT c.*, e.kind, e.subject, e.expected FROM (SELECT "
#define WORK_PG_WITH_EVIDENCE_(order)                                    \
    ") AS c LEFT JOIN checkpoint_evidence AS e ON e.task_id = c.task_id" \
    " AND e.checkpoint_id = c.checkpoint_id ORDER BY c.sequence_number" order ", e.ordinal"
#define WORK_PG_EVIDENCE_TYPES WORK_PG_CHECKPOINT_TYPES "ttt"

/* $1 task, $2 item (null: any), $3 type, $4 verified only, $5 below, $6 from, $7 limit (null: none) */
#define WORK_PG_CHECKPOINT_LIST_(order)                                                      \
    WORK_PG_EVIDENCE_ WORK_PG_CHECKPOINT_COLUMNS                                             \
        " FROM checkpoints AS c WHERE c.task_id = $1"                                        \
        " AND ($3::text IS NULL OR checkpoint_type = $3)"                                    \
        " AND ($2::text IS NULL OR item_id = $2) AND (NOT $4 OR verified)"                   \
        " AND sequence_number < $5 AND sequence_number >= $6 ORDER BY sequence_number" order \
        " LIMIT $7" WORK_PG_WITH_EVIDENCE_(order)

#define WORK_POSTGRES_CHECKPOINTS_SQL(X)                                                       \
    X(CHECKPOINT_GET,                                                                          \
      WORK_PG_EVIDENCE_ WORK_PG_CHECKPOINT_COLUMNS                                             \
      " FROM checkpoints AS c WHERE checkpoint_id = $1 LIMIT 1" WORK_PG_WITH_EVIDENCE_(""),    \
      "t",                                                                                     \
      WORK_PG_EVIDENCE_TYPES)                                                                  \
    X(CHECKPOINT_LIST, WORK_PG_CHECKPOINT_LIST_(""), "tttbiii", WORK_PG_EVIDENCE_TYPES)        \
    X(CHECKPOINT_NEWEST, WORK_PG_CHECKPOINT_LIST_(" DESC"), "tttbiii", WORK_PG_EVIDENCE_TYPES) \
    X(CHECKPOINT_ADD,                                                                          \
      "INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, item_id,"                \
      " checkpoint_type, snapshot_data, metadata, created_at) VALUES ($1, $2,"                 \
      " (SELECT work_item_id FROM work_items WHERE work_item_id = $3 FOR KEY SHARE), $3, $4,"  \
      " $5, $6, $7) RETURNING sequence_number",                                                \
      "ttttttz",                                                                               \
      "i")                                                                                     \
    X(CHECKPOINT_ID_LOCK,                                                                      \
      "SELECT true FROM pg_advisory_xact_lock(hashtextextended($1, 4))",                       \
      "t",                                                                                     \
      "b")                                                                                     \
    X(CHECKPOINT_VERIFIED,                                                                     \
      "UPDATE checkpoints SET verified = $3 WHERE task_id = $1 AND checkpoint_id = $2",        \
      "ttb",                                                                                   \
      NULL)                                                                                    \
    X(CHECKPOINT_WALK,                                                                         \
      "SELECT checkpoint_id, checkpoint_type, verified FROM checkpoints WHERE task_id = $1"    \
      " ORDER BY sequence_number DESC",                                                        \
      "t",                                                                                     \
      "ttb")                                                                                   \
    X(CHECKPOINT_ARCHIVE,                                                                      \
      "INSERT INTO checkpoints_archive (checkpoint_id, task_id, work_item_id,"                 \
      " checkpoint_type, sequence_number, snapshot_data, metadata, created_at, item_id,"       \
      " verified, archived_at) SELECT checkpoint_id, task_id, work_item_id, checkpoint_type,"  \
      " sequence_number, snapshot_data, metadata, created_at, item_id, verified, $3"           \
      " FROM checkpoints WHERE task_id = $1 AND checkpoint_id = ANY ($2)"                      \
      " ON CONFLICT DO NOTHING",                                                               \
      "tTz",                                                                                   \
      NULL)                                                                                    \
    X(CHECKPOINT_REMOVE,                                                                       \
      "DELETE FROM checkpoints WHERE task_id = $1 AND checkpoint_id = ANY ($2)",               \
      "tT",                                                                                    \
      NULL)                                                                                    \
    X(CHECKPOINT_CROWDED,                                                                      \
      "SELECT task_id, count(*) FROM checkpoints GROUP BY task_id HAVING count(*) > $1",       \
      "i",                                                                                     \
      "ti")                                                                                    \
    X(EVIDENCE_ADD,                                                                            \
      "INSERT INTO checkpoint_evidence (task_id, checkpoint_id, ordinal, kind, subject,"       \
      " expected) VALUES ($1, $2, $3, $4, $5, $6)",                                            \
      "ttittt",                                                                                \
      NULL)                                                                                    \
    X(EVIDENCE_RESULT,                                                                         \
      "INSERT INTO checkpoint_results (task_id, checkpoint_id, ordinal, at, ok, detail)"       \
      " SELECT $1, $2, $3, $4, $5, $6 WHERE EXISTS (SELECT 1 FROM checkpoints"                 \
      " WHERE task_id = $1 AND checkpoint_id = $2)",                                           \
      "ttizbt",                                                                                \
      NULL)

#define WORK_PG_KEY_COLUMNS                                                             \
    "idempotency_key, request_hash, task_id, coalesce(item_id, work_item_id), status, " \
    "response_data, owner, owner_token, lease_expires_at, created_at, completed_at, "   \
    "expires_at"
#define WORK_PG_KEY_TYPES "tttttttizzzz"

/* $1 now: past its TTL, and nobody is at it */
#define WORK_PG_KEY_OVER_ \
    "expires_at <= $1 AND NOT coalesce(status = 'pending' AND lease_expires_at > $1, false)"
/* $2 completed before */
#define WORK_PG_KEY_OLD_ "status = 'completed' AND created_at < $2 AND completed_at < $2"

#define WORK_POSTGRES_KEYS_SQL(X)                                                                 \
    X(KEY_GET,                                                                                    \
      "SELECT " WORK_PG_KEY_COLUMNS " FROM idempotency_keys WHERE idempotency_key = $1",          \
      "t",                                                                                        \
      WORK_PG_KEY_TYPES)                                                                          \
    X(KEY_LOAD,                                                                                   \
      "SELECT " WORK_PG_KEY_COLUMNS " FROM idempotency_keys WHERE idempotency_key = $1"           \
      " FOR UPDATE",                                                                              \
      "t",                                                                                        \
      WORK_PG_KEY_TYPES)                                                                          \
    X(KEY_FLOOR, "SELECT owner_token_floor FROM work_counters", NULL, "i")                        \
    X(KEY_INSERT,                                                                                 \
      "INSERT INTO idempotency_keys (idempotency_key, request_hash, task_id, work_item_id,"       \
      " item_id, owner, owner_token, lease_expires_at, created_at, expires_at)"                   \
      " VALUES ($1, $2, $3, (SELECT work_item_id FROM work_items WHERE work_item_id = $4"         \
      " FOR KEY SHARE), $4, $5, $6, $7, $8, $9)",                                                 \
      "tttttizzz",                                                                                \
      NULL)                                                                                       \
    X(KEY_TAKE,                                                                                   \
      "UPDATE idempotency_keys SET request_hash = $2, task_id = $3, work_item_id ="               \
      " (SELECT work_item_id FROM work_items WHERE work_item_id = $4 FOR KEY SHARE),"             \
      " item_id = $4, owner = $5, owner_token = $6, lease_expires_at = $7, created_at = $8,"      \
      " expires_at = $9, status = 'pending', response_data = NULL, completed_at = NULL"           \
      " WHERE idempotency_key = $1",                                                              \
      "tttttizzz",                                                                                \
      NULL)                                                                                       \
    X(KEY_END,                                                                                    \
      "UPDATE idempotency_keys SET status = $2, response_data = $3, completed_at = $4,"           \
      " lease_expires_at = NULL WHERE idempotency_key = $1",                                      \
      "tttz",                                                                                     \
      NULL)                                                                                       \
    X(KEY_CACHED,                                                                                 \
      "SELECT " WORK_PG_KEY_COLUMNS " FROM idempotency_keys WHERE task_id = $1"                   \
      " AND status = 'completed' AND (expires_at IS NULL OR expires_at > $2)"                     \
      " ORDER BY idempotency_key",                                                                \
      "tz",                                                                                       \
      WORK_PG_KEY_TYPES)                                                                          \
    X(KEY_PRUNE_OVER,                                                                             \
      "DELETE FROM idempotency_keys WHERE idempotency_key = ANY (ARRAY (SELECT"                   \
      " idempotency_key FROM idempotency_keys WHERE " WORK_PG_KEY_OVER_                           \
      " ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))",                                   \
      "zi",                                                                                       \
      NULL)                                                                                       \
    X(KEY_PRUNE_OLD,                                                                              \
      "DELETE FROM idempotency_keys WHERE idempotency_key = ANY (ARRAY (SELECT"                   \
      " idempotency_key FROM idempotency_keys WHERE " WORK_PG_KEY_OLD_                            \
      " LIMIT $1 FOR UPDATE SKIP LOCKED))",                                                       \
      "iz",                                                                                       \
      NULL)                                                                                       \
    X(KEY_PRUNABLE,                                                                               \
      "SELECT count(*) FROM idempotency_keys WHERE (" WORK_PG_KEY_OVER_ ") OR (" WORK_PG_KEY_OLD_ \
      ")",                                                                                        \
      "zz",                                                                                       \
      "i")

#define WORK_PG_SCHEDULE_                                                              \
    "SELECT schedule_id, cron, task_id, work_type, input_data, priority, max_retries," \
    " next_slot, (SELECT max(slot) FROM schedule_fires AS f"                           \
    " WHERE f.schedule_id = s.schedule_id) FROM schedules AS s WHERE enabled"
#define WORK_PG_SCHEDULE_TYPES "tttttiizz"

#define WORK_POSTGRES_SCHEDULES_SQL(X)                                                          \
    X(SCHEDULE_LOAD,                                                                            \
      WORK_PG_SCHEDULE_ " AND schedule_id = $1 FOR UPDATE OF s",                                \
      "t",                                                                                      \
      WORK_PG_SCHEDULE_TYPES)                                                                   \
    X(SCHEDULE_LIST, WORK_PG_SCHEDULE_ " ORDER BY schedule_id", NULL, WORK_PG_SCHEDULE_TYPES)   \
    X(SCHEDULE_PUT,                                                                             \
      "INSERT INTO schedules (schedule_id, cron, task_id, work_type, input_data, priority,"     \
      " max_retries, next_slot, created_at, updated_at)"                                        \
      " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)"                                        \
      " ON CONFLICT (schedule_id) DO UPDATE SET cron = excluded.cron,"                          \
      " task_id = excluded.task_id, work_type = excluded.work_type,"                            \
      " input_data = excluded.input_data, priority = excluded.priority,"                        \
      " max_retries = excluded.max_retries, next_slot = excluded.next_slot,"                    \
      " updated_at = excluded.updated_at, enabled = true",                                      \
      "tttttiizz",                                                                              \
      NULL)                                                                                     \
    X(SCHEDULE_REMOVE, "DELETE FROM schedules WHERE schedule_id = $1 RETURNING true", "t", "b") \
    X(SCHEDULE_MOVE,                                                                            \
      "UPDATE schedules SET next_slot = $2, updated_at = $3 WHERE schedule_id = $1",            \
      "tzz",                                                                                    \
      NULL)                                                                                     \
    X(SCHEDULE_FIRED,                                                                           \
      "SELECT true FROM schedule_fires WHERE schedule_id = $1 AND slot = $2",                   \
      "tz",                                                                                     \
      "b")                                                                                      \
    X(SCHEDULE_FIRE,                                                                            \
      "INSERT INTO schedule_fires (schedule_id, slot, work_item_id) VALUES ($1, $2, $3)",       \
      "tzt",                                                                                    \
      NULL)                                                                                     \
    X(SCHEDULE_FORGET,                                                                          \
      "DELETE FROM schedule_fires WHERE schedule_id = $1 AND slot < $2",                        \
      "tz",                                                                                     \
      NULL)

#define WORK_POSTGRES_STATS_SQL(X)                                                             \
    X(STATS_ITEMS,                                                                             \
      "SELECT status, count(*) FROM work_items GROUP BY status"                                \
      " UNION ALL SELECT 'waiting', count(*) FROM work_waiting",                               \
      NULL,                                                                                    \
      "ti")                                                                                    \
    X(STATS_LEASES,                                                                            \
      "SELECT count(*), count(*) FILTER (WHERE heartbeat_at < $2),"                            \
      " (avg(extract(epoch FROM $1 - heartbeat_at)) / 60)::double precision,"                  \
      " (SELECT min(created_at) FROM work_items WHERE status = 'pending'),"                    \
      " (SELECT count(*) FROM checkpoints)"                                                    \
      " FROM work_items WHERE status = 'in_progress'",                                         \
      "zz",                                                                                    \
      "iidzi")                                                                                 \
    X(STATS_KEYS, "SELECT status, count(*) FROM idempotency_keys GROUP BY status", NULL, "ti") \
    X(STATS_TYPES,                                                                             \
      "SELECT work_type, status, count(*),"                                                    \
      " (avg(extract(epoch FROM $1 - created_at)) / 3600)::double precision FROM work_items"   \
      " GROUP BY work_type, status UNION ALL SELECT work_type, 'waiting', count(*),"           \
      " (avg(extract(epoch FROM $1 - created_at)) / 3600)::double precision FROM work_waiting" \
      " GROUP BY work_type ORDER BY 1, 2",                                                     \
      "z",                                                                                     \
      "ttid")                                                                                  \
    X(STATS_GROWTH,                                                                            \
      "SELECT task_id, count(*), max(sequence_number), min(created_at), max(created_at)"       \
      " FROM checkpoints GROUP BY task_id ORDER BY count(*) DESC, task_id LIMIT 10",           \
      NULL,                                                                                    \
      "tiizz")                                                                                 \
    X(OLD_ITEMS,                                                                               \
      "SELECT work_item_id, (SELECT count(*) FROM work_history AS h"                           \
      " WHERE h.work_item_id = i.work_item_id) FROM work_items AS i"                           \
      " WHERE work_item_id > $1 AND status IN ('completed', 'failed') AND updated_at < $2"     \
      " ORDER BY work_item_id LIMIT $3",                                                       \
      "tzi",                                                                                   \
      "ti")                                                                                    \
    X(OLD_ITEMS_REMOVE,                                                                        \
      "WITH gone AS (DELETE FROM work_items WHERE work_item_id = ANY ($1)"                     \
      " AND status IN ('completed', 'failed') AND updated_at < $2 RETURNING work_item_id),"    \
      " events AS (DELETE FROM work_history AS h USING gone"                                   \
      " WHERE h.work_item_id = gone.work_item_id RETURNING 1)"                                 \
      " SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM events)",                    \
      "Tz",                                                                                    \
      "ii")

#endif
