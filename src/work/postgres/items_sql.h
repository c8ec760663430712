/* The SQL of tasks and items. The writer's connection has settings under which there is but one plan
 * for each: along an index, made once (see postgres_store.c). */
#ifndef PAWL_WORK_POSTGRES_ITEMS_SQL_H
#define PAWL_WORK_POSTGRES_ITEMS_SQL_H

#define WORK_CHANNEL "pawl_work" /* NOTIFY: the payload is the sender's name */

/* In the order in which pawl__work_pg_row reads them; both tables fill all places. */
#define WORK_PG_ITEM_COLUMNS_(token)                                                          \
    "work_item_id, task_id, work_type, status, priority, retry_count, max_retries, "          \
    "attempts, " token ", lease_holder, input_data, output_data, error_message, created_at, " \
    "started_at, completed_at, updated_at, lease_acquired_at, lease_expires_at, "             \
    "heartbeat_at, entries, NULL::timestamptz AS due_at, NULL::text AS reason, 0::bigint "    \
    "AS waits_for, submission"
#define WORK_PG_ITEM_COLUMNS WORK_PG_ITEM_COLUMNS_("token")
/* Of what is claimed: the next token is above that of every row that was ever removed. */
#define WORK_PG_NEXT_TOKEN_ "greatest(token, (SELECT token_floor FROM work_counters))"
#define WORK_PG_PICK_COLUMNS_ WORK_PG_ITEM_COLUMNS_(WORK_PG_NEXT_TOKEN_ " AS token")
#define WORK_PG_WAITING_COLUMNS                                                          \
    "work_item_id, task_id, work_type, 'waiting' AS status, priority, retry_count, "     \
    "max_retries, attempts, token, NULL::text AS lease_holder, input_data, NULL::text "  \
    "AS output_data, error_message, created_at, started_at, NULL::timestamptz AS "       \
    "completed_at, updated_at, NULL::timestamptz AS lease_acquired_at, "                 \
    "NULL::timestamptz AS lease_expires_at, NULL::timestamptz AS heartbeat_at, entries," \
    " due_at, reason, waits_for, submission"
#define WORK_PG_ITEM_TYPES "ttttiiiiittttzzzzzzziztii"

#define WORK_PG_CLAIM_ORDER_ " ORDER BY priority DESC, submission LIMIT $1"
#define WORK_PG_LOCKED_ " FOR UPDATE SKIP LOCKED"

/* $1 task, $2 type, $3 holder (null: any), $4 bits of statuses, $5 limit (null: none) */
#define WORK_PG_LIST_(of_items, of_waiting)                                                 \
    "SELECT " WORK_PG_ITEM_COLUMNS " FROM work_items WHERE " of_items                       \
    " AND ($2::text IS NULL OR work_type = $2) AND ($3::text IS NULL OR lease_holder = $3)" \
    " AND ($4 >> CASE status WHEN 'pending' THEN 0 WHEN 'in_progress' THEN 1"               \
    " WHEN 'completed' THEN 2 WHEN 'failed' THEN 3 ELSE 4 END) & 1 = 1"                     \
    " UNION ALL SELECT " WORK_PG_WAITING_COLUMNS " FROM work_waiting WHERE " of_waiting     \
    " AND ($2::text IS NULL OR work_type = $2) AND $3::text IS NULL AND ($4 >> 5) & 1 = 1"  \
    " ORDER BY created_at, work_item_id LIMIT $5"

