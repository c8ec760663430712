/* A transaction is its INCRs in one pipeline, a round trip. Whether they are on disk when they are
 * answered is a matter of the server's settings. */
#include "sequencer_peers/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { COMMAND_SIZE = 64, ANSWER_SIZE = 1024 };

struct client {
    int fd;
};

static void prepare(const char *where)
{
    (void)where; /* a key that is not there counts from 0 */
}

static void *open_client(const char *where)
{
    struct client *client = malloc(sizeof(*client));
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((in_port_t)strtoul(where, NULL, 10)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const int on = 1;

    if (client == NULL) {
        peer_stop("Redis", "no memory");
    }
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0
        || connect(client->fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        peer_stop("Redis", strerror(errno));
    }
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return client;
}

static void send_all(const struct client *client, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(client->fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0) {
            peer_stop("Redis", "the connection is lost");
        }
        bytes += sent;
        len -= (size_t)sent;
    }
}

/* So many lines; each is a number: ":17". */
static void read_answers(const struct client *client, int count)
{
    char answer[ANSWER_SIZE];
    bool at_start = true;

    while (count > 0) {
        ssize_t len = recv(client->fd, answer, sizeof(answer), 0);
        if (len <= 0) {
            peer_stop("Redis", "the connection is lost");
        }
        for (ssize_t i = 0; i < len; i++) {
            if (at_start && answer[i] != ':') {
                peer_stop("Redis", "the answer is no number");
            }
            at_start = answer[i] == '\n';
            count -= at_start;
        }
    }
}

static void take(void *context, uint64_t workspace, int numbers)
{
    const struct client *client = context;
    char out[PEER_NUMBERS_MAX * COMMAND_SIZE];
    size_t len = 0;

    for (int i = 0; i < numbers; i++) {
        char key[24];
        int key_len = snprintf(
            key, sizeof(key), "%c%llu", i % 2 == 0 ? 'a' : 'b', (unsigned long long)workspace);
        len += (size_t)snprintf(
            &out[len], sizeof(out) - len, "*2\r\n$4\r\nINCR\r\n$%d\r\n%s\r\n", key_len, key);
    }
    send_all(client, out, len);
    read_answers(client, numbers);
}

static void close_client(void *context)
{
    struct client *client = context;

    close(client->fd);
    free(client);
}

const struct peer peer_redis = {
    .prepare = prepare,
    .open = open_client,
    .take = take,
    .close = close_client,
};
