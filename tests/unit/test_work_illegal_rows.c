/* What a work store refuses from anybody's SQL, and what it must not refuse: every row that cannot
 * be, every transition from and to every status, and what foreign keys and retention do to rows that
 * may not change otherwise. On SQLite and on PostgreSQL. */
#include "lib/work_sql.h"

#include <stdio.h>

#include "base/core/macros.h"

enum { BOTH, ONLY_SQLITE, ONLY_POSTGRES };

struct attempt {
    int where;
    const char *sql;
    const char *why; /* stands in the refusal; NULL: a constraint of the table */
};

#define END "'2031-01-01 00:00:00'"
#define T50 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"
#define T200 T50 T50 T50 T50

/* One of everything: items p, r, c, f, x in the five statuses, w waiting; keys kp, kc, ke (which can
 * expire); a checkpoint of c with evidence. */
static const char scene_sql[] =
    "INSERT INTO tasks (task_id, title) VALUES ('t', 'one'), ('u', 'two');"
    "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES ('p', 't', 'a'),"
    " ('r', 't', 'a'), ('c', 't', 'a'), ('f', 't', 'a'), ('x', 't', 'a');"
    "UPDATE work_items SET status = 'in_progress', lease_holder = 'h', lease_expires_at = " END
    " WHERE work_item_id <> 'p';"
    "UPDATE work_items SET status = 'completed', lease_holder = NULL, lease_expires_at = NULL,"
    " completed_at = " END " WHERE work_item_id = 'c';"
    "UPDATE work_items SET status = 'failed', lease_holder = NULL, lease_expires_at = NULL"
    " WHERE work_item_id = 'f';"
    "UPDATE work_items SET status = 'expired', lease_holder = NULL, lease_expires_at = NULL"
    " WHERE work_item_id = 'x';"
    "INSERT INTO work_waiting (work_item_id, task_id, work_type, reason, due_at)"
    " VALUES ('w', 't', 'a', 'delay', " END ");"
    "INSERT INTO work_dependencies VALUES ('w', 'c'), ('w', 'p');"
    "INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, checkpoint_type,"
    " sequence_number, snapshot_data) VALUES ('k', 't', 'c', 'iteration_end', 5, '{}');"
    "INSERT INTO checkpoint_evidence VALUES ('t', 'k', 0, 'file_exists', '/etc', NULL);"
    "INSERT INTO checkpoint_results (task_id, checkpoint_id, ordinal, ok) SELECT 't', 'k', 0, 1 = "
    "1;"
    "INSERT INTO checkpoints_archive (checkpoint_id, task_id, checkpoint_type, sequence_number,"
    " snapshot_data, created_at, verified) SELECT 'a', 't', 'llm_response', 1, '{}', created_at,"
    " verified FROM checkpoints;"
    "INSERT INTO idempotency_keys (idempotency_key, task_id, work_item_id, request_hash, "
    "expires_at)"
    " VALUES ('kp', 't', 'c', 'h', NULL), ('kc', 't', 'c', 'h', NULL), ('ke', 't', NULL, 'h', " END
    ");"
    "UPDATE idempotency_keys SET status = 'completed', completed_at = " END
    " WHERE idempotency_key <> 'kp';"
    "INSERT INTO schedules (schedule_id, cron, work_type) VALUES ('s', '* * * * *', 'a');"
    "INSERT INTO schedule_fires VALUES ('s', " END ", 'i')";

/* Changes with whatever a refused statement could leave behind. */
static const char fingerprint_sql[] =
    "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM work_waiting),"
    " (SELECT count(*) FROM work_history), (SELECT count(*) FROM work_dependencies),"
    " (SELECT max(last) FROM checkpoint_counters), (SELECT count(*) FROM checkpoints),"
    " (SELECT count(*) FROM schedules), (SELECT count(*) FROM idempotency_keys),"
    " (SELECT count(*) FROM idempotency_keys WHERE status = 'pending'), count(*), sum(token),"
    " sum(attempts), sum(priority), sum(retry_count), count(lease_holder), count(error_message),"
    " max(status), min(work_type), sum(length(status)) FROM work_items";

static void refuse_all(struct work_sql *store, const struct attempt *attempts, size_t count)
{
    char before[256];

    snprintf(before, sizeof(before), "%s", work_sql_answer(store, fingerprint_sql));
    for (size_t i = 0; i < count; i++) {
        const struct attempt *attempt = &attempts[i];
        if (attempt->where == (store->is_postgres ? ONLY_SQLITE : ONLY_POSTGRES)) {
            continue;
        }
        if (work_sql_try(store, attempt->sql)) {
            fail_msg("taken: %s", attempt->sql);
        }
        if (attempt->why != NULL && strstr(store->error, attempt->why) == NULL) {
            fail_msg("%s: '%s' is not in '%s'", attempt->sql, attempt->why, store->error);
        }
        if (strstr(store->error, "syntax error") != NULL || strstr(store->error, "no such") != NULL
            || strstr(store->error, "supplied") != NULL
            || strstr(store->error, "does not exist") != NULL) {
            fail_msg("%s: refused for another reason: %s", attempt->sql, store->error);
        }
        work_sql_is(store, fingerprint_sql, before);
    }
}

