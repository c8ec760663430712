#include "lib/nats_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "lib/port.h"
#include "lib/tempdir.h"

enum {
    PATH_SIZE = TEMPDIR_SIZE + 32,
    START_MS_MAX = 30000,
    STOP_MS_MAX = 30000,
    PORT_ATTEMPTS_MAX = 5,
    POLL_MS = 5,
    CONFIG_MAX = 16 << 10,
};

struct nats_server {
    struct nats_server *next; /* in `running`, for atexit */
    char program[256];
    char dir[TEMPDIR_SIZE];
    char url[128];
    int port;
    pid_t pid; /* 0: not running */
    struct nats_server_options options;
};

static struct nats_server *running;
static pid_t owner; /* only the process that started a server ends it */

static int64_t now_ns(void)
{
    return pawl__monotonic_ns(pawl__clock_real());
}

static bool find_program(char *ret_path, size_t size)
{
    static const char *const places[] = {
        "/usr/sbin", "/usr/bin", "/usr/local/bin", "/usr/local/sbin"
    };
    const char *given = getenv("PAWL_NATS_SERVER");

    if (given != NULL && given[0] != '\0') {
        snprintf(ret_path, size, "%s", given);
        return access(ret_path, X_OK) == 0;
    }
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        snprintf(ret_path, size, "%s/nats-server", places[i]);
        if (access(ret_path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* "DIR" in the settings becomes the server's directory. */
static void add_settings(struct pawl__buf *buf, const struct nats_server *server)
{
    const char *at = server->options.settings;

    while (at != NULL && *at != '\0') {
        const char *dir = strstr(at, "DIR");
        size_t len = dir == NULL ? strlen(at) : (size_t)(dir - at);
        pawl__buf_add(buf, (pawl_view){ at, len });
        pawl__buf_add_text(buf, dir == NULL ? "" : server->dir);
        at = dir == NULL ? NULL : dir + strlen("DIR");
    }
}

static pawl_status write_config(const struct nats_server *server, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(CONFIG_MAX);
    char path[PATH_SIZE];

    pawl__buf_add_format(&buf,
                         "listen: \"127.0.0.1:%d\"\nserver_name: \"%s\"\n",
                         server->port,
                         server->options.name == NULL ? "pawl-test" : server->options.name);
    if (!server->options.no_jetstream) {
        pawl__buf_add_format(&buf, "jetstream { store_dir: \"%s/store\" }\n", server->dir);
    }
    add_settings(&buf, server);
    pawl_status status = pawl__buf_check(&buf, "the configuration", reterr);
    snprintf(path, sizeof(path), "%s/nats.conf", server->dir);
    return status != PAWL_OK ? status : pawl__fs_replace(path, pawl__buf_view(&buf), reterr);
}

__attribute__((noreturn)) static void become_server(const struct nats_server *server)
{
    char path[PATH_SIZE];
    char log[PATH_SIZE];
    sigset_t none;

    snprintf(log, sizeof(log), "%s/log", server->dir);
    snprintf(path, sizeof(path), "%s/nats.conf", server->dir);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    int null = open("/dev/null", O_RDONLY);
    if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) {
        _exit(126);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1) {
        _exit(126);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    closefrom(3);
    execl(server->program, server->program, "-c", path, (char *)NULL);
    _exit(127);
}

static pawl_status fail_with_log(const struct nats_server *server,
                                 const char *what,
                                 pawl_error *reterr)
{
    char path[PATH_SIZE];
    char text[400] = "";

    snprintf(path, sizeof(path), "%s/log", server->dir);
    FILE *log = fopen(path, "re");
    if (log != NULL) {
        if (fseek(log, -(long)(sizeof(text) - 1), SEEK_END) != 0) {
            rewind(log);
        }
        text[fread(text, 1, sizeof(text) - 1, log)] = '\0';
        fclose(log);
    }
    return pawl__fail(reterr, PAWL_FAILED, "%s; its log ends: %s", what, text);
}

/* It greets with "INFO" once it serves. */
static bool greets(const struct nats_server *server)
{
    char text[8] = "";
    AUTO(pawl__fs_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)server->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        return false;
    }
    struct pollfd wait = { .fd = fd, .events = POLLIN };
    return poll(&wait, 1, 1000) == 1 && read(fd, text, 4) == 4 && strcmp(text, "INFO") == 0;
}

static pawl_status launch(struct nats_server *server, pawl_error *reterr)
{
    int64_t deadline_ns = now_ns() + START_MS_MAX * NS_PER_MS;

    server->pid = fork();
    if (server->pid < 0) {
        server->pid = 0;
        return pawl__fail_errno(reterr, errno, "fork");
    }
    if (server->pid == 0) {
        become_server(server);
    }
    while (!greets(server)) {
        int ended;
        if (waitpid(server->pid, &ended, WNOHANG) == server->pid) {
            server->pid = 0;
            return fail_with_log(server, "nats-server ended at once", reterr);
        }
        if (now_ns() > deadline_ns) {
            return fail_with_log(server, "nats-server did not become ready", reterr);
        }
        poll(NULL, 0, POLL_MS);
    }
    return PAWL_OK;
}

static pawl_status launch_on_a_free_port(struct nats_server *server, pawl_error *reterr)
{
    pawl_status status = PAWL_FAILED;

    for (int i = 0; i < PORT_ATTEMPTS_MAX && status != PAWL_OK; i++) {
        status = port_free(&server->port, reterr);
        status = status != PAWL_OK ? status : write_config(server, reterr);
        status = status != PAWL_OK ? status : launch(server, reterr);
    }
    snprintf(server->url, sizeof(server->url), "nats://127.0.0.1:%d", server->port);
    return status;
}

static void free_all_at_exit(void)
{
    while (getpid() == owner && running != NULL) {
        nats_server_free(running);
    }
}

pawl_status nats_server_start(const struct nats_server_options *options,
                              struct nats_server **ret_server,
                              pawl_error *reterr)
{
    struct nats_server *server = calloc(1, sizeof(*server));

    if (server == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a server");
    }
    if (owner == 0) {
        owner = getpid();
        atexit(free_all_at_exit);
    }
    server->next = running;
    running = server;
    server->options = *options;
    pawl_status status = PAWL_OK;
    if (!find_program(server->program, sizeof(server->program))) {
        status = pawl__fail(reterr, PAWL_UNSUPPORTED, "no nats-server is installed");
    }
    status = status != PAWL_OK ? status : tempdir_make(server->dir, "pawl-nats", reterr);
    status = status != PAWL_OK ? status : launch_on_a_free_port(server, reterr);
    if (status != PAWL_OK) {
        nats_server_free(server);
        return status;
    }
    *ret_server = server;
    return PAWL_OK;
}

static pawl_status end(struct nats_server *server, int signal, pawl_error *reterr)
{
    int64_t deadline_ns = now_ns() + STOP_MS_MAX * NS_PER_MS;
    int ended;

    if (server->pid == 0) {
        return PAWL_OK;
    }
    if (signal != SIGKILL) { /* which reaches a stalled server, and must not let it answer before */
        nats_server_resume(server);
    }
    if (kill(server->pid, signal) != 0) {
        return pawl__fail_errno(reterr, errno, "signal nats-server (pid %d)", (int)server->pid);
    }
    while (waitpid(server->pid, &ended, WNOHANG) == 0) {
        if (now_ns() > deadline_ns) {
            return pawl__fail(reterr, PAWL_TIMEOUT, "nats-server does not end");
        }
        poll(NULL, 0, 1);
    }
    server->pid = 0;
    return PAWL_OK;
}

pawl_status nats_server_kill(struct nats_server *server, pawl_error *reterr)
{
    return end(server, SIGKILL, reterr);
}

pawl_status nats_server_stop(struct nats_server *server, pawl_error *reterr)
{
    return end(server, SIGTERM, reterr);
}

/* All of its threads have stopped when the kernel reports it. */
void nats_server_stall(struct nats_server *server)
{
    int stopped;

    kill(server->pid, SIGSTOP);
    while (waitpid(server->pid, &stopped, WUNTRACED) < 0 && errno == EINTR) {
    }
}

void nats_server_resume(struct nats_server *server)
{
    kill(server->pid, SIGCONT);
}

pawl_status nats_server_restart(struct nats_server *server, pawl_error *reterr)
{
    return launch(server, reterr);
}

void nats_server_free(struct nats_server *server)
{
    if (server == NULL) {
        return;
    }
    pawl_status killed = nats_server_kill(server, NULL);
    (void)killed; /* nothing more can be done */
    for (struct nats_server **at = &running; *at != NULL; at = &(*at)->next) {
        if (*at == server) {
            *at = server->next;
            break;
        }
    }
    if (server->dir[0] != '\0') {
        tempdir_remove(server->dir);
    }
    free(server);
}

const char *nats_server_url(const struct nats_server *server)
{
    return server->url;
}

int nats_server_port(const struct nats_server *server)
{
    return server->port;
}

const char *nats_server_directory(const struct nats_server *server)
{
    return server->dir;
}

static pawl_status copy_tree(const struct nats_server *server,
                             const char *from,
                             const char *to,
                             pawl_error *reterr)
{
    char command[3 * PATH_SIZE];

    snprintf(command,
             sizeof(command),
             "rm -rf '%s/%s' && cp -a '%s/%s' '%s/%s'",
             server->dir,
             to,
             server->dir,
             from,
             server->dir,
             to);
    return system(command) == 0 ? PAWL_OK : pawl__fail(reterr, PAWL_IO, "%s", command);
}

pawl_status nats_server_save(struct nats_server *server, pawl_error *reterr)
{
    return copy_tree(server, "store", "saved", reterr);
}

pawl_status nats_server_put_back(struct nats_server *server, pawl_error *reterr)
{
    return copy_tree(server, "saved", "store", reterr);
}
