/* Commands over HTTP: 64 connections that stay, each with one command on its way, against the same
 * commands given to pawl_app_exec_json_async in this process, 64 on their way. Node, store and client share
 * the machine, and the client is one thread. */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "lib/tempdir.h"
#include "must.h"
#include "server/node.h"

enum { CLIENTS = 64, COMMANDS = 6400, ROUNDS = 5, ANSWER_SIZE = 4096 };

#define DESCRIPTOR "{\"name\":\"%s\",\"id\":1,\"kinds\":[{\"name\":\"shop\",\"id\":1}]}"
#define COMMAND                                                                                   \
    "{\"kind\":\"shop\",\"creates\":[{\"class\":\"w\",\"raw_id\":1,\"table\":\"order\",\"data\":" \
    "{\"sum\":5}}]}"

/* --- over HTTP --- */

struct client {
    int fd;
    char answer[ANSWER_SIZE];
    size_t len;
};

static int connect_to(const char *address)
{
    struct sockaddr_in place = { .sin_family = AF_INET };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    place.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(fd, (struct sockaddr *)&place, sizeof(place)) == 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static void send_request(int fd, const char *method, const char *path, const char *body)
{
    char text[1024];
    int len = snprintf(text,
                       sizeof(text),
                       "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       method,
                       path,
                       strlen(body),
                       body);

    REQUIRE(send(fd, text, (size_t)len, MSG_NOSIGNAL) == len);
}

static void send_command(const struct client *client, size_t workspace)
{
    char path[128];

    snprintf(path, sizeof(path), "/v1/apps/served/workspaces/%zu/commands", 1 + workspace);
    send_request(client->fd, "POST", path, COMMAND);
}

/* True when the whole answer is there, which is taken away. */
static bool receive(struct client *client)
{
    ssize_t got = recv(client->fd, client->answer + client->len, ANSWER_SIZE - 1 - client->len, 0);

    REQUIRE(got > 0);
    client->len += (size_t)got;
    client->answer[client->len] = '\0';
    const char *end = strstr(client->answer, "\r\n\r\n");
    const char *length = strcasestr(client->answer, "Content-Length:");
    if (end == NULL || length == NULL) {
        return false;
    }
    size_t whole = (size_t)(end - client->answer) + 4 + strtoul(length + 15, NULL, 10);
    if (client->len < whole) {
        return false;
    }
    REQUIRE(strncmp(client->answer, "HTTP/1.1 20", 11) == 0);
    client->len = 0;
    return true;
}

static double run_served(struct client *clients)
{
    struct pollfd waits[CLIENTS];
    size_t sent = CLIENTS;
    double start = bench_now_s();

    for (size_t i = 0; i < CLIENTS; i++) {
        waits[i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
        send_command(&clients[i], i);
    }
    for (size_t answered = 0; answered < COMMANDS;) {
        REQUIRE(poll(waits, CLIENTS, -1) > 0);
        for (size_t i = 0; i < CLIENTS; i++) {
            if ((waits[i].revents & POLLIN) != 0 && receive(&clients[i])) {
                answered++;
                if (sent < COMMANDS) {
                    sent++;
                    send_command(&clients[i], i);
                }
            }
        }
    }
    return bench_now_s() - start;
}

/* --- in this process --- */

static void take_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    REQUIRE(error->status == PAWL_OK);
    pawl_app_response_free(response);
    sem_post(context);
}

static double run_submitted(pawl_app *app)
{
    sem_t free_places;
    double start = bench_now_s();

    sem_init(&free_places, 0, CLIENTS);
    for (size_t i = 0; i < COMMANDS; i++) {
        sem_wait(&free_places);
        MUST(pawl_app_exec_json_async(app,
                                      1 + i % CLIENTS,
                                      (pawl_view){ NULL, 0 },
                                      pawl_view_of(COMMAND),
                                      take_answer,
                                      &free_places,
                                      err));
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        sem_wait(&free_places);
    }
    sem_destroy(&free_places);
    return bench_now_s() - start;
}

static pawl_app *open_app(const char *dir, const pawl_app_options *options)
{
    char path[TEMPDIR_SIZE + 16];
    char descriptor[256];
    pawl_app *app = NULL;

    snprintf(path, sizeof(path), "%s/alone", dir);
    snprintf(descriptor, sizeof(descriptor), DESCRIPTOR, "alone");
    MUST(pawl_app_open_json(path, pawl_view_of(descriptor), options, &app, err));
    MUST(pawl_app_wait(app, 60000, err));
    return app;
}

static void create_served(const char *address)
{
    static struct client client;
    char descriptor[256];

    client.fd = connect_to(address);
    snprintf(descriptor, sizeof(descriptor), DESCRIPTOR, "served");
    send_request(client.fd, "PUT", "/v1/apps/served", descriptor);
    while (!receive(&client)) {
    }
    close(client.fd);
}

int main(void)
{
    static struct client clients[CLIENTS];
    char dir[TEMPDIR_SIZE];
    char place[TEMPDIR_SIZE + 16];
    double served_s[ROUNDS];
    double submitted_s[ROUNDS];
    struct pawl__serve_node *node = NULL;
    struct pawl__serve_options options = { .location = place,
                                           .app = PAWL_APP_OPTIONS_INIT,
                                           .http = PAWL__HTTP_OPTIONS_INIT,
                                           .stop_ms_max = 10000,
                                           .partitions_max = NODE_PARTITIONS_MAX };

    MUST(tempdir_make(dir, "bench-http", err));
    snprintf(place, sizeof(place), "%s/apps", dir);
    options.app.busy_ms_max = 10000;
    MUST(pawl__serve_node_open(&options, &node, err));
    pawl_app *app = open_app(dir, &options.app);
    create_served(pawl__serve_listens_on(node));
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i].fd = connect_to(pawl__serve_listens_on(node));
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        served_s[i] = run_served(clients);
        submitted_s[i] = run_submitted(app);
    }
    bench_report("http/commands of 64 connections",
                 "commands/s",
                 COMMANDS / bench_median(served_s, ROUNDS),
                 "pawl_app_exec_json_async, 64 on their way",
                 COMMANDS / bench_median(submitted_s, ROUNDS),
                 0);
    for (size_t i = 0; i < CLIENTS; i++) {
        close(clients[i].fd);
    }
    MUST(pawl__serve_node_close(node, err));
    pawl_app_close(app, 0, NULL);
    tempdir_remove(dir);
    return 0;
}
