/* The SQL of tasks and items. */
#ifndef PAWL_WORK_SQLITE_ITEMS_SQL_H
#define PAWL_WORK_SQLITE_ITEMS_SQL_H

/* Where rows wait to be changed by one statement; see sqlite_put.c. */
#define WORK_SQL_TEMP_SCHEMA                                                                     \
    "CREATE TEMP TABLE staged_items (work_item_id, status, retry_count, attempts, token,"        \
    " lease_holder, output_data, error_message, started_at, completed_at, updated_at,"           \
    " lease_acquired_at, lease_expires_at, heartbeat_at, lease_boot_id, lease_deadline_ns);"     \
    "CREATE TEMP TABLE staged_new (work_item_id, task_id, work_type, priority, retry_count,"     \
    " max_retries, attempts, token, entries, input_data, error_message, created_at, started_at," \
    " updated_at, submission)"

/* In the order in which sqlite_row.c reads them; both tables fill all places. */
#define WORK_ITEM_COLUMNS_(token)                                                      \
    "work_item_id, task_id, work_type, status, priority, retry_count, max_retries, "   \
    "attempts, " token                                                                 \
    ", lease_holder, input_data, output_data, error_message, created_at, started_at, " \
    "completed_at, updated_at, lease_acquired_at, lease_expires_at, heartbeat_at, "    \
    "lease_boot_id, lease_deadline_ns, entries, NULL AS due_at, NULL AS reason, "      \
    "0 AS waits_for, submission"
#define WORK_ITEM_COLUMNS WORK_ITEM_COLUMNS_("token")
/* Of what is claimed: the next token is above that of every row that was ever removed. */
#define WORK_PICK_COLUMNS_ \
    WORK_ITEM_COLUMNS_("max(token, (SELECT token_floor FROM work_counters)) AS token")
#define WORK_WAITING_COLUMNS                                                                \
    "work_item_id, task_id, work_type, 'waiting' AS status, priority, retry_count, "        \
    "max_retries, attempts, token, NULL AS lease_holder, input_data, NULL AS output_data, " \
    "error_message, created_at, started_at, NULL AS completed_at, updated_at, "             \
    "NULL AS lease_acquired_at, NULL AS lease_expires_at, NULL AS heartbeat_at, "           \
    "due_boot_id AS lease_boot_id, due_deadline_ns AS lease_deadline_ns, entries, due_at, " \
    "reason, waits_for, submission"

#define WORK_CLAIM_ORDER_ " ORDER BY priority DESC, submission, work_item_id LIMIT ?1"

/* ?1 task, ?2 type, ?3 holder (NULL: any), ?4 bits of statuses, ?5 limit (-1: none) */
#define WORK_LIST_(of_items, of_waiting)                                             \
    "SELECT " WORK_ITEM_COLUMNS " FROM work_items WHERE " of_items                   \
    " AND (?2 IS NULL OR work_type = ?2) AND (?3 IS NULL OR lease_holder = ?3)"      \
    " AND (?4 >> CASE status WHEN 'pending' THEN 0 WHEN 'in_progress' THEN 1"        \
    " WHEN 'completed' THEN 2 WHEN 'failed' THEN 3 ELSE 4 END) & 1"                  \
    " UNION ALL SELECT " WORK_WAITING_COLUMNS " FROM work_waiting WHERE " of_waiting \
    " AND (?2 IS NULL OR work_type = ?2) AND ?3 IS NULL AND (?4 >> 5) & 1"           \
    " ORDER BY created_at, work_item_id LIMIT ?5"

/* The same by ids, with ?6 the first. Both tables are walked in that order, and merged row by row: no
 * row is read that is not shown or passed over by the filter, and none is sorted. */
