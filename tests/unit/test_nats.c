/* Connecting to a real nats-server: who we are, TLS, time limits, and what is said when it does not work. */
#include "lib/nats_fixture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread/thread.h"
#include "lib/file.h"
#include "lib/tempdir.h"
#include "net/nats/nkey.h"

static const char secret[] = "s3cret/pass:w@rd";
static const char seed[] = "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU";

struct guarded {
    struct nats_server *server;
    struct pawl__nats *nats;
    pawl_error error;
};

static int end_guarded(void **state)
{
    struct guarded *g = *state;

    pawl__nats_close(g->nats);
    nats_server_free(g->server);
    free(g);
    return 0;
}

static int begin_guarded(void **state)
{
    *state = calloc(1, sizeof(struct guarded));
    return *state == NULL;
}

static void start(struct guarded *g, const char *settings)
{
    struct nats_server_options options = { .settings = settings };
    pawl_status status = nats_server_start(&options, &g->server, &g->error);

    if (status == PAWL_UNSUPPORTED) {
        skip();
    }
    assert_ok(status, &g->error);
}

static struct pawl__nats_options quick(void)
{
    return (struct pawl__nats_options){ .connect_ms_max = 2000, .answer_ms_max = 1000 };
}

static pawl_status connect_as(struct guarded *g,
                              const char *identity,
                              struct pawl__nats_options options)
{
    char url[160];

    snprintf(url, sizeof(url), "nats://%s127.0.0.1:%d", identity, nats_server_port(g->server));
    pawl__nats_close(STEAL(g->nats));
    return pawl__nats_open(url, &options, &g->nats, &g->error);
}

static void test_a_url_brings_user_and_password(void **state)
{
    struct guarded *g = *state;

    start(g, "authorization { user: ann, password: \"s3cret/pass:w@rd\" }\n");
    assert_ok(connect_as(g, "ann:s3cret%2Fpass%3Aw%40rd@", quick()), &g->error);
    assert_ok(pawl__nats_ping(g->nats, &g->error), &g->error);
    assert_null(strstr(pawl__nats_shown(g->nats), "s3cret"));

    struct pawl__nats_options options = quick();
    options.user = "ann";
    options.password = secret;
    assert_ok(connect_as(g, "", options), &g->error);

    options.password = "wr0ng-one";
    assert_status(connect_as(g, "", options), PAWL_DENIED, &g->error);
    assert_false(g->error.retryable);
    assert_null(strstr(g->error.message, "wr0ng-one"));
    assert_message(&g->error, "cannot connect to 'nats://127.0.0.1");
    assert_status(connect_as(g, "", quick()), PAWL_DENIED, &g->error);
}

static void test_a_token_comes_from_the_url_or_a_field(void **state)
{
    struct guarded *g = *state;
    struct pawl__nats_options options = quick();

    start(g, "authorization { token: \"t0ken\" }\n");
    assert_ok(connect_as(g, "t0ken@", options), &g->error);
    options.token = "t0ken";
    assert_ok(connect_as(g, "", options), &g->error);
    options.token = "other-t0ken";
    assert_status(connect_as(g, "", options), PAWL_DENIED, &g->error);
    assert_null(strstr(g->error.message, "t0ken"));
    options.user = "ann";
    assert_status(connect_as(g, "", options), PAWL_INVALID, &g->error);
    assert_message(&g->error, "give one of");
}

