/* Applications of a node that are not open: not yet, since another process has them, or never, since they
 * are damaged. The others are served. On PostgreSQL both the applications and the work store are there. */
#include "lib/node_fixture.h"

#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"

enum { PATIENCE_MS = 30000 };

#define SHOP(name, id)                                                                            \
    "{\"name\":\"" name "\",\"id\":" id ",\"kinds\":[{\"name\":\"shop\",\"id\":1,\"sequences\":[" \
    "{\"name\":\"invoice\",\"id\":16}]}]}"
#define ORDERS SHOP("orders", "1")
#define OTHERS SHOP("others", "2")
#define ORDER                                                                            \
    "{\"kind\":\"shop\",\"creates\":[{\"class\":\"c\",\"raw_id\":1,\"table\":\"order\"," \
    "\"data\":{\"no\":{\"$next\":\"invoice\"}}}]}"
#define COMMAND(app) "POST /v1/apps/" app "/workspaces/7/commands"

static int64_t now_ms(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) / NS_PER_MS;
}

/* --- set-up --- */

/* Its applications are where its work store is, when that is a database. */
static int setup(void **state)
{
    (void)node_fixture_setup(state);
    struct node_fixture *f = *state;

    if (node_is("postgres")) {
        node_stop(f);
        f->options.location = f->work;
        f->options.app.answer_ms_max = 2000;
        f->options.work_options.answer_ms_max = 2000;
        node_start(f);
    }
    free(node_ask(f, "PUT /v1/apps/orders", ORDERS, 201));
    free(node_ask(f, "PUT /v1/apps/others", OTHERS, 201));
    return 0;
}

static int teardown(void **state)
{
    (void)!pawl__failpoint_set(NULL, NULL);
    return node_fixture_teardown(state);
}

/* Waits until an address answers with that code and `part`. */
static void await(
    struct node_fixture *f, const char *what, const char *body, int code, const char *part)
{
    int64_t deadline_ms = now_ms() + PATIENCE_MS;

    for (;;) {
        struct http_reply reply = http_ask(f->address, what, NULL, body);
        bool seen = reply.code == code && strstr(reply.body, part) != NULL;

        if (!seen && now_ms() > deadline_ms) {
            fail_msg(
                "%s never answered %d %s, but %d %s", what, code, part, reply.code, reply.body);
        }
        http_reply_done(&reply);
        if (seen) {
            return;
        }
        poll(NULL, 0, 10);
    }
}

static void assert_served(struct node_fixture *f, const char *command)
{
    await(f, command, ORDER, 200, "\"plog_offset\":");
}

/* --- copies --- */

/* It comes first in the directory, and has the same numbers. */
static void test_a_copy_is_refused_by_name_and_the_original_is_served(void **state)
{
    struct node_fixture *f = *state;
    char command[512];

    if (node_is("postgres")) {
        return; /* names and ids of a database are unique */
    }
    assert_served(f, COMMAND("orders"));
    node_stop(f);
    snprintf(command,
             sizeof(command),
             "cp -r '%s/orders' '%s/backup-orders'",
             f->options.location,
             f->options.location);
    assert_int_equal(system(command), 0);
    node_start(f);
    await(f, COMMAND("orders"), ORDER, 200, "\"plog_offset\":2");
    await(f, "GET /healthz", NULL, 200, "{\"app\":\"backup-orders\",\"why\":\"CONFLICT\"}");
    await(f, COMMAND("backup-orders"), ORDER, 500, "'backup-orders' is not open");
}

/* --- opening --- */

static void test_the_node_listens_before_its_applications_are_open(void **state)
{
    struct node_fixture *f = *state;

    node_stop(f);
    f->options.open_ms = 0;
    assert_ok(pawl__failpoint_set("node.app.open.before=delay:1000", &f->error), &f->error);
    node_start(f);
    node_expect(f, "GET /livez", NULL, 200, "true");
    node_expect(f, "GET /readyz", NULL, 503, "{\"app\":\"orders\",\"why\":\"OPENING\"}");
    node_expect(f, "GET /healthz", NULL, 200, "\"status\":\"waiting\"");
    struct http_reply reply = http_ask(f->address, COMMAND("orders"), NULL, ORDER);
    char *later = http_reply_header(&reply, "Retry-After");
    char *type = http_reply_header(&reply, "Content-Type");
    assert_int_equal(reply.code, 503);
    assert_string_equal(later, "1");
    assert_string_equal(type, "application/problem+json");
    assert_non_null(strstr(reply.body, "'orders' is being opened, 0 of 2 are open"));
    assert_non_null(strstr(reply.body, "\"code\":\"OPENING\""));
    free(later);
    free(type);
    http_reply_done(&reply);
    node_expect(f, "PUT /v1/apps/orders", ORDERS, 503, "OPENING"); /* and is not created again */
    node_expect(f, "GET /v1/apps", NULL, 200, "{\"app\":\"others\",\"why\":\"OPENING\"}");
    node_expect(f, "GET /v1/apps/nothing", NULL, 404, "NOT_FOUND");
    await(f, "GET /readyz", NULL, 200, "\"ready\":true");
    assert_served(f, COMMAND("orders"));
}

