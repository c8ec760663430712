/* Work over HTTP: lists in pages, checkpoints, recovery, numbers, and what the node does by itself; once
 * for each store. */
#include "lib/node_fixture.h"

#include <libpq-fe.h>
#include <pawl/work.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/os/clock.h"

enum { PATIENCE_MS = 30000, ITEMS = 25 };

#define LOST "\"code\":\"LEASE_LOST\""
#define EMPTY "{\"items\":[],\"next\":null}\n"

static int64_t now_ms(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) / NS_PER_MS;
}

static void make_task(struct node_fixture *f, const char *id)
{
    char body[128];

    (void)snprintf(body, sizeof(body), "{\"task_id\":\"%s\",\"title\":\"of %s\"}", id, id);
    free(node_ask(f, "POST /v1/work/tasks", body, 201));
}

/* i-00 to i-24, of two types in turn; every fifth has to wait. */
static void submit_all(struct node_fixture *f)
{
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(1 << 20);

    pawl__buf_add_text(&body, "{\"items\":[");
    for (int i = 0; i < ITEMS; i++) {
        pawl__buf_add_format(&body,
                             "%s{\"work_item_id\":\"i-%02d\",\"task_id\":\"t\",\"work_type\":\"%s\""
                             ",\"delay\":\"%s\"}",
                             i == 0 ? "" : ",",
                             (i * 7) % ITEMS, /* not in the order of their ids */
                             i % 2 == 0 ? "even" : "odd",
                             i % 5 == 0 ? "1h" : "0");
    }
    pawl__buf_add_text(&body, "]}");
    free(node_ask(f, "POST /v1/work/items", body.data, 201));
}

/* The ids of all pages of a list, and how many pages there are. */
static size_t walk_pages(struct node_fixture *f,
                         const char *list,
                         const char *key,
                         struct pawl__buf *ret_ids)
{
    char target[256];
    char from[64] = "";
    size_t pages = 0;

    do {
        (void)snprintf(
            target, sizeof(target), "GET %s%s%s", list, from[0] == '\0' ? "" : "&from=", from);
        char *text = node_ask(f, target, NULL, 200);
        char quoted[64];

        (void)snprintf(quoted, sizeof(quoted), "{\"%s\":\"", key);
        for (const char *at = text; (at = strstr(at, quoted)) != NULL;) {
            at += strlen(quoted);
            pawl__buf_add_format(ret_ids, "%.*s ", (int)strcspn(at, "\""), at);
        }
        const char *next = strstr(text, "\"next\":");
        assert_non_null(next);
        from[0] = '\0';
        (void)sscanf(next, "\"next\":\"%60[^\"]", from); // NOLINT(cert-err34-c): a text
        free(text);
        pages++;
    } while (from[0] != '\0' && pages < 100);
    pawl__buf_add_char(ret_ids, '\0');
    return pages;
}

static void expect_pages(
    struct node_fixture *f, const char *list, const char *key, size_t pages, const char *ids)
{
    AUTO(pawl__buf_done) struct pawl__buf found = BUF_INIT(1 << 20);

    assert_int_equal(walk_pages(f, list, key, &found), pages);
    assert_string_equal(found.data, ids);
}

/* --- lists --- */

#define ALL                                                                                      \
    "i-00 i-01 i-02 i-03 i-04 i-05 i-06 i-07 i-08 i-09 i-10 i-11 i-12 i-13 i-14 i-15 i-16 i-17 " \
    "i-18 i-19 i-20 i-21 i-22 i-23 i-24 "

