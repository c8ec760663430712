/* The node in this process, by real sockets: every address, and what commands of many connections share. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/core/backend.h"
#include "app/core/keys.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "lib/answers.h"
#include "lib/http_client.h"
#include "lib/promtool.h"
#include "lib/tempdir.h"
#include "server/idempotency.h"
#include "server/node.h"

enum { CONNECTIONS = 64, ROUNDS = 5, PATIENCE_MS = 30000 };

#define SHOP                                                                                 \
    "{\"name\":\"orders\",\"id\":1,\"partitions\":2,\"kinds\":[{\"name\":\"shop\",\"id\":1," \
    "\"sequences\":[{\"name\":\"invoice\",\"id\":16,\"initial\":1000}]}]}"
#define ORDER                                                                                     \
    "{\"kind\":\"shop\",\"creates\":[{\"class\":\"c\",\"raw_id\":1,\"table\":\"order\",\"data\":" \
    "{\"no\":{\"$next\":\"invoice\"}}}]}"
#define COMMANDS_OF_7 "POST /v1/apps/orders/workspaces/7/commands"

struct fixture {
    char dir[TEMPDIR_SIZE];
    char place[TEMPDIR_SIZE + 8];
    char work[TEMPDIR_SIZE + 16];
    struct pawl__serve_options options;
    struct pawl__serve_node *node;
    char address[64];
    pawl_error error;
};

static void start(struct fixture *f)
{
    assert_ok(pawl__serve_node_open(&f->options, &f->node, &f->error), &f->error);
    (void)snprintf(f->address, sizeof(f->address), "%s", pawl__serve_listens_on(f->node));
}

static void stop(struct fixture *f)
{
    assert_ok(pawl__serve_node_close(STEAL(f->node), &f->error), &f->error);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_ok(tempdir_make(f->dir, "serve", &f->error), &f->error);
    (void)snprintf(f->place, sizeof(f->place), "%s/apps", f->dir);
    (void)snprintf(f->work, sizeof(f->work), "%s/work.sqlite", f->dir);
    f->options = (struct pawl__serve_options){
        .location = f->place,
        .app = PAWL_APP_OPTIONS_INIT,
        .work = f->work,
        .work_options = PAWL_WORK_OPTIONS_INIT,
        .http = PAWL__HTTP_OPTIONS_INIT,
        .stop_ms_max = PATIENCE_MS,
        .partitions_max = NODE_PARTITIONS_MAX,
        .open_ms = PATIENCE_MS,
    };
    f->options.app.free_space_min = 0;
    f->options.app.busy_ms_max = PATIENCE_MS;
    start(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    (void)!pawl__failpoint_set(NULL, &f->error);
    stop(f);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

/* The body of an answer with that code; free it. */
static char *ask(
    struct fixture *f, const char *what, const char *headers, const char *body, int code)
{
    struct http_reply reply = http_ask(f->address, what, headers, body);

    if (reply.code != code) {
        fail_msg("%s: %d instead of %d: %s", what, reply.code, code, reply.body);
    }
    char *text = STEAL(reply.body);
    http_reply_done(&reply);
    return text;
}

static void expect(
    struct fixture *f, const char *what, const char *body, int code, const char *part)
{
    char *text = ask(f, what, NULL, body, code);

    if (strstr(text, part) == NULL) {
        fail_msg("%s: '%s' is not in '%s'", what, part, text);
    }
    free(text);
}

static void create_shop(struct fixture *f)
{
    free(ask(f, "PUT /v1/apps/orders", NULL, SHOP, 201));
}

/* --- applications --- */

static void test_an_application_is_created_once(void **state)
{
    struct fixture *f = *state;

    expect(f, "GET /v1/apps", NULL, 200, "{\"items\":[],\"next\":null,\"not_open\":[]}");
    expect(f, "GET /v1/apps/orders", NULL, 404, "there is no application 'orders'");
    create_shop(f);
    expect(f, "PUT /v1/apps/orders", SHOP, 200, "\"name\":\"orders\"");
    expect(f,
           "PUT /v1/apps/orders",
           "{\"name\":\"orders\",\"id\":1,\"kinds\":[{\"name\":\"shop\",\"id\":1}]}",
           409,
           "another descriptor");
    expect(f, "PUT /v1/apps/others", SHOP, 400, "'orders'");
    expect(f, "PUT /v1/apps/others", "{\"name\":\"others\"}", 400, "descriptor.id: missing");
    expect(f, "PUT /v1/apps/others", "{", 400, "INVALID");
    expect(f,
           "PUT /v1/apps/..%2Fx",
           "{\"name\":\"../x\",\"id\":1,\"kinds\":[{\"name\":\"s\",\"id\":1}]}",
           400,
           "a-z, 0-9");
    expect(f, "GET /v1/apps", NULL, 200, "{\"items\":[{\"id\":1,");
    expect(f, "GET /v1/apps/orders", NULL, 200, "\"partitions\":2");
}