static void test_a_node_that_waits_for_no_request_still_ends_in_order(void **state)
{
    struct node_fixture *f = *state;

    f->options.stop_ms_max = 0;
    for (int i = 0; i < 3; i++) {
        node_stop(f);
        node_start(f);
    }
    assert_served(f, COMMAND("orders"));
}

static void test_a_busy_application_comes_when_it_is_free(void **state)
{
    struct node_fixture *f = *state;
    AUTO(pawl__text_free) char *location = NULL;
    pawl_app *held = NULL;

    node_stop(f);
    assert_ok(pawl_app_locate(f->options.location, "orders", &location, &f->error), &f->error);
    assert_ok(pawl_app_open(location, NULL, &f->options.app, &held, &f->error), &f->error);
    node_start(f);
    assert_served(f, COMMAND("others"));
    node_expect(f, COMMAND("orders"), ORDER, 503, "\"code\":\"NOT_OPEN\"");
    node_expect(f, "GET /v1/apps/orders", NULL, 503, "(BUSY)");
    await(f, "GET /readyz", NULL, 200, "\"degraded\":[{\"app\":\"orders\",\"why\":\"BUSY\"}]");
    pawl_app_close(held, 0, NULL);
    assert_served(f, COMMAND("orders"));
    await(f, "GET /readyz", NULL, 200, "\"degraded\":[],");
}

static void test_a_node_without_any_application_waits_for_them(void **state)
{
    static const char *const names[] = { "orders", "others" };
    struct node_fixture *f = *state;
    pawl_app *held[COUNT_OF(names)] = { NULL };

    node_stop(f);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        AUTO(pawl__text_free) char *location = NULL;

        assert_ok(pawl_app_locate(f->options.location, names[i], &location, &f->error), &f->error);
        assert_ok(pawl_app_open(location, NULL, &f->options.app, &held[i], &f->error), &f->error);
    }
    node_start(f);
    node_expect(f, "GET /readyz", NULL, 503, "{\"app\":\"others\",\"why\":\"BUSY\"}");
    pawl_app_close(held[0], 0, NULL);
    await(f, "GET /readyz", NULL, 200, "\"degraded\":[{\"app\":\"others\",\"why\":\"BUSY\"}]");
    pawl_app_close(held[1], 0, NULL);
    assert_served(f, COMMAND("others"));
}