/* The same by ids, with $6 the first: each of the homes gives as many as there may be at the most. */
#define WORK_PG_PAGE_(of_items, of_waiting)                                                      \
    "(SELECT " WORK_PG_ITEM_COLUMNS " FROM work_items WHERE " of_items " AND work_item_id >= $6" \
    " AND ($2::text IS NULL OR work_type = $2) AND ($3::text IS NULL OR lease_holder = $3)"      \
    " AND ($4 >> CASE status WHEN 'pending' THEN 0 WHEN 'in_progress' THEN 1"                    \
    " WHEN 'completed' THEN 2 WHEN 'failed' THEN 3 ELSE 4 END) & 1 = 1"                          \
    " ORDER BY work_item_id LIMIT $5)"                                                           \
    " UNION ALL (SELECT " WORK_PG_WAITING_COLUMNS " FROM work_waiting WHERE " of_waiting         \
    " AND work_item_id >= $6"                                                                    \
    " AND ($2::text IS NULL OR work_type = $2) AND $3::text IS NULL AND ($4 >> 5) & 1 = 1"       \
    " ORDER BY work_item_id LIMIT $5)"                                                           \
    " ORDER BY work_item_id LIMIT $5"

#define WORK_PG_HAS_(task, status) \
    "EXISTS (SELECT 1 FROM work_items WHERE task_id = " task " AND status = '" status "')"
#define WORK_PG_UNFINISHED_OF_(task)                                                             \
    "(" WORK_PG_HAS_(task, "pending") " OR " WORK_PG_HAS_(                                       \
        task, "in_progress") " OR " WORK_PG_HAS_(task,                                           \
                                                 "expired") " OR EXISTS (SELECT 1 FROM "         \
                                                            "work_waiting WHERE task_id = " task \
                                                            "))"
#define WORK_PG_STARTED_(task)                                                           \
    "(" WORK_PG_HAS_(task, "in_progress") " OR " WORK_PG_HAS_(                           \
        task, "completed") " OR " WORK_PG_HAS_(task, "failed") " OR " WORK_PG_HAS_(task, \
                                                                                   "expired") ")"

/* The time that decides. $1 null: the server's clock, as in production; a test gives its own. */
#define WORK_PG_NOW_ "coalesce($1, clock_timestamp())"

/* Calls of a group that need no more than one statement (postgres_quick.c).
 *
 * $1 the time, $2 ids, $3 tokens, $4 outputs: what is completed, while its lease is live and nobody waits for it.
 * The row is found in the statement's snapshot and changed where it lies; what another transaction
 * has changed meanwhile is looked at again, by the conditions on `w`. */
#define WORK_PG_ENDED_(arrays, names)                                                        \
    "WITH t AS MATERIALIZED (SELECT " WORK_PG_NOW_ " AS now), asked AS MATERIALIZED (SELECT" \
    " * FROM unnest(" arrays ") WITH ORDINALITY AS a (" names ", call)),"                    \
    " ended AS (UPDATE work_items AS w SET status = 'completed', output_data = s.output,"    \
    " error_message = NULL, lease_holder = NULL, lease_expires_at = NULL,"                   \
    " completed_at = s.now, updated_at = s.now, steps = w.steps + 1"                         \
    " FROM (SELECT a.*, o.at, o.held_by, t.now FROM t CROSS JOIN asked AS a"                 \
    " CROSS JOIN LATERAL (SELECT ctid AS at, lease_holder AS held_by FROM work_items"        \
    " WHERE work_item_id = a.id AND token = a.token AND status = 'in_progress'"              \
    " AND lease_expires_at > t.now AND NOT has_followers OFFSET 0) AS o OFFSET 0) AS s"      \
    " WHERE w.ctid = s.at AND w.token = s.token"                                             \
    " AND (w.status = 'in_progress' AND NOT w.has_followers) IS TRUE"                        \
    " RETURNING s.*, w.work_item_id, w.task_id, w.retry_count, w.updated_at),"

/* $5 holders, $6 microseconds: who then wants the next item, also without an id before. They get what
 * is first in order, or comes behind a front; nothing when something that waits is due. */
