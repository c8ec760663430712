/* Bytes go to a descriptor whole, whatever state it is in. */
#include "lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/sink.h"
#include "base/thread/thread.h"

enum { BYTES = 1 << 20 }; /* more than a pipe holds */

struct reader {
    struct pawl__thread thread;
    int fd;
    size_t read;
};

static void read_all(void *context)
{
    struct reader *reader = context;
    char bytes[4096];
    ssize_t got;

    while ((got = read(reader->fd, bytes, sizeof(bytes))) > 0) {
        reader->read += (size_t)got;
    }
}

static void test_a_descriptor_that_does_not_block_gets_everything(void **state)
{
    int fds[2];
    struct reader reader = { .read = 0 };
    pawl_error error = PAWL_ERROR_INIT;
    char *bytes = calloc(1, BYTES);

    (void)state;
    assert_non_null(bytes);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    while (write(fds[1], bytes, 4096) > 0) { /* full: the first write of the sink finds no room */
    }
    assert_int_equal(errno, EAGAIN);
    reader.fd = fds[0];
    assert_ok(pawl__thread_start(&reader.thread, "reader", read_all, &reader, &error), &error);
    struct pawl__sink sink = pawl__sink_fd(&fds[1]);
    assert_ok(pawl__sink_write(&sink, (pawl_view){ bytes, BYTES }, &error), &error);
    close(fds[1]);
    pawl__thread_join(&reader.thread);
    assert_true(reader.read > BYTES);
    close(fds[0]);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_descriptor_that_does_not_block_gets_everything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
