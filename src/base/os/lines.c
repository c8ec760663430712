#include "base/os/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"

enum { READ_BYTES = 1 << 16 };

struct pawl__lines pawl__lines_of(int fd, size_t line_bytes_max)
{
    return (struct pawl__lines){
        .fd = fd,
        .line_bytes_max = line_bytes_max,
        .buf = BUF_INIT(SIZE_MAX / 2),
    };
}

void pawl__lines_done(struct pawl__lines *lines)
{
    pawl__buf_done(&lines->buf);
}

/* The index of the next line feed, or the buffer's length. */
static size_t find_end(struct pawl__lines *lines)
{
    const char *data = lines->buf.data;
    size_t from = lines->searched;

    if (from < lines->buf.len) {
        const char *end = memchr(&data[from], '\n', lines->buf.len - from);
        lines->searched = end == NULL ? lines->buf.len : (size_t)(end - data);
    }
    return lines->searched;
}

static void drop_returned(struct pawl__lines *lines)
{
    size_t rest = lines->buf.len - lines->at;

    if (lines->at > 0) {
        memmove(lines->buf.data, &lines->buf.data[lines->at], rest);
        pawl__buf_cut(&lines->buf, rest);
        lines->searched -= lines->at;
        lines->at = 0;
    }
}

/* Adds what one read gives. */
static pawl_status read_more(struct pawl__lines *lines, pawl_error *reterr)
{
    drop_returned(lines);
    size_t before = lines->buf.len;
    char *space = pawl__buf_extend(&lines->buf, READ_BYTES);
    TRY(pawl__check_memory(space, "a line", reterr));
    ssize_t got;
    do {
        got = read(lines->fd, space, READ_BYTES);
    } while (got < 0 && errno == EINTR);
    pawl__buf_cut(&lines->buf, before + (got > 0 ? (size_t)got : 0));
    if (got < 0) {
        return pawl__fail_errno(reterr, errno, "read");
    }
    lines->ended = got == 0;
    return PAWL_OK;
}

static pawl_view without_mark(pawl_view line)
{
    static const char mark[] = "\xEF\xBB\xBF";
    pawl_view taken;
    pawl_view rest = line;

    return pawl__view_take(&rest, sizeof(mark) - 1, &taken) && pawl__view_is(taken, mark) ? rest
                                                                                          : line;
}

/* Neither the mark nor the CR of a CR LF, which may still be to come, is counted. */
static bool is_too_long(const struct pawl__lines *lines, size_t end)
{
    size_t len = end - lines->at;

    if (len <= lines->line_bytes_max) {
        return false; /* as nearly all are */
    }
    pawl_view line = { &lines->buf.data[lines->at], len };
    if (lines->number == 0) {
        line = without_mark(line);
    }
    bool fed = line.len > 0 && line.data[line.len - 1] == '\r';
    return line.len - fed > lines->line_bytes_max;
}

static pawl_status give(struct pawl__lines *lines, size_t end, pawl_view *ret_line)
{
    pawl_view line = { &lines->buf.data[lines->at], end - lines->at };
    bool fed = end < lines->buf.len;

    lines->bytes += line.len + fed;
    lines->at = end + fed;
    lines->searched = lines->at;
    *ret_line = lines->number++ == 0 ? without_mark(line) : line;
    return PAWL_OK;
}

pawl_status pawl__lines_next(struct pawl__lines *lines, pawl_view *ret_line, pawl_error *reterr)
{
    for (;;) {
        size_t end = find_end(lines);
        bool whole = end < lines->buf.len || lines->ended;

        if (is_too_long(lines, end)) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "line %llu: over %zu bytes",
                              (unsigned long long)lines->number + 1,
                              lines->line_bytes_max);
        }
        if (whole && end == lines->at && end == lines->buf.len) {
            return pawl__fail(reterr, PAWL_NOT_FOUND, "the input is at its end");
        }
        if (whole) {
            return give(lines, end, ret_line);
        }
        TRY(read_more(lines, reterr));
    }
}

bool pawl__lines_ready(struct pawl__lines *lines)
{
    while (!lines->ended && find_end(lines) == lines->buf.len) {
        struct pollfd input = { .fd = lines->fd, .events = POLLIN };

        if (is_too_long(lines, lines->buf.len)) {
            return true; /* to be refused */
        }
        if (poll(&input, 1, 0) <= 0) {
            return false;
        }
        if (read_more(lines, NULL) != PAWL_OK) {
            return true; /* to fail in the same way */
        }
    }
    return true;
}
