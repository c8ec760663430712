#include "lib/h2_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/thread/thread.h"

enum { ANSWER_MAX = 64 << 20, HELD_MAX = 4096, PATIENCE_MS = 30000, COUNT_BYTES = 1000 };

int64_t h2_fixture_in_ms(int64_t ms)
{
    return pawl__monotonic_ns(pawl__clock_real()) + ms * NS_PER_MS;
}

bool h2_fixture_await(atomic_size_t *counter, size_t value)
{
    int64_t deadline_ns = h2_fixture_in_ms(PATIENCE_MS);

    while (atomic_load(counter) != value) {
        if (h2_fixture_in_ms(0) > deadline_ns) {
            return false;
        }
        pawl__sleep_until(pawl__clock_real(), h2_fixture_in_ms(2));
    }
    return true;
}

/* --- handlers --- */

static void reply_with(struct pawl__h2_call *call, pawl_view bytes)
{
    struct pawl__buf answer = BUF_INIT(ANSWER_MAX);

    pawl__buf_add(&answer, bytes);
    pawl__h2_reply(call, &answer);
    pawl__buf_done(&answer);
}

static void echo(struct pawl__h2_call *call, void *context)
{
    (void)context;
    reply_with(call, pawl__h2_request(call));
}

static void *answer_later(void *context)
{
    echo(context, NULL);
    return NULL;
}

static void later(struct pawl__h2_call *call, void *context)
{
    pthread_attr_t attributes;
    pthread_t thread;

    (void)context;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, answer_later, call) != 0) {
        echo(call, NULL);
    }
    (void)pthread_attr_destroy(&attributes);
}

static struct {
    pthread_mutex_t mutex;
    struct pawl__h2_call *calls[HELD_MAX];
    size_t count;
} held = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void hold(struct pawl__h2_call *call, void *context)
{
    struct h2_fixture *fixture = context;

    pthread_mutex_lock(&held.mutex);
    bool room = held.count < HELD_MAX;
    if (room) {
        held.calls[held.count++] = call;
    }
    pthread_mutex_unlock(&held.mutex);
    if (!room) {
        pawl__h2_refuse(call, PAWL__H2_RESOURCE_EXHAUSTED, "too many are held", (pawl_view){ 0 });
        return;
    }
    atomic_fetch_add(&fixture->held, 1);
}

static bool take_held(struct pawl__h2_call *call)
{
    bool found = false;

    pthread_mutex_lock(&held.mutex);
    for (size_t i = 0; i < held.count && !found; i++) {
        found = held.calls[i] == call;
        if (found) {
            held.calls[i] = held.calls[--held.count];
        }
    }
    pthread_mutex_unlock(&held.mutex);
    return found;
}

static void hold_gone(struct pawl__h2_call *call, void *context)
{
    struct h2_fixture *fixture = context;

    if (take_held(call)) {
        atomic_fetch_sub(&fixture->held, 1);
        atomic_fetch_add(&fixture->gone, 1);
        pawl__h2_end(call);
    }
}

size_t h2_fixture_release(struct h2_fixture *fixture)
{
    for (size_t released = 0;; released++) {
        pthread_mutex_lock(&held.mutex);
        struct pawl__h2_call *call = held.count == 0 ? NULL : held.calls[held.count - 1];
        held.count -= call != NULL ? 1 : 0;
        pthread_mutex_unlock(&held.mutex);
        if (call == NULL) {
            return released;
        }
        atomic_fetch_sub(&fixture->held, 1);
        reply_with(call, pawl_view_of("released"));
    }
}

static void fail(struct pawl__h2_call *call, void *context)
{
    (void)context;
    pawl__h2_refuse(
        call, PAWL__H2_FAILED_PRECONDITION, "what 100% \xc3\xbc", (pawl_view){ "\1\2\3", 3 });
}

static void who(struct pawl__h2_call *call, void *context)
{
    struct pawl__buf answer = BUF_INIT(1024);
    pawl_view metadata = pawl__h2_metadata(call, "x-test");
    const char *peer = pawl__h2_peer_name(call);

    (void)context;
    pawl__buf_add_format(
        &answer, "peer=%s metadata=%.*s", peer == NULL ? "" : peer, VIEW_ARGS(metadata));
    pawl__h2_reply(call, &answer);
    pawl__buf_done(&answer);
}