static void test_applications_are_there_again_after_a_restart(void **state)
{
    struct fixture *f = *state;
    char path[TEMPDIR_SIZE + 32];

    create_shop(f);
    free(ask(f, COMMANDS_OF_7, NULL, ORDER, 200));
    stop(f);
    (void)snprintf(path, sizeof(path), "%s/half-made", f->place);
    assert_ok(pawl__fs_make_dir(path, &f->error), &f->error);
    start(f);
    assert_int_equal(pawl__serve_app_count(f->node), 1);
    expect(f, COMMANDS_OF_7, ORDER, 200, "\"number\":1001");
}

#define PAIR \
    "{\"name\":\"pair\",\"id\":2,\"partitions\":2,\"kinds\":[{\"name\":\"shop\",\"id\":1}]}"

static void test_partitions_have_a_limit_together(void **state)
{
    struct fixture *f = *state;

    stop(f);
    f->options.partitions_max = 3;
    start(f);
    create_shop(f);
    expect(f, "PUT /v1/apps/pair", PAIR, 409, "server.partitions_max");
    expect(f, "PUT /v1/apps/orders", SHOP, 200, "orders"); /* it is there, and needs no room */
    stop(f);
    f->options.partitions_max = 4;
    start(f);
    free(ask(f, "PUT /v1/apps/pair", NULL, PAIR, 201));
    stop(f);
    f->options.partitions_max = 3;
    start(f);
    expect(f, "GET /v1/apps", NULL, 200, "\"why\":\"INVALID\"");
    stop(f);
    f->options.partitions_max = 4;
    start(f);
    expect(f, "GET /v1/apps", NULL, 200, "\"not_open\":[]");
}

static void test_a_place_has_one_node(void **state)
{
    struct fixture *f = *state;
    struct pawl__serve_node *second = NULL;

    assert_status(pawl__serve_node_open(&f->options, &second, &f->error), PAWL_BUSY, &f->error);
    assert_null(second);
}

