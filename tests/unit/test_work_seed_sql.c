/* SQL that users of the recovery schema 0.30.0 have written down runs on work.sqlite unchanged:
 * every statement of tests/data/work_seed_sql.txt in its order, on a file that our migration made,
 * through a connection that is not ours. Three are refused, on purpose: OFFSET without LIMIT (by
 * SQLite itself), the failure of an item that is completed, the failure of a key that is completed. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "base/core/buf.h"
#include "lib/file.h"
#include "lib/tempdir.h"
#include "work/core/schema.h"
#include "work/sqlite/statements.h"

struct scene {
    char dir[TEMPDIR_SIZE];
    sqlite3 *db;
    struct pawl__buf answer; /* of the last statement: columns '|', rows '\n' */
};

static char *statements; /* the whole file */
static const char *statements_path;

static int read_statements(void **state)
{
    (void)state;
    size_t size = 0;
    char *bytes = file_read(statements_path, &size);

    statements = realloc(bytes, size + 1);
    if (statements == NULL) {
        free(bytes);
        return -1;
    }
    statements[size] = '\0';
    return 0;
}

static int free_statements(void **state)
{
    (void)state;
    free(statements);
    return 0;
}

/* The text of one statement, for free(). */
static char *statement(const char *name)
{
    char head[80];
    snprintf(head, sizeof(head), "\n=== %s\n", name);
    const char *begin = strstr(statements, head);

    if (begin == NULL) {
        fail_msg("no statement '%s' in the file", name);
    }
    begin += strlen(head);
    const char *end = strstr(begin, "\n=== ");
    return end == NULL ? strdup(begin) : strndup(begin, (size_t)(end - begin));
}

static void take_row(struct scene *scene, sqlite3_stmt *stmt)
{
    if (scene->answer.len > 0) {
        pawl__buf_add_text(&scene->answer, "\n");
    }
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *text = (const char *)sqlite3_column_text(stmt, i);
        pawl__buf_add_format(&scene->answer, "%s%s", i == 0 ? "" : "|", text == NULL ? "" : text);
    }
}

/* Returns SQLite's own code; the rows are in scene->answer. */
static int run(struct scene *scene, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(scene->db, sql, -1, &stmt, NULL);

    pawl__buf_clear(&scene->answer);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            take_row(scene, stmt);
        }
    }
    sqlite3_finalize(stmt);
    return rc;
}

static void must(struct scene *scene, const char *sql)
{
    if (run(scene, sql) != SQLITE_DONE) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(scene->db));
    }
}

static void assert_answer(struct scene *scene, const char *what, const char *expected)
{
    const char *got = scene->answer.len == 0 ? "" : scene->answer.data;

    if (strcmp(got, expected) != 0) {
        fail_msg("%s: '%s' instead of '%s'", what, got, expected);
    }
}

struct step {
    const char *name;
    const char *before;   /* SQL that sets the scene; NULL: none */
    const char *refusal;  /* NULL: it succeeds */
    const char *rows;     /* what it returns; NULL: not looked at */
    int changes;          /* rows that it changes */
    const char *look;     /* SQL whose answer shows what it did; NULL: none */
    const char *expected; /* that answer */
};

static void take_step(struct scene *scene, const struct step *step)
{
    char *sql = statement(step->name);

    if (step->before != NULL
        && sqlite3_exec(scene->db, step->before, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("before %s: %s", step->name, sqlite3_errmsg(scene->db));
    }
    int before = sqlite3_total_changes(scene->db);
    int rc = run(scene, sql);
    free(sql);
    if (step->refusal != NULL) {
        assert_int_not_equal(rc, SQLITE_DONE);
        if (strstr(sqlite3_errmsg(scene->db), step->refusal) == NULL) {
            fail_msg("%s: '%s'", step->name, sqlite3_errmsg(scene->db));
        }
    } else if (rc != SQLITE_DONE) {
        fail_msg("%s: %s", step->name, sqlite3_errmsg(scene->db));
    } else if (sqlite3_total_changes(scene->db) != before) {
        assert_int_equal(sqlite3_changes(scene->db), step->changes);
    } else {
        assert_int_equal(0, step->changes);
    }
    if (step->rows != NULL) {
        assert_answer(scene, step->name, step->rows);
    }
    if (step->look != NULL) {
        must(scene, step->look);
        assert_answer(scene, step->name, step->expected);
    }
}

static void take_steps(struct scene *scene, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        take_step(scene, &steps[i]);
    }
}

