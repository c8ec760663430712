#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/fs.h"
#include "base/thread/thread.h"

enum { EXCLUDING_BYTE = 0, NAMING_BYTE = 1, COMMAND_SIZE = 120 };

struct pawl__store_lock {
    struct pawl__store_lock *next; /* in `held` */
    dev_t device;
    ino_t inode;
    int fd; /* -1 in a child of fork */
    char *file;
};

/* What this process holds. The list answers a second open in this process without opening the file:
 * closing it again would drop the process lock of the first. */
static struct {
    struct pawl__lock lock; /* covers everything below */
    struct pawl__store_lock *first;
} held = { .lock = { .mutex = PTHREAD_MUTEX_INITIALIZER } };

static void before_fork(void) ACQUIRES_LOCK(held.lock)
{
    pawl__lock(&held.lock);
}

static void after_fork_in_parent(void) RELEASES_LOCK(held.lock)
{
    pawl__unlock(&held.lock);
}

/* The open file description is shared with the parent: a child that kept it open would go on
 * holding the lock after the parent's death. Closing the copy releases nothing of the parent's. */
static void after_fork_in_child(void) RELEASES_LOCK(held.lock)
{
    for (struct pawl__store_lock *lock = held.first; lock != NULL; lock = lock->next) {
        pawl__fs_close(&lock->fd);
    }
    pawl__unlock(&held.lock);
}

static int atfork_error;

static void register_atfork(void)
{
    atfork_error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* "pawl serve --data x" of a process; empty when it cannot be read. */
static void read_command(pid_t pid, char ret_command[COMMAND_SIZE])
{
    char path[64];

    ret_command[0] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    AUTO(pawl__fs_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, ret_command, COMMAND_SIZE - 1);
    if (len <= 0) {
        return;
    }
    while (len > 0 && ret_command[len - 1] == '\0') {
        len--;
    }
    ret_command[len] = '\0';
    for (ssize_t i = 0; i < len; i++) { /* arguments end in NUL; the rest is somebody else's text */
        unsigned char c = (unsigned char)ret_command[i];
        ret_command[i] = c == '\0' ? ' ' : (char)(c < ' ' || c >= 0x7F ? '?' : c);
    }
}

static pawl_status fail_held_here(const char *store, pawl_error *reterr)
{
    return pawl__fail(
        reterr, PAWL_BUSY, "'%s' is already open in this process: close that handle first", store);
}

/* Who holds byte 1? 0 when nobody does any more, or when it is somebody out of our sight (another
 * container, or a process that has just let go). */
static pid_t holder_of(int fd)
{
    struct flock query = { .l_type = F_WRLCK, .l_start = NAMING_BYTE, .l_len = 1 };

    if (fcntl(fd, F_GETLK, &query) != 0 || query.l_type == F_UNLCK || query.l_pid < 0) {
        return 0;
    }
    return query.l_pid;
}

static pawl_status fail_held_elsewhere(const char *store, int fd, pawl_error *reterr)
{
    char command[COMMAND_SIZE];
    pid_t pid = holder_of(fd);

    if (pid == 0) {
        return pawl__fail(reterr,
                          PAWL_BUSY,
                          "'%s' is in use by another process: stop it, or work through the node "
                          "that holds it",
                          store);
    }
    read_command(pid, command);
    return pawl__fail(reterr,
                      PAWL_BUSY,
                      "'%s' is in use by process %d%s%s%s: stop it, or work through the node that "
                      "holds it",
                      store,
                      (int)pid,
                      command[0] == '\0' ? "" : " (",
                      command,
                      command[0] == '\0' ? "" : ")");
}

static pawl_status set_locks(int fd, const char *store, const char *file, pawl_error *reterr)
{
    struct flock naming = { .l_type = F_WRLCK, .l_start = NAMING_BYTE, .l_len = 1 };
    struct flock excluding = { .l_type = F_WRLCK, .l_start = EXCLUDING_BYTE, .l_len = 1 };

    /* The naming lock first: a process that loses against it can always be told the pid. */
    if (fcntl(fd, F_SETLK, &naming) == 0 && fcntl(fd, F_OFD_SETLK, &excluding) == 0) {
        return PAWL_OK;
    }
    if (errno == EAGAIN || errno == EACCES) {
        return fail_held_elsewhere(store, fd, reterr);
    }
    return pawl__fail_errno(reterr, errno, "lock '%s'", file);
}

static bool is_held_here_locked(const struct stat *info) REQUIRES_LOCK(held.lock)
{
    for (const struct pawl__store_lock *lock = held.first; lock != NULL; lock = lock->next) {
        /* In a child of fork the list is the parent's, whose locks the child does not own: it must
         * ask the kernel. */
        if (lock->fd >= 0 && lock->device == info->st_dev && lock->inode == info->st_ino) {
            return true;
        }
    }
    return false;
}

static pawl_status take_locked(struct pawl__store_lock *lock,
                               const char *store,
                               const char *file,
                               pawl_error *reterr) REQUIRES_LOCK(held.lock)
{
    struct stat info;

    if (stat(file, &info) == 0 && is_held_here_locked(&info)) {
        return fail_held_here(store, reterr);
    }
    AUTO(pawl__fs_close)
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "open lock file '%s'", file);
    }
    if (fstat(fd, &info) != 0) {
        return pawl__fail_errno(reterr, errno, "inspect lock file '%s'", file);
    }
    if (!S_ISREG(info.st_mode)) {
        return pawl__fail(reterr, PAWL_INVALID, "lock file '%s' is not a regular file", file);
    }
    TRY(set_locks(fd, store, file, reterr));
    lock->device = info.st_dev;
    lock->inode = info.st_ino;
    lock->fd = fd;
    fd = -1; /* handed over */
    lock->next = held.first;
    held.first = lock;
    return PAWL_OK;
}

