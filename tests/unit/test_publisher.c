/* Publishing through the outbox to a real nats-server: absent, killed, stalled, with a lost tail. Afterwards each event
 * is in the stream once, and in order per subject. */
#include "lib/nats_fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/publisher.h>

#include "lib/tempdir.h"

enum { PATIENCE_MS = 120000 };

struct fixture {
    struct nats_fixture *nats;
    char dir[TEMPDIR_SIZE];
    char outbox[TEMPDIR_SIZE + 16];
    pawl_publisher_options options;
    pawl_publisher *publisher;
    pawl_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    void *nats = NULL;

    assert_int_equal(nats_fixture_open(&nats), 0);
    f->nats = nats;
    assert_ok(tempdir_make(f->dir, "pawl-publisher", &f->error), &f->error);
    snprintf(f->outbox, sizeof(f->outbox), "%s/outbox", f->dir);
    f->options = (pawl_publisher_options)PAWL_PUBLISHER_OPTIONS_INIT;
    f->options.servers = nats_server_url(f->nats->server);
    f->options.source = "shop";
    f->options.retry_ms = 20;
    f->options.check_ms = 100;
    f->options.free_space_min = 0;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    void *nats = f->nats;

    assert_ok(pawl_publisher_close(f->publisher, 0, &f->error), &f->error);
    nats_fixture_close(&nats);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static void open_publisher(struct fixture *f)
{
    assert_ok(pawl_publisher_open(f->outbox, &f->options, &f->publisher, &f->error), &f->error);
}

static void close_publisher(struct fixture *f)
{
    assert_ok(pawl_publisher_close(f->publisher, 0, &f->error), &f->error);
    f->publisher = NULL;
}

/* Room for the texts of one event. */
struct sample {
    char subject[64];
    char id[32];
    char payload[64];
};

/* The event of that number goes to one of three subjects, in turns. */
static pawl_outgoing event_of(const struct fixture *f, struct sample *sample, int number)
{
    pawl_outgoing event = PAWL_OUTGOING_INIT;

    snprintf(sample->subject, sizeof(sample->subject), "%s.%c", f->nats->stream, "abc"[number % 3]);
    snprintf(sample->id, sizeof(sample->id), "e-%d", number);
    snprintf(sample->payload, sizeof(sample->payload), "{\"n\":%d}", number);
    event.subject = pawl_view_of(sample->subject);
    event.event_id = pawl_view_of(sample->id);
    event.payload = pawl_view_of(sample->payload);
    return event;
}

static void publish(struct fixture *f, int from, int to)
{
    size_t count = (size_t)(to - from + 1);
    struct sample *samples = calloc(count, sizeof(*samples));
    pawl_outgoing *events = calloc(count, sizeof(*events));

    for (size_t i = 0; i < count; i++) {
        events[i] = event_of(f, &samples[i], from + (int)i);
    }
    assert_ok(pawl_publisher_publish(f->publisher, events, count, NULL, &f->error), &f->error);
    free(samples);
    free(events);
}

static void flush(struct fixture *f)
{
    assert_ok(pawl_publisher_flush(f->publisher, PATIENCE_MS, &f->error), &f->error);
}

static pawl_publisher_status status_of(struct fixture *f)
{
    pawl_publisher_status status = PAWL_PUBLISHER_STATUS_INIT;

    assert_ok(pawl_publisher_get_status(f->publisher, &status, &f->error), &f->error);
    return status;
}

/* Every event once in the stream, and those of a subject in order. */
static void assert_stream_has(struct fixture *f, int count)
{
    struct pawl__nats_stream stream = nats_fixture_stream(f->nats);
    int last[3] = { 0, 0, 0 };

    assert_int_equal(stream.messages, count);
    for (uint64_t i = stream.first_seq; i <= stream.last_seq; i++) {
        struct pawl__nats_stored stored;
        assert_ok(pawl__nats_stream_get(f->nats->nats, f->nats->stream, i, &stored, &f->error),
                  &f->error);
        assert_memory_equal(stored.id.data, "shop:e-", strlen("shop:e-"));
        int number = (int)strtol(&stored.id.data[strlen("shop:e-")], NULL, 10);
        assert_true(number > 0);
        assert_true(number > last[number % 3]);
        last[number % 3] = number;
        pawl__nats_stored_done(&stored);
    }
}

/* --- everyday --- */

struct headers {
    char text[256];
};

static pawl_status see_header(void *context, pawl_view name, pawl_view value, pawl_error *reterr)
{
    struct headers *headers = context;
    size_t len = strlen(headers->text);

    (void)reterr;
    snprintf(&headers->text[len],
             sizeof(headers->text) - len,
             "%.*s=%.*s\n",
             VIEW_ARGS(name),
             VIEW_ARGS(value));
    return PAWL_OK;
}

static void test_events_are_in_the_stream_with_id_and_headers(void **state)
{
    struct fixture *f = *state;
    struct pawl__nats_fetcher *fetcher = NULL;
    struct pawl__nats_batch batch = { 0 };
    const struct pawl__nats_request request = { .batch_max = 10, .expires_ms = 20000 };
    pawl_outgoing_header header = PAWL_OUTGOING_HEADER_INIT;
    pawl_published result = PAWL_PUBLISHED_INIT;
    struct sample sample;
    struct headers headers = { "" };

    open_publisher(f);
    pawl_outgoing event = event_of(f, &sample, 7);
    header.name = pawl_view_of("Kind");
    header.value = pawl_view_of("paid");
    event.headers = &header;
    event.header_count = 1;
    event.sequence = 3;
    event.source = pawl_view_of("till");
    assert_ok(pawl_publisher_publish(f->publisher, &event, 1, &result, &f->error), &f->error);
    assert_int_equal(result.number, 1);
    assert_false(result.duplicate);
    flush(f);
    assert_ok(pawl__nats_fetcher_open(f->nats->nats, f->nats->stream, "c", &fetcher, &f->error),
              &f->error);
    assert_ok(pawl__nats_fetch(fetcher, &request, &batch, &f->error), &f->error);
    assert_int_equal(batch.count, 1);
    assert_true(pawl__view_is(batch.messages[0].id, "till:e-7:3"));
    assert_true(pawl__view_is(batch.messages[0].payload, "{\"n\":7}"));
    assert_ok(pawl__nats_message_headers(&batch.messages[0], see_header, &headers, &f->error),
              &f->error);
    assert_non_null(strstr(headers.text, "Pawl-Source=till\n"));
    assert_non_null(strstr(headers.text, "Pawl-Event-Id=e-7\n"));
    assert_non_null(strstr(headers.text, "Pawl-Sequence=3\n"));
    assert_non_null(strstr(headers.text, "Kind=paid\n"));
    pawl__nats_batch_done(&batch);
    pawl__nats_fetcher_close(fetcher);
}

static void test_the_same_event_is_accepted_once(void **state)
{
    struct fixture *f = *state;
    pawl_published results[3] = { PAWL_PUBLISHED_INIT, PAWL_PUBLISHED_INIT, PAWL_PUBLISHED_INIT };
    struct sample samples[3];
    pawl_outgoing events[3];

    open_publisher(f);
    publish(f, 1, 1);
    events[0] = event_of(f, &samples[0], 1);
    events[1] = event_of(f, &samples[1], 2);
    events[2] = event_of(f, &samples[2], 2);
    assert_ok(pawl_publisher_publish(f->publisher, events, 3, results, &f->error), &f->error);
    assert_true(results[0].duplicate);
    assert_int_equal(results[0].number, 1);
    assert_false(results[1].duplicate);
    assert_true(results[2].duplicate);
    assert_int_equal(results[2].number, 2);
    flush(f);
    close_publisher(f);
    open_publisher(f);
    publish(f, 1, 2);
    flush(f);
    assert_stream_has(f, 2);
    assert_int_equal(status_of(f).accepted, 2);
}

static void test_another_payload_under_the_same_id_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    struct sample samples[2];
    pawl_outgoing events[2];

