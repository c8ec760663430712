#include "base/core/sink.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/core/error.h"

pawl_status pawl__sink_write(const struct pawl__sink *sink, pawl_view bytes, pawl_error *reterr)
{
    return bytes.len == 0 ? PAWL_OK : sink->write(sink->context, bytes, reterr);
}

/* Whether the write is to be tried again. Others may have made the descriptor, which they share with
 * us, non-blocking: then its reader is waited for here. */
static bool may_go_on(int fd, int error_number)
{
    struct pollfd writable = { .fd = fd, .events = POLLOUT };

    if (error_number != EAGAIN) {
        return error_number == EINTR;
    }
    return poll(&writable, 1, -1) >= 0 || errno == EINTR;
}

static pawl_status write_fd(void *context, pawl_view bytes, pawl_error *reterr)
{
    const int *fd = context;

    while (bytes.len > 0) {
        ssize_t written = write(*fd, bytes.data, bytes.len);
        pawl_view done;

        if (written < 0 && !may_go_on(*fd, errno)) {
            return pawl__fail_errno(reterr, errno, "write output");
        }
        REQUIRE(pawl__view_take(&bytes, written > 0 ? (size_t)written : 0, &done));
    }
    return PAWL_OK;
}

struct pawl__sink pawl__sink_fd(int *fd)
{
    return (struct pawl__sink){ write_fd, fd };
}

static pawl_status write_buf(void *context, pawl_view bytes, pawl_error *reterr)
{
    struct pawl__buf *buf = context;

    pawl__buf_add(buf, bytes);
    return pawl__buf_check(buf, "output", reterr);
}

struct pawl__sink pawl__sink_buf(struct pawl__buf *buf)
{
    return (struct pawl__sink){ write_buf, buf };
}