static void accept_all(struct work_sql *store, const char *const *sql, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        work_sql_must(store, sql[i]);
    }
}

#define REFUSE(store, attempts) refuse_all(store, attempts, COUNT_OF(attempts))
#define ACCEPT(store, sql) accept_all(store, sql, COUNT_OF(sql))

#define ITEM(columns, values)                                            \
    "INSERT INTO work_items (work_item_id, task_id, work_type, " columns \
    ") VALUES ('n', 't', 'a', " values ")"

static void test_an_item_that_cannot_be_is_not_inserted(void **state)
{
    static const struct attempt attempts[] = {
        { BOTH, ITEM("status", "'completed'"), "begins as pending" },
        { BOTH, ITEM("status", "'failed'"), "begins as pending" },
        { BOTH, ITEM("status", "'expired'"), "begins as pending" },
        { BOTH,
          ITEM("status, lease_holder, lease_expires_at", "'in_progress', 'h', " END),
          "begins as pending" },
        { BOTH, ITEM("status, completed_at", "'completed', " END), "begins as pending" },
        { BOTH, ITEM("status", "'done'"), NULL },
        { BOTH, ITEM("status", "''"), NULL },
        { BOTH, ITEM("status", "NULL"), NULL },
        { BOTH, ITEM("priority", "1000001"), NULL },
        { BOTH, ITEM("priority", "-1000001"), NULL },
        { BOTH, ITEM("priority", "NULL"), NULL },
        { BOTH, ITEM("priority", "'high'"), NULL },
        { ONLY_SQLITE, ITEM("priority", "1.5"), NULL },
        { BOTH, ITEM("retry_count", "-1"), NULL },
        { BOTH, ITEM("retry_count", "NULL"), NULL },
        { BOTH, ITEM("max_retries", "-1"), NULL },
        { BOTH, ITEM("max_retries", "1000001"), NULL },
        { BOTH, ITEM("max_retries", "NULL"), NULL },
        { BOTH, ITEM("token", "-1"), NULL },
        { BOTH, ITEM("token", "NULL"), NULL },
        { BOTH, ITEM("attempts", "-1"), NULL },
        { BOTH, ITEM("entries", "-1"), NULL },
        { BOTH, ITEM("lease_holder", "'h'"), "only_a_leased_item_has_a_holder" },
        { BOTH, ITEM("lease_expires_at", END), "only_a_leased_item_has_an_expiry" },
        { BOTH, ITEM("completed_at", END), "only_an_ended_item_has_an_end" },
        { BOTH, ITEM("created_at", "NULL"), NULL },
        { BOTH, ITEM("created_at", "'yesterday at five'"), NULL },
        { ONLY_SQLITE, ITEM("created_at", "'2031-01-01T00:00:00Z'"), NULL },
        { ONLY_SQLITE, ITEM("created_at", "17"), NULL },
        { BOTH, ITEM("updated_at", "NULL"), NULL },
    };
    static const struct attempt ids[] = {
        { BOTH, "INSERT INTO work_items (task_id, work_type) VALUES ('t', 'a')", NULL },
        { BOTH,
          "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES (NULL, 't', 'a')",
          NULL },
        { BOTH, "INSERT INTO work_items (work_item_id, work_type) VALUES ('n', 'a')", NULL },
        { BOTH, "INSERT INTO work_items (work_item_id, task_id) VALUES ('n', 't')", NULL },
        { BOTH,
          "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES ('', 't', 'a')",
          NULL },
        { BOTH,
          "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES ('" T200
          "x', 't', 'a')",
          NULL },
        { BOTH,
          "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES ('n', 't', '')",
          NULL },
        { BOTH,
          "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES ('n', 't', '" T200
          "x')",
          NULL },
        { BOTH,
          "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES ('n', 'no', 'a')",
          NULL },
        { BOTH,
          "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES ('p', 't', 'a')",
          NULL },
        { BOTH,
          "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES ('w', 't', 'a')",
          "is in work_waiting" },
        { ONLY_SQLITE,
          "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES (x'00', 't', 'a')",
          NULL },
    };

    work_sql_must(*state, scene_sql);
    REFUSE(*state, attempts);
    REFUSE(*state, ids);
}

static void test_rows_at_the_limits_are_taken(void **state)
{
    static const char *const sql[] = {
        "INSERT INTO work_items (work_item_id, task_id, work_type, priority, max_retries) VALUES"
        " ('" T200 "', 't', '" T200 "', 1000000, 1000000), ('n', 't', 'a', -1000000, 0)",
        "INSERT INTO work_items (work_item_id, task_id, work_type, entries, token, attempts,"
        " retry_count) VALUES ('back', 't', 'a', 1, 3, 3, 9)", /* as from work_waiting */
        "INSERT INTO work_waiting (work_item_id, task_id, work_type, reason, waits_for)"
        " VALUES ('d', 't', 'a', 'dependency', 2)",
        "INSERT INTO tasks (task_id) VALUES ('" T200 "')",
        "INSERT INTO checkpoints (checkpoint_id, task_id, checkpoint_type, sequence_number,"
        " snapshot_data) VALUES ('" T200 "', 'u', 'llm_response', 1, '')",
        "INSERT INTO idempotency_keys (idempotency_key, request_hash) VALUES ('" T200 "', 'h')",
    };

    work_sql_must(*state, scene_sql);
    ACCEPT(*state, sql);
    work_sql_is(*state, "SELECT count(*) FROM work_history WHERE work_item_id = 'back'", "0");
    work_sql_is(*state,
                "SELECT to_status, message FROM work_history WHERE work_item_id = 'd'",
                "pending|dependency");
}

