/* The SQL of checkpoints, keys, schedules, statistics and retention. */
#ifndef PAWL_WORK_SQLITE_MAINTENANCE_SQL_H
#define PAWL_WORK_SQLITE_MAINTENANCE_SQL_H

#define WORK_CHECKPOINT_COLUMNS                                                  \
    "checkpoint_id, task_id, coalesce(item_id, work_item_id), checkpoint_type, " \
    "sequence_number, snapshot_data, metadata, created_at, verified"

/* ?1 task, ?2 item (NULL: any), ?3 type, ?4 verified only, ?5 below, ?6 from, ?7 limit (-1: none) */
#define WORK_CHECKPOINT_LIST_(of_type, order)                                            \
    "SELECT " WORK_CHECKPOINT_COLUMNS " FROM checkpoints WHERE task_id = ?1" of_type     \
    " AND (?2 IS NULL OR item_id = ?2) AND (?4 = 0 OR verified = 1)"                     \
    " AND sequence_number < ?5 AND sequence_number >= ?6 ORDER BY sequence_number" order \
    " LIMIT ?7"

#define WORK_SQLITE_CHECKPOINTS_SQL(X)                                                          \
    X(CHECKPOINT_GET,                                                                           \
      "SELECT " WORK_CHECKPOINT_COLUMNS " FROM checkpoints WHERE checkpoint_id = ?1")           \
    X(CHECKPOINT_LIST, WORK_CHECKPOINT_LIST_("", ""))                                           \
    X(CHECKPOINT_LIST_TYPE, WORK_CHECKPOINT_LIST_(" AND checkpoint_type = ?3", ""))             \
    X(CHECKPOINT_NEWEST, WORK_CHECKPOINT_LIST_("", " DESC"))                                    \
    X(CHECKPOINT_NEWEST_TYPE, WORK_CHECKPOINT_LIST_(" AND checkpoint_type = ?3", " DESC"))      \
    X(CHECKPOINT_ADD,                                                                           \
      "INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, item_id,"                 \
      " checkpoint_type, sequence_number, snapshot_data, metadata, created_at)"                 \
      " VALUES (?1, ?2, (SELECT work_item_id FROM work_items WHERE work_item_id = ?3), ?3, ?4," \
      " (SELECT coalesce(max(last), 0) + 1 FROM checkpoint_counters WHERE task_id = ?2),"       \
      " ?5, ?6, ?7) RETURNING sequence_number")                                                 \
    X(CHECKPOINT_VERIFIED, "UPDATE checkpoints SET verified = ?2 WHERE checkpoint_id = ?1")     \
    X(CHECKPOINT_WALK,                                                                          \
      "SELECT checkpoint_id, checkpoint_type, verified FROM checkpoints WHERE task_id = ?1"     \
      " ORDER BY sequence_number DESC")                                                         \
    X(CHECKPOINT_ARCHIVE,                                                                       \
      "INSERT OR IGNORE INTO checkpoints_archive (checkpoint_id, task_id, work_item_id,"        \
      " checkpoint_type, sequence_number, snapshot_data, metadata, created_at, item_id,"        \
      " verified, archived_at) SELECT checkpoint_id, task_id, work_item_id, checkpoint_type,"   \
      " sequence_number, snapshot_data, metadata, created_at, item_id, verified, ?2"            \
      " FROM checkpoints WHERE checkpoint_id = ?1")                                             \
    X(CHECKPOINT_REMOVE, "DELETE FROM checkpoints WHERE checkpoint_id = ?1")                    \
    X(CHECKPOINT_CROWDED,                                                                       \
      "SELECT task_id, count(*) FROM checkpoints GROUP BY task_id HAVING count(*) > ?1")        \
    X(EVIDENCE_GET,                                                                             \
      "SELECT kind, subject, expected FROM checkpoint_evidence WHERE checkpoint_id = ?1"        \
      " ORDER BY ordinal")                                                                      \
    X(EVIDENCE_ADD,                                                                             \
      "INSERT INTO checkpoint_evidence (task_id, checkpoint_id, ordinal, kind, subject,"        \
      " expected) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                             \
    X(EVIDENCE_RESULT,                                                                          \
      "INSERT INTO checkpoint_results (task_id, checkpoint_id, ordinal, at, ok, detail)"        \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6)")