#define WORK_PG_CLAIMED_(filter)                                                                 \
    " wanted AS MATERIALIZED (SELECT holder, lease_us, call FROM ended WHERE holder IS NOT NULL" \
    " UNION ALL SELECT holder, lease_us, call FROM asked WHERE id IS NULL),"                     \
    " picked AS MATERIALIZED (SELECT ctid AS at"                                                 \
    " FROM work_items WHERE status = 'pending'" filter                                           \
    " AND NOT EXISTS (SELECT 1 FROM work_waiting"                                                \
    " WHERE waits_for = 0 AND due_at <= (SELECT now FROM t))"                                    \
    " ORDER BY priority DESC, submission"                                                        \
    " LIMIT (SELECT count(*) FROM wanted) FOR UPDATE SKIP LOCKED),"                              \
    " paired AS MATERIALIZED (SELECT * FROM unnest((SELECT array_agg(at) FROM picked),"          \
    " (SELECT array_agg(holder) FROM wanted), (SELECT array_agg(lease_us) FROM wanted),"         \
    " (SELECT array_agg(call) FROM wanted)) AS z (at, holder, lease_us, call)),"                 \
    " claimed AS (UPDATE work_items AS w SET status = 'in_progress', lease_holder = g.holder,"   \
    " token = " WORK_PG_NEXT_TOKEN_ " + 1, attempts = attempts + 1, lease_acquired_at = t.now,"  \
    " heartbeat_at = t.now, updated_at = t.now, started_at = coalesce(started_at, t.now),"       \
    " lease_expires_at = t.now + g.lease_us * interval '1 microsecond', steps = steps + 1"       \
    " FROM t CROSS JOIN paired AS g WHERE w.ctid = g.at"                                         \
    " RETURNING g.call, w.*),"

#define WORK_PG_FRONT_(priority, submission) \
    " AND priority = " priority " AND submission > " submission

#define WORK_PG_TOLD_                                                                 \
    "INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token," \
    " lease_holder, retry_count, at) SELECT work_item_id, task_id, 'in_progress',"    \
    " 'completed', token, held_by, retry_count, updated_at FROM ended"
#define WORK_PG_QUICK_(filter)                                                             \
    WORK_PG_ENDED_("$2, $3, $4, $5, $6", "id, token, output, holder, lease_us")            \
    WORK_PG_CLAIMED_(filter)                                                               \
    " told AS (" WORK_PG_TOLD_ " UNION ALL SELECT work_item_id,"                           \
    " task_id, 'pending', 'in_progress', token, lease_holder, retry_count, updated_at"     \
    " FROM claimed) SELECT " WORK_PG_ITEM_COLUMNS ", call, true FROM claimed UNION ALL"    \
    " SELECT work_item_id, task_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL," \
    " NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL," \
    " call, false FROM ended"

/* A number that is not positive is an index below the one that NUMBER took for this trip. */
#define WORK_PG_NUMBER_ \
    "CASE WHEN submission > 0 THEN submission ELSE currval('work_submissions') - submission END"

#define WORK_PG_TASK_COLUMNS "task_id, title, status, status_by, created_at, updated_at, metadata"
#define WORK_PG_TASK_TYPES "ttttzzt"

