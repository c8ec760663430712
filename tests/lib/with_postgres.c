/* with_postgres COMMAND [ARGUMENT ...]: runs a command with DATABASE_URL set to a new PostgreSQL
 * cluster that ends with it, and PAWL_TEST_POSTGRES_PID to its first process. Exit code of the command; 77 when no PostgreSQL is installed. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/pg_server.h"

enum { EXIT_SKIP = 77 };

static int run(char **argv)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror(argv[0]);
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    struct pg_server *server = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    if (argc < 2) {
        fprintf(stderr, "usage: with_postgres COMMAND [ARGUMENT ...]\n");
        return 2;
    }
    pawl_status status =
        pg_server_start(&(struct pg_server_options){ .settings = NULL }, &server, &error);
    if (status != PAWL_OK) {
        fprintf(stderr, "with_postgres: %s\n", error.message);
        return status == PAWL_UNSUPPORTED ? EXIT_SKIP : 1;
    }
    char pid[32];
    snprintf(pid, sizeof(pid), "%ld", (long)pg_server_pid(server));
    setenv("PAWL_TEST_POSTGRES_PID", pid, 1);
    setenv("DATABASE_URL", pg_server_url(server), 1);
    int code = run(&argv[1]);
    pg_server_free(server);
    return code;
}