static void test_an_nkey_needs_only_its_seed(void **state)
{
    struct guarded *g = *state;
    char public[PAWL__NKEY_SIZE];
    char settings[160];
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 16];
    struct pawl__nats_options options = quick();

    assert_ok(pawl__nats_nkey_public(pawl_view_of(seed), public, &g->error), &g->error);
    snprintf(settings, sizeof(settings), "authorization { users: [ { nkey: %s } ] }\n", public);
    start(g, settings);
    assert_ok(tempdir_make(dir, "nkey", &g->error), &g->error);
    snprintf(path, sizeof(path), "%s/user.nk", dir);
    file_write(path, seed, strlen(seed));
    options.nkey_seed_file = path;
    for (int i = 0; i < 300;
         i++) { /* each signs another nonce; cnats cannot send one signature in 256 */
        assert_ok(connect_as(g, "", options), &g->error);
    }
    assert_ok(pawl__nats_ping(g->nats, &g->error), &g->error);

    file_write(path, "SUAMLK2Z", 8);
    assert_status(connect_as(g, "", options), PAWL_INVALID, &g->error);
    assert_message(&g->error, path);
    assert_null(strstr(g->error.message, "SUAMLK"));
    options.nkey_seed_file = "/nowhere/user.nk";
    assert_status(connect_as(g, "", options), PAWL_NOT_FOUND, &g->error);
    options.nkey_seed_file = NULL;
    options.creds_file = "/nowhere/user.creds";
    assert_status(connect_as(g, "", options), PAWL_NOT_FOUND, &g->error);
    assert_message(&g->error, "user.creds");
    tempdir_remove(dir);
}

/* As nsc writes them: an operator, an account that the server knows, and a user's JWT with its seed. */
static void test_a_creds_file_proves_who_we_are(void **state)
{
    struct guarded *g = *state;
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    char command[2 * TEMPDIR_SIZE + 512];
    struct pawl__nats_options options = quick();

    assert_ok(tempdir_make(dir, "creds", &g->error), &g->error);
    snprintf(command,
             sizeof(command),
             "python3 '%s/tests/lib/nats_creds.py' '%s'",
             getenv("PAWL_SOURCE"),
             dir);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof(path), "%s/operator.conf", dir);
    size_t len = 0;
    char *bytes = file_read(path, &len);
    char *settings = pawl__view_dup((pawl_view){ bytes, len });
    struct nats_server_options server = { .settings = settings, .no_jetstream = true };
    pawl_status status = nats_server_start(&server, &g->server, &g->error);
    if (status == PAWL_UNSUPPORTED) {
        skip();
    }
    assert_ok(status, &g->error);
    snprintf(path, sizeof(path), "%s/user.creds", dir);
    options.creds_file = path;
    assert_ok(connect_as(g, "", options), &g->error);
    assert_ok(pawl__nats_ping(g->nats, &g->error), &g->error);
    snprintf(path, sizeof(path), "%s/stranger.creds", dir);
    assert_status(connect_as(g, "", options), PAWL_DENIED, &g->error);
    file_write(path, seed, strlen(seed));
    assert_status(connect_as(g, "", options), PAWL_INVALID, &g->error);
    assert_message(&g->error, "BEGIN NATS USER JWT");
    assert_null(strstr(g->error.message, "SUAMLK"));
    free(bytes);
    free(settings);
    tempdir_remove(dir);
}

static void test_a_seed_with_one_wrong_letter_is_refused(void **state)
{
    char public[PAWL__NKEY_SIZE];
    char wrong[sizeof(seed)];
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__nats_nkey_public(pawl_view_of(seed), public, &error), &error);
    assert_string_equal(public, "UCK5N7N66OBOINFXAYC2ACJQYFSOD4VYNU6APEJTAVFZB2SVHLKGEW7L");
    for (size_t i = 0; i < strlen(seed); i++) {
        memcpy(wrong, seed, sizeof(seed));
        wrong[i] = wrong[i] == 'A' ? 'B' : 'A';
        assert_status(
            pawl__nats_nkey_public(pawl_view_of(wrong), public, &error), PAWL_INVALID, &error);
    }
    assert_status(pawl__nats_nkey_public((pawl_view){ seed, sizeof(seed) }, public, &error),
                  PAWL_INVALID,
                  &error);
}