/* --- items: from every status to every status --- */

static const char *const statuses[] = {
    "pending", "in_progress", "completed", "failed", "expired"
};
static const char *const targets[] = { "pending", "in_progress", "completed",
                                       "failed",  "expired",     "cancelled" };

/* Rows: from; columns: to, in the order above. '=' is no transition. */
static const char *const allowed[] = {
    "=x.x..", /* pending */
    "x=xxx.", /* in_progress */
    "......", /* completed */
    "......", /* failed */
    "x..x=.", /* expired */
};

/* The row that is right for this status in everything but where it came from. */
static void write_status(const char *id, const char *status, char *ret_sql)
{
    bool leased = strcmp(status, "in_progress") == 0;
    bool ended = strcmp(status, "completed") == 0;

    snprintf(ret_sql,
             512,
             "UPDATE work_items SET status = '%s', lease_holder = %s, lease_expires_at = %s,"
             " completed_at = %s WHERE work_item_id = '%s'",
             status,
             leased ? "'h'" : "NULL",
             leased ? END : "NULL",
             ended ? END : "NULL",
             id);
}

static void bring_to(struct work_sql *store, const char *id, const char *status)
{
    char sql[512];

    snprintf(sql,
             sizeof(sql),
             "INSERT INTO work_items (work_item_id, task_id, work_type) VALUES ('%s', 't', 'a')",
             id);
    work_sql_must(store, sql);
    if (strcmp(status, "pending") != 0) {
        write_status(id, "in_progress", sql);
        work_sql_must(store, sql);
    }
    if (strcmp(status, "pending") != 0 && strcmp(status, "in_progress") != 0) {
        write_status(id, status, sql);
        work_sql_must(store, sql);
    }
}

static void check_transition(struct work_sql *store, size_t from, size_t to)
{
    char id[16];
    char sql[512];
    char look[128];
    char expected[64];

    snprintf(id, sizeof(id), "m-%zu-%zu", from, to);
    bring_to(store, id, statuses[from]);
    write_status(id, targets[to], sql);
    bool taken = work_sql_try(store, sql);
    if (taken != (allowed[from][to] != '.')) {
        fail_msg("%s -> %s: %s", statuses[from], targets[to], taken ? "taken" : store->error);
    }
    snprintf(look, sizeof(look), "SELECT status FROM work_items WHERE work_item_id = '%s'", id);
    work_sql_is(store, look, taken ? targets[to] : statuses[from]);

    /* Exactly the transitions are in the history. */
    snprintf(look, sizeof(look), "SELECT count(*) FROM work_history WHERE work_item_id = '%s'", id);
    size_t steps = from == 0 ? 1 : from == 1 ? 2 : 3;
    snprintf(expected, sizeof(expected), "%zu", steps + (allowed[from][to] == 'x'));
    work_sql_is(store, look, expected);
}

static void test_every_transition_is_taken_or_refused(void **state)
{
    struct work_sql *store = *state;

    work_sql_must(store, "INSERT INTO tasks (task_id) VALUES ('t')");
    for (size_t from = 0; from < COUNT_OF(statuses); from++) {
        for (size_t to = 0; to < COUNT_OF(targets); to++) {
            check_transition(store, from, to);
        }
    }
}

#define SET(assignments, id) "UPDATE work_items SET " assignments " WHERE work_item_id = '" id "'"