static void test_items_come_in_pages(void **state)
{
    struct node_fixture *f = *state;

    make_task(f, "t");
    submit_all(f);
    expect_pages(f, "/v1/work/items?limit=10", "work_item_id", 3, ALL);
    expect_pages(f, "/v1/work/items?limit=25", "work_item_id", 1, ALL);
    expect_pages(f, "/v1/work/items?limit=24&task=t", "work_item_id", 2, ALL);
    expect_pages(
        f, "/v1/work/items?limit=2&status=waiting", "work_item_id", 3, "i-00 i-05 i-10 i-15 i-20 ");
    /* Claims go in the order of submission, lists in that of the ids. */
    free(node_ask(f, "POST /v1/work/claims", "{\"holder\":\"ada\",\"count\":2}", 200));
    expect_pages(f, "/v1/work/items?limit=1&status=in_progress", "work_item_id", 2, "i-07 i-14 ");
    expect_pages(f,
                 "/v1/work/items?limit=7&status=pending&type=odd&task=t",
                 "work_item_id",
                 2,
                 "i-02 i-08 i-11 i-13 i-16 i-19 i-21 i-22 i-24 ");
    node_expect(f, "GET /v1/work/items?status=completed", NULL, 200, EMPTY);
    node_expect(f, "GET /v1/work/items?from=i-24&limit=1", NULL, 200, "\"next\":null}");
    node_expect(f, "GET /v1/work/items?from=zzz", NULL, 200, EMPTY);
    node_expect(f, "GET /v1/work/items?task=none", NULL, 404, "'none'");
}

static void test_tasks_come_in_pages(void **state)
{
    struct node_fixture *f = *state;

    make_task(f, "c");
    make_task(f, "a");
    make_task(f, "t");
    make_task(f, "b");
    submit_all(f);
    expect_pages(f, "/v1/work/tasks?limit=3", "task_id", 2, "a b c t ");
    free(node_ask(f, "POST /v1/work/tasks/b/cancel", "{}", 200));
    expect_pages(f, "/v1/work/tasks?limit=1&status=cancelled", "task_id", 1, "b ");
    expect_pages(f, "/v1/work/tasks?limit=1&status=pending", "task_id", 3, "a c t ");
    node_expect(f, "GET /v1/work/tasks?from=t", NULL, 200, "\"waiting\":5,\"pending\":20,");
}

static void test_a_store_that_is_not_there_is_empty(void **state)
{
    struct node_fixture *f = *state;

    node_expect(f, "GET /v1/work/items", NULL, 200, EMPTY);
    node_expect(f, "GET /v1/work/tasks", NULL, 200, EMPTY);
    node_expect(f, "GET /v1/work/tasks/t/checkpoints", NULL, 404, "NOT_FOUND");
    node_expect(f, "GET /v1/work/tasks/t/checkpoints/latest", NULL, 404, "NOT_FOUND");
    node_expect(f, "GET /v1/work/tasks/t/recovery", NULL, 404, "NOT_FOUND");
    char *text = node_ask(f, "GET /v1/work/stats", NULL, 200);
    assert_non_null(strstr(text, "{\"waiting\":0,\"pending\":0,\"in_progress\":0,"));
    assert_non_null(strstr(text, "\"types\":[],\"checkpoints_of_tasks\":[]}"));
    if (node_is("sqlite")) {
        assert_int_equal(access(f->work, F_OK), -1);
    }
    make_task(f, "t"); /* which it says once there is one, too */
    node_expect(f, "GET /v1/work/stats", NULL, 200, text);
    free(text);
}

static void test_wrong_queries_are_400_and_named(void **state)
{
    struct node_fixture *f = *state;
    static const struct {
        const char *what;
        const char *part;
    } wrong[] = {
        { "items?limit=0", "limit" },
        { "items?limit=1001", "limit" },
        { "items?limit=ten", "limit" },
        { "items?status=done",
          "status: is none of pending, in_progress, completed, failed, expired, waiting" },
        { "items?stat=pending", "stat" },
        { "items?type=%01", "INVALID" },
        { "items?type=", "type: is empty" },
        { "items?task=", "task: is empty" },
        { "items?status=", "status: is none of pending" },
        { "items?from=%01", "INVALID" },
        { "tasks?status=done", "status: is none of pending, running" },
        { "tasks?from=%01", "INVALID" },
        { "tasks/t/checkpoints?type=x", "type: is none of iteration_start" },
        { "tasks/t/checkpoints?type=x", "manual_checkpoint, error_boundary\"" },
        { "tasks/t/checkpoints?type=", "type: is none of" },
        { "tasks/t/checkpoints?from=x", "from" },
        { "tasks/t/checkpoints/latest?type=x", "type: is none of" },
        { "tasks/t/recovery?type=x", "type" },
        { "stats?limit=1", "limit" },
    };
    char target[512];

    make_task(f, "t");
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        (void)snprintf(target, sizeof(target), "GET /v1/work/%s", wrong[i].what);
        node_expect(f, target, NULL, 400, wrong[i].part);
    }
    (void)snprintf(target, sizeof(target), "GET /v1/work/items?type=%0201d", 0);
    node_expect(f, target, NULL, 400, "\"type: has 201 bytes, the limit is 200");
    (void)snprintf(target, sizeof(target), "GET /v1/work/items?from=%0201d", 0);
    node_expect(f, target, NULL, 400, "from: ");
}

