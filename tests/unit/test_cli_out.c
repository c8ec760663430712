/* Standard streams that are closed when the program starts. */
#include "lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/frame/run.h"

/* A store that got the number of a closed stream would have the next message written into it. */
static int child_with_closed_streams(void)
{
    char byte = 0;

    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    pawl__cli_out_start();
    /* cppcheck-suppress leakReturnValNotUsed ; the child ends at once */
    if (open("/dev/null", O_RDWR) <= STDERR_FILENO) {
        return 1;
    }
    if (read(STDIN_FILENO, &byte, 1) != -1 || errno != EBADF) {
        return 2;
    }
    if (write(STDOUT_FILENO, "x", 1) != -1 || errno != EBADF) {
        return 3;
    }
    return write(STDERR_FILENO, "x", 1) == -1 && errno == EBADF ? 0 : 4;
}

static void test_closed_streams_stay_closed_to_everybody_else(void **state)
{
    int status = 0;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(child_with_closed_streams());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_streams_stay_closed_to_everybody_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