#define ITEM_LOOK                                                                          \
    "SELECT status, token, attempts, retry_count, lease_holder, completed_at IS NOT NULL," \
    " lease_boot_id, updated_at <> '2020-01-01 00:00:00' FROM work_items"                  \
    " WHERE work_item_id = 'work-01KG4ABC'"
#define ITEM_HISTORY                                                                         \
    "SELECT group_concat(ifnull(from_status, '') || '>' || to_status || ' ' || token, ', ')" \
    " FROM (SELECT * FROM work_history WHERE work_item_id = 'work-01KG4ABC' ORDER BY seq)"

static const struct step item_steps[] = {
    { "items.create",
      NULL,
      NULL,
      "",
      1,
      "SELECT status, priority, retry_count, max_retries, token, attempts, entries,"
      " created_at = updated_at FROM work_items",
      "pending|10|0|3|0|0|0|1" },
    { "items.claim",
      "UPDATE work_items SET updated_at = '2020-01-01 00:00:00'",
      NULL,
      "work-01KG4ABC|{\"tool\": \"bash\", \"command\": \"ls -la\", \"args\": []}",
      1,
      ITEM_LOOK,
      "in_progress|1|1|0|worker-abc-123|0||1" },
    { "items.heartbeat",
      "UPDATE work_items SET updated_at = '2020-01-01 00:00:00'",
      NULL,
      "",
      1,
      "SELECT round((julianday(lease_expires_at) - julianday(heartbeat_at)) * 1440, 3), token,"
      " updated_at <> '2020-01-01 00:00:00' FROM work_items",
      "5.0|1|1" },
    { "items.complete", NULL, NULL, "", 1, ITEM_LOOK, "completed|1|1|0||1||1" },
    { "items.fail",
      NULL,
      "completed or failed does not change",
      "",
      0,
      ITEM_LOOK,
      "completed|1|1|0||1||1" },
    /* The same on a fresh row. */
    { "items.create",
      "DELETE FROM work_items",
      NULL,
      "",
      1,
      ITEM_HISTORY,
      ">pending 0, pending>in_progress 1, in_progress>completed 1, >pending 0" },
    { "items.claim", NULL, NULL, NULL, 1, NULL, NULL },
    { "items.fail",
      NULL,
      NULL,
      "",
      1,
      "SELECT status, error_message, completed_at IS NOT NULL FROM work_items",
      "failed|Command execution timeout|1" },
    /* One that may be retried, one that may not, one whose lease holds. */
    { "items.watchdog",
      "INSERT INTO work_items (work_item_id, task_id, work_type, retry_count) VALUES"
      " ('w-0', 'task-01KG4XYZ', 't', 0), ('w-3', 'task-01KG4XYZ', 't', 3),"
      " ('w-held', 'task-01KG4XYZ', 't', 0);"
      "UPDATE work_items SET status = 'in_progress', lease_holder = 'gone',"
      " heartbeat_at = CURRENT_TIMESTAMP,"
      " lease_expires_at = datetime('now', CASE work_item_id WHEN 'w-held' THEN '+5 minutes'"
      " ELSE '-1 second' END) WHERE work_item_id LIKE 'w-%'",
      NULL,
      "",
      2,
      "SELECT work_item_id, status, retry_count, lease_holder, error_message FROM work_items"
      " WHERE work_item_id LIKE 'w-%' ORDER BY 1",
      "w-0|pending|1||Lease expired - no heartbeat received\n"
      "w-3|failed|4||Lease expired - no heartbeat received\n"
      "w-held|in_progress|0|gone|" },
};