/* --- checkpoints --- */

#define CHECKPOINTS "/v1/work/tasks/t/checkpoints"

static void test_checkpoints_are_added_and_shown(void **state)
{
    struct node_fixture *f = *state;

    make_task(f, "t");
    node_expect(f, "GET " CHECKPOINTS, NULL, 200, EMPTY);
    node_expect(f, "GET " CHECKPOINTS "/latest", NULL, 404, "NOT_FOUND");
    node_expect(f,
                "POST " CHECKPOINTS,
                "{\"checkpoint_id\":\"c-1\",\"checkpoint_type\":\"iteration_end\","
                "\"snapshot_data\":{\"page\":1},\"metadata\":{\"by\":\"ada\"}}",
                201,
                "{\"checkpoint_id\":\"c-1\",\"sequence_number\":1}");
    node_expect(f,
                "POST " CHECKPOINTS,
                "{\"checkpoint_id\":\"c-1\",\"checkpoint_type\":\"iteration_end\","
                "\"snapshot_data\":{\"page\":1},\"metadata\":{\"by\":\"ada\"}}",
                200,
                "{\"checkpoint_id\":\"c-1\",\"sequence_number\":1}");
    node_expect(f,
                "POST " CHECKPOINTS,
                "{\"checkpoint_id\":\"c-1\",\"checkpoint_type\":\"iteration_end\","
                "\"snapshot_data\":{\"page\":2},\"metadata\":{\"by\":\"ada\"}}",
                409,
                "CONFLICT");
    free(node_ask(
        f, "POST " CHECKPOINTS, "{\"checkpoint_id\":\"c-2\",\"snapshot_data\":null}", 201));
    free(node_ask(f, "POST " CHECKPOINTS, "{\"checkpoint_id\":\"c-3\",\"snapshot_data\":3}", 201));
    expect_pages(f, CHECKPOINTS "?limit=2", "checkpoint_id", 2, "c-1 c-2 c-3 ");
    expect_pages(f, CHECKPOINTS "?limit=2&type=manual_checkpoint", "checkpoint_id", 1, "c-2 c-3 ");
    node_expect(f, "GET " CHECKPOINTS "/latest", NULL, 200, "\"snapshot_data\":3");
    node_expect(
        f, "GET " CHECKPOINTS "/latest?type=iteration_end", NULL, 200, "\"sequence_number\":1,");
    node_expect(f, "GET /v1/work/tasks/none/checkpoints", NULL, 404, "no task 'none'");
    node_expect(f, "GET /v1/work/tasks/none/checkpoints/latest", NULL, 404, "no task 'none'");
    node_expect(f, "POST /v1/work/tasks/none/checkpoints", "{\"snapshot_data\":1}", 404, "'none'");
}

static void test_a_checkpoint_shows_the_lease_of_its_item(void **state)
{
    struct node_fixture *f = *state;

    make_task(f, "t");
    make_task(f, "u");
    free(node_ask(f,
                  "POST /v1/work/items",
                  "{\"work_item_id\":\"a\",\"task_id\":\"t\",\"work_type\":\"mail\"}",
                  201));
    free(node_ask(f, "POST /v1/work/claims", "{\"holder\":\"ada\"}", 200));
    node_expect(f,
                "POST " CHECKPOINTS,
                "{\"snapshot_data\":1,\"work_item_id\":\"a\",\"token\":1}",
                201,
                "\"sequence_number\":1}");
    node_expect(f,
                "POST " CHECKPOINTS,
                "{\"snapshot_data\":1,\"work_item_id\":\"a\",\"token\":2}",
                409,
                LOST);
    struct http_reply reply = http_ask(f->address,
                                       "POST /v1/work/tasks/u/checkpoints",
                                       NULL,
                                       "{\"snapshot_data\":1,\"work_item_id\":\"a\",\"token\":1}");
    assert_in_range(reply.code, 400, 409); /* it is an item of another task */
    http_reply_done(&reply);
    node_expect(f, "GET /v1/work/tasks/u/checkpoints", NULL, 200, EMPTY);
    node_expect(f, "GET " CHECKPOINTS, NULL, 200, "\"work_item_id\":\"a\"");
}