    open_publisher(f);
    publish(f, 1, 1);
    events[0] = event_of(f, &samples[0], 2);
    events[1] = event_of(f, &samples[1], 1);
    events[1].payload = pawl_view_of("{}");
    assert_status(
        pawl_publisher_publish(f->publisher, events, 2, NULL, &f->error), PAWL_CONFLICT, &f->error);
    assert_int_equal(f->error.detail, PAWL_DETAIL_ID_TAKEN);
    assert_int_equal(f->error.index, 1);
    assert_message(&f->error, "event 'shop:e-1:0' was published with another payload");
    flush(f);
    assert_stream_has(f, 1); /* nothing of the batch */
}

static void test_a_partition_follows_from_the_key(void **state)
{
    struct fixture *f = *state;
    struct pawl__nats_stored stored;
    struct sample sample;

    f->options.partitions = 8;
    open_publisher(f);
    pawl_outgoing event = event_of(f, &sample, 1);
    event.key = pawl_view_of("customer-1");
    assert_ok(pawl_publisher_publish(f->publisher, &event, 1, NULL, &f->error), &f->error);
    flush(f);
    assert_ok(pawl__nats_stream_get(f->nats->nats, f->nats->stream, 1, &stored, &f->error),
              &f->error);
    assert_memory_equal(stored.subject, sample.subject, strlen(sample.subject));
    assert_string_equal(&stored.subject[strlen(sample.subject)], ".7");
    pawl__nats_stored_done(&stored);
}

