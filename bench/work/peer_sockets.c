/* One run of a work queue that is spoken to over a socket: beanstalkd, and Redis as list and as
 * stream.
 *
 *   work_sockets beanstalkd|redis-list|redis-stream PORT ITEMS WORKERS
 *
 * prints {"enqueue_s":…,"drain_s":…}. The server is fresh and empty. One connection enqueues,
 * pipelined by the thousand; then every worker has a connection and a thread of its own and takes
 * one item at a time: the next one only when the server has confirmed the end of the last. */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BATCH = 1000, /* items of one pipelined enqueue; more would fill both sides' socket buffers */
    WORKERS_MAX = 64,
    LINE_SIZE = 512,
    COMMAND_SIZE = 512,
    READ_SIZE = 16384,
};

struct connection {
    int fd;
    char in[READ_SIZE];
    size_t at;
    size_t len;
};

struct peer {
    const char *name;
    size_t (*put)(char *out, size_t size, long i); /* the text that enqueues item i */
    void (*put_answered)(struct connection *c);
    void (*prepare)(struct connection *c);          /* before workers start; or NULL */
    bool (*work)(struct connection *c, int worker); /* one item, claimed and ended; false: none */
};

static const struct peer *peer;
static in_port_t port;
static long items;
static atomic_long ended;

__attribute__((noreturn)) static void die(const char *what, const char *detail)
{
    fprintf(stderr, "work_sockets: %s: %s\n", what, detail);
    exit(1);
}

static void connect_to_peer(struct connection *c)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int on = 1;

    memset(c, 0, sizeof(*c));
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof(address)) != 0
        || setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) {
        die("connect", peer->name);
    }
}

static void send_text(struct connection *c, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(c->fd, text, len, MSG_NOSIGNAL);
        if (sent <= 0) {
            die("send", peer->name);
        }
        text += sent;
        len -= (size_t)sent;
    }
}

static char read_byte(struct connection *c)
{
    if (c->at == c->len) {
        ssize_t got = recv(c->fd, c->in, sizeof(c->in), 0);
        if (got <= 0) {
            die("receive", peer->name);
        }
        c->at = 0;
        c->len = (size_t)got;
    }
    return c->in[c->at++];
}

/* A line without its CR LF. */
static void read_line(struct connection *c, char line[LINE_SIZE])
{
    size_t len = 0;

    for (char byte = read_byte(c); byte != '\n'; byte = read_byte(c)) {
        if (len == LINE_SIZE - 1) {
            die("an answer is too long", peer->name);
        }
        line[len++] = byte;
    }
    line[len > 0 ? len - 1 : 0] = '\0';
}

static void expect_line(struct connection *c, const char *prefix)
{
    char line[LINE_SIZE];

    read_line(c, line);
    if (strncmp(line, prefix, strlen(prefix)) != 0) {
        die("unexpected answer", line);
    }
}

static long number_of(const char *text)
{
    return strtol(text, NULL, 10);
}

/* --- beanstalkd: put; reserve-with-timeout 0 and delete --- */

static size_t beanstalkd_put(char *out, size_t size, long i)
{
    char body[32];
    int len = snprintf(body, sizeof(body), "%ld", i);

    return (size_t)snprintf(out, size, "put 0 0 300 %d\r\n%s\r\n", len, body);
}

static void beanstalkd_put_answered(struct connection *c)
{
    expect_line(c, "INSERTED ");
}

static bool beanstalkd_work(struct connection *c, int worker)
{
    static const char reserve[] = "reserve-with-timeout 0\r\n";
    char line[LINE_SIZE];
    char delete[COMMAND_SIZE];

    (void)worker;
    send_text(c, reserve, sizeof(reserve) - 1);
    read_line(c, line); /* RESERVED id bytes, then the body on a line */
    if (strcmp(line, "TIMED_OUT") == 0) {
        return false;
    }
    if (strncmp(line, "RESERVED ", strlen("RESERVED ")) != 0) {
        die("reserve", line);
    }
    long id = number_of(&line[strlen("RESERVED ")]);
    read_line(c, line);
    send_text(c, delete, (size_t)snprintf(delete, sizeof(delete), "delete %ld\r\n", id));
    expect_line(c, "DELETED");
    return true;
}

/* --- Redis, in the protocol that client libraries speak --- */

