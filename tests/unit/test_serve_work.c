/* Work over HTTP: leases and what becomes of them, once for each store. */
#include "lib/node_fixture.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/os/clock.h"

enum { PATIENCE_MS = 30000 };

#define ADA "{\"holder\":\"ada\"}"
#define MAIL(id)                                                             \
    "{\"work_item_id\":\"" id "\",\"task_id\":\"t\",\"work_type\":\"mail\"," \
    "\"input_data\":{\"to\":\"ada\"}}"

static int64_t now_ms(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) / NS_PER_MS;
}

static void make_task(struct node_fixture *f)
{
    free(node_ask(f, "POST /v1/work/tasks", "{\"task_id\":\"t\",\"title\":\"T\"}", 201));
}

static void submit(struct node_fixture *f, const char *item)
{
    free(node_ask(f, "POST /v1/work/items", item, 201));
}

/* The token of the one item that there is. */
static int64_t claim(struct node_fixture *f, const char *body)
{
    char *text = node_ask(f, "POST /v1/work/claims", body, 200);
    int64_t token = node_number(text, "token");

    free(text);
    return token;
}

static void say(struct node_fixture *f,
                const char *what,
                int64_t token,
                const char *more,
                int code,
                const char *part)
{
    char target[128];
    char body[512];

    (void)snprintf(target, sizeof(target), "POST /v1/work/items/%s", what);
    (void)snprintf(body, sizeof(body), "{\"token\":%lld%s}", (long long)token, more);
    node_expect(f, target, body, code, part);
}

#define LOST "\"code\":\"LEASE_LOST\""

/* --- the whole way --- */

static void test_an_item_is_submitted_claimed_and_completed(void **state)
{
    struct node_fixture *f = *state;

    make_task(f);
    node_expect(f,
                "POST /v1/work/items",
                MAIL("a"),
                201,
                "{\"items\":[{\"work_item_id\":\"a\",\"duplicate\":false}]}");
    node_expect(f, "POST /v1/work/items", MAIL("a"), 200, "\"duplicate\":true");
    char *text = node_ask(f, "POST /v1/work/claims", ADA, 200);
    assert_non_null(strstr(text, "{\"items\":[{\"work_item_id\":\"a\",\"task_id\":\"t\""));
    assert_non_null(strstr(text, "\"input_data\":{\"to\":\"ada\"}"));
    assert_non_null(strstr(text, "\"lease_holder\":\"ada\""));
    int64_t token = node_number(text, "token");
    free(text);
    assert_int_equal(token, 1);
    node_expect(f, "POST /v1/work/claims", ADA, 200, "{\"items\":[]}");
    say(f, "a/heartbeat", token, ",\"lease\":\"1h\"", 200, "\"lease_expires_at\":\"20");
    say(f,
        "a/complete",
        token,
        ",\"output_data\":{\"sent\":true}",
        200,
        "{\"work_item_id\":\"a\",\"status\":\"completed\"}");
    node_expect(f, "GET /v1/work/items/a", NULL, 200, "\"output_data\":{\"sent\":true}");
    node_expect(f, "GET /v1/work/items/a", NULL, 200, "\"history\":[{\"at\":\"20");
    node_expect(f, "GET /v1/work/tasks/t", NULL, 200, "\"status\":\"succeeded\"");
}

static void test_failing_waits_or_ends_and_releasing_gives_back(void **state)
{
    struct node_fixture *f = *state;

    make_task(f);
    submit(f, MAIL("a"));
    say(f, "a/release", claim(f, ADA), "", 200, "\"status\":\"pending\"");
    int64_t token = claim(f, ADA);
    assert_int_equal(token, 2);
    say(f, "a/fail", token, ",\"error_message\":\"no net\"", 200, "\"status\":\"waiting\"");
    submit(f, MAIL("b"));
    say(f,
        "b/fail",
        claim(f, ADA),
        ",\"error_message\":\"never\",\"permanent\":true",
        200,
        "\"status\":\"failed\"");
    node_expect(f, "GET /v1/work/items/b", NULL, 200, "\"error_message\":\"never\"");
}