static void test_an_outbox_that_is_full_refuses_until_there_is_room(void **state)
{
    struct fixture *f = *state;
    char *payload = calloc(1, 900000);
    struct sample sample;

    f->options.bytes_max = 1 << 20;
    f->options.keep_ms = 200;
    assert_ok(nats_server_kill(f->nats->server, &f->error), &f->error);
    open_publisher(f);
    memset(payload, 'x', 900000);
    pawl_outgoing event = event_of(f, &sample, 1);
    event.payload = (pawl_view){ payload, 60000 };
    for (int i = 1; i <= 17; i++) {
        char id[16];
        snprintf(id, sizeof(id), "big-%d", i);
        event.event_id = pawl_view_of(id);
        assert_ok(pawl_publisher_publish(f->publisher, &event, 1, NULL, &f->error), &f->error);
    }
    event.event_id = pawl_view_of("one more");
    assert_status(
        pawl_publisher_publish(f->publisher, &event, 1, NULL, &f->error), PAWL_BUSY, &f->error);
    assert_int_equal(f->error.detail, PAWL_DETAIL_QUEUE_FULL);
    assert_true(f->error.retryable);
    assert_ok(nats_server_restart(f->nats->server, &f->error), &f->error);
    flush(f);
    int64_t until_ms = nats_fixture_now_ms() + PATIENCE_MS;
    while (status_of(f).kept > 0) { /* kept until the server has surely synced them */
        assert_true(nats_fixture_now_ms() < until_ms);
        usleep(10000);
    }
    assert_ok(pawl_publisher_publish(f->publisher, &event, 1, NULL, &f->error), &f->error);
    flush(f);
    free(payload);
}

struct seen {
    int count;
    uint64_t number;
    char reason[160];
};

static bool see_failed(void *context, const pawl_failed_outgoing *failed)
{
    struct seen *seen = context;

    seen->count++;
    seen->number = failed->number;
    snprintf(seen->reason, sizeof(seen->reason), "%.*s", VIEW_ARGS(failed->reason));
    return true;
}

