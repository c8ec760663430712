#include "lib/pg_template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_SIZE = 512 };

bool pg_template_path(const char *bindir, char *ret_path, size_t size)
{
    const char *build = getenv("PAWL_BUILD");
    char version[PATH_SIZE];

    if (build == NULL || build[0] == '\0') {
        return false;
    }
    snprintf(version, sizeof(version), "%s", bindir);
    for (char *at = version; *at != '\0'; at++) {
        *at = *at == '/' ? '-' : *at;
    }
    /* The owner of a template is the user that its servers run as. */
    int written = snprintf(ret_path, size, "%s/pg-template%s-%d", build, version, (int)geteuid());
    return written > 0 && (size_t)written < size;
}

int pg_template_lock(const char *path)
{
    char name[PATH_SIZE + 8];

    snprintf(name, sizeof(name), "%s.lock", path);
    int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock >= 0 && flock(lock, LOCK_EX) != 0) {
        close(lock);
        lock = -1;
    }
    return lock;
}

void pg_template_unlock(int lock)
{
    if (lock >= 0) {
        close(lock);
    }
}

static bool run_cp(const char *from, const char *to)
{
    int ended = 0;
    pid_t pid = fork();

    if (pid == 0) {
        execlp("cp", "cp", "-a", from, to, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && ended == 0;
}

bool pg_template_copy(const char *from, const char *to)
{
    char half[PATH_SIZE + 32];

    snprintf(half, sizeof(half), "%s.%d", to, (int)getpid());
    return run_cp(from, half) && rename(half, to) == 0;
}