static void test_other_machines_cannot_reach_it(void **state)
{
    struct fixture *f = *state;
    struct pawl__serve_node *second = NULL;

    f->options.http.listen = "0.0.0.0:0";
    assert_status(pawl__serve_node_open(&f->options, &second, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "no token keeps strangers out");
    expect(f, "GET /livez", NULL, 200, "true");
}

/* --- commands --- */

static void test_a_command_is_answered_when_it_is_on_disk(void **state)
{
    struct fixture *f = *state;

    create_shop(f);
    char *text = ask(f, COMMANDS_OF_7, NULL, ORDER, 200);
    assert_string_equal(text,
                        "{\"partition\":1,\"plog_offset\":1,\"wlog_offset\":1,\"duplicate\":false,"
                        "\"ids\":{\"1\":1099511627776},\"numbers\":[{\"sequence\":\"invoice\","
                        "\"number\":1000}]}\n");
    free(text);
}

static void test_wrong_commands_are_refused_with_a_reason(void **state)
{
    struct fixture *f = *state;

    create_shop(f);
    expect(f, COMMANDS_OF_7, "[]", 400, "expected an object");
    expect(f, COMMANDS_OF_7, "{\"kind\":\"shop\",\"workspace\":8}", 400, "is not 7");
    expect(f, COMMANDS_OF_7, "{\"kind\":\"bank\"}", 400, "UNKNOWN_KIND");
    expect(f, COMMANDS_OF_7, "{\"kind\":\"shop\",\"more\":1}", 400, "more");
    expect(f, COMMANDS_OF_7, "{\"kind\":\"\xff\"}", 400, "INVALID");
    expect(f,
           COMMANDS_OF_7,
           "{\"kind\":\"shop\",\"updates\":[{\"id\":200001,\"data\":{}}]}",
           404,
           "NOT_FOUND");
    expect(f, "POST /v1/apps/nothing/workspaces/7/commands", ORDER, 404, "'nothing'");
    expect(f, "POST /v1/apps/orders/workspaces/0/commands", ORDER, 400, "'wsid'");
    expect(f, "POST /v1/apps/orders/workspaces/9223372036854775808/commands", ORDER, 400, "'wsid'");
    expect(f, "POST /v1/apps/orders/workspaces/7%2F8/commands", ORDER, 400, "'wsid'");
    expect(f, "POST /v1/apps/orders/workspaces/7%00/commands", ORDER, 400, "%00");
    expect(f, COMMANDS_OF_7 "?now=1", ORDER, 400, "'now' is unknown");
}

static void test_a_key_in_the_header_is_that_of_the_command(void **state)
{
    struct fixture *f = *state;
    static const char with_key[] = "{\"kind\":\"shop\",\"key\":\"k 1\"}";

    create_shop(f);
    char *first = ask(f, COMMANDS_OF_7, "Idempotency-Key: k1\r\n", ORDER, 200);
    struct http_reply again =
        http_ask(f->address, COMMANDS_OF_7, "Idempotency-Key: \"k1\"\r\n", ORDER);
    char *replayed = http_reply_header(&again, "Idempotent-Replayed");
    assert_string_equal(replayed, "true");
    free(replayed);
    assert_non_null(strstr(first, "\"plog_offset\":1,\"wlog_offset\":1,\"duplicate\":false"));
    assert_non_null(strstr(again.body, "\"plog_offset\":1,\"wlog_offset\":1,\"duplicate\":true"));
    assert_string_equal(strstr(first, "\"ids\""), strstr(again.body, "\"ids\""));
    http_reply_done(&again);
    free(first);

    char *text = ask(f, COMMANDS_OF_7, "Idempotency-Key: k1\r\n", "{\"kind\":\"shop\"}", 422);
    assert_non_null(strstr(text, "\"code\":\"KEY_REUSED\""));
    free(text);
    text = ask(f, COMMANDS_OF_7, "Idempotency-Key: k2\r\n", with_key, 400);
    assert_non_null(strstr(text, "another key"));
    free(text);
    free(ask(f, COMMANDS_OF_7, "Idempotency-Key: \"k 1\"\r\n", with_key, 200));
    free(ask(f, COMMANDS_OF_7, NULL, "{\"kind\":\"shop\",\"key\":\"k1\"}", 422));
    free(ask(f, COMMANDS_OF_7, "Idempotency-Key: k 1\r\n", ORDER, 400));
    expect(f, "GET /v1/apps/orders/workspaces/7/wlog", NULL, 200, "\"key\":\"k 1\"");
}

/* The first that is refused ends a batch, and says why as exactly as a single command does. */
static void test_a_batch_says_why_it_ends(void **state)
{
    struct fixture *f = *state;
    static const char batch[] = "POST /v1/apps/orders/batch";
    static const char first[] = "{\"workspace\":7,\"kind\":\"shop\",\"key\":\"b1\"}";
    char body[512];

    create_shop(f);
    (void)snprintf(body,
                   sizeof(body),
                   "{\"commands\":[%s,{\"workspace\":7,\"kind\":\"zoo\"},"
                   "{\"workspace\":7,\"kind\":\"shop\",\"key\":\"b2\"}]}",
                   first);
    expect(f, batch, body, 200, "\"code\":\"INVALID\",\"reason\":\"UNKNOWN_KIND\"");
    (void)snprintf(body, sizeof(body), "{\"commands\":[%s]}", first);
    expect(f, batch, body, 200, "\"duplicate\":true");
    static const char reused[] =
        "{\"commands\":[{\"workspace\":7,\"kind\":\"shop\",\"key\":\"b1\",\"creates\":["
        "{\"class\":\"c\",\"raw_id\":1,\"table\":\"order\",\"data\":{}}]}]}";
    expect(f, batch, reused, 200, "\"code\":\"CONFLICT\",\"reason\":\"KEY_REUSED\"");
    expect(f, batch, "{\"commands\":[]}", 400, "1 to 256 are allowed");
    char *events = ask(f, "GET /v1/apps/orders/workspaces/7/wlog", NULL, NULL, 200);
    assert_non_null(strstr(events, "\"key\":\"b1\""));
    assert_null(strstr(events, "\"key\":\"b2\""));
    free(events);
}

/* Over 256 KiB they are read on another thread. */
static void test_large_commands_are_executed_and_refused_like_small_ones(void **state)
{
    enum { LARGE = 300000 };
    struct fixture *f = *state;
    char *body = NULL;
    char *wrong = NULL;

    create_shop(f);
    assert_true(asprintf(&body,
                         "{\"kind\":\"shop\",\"creates\":[{\"class\":\"c\",\"raw_id\":1,"
                         "\"table\":\"t\",\"data\":{\"a\":\"%0*d\"}}]}",
                         LARGE,
                         0)
                > LARGE);
    assert_true(asprintf(&wrong, "{\"kind\":\"shop\",\"key\":\"k2\"%*s}", LARGE, "") > LARGE);
    for (int i = 0; i < 2; i++) {
        char *text = ask(f, COMMANDS_OF_7, "Idempotency-Key: k1\r\n", body, 200);

        assert_non_null(strstr(text, i == 0 ? "\"duplicate\":false" : "\"duplicate\":true"));
        free(text);
    }
    char *text = ask(f, COMMANDS_OF_7, "Idempotency-Key: k1\r\n", wrong, 400);
    assert_non_null(strstr(text, "another key"));
    free(text);
    free(ask(f, COMMANDS_OF_7, NULL, wrong, 200));
    free(wrong);
    free(body);
}

static void test_keys_of_headers_are_checked(void **state)
{
    static const char *const bad[] = { "",     "\"",   "\"a",      "\"a\"b", "\"\\n\"", "a b",
                                       "\"\"", "\x7f", "\xc3\xa4", "\"\t\"", "a\tb" };
    char bytes[1024];
    char long_key[PAWL_APP_KEY_BYTES_MAX + 2];
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct pawl__buf key = BUF_OVER(bytes);

        assert_status(pawl__serve_idempotency_key(bad[i], &key, &error), PAWL_INVALID, &error);
        assert_message(&error, "Idempotency-Key");
    }
    memset(long_key, 'k', sizeof(long_key));
    long_key[sizeof(long_key) - 1] = '\0';
    struct pawl__buf over = BUF_OVER(bytes);
    assert_status(pawl__serve_idempotency_key(long_key, &over, &error), PAWL_INVALID, &error);
    assert_message(&error, "is over 255 bytes");
    struct pawl__buf most = BUF_OVER(bytes);
    assert_ok(pawl__serve_idempotency_key(long_key + 1, &most, &error), &error);
    assert_int_equal(most.len, PAWL_APP_KEY_BYTES_MAX);
    struct pawl__buf quoted = BUF_OVER(bytes);
    assert_ok(pawl__serve_idempotency_key("\"a \\\"b\\\\\"", &quoted, &error), &error);
    assert_true(pawl__view_is(pawl__buf_view(&quoted), "a \"b\\"));
}