static const struct step checkpoint_steps[] = {
    { "checkpoints.iteration_start",
      NULL,
      NULL,
      "",
      1,
      "SELECT last FROM checkpoint_counters",
      "1" },
    { "checkpoints.tool_executed",
      NULL,
      NULL,
      "",
      1,
      "SELECT last, item_id, verified FROM checkpoint_counters JOIN checkpoints"
      " ON sequence_number = last",
      "2|work-01KG4ABC|1" },
    { "checkpoints.latest",
      NULL,
      NULL,
      "ckpt-01KG4DEF|tool_executed|{\"tool\":\"bash\",\"command\":\"ls -la\",\"result\":"
      "{\"stdout\":\"...\",\"stderr\":\"\",\"exit_code\":0},\"duration_ms\":1234}",
      0,
      NULL,
      NULL },
    { "checkpoints.last_iteration_start",
      NULL,
      NULL,
      NULL,
      0,
      "SELECT json_extract(snapshot_data, '$.state.step') FROM checkpoints LIMIT 1",
      "planning" },
    { "checkpoints.all", NULL, NULL, NULL, 0, NULL, NULL },
    { "checkpoints.count", NULL, NULL, "iteration_start|1\ntool_executed|1", 0, NULL, NULL },
};

static const struct step key_steps[] = {
    { "keys.check", NULL, NULL, "", 0, NULL, NULL },
    { "keys.create",
      NULL,
      NULL,
      "",
      1,
      "SELECT status, owner_token, completed_at IS NULL, response_data IS NULL"
      " FROM idempotency_keys",
      "pending|0|1|1" },
    { "keys.complete",
      NULL,
      NULL,
      "",
      1,
      "SELECT status, response_data FROM idempotency_keys",
      "completed|{\"result\": \"success\", \"data\": {...}}" },
    { "keys.fail",
      NULL,
      "completed or failed does not change",
      "",
      0,
      "SELECT status FROM idempotency_keys",
      "completed" },
    /* The same on a fresh row. */
    { "keys.create", "DELETE FROM idempotency_keys", NULL, "", 1, NULL, NULL },
    { "keys.fail",
      NULL,
      NULL,
      "",
      1,
      "SELECT status, completed_at IS NOT NULL FROM idempotency_keys",
      "failed|1" },
    { "keys.clean_up",
      "INSERT INTO idempotency_keys (idempotency_key, request_hash, expires_at)"
      " VALUES ('old', 'h', datetime('now', '-1 second'))",
      NULL,
      "",
      1,
      "SELECT idempotency_key FROM idempotency_keys",
      "idem-01KG4ABC" },
    { "keys.verify", NULL, NULL, "MATCH", 0, NULL, NULL },
};

static const struct step timed_steps[] = {
    { "retention.checkpoints",
      NULL,
      "near \"OFFSET\": syntax error",
      "",
      0,
      "SELECT count(*) FROM checkpoints",
      "2" },
    { "retention.items",
      "UPDATE work_items SET updated_at = datetime('now', '-31 days') WHERE status <> 'pending'",
      NULL,
      "",
      2,
      "SELECT min(work_item_id), max(work_item_id), count(*),"
      " (SELECT count(*) FROM checkpoints WHERE work_item_id IS NULL AND item_id = 'work-01KG4ABC')"
      " FROM work_items",
      "w-0|w-held|2|1" },
    { "retention.expired_keys",
      "INSERT INTO idempotency_keys (idempotency_key, request_hash, expires_at)"
      " VALUES ('old', 'h', datetime('now', '-1 second'))",
      NULL,
      "",
      1,
      NULL,
      NULL },
    { "retention.completed_keys",
      "INSERT INTO idempotency_keys (idempotency_key, request_hash) VALUES ('8 d', 'h'), ('6 d', "
      "'h');"
      "UPDATE idempotency_keys SET status = 'completed', completed_at ="
      " datetime('now', '-' || idempotency_key || 'ays') WHERE idempotency_key LIKE '_ d'",
      NULL,
      "",
      1,
      "SELECT min(idempotency_key), max(idempotency_key), count(*) FROM idempotency_keys",
      "6 d|idem-01KG4ABC|2" },
    { "monitor.items",
      NULL,
      NULL,
      NULL,
      0,
      "SELECT work_type, status, count(*) FROM work_items GROUP BY 1, 2",
      "t|in_progress|1\nt|pending|1" },
    { "monitor.leases",
      "UPDATE work_items SET heartbeat_at = datetime('now', '-3 minutes')"
      " WHERE status = 'in_progress'",
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "monitor.checkpoints", NULL, NULL, NULL, 0, NULL, NULL },
    { "schema.version", NULL, NULL, "0.30.0", 0, NULL, NULL },
};