static void test_a_change_that_cannot_be_is_refused(void **state)
{
    static const struct attempt attempts[] = {
        { BOTH, SET("status = NULL", "p"), NULL },
        { BOTH, SET("status = 'expired'", "p"), "cannot go from" },
        { BOTH, SET("status = 'in_progress'", "p"), NULL }, /* without a holder */
        { BOTH,
          SET("status = 'in_progress', lease_holder = 'h'", "p"),
          "only_a_leased_item_has_an_expiry" },
        { BOTH, SET("lease_holder = 'h'", "p"), NULL },
        { BOTH, SET("priority = 1000001", "p"), NULL },
        { BOTH, SET("work_item_id = 'q'", "p"), "do not change" },
        { BOTH, SET("task_id = 'u'", "p"), "do not change" },
        { BOTH, SET("created_at = " END, "p"), "do not change" },
        { BOTH, SET("lease_holder = 'thief'", "r"), "not from its holder" },
        { BOTH, SET("lease_holder = 'thief', token = token + 1", "r"), "not from its holder" },
        { BOTH, SET("lease_holder = NULL", "r"), NULL },
        { BOTH, SET("lease_expires_at = NULL", "r"), NULL },
        { BOTH, SET("completed_at = " END, "r"), NULL },
        { BOTH, SET("token = token - 1", "r"), "do not go down" },
        { BOTH, SET("attempts = 0", "r"), "do not go down" },
        { BOTH, SET("entries = -1", "r"), "do not go down" },
        { BOTH, SET("status = 'completed'", "r"), NULL }, /* with its lease */
        { BOTH,
          SET("status = 'completed', lease_holder = NULL, lease_expires_at = NULL", "r"),
          "only_an_ended_item_has_an_end" },
        { BOTH, SET("lease_expires_at = 'soon'", "r"), NULL },
        /* Every column of an ended one. */
        { BOTH, SET("output_data = '1'", "c"), "completed or failed does not change" },
        { BOTH, SET("error_message = 'e'", "c"), "completed or failed does not change" },
        { BOTH, SET("status = 'completed'", "c"), "completed or failed does not change" },
        { BOTH, SET("priority = 3", "c"), "completed or failed does not change" },
        { BOTH, SET("work_type = 'b'", "c"), "completed or failed does not change" },
        { BOTH, SET("lease_acquired_at = " END, "c"), "completed or failed does not change" },
        { BOTH, SET("heartbeat_at = " END, "c"), "completed or failed does not change" },
        { BOTH, SET("retry_count = 1", "f"), "completed or failed does not change" },
        { BOTH, SET("max_retries = 1", "f"), "completed or failed does not change" },
        { BOTH, SET("input_data = '1'", "f"), "completed or failed does not change" },
        { BOTH, SET("started_at = " END, "f"), "completed or failed does not change" },
        { BOTH, SET("completed_at = " END, "f"), "completed or failed does not change" },
        { BOTH, SET("token = 9", "f"), "completed or failed does not change" },
        { BOTH, SET("attempts = 9", "f"), "completed or failed does not change" },
        { BOTH, SET("entries = 9", "f"), "completed or failed does not change" },
        { ONLY_SQLITE, SET("lease_boot_id = 'b'", "f"), "completed or failed does not change" },
        { ONLY_SQLITE, SET("lease_deadline_ns = 1", "f"), "completed or failed does not change" },
        /* One of many refuses all. */
        { BOTH,
          "UPDATE work_items SET error_message = 'e'",
          "completed or failed does not change" },
    };

    work_sql_must(*state, scene_sql);
    REFUSE(*state, attempts);
}

static void test_what_waits_is_guarded_too(void **state)
{
    static const struct attempt attempts[] = {
        { BOTH,
          "INSERT INTO work_waiting (work_item_id, task_id, work_type, reason, due_at) VALUES"
          " ('p', 't', 'a', 'delay', " END ")",
          "is in work_items" },
        { BOTH,
          "INSERT INTO work_waiting (work_item_id, task_id, work_type, reason, due_at) VALUES"
          " ('n', 't', 'a', 'boredom', " END ")",
          NULL },
        { BOTH,
          "INSERT INTO work_waiting (work_item_id, task_id, work_type, reason) VALUES"
          " ('n', 't', 'a', 'delay')",
          "who_waits_waits_for_something" },
        { BOTH,
          "INSERT INTO work_waiting (work_item_id, task_id, work_type, reason, waits_for)"
          " VALUES ('n', 't', 'a', 'dependency', -1)",
          NULL },
        { BOTH,
          "INSERT INTO work_waiting (work_item_id, task_id, work_type, reason, due_at) VALUES"
          " ('n', 'no', 'a', 'delay', " END ")",
          NULL },
        { BOTH, "UPDATE work_waiting SET work_item_id = 'p'", "do not change" },
        { BOTH, "UPDATE work_waiting SET task_id = 'u'", "do not change" },
        { BOTH, "UPDATE work_waiting SET token = -1", "do not go down" },
        { ONLY_SQLITE, "UPDATE work_waiting SET due_deadline_ns = 1", "a_boot_and_its_clock" },
        { BOTH, "INSERT INTO work_dependencies VALUES ('w', 'w')", "no_item_waits_for_itself" },
        { BOTH, "INSERT INTO work_dependencies VALUES ('w', 'c')", NULL },
        { BOTH, "UPDATE work_history SET message = 'x'", "does not change" },
        { BOTH, "UPDATE work_history SET at = " END, "does not change" },
        { BOTH,
          "INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token,"
          " retry_count, at) VALUES ('p', 't', 'completed', 'pending', 1, 0, " END ")",
          "only_transitions_that_exist" },
        { BOTH, "UPDATE schedule_fires SET work_item_id = 'j'", "does not change" },
        { BOTH, "INSERT INTO schedule_fires VALUES ('s', " END ", 'j')", NULL },
        { BOTH, "INSERT INTO schedule_fires VALUES ('no', " END ", 'j')", NULL },
        { BOTH, "UPDATE schedules SET timezone = 'CET'", NULL },
        { BOTH, "UPDATE schedules SET priority = 1000001", NULL },
        { BOTH, "UPDATE tasks SET status = 'done'", NULL },
        { BOTH, "UPDATE tasks SET task_id = 'v' WHERE task_id = 'u'", "do not change" },
        { BOTH, "INSERT INTO tasks (task_id, status) VALUES ('v', 'completed')", NULL },
        { BOTH, "INSERT INTO tasks (task_id) VALUES ('')", NULL },
        { BOTH, "INSERT INTO tasks (task_id) VALUES (NULL)", NULL },
        { BOTH, "INSERT INTO tasks (task_id) VALUES ('t')", NULL },
    };

    work_sql_must(*state, scene_sql);
    REFUSE(*state, attempts);
}