/* --- lost leases --- */

static void test_a_wrong_token_is_409(void **state)
{
    struct node_fixture *f = *state;

    make_task(f);
    submit(f, MAIL("a"));
    int64_t token = claim(f, ADA);
    say(f, "a/complete", token + 1, "", 409, LOST);
    say(f, "a/complete", token + 1, "", 409, "token 2 is not the newest, which is 1");
    say(f, "a/heartbeat", INT64_MAX, "", 409, LOST);
    say(f, "a/fail", token + 1, ",\"error_message\":\"x\"", 409, LOST);
    say(f, "a/release", token + 1, "", 409, "\"title\":\"the lease is lost\",\"status\":409");
    node_expect(f, "GET /v1/work/items/a", NULL, 200, "\"status\":\"in_progress\"");
    say(f, "a/complete", token, "", 200, "completed");
}

static void test_a_token_of_the_past_is_409(void **state)
{
    struct node_fixture *f = *state;

    make_task(f);
    submit(f, MAIL("a"));
    int64_t old = claim(f, ADA);
    say(f, "a/release", old, "", 200, "pending");
    int64_t token = claim(f, "{\"holder\":\"bob\"}");
    say(f, "a/heartbeat", old, "", 409, LOST);
    say(f, "a/complete", old, "", 409, LOST);
    say(f, "a/complete", token, "", 200, "completed");
}

static void test_a_lease_that_ran_out_is_409(void **state)
{
    struct node_fixture *f = *state;
    int64_t deadline_ms = now_ms() + PATIENCE_MS;
    int code = 200;

    make_task(f);
    submit(f, MAIL("a"));
    int64_t token = claim(f, "{\"holder\":\"ada\",\"lease\":\"1ms\"}");
    while (code == 200 && now_ms() < deadline_ms) { /* its heartbeat extends it by as little */
        struct http_reply reply = http_ask(
            f->address, "POST /v1/work/items/a/heartbeat", NULL, "{\"token\":1,\"lease\":\"1ms\"}");
        code = reply.code;
        http_reply_done(&reply);
    }
    assert_int_equal(code, 409);
    say(f, "a/complete", token, "", 409, "the lease has run out");
    node_expect(f, "GET /v1/work/items/a", NULL, 200, "\"completed_at\":null");
}

static void test_completing_again_is_the_same_or_409(void **state)
{
    struct node_fixture *f = *state;

    make_task(f);
    submit(f, MAIL("a"));
    int64_t token = claim(f, ADA);
    say(f, "a/complete", token, ",\"output_data\":1", 200, "completed");
    say(f, "a/complete", token, ",\"output_data\":1", 200, "completed");
    say(f, "a/complete", token, ",\"output_data\":2", 409, LOST);
    say(f, "a/heartbeat", token, "", 409, LOST);
    node_expect(f, "GET /v1/work/items/a", NULL, 200, "\"output_data\":1");
}

static void test_whoever_works_on_what_was_cancelled_is_told_409(void **state)
{
    struct node_fixture *f = *state;

    make_task(f);
    submit(f, MAIL("a"));
    submit(f, MAIL("b"));
    int64_t a = claim(f, ADA);
    int64_t b = claim(f, ADA);
    node_expect(f, "POST /v1/work/items/a/cancel", "{}", 200, "\"status\":\"failed\"");
    node_expect(f, "POST /v1/work/items/a/cancel", "{}", 409, "CONFLICT");
    say(f, "a/complete", a, "", 409, LOST);
    node_expect(f, "POST /v1/work/tasks/t/cancel", "{}", 200, "\"failed_items\":1");
    say(f, "b/heartbeat", b, "", 409, LOST);
    node_expect(f, "POST /v1/work/items", MAIL("c"), 409, "cancelled");
}

/* --- what is wrong --- */