#define WORK_PAGE_(of_items, of_waiting)                                                          \
    "SELECT " WORK_ITEM_COLUMNS " FROM work_items " of_items " AND work_item_id >= ?6"            \
    " AND (?2 IS NULL OR work_type = ?2) AND (?3 IS NULL OR lease_holder = ?3)"                   \
    " AND (?4 >> CASE status WHEN 'pending' THEN 0 WHEN 'in_progress' THEN 1"                     \
    " WHEN 'completed' THEN 2 WHEN 'failed' THEN 3 ELSE 4 END) & 1"                               \
    " UNION ALL SELECT " WORK_WAITING_COLUMNS " FROM work_waiting " of_waiting                    \
    " AND work_item_id >= ?6 AND (?2 IS NULL OR work_type = ?2) AND ?3 IS NULL AND (?4 >> 5) & 1" \
    " ORDER BY work_item_id LIMIT ?5"

#define WORK_UNFINISHED_OF_(task)                                      \
    "CASE WHEN EXISTS (SELECT 1 FROM work_items WHERE task_id = " task \
    " AND status = 'in_progress') THEN 1"                              \
    " WHEN EXISTS (SELECT 1 FROM work_items WHERE task_id = " task     \
    " AND status = 'pending') THEN 1"                                  \
    " WHEN EXISTS (SELECT 1 FROM work_items WHERE task_id = " task     \
    " AND status = 'expired') THEN 1"                                  \
    " WHEN EXISTS (SELECT 1 FROM work_waiting WHERE task_id = " task ") THEN 1 ELSE 0 END"