static void test_a_message_above_the_servers_limit_goes_out_of_the_way(void **state)
{
    struct fixture *f = *state;
    char *payload = calloc(1, 100000);
    struct sample sample;
    struct seen seen = { 0 };
    uint64_t count = 0;

    open_publisher(f);
    memset(payload, 'x', 100000);
    pawl_outgoing event = event_of(f, &sample, 3);
    event.event_id = pawl_view_of("too-large");
    event.payload = (pawl_view){ payload, 100000 }; /* the server takes 65,536 */
    assert_ok(pawl_publisher_publish(f->publisher, &event, 1, NULL, &f->error), &f->error);
    publish(f, 3, 3); /* the same subject */
    flush(f);
    assert_stream_has(f, 1);
    assert_int_equal(status_of(f).failed, 1);
    assert_ok(pawl_publisher_list_failed(f->publisher, NULL, see_failed, &seen, &f->error),
              &f->error);
    pawl_page page = PAWL_PAGE_INIT;
    page.from = 2;
    assert_ok(pawl_publisher_list_failed(f->publisher, &page, see_failed, &seen, &f->error),
              &f->error);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.number, 1);
    assert_string_equal(seen.reason, "message has 100000 bytes, the server's limit is 65536");
    assert_ok(pawl_publisher_retry_failed(f->publisher, &count, &f->error), &f->error);
    assert_int_equal(count, 1);
    flush(f);
    assert_int_equal(status_of(f).failed, 1);
    free(payload);
}

/* --- a broker that fails --- */

static void test_a_broker_that_comes_later_gets_everything(void **state)
{
    struct fixture *f = *state;

    assert_ok(nats_server_kill(f->nats->server, &f->error), &f->error);
    open_publisher(f);
    publish(f, 1, 100);
    assert_status(pawl_publisher_flush(f->publisher, 1, &f->error), PAWL_TIMEOUT, &f->error);
    assert_message(&f->error, "100 events still wait in the outbox");
    assert_false(status_of(f).connected);
    close_publisher(f);
    open_publisher(f);
    publish(f, 101, 200);
    assert_ok(nats_server_restart(f->nats->server, &f->error), &f->error);
    flush(f);
    nats_fixture_await(f->nats, PAWL__NATS_CONNECTED);
    assert_stream_has(f, 200);
}

static void test_events_wait_for_their_stream(void **state)
{
    struct fixture *f = *state;
    pawl_outgoing event = PAWL_OUTGOING_INIT;
    char late[40];
    char subject[48];
    const char *subjects[] = { subject };
    const struct pawl__nats_stream_options options = { .subjects = subjects, .subject_count = 1 };

    open_publisher(f);
    snprintf(late, sizeof(late), "late_%s", f->nats->stream);
    snprintf(subject, sizeof(subject), "%s.x", late);
    event.subject = pawl_view_of(subject);
    event.event_id = pawl_view_of("1");
    event.payload = pawl_view_of("{}");
    assert_ok(pawl_publisher_publish(f->publisher, &event, 1, NULL, &f->error), &f->error);
    publish(f, 1, 10); /* others are not held up */
    int64_t until_ms = nats_fixture_now_ms() + PATIENCE_MS;
    while (status_of(f).pending > 1) {
        assert_true(nats_fixture_now_ms() < until_ms);
        usleep(10000);
    }
    assert_ok(pawl__nats_stream_create(f->nats->nats, late, &options, NULL, &f->error), &f->error);
    flush(f);
    assert_stream_has(f, 10);
}

static void test_a_server_killed_again_and_again_has_each_event_once(void **state)
{
    struct fixture *f = *state;

    open_publisher(f);
    for (int round = 0; round < 5; round++) {
        publish(f, round * 200 + 1, round * 200 + 200);
        assert_ok(nats_server_kill(f->nats->server, &f->error), &f->error);
        assert_ok(nats_server_restart(f->nats->server, &f->error), &f->error);
    }
    flush(f);
    nats_fixture_await(f->nats, PAWL__NATS_CONNECTED);
    assert_stream_has(f, 1000);
}