/* ca.pem, other-ca.pem, and certificates of the first for the server (127.0.0.1) and a client. */
static void make_certificates(const char *dir)
{
    char command[4096];

    snprintf(
        command,
        sizeof(command),
        "cd '%s' && exec 2>/dev/null && key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes' "
        "&& "
        "openssl req -x509 $key -keyout ca.key -out ca.pem -subj /CN=ca -days 2 && "
        "openssl req -x509 $key -keyout other.key -out other-ca.pem -subj /CN=other -days 2 && "
        "for who in server client; do "
        "openssl req $key -keyout $who.key -out $who.csr -subj /CN=$who && "
        "printf 'subjectAltName=IP:127.0.0.1' >ext && "
        "openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
        "-extfile ext -out $who.pem || exit 1; done",
        dir);
    assert_int_equal(system(command), 0);
}

static void test_tls_checks_both_sides(void **state)
{
    struct guarded *g = *state;
    char dir[TEMPDIR_SIZE];
    char ca[TEMPDIR_SIZE + 16];
    char other[TEMPDIR_SIZE + 16];
    char cert[TEMPDIR_SIZE + 16];
    char key[TEMPDIR_SIZE + 16];
    char settings[1024];
    struct pawl__nats_options options = quick();

    assert_ok(tempdir_make(dir, "tls", &g->error), &g->error);
    make_certificates(dir);
    snprintf(ca, sizeof(ca), "%s/ca.pem", dir);
    snprintf(other, sizeof(other), "%s/other-ca.pem", dir);
    snprintf(cert, sizeof(cert), "%s/client.pem", dir);
    snprintf(key, sizeof(key), "%s/client.key", dir);
    snprintf(settings,
             sizeof(settings),
             "tls { cert_file: \"%s/server.pem\", key_file: \"%s/server.key\", ca_file: \"%s\", "
             "verify: true }\n",
             dir,
             dir,
             ca);
    start(g, settings);

    options.tls = (struct pawl__nats_tls){ .ca_file = ca, .cert_file = cert, .key_file = key };
    assert_ok(connect_as(g, "", options), &g->error);
    assert_ok(pawl__nats_ping(g->nats, &g->error), &g->error);

    options.tls.ca_file = other; /* we do not trust the server */
    assert_status(connect_as(g, "", options), PAWL_DENIED, &g->error);
    options.tls = (struct pawl__nats_tls){ .ca_file = ca, .cert_file = cert, .key_file = key };
    options.tls.server_name = "another.example";
    assert_status(connect_as(g, "", options), PAWL_DENIED, &g->error);
    options.tls = (struct pawl__nats_tls){ .ca_file = ca }; /* it does not know us */
    assert_int_not_equal(connect_as(g, "", options), PAWL_OK);
    options.tls.cert_file = cert;
    assert_status(connect_as(g, "", options), PAWL_INVALID, &g->error);
    assert_message(&g->error, "go together");
    options.tls = (struct pawl__nats_tls){ .ca_file = "/nowhere/ca.pem" };
    assert_status(connect_as(g, "", options), PAWL_INVALID, &g->error);
    options.tls = (struct pawl__nats_tls){ 0 }; /* plain, where TLS is required */
    assert_status(connect_as(g, "", options), PAWL_DENIED, &g->error);
    tempdir_remove(dir);
}

static void test_tls_is_not_given_up_when_the_server_has_none(void **state)
{
    struct guarded *g = *state;
    struct pawl__nats_options options = quick();

    start(g, NULL);
    options.tls.required = true;
    assert_status(connect_as(g, "", options), PAWL_DENIED, &g->error);
}

static void test_a_server_that_is_not_there_is_unavailable(void **state)
{
    struct guarded *g = *state;
    struct pawl__nats_options options = quick();

    assert_status(pawl__nats_open("nats://127.0.0.1:9", &options, &g->nats, &g->error),
                  PAWL_UNAVAILABLE,
                  &g->error);
    assert_true(g->error.retryable);
    assert_null(g->nats);
}