/* --- checkpoints --- */

#define CHECKPOINT(values)                                                            \
    "INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, checkpoint_type," \
    " sequence_number, snapshot_data) VALUES (" values ")"

static void test_a_checkpoint_that_cannot_be_is_refused(void **state)
{
    static const struct attempt attempts[] = {
        { BOTH, CHECKPOINT("'n', 't', NULL, 'iteration', 6, '{}'"), "invalid checkpoint_type" },
        { BOTH, CHECKPOINT("'n', 't', NULL, '', 6, '{}'"), "invalid checkpoint_type" },
        { BOTH, CHECKPOINT("'n', 't', NULL, 'ITERATION_END', 6, '{}'"), "invalid checkpoint_type" },
        { BOTH, CHECKPOINT("'n', 't', NULL, NULL, 6, '{}'"), "invalid checkpoint_type" },
        { BOTH, CHECKPOINT("'n', 't', NULL, 'llm_response', 5, '{}'"), "must be above" },
        { BOTH, CHECKPOINT("'n', 't', NULL, 'llm_response', 4, '{}'"), "must be above" },
        { BOTH, CHECKPOINT("'n', 't', NULL, 'llm_response', 0, '{}'"), "must be above" },
        { BOTH, CHECKPOINT("'n', 'u', NULL, 'llm_response', 0, '{}'"), "must be above" },
        { BOTH, CHECKPOINT("'n', 'u', NULL, 'llm_response', -1, '{}'"), "must be above" },
        { ONLY_SQLITE, CHECKPOINT("'n', 't', NULL, 'llm_response', NULL, '{}'"), NULL },
        { BOTH, CHECKPOINT("'n', 't', NULL, 'llm_response', 'six', '{}'"), NULL },
        { BOTH, CHECKPOINT("'n', 't', NULL, 'llm_response', 6, NULL"), NULL },
        { BOTH, CHECKPOINT("'', 't', NULL, 'llm_response', 6, '{}'"), NULL },
        { BOTH, CHECKPOINT("NULL, 't', NULL, 'llm_response', 6, '{}'"), NULL },
        { BOTH, CHECKPOINT("'n', 'no', NULL, 'llm_response', 6, '{}'"), NULL },
        { BOTH, CHECKPOINT("'n', 't', 'no', 'llm_response', 6, '{}'"), NULL },
        { BOTH, CHECKPOINT("'n', 'u', 'c', 'llm_response', 6, '{}'"), "of the same task" },
        { BOTH, CHECKPOINT("'k', 't', NULL, 'llm_response', 6, '{}'"), NULL },
        { BOTH, "UPDATE checkpoints SET snapshot_data = '[]'", "does not change" },
        { BOTH, "UPDATE checkpoints SET snapshot_data = snapshot_data", "does not change" },
        { BOTH, "UPDATE checkpoints SET metadata = '[]'", "does not change" },
        { BOTH, "UPDATE checkpoints SET sequence_number = 6", "does not change" },
        { BOTH, "UPDATE checkpoints SET checkpoint_type = 'llm_response'", "does not change" },
        { BOTH, "UPDATE checkpoints SET checkpoint_id = 'l'", "does not change" },
        { BOTH, "UPDATE checkpoints SET task_id = 'u'", "does not change" },
        { BOTH, "UPDATE checkpoints SET created_at = " END, "does not change" },
        { BOTH, "UPDATE checkpoints SET item_id = 'p'", "stays with its work item" },
        { BOTH, "UPDATE checkpoints SET item_id = NULL", "stays with its work item" },
        { BOTH, "UPDATE checkpoints SET work_item_id = 'p'", "stays with its work item" },
        { BOTH, "UPDATE checkpoint_counters SET last = 4", "does not go down" },
        { BOTH, "UPDATE checkpoint_counters SET task_id = 'u'", NULL },
        { BOTH, "DELETE FROM checkpoint_counters", "goes with the task" },
        { BOTH, "UPDATE checkpoint_results SET detail = '1'", "do not change" },
        { BOTH, "UPDATE checkpoint_evidence SET expected = '1'", "does not change" },
        { BOTH, "INSERT INTO checkpoint_evidence VALUES ('t', 'k', 1, 'rumour', 'x', NULL)", NULL },
        { BOTH,
          "INSERT INTO checkpoint_evidence VALUES ('t', 'no', 1, 'row_exists', 'x', NULL)",
          NULL },
        { BOTH, "UPDATE checkpoints_archive SET metadata = '1'", "does not change" },
    };

    work_sql_must(*state, scene_sql);
    REFUSE(*state, attempts);
}