static void count_writes(void *context, const char *name, uint64_t passes)
{
    if (strcmp(name, "app.write.before") == 0) {
        *(uint64_t *)context = passes;
    }
}

static void test_commands_of_many_connections_share_a_commit(void **state)
{
    struct fixture *f = *state;
    int fds[CONNECTIONS];
    char what[128];
    uint64_t before = 0;
    uint64_t after = 0;

    create_shop(f);
    free(ask(f, COMMANDS_OF_7, NULL, ORDER, 200));
    pawl__failpoint_names(count_writes, &before);
    /* While the first write takes its time, the others gather. */
    assert_ok(pawl__failpoint_set("app.write.before=delay:200*1", &f->error), &f->error);
    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = http_connect(f->address);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CONNECTIONS; i++) {
            (void)snprintf(
                what, sizeof(what), "POST /v1/apps/orders/workspaces/%d/commands", 1000 + 2 * i);
            http_ask_on(fds[i], what, NULL, ORDER);
        }
        for (int i = 0; i < CONNECTIONS; i++) {
            struct http_reply reply = http_receive(fds[i], false);
            char number[32];

            assert_int_equal(reply.code, 200);
            (void)snprintf(number, sizeof(number), "\"number\":%d}", 1000 + round);
            assert_non_null(strstr(reply.body, number));
            http_reply_done(&reply);
        }
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        close(fds[i]);
    }
    pawl__failpoint_names(count_writes, &after);
    assert_true(after > before);
    assert_true(after - before < (uint64_t)CONNECTIONS * ROUNDS);
}

