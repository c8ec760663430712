#include "lib/source_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pawl/ledger.h>

#include "base/core/buf.h"
#include "delivery/memory/source.h"
#include "delivery/sources/file.h"
#include "delivery/sources/jetstream.h"
#include "delivery/sources/ledger.h"
#include "lib/nats_server.h"
#include "net/nats/publish.h"
#include "net/nats/stream.h"

enum { AWAIT_MS_MAX = 10000, BATCH_MAX = 128, PAYLOAD_MAX = 64 };

/* --- memory --- */

static void memory_make(struct source_fixture *f)
{
    struct delivery_memory_source *memory = calloc(1, sizeof(*memory));

    *memory = pawl__delivery_memory_source(pawl__clock_real(), 77, 30 * NS_PER_S);
    f->own = memory;
}

static void memory_open(struct source_fixture *f)
{
    f->source = &((struct delivery_memory_source *)f->own)->base;
}

static void memory_publish(struct source_fixture *f, const char *payload)
{
    struct delivery_memory_source *memory = f->own;
    uint64_t sequence = 0;
    struct delivery_message message = { .subject = pawl_view_of("s"),
                                        .payload = pawl_view_of(payload),
                                        .place.stored_ns = 1000 + (int64_t)memory->last };

    assert_ok(pawl__delivery_memory_publish(memory, &message, &sequence, &f->error), &f->error);
}

static void memory_destroy(struct source_fixture *f)
{
    pawl__delivery_memory_source_done(f->own);
    free(f->own);
}

/* --- jetstream --- */

static struct nats_server *server;
static int serial;

struct jetstream_own {
    char stream[24];
    char subject[32];
    const char *subjects[1];
    struct pawl__nats *producer;
    struct pawl__nats_options connection;
};

static void jetstream_make(struct source_fixture *f)
{
    if (server == NULL) {
        skip();
    }
    struct jetstream_own *own = calloc(1, sizeof(*own));
    snprintf(own->stream, sizeof(own->stream), "D%d", ++serial);
    snprintf(own->subject, sizeof(own->subject), "%s.a", own->stream);
    own->subjects[0] = own->subject;
    own->connection = (struct pawl__nats_options){ .connect_ms_max = 3000, .answer_ms_max = 3000 };
    f->own = own;
    assert_ok(pawl__nats_open(nats_server_url(server), &own->connection, &own->producer, &f->error),
              &f->error);
}

static void jetstream_open(struct source_fixture *f)
{
    struct jetstream_own *own = f->own;
    struct delivery_jetstream_options options = { .url = nats_server_url(server),
                                                  .connection = &own->connection,
                                                  .stream = own->stream,
                                                  .consumer = "c",
                                                  .create_stream = true,
                                                  .subjects = own->subjects,
                                                  .subject_count = 1 };

    assert_ok(pawl__delivery_jetstream_open(&options, &f->source, &f->error), &f->error);
}

static void jetstream_publish(struct source_fixture *f, const char *payload)
{
    struct jetstream_own *own = f->own;
    struct pawl__nats_published published;
    struct pawl__nats_outgoing message = { .subject = own->subject,
                                           .payload = pawl_view_of(payload) };

    assert_ok(pawl__nats_publish(own->producer, &message, &published, &f->error), &f->error);
}

static void jetstream_destroy(struct source_fixture *f)
{
    struct jetstream_own *own = f->own;

    pawl__nats_close(own->producer);
    free(own);
}

/* --- file --- */

static void file_make(struct source_fixture *f)
{
    char *path = malloc(TEMPDIR_SIZE + 16);

    snprintf(path, TEMPDIR_SIZE + 16, "%s/events.jsonl", f->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    f->own = path;
}

static void file_open(struct source_fixture *f)
{
    struct delivery_file_options options = { .path = f->own };

    assert_ok(pawl__delivery_file_open(&options, &f->source, &f->error), &f->error);
}

static void file_publish(struct source_fixture *f, const char *payload)
{
    FILE *file = fopen(f->own, "ae");

    assert_non_null(file);
    fprintf(file, "%s\n", payload);
    assert_int_equal(fclose(file), 0);
}

static void file_destroy(struct source_fixture *f)
{
    free(f->own);
}

/* --- ledger --- */

static void ledger_make(struct source_fixture *f)
{
    pawl_ledger *ledger = NULL;
    char path[TEMPDIR_SIZE + 16];

    snprintf(path, sizeof(path), "%s/ledger.db", f->dir);
    assert_ok(pawl_ledger_open(path, NULL, &ledger, &f->error), &f->error);
    f->own = ledger;
}

static void ledger_open(struct source_fixture *f)
{
    struct delivery_ledger_options options = { .ledger = f->own };

    assert_ok(pawl__delivery_ledger_open(&options, &f->source, &f->error), &f->error);
}

static void ledger_publish(struct source_fixture *f, const char *payload)
{
    char id[24];
    snprintf(id, sizeof(id), "e%d", ++serial);
    pawl_event event = { .size = sizeof(pawl_event),
                         .id = pawl_view_of(id),
                         .run_id = pawl_view_of("run"),
                         .kind = pawl_view_of("order"),
                         .actor = pawl_view_of("ann"),
                         .payload = pawl_view_of(payload) };

    assert_ok(pawl_ledger_append(f->own, &event, NULL, &f->error), &f->error);
}

static void ledger_destroy(struct source_fixture *f)
{
    pawl_ledger_close(f->own, 0, NULL);
}

/* --- all --- */

static const struct source_kind kinds[] = {
    { "memory", memory_make, memory_open, memory_publish, memory_destroy },
    { "jetstream", jetstream_make, jetstream_open, jetstream_publish, jetstream_destroy },
    { "file", file_make, file_open, file_publish, file_destroy },
    { "ledger", ledger_make, ledger_open, ledger_publish, ledger_destroy },
};
static const struct source_kind *chosen;

void source_fixture_choose(int argc, char **argv)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (argc > 1 && strcmp(argv[1], kinds[i].name) == 0) {
            chosen = &kinds[i];
        }
    }
    if (chosen == NULL) {
        fprintf(stderr, "usage: %s memory|jetstream|file|ledger\n", argv[0]);
        exit(2);
    }
}