/* A server that syncs late loses its tail with the power: an older copy of its store is put back. */
static void test_a_lost_tail_is_published_again(void **state)
{
    struct fixture *f = *state;

    open_publisher(f);
    publish(f, 1, 50);
    flush(f);
    assert_ok(nats_server_stop(f->nats->server, &f->error), &f->error);
    assert_ok(nats_server_save(f->nats->server, &f->error), &f->error);
    assert_ok(nats_server_restart(f->nats->server, &f->error), &f->error);
    publish(f, 51, 150);
    flush(f);
    assert_ok(nats_server_kill(f->nats->server, &f->error), &f->error);
    assert_ok(nats_server_put_back(f->nats->server, &f->error), &f->error);
    publish(f, 151, 200); /* waits behind what was lost */
    assert_ok(nats_server_restart(f->nats->server, &f->error), &f->error);
    flush(f);
    nats_fixture_await(f->nats, PAWL__NATS_CONNECTED);
    int64_t until_ms = nats_fixture_now_ms() + PATIENCE_MS;
    while (nats_fixture_stream(f->nats).messages < 200) { /* flushed may mean: before it noticed */
        assert_true(nats_fixture_now_ms() < until_ms);
        usleep(10000);
    }
    assert_stream_has(f, 200);
    assert_true(status_of(f).republished >= 100);
}

/* The same across a restart of the producer, and without a new event. */
static void test_a_loss_is_found_by_the_next_process(void **state)
{
    struct fixture *f = *state;

    open_publisher(f);
    publish(f, 1, 10);
    flush(f);
    assert_ok(nats_server_stop(f->nats->server, &f->error), &f->error);
    assert_ok(nats_server_save(f->nats->server, &f->error), &f->error);
    assert_ok(nats_server_restart(f->nats->server, &f->error), &f->error);
    publish(f, 11, 30);
    flush(f);
    close_publisher(f);
    assert_ok(nats_server_kill(f->nats->server, &f->error), &f->error);
    assert_ok(nats_server_put_back(f->nats->server, &f->error), &f->error);
    assert_ok(nats_server_restart(f->nats->server, &f->error), &f->error);
    nats_fixture_await(f->nats, PAWL__NATS_CONNECTED);
    assert_int_equal(nats_fixture_stream(f->nats).messages, 10);
    open_publisher(f);
    int64_t until_ms = nats_fixture_now_ms() + PATIENCE_MS;
    while (nats_fixture_stream(f->nats).messages < 30) {
        assert_true(nats_fixture_now_ms() < until_ms);
        usleep(10000);
    }
    flush(f);
    assert_stream_has(f, 30);
}

/* This program again, as a producer: publishes 100 events of a round one by one, and dies. */
static int be_killed(const char *outbox, const char *servers, const char *stream, int round)
{
    struct nats_fixture nats = { .server = NULL };
    struct fixture f = { .nats = &nats };
    pawl_publisher_options options = PAWL_PUBLISHER_OPTIONS_INIT;
    struct sample sample;

    options.servers = servers;
    options.source = "shop";
    options.free_space_min = 0;
    snprintf(nats.stream, sizeof(nats.stream), "%s", stream);
    if (pawl_publisher_open(outbox, &options, &f.publisher, &f.error) != PAWL_OK) {
        return 1;
    }
    for (int i = round * 100 + 1; i <= round * 100 + 100; i++) {
        pawl_outgoing event = event_of(&f, &sample, i);
        if (pawl_publisher_publish(f.publisher, &event, 1, NULL, &f.error) != PAWL_OK) {
            return 1;
        }
    }
    kill(getpid(), SIGKILL);
    return 1;
}

