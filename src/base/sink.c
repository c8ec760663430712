#include "base/sink.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"

pawl_status pawl__sink_write(const struct pawl__sink *sink, pawl_view bytes, pawl_error *reterr)
{
    return bytes.len == 0 ? PAWL_OK : sink->write(sink->context, bytes, reterr);
}

static pawl_status write_fd(void *context, pawl_view bytes, pawl_error *reterr)
{
    const int *fd = context;

    while (bytes.len > 0) {
        ssize_t written = write(*fd, bytes.data, bytes.len);
        pawl_view done;

        if (written < 0 && errno != EINTR) {
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