static void test_what_is_wrong_is_400_and_named(void **state)
{
    struct node_fixture *f = *state;
    static const struct {
        const char *what;
        const char *body;
        const char *part;
    } wrong[] = {
        { "items/a/complete", "{}", "token: missing" },
        { "items/a/complete", "{\"token\":\"1\"}", "token: expected an integer" },
        { "items/a/complete", "{\"token\":0}", "token: 0 is not within 1" },
        { "items/a/complete", "{\"token\":-1}", "token: -1 is not within 1" },
        { "items/a/complete", "{\"token\":1e30}", "token: expected an integer" },
        { "items/a/complete", "{\"token\":99999999999999999999}", "INVALID" },
        { "items/a/complete", "{\"token\":1,\"output\":2}", "output" },
        { "items/a/complete", "{", "INVALID" },
        { "items/a/complete", "[]", "expected an object" },
        { "items/a/heartbeat", "{\"token\":1,\"lease\":5}", "lease: expected a string" },
        { "items/a/heartbeat", "{\"token\":1,\"lease\":\"5\"}", "lease: " },
        { "items/a/heartbeat", "{\"token\":1,\"lease\":\"0\"}", "lease: not within 1ms and 7d" },
        { "items/a/heartbeat", "{\"token\":1,\"lease\":\"8d\"}", "lease: not within" },
        { "items/a/fail", "{\"token\":1}", "error_message: missing" },
        { "items/a/fail", "{\"token\":1,\"error_message\":\"\"}", "error_message: is empty" },
        { "items/a/fail", "{\"token\":1,\"error_message\":\"x\",\"permanent\":1}", "permanent" },
        { "items/a/release", "{\"token\":1,\"lease\":\"1s\"}", "lease" },
        { "items/a/cancel", "{\"token\":1}", "token" },
        { "claims", "{}", "holder: missing" },
        { "claims", "{\"holder\":\"\"}", "holder: is empty" },
        { "claims", "{\"holder\":\"a\",\"count\":0}", "count: 0 is not within 1 to 1000" },
        { "claims", "{\"holder\":\"a\",\"count\":1001}", "count: 1001" },
        { "claims", "{\"holder\":\"a\",\"types\":\"mail\"}", "types: expected an array" },
        { "claims", "{\"holder\":\"a\",\"types\":[1]}", "types[0]: expected a string" },
        { "claims", "{\"holder\":\"a\",\"types\":[\"\"]}", "types[0]: is empty" },
        { "claims", "{\"holder\":\"a\",\"types\":[\"a\\n\"]}", "\"types: has a control character" },
        { "claims", "{\"holder\":\"a\",\"task\":\"a\\n\"}", "\"task: has a control character" },
        { "claims", "{\"holder\":\"a\",\"types\":[]}", "types: is empty: leave it out" },
        { "claims", "{\"holder\":\"a\",\"task\":\"\"}", "task: is empty" },
        { "claims", "{\"holder\":\"a\",\"wait\":\"soon\"}", "wait: " },
        { "claims", "{\"holder\":\"a\",\"type\":\"x\"}", "type" },
        { "tasks", "{\"task_id\":7}", "task_id: expected a string" },
        { "tasks", "{\"task_id\":\"\"}", "task_id: is empty: leave it out" },
        { "tasks", "{\"metadata\":[]}", "metadata" },
        { "tasks/t/checkpoints",
          "{\"snapshot_data\":1,\"checkpoint_id\":\"\"}",
          "checkpoint_id: is empty" },
        { "tasks/t/checkpoints",
          "{\"snapshot_data\":1,\"work_item_id\":\"\"}",
          "work_item_id: is empty" },
        { "tasks", "{\"name\":\"x\"}", "name" },
        { "items", "{\"work_type\":\"mail\"}", "task_id: missing" },
        { "items", "{\"task_id\":\"t\"}", "work_type: missing" },
        { "items", "{\"task_id\":\"t\",\"work_type\":\"\"}", "work_type: is empty" },
        { "items", "{\"task_id\":\"\",\"work_type\":\"m\"}", "task_id: is empty" },
        { "items", MAIL(""), "work_item_id: is empty: leave it out" },
        { "items", "{\"items\":[" MAIL("x") "," MAIL("") "]}", "items[1].work_item_id: is empty" },
        { "items", "{\"task_id\":\"t\",\"work_type\":\"m\",\"after\":[\"\"]}", "after[0]: is" },
        { "items", "{\"task_id\":\"t\",\"work_type\":\"m\",\"token\":1}", "token" },
        { "items", "{\"task_id\":\"t\",\"work_type\":\"m\",\"priority\":1000001}", "priority" },
        { "items", "{\"task_id\":\"t\",\"work_type\":\"m\",\"max_retries\":-1}", "max_retries" },
        { "items", "{\"task_id\":\"t\",\"work_type\":\"m\",\"delay\":\"-1s\"}", "delay" },
        { "items", "{\"task_id\":\"t\",\"work_type\":\"m\",\"after\":[2]}", "after[0]" },
        { "items", "{\"items\":[]}", "items: has 0 items, 1 to 10000 are allowed" },
        { "items", "{\"items\":[" MAIL("x") ",{}]}", "items[1].task_id: missing" },
        { "items", "{\"items\":[" MAIL("x") "],\"task\":1}", "task" },
    };

    make_task(f);
    submit(f, MAIL("a"));
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char target[64];

        (void)snprintf(target, sizeof(target), "POST /v1/work/%s", wrong[i].what);
        node_expect(f, target, wrong[i].body, 400, wrong[i].part);
    }
    node_expect(f, "GET /v1/work/items/a", NULL, 200, "\"status\":\"pending\"");
    node_expect(f, "GET /v1/work/items/a", NULL, 200, "\"attempts\":0");
    node_expect(f, "GET /v1/work/items/x", NULL, 404, "no item 'x'");
    node_expect(f, "GET /v1/work/tasks/t", NULL, 200, "\"pending\":1,");
}