/* A command as an array of strings; returns its length. */
static size_t redis_command(char *out, size_t size, const char *const words[], size_t count)
{
    size_t len = (size_t)snprintf(out, size, "*%zu\r\n", count);

    for (size_t i = 0; i < count && len < size; i++) {
        len +=
            (size_t)snprintf(&out[len], size - len, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    }
    if (len >= size) {
        die("a command is too long", words[0]);
    }
    return len;
}

#define REDIS(out, size, ...)                           \
    redis_command((out),                                \
                  (size),                               \
                  (const char *const[]){ __VA_ARGS__ }, \
                  sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

/* The length that a "$n" or "*n" announces; -1: nil. */
static long redis_announced(struct connection *c)
{
    char line[LINE_SIZE];

    read_line(c, line);
    if (line[0] != '$' && line[0] != '*') {
        die("unexpected answer", line);
    }
    return number_of(&line[1]);
}

static void skip_lines(struct connection *c, int count)
{
    char line[LINE_SIZE];

    for (int i = 0; i < count; i++) {
        read_line(c, line);
    }
}

/* --- Redis list: LPUSH; LMOVE to the worker's own list, and LREM from there --- */

static size_t list_put(char *out, size_t size, long i)
{
    char item[32];

    snprintf(item, sizeof(item), "%ld", i);
    return REDIS(out, size, "LPUSH", "queue", item);
}

static void list_put_answered(struct connection *c)
{
    expect_line(c, ":");
}

static bool list_work(struct connection *c, int worker)
{
    char command[COMMAND_SIZE] = "";
    char mine[32];
    char item[LINE_SIZE];

    snprintf(mine, sizeof(mine), "running:%d", worker);
    send_text(c, command, REDIS(command, sizeof(command), "LMOVE", "queue", mine, "RIGHT", "LEFT"));
    if (redis_announced(c) < 0) {
        return false;
    }
    read_line(c, item);
    send_text(c, command, REDIS(command, sizeof(command), "LREM", mine, "1", item));
    expect_line(c, ":1");
    return true;
}

/* --- Redis stream: XADD; XREADGROUP of one, and XACK --- */

static size_t stream_put(char *out, size_t size, long i)
{
    char item[32];

    snprintf(item, sizeof(item), "%ld", i);
    return REDIS(out, size, "XADD", "stream", "*", "i", item);
}

static void stream_put_answered(struct connection *c)
{
    redis_announced(c);
    skip_lines(c, 1); /* the entry's id */
}

static void stream_prepare(struct connection *c)
{
    char command[COMMAND_SIZE] = "";

    send_text(
        c, command, REDIS(command, sizeof(command), "XGROUP", "CREATE", "stream", "workers", "0"));
    expect_line(c, "+OK");
}

static bool stream_work(struct connection *c, int worker)
{
    char command[COMMAND_SIZE] = "";
    char me[32];
    char id[LINE_SIZE];

    snprintf(me, sizeof(me), "w%d", worker);
    send_text(c,
              command,
              REDIS(command,
                    sizeof(command),
                    "XREADGROUP",
                    "GROUP",
                    "workers",
                    me,
                    "COUNT",
                    "1",
                    "STREAMS",
                    "stream",
                    ">"));
    if (redis_announced(c) < 0) {
        return false;
    }
    /* [[stream, [[id, [field, value]]]]], where an array is one line and a string is two. */
    skip_lines(c, 6);
    read_line(c, id);
    skip_lines(c, 5);
    send_text(c, command, REDIS(command, sizeof(command), "XACK", "stream", "workers", id));
    expect_line(c, ":1");
    return true;
}

/* --- the run --- */

static const struct peer peers[] = {
    { "beanstalkd", beanstalkd_put, beanstalkd_put_answered, NULL, beanstalkd_work },
    { "redis-list", list_put, list_put_answered, NULL, list_work },
    { "redis-stream", stream_put, stream_put_answered, stream_prepare, stream_work },
};

static void enqueue(struct connection *c)
{
    static char text[BATCH * COMMAND_SIZE];

    for (long from = 0; from < items; from += BATCH) {
        long to = from + BATCH < items ? from + BATCH : items;
        size_t len = 0;

        for (long i = from; i < to; i++) {
            len += peer->put(&text[len], sizeof(text) - len, i);
        }
        send_text(c, text, len);
        for (long i = from; i < to; i++) {
            peer->put_answered(c);
        }
    }
}

static void *drain(void *argument)
{
    const int *worker = argument;
    struct connection c;

    connect_to_peer(&c);
    while (peer->work(&c, *worker)) {
        atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
    }
    close(c.fd);
    return NULL;
}

static double drain_with(int workers)
{
    pthread_t threads[WORKERS_MAX];
    int numbers[WORKERS_MAX];
    double start = bench_now_s();

    for (int i = 0; i < workers; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, drain, &numbers[i]) != 0) {
            die("pthread_create", peer->name);
        }
    }
    for (int i = 0; i < workers; i++) {
        pthread_join(threads[i], NULL);
    }
    return bench_now_s() - start;
}

int main(int argc, char **argv)
{
    struct connection c;

    for (size_t i = 0; argc == 5 && i < sizeof(peers) / sizeof(peers[0]); i++) {
        peer = strcmp(argv[1], peers[i].name) == 0 ? &peers[i] : peer;
    }
    int workers = peer == NULL ? 0 : (int)number_of(argv[4]);
    if (workers < 1 || workers > WORKERS_MAX) {
        fputs("usage: work_sockets beanstalkd|redis-list|redis-stream PORT ITEMS WORKERS\n",
              stderr);
        return 2;
    }
    port = (in_port_t)number_of(argv[2]);
    items = number_of(argv[3]);
    connect_to_peer(&c);
    double start = bench_now_s();
    enqueue(&c);
    double enqueue_s = bench_now_s() - start;
    if (peer->prepare != NULL) {
        peer->prepare(&c);
    }
    double drain_s = drain_with(workers);
    close(c.fd);
    if (atomic_load(&ended) != items) {
        die("the drain ended early", peer->name);
    }
    printf("{\"enqueue_s\":%.6f,\"drain_s\":%.6f}\n", enqueue_s, drain_s);
    return 0;
}
