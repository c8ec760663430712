/* Clients that mean harm, with frames written by hand: each is bounded and ended, while a healthy client beside it
 * loses no call and keeps its connection. */
#include "lib/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/thread/thread.h"
#include "lib/h2_fixture.h"

enum {
    PATIENCE_MS = 30000,
    DATA = 0,
    HEADERS = 1,
    PRIORITY = 2,
    RST_STREAM = 3,
    SETTINGS = 4,
    PING = 6,
    GOAWAY = 7,
    WINDOW_UPDATE = 8,
    CONTINUATION = 9,
    END_STREAM = 1,
    END_HEADERS = 4,
    FRAME_TYPES = 16,
    CANCEL = 8,
};

/* --- the server, and a healthy client --- */

struct healthy {
    struct h2_fixture fixture;
    struct pawl__thread thread;
    atomic_bool over;
    atomic_size_t calls;
    atomic_size_t failed;
    bool running;
    char last_error[PAWL_ERROR_MESSAGE_SIZE];
};

static void call_on_and_on(void *context)
{
    struct healthy *healthy = context;

    while (!atomic_load(&healthy->over)) {
        struct pawl__buf answer = BUF_INIT(0);
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__h2_client_call(healthy->fixture.client,
                                                  "/test.Echo/Unary",
                                                  pawl_view_of("healthy"),
                                                  h2_fixture_in_ms(PATIENCE_MS),
                                                  &answer,
                                                  &error);
        if (status != PAWL_OK || !pawl__view_is(pawl__buf_view(&answer), "healthy")) {
            atomic_fetch_add(&healthy->failed, 1);
            (void)snprintf(healthy->last_error, sizeof(healthy->last_error), "%s", error.message);
        }
        atomic_fetch_add(&healthy->calls, 1);
        pawl__buf_done(&answer);
    }
}

static int set_up(void **state)
{
    static struct healthy healthy;

    memset(&healthy, 0, sizeof(healthy));
    h2_fixture_init(&healthy.fixture);
    healthy.fixture.options.threads =
        1; /* the healthy client shares its thread with the attacker */
    *state = &healthy;
    return 0;
}

static void start(struct healthy *healthy)
{
    struct h2_fixture *fixture = &healthy->fixture;

    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    assert_ok(h2_fixture_connect(fixture, NULL, &fixture->client, &fixture->error),
              &fixture->error);
    assert_ok(
        pawl__thread_start(&healthy->thread, "healthy", call_on_and_on, healthy, &fixture->error),
        &fixture->error);
    healthy->running = true;
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);
    while (atomic_load(&healthy->calls) < 3 && h2_fixture_in_ms(0) < deadline_ns) {
        pawl__sleep_until(pawl__clock_real(), h2_fixture_in_ms(1));
    }
}

static void stop_healthy(struct healthy *healthy)
{
    atomic_store(&healthy->over, true);
    pawl__thread_join(&healthy->thread);
    healthy->running = false;
}

/* Nothing of the attack reached the healthy client. */
static void assert_healthy(struct healthy *healthy)
{
    size_t before = atomic_load(&healthy->calls);
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);

    while (atomic_load(&healthy->calls) < before + 3 && h2_fixture_in_ms(0) < deadline_ns) {
        pawl__sleep_until(pawl__clock_real(), h2_fixture_in_ms(1));
    }
    stop_healthy(healthy);
    if (atomic_load(&healthy->failed) > 0) {
        fail_msg("a healthy call failed: %s", healthy->last_error);
    }
    assert_int_equal(pawl__h2_client_connects(healthy->fixture.client), 1);
    assert_true(atomic_load(&healthy->calls) >= before + 3);
}

static int tear_down(void **state)
{
    struct healthy *healthy = *state;

    if (healthy->running) {
        stop_healthy(healthy);
    }
    h2_fixture_done(&healthy->fixture);
    return 0;
}

static struct pawl__h2_counts counts_of(struct healthy *healthy)
{
    struct pawl__h2_counts counts;

    pawl__h2_counts(healthy->fixture.server, &counts);
    return counts;
}

/* --- frames by hand --- */

struct raw {
    int fd;
    bool closed;              /* by the server */
    size_t seen[FRAME_TYPES]; /* frames that came */
    uint32_t last_error;      /* of the last RST_STREAM or GOAWAY */
    uint64_t data_bytes;
    struct pawl__buf in;
};