static void damage(struct node_fixture *f, const char *name)
{
    char path[TEMPDIR_SIZE + 64];

    (void)snprintf(path, sizeof(path), "%s/%s/CURRENT", f->place, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("no manifest\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_a_damaged_application_stops_none_of_the_others(void **state)
{
    struct node_fixture *f = *state;

    node_stop(f);
    damage(f, "orders");
    node_start(f);
    assert_served(f, COMMAND("others"));
    char *text = node_ask(f, COMMAND("orders"), ORDER, 500);
    assert_non_null(strstr(text, "\"code\":\"NOT_OPEN\""));
    assert_non_null(strstr(text, "application 'orders' is not open"));
    assert_null(strstr(text, f->dir));
    free(text);
    node_expect(f, "PUT /v1/apps/orders", ORDERS, 500, "NOT_OPEN");
    await(f, "GET /readyz", NULL, 200, "\"degraded\":[{\"app\":\"orders\",\"why\":\"");
    node_expect(f, "GET /healthz", NULL, 200, "\"degraded\":[{\"app\":\"orders\",\"why\":\"");
    node_expect(f, "GET /v1/apps", NULL, 200, "\"not_open\":[{\"app\":\"orders\",\"why\":\"");
    node_expect(f, "GET /metrics", NULL, 200, "app=\"others\"");
}

static void test_what_does_not_fit_is_not_opened_and_named(void **state)
{
    struct node_fixture *f = *state;

    node_stop(f);
    f->options.partitions_max = 1;
    node_start(f);
    char *text = node_ask(f, "GET /v1/apps", NULL, 200);
    assert_non_null(strstr(text, "\"why\":\"INVALID\""));
    assert_non_null(strstr(text, "\"items\":[{\"id\":"));
    free(text);
}

/* --- stores that do not answer --- */

/* The node is idle: nobody but its own probes could notice. */
static void test_a_database_that_is_gone_is_noticed_and_so_is_its_return(void **state)
{
    struct node_fixture *f = *state;

    assert_served(f, COMMAND("orders"));
    await(f, "GET /readyz", NULL, 200, "\"ready\":true");
    node_break_store(f);
    int64_t began_ms = now_ms();
    await(f, "GET /readyz", NULL, 503, "{\"app\":\"others\",\"why\":\"UNAVAILABLE\"}");
    await(f, "GET /readyz", NULL, 503, "{\"store\":\"work\",\"why\":\"");
    assert_true(now_ms() - began_ms < 15000); /* 2 s when nothing else runs */
    began_ms = now_ms();
    free(node_ask(f, COMMAND("orders"), ORDER, 503));
    free(node_ask(f, "GET /v1/apps/orders/workspaces/7/records", NULL, 503));
    free(node_ask(f, "GET /v1/work/items", NULL, 503));
    assert_true(now_ms() - began_ms < 15000);
    node_mend_store(f);
    await(f, "GET /readyz", NULL, 200, "\"ready\":true");
    assert_served(f, COMMAND("orders"));
}

/* Another process has taken it over, as it may when this one stood still for long. */
static void test_an_application_that_was_lost_is_opened_again_when_it_is_free(void **state)
{
    struct node_fixture *f = *state;
    AUTO(pawl__text_free) char *location = NULL;
    pawl_app *taken = NULL;
    int64_t deadline_ms = now_ms() + PATIENCE_MS;

    assert_served(f, COMMAND("orders"));
    assert_ok(pawl_app_locate(f->options.location, "orders", &location, &f->error), &f->error);
    while (taken == NULL) { /* the node is there first, most of the time */
        assert_true(now_ms() < deadline_ms);
        node_end_sessions();
        (void)!pawl_app_open(location, NULL, &f->options.app, &taken, &f->error);
    }
    await(f, "GET /v1/apps", NULL, 200, "\"not_open\":[{\"app\":\"orders\",\"why\":\"");
    free(node_ask(f, COMMAND("orders"), ORDER, 503));
    pawl_app_close(taken, 0, NULL);
    assert_served(f, COMMAND("orders"));
    await(f, "GET /readyz", NULL, 200, "\"degraded\":[],");
}

static void test_a_database_that_stalls_is_noticed_and_so_is_its_return(void **state)
{
    struct node_fixture *f = *state;

    f->options.app.answer_ms_max = 4000; /* the probe's own time is shorter */
    f->options.work_options.answer_ms_max = 4000;
    node_stop(f);
    node_start(f);
    free(node_ask(f, "POST /v1/work/tasks", "{\"task_id\":\"t\"}", 201));
    await(f, "GET /readyz", NULL, 200, "\"ready\":true");
    node_stall_store();
    int64_t began_ms = now_ms();
    await(f, "GET /readyz", NULL, 503, "{\"app\":\"orders\",\"why\":\"TIMEOUT\"}");
    await(f, "GET /readyz", NULL, 503, "{\"store\":\"work\",\"why\":\"TIMEOUT\"}");
    assert_true(now_ms() - began_ms < 15000); /* 4 s when nothing else runs */
    began_ms = now_ms();
    free(node_ask(f, COMMAND("orders"), ORDER, 503));
    free(node_ask(f, "GET /v1/work/items", NULL, 503));
    node_resume_store();
    await(f, "GET /readyz", NULL, 200, "\"ready\":true");
    assert_served(f, COMMAND("orders"));
}

/* A rebuild closes the handle first, which its probe does not leave. */
static void test_a_rebuild_whose_store_hangs_fails_and_the_application_returns(void **state)
{
    struct node_fixture *f = *state;
    char job[64];

    node_stop(f);
    f->options.app.close_ms_max = 200;
    node_start(f);
    assert_served(f, COMMAND("orders"));
    assert_ok(pawl__failpoint_set("node.app.probe.before=delay:8000", &f->error), &f->error);
    await(f, "GET /readyz", NULL, 503, "{\"app\":\"orders\",\"why\":\"TIMEOUT\"}");
    char *begun = node_ask(
        f, "POST /v1/jobs", "{\"kind\":\"apps.rebuild\",\"parameters\":{\"app\":\"orders\"}}", 202);
    const char *id = strstr(begun, "\"job_id\":\"");
    assert_non_null(id);
    (void)snprintf(job, sizeof(job), "GET /v1/jobs/%.36s", id + strlen("\"job_id\":\""));
    job[strcspn(job, "\"")] = '\0';
    free(begun);
    await(f, job, NULL, 200, "\"TIMEOUT\"");
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_served(f, COMMAND("orders"));
    await(f, "GET /readyz", NULL, 200, "\"ready\":true");
}

static sqlite3 *lock_work(struct node_fixture *f)
{
    sqlite3 *other = NULL;

    assert_int_equal(sqlite3_open(f->work, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return other;
}

static void test_a_work_store_that_stays_locked_is_noticed_and_so_is_the_end_of_it(void **state)
{
    struct node_fixture *f = *state;

    free(node_ask(f, "POST /v1/work/tasks", "{\"task_id\":\"t\"}", 201));
    await(f, "GET /readyz", NULL, 200, "\"ready\":true");
    int64_t began_ms = now_ms();
    sqlite3 *other = lock_work(f);
    await(f, "GET /readyz", NULL, 503, "{\"store\":\"work\",\"why\":\"");
    assert_true(now_ms() - began_ms < 15000);     /* 4 s when nothing else runs */
    free(node_ask(f, "GET /metrics", NULL, 200)); /* reading goes on, and changes nothing */
    free(node_ask(f, "GET /readyz", NULL, 503));
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    await(f, "GET /readyz", NULL, 200, "\"ready\":true");
    free(node_ask(f, "POST /v1/work/tasks", "{\"task_id\":\"u\"}", 201));
}

static void test_a_work_store_that_was_replaced_is_noticed(void **state)
{
    struct node_fixture *f = *state;
    char aside[sizeof(f->work) + 8];

    free(node_ask(f, "POST /v1/work/tasks", "{\"task_id\":\"t\"}", 201));
    await(f, "GET /readyz", NULL, 200, "\"ready\":true");
    (void)snprintf(aside, sizeof(aside), "%s.aside", f->work);
    assert_int_equal(rename(f->work, aside), 0);
    FILE *file = fopen(f->work, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    await(f, "GET /readyz", NULL, 503, "{\"store\":\"work\",\"why\":\"IO\"}");
    free(node_ask(f, "POST /v1/work/tasks", "{\"task_id\":\"u\"}", 500));
    assert_int_equal(rename(aside, f->work), 0);
    await(f, "GET /readyz", NULL, 200, "\"ready\":true");
}

#define APPS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest directory[] = {
        APPS_TEST(test_a_copy_is_refused_by_name_and_the_original_is_served),
        APPS_TEST(test_the_node_listens_before_its_applications_are_open),
        APPS_TEST(test_a_busy_application_comes_when_it_is_free),
        APPS_TEST(test_a_node_that_waits_for_no_request_still_ends_in_order),
        APPS_TEST(test_a_node_without_any_application_waits_for_them),
        APPS_TEST(test_a_damaged_application_stops_none_of_the_others),
        APPS_TEST(test_a_rebuild_whose_store_hangs_fails_and_the_application_returns),
        APPS_TEST(test_what_does_not_fit_is_not_opened_and_named),
        APPS_TEST(test_a_work_store_that_stays_locked_is_noticed_and_so_is_the_end_of_it),
        APPS_TEST(test_a_work_store_that_was_replaced_is_noticed),
    };
    const struct CMUnitTest database[] = {
        APPS_TEST(test_the_node_listens_before_its_applications_are_open),
        APPS_TEST(test_a_busy_application_comes_when_it_is_free),
        APPS_TEST(test_a_database_that_is_gone_is_noticed_and_so_is_its_return),
        APPS_TEST(test_a_rebuild_whose_store_hangs_fails_and_the_application_returns),
        APPS_TEST(test_a_database_that_stalls_is_noticed_and_so_is_its_return),
        APPS_TEST(test_an_application_that_was_lost_is_opened_again_when_it_is_free),
    };
    bool is_database = argc == 2 && strcmp(argv[1], "postgres") == 0;

    return is_database ? node_suite(argc, argv, database, COUNT_OF(database))
                       : node_suite(argc, argv, directory, COUNT_OF(directory));
}
