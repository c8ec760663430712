/* Every route of the node, asked without a token, with one that is not good, and with one of each scope. It
 * walks the table of routes: one that is added and says nothing of its scope fails here. */
#include "lib/node_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "net/http/client.h"
#include "server/node_internal.h"
#include "server/tokens/store.h"
#include "store/schemas.h"
#include "store/sqlite/sqlite.h"

struct kind {
    const char *name;
    enum pawl__scope scope; /* of a token that is good; UNDECLARED: it is not */
    char header[TOKEN_SECRET_SIZE + 64];
};

enum { NONE, WRONG, EXPIRED, REVOKED, READ, WRITE, ADMIN, KINDS };

static void make(struct pawl__tokens *tokens,
                 struct kind *kind,
                 enum pawl__scope scope,
                 int64_t expires_ms,
                 struct pawl__token *ret_token)
{
    char secret[TOKEN_SECRET_SIZE];
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__serve_tokens_create(
                  tokens, pawl_view_of("t"), scope, expires_ms, ret_token, secret, &error),
              &error);
    (void)snprintf(kind->header, sizeof(kind->header), "Authorization: Bearer %s\r\n", secret);
}

static void make_kinds(const char *path, struct kind kinds[KINDS])
{
    struct pawl__tokens *tokens = NULL;
    struct pawl__token token;
    pawl_error error = PAWL_ERROR_INIT;

    kinds[NONE] = (struct kind){ .name = "none" };
    kinds[WRONG] = (struct kind){ .name = "wrong", .header = "Authorization: Bearer pawl_00\r\n" };
    kinds[EXPIRED] = (struct kind){ .name = "expired" };
    kinds[REVOKED] = (struct kind){ .name = "revoked" };
    kinds[READ] = (struct kind){ .name = "read", .scope = PAWL__SCOPE_READ };
    kinds[WRITE] = (struct kind){ .name = "write", .scope = PAWL__SCOPE_WRITE };
    kinds[ADMIN] = (struct kind){ .name = "admin", .scope = PAWL__SCOPE_ADMIN };
    assert_ok(pawl__serve_tokens_open(path, true, pawl__clock_real(), &tokens, &error), &error);
    make(tokens, &kinds[EXPIRED], PAWL__SCOPE_ADMIN, 1, &token);
    int64_t end_us = token.expires_at_us;
    make(tokens, &kinds[REVOKED], PAWL__SCOPE_ADMIN, 0, &token);
    assert_ok(pawl__serve_tokens_revoke(tokens, pawl_view_of(token.token_id), &error), &error);
    for (int i = READ; i <= ADMIN; i++) {
        make(tokens, &kinds[i], kinds[i].scope, 0, &token);
    }
    pawl__serve_tokens_close(tokens);
    while (pawl__wall_us(pawl__clock_real()) < end_us) { /* a millisecond */
    }
}

/* "/v1/apps/{app}" as "/v1/apps/1". */
static void fill_in(const char *pattern, char *target, size_t size)
{
    size_t len = 0;

    for (const char *at = pattern; *at != '\0' && len + 1 < size; at++) {
        if (*at == '{') {
            at = strchr(at, '}');
            assert_non_null(at);
            target[len++] = '1';
        } else {
            target[len++] = *at;
        }
    }
    target[len] = '\0';
}

static int ask(struct node_fixture *f,
               const struct pawl__http_route *route,
               const struct kind *kind)
{
    static const char *const words[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };
    char target[256];
    char what[300];

    fill_in(route->pattern, target, sizeof(target));
    (void)snprintf(what, sizeof(what), "%s %s", words[route->method], target);
    struct http_reply reply =
        http_ask(f->address, what, kind->header, route->takes_json ? "{}" : NULL);
    int code = reply.code;
    char *challenge = http_reply_header(&reply, "WWW-Authenticate");
    assert_int_equal(challenge != NULL, code == 401);
    free(challenge);
    http_reply_done(&reply);
    return code;
}

static int expected(const struct pawl__http_route *route, const struct kind *kind)
{
    if (route->scope == PAWL__SCOPE_PUBLIC) {
        return 0; /* anything but a refusal */
    }
    if (kind->scope == PAWL__SCOPE_UNDECLARED) {
        return 401;
    }
    return kind->scope < (enum pawl__scope)route->scope ? 403 : 0;
}