static void raw_connect(struct raw *raw, const char *address)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    *raw = (struct raw){ .in = BUF_INIT(64 << 20) };
    to.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(raw->fd >= 0);
    int small =
        65536; /* what the kernel takes for a client that does not read is not read either */
    assert_int_equal(setsockopt(raw->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_int_equal(connect(raw->fd, (struct sockaddr *)&to, sizeof(to)), 0);
}

static void raw_done(struct raw *raw)
{
    close(raw->fd);
    pawl__buf_done(&raw->in);
}

/* What has arrived, frame by frame. */
static void raw_parse(struct raw *raw)
{
    pawl_view rest = pawl__buf_view(&raw->in);
    pawl_view taken = { 0 };

    while (rest.len >= 9) {
        const unsigned char *head = (const unsigned char *)rest.data;
        size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        unsigned type = head[3];
        if (rest.len < 9 + len) {
            break;
        }
        raw->seen[type % FRAME_TYPES]++;
        raw->data_bytes += type == DATA ? len : 0;
        size_t at = type == GOAWAY ? 9 + 4 : 9;
        if (type == GOAWAY || type == RST_STREAM) {
            raw->last_error = (uint32_t)head[at] << 24 | (uint32_t)head[at + 1] << 16
                              | (uint32_t)head[at + 2] << 8 | head[at + 3];
        }
        assert_true(pawl__view_take(&rest, 9 + len, &taken));
    }
    struct pawl__buf left = BUF_INIT(64 << 20);
    pawl__buf_add(&left, rest);
    pawl__buf_done(&raw->in);
    raw->in = left;
}

/* Reads what is there, waiting for up to `ms`. */
static void raw_read(struct raw *raw, int ms)
{
    struct pollfd poll_fd = { .fd = raw->fd, .events = POLLIN };
    static char bytes[65536];

    while (!raw->closed && poll(&poll_fd, 1, ms) > 0) {
        ssize_t got = recv(raw->fd, bytes, sizeof(bytes), 0);
        if (got <= 0) {
            raw->closed = true;
        } else {
            pawl__buf_add(&raw->in, (pawl_view){ bytes, (size_t)got });
        }
        ms = 0;
    }
    raw_parse(raw);
}

/* False: the server has ended the connection. */
static bool raw_write(struct raw *raw, pawl_view bytes)
{
    while (bytes.len > 0 && !raw->closed) {
        struct pollfd poll_fd = { .fd = raw->fd, .events = POLLOUT };
        if (poll(&poll_fd, 1, PATIENCE_MS) <= 0) {
            return false;
        }
        ssize_t sent = send(raw->fd, bytes.data, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        pawl_view taken = { 0 };
        if (sent < 0 && errno != EAGAIN) {
            raw->closed = true;
        } else if (sent > 0) {
            assert_true(pawl__view_take(&bytes, (size_t)sent, &taken));
        }
    }
    return !raw->closed;
}

static void add_frame(
    struct pawl__buf *out, unsigned type, unsigned flags, uint32_t stream, pawl_view payload)
{
    pawl__buf_add_u8(out, (uint8_t)(payload.len >> 16));
    pawl__buf_add_u16be(out, (uint16_t)payload.len);
    pawl__buf_add_u8(out, (uint8_t)type);
    pawl__buf_add_u8(out, (uint8_t)flags);
    pawl__buf_add_u32be(out, stream);
    pawl__buf_add(out, payload);
}

static bool raw_frame(
    struct raw *raw, unsigned type, unsigned flags, uint32_t stream, pawl_view payload)
{
    struct pawl__buf out = BUF_INIT(1 << 20);

    add_frame(&out, type, flags, stream, payload);
    bool sent = raw_write(raw, pawl__buf_view(&out));
    pawl__buf_done(&out);
    return sent;
}

static void raw_open_with(struct raw *raw, const char *address, pawl_view settings)
{
    raw_connect(raw, address);
    assert_true(raw_write(raw, pawl_view_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")));
    assert_true(raw_frame(raw, SETTINGS, 0, 0, settings));
    raw_read(raw, PATIENCE_MS);
    assert_true(raw->seen[SETTINGS] > 0);
    assert_true(
        raw_frame(raw, SETTINGS, 1, 0, (pawl_view){ 0 })); /* its windows count from here on */
}

static void raw_open(struct raw *raw, struct healthy *healthy)
{
    raw_open_with(raw, pawl__h2_listens_on(healthy->fixture.server), (pawl_view){ 0 });
}

/* The header block of a call: indexed :method POST and :scheme http, literals for the rest. */
static void add_call(struct pawl__buf *out, const char *path)
{
    pawl__buf_add(out, (pawl_view){ "\x83\x86\x04", 3 });
    pawl__buf_add_u8(out, (uint8_t)strlen(path));
    pawl__buf_add_text(out, path);
    pawl__buf_add(out, (pawl_view){ "\x01\x04test\x0f\x10\x10", 9 });
    pawl__buf_add_text(out, "application/grpc");
}

static bool raw_call(struct raw *raw, uint32_t stream, const char *path, unsigned flags)
{
    char bytes[256];
    struct pawl__buf block = BUF_OVER(bytes);

    add_call(&block, path);
    return raw_frame(raw, HEADERS, END_HEADERS | flags, stream, pawl__buf_view(&block));
}

/* Reads until the server ends the connection. */
static void assert_closed(struct raw *raw)
{
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);

    while (!raw->closed && h2_fixture_in_ms(0) < deadline_ns) {
        raw_read(raw, 100);
    }
    assert_true(raw->closed);
}

static void assert_answered(struct raw *raw, unsigned type)
{
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);

    while (!raw->closed && raw->seen[type] == 0 && h2_fixture_in_ms(0) < deadline_ns) {
        raw_read(raw, 100);
    }
    assert_true(raw->seen[type] > 0);
}

/* --- floods --- */

static void test_rapid_reset_is_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;
    bool open = true;
    uint32_t stream = 1;

    /* fewer than by default: the test must not depend on how fast this machine is */
    healthy->fixture.options.limits.resets_burst = 500;
    healthy->fixture.options.limits.resets_per_s = 20;
    start(healthy);
    raw_open(&raw, healthy);
    for (; open && stream < 2 * 50000; stream += 2) {
        open = raw_call(&raw, stream, "/test.Echo/Hold", END_STREAM)
               && raw_frame(&raw, RST_STREAM, 0, stream, (pawl_view){ "\0\0\0\x08", 4 });
        if (stream % 512 == 1) {
            raw_read(&raw, 0);
        }
    }
    assert_closed(&raw);
    assert_healthy(healthy);
    raw_done(&raw);
}

/* 1,800 deadlines that pass at once are honest. */
static void test_honest_resets_are_none(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    start(healthy);
    raw_open(&raw, healthy);
    for (uint32_t i = 0; i < 1800; i++) {
        uint32_t stream = 2 * i + 1;
        assert_true(raw_call(&raw, stream, "/test.Echo/Hold", END_STREAM));
        assert_true(raw_frame(&raw, RST_STREAM, 0, stream, (pawl_view){ "\0\0\0\x08", 4 }));
    }
    assert_true(raw_frame(&raw, PING, 0, 0, (pawl_view){ "01234567", 8 }));
    assert_answered(&raw, PING);
    assert_false(raw.closed);
    assert_healthy(healthy);
    raw_done(&raw);
}

static void test_a_flood_of_continuations_is_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;
    bool open = true;
    size_t sent = 0;

    start(healthy);
    raw_open(&raw, healthy);
    open = raw_frame(&raw, HEADERS, 0, 1, (pawl_view){ "\x83\x86", 2 });
    for (; open && sent < 10000; sent++) {
        open = raw_frame(&raw, CONTINUATION, 0, 1, (pawl_view){ 0 });
        raw_read(&raw, 0);
    }
    assert_closed(&raw);
    assert_healthy(healthy);
    raw_done(&raw);
}