static void big(struct pawl__h2_call *call, void *context)
{
    pawl_view request = pawl__h2_request(call);
    struct pawl__buf answer = BUF_INIT(ANSWER_MAX);
    char digits[16] = "";

    (void)context;
    memcpy(digits, request.data, MIN(request.len, sizeof(digits) - 1));
    size_t len = (size_t)strtoul(digits, NULL, 10);
    char *room = pawl__buf_extend(&answer, len);
    for (size_t i = 0; room != NULL && i < len; i++) {
        room[i] = (char)('a' + i * 7 % 23);
    }
    pawl__h2_reply(call, &answer);
    pawl__buf_done(&answer);
}

/* How many are left of a server stream. */
struct counting {
    pthread_mutex_t mutex; /* the handler may still send when it is told that there is room */
    size_t left;
    bool over;
};

static void free_counting(void *attached)
{
    struct counting *counting = attached;

    pthread_mutex_destroy(&counting->mutex);
    free(counting);
}

static void send_counted(struct pawl__h2_call *call, void *context)
{
    struct counting *counting = pawl__h2_attached(call);
    char bytes[COUNT_BYTES];
    pawl_status status = PAWL_OK;

    (void)context;
    memset(bytes, 'x', sizeof(bytes));
    pthread_mutex_lock(&counting->mutex);
    while (!counting->over && counting->left > 0 && status == PAWL_OK) {
        status = pawl__h2_send(call, (pawl_view){ bytes, sizeof(bytes) }, NULL);
        counting->left -= status == PAWL_OK ? 1 : 0;
    }
    bool over = !counting->over && (counting->left == 0 || status == PAWL_CANCELLED);
    counting->over = counting->over || over;
    pthread_mutex_unlock(&counting->mutex);
    if (over) {
        pawl__h2_end(call);
    }
}

static void count_messages(struct pawl__h2_call *call, void *context)
{
    struct counting *counting = calloc(1, sizeof(*counting));
    pawl_view request = pawl__h2_request(call);
    char digits[16] = "";

    if (counting == NULL) {
        abort();
    }
    memcpy(digits, request.data, MIN(request.len, sizeof(digits) - 1));
    counting->left = (size_t)strtoul(digits, NULL, 10);
    pthread_mutex_init(&counting->mutex, NULL);
    pawl__h2_attach(call, counting, free_counting);
    send_counted(call, context);
}

static void count_gone(struct pawl__h2_call *call, void *context)
{
    struct h2_fixture *fixture = context;

    atomic_fetch_add(&fixture->gone, 1);
    send_counted(call, context); /* finds that it is gone, and ends it */
}

static void free_joined(void *attached)
{
    pawl__buf_done(attached);
    free(attached);
}

static void join_begin(struct pawl__h2_call *call, void *context)
{
    struct h2_fixture *fixture = context;
    struct pawl__buf *joined = calloc(1, sizeof(*joined));

    if (joined == NULL) {
        abort();
    }
    joined->max = ANSWER_MAX;
    pawl__h2_attach(call, joined, free_joined);
    atomic_fetch_add(&fixture->opened, 1);
}

static void join_message(struct pawl__h2_call *call, pawl_view message, void *context)
{
    (void)context;
    pawl__buf_add(pawl__h2_attached(call), message);
}

static void join_end(struct pawl__h2_call *call, void *context)
{
    (void)context;
    pawl__h2_reply(call, pawl__h2_attached(call));
}

static void stream_gone(struct pawl__h2_call *call, void *context)
{
    struct h2_fixture *fixture = context;

    atomic_fetch_add(&fixture->gone, 1);
    pawl__h2_end(call);
}

static void chat_begin(struct pawl__h2_call *call, void *context)
{
    struct h2_fixture *fixture = context;

    (void)call;
    atomic_fetch_add(&fixture->opened, 1);
}

static void chat_message(struct pawl__h2_call *call, pawl_view message, void *context)
{
    (void)context;
    /* What does not fit is not read: that is the server's care. */
    if (pawl__h2_send(call, message, NULL) != PAWL_OK) {
        abort();
    }
}

static void chat_end(struct pawl__h2_call *call, void *context)
{
    chat_message(call, pawl_view_of("end"), context);
    pawl__h2_end(call);
}