#define WORK_SQLITE_ITEMS_SQL(X)                                                                   \
    X(ITEM_LOAD, "SELECT " WORK_ITEM_COLUMNS " FROM work_items WHERE work_item_id = ?1")           \
    X(WAITING_LOAD, "SELECT " WORK_WAITING_COLUMNS " FROM work_waiting WHERE work_item_id = ?1")   \
    X(PICK,                                                                                        \
      "SELECT " WORK_PICK_COLUMNS_ " FROM work_items INDEXED BY idx_work_items_claim"              \
      " WHERE status = 'pending'" WORK_CLAIM_ORDER_)                                               \
    X(PICK_TYPE,                                                                                   \
      "SELECT " WORK_PICK_COLUMNS_ " FROM work_items INDEXED BY idx_work_items_claim_type"         \
      " WHERE status = 'pending' AND work_type = ?2" WORK_CLAIM_ORDER_)                            \
    X(PICK_TASK,                                                                                   \
      "SELECT " WORK_PICK_COLUMNS_ " FROM work_items INDEXED BY idx_work_items_claim_task"         \
      " WHERE status = 'pending' AND task_id = ?3" WORK_CLAIM_ORDER_)                              \
    X(PICK_TASK_TYPE,                                                                              \
      "SELECT " WORK_PICK_COLUMNS_ " FROM work_items INDEXED BY idx_work_items_claim_task"         \
      " WHERE status = 'pending' AND task_id = ?3 AND work_type = ?2" WORK_CLAIM_ORDER_)           \
    X(EXPIRED,                                                                                     \
      "SELECT " WORK_ITEM_COLUMNS " FROM work_items INDEXED BY idx_work_items_lease_expiry"        \
      " WHERE status = 'in_progress' AND CASE WHEN lease_deadline_ns IS NULL"                      \
      " THEN lease_expires_at <= ?4 WHEN lease_boot_id = ?2 THEN lease_deadline_ns <= ?3"          \
      " ELSE 1 END ORDER BY lease_expires_at LIMIT ?1")                                            \
    X(LEFT_EXPIRED,                                                                                \
      "SELECT " WORK_ITEM_COLUMNS " FROM work_items INDEXED BY idx_work_items_status_priority"     \
      " WHERE status = 'expired' LIMIT ?1")                                                        \
    X(UNFINISHED,                                                                                  \
      "SELECT " WORK_ITEM_COLUMNS " FROM work_items WHERE task_id = ?1"                            \
      " AND status IN ('pending', 'in_progress', 'expired') LIMIT ?2")                             \
    X(UNFINISHED_WAITING,                                                                          \
      "SELECT " WORK_WAITING_COLUMNS " FROM work_waiting WHERE task_id = ?1 LIMIT ?2")             \
    X(DUE,                                                                                         \
      "SELECT " WORK_WAITING_COLUMNS " FROM work_waiting INDEXED BY idx_work_waiting_clock"        \
      " WHERE waits_for = 0 AND due_boot_id = ?2 AND due_deadline_ns <= ?3"                        \
      " ORDER BY due_deadline_ns LIMIT ?1")                                                        \
    X(DUE_WALL,                                                                                    \
      "SELECT " WORK_WAITING_COLUMNS " FROM work_waiting INDEXED BY idx_work_waiting_due"          \
      " WHERE waits_for = 0 AND due_at <= ?3 AND due_boot_id IS NOT ?2 LIMIT ?1")                  \
    X(NEXT_DUE,                                                                                    \
      "SELECT due_deadline_ns FROM work_waiting INDEXED BY idx_work_waiting_clock"                 \
      " WHERE waits_for = 0 AND due_boot_id = ?1 ORDER BY due_deadline_ns LIMIT 1")                \
    X(NEXT_DUE_WALL,                                                                               \
      "SELECT due_at FROM work_waiting INDEXED BY idx_work_waiting_due WHERE waits_for = 0"        \
      " AND due_boot_id IS NOT ?1 ORDER BY due_at LIMIT 1")                                        \
    X(ITEM_INSERT,                                                                                 \
      "INSERT INTO work_items (work_item_id, task_id, work_type, priority, retry_count,"           \
      " max_retries, attempts, token, entries, input_data, error_message, created_at,"             \
      " started_at, updated_at, submission) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"      \
      " ?11, ?12, ?13, ?14, ?15)")                                                                 \
    X(ITEM_UPDATE,                                                                                 \
      "UPDATE work_items SET status = ?2, retry_count = ?3, attempts = ?4, token = ?5,"            \
      " lease_holder = ?6, output_data = ?7, error_message = ?8, started_at = ?9,"                 \
      " completed_at = ?10, updated_at = ?11, lease_acquired_at = ?12, lease_expires_at = ?13,"    \
      " heartbeat_at = ?14, lease_boot_id = ?15, lease_deadline_ns = ?16"                          \
      " WHERE work_item_id = ?1")                                                                  \
    X(STAGE,                                                                                       \
      "INSERT INTO temp.staged_items VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"   \
      " ?13, ?14, ?15, ?16)")                                                                      \
    X(ITEMS_UPDATE,                                                                                \
      "UPDATE work_items SET status = s.status, retry_count = s.retry_count,"                      \
      " attempts = s.attempts, token = s.token, lease_holder = s.lease_holder,"                    \
      " output_data = s.output_data, error_message = s.error_message, started_at = s.started_at,"  \
      " completed_at = s.completed_at, updated_at = s.updated_at,"                                 \
      " lease_acquired_at = s.lease_acquired_at, lease_expires_at = s.lease_expires_at,"           \
      " heartbeat_at = s.heartbeat_at, lease_boot_id = s.lease_boot_id,"                           \
      " lease_deadline_ns = s.lease_deadline_ns FROM temp.staged_items AS s"                       \
      " WHERE work_items.work_item_id = s.work_item_id")                                           \
    X(STAGE_NEW,                                                                                   \
      "INSERT INTO temp.staged_new VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"     \
      " ?13, ?14, ?15)")                                                                           \
    X(ITEMS_INSERT,                                                                                \
      "INSERT INTO work_items (work_item_id, task_id, work_type, priority, retry_count,"           \
      " max_retries, attempts, token, entries, input_data, error_message, created_at,"             \
      " started_at, updated_at, submission) SELECT * FROM temp.staged_new ORDER BY rowid")         \
    X(UNSTAGE_NEW, "DELETE FROM temp.staged_new")                                                  \
    X(UNSTAGE, "DELETE FROM temp.staged_items")                                                    \
    X(ITEM_DELETE, "DELETE FROM work_items WHERE work_item_id = ?1")                               \
    X(WAITING_INSERT,                                                                              \
      "INSERT INTO work_waiting (work_item_id, task_id, work_type, priority, retry_count,"         \
      " max_retries, attempts, token, entries, input_data, error_message, created_at,"             \
      " started_at, updated_at, submission, reason, due_boot_id, due_deadline_ns, due_at,"         \
      " waits_for) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"      \
      " ?16, ?17, ?18, ?19, ?20)")                                                                 \
    X(WAITING_UPDATE,                                                                              \
      "UPDATE work_waiting SET updated_at = ?2, reason = ?3, waits_for = ?4"                       \
      " WHERE work_item_id = ?1")                                                                  \
    X(WAITING_DELETE, "DELETE FROM work_waiting WHERE work_item_id = ?1")                          \
    X(RELINK_CHECKPOINTS,                                                                          \
      "UPDATE checkpoints SET work_item_id = item_id"                                              \
      " WHERE item_id = ?1 AND work_item_id IS NULL")                                              \
    X(RELINK_KEYS,                                                                                 \
      "UPDATE idempotency_keys SET work_item_id = item_id"                                         \
      " WHERE item_id = ?1 AND work_item_id IS NULL")                                              \
    X(CLOCK, "SELECT offset_us FROM work_clock WHERE boot_id = ?1")                                \
    X(CLOCK_SET, "INSERT OR REPLACE INTO work_clock (one, boot_id, offset_us) VALUES (1, ?1, ?2)") \
    X(SUBMISSIONS, "SELECT submissions FROM work_counters")                                        \
    X(SUBMISSIONS_SET, "UPDATE work_counters SET submissions = ?1")                                \
    X(EDGES, "SELECT work_item_id FROM work_dependencies WHERE after_id = ?1")                     \
    X(EDGE_INSERT, "INSERT INTO work_dependencies (work_item_id, after_id) VALUES (?1, ?2)")       \
    X(COMES_AFTER,                                                                                 \
      "SELECT after_id FROM work_dependencies WHERE work_item_id = ?1 ORDER BY after_id")          \
    X(STRANDED,                                                                                    \
      "SELECT w.work_item_id FROM work_waiting AS w WHERE w.waits_for > 0 AND (w.waits_for >"      \
      " (SELECT count(*) FROM work_dependencies AS d WHERE d.work_item_id = w.work_item_id"        \
      " AND NOT EXISTS (SELECT 1 FROM work_items AS i WHERE i.work_item_id = d.after_id"           \
      " AND i.status = 'completed')) OR EXISTS (SELECT 1 FROM work_dependencies AS d"              \
      " LEFT JOIN work_items AS i ON i.work_item_id = d.after_id"                                  \
      " WHERE d.work_item_id = w.work_item_id AND (i.status = 'failed' OR (i.status IS NULL"       \
      " AND NOT EXISTS (SELECT 1 FROM work_waiting AS o WHERE o.work_item_id = d.after_id)))))"    \
      " LIMIT ?1")                                                                                 \
    X(BOUNDARY,                                                                                    \
      "INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, item_id,"                    \
      " checkpoint_type, sequence_number, snapshot_data, created_at) VALUES (?1, ?2, ?3, ?3,"      \
      " 'error_boundary', (SELECT coalesce(max(last), 0) + 1 FROM checkpoint_counters"             \
      " WHERE task_id = ?2), ?4, ?5)")                                                             \
    X(TASK_LOAD,                                                                                   \
      "SELECT task_id, title, status, status_by, created_at, updated_at, metadata FROM tasks"      \
      " WHERE task_id = ?1")                                                                       \
    X(TASK_INSERT,                                                                                 \
      "INSERT INTO tasks (task_id, title, status, status_by, created_at, updated_at, metadata)"    \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)")                                                      \
    X(TASK_SET,                                                                                    \
      "UPDATE tasks SET status = ?2, status_by = ?3, derivations = derivations + (?3 = 'items'),"  \
      " updated_at = ?4 WHERE task_id = ?1")                                                       \
    X(TASK_UNFINISHED, "SELECT " WORK_UNFINISHED_OF_("?1"))                                        \
    X(TASK_STARTED,                                                                                \
      "SELECT EXISTS (SELECT 1 FROM work_items WHERE task_id = ?1"                                 \
      " AND status IN ('in_progress', 'completed', 'failed', 'expired'))")                         \
    X(TASK_ENDS,                                                                                   \
      "SELECT EXISTS (SELECT 1 FROM work_items WHERE task_id = ?1 AND status = 'failed'),"         \
      " EXISTS (SELECT 1 FROM work_items WHERE task_id = ?1)")                                     \
    X(TASKS_UNSETTLED,                                                                             \
      "SELECT task_id FROM tasks WHERE status = 'running' AND status_by = 'items'"                 \
      " AND EXISTS (SELECT 1 FROM work_items WHERE task_id = tasks.task_id)"                       \
      " AND NOT " WORK_UNFINISHED_OF_(                                                             \
          "tasks.task_id") " UNION ALL SELECT task_id FROM tasks WHERE status = 'pending' AND "    \
                           "status_by = 'items'"                                                   \
                           " AND EXISTS (SELECT 1 FROM work_items WHERE task_id = tasks.task_id"   \
                           " AND status IN ('in_progress', 'completed', 'failed', 'expired')) "    \
                           "LIMIT ?1")                                                             \
    X(TASKS,                                                                                       \
      "SELECT task_id, title, status, status_by, created_at, updated_at, metadata FROM tasks"      \
      " WHERE (?1 IS NULL OR status = ?1) ORDER BY created_at, task_id")                           \
    X(TASKS_PAGE,                                                                                  \
      "SELECT task_id, title, status, status_by, created_at, updated_at, metadata FROM tasks"      \
      " WHERE (?1 IS NULL OR status = ?1) AND task_id >= ?2 ORDER BY task_id LIMIT ?3")            \
    X(TASK_COUNTS,                                                                                 \
      "SELECT status, count(*) FROM work_items WHERE task_id = ?1 GROUP BY status"                 \
      " UNION ALL SELECT 'waiting', count(*) FROM work_waiting WHERE task_id = ?1")                \
    X(LIST, WORK_LIST_("?1 IS NULL", "?1 IS NULL"))                                                \
    X(LIST_OPEN,                                                                                   \
      WORK_LIST_("?1 IS NULL AND status IN ('pending', 'in_progress', 'expired')", "?1 IS NULL"))  \
    X(LIST_TASK, WORK_LIST_("task_id = ?1", "task_id = ?1"))                                       \
    X(PAGE, WORK_PAGE_("NOT INDEXED WHERE ?1 IS NULL", "NOT INDEXED WHERE ?1 IS NULL"))            \
    X(PAGE_BUSY,                                                                                   \
      WORK_PAGE_("WHERE ?1 IS NULL AND status IN ('in_progress', 'expired')",                      \
                 "NOT INDEXED WHERE ?1 IS NULL"))                                                  \
    X(PAGE_TASK,                                                                                   \
      WORK_PAGE_("INDEXED BY idx_work_items_task_ids WHERE task_id = ?1",                          \
                 "INDEXED BY idx_work_waiting_task WHERE task_id = ?1"))                           \
    X(HISTORY,                                                                                     \
      "SELECT seq, from_status, to_status, token, lease_holder, retry_count, message, at"          \
      " FROM work_history WHERE work_item_id = ?1 ORDER BY seq")

#endif