static void test_an_endless_header_is_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;
    static char filler[16000];
    bool open = true;

    start(healthy);
    raw_open(&raw, healthy);
    memset(filler, 'h', sizeof(filler));
    /* a literal whose value has 2^28 bytes to come */
    open = raw_frame(&raw, HEADERS, 0, 1, (pawl_view){ "\x83\x00\x01x\x7f\xff\xff\xff\x7f", 9 });
    for (size_t i = 0; open && i < 5000; i++) {
        open = raw_frame(&raw, CONTINUATION, 0, 1, (pawl_view){ filler, sizeof(filler) });
        raw_read(&raw, 0);
    }
    assert_closed(&raw);
    assert_true(counts_of(healthy).memory_bytes < 4 << 20);
    assert_healthy(healthy);
    raw_done(&raw);
}

/* One entry of the dynamic table, 4,000 bytes long, named again and again. */
static void test_a_header_bomb_is_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;
    struct pawl__buf block = BUF_INIT(16384);
    bool open = true;

    start(healthy);
    raw_open(&raw, healthy);
    pawl__buf_add(&block,
                  (pawl_view){ "\x40\x01"
                               "x\x7f\xa1\x1e",
                               6 }); /* 4,000 = 127 + 0x21 + 0x1e * 128 */
    for (size_t i = 0; i < 4000; i++) {
        pawl__buf_add_char(&block, 'b');
    }
    for (size_t i = 0; i < 12000; i++) {
        pawl__buf_add_u8(&block, 0xbe);
    }
    for (uint32_t stream = 1; open && stream < 200; stream += 2) {
        open = raw_frame(&raw, HEADERS, END_HEADERS | END_STREAM, stream, pawl__buf_view(&block));
        raw_read(&raw, 0);
    }
    assert_closed(&raw);
    assert_int_equal(counts_of(healthy).closed_by_limit, 1);
    assert_healthy(healthy);
    pawl__buf_done(&block);
    raw_done(&raw);
}