#define WORKFLOW_KEY "idempotency_key = 'tool-pdf_parser-document.pdf'"
static const struct step workflow_steps[] = {
    { "workflow.1",
      NULL,
      NULL,
      "",
      1,
      "SELECT status, status_by FROM tasks WHERE task_id = 'task-001'",
      "running|user" },
    { "workflow.2", NULL, NULL, "", 1, NULL, NULL },
    { "workflow.3",
      NULL,
      NULL,
      "",
      1,
      "SELECT status, token > 0, attempts FROM work_items WHERE work_item_id = 'work-001'",
      "in_progress|1|1" },
    { "workflow.4", NULL, NULL, "", 1, NULL, NULL },
    { "workflow.5", NULL, NULL, "", 0, NULL, NULL },
    { "workflow.6",
      NULL,
      NULL,
      "",
      1,
      "SELECT status, item_id FROM idempotency_keys WHERE " WORKFLOW_KEY,
      "pending|work-001" },
    { "workflow.7", NULL, NULL, "", 1, NULL, NULL },
    { "workflow.8",
      NULL,
      NULL,
      "",
      1,
      "SELECT last FROM checkpoint_counters WHERE task_id = 'task-001'",
      "2" },
    { "workflow.9",
      NULL,
      NULL,
      "",
      1,
      "SELECT status FROM idempotency_keys WHERE " WORKFLOW_KEY,
      "completed" },
    { "workflow.10",
      NULL,
      NULL,
      "",
      1,
      "SELECT status, output_data FROM work_items WHERE work_item_id = 'work-001'",
      "completed|{\"pages\": 42, \"text_length\": 12345}" },
    { "workflow.11",
      NULL,
      NULL,
      "",
      1,
      "SELECT status FROM tasks WHERE task_id = 'task-001'",
      "succeeded" },
};
static const struct step recovery_steps[] = {
    { "recovery.1", NULL, NULL, "", 0, NULL, NULL },
    { "recovery.2", NULL, NULL, NULL, 0, NULL, NULL },
    { "recovery.3", NULL, NULL, "{\"pages\": 42, \"text_length\": 12345}", 0, NULL, NULL },
};

#define TAKE(scene, steps) take_steps(scene, steps, COUNT_OF(steps))

static const struct {
    const struct step *steps;
    size_t count;
} document[] = {
    { item_steps, COUNT_OF(item_steps) },         { checkpoint_steps, COUNT_OF(checkpoint_steps) },
    { key_steps, COUNT_OF(key_steps) },           { timed_steps, COUNT_OF(timed_steps) },
    { workflow_steps, COUNT_OF(workflow_steps) }, { recovery_steps, COUNT_OF(recovery_steps) },
};

static void run_the_document(struct scene *scene)
{
    for (size_t i = 0; i < COUNT_OF(document); i++) {
        take_steps(scene, document[i].steps, document[i].count);
    }
}