static void test_what_fails_in_the_store_stays_there(void **state)
{
    struct fixture *f = *state;

    create_shop(f);
    assert_ok(pawl__failpoint_set("rocksdb.write.before=error:IO*1", &f->error), &f->error);
    char *text = ask(f, COMMANDS_OF_7, NULL, ORDER, 500);
    assert_null(strstr(text, "rocksdb"));
    assert_null(strstr(text, f->dir));
    assert_non_null(strstr(text, "\"code\":\"IO\""));
    free(text);
    expect(f, COMMANDS_OF_7, ORDER, 200, "\"number\":1000");
}

/* Somebody has written to the store: what the next record will use is taken. */
static void take_next_record(struct fixture *f)
{
    const struct app_store_options options = { .must_exist = true };
    char path[TEMPDIR_SIZE + 32];
    struct app_key key = pawl__app_key_record(1, 7, PAWL_APP_C_ID_MIN + 1);
    const struct app_entry entry = {
        APP_RECORDS, APP_INSERT, pawl__app_key_view(&key), { "\x01", 1 }
    };
    struct app_store *store = NULL;

    (void)snprintf(path, sizeof(path), "%s/orders", f->place);
    assert_ok(pawl__app_store_open(path, &options, &store, &f->error), &f->error);
    assert_ok(store->ops->write(store, &entry, 1, &f->error), &f->error);
    pawl__app_store_close(store);
}

static void test_a_number_in_use_is_409_and_named(void **state)
{
    struct fixture *f = *state;

    create_shop(f);
    free(ask(f, COMMANDS_OF_7, NULL, ORDER, 200));
    stop(f);
    take_next_record(f);
    start(f);
    expect(f,
           COMMANDS_OF_7,
           ORDER,
           409,
           "record 1099511627777 of workspace 7 (application 1) is there already");
}

/* Whatever stands in the way of a new application is the node's business, and in its log. */
static void assert_not_told(struct fixture *f, const char *code)
{
    char *text = ask(f, "PUT /v1/apps/orders", NULL, SHOP, 500);

    assert_null(strstr(text, f->dir));
    assert_non_null(strstr(text, code));
    free(text);
}