static void test_every_type_of_checkpoint_is_taken(void **state)
{
    static const char *const types[] = { "iteration_start",   "iteration_end",  "tool_executed",
                                         "llm_response",      "approval_point", "state_transition",
                                         "manual_checkpoint", "error_boundary" };
    struct work_sql *store = *state;
    char sql[512];

    work_sql_must(store, "INSERT INTO tasks (task_id) VALUES ('t')");
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        snprintf(
            sql,
            sizeof(sql),
            "INSERT INTO checkpoints (checkpoint_id, task_id, checkpoint_type, sequence_number,"
            " snapshot_data) VALUES ('%s', 't', '%s', "
            "(SELECT coalesce(max(last), 0) + 1 FROM checkpoint_counters WHERE task_id = 't'),"
            " '{}')",
            types[i],
            types[i]);
        work_sql_must(store, sql);
    }
    work_sql_is(store, "SELECT max(sequence_number), count(*) FROM checkpoints", "8|8");

    /* A number does not come back with the space of its checkpoint. */
    work_sql_must(store, "DELETE FROM checkpoints WHERE sequence_number >= 7");
    assert_false(work_sql_try(store, CHECKPOINT("'n', 't', NULL, 'llm_response', 8, '{}'")));
    assert_non_null(strstr(store->error, "must be above"));
    if (store->is_postgres) { /* and here it may be left out */
        work_sql_is(
            store,
            CHECKPOINT("'n', 't', NULL, 'llm_response', NULL, '{}'") " RETURNING sequence_number",
            "9");
    }
    work_sql_must(store, "UPDATE checkpoints SET verified = (1 = 0)"); /* the result of looking */
}

/* --- idempotency keys --- */

#define KEY(assignments, key) \
    "UPDATE idempotency_keys SET " assignments " WHERE idempotency_key = '" key "'"

static void test_a_key_that_cannot_be_is_refused(void **state)
{
    static const struct attempt attempts[] = {
        { BOTH,
          "INSERT INTO idempotency_keys (idempotency_key, request_hash, status, completed_at)"
          " VALUES ('n', 'h', 'completed', " END ")",
          "begins as pending" },
        { BOTH,
          "INSERT INTO idempotency_keys (idempotency_key, request_hash, status, completed_at)"
          " VALUES ('n', 'h', 'failed', " END ")",
          "begins as pending" },
        { BOTH,
          "INSERT INTO idempotency_keys (idempotency_key, request_hash, status)"
          " VALUES ('n', 'h', 'started')",
          NULL },
        { BOTH,
          "INSERT INTO idempotency_keys (idempotency_key, request_hash, response_data)"
          " VALUES ('n', 'h', '1')",
          "only_an_ended_key_has_a_response" },
        { BOTH, "INSERT INTO idempotency_keys (idempotency_key) VALUES ('n')", NULL },
        { BOTH,
          "INSERT INTO idempotency_keys (idempotency_key, request_hash) VALUES ('', 'h')",
          NULL },
        { BOTH,
          "INSERT INTO idempotency_keys (idempotency_key, request_hash) VALUES ('kp', 'h')",
          NULL },
        { BOTH,
          "INSERT INTO idempotency_keys (idempotency_key, request_hash, expires_at)"
          " VALUES ('n', 'h', 'never')",
          NULL },
        { BOTH,
          "INSERT INTO idempotency_keys (idempotency_key, request_hash, task_id)"
          " VALUES ('n', 'h', 'no')",
          NULL },
        { BOTH, KEY("status = 'completed'", "kp"), "only_an_ended_key_has_an_end" },
        { BOTH, KEY("status = 'expired', completed_at = " END, "kp"), NULL },
        { BOTH, KEY("status = NULL", "kp"), NULL },
        { BOTH, KEY("response_data = '1'", "kp"), "only_an_ended_key_has_a_response" },
        { BOTH, KEY("request_hash = 'i'", "kp"), NULL },
        { BOTH, KEY("created_at = " END, "kp"), NULL },
        { BOTH, KEY("idempotency_key = 'kq'", "kp"), NULL },
        { BOTH, KEY("owner_token = -1", "kp"), NULL },
        { BOTH, KEY("work_item_id = 'p'", "kp"), "stays with its work item" },
        { BOTH, KEY("status = 'failed'", "kc"), "completed or failed does not change" },
        { BOTH, KEY("status = 'completed'", "kc"), "completed or failed does not change" },
        { BOTH, KEY("response_data = '1'", "kc"), "completed or failed does not change" },
        { BOTH, KEY("completed_at = " END, "kc"), "completed or failed does not change" },
        { BOTH, KEY("expires_at = " END, "kc"), "completed or failed does not change" },
        { BOTH,
          KEY("status = 'pending', completed_at = NULL", "kc"),
          "completed or failed does not change" },
        { BOTH,
          KEY("status = 'pending', completed_at = NULL, owner_token = 1", "kc"),
          "completed or failed does not change" }, /* it never expires */
        { BOTH,
          KEY("status = 'pending', completed_at = NULL", "ke"),
          "completed or failed does not change" },
        { BOTH,
          KEY("status = 'failed', owner_token = 1", "ke"),
          "completed or failed does not change" },
    };
    static const char *const taken[] = {
        KEY("owner_token = 1, owner = 'me', lease_expires_at = " END, "kp"),
        KEY("owner_token = 2, owner = 'you', request_hash = 'i', created_at = " END, "kp"),
        KEY("status = 'failed', response_data = '1', completed_at = " END, "kp"),
        KEY("status = 'pending', completed_at = NULL, owner_token = 1, request_hash = 'j',"
            " response_data = NULL",
            "ke"),
        KEY("status = 'completed', response_data = 'null', completed_at = " END, "ke"),
    };

    work_sql_must(*state, scene_sql);
    REFUSE(*state, attempts);
    ACCEPT(*state, taken);
}