static void test_every_route_asks_for_its_scope(void **state)
{
    struct node_fixture *f = *state;
    struct kind kinds[KINDS];
    char path[TEMPDIR_SIZE + 32];

    node_stop(f);
    (void)snprintf(path, sizeof(path), "%s/tokens.sqlite", f->dir);
    make_kinds(path, kinds);
    f->options.tokens = path;
    node_start(f);
    for (size_t i = 0; i < f->node->table.count; i++) {
        const struct pawl__http_route *route = &f->node->table.routes[i];

        assert_int_not_equal(route->scope, PAWL__SCOPE_UNDECLARED);
        for (int k = 0; k < KINDS; k++) {
            int wanted = expected(route, &kinds[k]);
            int code = ask(f, route, &kinds[k]);
            bool refused = code == 401 || (code == 403 && wanted != 0);

            if (wanted == 0 ? refused : code != wanted) {
                fail_msg("%s with %s: %d", route->pattern, kinds[k].name, code);
            }
        }
    }
}

/* "202 {...}" of a request through the socket, without a token. */
static unsigned ask_locally(const char *path, const char *method, const char *target, bool body)
{
    struct pawl__http_client *client = NULL;
    struct pawl__http_reply reply;
    pawl_error error = PAWL_ERROR_INIT;
    int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + 30 * NS_PER_S;
    const struct pawl__http_ask ask = {
        .method = method,
        .target = target,
        .body = body ? pawl_view_of("{}") : (pawl_view){ NULL, 0 },
        .deadline_ns = deadline_ns,
        .body_bytes_max = 1 << 20,
    };

    assert_ok(pawl__http_client_open_unix(path, NULL, deadline_ns, &client, &error), &error);
    assert_ok(pawl__http_client_ask(client, &ask, &reply, &error), &error);
    pawl__http_client_close(client);
    return reply.code;
}

static void test_the_socket_needs_no_token_for_any_route(void **state)
{
    static const char *const words[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };
    struct node_fixture *f = *state;
    struct kind kinds[KINDS];
    char path[TEMPDIR_SIZE + 32];
    char socket[TEMPDIR_SIZE + 32];

    node_stop(f);
    (void)snprintf(path, sizeof(path), "%s/tokens.sqlite", f->dir);
    (void)snprintf(socket, sizeof(socket), "%s/pawl.sock", f->dir);
    make_kinds(path, kinds);
    f->options.tokens = path;
    f->options.socket = socket;
    node_start(f);
    for (size_t i = 0; i < f->node->table.count; i++) {
        const struct pawl__http_route *route = &f->node->table.routes[i];
        char target[256];

        fill_in(route->pattern, target, sizeof(target));
        if (strstr(target, "/changes") != NULL) {
            continue; /* a stream, which does not end */
        }
        unsigned code = ask_locally(socket, words[route->method], target, route->takes_json);
        if (code == 401 || code == 403) {
            fail_msg("%s through the socket: %u", route->pattern, code);
        }
    }
}

/* What a kind of job needs is more than what its route does. */
static void test_every_kind_of_job_asks_for_its_scope(void **state)
{
    struct node_fixture *f = *state;
    struct kind kinds[KINDS];
    char path[TEMPDIR_SIZE + 32];
    size_t seen = 0;

    node_stop(f);
    (void)snprintf(path, sizeof(path), "%s/tokens.sqlite", f->dir);
    make_kinds(path, kinds);
    f->options.tokens = path;
    node_start(f);
    for (size_t i = 0; i < f->node->part_count; i++) {
        for (size_t k = 0; k < f->node->parts[i]->job_count; k++) {
            const struct pawl__job_kind *job = &f->node->parts[i]->jobs[k];
            char body[256];

            assert_int_not_equal(job->scope, PAWL__SCOPE_UNDECLARED);
            (void)snprintf(body, sizeof(body), "{\"kind\":\"%s\"}", job->name);
            for (int token = READ; token <= ADMIN; token++) {
                struct http_reply reply =
                    http_ask(f->address, "POST /v1/jobs", kinds[token].header, body);

                /* 400: its parameters are missing. 404: what it is about is not there */
                bool is_denied = kinds[token].scope < job->scope;
                assert_true(is_denied ? reply.code == 403 : reply.code == 400 || reply.code == 404);
                http_reply_done(&reply);
                seen++;
            }
        }
    }
    assert_true(seen >= 9);
}

