#include "lib/nats_fixture.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/os/clock.h"

enum { AWAIT_MS_MAX = 60000, STEP_MS = 5 };

static struct nats_server *shared;
static int serial;

int64_t nats_fixture_now_ms(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) / NS_PER_MS;
}

int nats_fixture_start(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct nats_server_options options = { .settings = "max_payload: 65536\n" };
    pawl_status status = nats_server_start(&options, &shared, &error);

    (void)state;
    if (status != PAWL_OK && status != PAWL_UNSUPPORTED) {
        print_error("%s\n", error.message);
    }
    return status == PAWL_OK || status == PAWL_UNSUPPORTED ? 0 : -1;
}

int nats_fixture_end(void **state)
{
    (void)state;
    nats_server_free(shared);
    shared = NULL;
    return 0;
}

void nats_fixture_connect(struct nats_fixture *f)
{
    const struct pawl__nats_options options = { .connect_ms_max = 2000,
                                                .answer_ms_max = 2000,
                                                .reconnect_ms_min = 20,
                                                .reconnect_ms_max = 100,
                                                .ping_ms = 500 };

    pawl__nats_close(STEAL(f->nats));
    assert_ok(pawl__nats_open(nats_server_url(f->server), &options, &f->nats, &f->error),
              &f->error);
}

void nats_fixture_make_consumer(struct nats_fixture *f, uint64_t start_seq)
{
    assert_ok(
        pawl__nats_consumer_recreate(f->nats, f->stream, &f->need, start_seq, NULL, &f->error),
        &f->error);
}

int nats_fixture_open(void **state)
{
    struct nats_fixture *f = calloc(1, sizeof(*f));
    char all[48];
    const char *subjects[] = { all };

    if (shared == NULL) {
        free(f);
        skip();
    }
    f->server = shared;
    snprintf(f->stream, sizeof(f->stream), "S%d", ++serial);
    snprintf(f->subject, sizeof(f->subject), "%s.a", f->stream);
    snprintf(all, sizeof(all), "%s.>", f->stream);
    f->need = (struct pawl__nats_consumer_need){ .name = "c" };
    *state = f;
    nats_fixture_connect(f);
    struct pawl__nats_stream_options options = { .subjects = subjects, .subject_count = 1 };
    assert_ok(pawl__nats_stream_create(f->nats, f->stream, &options, NULL, &f->error), &f->error);
    nats_fixture_make_consumer(f, 0);
    return 0;
}

int nats_fixture_close(void **state)
{
    struct nats_fixture *f = *state;

    if (f != NULL) {
        pawl__nats_close(f->nats);
        free(f);
    }
    *state = NULL;
    return 0;
}

void nats_fixture_publish(struct nats_fixture *f, const char *prefix, int from, int to)
{
    for (int i = from; i <= to; i++) {
        char text[64];
        struct pawl__nats_published published;
        snprintf(text, sizeof(text), "%s%d", prefix, i);
        struct pawl__nats_outgoing message = { .subject = f->subject,
                                               .payload = pawl_view_of(text),
                                               .id = pawl_view_of(text) };
        assert_ok(pawl__nats_publish(f->nats, &message, &published, &f->error), &f->error);
        assert_int_equal(published.fate, PAWL__NATS_STORED);
        assert_false(published.duplicate);
    }
}

struct pawl__nats_anchor nats_fixture_drain(struct nats_fixture *f,
                                            struct pawl__nats_fetcher *fetcher,
                                            size_t count)
{
    const struct pawl__nats_request request = { .batch_max = 100, .expires_ms = 500 };
    struct pawl__nats_anchor last = { 0 };
    int64_t until_ms = nats_fixture_now_ms() + AWAIT_MS_MAX;
    size_t got = 0;

    while (got < count) {
        struct pawl__nats_batch batch = { 0 };
        assert_true(nats_fixture_now_ms() < until_ms);
        assert_ok(pawl__nats_fetch(fetcher, &request, &batch, &f->error), &f->error);
        for (size_t i = 0; i < batch.count; i++) {
            const struct pawl__nats_message *message = &batch.messages[i];
            last = pawl__nats_anchor_of(message->sequence, message->stored_ns, message->id);
            assert_ok(pawl__nats_ack(fetcher, message, &f->error), &f->error);
        }
        got += batch.count;
        pawl__nats_batch_done(&batch);
    }
    assert_int_equal(got, count);
    assert_ok(pawl__nats_ping(f->nats, &f->error),
              &f->error); /* the acknowledgements have arrived */
    return last;
}

struct pawl__nats_stream nats_fixture_stream(struct nats_fixture *f)
{
    struct pawl__nats_stream stream;

    assert_ok(pawl__nats_stream_info(f->nats, f->stream, &stream, &f->error), &f->error);
    return stream;
}

void nats_fixture_await(struct nats_fixture *f, enum pawl__nats_state state)
{
    int64_t until_ms = nats_fixture_now_ms() + AWAIT_MS_MAX;

    while (pawl__nats_state(f->nats) != state) {
        assert_true(nats_fixture_now_ms() < until_ms);
        poll(NULL, 0, STEP_MS);
    }
}