/* Somewhat over the limit costs the call, not the connection. */
static void test_long_headers_are_refused(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;
    struct pawl__buf block = BUF_INIT(32768);

    healthy->fixture.options.limits.header_bytes_max = 8192;
    start(healthy);
    raw_open(&raw, healthy);
    add_call(&block, "/test.Echo/Unary");
    pawl__buf_add(&block,
                  (pawl_view){ "\x00\x01"
                               "x\x7f\xa9\x45",
                               6 }); /* 9,000 = 127 + 0x29 + 0x45 * 128 */
    for (size_t i = 0; i < 9000; i++) {
        pawl__buf_add_char(&block, 'l');
    }
    assert_true(raw_frame(&raw, HEADERS, END_HEADERS | END_STREAM, 1, pawl__buf_view(&block)));
    assert_answered(&raw, HEADERS);
    assert_true(raw_frame(&raw, PING, 0, 0, (pawl_view){ "01234567", 8 }));
    assert_answered(&raw, PING);
    assert_int_equal(counts_of(healthy).failed, 1);
    assert_healthy(healthy);
    pawl__buf_done(&block);
    raw_done(&raw);
}

static void flood(
    struct healthy *healthy, unsigned type, unsigned flags, uint32_t stream, pawl_view payload)
{
    struct raw raw;
    bool open = true;
    size_t sent = 0;

    start(healthy);
    raw_open(&raw, healthy);
    if (stream != 0) {
        assert_true(raw_call(&raw, stream, "/test.Echo/Join", 0));
    }
    for (; open && sent < 200000; sent++) {
        open = raw_frame(&raw, type, flags, stream, payload);
        raw_read(&raw, 0);
    }
    assert_closed(&raw);
    assert_true(sent < 200000);
    assert_true(sent > 50); /* what honest clients send passes */
    assert_int_equal(counts_of(healthy).closed_by_limit, 1);
    assert_healthy(healthy);
    raw_done(&raw);
}

static void test_a_flood_of_pings_is_ended(void **state)
{
    flood(*state, PING, 0, 0, (pawl_view){ "01234567", 8 });
}

static void test_a_flood_of_settings_is_ended(void **state)
{
    flood(*state, SETTINGS, 0, 0, (pawl_view){ 0 });
}

static void test_a_flood_of_empty_data_is_ended(void **state)
{
    flood(*state, DATA, 0, 1, (pawl_view){ 0 });
}

static void test_a_flood_of_priorities_is_ended(void **state)
{
    flood(*state, PRIORITY, 0, 1, (pawl_view){ "\0\0\0\0\x10", 5 });
}

/* Each of these makes the server send a RST_STREAM. */
static void test_provoked_resets_are_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;
    bool open = true;
    uint32_t stream = 1;

    start(healthy);
    raw_open(&raw, healthy);
    for (; open && stream < 2 * 20000; stream += 2) {
        open = raw_call(&raw, stream, "/test.Echo/Join", 0)
               && raw_frame(&raw, WINDOW_UPDATE, 0, stream, (pawl_view){ "\0\0\0\0", 4 });
        raw_read(&raw, 0);
    }
    assert_closed(&raw);
    assert_true(raw.seen[RST_STREAM] < 10000);
    assert_healthy(healthy);
    raw_done(&raw);
}