static void test_a_token_counts_from_when_it_is_made(void **state)
{
    struct node_fixture *f = *state;
    struct kind kinds[KINDS];
    char path[TEMPDIR_SIZE + 32];

    node_stop(f);
    (void)snprintf(path, sizeof(path), "%s/tokens.sqlite", f->dir);
    f->options.tokens = path;
    node_start(f);
    node_expect(f, "GET /v1/apps", NULL, 200, "");
    make_kinds(path, kinds);
    node_expect(f, "GET /v1/apps", NULL, 401, "NO_TOKEN");
    struct http_reply reply = http_ask(f->address, "GET /v1/apps", kinds[READ].header, NULL);
    assert_int_equal(reply.code, 200);
    http_reply_done(&reply);
    reply = http_ask(f->address, "POST /v1/work/claims", kinds[READ].header, "{}");
    assert_int_equal(reply.code, 403);
    assert_non_null(strstr(reply.body, "WRONG_SCOPE"));
    assert_non_null(strstr(reply.body, "needs a token of scope 'write'"));
    http_reply_done(&reply);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A running node keeps answering beside an empty file, and a damaged one is the node's fault: it lets nobody in, and
 * the answer names no file. */
static void test_a_broken_file_is_no_fault_of_the_client(void **state)
{
    struct node_fixture *f = *state;
    char path[TEMPDIR_SIZE + 32];

    node_stop(f);
    (void)snprintf(path, sizeof(path), "%s/tokens.sqlite", f->dir);
    f->options.tokens = path;
    node_start(f);
    write_file(path, "");
    node_expect(f, "GET /v1/apps", NULL, 200, "");
    assert_int_equal(remove(path), 0);
    struct pawl__sqlite_options options = PAWL__SQLITE_OPTIONS_INIT;
    struct pawl__sqlite *other = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    options.application_id = 1;
    options.schema = &pawl__schema_sqlite_jobs; /* another store */
    assert_ok(pawl__sqlite_open(path, &options, &other, &error), &error);
    pawl__sqlite_close(other);
    struct http_reply reply = http_ask(f->address, "GET /v1/apps", "", NULL);
    assert_int_equal(reply.code, 500);
    assert_null(strstr(reply.body, "tokens.sqlite"));
    http_reply_done(&reply);
}

static void test_other_machines_need_tokens_and_tls(void **state)
{
    static const struct {
        const char *listen;
        struct pawl__serve_reach reach;
        const char *says; /* NULL: it is fine */
    } rows[] = {
        { "127.0.0.1:0", { false, false, false }, NULL },
        { "[::1]:0", { false, false, false }, NULL },
        { "0.0.0.0:0", { false, false, false }, "pawl token create" },
        { "0.0.0.0:0", { false, true, true }, "pawl token create" },
        { "[::]:0", { true, false, false }, "--unsafe-plain" },
        { "10.0.0.1:0", { true, true, false }, NULL },
        { "10.0.0.1:0", { true, false, true }, NULL },
        { "nowhere", { true, true, true }, "no address to listen on" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__serve_check_address(rows[i].listen, &rows[i].reach, &error);

        assert_status(status, rows[i].says == NULL ? PAWL_OK : PAWL_INVALID, &error);
        if (rows[i].says != NULL) {
            assert_message(&error, rows[i].says);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        node_test(test_every_route_asks_for_its_scope),
        node_test(test_the_socket_needs_no_token_for_any_route),
        node_test(test_every_kind_of_job_asks_for_its_scope),
        node_test(test_a_token_counts_from_when_it_is_made),
        node_test(test_a_broken_file_is_no_fault_of_the_client),
        node_test(test_other_machines_need_tokens_and_tls),
    };

    return node_suite(argc, argv, tests, COUNT_OF(tests));
}
