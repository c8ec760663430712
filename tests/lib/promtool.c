#include "lib/promtool.h"

#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/fs.h"

const char *promtool_says(pawl_view text)
{
    static char said[4096];
    char path[] = "/tmp/pawl-metrics-XXXXXX";
    char command[128];
    AUTO(pawl__fs_close) int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.data, text.len), text.len);
    snprintf(command, sizeof(command), "promtool check metrics <%s 2>&1", path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t len = fread(said, 1, sizeof(said) - 1, pipe);
    said[len] = '\0';
    int status = pclose(pipe);
    unlink(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        return NULL;
    }
    if (len == 0 && status != 0) {
        snprintf(said, sizeof(said), "promtool ended with %d", status);
    }
    return said;
}