/* --- those who take their time --- */

static void test_a_client_that_says_nothing_is_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    /* here and below: long enough for a healthy client on a machine that has other things to do */
    healthy->fixture.options.limits.handshake_ms_max = 2000;
    start(healthy);
    raw_connect(&raw, pawl__h2_listens_on(healthy->fixture.server));
    assert_closed(&raw);
    assert_int_equal(counts_of(healthy).closed_by_limit, 1);
    assert_healthy(healthy);
    raw_done(&raw);
}

static void test_a_tls_handshake_that_does_not_end_is_ended(void **state)
{
    struct healthy *healthy = *state;
    struct h2_fixture *fixture = &healthy->fixture;
    struct raw raw;
    char certificate[128];
    char key[128];

    assert_ok(tempdir_make(fixture->directory, "pawl-h2", &fixture->error), &fixture->error);
    assert_true(h2_fixture_certificates(fixture->directory));
    (void)snprintf(certificate, sizeof(certificate), "%s/server.pem", fixture->directory);
    (void)snprintf(key, sizeof(key), "%s/server.key", fixture->directory);
    const struct pawl__h2_tls tls = { .certificate_file = certificate, .key_file = key };
    fixture->options.tls = &tls;
    fixture->options.limits.handshake_ms_max = 2000;
    assert_ok(h2_fixture_start(fixture, &fixture->error), &fixture->error);
    raw_connect(&raw, pawl__h2_listens_on(fixture->server));
    assert_true(
        raw_write(&raw, (pawl_view){ "\x16\x03\x01\x02", 4 })); /* the beginning of a ClientHello */
    assert_closed(&raw);
    raw_done(&raw);
}

static void test_headers_that_do_not_end_are_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    healthy->fixture.options.limits.header_ms_max = 2000;
    start(healthy);
    raw_open(&raw, healthy);
    assert_true(raw_frame(&raw, HEADERS, 0, 1, (pawl_view){ "\x83", 1 }));
    assert_closed(&raw);
    assert_healthy(healthy);
    raw_done(&raw);
}

/* A frame that is announced and does not come: not a header block, but in the way as well. */
static void test_half_a_frame_is_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    healthy->fixture.options.limits.header_ms_max = 2000;
    start(healthy);
    raw_open(&raw, healthy);
    assert_true(raw_write(&raw, (pawl_view){ "\0\0\x08\x06\0\0\0\0\0\1\1", 11 }));
    assert_closed(&raw);
    assert_healthy(healthy);
    raw_done(&raw);
}

static void test_an_idle_connection_is_told_to_leave(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    healthy->fixture.options.limits.idle_ms_max = 2000;
    healthy->fixture.options.limits.drain_ms_max = 200;
    start(healthy);
    raw_open(&raw, healthy);
    assert_closed(&raw);
    assert_true(raw.seen[GOAWAY] >= 2); /* a notice, and the end */
    assert_int_equal(raw.last_error, 0);
    assert_healthy(healthy);
    raw_done(&raw);
}

static void test_a_request_that_does_not_come_is_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    healthy->fixture.options.limits.request_ms_max = 300;
    start(healthy);
    raw_open(&raw, healthy);
    assert_true(raw_call(&raw, 1, "/test.Echo/Unary", 0));
    assert_answered(&raw, HEADERS);
    assert_answered(&raw, RST_STREAM); /* it may stop sending */
    assert_int_equal(raw.last_error, 0);
    assert_healthy(healthy);
    raw_done(&raw);
}

static void test_a_silent_client_with_a_call_is_asked_and_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    healthy->fixture.options.limits.ping_ms = 200;
    healthy->fixture.options.limits.ping_wait_ms_max = 3000;
    start(healthy);
    raw_open(&raw, healthy);
    assert_true(raw_call(&raw, 1, "/test.Echo/Join", 0));
    assert_true(h2_fixture_await(&healthy->fixture.opened, 1));
    assert_closed(&raw);
    assert_true(raw.seen[PING] >= 1);
    assert_true(h2_fixture_await(&healthy->fixture.gone, 1));
    assert_healthy(healthy);
    raw_done(&raw);
}

/* --- those who do not read --- */