static void test_wrong_checkpoints_are_400_and_named(void **state)
{
    struct node_fixture *f = *state;
    static const struct {
        const char *body;
        const char *part;
    } wrong[] = {
        { "{}", "snapshot_data: missing" },
        { "{\"snapshot_data\":1,\"checkpoint_type\":\"x\"}", "checkpoint_type: is none of" },
        { "{\"snapshot_data\":1,\"token\":1}", "go together" },
        { "{\"snapshot_data\":1,\"work_item_id\":\"a\"}", "go together" },
        { "{\"snapshot_data\":1,\"work_item_id\":\"a\",\"token\":0}", "token: 0" },
        { "{\"snapshot_data\":1,\"task_id\":\"t\"}", "task_id" },
        { "{\"snapshot_data\":1,\"evidence\":[{\"kind\":\"command_exit\",\"subject\":\"true\","
          "\"expected\":\"0\"}]}",
          "evidence: not taken over HTTP" },
    };

    make_task(f, "t");
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        node_expect(f, "POST " CHECKPOINTS, wrong[i].body, 400, wrong[i].part);
    }
    node_expect(f, "GET " CHECKPOINTS, NULL, 200, EMPTY);
}

static void test_recovery_and_numbers_are_shown(void **state)
{
    struct node_fixture *f = *state;

    make_task(f, "t");
    submit_all(f);
    free(node_ask(f, "POST " CHECKPOINTS, "{\"checkpoint_id\":\"c\",\"snapshot_data\":7}", 201));
    node_expect(f,
                "GET /v1/work/tasks/t/recovery",
                NULL,
                200,
                "\"resume\":{\"checkpoint_id\":\"c\",\"task_id\":\"t\"");
    node_expect(f, "GET /v1/work/tasks/t/recovery", NULL, 200, "\"work_item_id\":\"i-24\"");
    node_expect(f, "GET /v1/work/tasks/none/recovery", NULL, 404, "'none'");
    node_expect(f, "GET /v1/work/stats", NULL, 200, "{\"waiting\":5,\"pending\":20,");
    node_expect(
        f, "GET /v1/work/stats", NULL, 200, "{\"work_type\":\"even\",\"status\":\"pending\"");
    node_expect(f, "GET /v1/work/stats", NULL, 200, "{\"task_id\":\"t\",\"checkpoint_count\":1,");
}

/* --- by itself --- */

static void test_the_node_takes_back_leases_that_ran_out(void **state)
{
    struct node_fixture *f = *state;
    int64_t deadline_ms = now_ms() + PATIENCE_MS;
    bool back = false;

    node_stop(f);
    f->options.work_sweep_ms = 20;
    node_start(f);
    make_task(f, "t");
    free(node_ask(f,
                  "POST /v1/work/items",
                  "{\"work_item_id\":\"a\",\"task_id\":\"t\",\"work_type\":\"mail\"}",
                  201));
    free(node_ask(f, "POST /v1/work/claims", "{\"holder\":\"ada\",\"lease\":\"1ms\"}", 200));
    while (!back && now_ms() < deadline_ms) {
        char *text = node_ask(f, "GET /v1/work/items/a", NULL, 200);
        back = strstr(text, "\"to\":\"expired\"") != NULL;
        free(text);
    }
    assert_true(back);
    node_expect(f, "POST /v1/work/items/a/complete", "{\"token\":1}", 409, LOST);
}

/* Two, of which the first cannot fire. Their first slot is one of the past: that it was missed is seen
 * at once. */