/* Whatever it has sent and not noted, kill -9 of the producer loses and doubles nothing. */
static void test_a_producer_killed_in_the_middle_loses_and_doubles_nothing(void **state)
{
    struct fixture *f = *state;

    for (int round = 0; round < 4; round++) {
        char number[8];
        int ended = 0;
        snprintf(number, sizeof(number), "%d", round);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            execl("/proc/self/exe",
                  "test_publisher",
                  f->outbox,
                  f->options.servers,
                  f->nats->stream,
                  number,
                  (char *)NULL);
            _exit(127);
        }
        assert_int_equal(waitpid(pid, &ended, 0), pid);
        assert_true(WIFSIGNALED(ended));
    }
    open_publisher(f);
    flush(f);
    assert_stream_has(f, 400);
    assert_int_equal(status_of(f).accepted, 400);
}

static void test_a_stalled_server_holds_up_no_call(void **state)
{
    struct fixture *f = *state;

    f->options.close_ms_max = 60000;
    open_publisher(f);
    publish(f, 1, 10);
    flush(f);
    nats_server_stall(f->nats->server);
    publish(f, 11, 20); /* on disk, whatever the server does */
    assert_status(pawl_publisher_flush(f->publisher, 100, &f->error), PAWL_TIMEOUT, &f->error);
    close_publisher(f); /* ends within its bound */
    nats_server_resume(f->nats->server);
    open_publisher(f);
    flush(f);
    nats_fixture_await(f->nats, PAWL__NATS_CONNECTED);
    assert_stream_has(f, 20);
}

/* --- arguments --- */

static void test_an_outbox_has_one_owner(void **state)
{
    struct fixture *f = *state;
    pawl_publisher *second = NULL;

    open_publisher(f);
    assert_status(
        pawl_publisher_open(f->outbox, &f->options, &second, &f->error), PAWL_BUSY, &f->error);
    assert_null(second);
}

static void test_an_outbox_that_is_only_read_accepts_nothing(void **state)
{
    struct fixture *f = *state;
    struct sample sample;
    pawl_outgoing event = event_of(f, &sample, 1);

    f->options.servers = NULL;
    open_publisher(f);
    publish(f, 1, 3);
    assert_status(pawl_publisher_flush(f->publisher, 1000, &f->error), PAWL_UNAVAILABLE, &f->error);
    close_publisher(f);
    f->options.read_only = true;
    open_publisher(f);
    assert_int_equal(status_of(f).pending, 3);
    assert_status(
        pawl_publisher_publish(f->publisher, &event, 1, NULL, &f->error), PAWL_DENIED, &f->error);
    assert_status(
        pawl_publisher_retry_failed(f->publisher, NULL, &f->error), PAWL_DENIED, &f->error);
}

int main(int argc, char **argv)
{
#define publisher_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        publisher_test(test_events_are_in_the_stream_with_id_and_headers),
        publisher_test(test_the_same_event_is_accepted_once),
        publisher_test(test_another_payload_under_the_same_id_is_a_conflict),
        publisher_test(test_a_partition_follows_from_the_key),
        publisher_test(test_an_outbox_that_is_full_refuses_until_there_is_room),
        publisher_test(test_a_message_above_the_servers_limit_goes_out_of_the_way),
        publisher_test(test_a_broker_that_comes_later_gets_everything),
        publisher_test(test_events_wait_for_their_stream),
        publisher_test(test_a_server_killed_again_and_again_has_each_event_once),
        publisher_test(test_a_lost_tail_is_published_again),
        publisher_test(test_a_loss_is_found_by_the_next_process),
        publisher_test(test_a_producer_killed_in_the_middle_loses_and_doubles_nothing),
        publisher_test(test_a_stalled_server_holds_up_no_call),
        publisher_test(test_an_outbox_has_one_owner),
        publisher_test(test_an_outbox_that_is_only_read_accepts_nothing),
    };

    if (argc == 5) {
        return be_killed(argv[1], argv[2], argv[3], (int)strtol(argv[4], NULL, 10));
    }
    return cmocka_run_group_tests_name("publisher", tests, nats_fixture_start, nats_fixture_end);
}