static void ask_for_big(struct raw *raw)
{
    assert_true(raw_call(raw, 1, "/test.Echo/Big", 0));
    assert_true(raw_frame(raw,
                          DATA,
                          END_STREAM,
                          1,
                          (pawl_view){ "\0\0\0\0\x08"
                                       "10000000",
                                       13 }));
}

static void test_a_window_that_stays_closed_ends_the_call(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    healthy->fixture.options.limits.stall_ms_max = 2000;
    start(healthy);
    raw_open_with(&raw,
                  pawl__h2_listens_on(healthy->fixture.server),
                  (pawl_view){ "\0\4\0\0\0\0", 6 }); /* INITIAL_WINDOW_SIZE 0 */
    ask_for_big(&raw);
    assert_answered(&raw, RST_STREAM);
    assert_int_equal(raw.last_error, CANCEL);
    assert_int_equal(raw.data_bytes, 0);
    assert_true(counts_of(healthy).memory_bytes < 5 << 20); /* its 10 MB are gone */
    assert_healthy(healthy);
    raw_done(&raw);
}

/* A byte now and then is no progress. */
static void test_a_window_that_opens_byte_by_byte_ends_the_call(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    healthy->fixture.options.limits.stall_ms_max = 2000;
    start(healthy);
    raw_open_with(
        &raw, pawl__h2_listens_on(healthy->fixture.server), (pawl_view){ "\0\4\0\0\0\0", 6 });
    ask_for_big(&raw);
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);
    while (raw.seen[RST_STREAM] == 0 && h2_fixture_in_ms(0) < deadline_ns) {
        assert_true(raw_frame(&raw, WINDOW_UPDATE, 0, 1, (pawl_view){ "\0\0\0\1", 4 }));
        raw_read(&raw, 0);
        pawl__sleep_until(pawl__clock_real(), h2_fixture_in_ms(20));
    }
    assert_int_equal(raw.last_error, CANCEL);
    assert_true(raw.data_bytes < 10000);
    assert_healthy(healthy);
    raw_done(&raw);
}

static bool await_memory(struct healthy *healthy, bool above)
{
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);

    while ((counts_of(healthy).memory_bytes > 5 << 20) != above
           && h2_fixture_in_ms(0) < deadline_ns) {
        pawl__sleep_until(pawl__clock_real(), h2_fixture_in_ms(1));
    }
    return (counts_of(healthy).memory_bytes > 5 << 20) == above;
}

/* All windows are open, and nothing is read: the call is reset, or the connection closed if its socket stays full. */
static void test_a_socket_that_is_not_read_costs_no_memory(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    healthy->fixture.options.limits.stall_ms_max = 2000;
    start(healthy);
    raw_open_with(&raw,
                  pawl__h2_listens_on(healthy->fixture.server),
                  (pawl_view){ "\0\4\x7f\xff\xff\xff", 6 });
    assert_true(raw_frame(&raw, WINDOW_UPDATE, 0, 0, (pawl_view){ "\x7f\x00\x00\x00", 4 }));
    ask_for_big(&raw);
    assert_true(await_memory(healthy, true));
    assert_true(await_memory(healthy, false));
    assert_healthy(healthy);
    raw_done(&raw);
}

/* --- memory --- */

/* 128 calls that announce 16 MiB each, and send a byte of it. */
static void test_what_is_announced_costs_nothing(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    start(healthy);
    raw_open(&raw, healthy);
    for (uint32_t i = 0; i < 128; i++) {
        assert_true(raw_call(&raw, 2 * i + 1, "/test.Echo/Unary", 0));
        assert_true(raw_frame(&raw, DATA, 0, 2 * i + 1, (pawl_view){ "\0\1\0\0\0x", 6 }));
    }
    assert_true(raw_frame(&raw, PING, 0, 0, (pawl_view){ "01234567", 8 }));
    assert_answered(&raw, PING);
    assert_true(counts_of(healthy).memory_bytes < 4 << 20);
    assert_healthy(healthy);
    raw_done(&raw);
}

