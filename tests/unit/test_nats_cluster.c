/* Three servers on loopback: a stream with three replicas survives the end of any one of them. */
#include "lib/nats_fixture.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/port.h"

enum { NODES = 3, AWAIT_MS_MAX = 60000, MESSAGES = 200 };

struct cluster {
    struct nats_server *nodes[NODES];
    char settings[NODES][400];
    char names[NODES][8];
    char url[256];
    struct pawl__nats *nats;
    pawl_error error;
};

static void start(struct cluster *c)
{
    int ports[NODES];

    for (int i = 0; i < NODES; i++) {
        assert_ok(port_free(&ports[i], &c->error), &c->error);
    }
    for (int i = 0; i < NODES; i++) {
        snprintf(c->names[i], sizeof(c->names[i]), "n%d", i);
        snprintf(c->settings[i],
                 sizeof(c->settings[i]),
                 "cluster { name: \"test\", listen: \"127.0.0.1:%d\", routes: [\n"
                 "nats://127.0.0.1:%d\nnats://127.0.0.1:%d\nnats://127.0.0.1:%d\n] }\n",
                 ports[i],
                 ports[0],
                 ports[1],
                 ports[2]);
        struct nats_server_options options = { .settings = c->settings[i], .name = c->names[i] };
        pawl_status status = nats_server_start(&options, &c->nodes[i], &c->error);
        if (status == PAWL_UNSUPPORTED) {
            skip();
        }
        assert_ok(status, &c->error);
    }
    snprintf(c->url,
             sizeof(c->url),
             "%s,%s,%s",
             nats_server_url(c->nodes[0]),
             nats_server_url(c->nodes[1]),
             nats_server_url(c->nodes[2]));
}

/* Until a leader is elected everything is unavailable, and says that it may be tried again. */
static bool again(struct cluster *c, pawl_status status, int64_t until_ms)
{
    if (status == PAWL_OK) {
        return false;
    }
    if (!c->error.retryable || nats_fixture_now_ms() > until_ms) {
        fail_msg("%s: %s", pawl_status_name(status), c->error.message);
    }
    poll(NULL, 0, 50);
    return true;
}

static void make_stream(struct cluster *c)
{
    const char *subjects[] = { "orders.>" };
    const struct pawl__nats_stream_options options = { .subjects = subjects,
                                                       .subject_count = 1,
                                                       .replicas = NODES };
    const struct pawl__nats_consumer_need need = { .name = "c" };
    int64_t until_ms = nats_fixture_now_ms() + AWAIT_MS_MAX;

    while (again(
        c, pawl__nats_stream_create(c->nats, "ORDERS", &options, NULL, &c->error), until_ms)) {
    }
    while (again(
        c, pawl__nats_consumer_create(c->nats, "ORDERS", &need, 0, NULL, &c->error), until_ms)) {
    }
}

static void publish(struct cluster *c, int from, int to)
{
    int64_t until_ms = nats_fixture_now_ms() + AWAIT_MS_MAX;

    for (int i = from; i <= to; i++) {
        char id[16];
        struct pawl__nats_published published;
        snprintf(id, sizeof(id), "e%d", i);
        struct pawl__nats_outgoing message = { .subject = "orders.new",
                                               .payload = pawl_view_of(id),
                                               .id = pawl_view_of(id) };
        while (again(c, pawl__nats_publish(c->nats, &message, &published, &c->error), until_ms)) {
        }
    }
}

/* Every message at least once, whatever comes again. */
static void drain(struct cluster *c, struct pawl__nats_fetcher *fetcher, bool *seen, size_t count)
{
    const struct pawl__nats_request request = { .batch_max = 50, .expires_ms = 1000 };
    int64_t until_ms = nats_fixture_now_ms() + AWAIT_MS_MAX;
    size_t found = 0;

    while (found < count) {
        struct pawl__nats_batch batch = { 0 };
        assert_true(nats_fixture_now_ms() < until_ms);
        if (again(c, pawl__nats_fetch(fetcher, &request, &batch, &c->error), until_ms)) {
            continue;
        }
        for (size_t i = 0; i < batch.count; i++) {
            uint64_t at = batch.messages[i].sequence;
            assert_in_range(at, 1, MESSAGES);
            found += !seen[at];
            seen[at] = true;
            pawl_status status = pawl__nats_ack(fetcher, &batch.messages[i], &c->error);
            assert_true(status == PAWL_OK || c->error.retryable);
        }
        pawl__nats_batch_done(&batch);
    }
}

static void test_a_stream_of_three_survives_the_loss_of_one(void **state)
{
    struct cluster *c = *state;
    struct pawl__nats_fetcher *fetcher = NULL;
    struct pawl__nats_stream stream;
    bool seen[MESSAGES + 1] = { false };
    const struct pawl__nats_options options = { .connect_ms_max = 2000,
                                                .answer_ms_max = 2000,
                                                .reconnect_ms_min = 20,
                                                .reconnect_ms_max = 200 };
    int64_t until_ms = nats_fixture_now_ms() + AWAIT_MS_MAX;

    start(c);
    assert_ok(pawl__nats_open(c->url, &options, &c->nats, &c->error), &c->error);
    make_stream(c);
    publish(c, 1, MESSAGES / 2);
    assert_ok(pawl__nats_fetcher_open(c->nats, "ORDERS", "c", &fetcher, &c->error), &c->error);
    drain(c, fetcher, seen, MESSAGES / 2);

    for (int i = 0; i < 2;
         i++) { /* one after the other: one of them had our connection or led the stream */
        assert_ok(nats_server_kill(c->nodes[i], &c->error), &c->error);
        publish(c, MESSAGES / 2 + 1 + i * MESSAGES / 4, MESSAGES / 2 + (i + 1) * MESSAGES / 4);
        assert_ok(nats_server_restart(c->nodes[i], &c->error), &c->error);
    }
    drain(c, fetcher, seen, MESSAGES / 2);
    while (again(c, pawl__nats_stream_info(c->nats, "ORDERS", &stream, &c->error), until_ms)) {
    }
    assert_int_equal(stream.replicas, NODES);
    assert_int_equal(stream.messages, MESSAGES);
    pawl__nats_fetcher_close(fetcher);
}

static int begin(void **state)
{
    *state = calloc(1, sizeof(struct cluster));
    return *state == NULL;
}

static int end(void **state)
{
    struct cluster *c = *state;

    pawl__nats_close(c->nats);
    for (int i = 0; i < NODES; i++) {
        nats_server_free(c->nodes[i]);
    }
    free(c);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_stream_of_three_survives_the_loss_of_one, begin, end),
    };

    return cmocka_run_group_tests_name("nats_cluster", tests, NULL, NULL);
}