#define WORK_POSTGRES_ITEMS_SQL(X)                                                                 \
    X(CLOCK, "SELECT " WORK_PG_NOW_, "z", "z")                                                     \
    X(CLOCK_AND_DUE,                                                                               \
      "SELECT " WORK_PG_NOW_ ", (SELECT due_at FROM work_waiting WHERE waits_for = 0"              \
      " AND due_at IS NOT NULL ORDER BY due_at LIMIT 1)",                                          \
      "z",                                                                                         \
      "zz")                                                                                        \
    X(NOTIFY, "SELECT true FROM pg_notify('" WORK_CHANNEL "', $1)", "t", "b")                      \
    X(LOAD,                                                                                        \
      "SELECT " WORK_PG_ITEM_COLUMNS " FROM work_items WHERE work_item_id = ANY ($1)"              \
      " ORDER BY work_item_id FOR UPDATE",                                                         \
      "T",                                                                                         \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(LOAD_WAITING,                                                                                \
      "SELECT " WORK_PG_WAITING_COLUMNS " FROM work_waiting WHERE work_item_id = ANY ($1)"         \
      " ORDER BY work_item_id FOR UPDATE",                                                         \
      "T",                                                                                         \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(PICK,                                                                                        \
      "SELECT " WORK_PG_PICK_COLUMNS_                                                              \
      " FROM work_items WHERE status = 'pending'" WORK_PG_CLAIM_ORDER_ WORK_PG_LOCKED_,            \
      "i",                                                                                         \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(PICK_TYPE,                                                                                   \
      "SELECT " WORK_PG_PICK_COLUMNS_ " FROM work_items WHERE status = 'pending'"                  \
      " AND work_type = $2" WORK_PG_CLAIM_ORDER_ WORK_PG_LOCKED_,                                  \
      "it",                                                                                        \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(PICK_TYPES,                                                                                  \
      "SELECT found.* FROM (SELECT DISTINCT unnest($2) AS wanted) AS given"                        \
      " CROSS JOIN LATERAL (SELECT " WORK_PG_PICK_COLUMNS_                                         \
      " FROM work_items WHERE status = 'pending' AND work_type = wanted" WORK_PG_CLAIM_ORDER_      \
          WORK_PG_LOCKED_ ") AS found" WORK_PG_CLAIM_ORDER_,                                       \
      "iT",                                                                                        \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(PICK_TASK,                                                                                   \
      "SELECT " WORK_PG_PICK_COLUMNS_ " FROM work_items WHERE status = 'pending'"                  \
      " AND task_id = $2" WORK_PG_CLAIM_ORDER_ WORK_PG_LOCKED_,                                    \
      "it",                                                                                        \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(PICK_TASK_TYPES,                                                                             \
      "SELECT " WORK_PG_PICK_COLUMNS_ " FROM work_items WHERE status = 'pending'"                  \
      " AND task_id = $2 AND work_type = ANY ($3)" WORK_PG_CLAIM_ORDER_ WORK_PG_LOCKED_,           \
      "itT",                                                                                       \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(QUICK, WORK_PG_QUICK_(""), "zTITTI", WORK_PG_ITEM_TYPES "ib")                                \
    X(QUICK_TYPE, WORK_PG_QUICK_(" AND work_type = $7"), "zTITTIt", WORK_PG_ITEM_TYPES "ib")       \
    X(QUICK_FRONT,                                                                                 \
      WORK_PG_QUICK_(WORK_PG_FRONT_("$7", "$8")),                                                  \
      "zTITTIii",                                                                                  \
      WORK_PG_ITEM_TYPES "ib")                                                                     \
    X(QUICK_FRONT_TYPE,                                                                            \
      WORK_PG_QUICK_(" AND work_type = $7" WORK_PG_FRONT_("$8", "$9")),                            \
      "zTITTItii",                                                                                 \
      WORK_PG_ITEM_TYPES "ib")                                                                     \
    X(QUICK_END,                                                                                   \
      WORK_PG_ENDED_("$2, $3, $4", "id, token, output") " told AS (" WORK_PG_TOLD_                 \
                                                        ") SELECT call, task_id FROM ended",       \
      "zTIT",                                                                                      \
      "it")                                                                                        \
    X(EXPIRED,                                                                                     \
      "SELECT " WORK_PG_ITEM_COLUMNS " FROM work_items WHERE status = 'in_progress'"               \
      " AND lease_expires_at <= $2 ORDER BY lease_expires_at"                                      \
      " LIMIT $1" WORK_PG_LOCKED_,                                                                 \
      "iz",                                                                                        \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(LEFT_EXPIRED,                                                                                \
      "SELECT " WORK_PG_ITEM_COLUMNS " FROM work_items WHERE status = 'expired'"                   \
      " LIMIT $1" WORK_PG_LOCKED_,                                                                 \
      "i",                                                                                         \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(UNFINISHED,                                                                                  \
      "SELECT work_item_id FROM ((SELECT work_item_id FROM work_items WHERE task_id = $1"          \
      " AND status IN ('pending', 'in_progress', 'expired') LIMIT $2) UNION ALL"                   \
      " (SELECT work_item_id FROM work_waiting WHERE task_id = $1 LIMIT $2)) AS found"             \
      " ORDER BY work_item_id LIMIT $2",                                                           \
      "ti",                                                                                        \
      "t")                                                                                         \
    X(DUE,                                                                                         \
      "SELECT " WORK_PG_WAITING_COLUMNS " FROM work_waiting WHERE waits_for = 0"                   \
      " AND due_at <= $2 ORDER BY due_at LIMIT $1" WORK_PG_LOCKED_,                                \
      "iz",                                                                                        \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(NEXT_DUE,                                                                                    \
      "SELECT due_at FROM work_waiting WHERE waits_for = 0 AND due_at > $1"                        \
      " ORDER BY due_at LIMIT 1",                                                                  \
      "z",                                                                                         \
      "z")                                                                                         \
    X(NUMBER, "SELECT nextval('work_submissions')", NULL, "i")                                     \
    X(ITEM_INSERT,                                                                                 \
      PG_ALL_OR_NONE(                                                                              \
          "INSERT INTO work_items (work_item_id, task_id, work_type, priority, retry_count,"       \
          " max_retries, attempts, token, entries, input_data, error_message, created_at,"         \
          " started_at, updated_at, submission, has_followers) SELECT g.work_item_id,"             \
          " task_id, work_type, priority, retry_count, max_retries, attempts, token, entries,"     \
          " input_data, error_message, created_at, started_at, updated_at, " WORK_PG_NUMBER_       \
          ",       "                                                                               \
          " entries > 0 AND EXISTS"                                                                \
          " (SELECT 1 FROM work_dependencies WHERE after_id = g.work_item_id)"                     \
          " FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"         \
          " AS g (work_item_id, task_id, work_type, priority, retry_count, max_retries, attempts," \
          " token, entries, input_data, error_message, created_at, started_at, updated_at,"        \
          " submission)",                                                                          \
          "$1"),                                                                                   \
      "TTTIIIIIITTZZZI",                                                                           \
      "i")                                                                                         \
    X(ITEM_UPDATE,                                                                                 \
      PG_ALL_OR_NONE(                                                                              \
          "UPDATE work_items AS w SET status = g.status, retry_count = g.retry_count,"             \
          " attempts = g.attempts, token = g.token, lease_holder = g.lease_holder,"                \
          " output_data = g.output_data, error_message = g.error_message,"                         \
          " started_at = g.started_at, completed_at = g.completed_at, updated_at = g.updated_at,"  \
          " lease_acquired_at = g.lease_acquired_at, lease_expires_at = g.lease_expires_at,"       \
          " heartbeat_at = g.heartbeat_at"                                                         \
          " FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"              \
          " AS g (work_item_id, status, retry_count, attempts, token, lease_holder, output_data,"  \
          " error_message, started_at, completed_at, updated_at, lease_acquired_at,"               \
          " lease_expires_at, heartbeat_at) WHERE w.work_item_id = g.work_item_id",                \
          "$1"),                                                                                   \
      "TTIIITTTZZZZZZ",                                                                            \
      "i")                                                                                         \
    X(ITEM_DELETE, "DELETE FROM work_items WHERE work_item_id = ANY ($1)", "T", NULL)              \
    X(WAITING_INSERT,                                                                              \
      PG_ALL_OR_NONE(                                                                              \
          "INSERT INTO work_waiting (work_item_id, task_id, work_type, priority, retry_count,"     \
          " max_retries, attempts, token, entries, input_data, error_message, created_at,"         \
          " started_at, updated_at, submission, reason, due_at, waits_for) SELECT g.work_item_id," \
          " task_id, work_type, priority, retry_count, max_retries, attempts, token, entries,"     \
          " input_data, error_message, created_at, started_at, updated_at, " WORK_PG_NUMBER_       \
          ",       "                                                                               \
          " reason, due_at, waits_for"                                                             \
          " FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,"    \
          " $17, $18) AS g (work_item_id, task_id, work_type, priority, retry_count, max_retries," \
          " attempts, token, entries, input_data, error_message, created_at, started_at,"          \
          " updated_at, submission, reason, due_at, waits_for)",                                   \
          "$1"),                                                                                   \
      "TTTIIIIIITTZZZITZI",                                                                        \
      "i")                                                                                         \
    X(WAITING_UPDATE,                                                                              \
      "UPDATE work_waiting AS w SET updated_at = g.updated_at, reason = g.reason,"                 \
      " waits_for = g.waits_for FROM unnest($1, $2, $3, $4)"                                       \
      " AS g (work_item_id, updated_at, reason, waits_for)"                                        \
      " WHERE w.work_item_id = g.work_item_id",                                                    \
      "TZTI",                                                                                      \
      NULL)                                                                                        \
    X(WAITING_DELETE, "DELETE FROM work_waiting WHERE work_item_id = ANY ($1)", "T", NULL)         \
    X(RELINK_CHECKPOINTS,                                                                          \
      "UPDATE checkpoints SET work_item_id = item_id WHERE item_id = ANY ($1)"                     \
      " AND work_item_id IS NULL",                                                                 \
      "T",                                                                                         \
      NULL)                                                                                        \
    X(RELINK_KEYS,                                                                                 \
      "UPDATE idempotency_keys SET work_item_id = item_id WHERE item_id = ANY ($1)"                \
      " AND work_item_id IS NULL",                                                                 \
      "T",                                                                                         \
      NULL)                                                                                        \
    X(EDGES,                                                                                       \
      "SELECT work_item_id, after_id FROM work_dependencies WHERE after_id = ANY ($1)",            \
      "T",                                                                                         \
      "tt")                                                                                        \
    X(EDGE_INSERT,                                                                                 \
      "INSERT INTO work_dependencies (work_item_id, after_id) SELECT * FROM unnest($1, $2)",       \
      "TT",                                                                                        \
      NULL)                                                                                        \
    X(COMES_AFTER,                                                                                 \
      "SELECT after_id FROM work_dependencies WHERE work_item_id = $1"                             \
      " ORDER BY after_id COLLATE \"C\"",                                                          \
      "t",                                                                                         \
      "t")                                                                                         \
    X(STRANDED,                                                                                    \
      "SELECT w.work_item_id FROM work_waiting AS w WHERE w.waits_for > 0 AND (w.waits_for >"      \
      " (SELECT count(*) FROM work_dependencies AS d WHERE d.work_item_id = w.work_item_id"        \
      " AND NOT EXISTS (SELECT 1 FROM work_items AS i WHERE i.work_item_id = d.after_id"           \
      " AND i.status = 'completed')) OR EXISTS (SELECT 1 FROM work_dependencies AS d"              \
      " LEFT JOIN work_items AS i ON i.work_item_id = d.after_id"                                  \
      " WHERE d.work_item_id = w.work_item_id AND (i.status = 'failed' OR (i.status IS NULL"       \
      " AND NOT EXISTS (SELECT 1 FROM work_waiting AS o WHERE o.work_item_id = d.after_id)))))"    \
      " LIMIT $1",                                                                                 \
      "i",                                                                                         \
      "t")                                                                                         \
    X(BOUNDARY,                                                                                    \
      "INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, item_id,"                    \
      " checkpoint_type, snapshot_data, created_at) SELECT checkpoint_id, task_id,"                \
      " work_item_id, work_item_id, 'error_boundary', snapshot, $5"                                \
      " FROM unnest($1, $2, $3, $4) WITH ORDINALITY"                                               \
      " AS g (checkpoint_id, task_id, work_item_id, snapshot, place) ORDER BY task_id, place",     \
      "TTTTz",                                                                                     \
      NULL)                                                                                        \
    X(TASK_LOAD,                                                                                   \
      "SELECT " WORK_PG_TASK_COLUMNS " FROM tasks WHERE task_id = ANY ($1) ORDER BY task_id"       \
      " FOR SHARE",                                                                                \
      "T",                                                                                         \
      WORK_PG_TASK_TYPES)                                                                          \
    X(TASK_LOCK,                                                                                   \
      "SELECT task_id FROM tasks WHERE task_id = ANY ($1) AND status_by = 'items'"                 \
      " ORDER BY task_id FOR NO KEY UPDATE",                                                       \
      "T",                                                                                         \
      "t")                                                                                         \
    X(TASK_INSERT,                                                                                 \
      "INSERT INTO tasks (task_id, title, status, status_by, created_at, updated_at, metadata)"    \
      " VALUES ($1, $2, $3, $4, $5, $5, $6)",                                                      \
      "ttttzt",                                                                                    \
      NULL)                                                                                        \
    X(TASK_SET,                                                                                    \
      "UPDATE tasks SET status = $2, status_by = $3, updated_at = $4,"                             \
      " derivations = derivations + CASE $3 WHEN 'items' THEN 1 ELSE 0 END"                        \
      " WHERE task_id = $1",                                                                       \
      "tttz",                                                                                      \
      NULL)                                                                                        \
    X(TASKS_SETTLE,                                                                                \
      "UPDATE tasks AS t SET status = g.status, derivations = derivations + 1,"                    \
      " updated_at = $3 FROM unnest($1, $2) AS g (task_id, status)"                                \
      " WHERE t.task_id = g.task_id",                                                              \
      "TTz",                                                                                       \
      NULL)                                                                                        \
    X(TASK_FACTS,                                                                                  \
      "SELECT t.task_id, t.status, u.unfinished,"                                                  \
      " CASE WHEN u.unfinished AND t.status = 'pending' THEN " WORK_PG_STARTED_(                   \
          "t.task_id") " ELSE false END,"                                                          \
                       " CASE WHEN u.unfinished THEN false ELSE " WORK_PG_HAS_(                    \
                           "t.task_id", "failed") " END,"                                          \
                                                  " CASE WHEN u.unfinished THEN true ELSE EXISTS " \
                                                  "(SELECT 1 FROM work_items"                      \
                                                  " WHERE task_id = t.task_id) END"                \
                                                  " FROM tasks AS t CROSS JOIN LATERAL"            \
                                                  " (SELECT " WORK_PG_UNFINISHED_OF_(              \
                                                      "t.task_id") " AS unfinished OFFSET 0) AS u" \
                                                                   " WHERE t.task_id = ANY ($1) "  \
                                                                   "AND t.status_by = 'items'",    \
      "T",                                                                                         \
      "ttbbbb")                                                                                    \
    X(TASKS_UNSETTLED,                                                                             \
      "SELECT task_id FROM ((SELECT task_id FROM tasks AS t WHERE status = 'running'"              \
      " AND status_by = 'items' AND EXISTS (SELECT 1 FROM work_items WHERE task_id = t.task_id)"   \
      " AND NOT " WORK_PG_UNFINISHED_OF_(                                                          \
          "t.task_id") " LIMIT $1) UNION ALL (SELECT task_id FROM tasks AS t WHERE"                \
                       " status = 'pending' AND status_by = 'items' AND " WORK_PG_STARTED_(        \
                           "t.task_id") " LIMIT $1)) AS found LIMIT $1",                           \
      "i",                                                                                         \
      "t")                                                                                         \
    X(TASKS,                                                                                       \
      "SELECT t.task_id, title, t.status, status_by, created_at, updated_at, metadata,"            \
      " c.pending, c.in_progress, c.completed, c.failed,"                                          \
      " (SELECT count(*) FROM work_waiting WHERE task_id = t.task_id) FROM tasks AS t"             \
      " CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE status IN ('pending', 'expired'))"       \
      " AS pending, count(*) FILTER (WHERE status = 'in_progress') AS in_progress,"                \
      " count(*) FILTER (WHERE status = 'completed') AS completed,"                                \
      " count(*) FILTER (WHERE status = 'failed') AS failed"                                       \
      " FROM work_items WHERE task_id = t.task_id) AS c"                                           \
      " WHERE ($1::text IS NULL OR t.task_id = $1) AND ($2::text IS NULL OR t.status = $2)"        \
      " ORDER BY created_at, t.task_id",                                                           \
      "tt",                                                                                        \
      WORK_PG_TASK_TYPES "iiiii")                                                                  \
    X(TASKS_PAGE,                                                                                  \
      "SELECT t.task_id, title, t.status, status_by, created_at, updated_at, metadata,"            \
      " c.pending, c.in_progress, c.completed, c.failed,"                                          \
      " (SELECT count(*) FROM work_waiting WHERE task_id = t.task_id) FROM tasks AS t"             \
      " CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE status IN ('pending', 'expired'))"       \
      " AS pending, count(*) FILTER (WHERE status = 'in_progress') AS in_progress,"                \
      " count(*) FILTER (WHERE status = 'completed') AS completed,"                                \
      " count(*) FILTER (WHERE status = 'failed') AS failed"                                       \
      " FROM work_items WHERE task_id = t.task_id) AS c"                                           \
      " WHERE t.task_id >= $1 AND ($2::text IS NULL OR t.status = $2)"                             \
      " ORDER BY t.task_id LIMIT $3",                                                              \
      "tti",                                                                                       \
      WORK_PG_TASK_TYPES "iiiii")                                                                  \
    X(GET,                                                                                         \
      "SELECT " WORK_PG_ITEM_COLUMNS " FROM work_items WHERE work_item_id = $1 UNION ALL"          \
      " SELECT " WORK_PG_WAITING_COLUMNS " FROM work_waiting WHERE work_item_id = $1",             \
      "t",                                                                                         \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(LIST, WORK_PG_LIST_("$1::text IS NULL", "$1::text IS NULL"), "tttii", WORK_PG_ITEM_TYPES)    \
    X(LIST_OPEN,                                                                                   \
      WORK_PG_LIST_("$1::text IS NULL AND status IN ('pending', 'in_progress', 'expired')",        \
                    "$1::text IS NULL"),                                                           \
      "tttii",                                                                                     \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(LIST_TASK, WORK_PG_LIST_("task_id = $1", "task_id = $1"), "tttii", WORK_PG_ITEM_TYPES)       \
    X(PAGE, WORK_PG_PAGE_("$1::text IS NULL", "$1::text IS NULL"), "tttiit", WORK_PG_ITEM_TYPES)   \
    X(PAGE_BUSY,                                                                                   \
      WORK_PG_PAGE_("$1::text IS NULL AND status IN ('in_progress', 'expired')",                   \
                    "$1::text IS NULL"),                                                           \
      "tttiit",                                                                                    \
      WORK_PG_ITEM_TYPES)                                                                          \
    X(PAGE_TASK, WORK_PG_PAGE_("task_id = $1", "task_id = $1"), "tttiit", WORK_PG_ITEM_TYPES)      \
    X(HISTORY,                                                                                     \
      "SELECT seq, from_status, to_status, token, lease_holder, retry_count, message, at"          \
      " FROM work_history WHERE work_item_id = $1 ORDER BY seq",                                   \
      "t",                                                                                         \
      "ittititz")

#endif