static void test_an_idempotency_key_is_refused(void **state)
{
    struct node_fixture *f = *state;
    static const struct {
        const char *what;
        const char *body;
    } asks[] = {
        { "POST /v1/work/items", MAIL("a") }, { "POST /v1/work/tasks", "{\"task_id\":\"u\"}" },
        { "POST /v1/work/claims", ADA },      { "POST /v1/work/items/a/complete", "{\"token\":1}" },
        { "GET /v1/work/items", NULL },       { "GET /v1/work/stats", NULL },
    };

    make_task(f);
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        struct http_reply reply =
            http_ask(f->address, asks[i].what, "Idempotency-Key: k\r\n", asks[i].body);

        assert_int_equal(reply.code, 400);
        assert_non_null(strstr(reply.body, "the header Idempotency-Key is not taken"));
        assert_non_null(strstr(reply.body, "work_item_id makes a submit repeatable"));
        http_reply_done(&reply);
    }
    node_expect(f, "GET /v1/work/items/a", NULL, 404, "no item 'a'");
}

static void test_items_come_all_or_none(void **state)
{
    struct node_fixture *f = *state;

    make_task(f);
    node_expect(
        f,
        "POST /v1/work/items",
        "{\"items\":[" MAIL("a") ",{\"work_item_id\":\"b\",\"task_id\":\"t\",\"work_type\":"
                                 "\"mail\",\"after\":[\"a\"],\"priority\":-5,\"max_retries\":0}]}",
        201,
        "{\"work_item_id\":\"b\",\"duplicate\":false}]}");
    node_expect(f, "GET /v1/work/items/b", NULL, 200, "\"status\":\"waiting\",\"priority\":-5");
    node_expect(f,
                "POST /v1/work/items",
                "{\"items\":[" MAIL("c") ",{\"task_id\":\"u\",\"work_type\":\"mail\"}]}",
                404,
                "item 1: no task 'u'");
    node_expect(f, "GET /v1/work/items/c", NULL, 404, "no item 'c'");
    node_expect(f,
                "POST /v1/work/items",
                "{\"work_item_id\":\"a\",\"task_id\":\"t\",\"work_type\":\"post\"}",
                409,
                "CONFLICT");
}