/* The tables above hold every name of the file, in the file's order. */
static void test_no_statement_is_left_out(void **state)
{
    (void)state;
    const char *at = strstr(statements, "\n=== ");
    size_t found = 0;

    for (size_t i = 0; i < COUNT_OF(document); i++) {
        for (size_t k = 0; at != NULL && k < document[i].count; k++) {
            const char *name = document[i].steps[k].name;
            if (strncmp(at + 5, name, strlen(name)) == 0 && at[5 + strlen(name)] == '\n') {
                at = strstr(at + 5, "\n=== ");
                found++;
            }
        }
    }
    if (at != NULL) {
        fail_msg("never run, or not in this order: %.30s", at + 5);
    }
    assert_int_equal(found, 40);
}

static void test_every_statement_runs_in_its_order(void **state)
{
    run_the_document(*state);
}

/* A claim makes update_work_items_timestamp meet a row that already has this very moment. */
static void test_recursive_triggers_change_nothing(void **state)
{
    struct scene *scene = *state;

    must(scene, "PRAGMA recursive_triggers = ON");
    run_the_document(scene);
}

static void assert_number_between(const char *text, double low, double high)
{
    char *end = NULL;
    double value = strtod(text, &end);

    assert_true(end != text && *end == '\0');
    assert_true(value >= low && value <= high);
}

/* What the queries return whose answers move with the clock. */
static void test_the_monitoring_answers_are_right(void **state)
{
    struct scene *scene = *state;
    static const struct step monitor[] = {
        { "monitor.items",
          "INSERT INTO work_items (work_item_id, task_id, work_type, created_at) VALUES"
          " ('a', 'task-01KG4XYZ', 't', datetime('now', '-2 hours')),"
          " ('b', 'task-01KG4XYZ', 't', datetime('now', '-4 hours'))",
          NULL,
          NULL,
          0,
          NULL,
          NULL },
        { "monitor.leases",
          "UPDATE work_items SET status = 'in_progress', lease_holder = 'h',"
          " lease_expires_at = datetime('now', '+1 hour'),"
          " heartbeat_at = datetime('now', CASE work_item_id WHEN 'a' THEN '-3 minutes'"
          " ELSE '-1 minute' END)",
          NULL,
          NULL,
          0,
          NULL,
          NULL },
        { "monitor.checkpoints",
          "INSERT INTO checkpoints (checkpoint_id, task_id, checkpoint_type, sequence_number,"
          " snapshot_data) VALUES ('c', 'task-01KG4XYZ', 'llm_response', 7, '{}'),"
          " ('d', 'task-01KG4XYZ', 'llm_response', 9, '{}')",
          NULL,
          NULL,
          0,
          NULL,
          NULL },
    };

    take_step(scene, &monitor[0]);
    assert_true(strncmp(scene->answer.data, "t|pending|2|", 12) == 0);
    assert_number_between(scene->answer.data + 12, 2.9, 4); /* hours, on average */
    take_step(scene, &monitor[1]);
    assert_true(strncmp(scene->answer.data, "2|1|", 4) == 0);
    assert_number_between(scene->answer.data + 4, 1.9, 60); /* minutes, on average */
    take_step(scene, &monitor[2]);
    assert_true(strncmp(scene->answer.data, "task-01KG4XYZ|2|9|", 18) == 0);
}

/* Killed after step 7; the watchdog gives the item back, and recovery finds where to go on. */
static void test_recovery_after_a_crash_finds_the_work(void **state)
{
    struct scene *scene = *state;
    static const struct step after[] = {
        { "items.watchdog",
          "UPDATE work_items SET lease_expires_at = datetime('now', '-1 second')",
          NULL,
          "",
          1,
          "SELECT status, retry_count FROM work_items",
          "pending|1" },
        { "recovery.1", NULL, NULL, NULL, 0, NULL, NULL },
    };
    static const struct step look[] = {
        { "recovery.3", NULL, NULL, "", 0, NULL, NULL },
        { "recovery.2", NULL, NULL, NULL, 0, NULL, NULL },
    };

    take_steps(scene, workflow_steps, 7);
    TAKE(scene, after);
    assert_int_equal(strncmp(scene->answer.data, "work-001|task-001|tool_execution|pending|", 41),
                     0);
    assert_null(strchr(scene->answer.data, '\n')); /* the only one */
    TAKE(scene, look);
    assert_true(strncmp(scene->answer.data, "ckpt-001|task-001|work-001|iteration_start|1|", 45)
                == 0);
}