static void make_file(const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void test_what_is_in_the_way_of_an_application_is_not_told(void **state)
{
    struct fixture *f = *state;
    char path[TEMPDIR_SIZE + 32];
    char table[TEMPDIR_SIZE + 64];

    (void)snprintf(path, sizeof(path), "%s/orders", f->place);
    (void)snprintf(table, sizeof(table), "%s/000001.sst", path);
    make_file(path);
    assert_not_told(f, "\"code\":\"FAILED\"");
    assert_int_equal(remove(path), 0);
    assert_int_equal(symlink("nowhere/at/all", path), 0);
    assert_not_told(f, "\"code\":\"FAILED\"");
    assert_int_equal(remove(path), 0);
    assert_ok(pawl__fs_make_dir(path, &f->error), &f->error);
    make_file(table);
    assert_not_told(f, "\"code\":\"CORRUPT\"");
    assert_int_equal(remove(table), 0);
    create_shop(f);
}

/* Waits until an address answers with `part`. */
static void await(struct fixture *f, const char *what, int code, const char *part)
{
    struct pawl__clock *clock = pawl__clock_real();
    int64_t deadline_ns = pawl__monotonic_ns(clock) + PATIENCE_MS * NS_PER_MS;
    bool seen = false;

    while (!seen && pawl__monotonic_ns(clock) < deadline_ns) {
        struct http_reply reply = http_ask(f->address, what, NULL, NULL);

        seen = reply.code == code && strstr(reply.body, part) != NULL;
        http_reply_done(&reply);
    }
    if (!seen) {
        struct http_reply last = http_ask(f->address, what, NULL, NULL);

        fail_msg("%s never answered %d %s, but %d %s", what, code, part, last.code, last.body);
    }
}

static void test_a_busy_server_is_503_and_says_when_to_ask_again(void **state)
{
    struct fixture *f = *state;

    stop(f);
    f->options.app.busy_ms_max = 0;
    f->options.app.unflushed_max = 1; /* so that numbers are written at once */
    f->options.app.flush_interval_ms = 600000;
    start(f);
    create_shop(f);
    await(f, "GET /readyz", 200, "\"ready\":true");
    free(ask(f, COMMANDS_OF_7, NULL, ORDER, 200));
    await(
        f, "GET /v1/apps/orders/seq", 200, "\"next_offset\":2,\"stored_offset\":2,\"unflushed\":0");
    /* The command is written, its numbers are not. */
    assert_ok(pawl__failpoint_set("rocksdb.write.before=error:IO@2", &f->error), &f->error);
    free(ask(f, COMMANDS_OF_7, NULL, ORDER, 200));
    struct http_reply reply = http_ask(f->address, COMMANDS_OF_7, NULL, ORDER);
    char *retry = http_reply_header(&reply, "Retry-After");
    assert_int_equal(reply.code, 503);
    assert_string_equal(retry, "1");
    assert_non_null(strstr(reply.body, "\"title\":\"server is busy\""));
    free(retry);
    http_reply_done(&reply);
    await(f, "GET /readyz", 503, "{\"app\":\"orders\",\"partition\":1,\"why\":\"IO\"}");
    expect(f, "GET /healthz", NULL, 200, "\"status\":\"waiting\"");
    expect(f, "GET /livez", NULL, 200, "true");
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    await(f, "GET /readyz", 200, "\"ready\":true");
    expect(f, COMMANDS_OF_7, ORDER, 200, "\"number\":1002");
}

static void test_stopping_answers_the_commands_on_their_way(void **state)
{
    struct fixture *f = *state;
    int fds[8];
    int answered = 0;
    uint64_t before = 0;
    char part[32];

    create_shop(f);
    free(ask(f, COMMANDS_OF_7, NULL, ORDER, 200));
    assert_ok(pawl__failpoint_set("app.write.before=delay:300*1", &f->error), &f->error);
    pawl__failpoint_names(count_writes, &before);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = http_connect(f->address);
        http_ask_on(fds[i], COMMANDS_OF_7, NULL, ORDER);
    }
    for (uint64_t now = before; now == before;) { /* until one is being written */
        pawl__failpoint_names(count_writes, &now);
    }
    stop(f);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        struct http_reply reply = http_receive(fds[i], false);

        /* One that came too late is refused or ended without a word, and was not executed. */
        answered += reply.code == 200;
        assert_true(reply.code == 200 || reply.code == 503 || reply.code == 0);
        http_reply_done(&reply);
    }
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        close(fds[i]);
    }
    assert_true(answered >= 1);
    start(f);
    (void)snprintf(part, sizeof(part), "\"number\":%d}", 1001 + answered);
    expect(f, COMMANDS_OF_7, ORDER, 200, part);
}

/* --- reading --- */

static void test_records_and_logs_come_in_pages(void **state)
{
    struct fixture *f = *state;

    create_shop(f);
    expect(
        f, "GET /v1/apps/orders/workspaces/7/records", NULL, 200, "{\"items\":[],\"next\":null}");
    for (int i = 0; i < 5; i++) {
        free(ask(f, COMMANDS_OF_7, NULL, ORDER, 200));
    }
    char *text = ask(f, "GET /v1/apps/orders/workspaces/7/records?limit=2", NULL, NULL, 200);
    assert_string_equal(text,
                        "{\"items\":[{\"id\":1099511627776,\"class\":\"c\",\"table\":\"order\","
                        "\"data\":{\"no\":1000}},{\"id\":1099511627777,\"class\":\"c\",\"table\":"
                        "\"order\",\"data\":{\"no\":1001}}],\"next\":\"1099511627778\"}\n");
    free(text);
    expect(f,
           "GET /v1/apps/orders/workspaces/7/records?limit=2&from=1099511627778",
           NULL,
           200,
           "\"next\":\"1099511627780\"}");
    expect(f,
           "GET /v1/apps/orders/workspaces/7/records?limit=2&from=1099511627780",
           NULL,
           200,
           "{\"no\":1004}}],\"next\":null}");
    expect(f, "GET /v1/apps/orders/workspaces/7/wlog?limit=4", NULL, 200, "\"next\":\"5\"}");
    expect(f, "GET /v1/apps/orders/workspaces/7/wlog?from=5", NULL, 200, "\"next\":null}");
    expect(f, "GET /v1/apps/orders/workspaces/7/wlog?from=6", NULL, 200, "{\"items\":[],");
    expect(f, "GET /v1/apps/orders/partitions/1/plog?limit=5", NULL, 200, "\"next\":null}");
    expect(f, "GET /v1/apps/orders/partitions/1/plog?limit=1&from=2", NULL, 200, "\"next\":\"3\"}");
    expect(f, "GET /v1/apps/orders/partitions/0/plog", NULL, 200, "{\"items\":[],");
    expect(f,
           "GET /v1/apps/orders/workspaces/7/records/1099511627778",
           NULL,
           200,
           "{\"id\":1099511627778,\"class\":\"c\",\"table\":\"order\",\"data\":{\"no\":1002}}");
}