static void test_a_task_is_made_once(void **state)
{
    struct node_fixture *f = *state;

    make_task(f);
    node_expect(f, "POST /v1/work/tasks", "{\"task_id\":\"t\",\"title\":\"T\"}", 200, "\"T\"");
    node_expect(f, "POST /v1/work/tasks", "{\"task_id\":\"t\",\"title\":\"U\"}", 409, "title");
    node_expect(f,
                "POST /v1/work/tasks",
                "{\"metadata\":{\"a\":1}}",
                201,
                "\"metadata\":{\"a\":1},\"created_at\":\"20");
    node_expect(f, "GET /v1/work/tasks/none", NULL, 404, "'none'");
    node_expect(f, "POST /v1/work/tasks/none/cancel", "{}", 404, "'none'");
}

static void test_looking_makes_no_store(void **state)
{
    struct node_fixture *f = *state;

    node_expect(f,
                "GET /v1/work/items/a",
                NULL,
                404,
                node_is("memory") ? "no item 'a'" : "there is no work store yet");
    node_expect(f, "GET /v1/work/tasks/t", NULL, 404, "NOT_FOUND");
    say(f, "a/complete", 1, "", 404, "NOT_FOUND");
    say(f, "a/heartbeat", 1, "", 404, "NOT_FOUND");
    if (node_is("sqlite")) {
        assert_int_equal(access(f->work, F_OK), -1);
    }
}

/* --- waiting --- */

#define WAITING "{\"holder\":\"ada\",\"wait\":\"20s\"}"

static void test_a_waiting_claim_is_woken_by_a_submit(void **state)
{
    struct node_fixture *f = *state;
    int fd = http_connect(f->address);

    make_task(f);
    http_ask_on(fd, "POST /v1/work/claims", NULL, WAITING);
    assert_true(http_is_silent(fd, 50));
    submit(f, MAIL("a"));
    struct http_reply reply = http_receive(fd, false);
    assert_int_equal(reply.code, 200);
    assert_non_null(strstr(reply.body, "\"work_item_id\":\"a\""));
    http_reply_done(&reply);
    close(fd);
}

static void test_a_wait_ends_with_nothing(void **state)
{
    struct node_fixture *f = *state;

    make_task(f);
    node_expect(
        f, "POST /v1/work/claims", "{\"holder\":\"ada\",\"wait\":\"20ms\"}", 200, "{\"items\":[]}");
}

static void test_a_wait_is_cut_before_there_would_be_no_answer(void **state)
{
    struct node_fixture *f = *state;

    node_stop(f);
    f->options.http.answer_ms_max = 2000;
    node_start(f);
    make_task(f);
    node_expect(f, "POST /v1/work/claims", WAITING, 200, "{\"items\":[]}");
}

static void test_many_connections_complete_at_the_same_time(void **state)
{
    enum { CONNECTIONS = 32 };
    struct node_fixture *f = *state;
    AUTO(pawl__buf_done) struct pawl__buf items = BUF_INIT(1 << 20);
    int fds[CONNECTIONS];
    char text[64];

    make_task(f);
    for (int i = 0; i < CONNECTIONS; i++) {
        pawl__buf_add_format(
            &items,
            "%s{\"work_item_id\":\"m-%d\",\"task_id\":\"t\",\"work_type\":\"mail\"}",
            i == 0 ? "{\"items\":[" : ",",
            i);
    }
    pawl__buf_add_text(&items, "]}");
    submit(f, items.data);
    free(node_ask(f, "POST /v1/work/claims", "{\"holder\":\"ada\",\"count\":32}", 200));
    for (int i = 0; i < CONNECTIONS; i++) {
        (void)snprintf(text, sizeof(text), "POST /v1/work/items/m-%d/complete", i);
        fds[i] = http_connect(f->address);
        http_ask_on(fds[i], text, NULL, "{\"token\":1}");
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        struct http_reply reply = http_receive(fds[i], false);
        (void)snprintf(
            text, sizeof(text), "{\"work_item_id\":\"m-%d\",\"status\":\"completed\"}", i);
        assert_non_null(strstr(reply.body, text));
        http_reply_done(&reply);
        close(fds[i]);
    }
    node_expect(f, "GET /v1/work/tasks/t", NULL, 200, "\"completed\":32,");
}