static const struct pawl__h2_method prototypes[] = {
    { .path = "/test.Echo/Unary", .handle = echo, .scope = 1 },
    { .path = "/test.Echo/Later", .handle = later, .scope = 2 },
    { .path = "/test.Echo/Blocks", .handle = echo, .blocks = true },
    { .path = "/test.Echo/Hold", .handle = hold, .gone = hold_gone },
    { .path = "/test.Echo/Fail", .handle = fail },
    { .path = "/test.Echo/Who", .handle = who },
    { .path = "/test.Echo/Big", .handle = big },
    { .path = "/test.Echo/Count",
      .kind = PAWL__H2_SERVER_STREAM,
      .handle = count_messages,
      .ready = send_counted,
      .gone = count_gone },
    { .path = "/test.Echo/Join",
      .kind = PAWL__H2_CLIENT_STREAM,
      .handle = join_begin,
      .message = join_message,
      .ended = join_end,
      .gone = stream_gone },
    { .path = "/test.Echo/Chat",
      .kind = PAWL__H2_BIDI,
      .handle = chat_begin,
      .message = chat_message,
      .ended = chat_end,
      .gone = stream_gone },
};

/* --- the server --- */

void h2_fixture_init(struct h2_fixture *fixture)
{
    static struct pawl__h2_method methods[COUNT_OF(prototypes)];
    const struct pawl__h2_options options = PAWL__H2_OPTIONS_INIT;

    *fixture = (struct h2_fixture){ .options = options, .error = PAWL_ERROR_INIT };
    memcpy(methods, prototypes, sizeof(methods));
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        methods[i].context = fixture;
    }
    fixture->options.methods = methods;
    fixture->options.method_count = COUNT_OF(methods);
}

pawl_status h2_fixture_start(struct h2_fixture *fixture, pawl_error *reterr)
{
    return pawl__h2_start(&fixture->options, &fixture->server, reterr);
}

pawl_status h2_fixture_connect(struct h2_fixture *fixture,
                               const struct pawl__h2_client_options *options,
                               struct pawl__h2_client **ret_client,
                               pawl_error *reterr)
{
    struct pawl__h2_client_options own = { 0 };

    if (options != NULL) {
        own = *options;
    }
    if (own.address == NULL) {
        own.address = pawl__h2_listens_on(fixture->server);
    }
    return pawl__h2_client_open(&own, ret_client, reterr);
}

void h2_fixture_done(struct h2_fixture *fixture)
{
    pawl_error error = PAWL_ERROR_INIT;

    pawl__h2_client_close(fixture->client);
    h2_fixture_release(fixture);
    if (pawl__h2_stop(fixture->server, h2_fixture_in_ms(PATIENCE_MS), &error) != PAWL_OK) {
        (void)fprintf(stderr, "stop: %s\n", error.message);
        abort();
    }
    if (fixture->directory[0] != '\0') {
        tempdir_remove(fixture->directory);
    }
}

bool h2_fixture_certificates(const char *directory)
{
    static const char script[] =
        "cd '%s' && key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes' && "
        "openssl req -x509 $key -keyout ca.key -out ca.pem -subj /CN=ca -days 2 && "
        "openssl req -x509 $key -keyout other.key -out other-ca.pem -subj /CN=other -days 2 && "
        "issue() { openssl req $key -keyout $1.key -out $1.csr -subj /CN=$2 && "
        "printf 'subjectAltName=%%s' \"$3\" >$1.ext && "
        "openssl x509 -req -in $1.csr -CA $4 -CAkey $5 -CAcreateserial -days 2 -extfile $1.ext "
        "-out $1.pem; } && "
        "issue server localhost DNS:localhost,IP:127.0.0.1 ca.pem ca.key && "
        "issue client ignored DNS:agent-7 ca.pem ca.key && "
        "issue stranger stranger DNS:stranger other-ca.pem other.key";
    struct pawl__buf command = BUF_INIT(4096);

    pawl__buf_add_text(&command, "{ ");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    pawl__buf_add_format(&command, script, directory);
#pragma GCC diagnostic pop
    pawl__buf_add_text(&command, "; } >/dev/null 2>&1");
    bool made = !command.broken && system(command.data) == 0; /* NOLINT(cert-env33-c) */
    pawl__buf_done(&command);
    return made;
}