/* --- what must work on rows that may not change --- */

static void test_foreign_keys_act_on_ended_rows(void **state)
{
    struct work_sql *store = *state;

    work_sql_must(store, scene_sql);
    work_sql_must(store, "DELETE FROM work_items WHERE work_item_id = 'c'");
    work_sql_is(store, "SELECT work_item_id, item_id, sequence_number FROM checkpoints", "|c|5");
    work_sql_is(store,
                "SELECT idempotency_key, work_item_id, item_id, status FROM idempotency_keys"
                " WHERE item_id IS NOT NULL ORDER BY 1",
                "kc||c|completed\nkp||c|pending");
    work_sql_is(store, "SELECT work_item_id, after_id FROM work_dependencies", "w|p");

    /* It comes back, as out of work_waiting. */
    work_sql_must(store, ITEM("entries", "1"));
    work_sql_must(store,
                  "INSERT INTO work_items (work_item_id, task_id, work_type, entries)"
                  " VALUES ('c', 't', 'a', 1)");
    work_sql_must(store,
                  "UPDATE checkpoints SET work_item_id = item_id"
                  " WHERE item_id = 'c' AND work_item_id IS NULL");
    work_sql_must(store,
                  "UPDATE idempotency_keys SET work_item_id = item_id"
                  " WHERE item_id = 'c' AND work_item_id IS NULL");
    work_sql_is(store, "SELECT count(*) FROM idempotency_keys WHERE work_item_id = 'c'", "2");

    work_sql_must(store, "DELETE FROM tasks WHERE task_id = 't'");
    work_sql_is(store,
                "SELECT (SELECT count(*) FROM work_items), (SELECT count(*) FROM work_waiting),"
                " (SELECT count(*) FROM checkpoints), (SELECT count(*) FROM checkpoint_counters),"
                " (SELECT count(*) FROM checkpoint_evidence),"
                " (SELECT count(*) FROM work_dependencies),"
                " (SELECT count(*) FROM idempotency_keys WHERE task_id IS NULL)",
                "0|0|0|0|0|0|3");
}

static void test_retention_may_delete(void **state)
{
    struct work_sql *store = *state;

    work_sql_must(store, scene_sql);
    work_sql_must(store,
                  "UPDATE work_items SET updated_at = '2020-01-01 00:00:00'"); /* ended ones, too */
    work_sql_must(store,
                  "DELETE FROM work_items WHERE status IN ('completed', 'failed')"
                  " AND updated_at < '2020-02-01 00:00:00'");
    work_sql_is(store, "SELECT count(*) FROM work_items", "3");
    work_sql_must(store, "DELETE FROM work_history WHERE work_item_id IN ('c', 'f')");
    work_sql_must(store, "DELETE FROM idempotency_keys WHERE status = 'completed'");
    work_sql_must(store, "DELETE FROM checkpoints WHERE task_id = 't'");
    work_sql_is(store, "SELECT count(*) FROM checkpoint_evidence", "0");
    work_sql_is(store, "SELECT last FROM checkpoint_counters", "5");
    work_sql_must(store, "DELETE FROM checkpoints_archive");
    work_sql_must(store, "DELETE FROM schedules");
    work_sql_is(store, "SELECT count(*) FROM schedule_fires", "0");
}

/* --- what SQL that knows nothing of our columns gets --- */

static void test_a_lease_by_foreign_sql_is_counted(void **state)
{
    struct work_sql *store = *state;

    work_sql_must(store, scene_sql);
    work_sql_is(store,
                "SELECT token, attempts, CASE WHEN updated_at > created_at THEN 'later' END"
                " FROM work_items WHERE work_item_id = 'r'",
                "1|1|later");
    work_sql_must(store,
                  "UPDATE work_items SET status = 'pending', lease_holder = NULL,"
                  " lease_expires_at = NULL, error_message = 'why' WHERE work_item_id = 'r'");
    work_sql_must(store,
                  "UPDATE work_items SET status = 'in_progress', lease_holder = 'g',"
                  " lease_expires_at = " END " WHERE work_item_id = 'r'");
    /* Ours: sets the token itself, and is not counted twice. */
    work_sql_must(store,
                  "UPDATE work_items SET status = 'in_progress', lease_holder = 'us',"
                  " lease_expires_at = " END ", token = token + 1, attempts = attempts + 1"
                  " WHERE work_item_id = 'p'");
    work_sql_is(store,
                "SELECT work_item_id, token, attempts FROM work_items"
                " WHERE status = 'in_progress' ORDER BY 1",
                "p|1|1\nr|2|2");
    work_sql_is(store,
                "SELECT from_status, to_status, token, lease_holder, message FROM work_history"
                " WHERE work_item_id = 'r' ORDER BY seq",
                "|pending|0||\npending|in_progress|1|h|\nin_progress|pending|1|h|why\n"
                "pending|in_progress|2|g|");
    work_sql_is(store,
                "SELECT from_status, to_status, token FROM work_history"
                " WHERE work_item_id = 'x' ORDER BY seq",
                "|pending|0\npending|in_progress|1\nin_progress|expired|1");
}