/* Which of them is answered first. */
static size_t first_answered(const int *fds, size_t count)
{
    struct pollfd waits[128];

    assert_true(count <= COUNT_OF(waits));
    for (size_t i = 0; i < count; i++) {
        waits[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
    }
    assert_true(poll(waits, count, PATIENCE_MS) > 0);
    for (size_t i = 0; i < count; i++) {
        if (waits[i].revents != 0) {
            return i;
        }
    }
    return count;
}

static void expect_503(int fd, const char *code)
{
    struct http_reply reply = http_receive(fd, false);

    assert_int_equal(reply.code, 503);
    assert_non_null(strstr(reply.headers, "Retry-After: "));
    if (strstr(reply.body, code) == NULL) {
        fail_msg("'%s' is not in '%s'", code, reply.body);
    }
    http_reply_done(&reply);
}

static size_t thread_count(void)
{
    size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");

    assert_non_null(tasks);
    while (readdir(tasks) != NULL) {
        count++;
    }
    closedir(tasks);
    return count;
}

/* Connections that wait for an item each. */
static void start_waits(struct node_fixture *f, int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fds[i] = http_connect(f->address);
        http_ask_on(fds[i], "POST /v1/work/claims", NULL, WAITING);
    }
}

static char *many_items(size_t count)
{
    struct pawl__buf body = BUF_INIT(1 << 20);

    pawl__buf_add_text(&body, "{\"items\":[");
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_format(
            &body,
            "%s{\"work_item_id\":\"i%zu\",\"task_id\":\"t\",\"work_type\":\"mail\"}",
            i == 0 ? "" : ",",
            i);
    }
    pawl__buf_add_text(&body, "]}");
    pawl__buf_add_char(&body, '\0');
    return pawl__buf_steal(&body);
}

/* The number of the one item that an answer has. */
static size_t item_of(int fd)
{
    struct http_reply reply = http_receive(fd, false);
    const char *id = strstr(reply.body, "{\"items\":[{\"work_item_id\":\"i");

    assert_int_equal(reply.code, 200);
    assert_non_null(id);
    assert_null(strstr(id + strlen("{\"items\":[{\"work_item_id\":"), "work_item_id"));
    size_t number = strtoul(strstr(id, ":\"i") + 3, NULL, 10);
    http_reply_done(&reply);
    return number;
}

static void test_a_thousand_claims_wait_without_a_thread_each(void **state)
{
    enum { WAITS = 1000 };
    struct node_fixture *f = *state;
    static int fds[WAITS];
    static bool seen[WAITS];

    node_stop(f);
    f->options.http.connections_max = 2 * WAITS;
    node_start(f);
    make_task(f);
    start_waits(f, fds, 1); /* starts what all of them share */
    assert_true(http_is_silent(fds[0], 50));
    size_t threads = thread_count();
    start_waits(f, fds + 1, WAITS - 1);
    node_expect(f, "POST /v1/work/claims", ADA, 200, "[]"); /* others are answered */
    node_expect(f, "GET /v1/work/tasks/t", NULL, 200, "pending");
    assert_true(thread_count() <= threads + 4); /* of readers, for good */
    char *items = many_items(WAITS);
    free(node_ask(f, "POST /v1/work/items", items, 201));
    free(items);
    memset(seen, 0, sizeof(seen));
    for (size_t i = 0; i < WAITS; i++) {
        size_t number = item_of(fds[i]);
        assert_true(number < WAITS);
        assert_false(seen[number]);
        seen[number] = true;
        close(fds[i]);
    }
}

