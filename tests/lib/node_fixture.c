#include "lib/node_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "lib/answers.h"
#include "lib/pg_fixture.h"

enum { PATIENCE_MS = 30000 };

static const char *suite_backend;

/* One server for the program; each test begins with an empty database. */
static struct pg_fixture postgres;

int node_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;

    if (argc != 2) {
        fprintf(stderr, "usage: %s memory|sqlite|postgres\n", argv[0]);
        return 2;
    }
    suite_backend = argv[1];
    if (node_is("postgres")) {
        status = pg_server_start(
            &(struct pg_server_options){ .settings = NULL }, &postgres.server, &error);
    }
    if (status == PAWL_UNSUPPORTED) {
        printf("1..0 # SKIP %s\n", error.message);
        return 0;
    }
    if (status != PAWL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    answers_record();
    int failed = _cmocka_run_group_tests(suite_backend, tests, count, NULL, NULL);
    pg_server_free(postgres.server);
    return failed + answers_check();
}

bool node_is(const char *backend)
{
    return strcmp(suite_backend, backend) == 0;
}

void node_start(struct node_fixture *f)
{
    assert_ok(pawl__serve_node_open(&f->options, &f->node, &f->error), &f->error);
    (void)snprintf(f->address, sizeof(f->address), "%s", pawl__serve_listens_on(f->node));
}

void node_stop(struct node_fixture *f)
{
    assert_ok(pawl__serve_node_close(STEAL(f->node), &f->error), &f->error);
}

void node_break_store(struct node_fixture *f)
{
    if (node_is("postgres")) {
        assert_ok(pg_server_stop(postgres.server, SIGINT, &f->error), &f->error);
        return;
    }
    FILE *file = fopen(f->work, "w");
    assert_non_null(file);
    assert_true(fputs("this is no database, and long enough to be seen not to be one", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void node_mend_store(struct node_fixture *f)
{
    if (node_is("postgres")) {
        assert_ok(pg_server_restart(postgres.server, &f->error), &f->error);
    } else {
        assert_int_equal(unlink(f->work), 0);
    }
}

void node_end_sessions(void)
{
    pg_admin(&postgres,
             "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
             " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'");
}

void node_stall_store(void)
{
    pg_server_stall(postgres.server);
}

void node_resume_store(void)
{
    if (node_is("postgres")) {
        pg_server_resume(postgres.server);
    }
}

int node_fixture_setup(void **state)
{
    struct node_fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_ok(tempdir_make(f->dir, "node", &f->error), &f->error);
    (void)snprintf(f->place, sizeof(f->place), "%s/apps", f->dir);
    if (node_is("postgres")) {
        pg_admin(&postgres, "DROP SCHEMA IF EXISTS pawl CASCADE");
        (void)snprintf(f->work, sizeof(f->work), "%s", pg_server_url(postgres.server));
    } else if (node_is("sqlite")) {
        (void)snprintf(f->work, sizeof(f->work), "%s/work.sqlite", f->dir);
    } else {
        (void)snprintf(f->work, sizeof(f->work), "memory:");
    }
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
    f->options.http.workers_isolated = 4;
    node_start(f);
    *state = f;
    return 0;
}

int node_fixture_teardown(void **state)
{
    struct node_fixture *f = *state;

    node_resume_store();
    node_stop(f);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

char *node_ask(struct node_fixture *f, const char *what, const char *body, int code)
{
    struct http_reply reply = http_ask(f->address, what, NULL, body);

    if (reply.code != code) {
        fail_msg("%s: %d instead of %d: %s", what, reply.code, code, reply.body);
    }
    char *text = STEAL(reply.body);
    http_reply_done(&reply);
    return text;
}

void node_expect(
    struct node_fixture *f, const char *what, const char *body, int code, const char *part)
{
    char *text = node_ask(f, what, body, code);

    if (strstr(text, part) == NULL) {
        fail_msg("%s: '%s' is not in '%s'", what, part, text);
    }
    free(text);
}

int64_t node_number(const char *json, const char *key)
{
    char quoted[64];

    (void)snprintf(quoted, sizeof(quoted), "\"%s\":", key);
    const char *at = strstr(json, quoted);
    if (at == NULL) {
        fail_msg("no %s in '%s'", key, json);
        return 0;
    }
    return strtoll(at + strlen(quoted), NULL, 10);
}