static pawl_status take(const char *store,
                        const char *file,
                        struct pawl__store_lock **ret_lock,
                        pawl_error *reterr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_atfork);
    if (atfork_error != 0) {
        return pawl__fail_errno(reterr, atfork_error, "register what a fork must close");
    }
    struct pawl__store_lock *lock = calloc(1, sizeof(*lock));
    if (lock == NULL || (lock->file = strdup(file)) == NULL) {
        free(lock);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a lock");
    }
    pawl__lock(&held.lock);
    pawl_status status = take_locked(lock, store, file, reterr);
    pawl__unlock(&held.lock);
    if (status != PAWL_OK) {
        free(lock->file);
        free(lock);
        return status;
    }
    *ret_lock = lock;
    return PAWL_OK;
}

static pawl_status inspect_locked(const char *store, const char *file, pawl_error *reterr)
    REQUIRES_LOCK(held.lock)
{
    struct flock query = { .l_type = F_WRLCK, .l_start = EXCLUDING_BYTE, .l_len = 1 };
    struct stat info;

    if (stat(file, &info) == 0 && is_held_here_locked(&info)) {
        return fail_held_here(store, reterr); /* and the file must not be opened: see `held` */
    }
    AUTO(pawl__fs_close) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return errno == ENOENT ? PAWL_OK
                               : pawl__fail_errno(reterr, errno, "open lock file '%s'", file);
    }
    if (fcntl(fd, F_OFD_GETLK, &query) != 0) {
        return pawl__fail_errno(reterr, errno, "inspect lock file '%s'", file);
    }
    return query.l_type == F_UNLCK ? PAWL_OK : fail_held_elsewhere(store, fd, reterr);
}

static pawl_status inspect(const char *store, const char *file, pawl_error *reterr)
{
    pawl__lock(&held.lock);
    pawl_status status = inspect_locked(store, file, reterr);
    pawl__unlock(&held.lock);
    return status;
}

/* "<path>.lock" beside a file, with symbolic links followed, or "pawl.lock" inside a directory; malloc'ed. */
static pawl_status name_lock(const char *path, bool inside, char **ret_file, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *real = inside ? NULL : realpath(path, NULL);

    if (!inside && real == NULL && errno != ENOENT) {
        return pawl__fail_errno(reterr, errno, "inspect '%s'", path);
    }
    if (asprintf(ret_file, inside ? "%s/pawl.lock" : "%s.lock", real == NULL ? path : real) < 0) {
        *ret_file = NULL;
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
    }
    return PAWL_OK;
}

static pawl_status lock_at(const char *path,
                           bool inside,
                           struct pawl__store_lock **ret_lock,
                           pawl_error *reterr)
{
    AUTO(pawl__text_free) char *file = NULL;

    TRY(name_lock(path, inside, &file, reterr));
    return ret_lock == NULL ? inspect(path, file, reterr) : take(path, file, ret_lock, reterr);
}

pawl_status pawl__store_lock_beside(const char *path,
                                    struct pawl__store_lock **ret_lock,
                                    pawl_error *reterr)
{
    return lock_at(path, false, ret_lock, reterr);
}

pawl_status pawl__store_lock_inside(const char *directory,
                                    struct pawl__store_lock **ret_lock,
                                    pawl_error *reterr)
{
    return lock_at(directory, true, ret_lock, reterr);
}

pawl_status pawl__store_lock_inspect_beside(const char *path, pawl_error *reterr)
{
    return lock_at(path, false, NULL, reterr);
}

pawl_status pawl__store_lock_inspect_inside(const char *directory, pawl_error *reterr)
{
    return lock_at(directory, true, NULL, reterr);
}

/* The inode cannot be another's: the descriptor keeps it. */
bool pawl__store_lock_in_place(const struct pawl__store_lock *lock)
{
    struct stat info;

    if (stat(lock->file, &info) != 0) {
        return errno != ENOENT
               && errno != ENOTDIR; /* a file that cannot be read is not known to be gone */
    }
    return info.st_dev == lock->device && info.st_ino == lock->inode;
}

static void forget_locked(const struct pawl__store_lock *lock) REQUIRES_LOCK(held.lock)
{
    for (struct pawl__store_lock **at = &held.first; *at != NULL; at = &(*at)->next) {
        if (*at == lock) {
            *at = lock->next;
            return;
        }
    }
}

void pawl__store_lock_release(struct pawl__store_lock *lock)
{
    if (lock == NULL) {
        return;
    }
    pawl__lock(&held.lock);
    forget_locked(lock);
    if (lock->fd >= 0) {
        /* Closing alone would not do: a child that is just being forked still has a copy. */
        struct flock unlock = { .l_type = F_UNLCK, .l_start = EXCLUDING_BYTE, .l_len = 1 };

        fcntl(lock->fd, F_OFD_SETLK, &unlock);
    }
    /* Under the list's lock: between forgetting and closing, a second open in this process would
     * find the file locked by nobody it knows. */
    pawl__fs_close(&lock->fd);
    pawl__unlock(&held.lock);
    free(lock->file);
    free(lock);
}