static void test_claims_that_wait_leave_connections_for_others(void **state)
{
    enum { CONNECTIONS = 64, KEPT = CONNECTIONS - CONNECTIONS / 8 };
    struct node_fixture *f = *state;
    int fds[KEPT + 1];

    node_stop(f);
    f->options.http.connections_max = CONNECTIONS;
    node_start(f);
    make_task(f);
    start_waits(f, fds, COUNT_OF(fds));
    size_t refused = first_answered(fds, COUNT_OF(fds));
    expect_503(fds[refused], "BUSY");
    node_expect(f, "GET /livez", NULL, 200, "");
    node_stop(f); /* and whoever waits is told */
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        if (i != refused) {
            expect_503(fds[i], "STOPPING");
        }
        close(fds[i]);
    }
    node_start(f);
}

static void test_what_is_claimed_for_somebody_who_left_is_given_back(void **state)
{
    struct node_fixture *f = *state;
    int64_t deadline_ms = now_ms() + PATIENCE_MS;
    int fd = http_connect(f->address);
    bool back = false;

    make_task(f);
    http_ask_on(fd, "POST /v1/work/claims", NULL, WAITING);
    assert_true(http_is_silent(fd, 50));
    close(fd);
    submit(f, MAIL("a"));
    int64_t attempts = 0;
    while (!back && now_ms() < deadline_ms) {
        char *text = node_ask(f, "GET /v1/work/items/a", NULL, 200);
        attempts = node_number(text, "attempts");
        back = attempts > 0 && strstr(text, "\"status\":\"pending\"") != NULL;
        free(text);
    }
    assert_true(back || attempts == 0); /* 0: its leaving was seen before there was an item */
    assert_true(claim(f, ADA) > 0);
}

static void test_a_client_that_closes_its_side_gets_what_is_there(void **state)
{
    static const char *const claims[] = { ADA, WAITING };
    struct node_fixture *f = *state;

    make_task(f);
    submit(f, MAIL("a"));
    submit(f, MAIL("b"));
    for (size_t i = 0; i < COUNT_OF(claims) + 1;
         i++) { /* the last finds nothing, and is not kept */
        int fd = http_connect(f->address);

        http_ask_on(fd, "POST /v1/work/claims", NULL, claims[MIN(i, COUNT_OF(claims) - 1)]);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        int64_t asked_ms = now_ms();
        struct http_reply reply = http_receive(fd, false);
        assert_int_equal(reply.code, 200);
        assert_true((strstr(reply.body, "\"token\":1") != NULL) == (i < COUNT_OF(claims)));
        assert_true(now_ms() - asked_ms < 15000);
        http_reply_done(&reply);
        assert_true(http_is_closed(fd, PATIENCE_MS));
        close(fd);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        node_test(test_an_item_is_submitted_claimed_and_completed),
        node_test(test_failing_waits_or_ends_and_releasing_gives_back),
        node_test(test_a_wrong_token_is_409),
        node_test(test_a_token_of_the_past_is_409),
        node_test(test_a_lease_that_ran_out_is_409),
        node_test(test_completing_again_is_the_same_or_409),
        node_test(test_whoever_works_on_what_was_cancelled_is_told_409),
        node_test(test_what_is_wrong_is_400_and_named),
        node_test(test_an_idempotency_key_is_refused),
        node_test(test_items_come_all_or_none),
        node_test(test_a_task_is_made_once),
        node_test(test_looking_makes_no_store),
        node_test(test_a_waiting_claim_is_woken_by_a_submit),
        node_test(test_a_wait_ends_with_nothing),
        node_test(test_a_wait_is_cut_before_there_would_be_no_answer),
        node_test(test_many_connections_complete_at_the_same_time),
        node_test(test_a_thousand_claims_wait_without_a_thread_each),
        node_test(test_claims_that_wait_leave_connections_for_others),
        node_test(test_what_is_claimed_for_somebody_who_left_is_given_back),
        node_test(test_a_client_that_closes_its_side_gets_what_is_there),
    };

    return node_suite(argc, argv, tests, COUNT_OF(tests));
}