int source_fixture_start(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct nats_server_options options = { 0 };

    (void)state;
    if (strcmp(chosen->name, "jetstream") != 0) {
        return 0;
    }
    pawl_status status = nats_server_start(&options, &server, &error);
    return status == PAWL_OK || status == PAWL_UNSUPPORTED ? 0 : -1;
}

int source_fixture_end(void **state)
{
    (void)state;
    nats_server_free(server);
    server = NULL;
    return 0;
}

int source_fixture_open(void **state)
{
    struct source_fixture *f = calloc(1, sizeof(*f));

    f->kind = chosen;
    *state = f;
    assert_ok(tempdir_make(f->dir, "source", &f->error), &f->error);
    chosen->make(f);
    chosen->open(f);
    return 0;
}

int source_fixture_close(void **state)
{
    struct source_fixture *f = *state;

    if (f->source != NULL) {
        f->source->ops->close(f->source);
    }
    if (f->own != NULL) {
        f->kind->destroy(f);
    }
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

void source_publish(struct source_fixture *f, int from, int to)
{
    for (int i = from; i <= to; i++) {
        char payload[32];
        snprintf(payload, sizeof(payload), "{\"n\":%d}", i);
        f->kind->publish(f, payload);
    }
}

bool source_is(const struct delivery_message *message, int number)
{
    char payload[32];

    snprintf(payload, sizeof(payload), "{\"n\":%d}", number);
    return pawl__view_is(message->payload, payload);
}

void source_restart(struct source_fixture *f, uint64_t sequence)
{
    assert_ok(f->source->ops->restart_at(f->source, sequence, &f->error), &f->error);
}

void source_reopen(struct source_fixture *f)
{
    f->source->ops->close(f->source);
    f->source = NULL;
    f->kind->open(f);
}

void source_state(struct source_fixture *f, uint64_t probe, struct delivery_stream_state *ret_state)
{
    assert_ok(f->source->ops->state(f->source, probe, ret_state, &f->error), &f->error);
}

static int64_t now_ms(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) / NS_PER_MS;
}

void source_await_acked(struct source_fixture *f, uint64_t sequence)
{
    int64_t until_ms = now_ms() + AWAIT_MS_MAX;
    struct delivery_stream_state state;

    source_state(f, 0, &state);
    while (state.acked_to < sequence) {
        assert_true(now_ms() < until_ms);
        poll(NULL, 0, 5);
        source_state(f, 0, &state);
    }
}

/* The batch may be gone before the test looks at it. */
static struct delivery_message copy_of(const struct delivery_message *message, size_t index)
{
    static char payloads[BATCH_MAX][PAYLOAD_MAX];
    struct delivery_message copy = *message;

    assert_true(index < BATCH_MAX && message->payload.len < PAYLOAD_MAX);
    memcpy(payloads[index], message->payload.data, message->payload.len);
    copy.payload.data = payloads[index];
    copy.headers = NULL;
    copy.header_count = 0;
    return copy;
}

struct delivery_batch source_fetch_all(struct source_fixture *f, size_t count)
{
    static struct delivery_message got[BATCH_MAX];
    const struct delivery_fetch limits = { .messages_max = count,
                                           .bytes_max = 1 << 20,
                                           .wait_ns = 100 * NS_PER_MS };
    int64_t until_ms = now_ms() + AWAIT_MS_MAX;
    size_t total = 0;

    while (total < count) {
        struct delivery_batch batch = { 0 };
        assert_true(now_ms() < until_ms);
        assert_ok(f->source->ops->fetch(f->source, &limits, &batch, &f->error), &f->error);
        assert_true(total + batch.count <= count);
        for (size_t i = 0; i < batch.count; i++) {
            got[total] = copy_of(&batch.messages[i], total);
            total++;
        }
    }
    return (struct delivery_batch){ got, total };
}

void source_expect_none(struct source_fixture *f)
{
    const struct delivery_fetch limits = { .messages_max = 100,
                                           .bytes_max = 1 << 20,
                                           .wait_ns = 100 * NS_PER_MS };
    struct delivery_batch batch = { 0 };

    assert_ok(f->source->ops->fetch(f->source, &limits, &batch, &f->error), &f->error);
    assert_int_equal(batch.count, 0);
}