static void test_what_is_not_there_is_404_and_what_cannot_be_is_400(void **state)
{
    static const struct {
        const char *what;
        int code;
        const char *says;
    } cases[] = {
        { "GET /v1/apps/nothing/workspaces/7/records", 404, "'nothing'" },
        { "GET /v1/apps/nothing/workspaces/7/records/200001", 404, "'nothing'" },
        { "GET /v1/apps/nothing/workspaces/7/wlog", 404, "'nothing'" },
        { "GET /v1/apps/nothing/partitions/0/plog", 404, "'nothing'" },
        { "GET /v1/apps/nothing/seq", 404, "'nothing'" },
        { "GET /v1/apps/orders/partitions/2/plog", 404, "the last one is 1" },
        { "GET /v1/apps/orders/partitions/256/plog", 400, "'p'" },
        { "GET /v1/apps/orders/partitions/x/plog", 400, "'p'" },
        { "GET /v1/apps/orders/workspaces/7/records/200001", 404, "NOT_FOUND" },
        { "GET /v1/apps/orders/workspaces/7/records/5", 400, "INVALID" },
        { "GET /v1/apps/orders/workspaces/7/records/x", 400, "'id'" },
        { "GET /v1/apps/orders/workspaces/x/records", 400, "'wsid'" },
        { "GET /v1/apps/orders/workspaces/-1/wlog", 400, "'wsid'" },
        { "GET /v1/apps/orders/workspaces/7/records?limit=0", 400, "'limit'" },
        { "GET /v1/apps/orders/workspaces/7/records?limit=1001", 400, "from 1 to 1000" },
        { "GET /v1/apps/orders/workspaces/7/wlog?from=-1", 400, "'from'" },
        { "GET /v1/apps/orders/workspaces/7/wlog?from=9223372036854775808", 400, "'from'" },
        { "GET /v1/apps/orders/workspaces/7/wlog?form=1", 400, "'form' is unknown" },
        { "GET /v1/apps/orders/partitions/0/plog?limit=", 400, "'limit'" },
        { "GET /v1/apps?limit=1", 400, "'limit' is unknown" },
        { "GET /v1", 404, "NOT_FOUND" },
        { "GET /v1/apps/orders/workspaces/7/commands", 405, "POST" },
        { "PUT /livez", 405, "GET, HEAD" },
        { "POST /v1/apps/orders/workspaces/7/commands", 411, "LENGTH_REQUIRED" },
    };
    struct fixture *f = *state;

    create_shop(f);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect(f, cases[i].what, NULL, cases[i].code, cases[i].says);
    }
}

static void test_sequences_and_metrics_are_shown(void **state)
{
    struct fixture *f = *state;

    create_shop(f);
    free(ask(f, COMMANDS_OF_7, NULL, ORDER, 200));
    expect(f,
           "GET /v1/apps/orders/seq",
           NULL,
           200,
           "{\"partition\":1,\"log_end\":1,\"next_offset\":2,");
    expect(f, "GET /healthz", NULL, 200, "\"apps\":1,");
    expect(f,
           "GET /metrics",
           NULL,
           200,
           "pawl_sequencer_next_offset{app=\"orders\",partition=\"1\"} 2\n");
    expect(f,
           "GET /metrics",
           NULL,
           200,
           "pawl_http_requests_total{method=\"POST\",route=\"/v1/apps/{app}/workspaces/{wsid}/"
           "commands\",code=\"200\"} 1\n");
    expect(f, "GET /metrics", NULL, 200, "pawl_commit_calls_total{store=\"app/orders\"} 1\n");
    struct http_reply reply = http_ask(f->address, "HEAD /metrics", NULL, NULL);
    assert_int_equal(reply.code, 200);
    assert_true(reply.len > 0);
    http_reply_done(&reply);
}

