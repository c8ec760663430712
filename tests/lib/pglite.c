#include "lib/pglite.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/error.h"
#include "store/postgres/postgres.h"

enum { START_MS_MAX = 120000 }; /* compiling all that WebAssembly takes a while */

/* Between fork and exec only what a signal handler may do. */
static void become_server(int in, int out, const char *script)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    execlp("node", "node", script, (char *)NULL);
    _exit(127);
}

static bool read_port(int out, int *ret_port)
{
    struct pollfd waits = { .fd = out, .events = POLLIN };
    char line[16] = "";
    size_t len = 0;

    while (len + 1 < sizeof(line) && poll(&waits, 1, START_MS_MAX) == 1
           && read(out, &line[len], 1) == 1) {
        if (line[len] == '\n') {
            line[len] = '\0';
            *ret_port = (int)strtol(line, NULL, 10);
            return *ret_port > 0;
        }
        len++;
    }
    return false;
}

pawl_status pglite_start(struct pglite *pglite, pawl_error *reterr)
{
    const char *folder = getenv("PAWL_TEST_PGLITE"); /* set by meson: tests/pglite */
    char path[4096];
    int pipes[2];
    int port = 0;

    if (folder == NULL) {
        return pawl__fail(reterr, PAWL_UNSUPPORTED, "PAWL_TEST_PGLITE is not set");
    }
    snprintf(path, sizeof(path), "%s/node_modules/@electric-sql/pglite-socket", folder);
    if (access(path, F_OK) != 0 || system("node --version >/dev/null 2>&1") != 0) {
        return pawl__fail(reterr, PAWL_UNSUPPORTED, "PGlite is not installed: scripts/bootstrap");
    }
    snprintf(path, sizeof(path), "%s/serve.mjs", folder);
    int in[2];
    if (pipe2(pipes, O_CLOEXEC) != 0 || pipe2(in, O_CLOEXEC) != 0) {
        return pawl__fail_errno(reterr, errno, "pipe");
    }
    pglite->pid = fork();
    if (pglite->pid == 0) {
        become_server(in[0], pipes[1], path);
    }
    close(pipes[1]);
    close(in[0]); /* the other end stays open as long as this program runs */
    pglite->out = pipes[0];
    if (pglite->pid < 0 || !read_port(pglite->out, &port)) {
        return pawl__fail(reterr, PAWL_FAILED, "PGlite does not start");
    }
    snprintf(pglite->libpq_url,
             sizeof(pglite->libpq_url),
             "postgresql://postgres@127.0.0.1:%d/postgres?sslmode=disable",
             port);
    snprintf(pglite->url, sizeof(pglite->url), "%s&connections=1", pglite->libpq_url);
    return PAWL_OK;
}

void pglite_stop(struct pglite *pglite)
{
    if (pglite->pid > 0) {
        kill(pglite->pid, SIGKILL);
        waitpid(pglite->pid, NULL, 0);
        close(pglite->out);
        pglite->pid = 0;
    }
}

pawl_status pglite_admin(struct pglite *pglite, const char *sql, pawl_error *reterr)
{
    struct pawl__pg *pg = NULL;
    pawl_status status = pawl__pg_open(pglite->libpq_url, NULL, &pg, reterr);

    if (status == PAWL_OK) {
        status = pawl__pg_script(pg, sql, reterr);
    }
    pawl__pg_close(pg);
    return status;
}