static void put_schedules(struct node_fixture *f)
{
    const pawl_task task = { .size = sizeof(pawl_task),
                             .task_id = pawl_view_of("q"),
                             .title = pawl_view_of("q") };
    pawl_schedule schedule = { .size = sizeof(pawl_schedule),
                               .schedule_id = pawl_view_of("a"),
                               .cron = pawl_view_of("* * * * *"),
                               .work_type = pawl_view_of("tick"),
                               .task_id = task.task_id,
                               .max_retries = -1 };
    pawl_work *work = NULL;
    sqlite3 *db = NULL;

    assert_ok(pawl_work_open(f->work, NULL, &work, &f->error), &f->error);
    assert_ok(pawl_task_create(work, &task, NULL, 0, &f->error), &f->error);
    assert_ok(pawl_schedule_put(work, &schedule, &f->error), &f->error);
    assert_ok(pawl_task_cancel(work, task.task_id, NULL, &f->error), &f->error);
    schedule.schedule_id = pawl_view_of("s");
    schedule.task_id = (pawl_view){ NULL, 0 };
    assert_ok(pawl_schedule_put(work, &schedule, &f->error), &f->error);
    pawl_work_close(work, 0, NULL);
    assert_int_equal(sqlite3_open(f->work, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, PATIENCE_MS); /* the node has it open, too */
    assert_int_equal(
        sqlite3_exec(
            db, "UPDATE schedules SET next_slot = '2026-01-01 00:00:00'", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
}

static void test_the_node_fires_schedules(void **state)
{
    struct node_fixture *f = *state;

    if (!node_is("sqlite")) { /* the same code on every store */
        return;
    }
    put_schedules(f);
    node_stop(f);
    f->options.work_sweep_ms = 1000;
    node_start(f);
    node_expect(f,
                "POST /v1/work/claims",
                "{\"holder\":\"ada\",\"types\":[\"tick\"],\"wait\":\"30s\"}",
                200,
                "{\"items\":[{\"work_item_id\":\"s@20");
    node_expect(f, "GET /readyz", NULL, 200, "true"); /* the store is fine */
}

/* --- a store that fails --- */

static void test_a_store_that_fails_is_5xx_and_tried_again(void **state)
{
    struct node_fixture *f = *state;

    if (!node_is("sqlite")) {
        return;
    }
    node_break_store(f);
    static const char *const asks[] = { "GET /v1/work/items",
                                        "GET /v1/work/items/a",
                                        "GET /v1/work/stats" };
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        char *text = node_ask(f, asks[i], NULL, 500);
        assert_null(strstr(text, "work.sqlite"));
        free(text);
    }
    node_expect(f, "POST /v1/work/tasks", "{}", 500, "\"code\":\"CORRUPT\"");
    node_expect(f, "POST /v1/work/claims", "{\"holder\":\"a\"}", 500, "CORRUPT");
    node_expect(f, "POST /v1/work/items/a/complete", "{\"token\":1}", 500, "CORRUPT");
    node_expect(f, "GET /v1/apps", NULL, 200, "[]");
    char *text = node_ask(f, "GET /readyz", NULL, 503);
    assert_string_equal(text,
                        "{\"degraded\":[],\"waiting\":[{\"store\":\"work\",\"why\":\"CORRUPT\"}],"
                        "\"ready\":false}\n");
    free(text);
    node_expect(f, "GET /healthz", NULL, 200, "\"status\":\"waiting\"");
    node_mend_store(f);
    make_task(f, "t");
    node_expect(f, "GET /readyz", NULL, 200, "{\"degraded\":[],\"waiting\":[],\"ready\":true}");
}

/* Nobody asks for work meanwhile: the node finds it out by itself. */
static void wait_for_ready(struct node_fixture *f, int code)
{
    int64_t deadline_ms = now_ms() + PATIENCE_MS;
    int found = 0;

    while (found != code && now_ms() < deadline_ms) {
        struct http_reply reply = http_ask(f->address, "GET /readyz", NULL, NULL);

        found = reply.code;
        http_reply_done(&reply);
    }
    assert_int_equal(found, code);
}

static void test_the_node_is_ready_when_its_store_is(void **state)
{
    struct node_fixture *f = *state;

    if (!node_is("postgres") && !node_is("sqlite")) {
        return;
    }
    node_stop(f);
    f->options.work_sweep_ms = 10;
    node_start(f);
    node_break_store(f);
    wait_for_ready(f, 503);
    node_mend_store(f);
    wait_for_ready(f, 200);
    make_task(f, "t");
    if (node_is("postgres")) { /* also one that is open */
        node_break_store(f);
        wait_for_ready(f, 503);
        node_mend_store(f);
        wait_for_ready(f, 200);
        node_expect(f, "GET /v1/work/tasks/t", NULL, 200, "pending");
    }
}

/* The store is locked by somebody else: whoever asks it waits, and nobody else does. */
static void test_a_store_that_hangs_holds_up_no_application(void **state)
{
    enum { WAITING = 20 }; /* more than all threads together */
    struct node_fixture *f = *state;
    sqlite3 *db = NULL;
    int fds[WAITING];

    if (!node_is("sqlite")) {
        return;
    }
    node_stop(f);
    f->options.work_options.busy_ms_max = 2 * PATIENCE_MS;
    node_start(f);
    make_task(f, "t");
    assert_int_equal(sqlite3_open(f->work, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; i < WAITING; i++) {
        fds[i] = http_connect(f->address);
        http_ask_on(
            fds[i], "POST /v1/work/items", NULL, "{\"task_id\":\"t\",\"work_type\":\"mail\"}");
    }
    node_expect(f, "GET /v1/apps/none/seq", NULL, 404, "'none'"); /* of the routes that block */
    node_expect(f, "PUT /v1/apps/none", "{", 400, "INVALID");
    node_expect(f, "GET /metrics", NULL, 200, "pawl_work_up 1"); /* reading waits for nobody */
    for (size_t i = 0; i < WAITING; i++) {
        assert_true(http_is_silent(fds[i], 0));
    }
    sqlite3_close(db);
    for (size_t i = 0; i < WAITING; i++) {
        struct http_reply reply = http_receive(fds[i], false);
        assert_int_equal(reply.code, 201);
        http_reply_done(&reply);
        close(fds[i]);
    }
}

static void must_run(PGconn *db, const char *sql)
{
    PGresult *result = PQexec(db, sql);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(db));
    }
}

static bool somebody_waits(PGconn *db)
{
    PGresult *result = PQexec(db, "SELECT 1 FROM pg_locks WHERE NOT granted");
    bool any = PQntuples(result) > 0;

    PQclear(result);
    return any;
}

/* A table is locked by somebody else, so that not even counting comes back. */
static void test_numbers_that_hang_hold_up_one_request(void **state)
{
    struct node_fixture *f = *state;
    int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + PATIENCE_MS * NS_PER_MS;

    if (!node_is("postgres")) {
        return;
    }
    make_task(f, "t");
    PGconn *other = PQconnectdb(f->work);
    must_run(other, "BEGIN; LOCK TABLE pawl.work_items IN ACCESS EXCLUSIVE MODE");
    int fd = http_connect(f->address);
    http_ask_on(fd, "GET /metrics", NULL, NULL);
    while (!somebody_waits(other)) {
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
    }
    node_expect(f, "GET /metrics", NULL, 200, "pawl_work_up 0");
    assert_true(http_is_silent(fd, 0));
    PQfinish(other);
    struct http_reply reply = http_receive(fd, false);
    assert_int_equal(reply.code, 200);
    http_reply_done(&reply);
    close(fd);
    node_expect(f, "GET /metrics", NULL, 200, "pawl_work_up 1");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        node_test(test_items_come_in_pages),
        node_test(test_tasks_come_in_pages),
        node_test(test_a_store_that_is_not_there_is_empty),
        node_test(test_wrong_queries_are_400_and_named),
        node_test(test_checkpoints_are_added_and_shown),
        node_test(test_a_checkpoint_shows_the_lease_of_its_item),
        node_test(test_wrong_checkpoints_are_400_and_named),
        node_test(test_recovery_and_numbers_are_shown),
        node_test(test_the_node_takes_back_leases_that_ran_out),
        node_test(test_the_node_fires_schedules),
        node_test(test_a_store_that_fails_is_5xx_and_tried_again),
        node_test(test_the_node_is_ready_when_its_store_is),
        node_test(test_a_store_that_hangs_holds_up_no_application),
        node_test(test_numbers_that_hang_hold_up_one_request),
    };

    return node_suite(argc, argv, tests, COUNT_OF(tests));
}