/* The seed's watchdog goes on where ours would have stopped: no bound on retry_count. */
static void test_the_watchdog_statement_ends_at_four_of_three(void **state)
{
    struct scene *scene = *state;

    TAKE(scene, ((const struct step[]){ { "items.create", NULL, NULL, "", 1, NULL, NULL } }));
    for (int i = 0; i < 4; i++) {
        const struct step round[] = {
            { "items.claim", NULL, NULL, NULL, 1, NULL, NULL },
            { "items.watchdog",
              "UPDATE work_items SET lease_expires_at = datetime('now', '-1 second')",
              NULL,
              "",
              1,
              NULL,
              NULL },
        };
        TAKE(scene, round);
    }
    must(scene, "SELECT status, retry_count, max_retries, token, attempts FROM work_items");
    assert_answer(scene, "watchdog", "failed|4|3|4|4");
}

static void open_scene(struct scene *scene)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__sqlite_options options = pawl__work_sqlite_options();
    struct pawl__sqlite *store = NULL;
    char path[TEMPDIR_SIZE + 16];

    assert_ok(tempdir_make(scene->dir, "pawl-seed", &error), &error);
    snprintf(path, sizeof(path), "%s/work.sqlite", scene->dir);
    options.mode = PAWL__SQLITE_CREATE;
    assert_ok(pawl__sqlite_open(path, &options, &store, &error), &error);
    pawl__sqlite_close(store);
    assert_int_equal(sqlite3_open(path, &scene->db), SQLITE_OK);
    must(scene, "PRAGMA foreign_keys = ON");
    must(scene, "INSERT INTO tasks (task_id, title) VALUES ('task-01KG4XYZ', 'the task')");
}

static int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    if (scene == NULL) {
        return -1;
    }
    scene->answer = (struct pawl__buf)BUF_INIT(1 << 20);
    *state = scene;
    open_scene(scene);
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;

    sqlite3_close(scene->db);
    pawl__buf_done(&scene->answer);
    tempdir_remove(scene->dir);
    free(scene);
    return 0;
}

/* A page of a long list costs what is in it: both tables are walked by their ids, and nothing is
 * sorted. */
static void test_pages_are_read_in_order(void **state)
{
    static const size_t pages[] = { WORK_SQL_PAGE, WORK_SQL_PAGE_TASK };
    struct scene *scene = *state;

    for (size_t i = 0; i < COUNT_OF(pages); i++) {
        AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT(1 << 16);
        sqlite3_stmt *stmt = NULL;

        pawl__buf_add_format(&sql, "EXPLAIN QUERY PLAN %s", pawl__work_sql_statements[pages[i]]);
        assert_int_equal(sqlite3_prepare_v2(scene->db, sql.data, -1, &stmt, NULL), SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            const char *step = (const char *)sqlite3_column_text(stmt, 3);
            if (strstr(step, "TEMP B-TREE") != NULL || strncmp(step, "SCAN", 4) == 0) {
                fail_msg("%s: %s", sql.data, step);
            }
        }
        sqlite3_finalize(stmt);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_statement_is_left_out),
        CASE(test_every_statement_runs_in_its_order),
        CASE(test_recursive_triggers_change_nothing),
        CASE(test_the_monitoring_answers_are_right),
        CASE(test_recovery_after_a_crash_finds_the_work),
        CASE(test_the_watchdog_statement_ends_at_four_of_three),
        CASE(test_pages_are_read_in_order),
    };

    if (count != 2) {
        return 2;
    }
    statements_path = arguments[1];
    return cmocka_run_group_tests(tests, read_statements, free_statements);
}