#define WORK_KEY_COLUMNS                                                                      \
    "idempotency_key, request_hash, task_id, coalesce(item_id, work_item_id), status, "       \
    "response_data, owner, owner_token, lease_boot_id, lease_deadline_ns, lease_expires_at, " \
    "created_at, completed_at, expires_at, expires_boot_id, expires_deadline_ns"

/* ?1 now, ?2 boot id, ?3 boot clock: past its TTL, and nobody is at it. In two, one for each index:
 * keys of this boot, and all others. */
#define WORK_KEY_FREE_                                                                       \
    " AND NOT coalesce(status = 'pending' AND CASE WHEN lease_deadline_ns"                   \
    " IS NULL THEN lease_expires_at > ?1 ELSE lease_boot_id = ?2 AND lease_deadline_ns > ?3" \
    " END, 0)"
#define WORK_KEY_OVER_ "expires_boot_id = ?2 AND expires_deadline_ns <= ?3" WORK_KEY_FREE_
#define WORK_KEY_OVER_WALL_ "expires_at <= ?1 AND expires_boot_id IS NOT ?2" WORK_KEY_FREE_
/* ?4 completed before */
#define WORK_KEY_OLD_ "status = 'completed' AND created_at < ?4 AND completed_at < ?4"

#define WORK_SQLITE_KEYS_SQL(X)                                                                   \
    X(KEY_GET, "SELECT " WORK_KEY_COLUMNS " FROM idempotency_keys WHERE idempotency_key = ?1")    \
    X(KEY_TAKE,                                                                                   \
      "INSERT OR REPLACE INTO idempotency_keys (idempotency_key, request_hash, task_id,"          \
      " work_item_id, item_id, owner, owner_token, lease_boot_id, lease_deadline_ns,"             \
      " lease_expires_at, created_at, expires_at, expires_boot_id, expires_deadline_ns)"          \
      " VALUES (?1, ?2, ?3, (SELECT work_item_id FROM work_items WHERE work_item_id = ?4),"       \
      " ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?7, ?12)")                                              \
    X(KEY_FLOOR, "SELECT owner_token_floor FROM work_counters")                                   \
    X(KEY_END,                                                                                    \
      "UPDATE idempotency_keys SET status = ?2, response_data = ?3, completed_at = ?4,"           \
      " lease_boot_id = NULL, lease_deadline_ns = NULL, lease_expires_at = NULL"                  \
      " WHERE idempotency_key = ?1")                                                              \
    X(KEY_CACHED,                                                                                 \
      "SELECT " WORK_KEY_COLUMNS " FROM idempotency_keys WHERE task_id = ?1"                      \
      " AND status = 'completed' AND CASE WHEN expires_boot_id = ?3"                              \
      " THEN expires_deadline_ns > ?4 ELSE expires_at IS NULL OR expires_at > ?2 END"             \
      " ORDER BY idempotency_key")                                                                \
    X(KEY_PRUNE_OVER,                                                                             \
      "DELETE FROM idempotency_keys WHERE idempotency_key IN (SELECT idempotency_key"             \
      " FROM idempotency_keys WHERE " WORK_KEY_OVER_ " LIMIT ?5)")                                \
    X(KEY_PRUNE_OVER_WALL,                                                                        \
      "DELETE FROM idempotency_keys WHERE idempotency_key IN (SELECT idempotency_key"             \
      " FROM idempotency_keys WHERE " WORK_KEY_OVER_WALL_ " LIMIT ?5)")                           \
    X(KEY_PRUNE_OLD,                                                                              \
      "DELETE FROM idempotency_keys WHERE idempotency_key IN (SELECT idempotency_key"             \
      " FROM idempotency_keys WHERE " WORK_KEY_OLD_ " LIMIT ?5)")                                 \
    X(KEY_PRUNABLE,                                                                               \
      "SELECT count(*) FROM idempotency_keys WHERE (" WORK_KEY_OVER_ ") OR (" WORK_KEY_OVER_WALL_ \
      ") OR (" WORK_KEY_OLD_ ")")