static void submit_one(struct fixture *f)
{
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    pawl_work *work = NULL;

    submission.work_type = pawl_view_of("mail");
    submission.task_id = pawl_view_of("t");
    assert_ok(pawl_work_open(f->work, NULL, &work, &f->error), &f->error);
    assert_ok(pawl_task_create(work,
                               &(pawl_task){ .size = sizeof(pawl_task),
                                             .task_id = pawl_view_of("t"),
                                             .title = pawl_view_of("t") },
                               NULL,
                               0,
                               &f->error),
              &f->error);
    assert_ok(pawl_work_submit(work, &submission, 1, NULL, &f->error), &f->error);
    pawl_work_close(work, 0, NULL);
}

static void test_a_work_store_shows_its_metrics_once_it_is_there(void **state)
{
    struct fixture *f = *state;

    expect(f, "GET /metrics", NULL, 200, "\npawl_work_up 0\n");
    assert_int_equal(access(f->work, F_OK), -1); /* looking makes none */
    submit_one(f);
    create_shop(f);
    expect(f, "GET /metrics", NULL, 200, "\npawl_work_up 1\n");
    char *text = ask(f, "GET /metrics", NULL, NULL, 200);
    assert_non_null(strstr(text, "\npawl_work_items{work_type=\"mail\",status=\"pending\"} 1\n"));
    /* Both are of one metric, which Prometheus accepts only once. */
    assert_non_null(strstr(text, "\npawl_commit_waiting{store=\"app/orders\"} 0\n"));
    assert_non_null(strstr(text, "\npawl_commit_waiting{store=\"work\"} 0\n"));
    const char *said = promtool_says(pawl_view_of(text));
    if (said != NULL) {
        assert_string_equal(said, "");
    }
    free(text);
    submit_one(f);
    expect(f,
           "GET /metrics",
           NULL,
           200,
           "\npawl_work_items{work_type=\"mail\",status=\"pending\"} 2\n");
}

static void test_a_work_store_that_cannot_be_read_hides_nothing_else(void **state)
{
    struct fixture *f = *state;
    FILE *file = fopen(f->work, "w");

    assert_non_null(file);
    assert_true(fputs("this is no database, and long enough to be seen not to be one", file) >= 0);
    assert_int_equal(fclose(file), 0);
    create_shop(f);
    expect(f, "GET /metrics", NULL, 200, "\npawl_work_up 0\n");
    expect(f, "GET /metrics", NULL, 200, "pawl_sequencer_next_offset{app=\"orders\"");
}

int main(void)
{
#define NODE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        NODE_TEST(test_an_application_is_created_once),
        NODE_TEST(test_applications_are_there_again_after_a_restart),
        NODE_TEST(test_partitions_have_a_limit_together),
        NODE_TEST(test_a_place_has_one_node),
        NODE_TEST(test_other_machines_cannot_reach_it),
        NODE_TEST(test_a_command_is_answered_when_it_is_on_disk),
        NODE_TEST(test_wrong_commands_are_refused_with_a_reason),
        NODE_TEST(test_a_key_in_the_header_is_that_of_the_command),
        NODE_TEST(test_a_batch_says_why_it_ends),
        NODE_TEST(test_large_commands_are_executed_and_refused_like_small_ones),
        cmocka_unit_test(test_keys_of_headers_are_checked),
        NODE_TEST(test_commands_of_many_connections_share_a_commit),
        NODE_TEST(test_what_fails_in_the_store_stays_there),
        NODE_TEST(test_a_number_in_use_is_409_and_named),
        NODE_TEST(test_what_is_in_the_way_of_an_application_is_not_told),
        NODE_TEST(test_a_busy_server_is_503_and_says_when_to_ask_again),
        NODE_TEST(test_stopping_answers_the_commands_on_their_way),
        NODE_TEST(test_records_and_logs_come_in_pages),
        NODE_TEST(test_what_is_not_there_is_404_and_what_cannot_be_is_400),
        NODE_TEST(test_sequences_and_metrics_are_shown),
        NODE_TEST(test_a_work_store_shows_its_metrics_once_it_is_there),
        NODE_TEST(test_a_work_store_that_cannot_be_read_hides_nothing_else),
    };

    answers_record();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + answers_check();
}
