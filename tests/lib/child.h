/* A second process of the same test program, for what must not happen in the first: being killed,
 * losing rights, mounting, a foreign lock. It is started by exec, so that it has none of the
 * threads and none of the engines' state of its parent, and it dies with its parent.
 *
 *     int main(int argc, char **argv)
 *     {
 *         if (child_is_one(argc, argv)) { return run_child(argv); }    argv[2], argv[3], ...
 *         ...
 */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    int out; /* the child's standard output */
};

bool child_is_one(int argc, char **argv);

/* Starts it with up to four arguments, NULL after the last. Fails the test when it cannot. */
void child_start(struct child *child, const char *const arguments[]);

/* The next line it printed, without the line end; false when it ended or said nothing for 30 s. */
bool child_line(struct child *child, char *ret_line, size_t size);

/* Sends `signal` (0: none) and waits for the end; what waitpid says. */
int child_end(struct child *child, int signal);

/* In the child: prints one line at once. */
__attribute__((format(printf, 1, 2))) void child_say(const char *format, ...);

/* In the child, as root: becomes a user without rights. */
bool child_drop_rights(void);

/* In the child, as root: an empty file system of its own at `path`, gone when the child ends. */
bool child_mount_tmpfs(const char *path, const char *options);
bool child_remount_read_only(const char *path);

#endif