static void test_a_stalled_server_holds_nobody(void **state)
{
    struct guarded *g = *state;
    struct pawl__nats_options options = quick();
    struct pawl__nats *second = NULL;
    struct pawl__nats_stream stream;

    start(g, NULL);
    options.connect_ms_max = 500;
    options.answer_ms_max = 500;
    assert_ok(connect_as(g, "", options), &g->error);
    nats_server_stall(g->server);

    int64_t begin_ms = nats_fixture_now_ms();
    assert_status(pawl__nats_ping(g->nats, &g->error), PAWL_TIMEOUT, &g->error);
    assert_true(g->error.retryable);
    assert_status(
        pawl__nats_stream_info(g->nats, "S", &stream, &g->error), PAWL_TIMEOUT, &g->error);
    assert_message(&g->error, "stream 'S': no answer within 500 ms");
    pawl_status status = pawl__nats_open(nats_server_url(g->server), &options, &second, &g->error);
    assert_true(status == PAWL_TIMEOUT || status == PAWL_UNAVAILABLE);
    pawl__nats_close(STEAL(g->nats));
    assert_true(nats_fixture_now_ms() - begin_ms < 6000);
    nats_server_resume(g->server);
}

struct half_server {
    int listener;
    int accepted;
};

/* Greets like a server that wants TLS, and says nothing more. */
static void greet_and_stop(void *context)
{
    static const char info[] = "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"headers\":true,"
                               "\"max_payload\":1048576,\"tls_required\":true}\r\n";
    struct half_server *half = context;

    half->accepted = accept(half->listener, NULL, NULL);
    if (half->accepted >= 0 && write(half->accepted, info, strlen(info)) < 0) {
        close(half->accepted);
    }
}