static void test_a_status_of_a_task_knows_who_set_it(void **state)
{
    struct work_sql *store = *state;
    static const char look[] = "SELECT task_id, status, status_by FROM tasks ORDER BY 1";

    work_sql_must(store,
                  "INSERT INTO tasks (task_id, status) VALUES ('a', 'pending'), ('b', 'running'),"
                  " ('c', 'pending')");
    work_sql_is(store, look, "a|pending|items\nb|running|user\nc|pending|items");
    work_sql_must(store,
                  "UPDATE tasks SET status = 'running', derivations = derivations + 1"
                  " WHERE task_id = 'a'");
    work_sql_must(store, "UPDATE tasks SET status = 'cancelled' WHERE task_id = 'c'");
    work_sql_is(store, look, "a|running|items\nb|running|user\nc|cancelled|user");
    work_sql_must(store, "UPDATE tasks SET title = 'x', status = 'running' WHERE task_id = 'a'");
    work_sql_is(store, look, "a|running|items\nb|running|user\nc|cancelled|user");
    work_sql_must(store, "UPDATE tasks SET status = 'failed' WHERE task_id = 'a'");
    work_sql_is(store, "SELECT status_by FROM tasks WHERE task_id = 'a'", "user");

    work_sql_must(store, "UPDATE tasks SET updated_at = '2020-01-01 00:00:00'");
    work_sql_must(store, "UPDATE tasks SET title = 'y' WHERE task_id = 'a'");
    work_sql_is(store, "SELECT task_id FROM tasks WHERE updated_at > '2020-02-01 00:00:00'", "a");
}

/* The clock of the boot has nothing to say once foreign SQL has moved the lease. */
static void test_a_foreign_heartbeat_hands_the_lease_to_the_wall_clock(void **state)
{
    struct work_sql *store = *state;

    if (store->is_postgres) {
        return; /* one clock there */
    }
    work_sql_must(store, scene_sql);
    work_sql_must(store, SET("lease_boot_id = 'b', lease_deadline_ns = 7", "r"));
    work_sql_must(store, SET("heartbeat_at = " END, "r")); /* moves no deadline */
    work_sql_is(store, "SELECT lease_deadline_ns FROM work_items WHERE work_item_id = 'r'", "7");
    work_sql_must(store,
                  SET("lease_expires_at = '2032-01-01 00:00:00', lease_deadline_ns = 8", "r"));
    work_sql_is(store, "SELECT lease_deadline_ns FROM work_items WHERE work_item_id = 'r'", "8");
    work_sql_must(store, SET("lease_expires_at = '2033-01-01 00:00:00'", "r"));
    work_sql_is(store,
                "SELECT lease_boot_id, lease_deadline_ns, token FROM work_items"
                " WHERE work_item_id = 'r'",
                "||1");
}

/* A session that has never heard of our search_path. */
static void test_any_session_may_fire_the_triggers(void **state)
{
    struct work_sql *store = *state;

    if (!store->is_postgres) {
        return;
    }
    work_sql_must(store, scene_sql);
    work_sql_must(store, "SET search_path = public");
    work_sql_must(store, "UPDATE pawl.work_items SET status = 'failed' WHERE work_item_id = 'p'");
    work_sql_must(store,
                  "INSERT INTO pawl.checkpoints (checkpoint_id, task_id, checkpoint_type,"
                  " snapshot_data, sequence_number) VALUES ('n', 't', 'llm_response', '{}', NULL)");
    work_sql_must(store, "DELETE FROM pawl.tasks");
    work_sql_is(store, "SELECT count(*) FROM pawl.checkpoints", "0");
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        WORK_SQL_TEST(test_an_item_that_cannot_be_is_not_inserted),
        WORK_SQL_TEST(test_rows_at_the_limits_are_taken),
        WORK_SQL_TEST(test_every_transition_is_taken_or_refused),
        WORK_SQL_TEST(test_a_change_that_cannot_be_is_refused),
        WORK_SQL_TEST(test_what_waits_is_guarded_too),
        WORK_SQL_TEST(test_a_checkpoint_that_cannot_be_is_refused),
        WORK_SQL_TEST(test_every_type_of_checkpoint_is_taken),
        WORK_SQL_TEST(test_a_key_that_cannot_be_is_refused),
        WORK_SQL_TEST(test_foreign_keys_act_on_ended_rows),
        WORK_SQL_TEST(test_retention_may_delete),
        WORK_SQL_TEST(test_a_lease_by_foreign_sql_is_counted),
        WORK_SQL_TEST(test_a_status_of_a_task_knows_who_set_it),
        WORK_SQL_TEST(test_a_foreign_heartbeat_hands_the_lease_to_the_wall_clock),
        WORK_SQL_TEST(test_any_session_may_fire_the_triggers),
    };

    return work_sql_suite(argc, argv, tests, COUNT_OF(tests));
}