/* What does arrive is bounded by the budget, and given back. */
static void test_all_connections_have_a_budget(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;
    static char filler[16000];

    healthy->fixture.options.limits.memory_bytes_max = 8 << 20;
    start(healthy);
    stop_healthy(healthy); /* whose small calls may be refused now: that is what a budget is */
    raw_open(&raw, healthy);
    for (uint32_t i = 0; i < 16; i++) {
        assert_true(raw_call(&raw, 2 * i + 1, "/test.Echo/Unary", 0));
        assert_true(raw_frame(&raw, DATA, 0, 2 * i + 1, (pawl_view){ "\0\0\x10\0\0", 5 }));
        for (size_t k = 0; k < 50; k++) {
            assert_true(raw_frame(&raw, DATA, 0, 2 * i + 1, (pawl_view){ filler, sizeof(filler) }));
            raw_read(&raw, 0);
            assert_true(counts_of(healthy).memory_bytes <= 8 << 20);
        }
    }
    assert_answered(&raw, HEADERS); /* the first that was refused */
    assert_false(raw.closed);
    raw_done(&raw);
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);
    while (counts_of(healthy).memory_bytes > 1 << 20 && h2_fixture_in_ms(0) < deadline_ns) {
        pawl__sleep_until(pawl__clock_real(), h2_fixture_in_ms(10));
    }
    assert_true(counts_of(healthy).memory_bytes < 1 << 20);
    struct pawl__buf answer = BUF_INIT(0);
    pawl_error error = PAWL_ERROR_INIT;
    assert_ok(pawl__h2_client_call(healthy->fixture.client,
                                   "/test.Echo/Unary",
                                   pawl_view_of("after"),
                                   h2_fixture_in_ms(PATIENCE_MS),
                                   &answer,
                                   &error),
              &error);
    assert_int_equal(pawl__h2_client_connects(healthy->fixture.client), 1);
    pawl__buf_done(&answer);
}

static void test_connections_beyond_the_limit_are_refused(void **state)
{
    struct healthy *healthy = *state;
    struct raw raws[3];
    struct raw refused;

    healthy->fixture.options.limits.connections_max = 4;
    start(healthy);
    for (size_t i = 0; i < COUNT_OF(raws); i++) {
        raw_open(&raws[i], healthy);
    }
    raw_connect(&refused, pawl__h2_listens_on(healthy->fixture.server));
    assert_closed(&refused);
    assert_int_equal(counts_of(healthy).refused, 1);
    for (size_t i = 0; i < COUNT_OF(raws); i++) {
        raw_done(&raws[i]);
    }
    raw_done(&refused);
    assert_healthy(healthy);
}

static void test_what_is_no_http2_is_ended(void **state)
{
    struct healthy *healthy = *state;
    struct raw raw;

    start(healthy);
    raw_connect(&raw, pawl__h2_listens_on(healthy->fixture.server));
    assert_true(raw_write(&raw, pawl_view_of("GET / HTTP/1.1\r\nhost: x\r\n\r\n")));
    assert_closed(&raw);
    assert_healthy(healthy);
    raw_done(&raw);
}

#define ATTACK(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK(test_rapid_reset_is_ended),
        ATTACK(test_honest_resets_are_none),
        ATTACK(test_a_flood_of_continuations_is_ended),
        ATTACK(test_an_endless_header_is_ended),
        ATTACK(test_a_header_bomb_is_ended),
        ATTACK(test_long_headers_are_refused),
        ATTACK(test_a_flood_of_pings_is_ended),
        ATTACK(test_a_flood_of_settings_is_ended),
        ATTACK(test_a_flood_of_empty_data_is_ended),
        ATTACK(test_a_flood_of_priorities_is_ended),
        ATTACK(test_provoked_resets_are_ended),
        ATTACK(test_a_client_that_says_nothing_is_ended),
        ATTACK(test_a_tls_handshake_that_does_not_end_is_ended),
        ATTACK(test_headers_that_do_not_end_are_ended),
        ATTACK(test_half_a_frame_is_ended),
        ATTACK(test_an_idle_connection_is_told_to_leave),
        ATTACK(test_a_request_that_does_not_come_is_ended),
        ATTACK(test_a_silent_client_with_a_call_is_asked_and_ended),
        ATTACK(test_a_window_that_stays_closed_ends_the_call),
        ATTACK(test_a_window_that_opens_byte_by_byte_ends_the_call),
        ATTACK(test_a_socket_that_is_not_read_costs_no_memory),
        ATTACK(test_what_is_announced_costs_nothing),
        ATTACK(test_all_connections_have_a_budget),
        ATTACK(test_connections_beyond_the_limit_are_refused),
        ATTACK(test_what_is_no_http2_is_ended),
    };

    return cmocka_run_group_tests_name("h2_attacks", tests, NULL, NULL);
}