#define WORK_SQLITE_SCHEDULES_SQL(X)                                                             \
    X(SCHEDULE_GET,                                                                              \
      "SELECT schedule_id, cron, task_id, work_type, input_data, priority, max_retries,"         \
      " next_slot, (SELECT max(slot) FROM schedule_fires f WHERE f.schedule_id = s.schedule_id)" \
      " FROM schedules s WHERE schedule_id = ?1 AND enabled = 1")                                \
    X(SCHEDULE_LIST,                                                                             \
      "SELECT schedule_id, cron, task_id, work_type, input_data, priority, max_retries,"         \
      " next_slot, (SELECT max(slot) FROM schedule_fires f WHERE f.schedule_id = s.schedule_id)" \
      " FROM schedules s WHERE enabled = 1 ORDER BY schedule_id")                                \
    X(SCHEDULE_PUT,                                                                              \
      "INSERT INTO schedules (schedule_id, cron, task_id, work_type, input_data, priority,"      \
      " max_retries, next_slot, created_at, updated_at)"                                         \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)"                                         \
      " ON CONFLICT (schedule_id) DO UPDATE SET cron = excluded.cron,"                           \
      " task_id = excluded.task_id, work_type = excluded.work_type,"                             \
      " input_data = excluded.input_data, priority = excluded.priority,"                         \
      " max_retries = excluded.max_retries, next_slot = excluded.next_slot,"                     \
      " updated_at = excluded.updated_at, enabled = 1")                                          \
    X(SCHEDULE_REMOVE, "DELETE FROM schedules WHERE schedule_id = ?1")                           \
    X(SCHEDULE_MOVE,                                                                             \
      "UPDATE schedules SET next_slot = ?2, updated_at = ?3 WHERE schedule_id = ?1")             \
    X(SCHEDULE_FIRED, "SELECT 1 FROM schedule_fires WHERE schedule_id = ?1 AND slot = ?2")       \
    X(SCHEDULE_FIRE,                                                                             \
      "INSERT INTO schedule_fires (schedule_id, slot, work_item_id) VALUES (?1, ?2, ?3)")        \
    X(SCHEDULE_FORGET, "DELETE FROM schedule_fires WHERE schedule_id = ?1 AND slot < ?2")

#define WORK_SQLITE_STATS_SQL(X)                                                              \
    X(STATS_ITEMS,                                                                            \
      "SELECT status, count(*) FROM work_items GROUP BY status"                               \
      " UNION ALL SELECT 'waiting', count(*) FROM work_waiting")                              \
    X(STATS_LEASES,                                                                           \
      "SELECT count(*), count(CASE WHEN heartbeat_at < ?2 THEN 1 END),"                       \
      " avg(julianday(?1) - julianday(heartbeat_at)) * 24 * 60"                               \
      " FROM work_items WHERE status = 'in_progress'")                                        \
    X(STATS_OLDEST, "SELECT min(created_at) FROM work_items WHERE status = 'pending'")        \
    X(STATS_CHECKPOINTS, "SELECT count(*) FROM checkpoints")                                  \
    X(STATS_KEYS, "SELECT status, count(*) FROM idempotency_keys GROUP BY status")            \
    X(STATS_TYPES,                                                                            \
      "SELECT work_type, status, count(*),"                                                   \
      " avg(julianday(?1) - julianday(created_at)) * 24 FROM work_items"                      \
      " GROUP BY work_type, status UNION ALL SELECT work_type, 'waiting', count(*),"          \
      " avg(julianday(?1) - julianday(created_at)) * 24 FROM work_waiting GROUP BY work_type" \
      " ORDER BY 1, 2")                                                                       \
    X(STATS_GROWTH,                                                                           \
      "SELECT task_id, count(*), max(sequence_number), min(created_at), max(created_at)"      \
      " FROM checkpoints GROUP BY task_id ORDER BY count(*) DESC, task_id LIMIT 10")          \
    X(OLD_ITEMS,                                                                              \
      "SELECT work_item_id, (SELECT count(*) FROM work_history h"                             \
      " WHERE h.work_item_id = i.work_item_id) FROM work_items i NOT INDEXED"                 \
      " WHERE work_item_id > ?1 AND status IN ('completed', 'failed') AND updated_at < ?2"    \
      " ORDER BY work_item_id LIMIT ?3")                                                      \
    X(OLD_ITEM_REMOVE,                                                                        \
      "DELETE FROM work_items WHERE work_item_id = ?1"                                        \
      " AND status IN ('completed', 'failed') AND updated_at < ?2")                           \
    X(OLD_HISTORY_REMOVE, "DELETE FROM work_history WHERE work_item_id = ?1")

#endif