static void test_a_server_that_stops_in_the_tls_handshake_holds_nobody(void **state)
{
    struct guarded *g = *state;
    struct half_server half = { .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);
    struct pawl__thread thread = { 0 };
    char url[64];
    struct pawl__nats_options options = quick();

    options.connect_ms_max = 300;
    options.tls.required = true;
    assert_int_equal(bind(half.listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(half.listener, 4), 0);
    assert_int_equal(getsockname(half.listener, (struct sockaddr *)&address, &len), 0);
    snprintf(url, sizeof(url), "nats://127.0.0.1:%d", ntohs(address.sin_port));
    assert_ok(pawl__thread_start(&thread, "half", greet_and_stop, &half, &g->error), &g->error);
    int64_t begin_ms = nats_fixture_now_ms();
    assert_status(pawl__nats_open(url, &options, &g->nats, &g->error), PAWL_TIMEOUT, &g->error);
    assert_message(&g->error, "the server stopped in the middle of it");
    assert_true(nats_fixture_now_ms() - begin_ms < 4000);
    pawl__thread_join(&thread);
    close(half.accepted); /* which ends the thread that was left behind */
    close(half.listener);
}

static void test_a_killed_server_is_reconnected_to(void **state)
{
    struct nats_fixture *f = *state;
    struct pawl__nats_stream stream;

    uint64_t before = pawl__nats_reconnects(f->nats);
    assert_ok(nats_server_kill(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_RECONNECTING);
    assert_status(pawl__nats_stream_info(f->nats, f->stream, &stream, &f->error),
                  PAWL_UNAVAILABLE,
                  &f->error);
    assert_true(f->error.retryable);
    assert_ok(nats_server_restart(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_CONNECTED);
    nats_fixture_stream(f);
    assert_true(pawl__nats_reconnects(f->nats) > before);
    assert_string_equal(pawl__nats_state_name(pawl__nats_state(f->nats)), "connected");
}

static void test_a_connection_closes_while_its_server_is_away(void **state)
{
    struct nats_fixture *f = *state;

    assert_ok(nats_server_kill(f->server, &f->error), &f->error);
    nats_fixture_await(f, PAWL__NATS_RECONNECTING);
    int64_t begin_ms = nats_fixture_now_ms();
    pawl__nats_close(STEAL(f->nats));
    assert_true(nats_fixture_now_ms() - begin_ms < 5000);
    assert_ok(nats_server_restart(f->server, &f->error), &f->error);
}

static void test_what_the_server_forbids_is_denied(void **state)
{
    struct guarded *g = *state;
    struct pawl__nats_stream stream;
    struct pawl__nats_published published;
    struct pawl__nats_outgoing message = { .subject = "orders.new" };
    struct pawl__nats_options options = quick();

    start(g,
          "authorization { users: [ { user: ann, password: x, permissions: { publish: \"nothing\", "
          "subscribe: \"_INBOX.>\" } } ] }\n");
    options.user = "ann";
    options.password = "x";
    assert_ok(connect_as(g, "", options), &g->error);
    assert_status(pawl__nats_stream_info(g->nats, "S", &stream, &g->error), PAWL_DENIED, &g->error);
    assert_message(&g->error, "the server refuses it");
    assert_status(
        pawl__nats_publish(g->nats, &message, &published, &g->error), PAWL_DENIED, &g->error);
    assert_int_equal(published.fate, PAWL__NATS_NOT_STORED);
}

static void test_a_server_without_jetstream_is_named(void **state)
{
    struct guarded *g = *state;
    struct nats_server_options options = { .no_jetstream = true };
    struct pawl__nats_stream stream;

    pawl_status status = nats_server_start(&options, &g->server, &g->error);
    if (status == PAWL_UNSUPPORTED) {
        skip();
    }
    assert_ok(connect_as(g, "", quick()), &g->error);
    assert_status(
        pawl__nats_stream_info(g->nats, "S", &stream, &g->error), PAWL_UNSUPPORTED, &g->error);
    assert_message(&g->error, "runs without JetStream; start it with '-js'");
}

static void test_open_refuses_what_can_never_work(void **state)
{
    struct pawl__nats *nats = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__nats_options options = { .connect_ms_max = -1 };

    (void)state;
    assert_status(pawl__nats_open(NULL, NULL, &nats, &error), PAWL_INVALID, &error);
    assert_status(pawl__nats_open("", NULL, &nats, &error), PAWL_INVALID, &error);
    assert_status(pawl__nats_open("nats://127.0.0.1", NULL, NULL, &error), PAWL_INVALID, &error);
    assert_status(
        pawl__nats_open("nats://127.0.0.1", &options, &nats, &error), PAWL_INVALID, &error);
    assert_message(&error, "connect_ms_max");
    assert_status(
        pawl__nats_open("nats://a:hunter2@b@c:x", NULL, &nats, &error), PAWL_INVALID, &error);
    assert_null(strstr(error.message, "hunter2"));
    pawl__nats_close(NULL);
}

#define guarded_test(function) cmocka_unit_test_setup_teardown(function, begin_guarded, end_guarded)

int main(void)
{
    const struct CMUnitTest tests[] = {
        guarded_test(test_a_url_brings_user_and_password),
        guarded_test(test_a_token_comes_from_the_url_or_a_field),
        guarded_test(test_an_nkey_needs_only_its_seed),
        guarded_test(test_a_creds_file_proves_who_we_are),
        cmocka_unit_test(test_a_seed_with_one_wrong_letter_is_refused),
        guarded_test(test_tls_checks_both_sides),
        guarded_test(test_tls_is_not_given_up_when_the_server_has_none),
        guarded_test(test_a_server_that_is_not_there_is_unavailable),
        guarded_test(test_a_stalled_server_holds_nobody),
        guarded_test(test_a_server_that_stops_in_the_tls_handshake_holds_nobody),
        nats_test(test_a_killed_server_is_reconnected_to),
        nats_test(test_a_connection_closes_while_its_server_is_away),
        guarded_test(test_what_the_server_forbids_is_denied),
        guarded_test(test_a_server_without_jetstream_is_named),
        cmocka_unit_test(test_open_refuses_what_can_never_work),
    };

    return cmocka_run_group_tests_name("nats", tests, nats_fixture_start, nats_fixture_end);
}
