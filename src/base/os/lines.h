/* Lines of a file, a pipe or a terminal, one at a time, in memory that does not grow with the
 * input.
 *
 *     AUTO(pawl__lines_done) struct pawl__lines lines = pawl__lines_of(fd, bytes_max);
 *
 *     while ((status = pawl__lines_next(&lines, &line, reterr)) == PAWL_OK) { ... }
 *
 * A line ends with LF, or where the input does; CR LF is fine for a caller that ignores white space. A
 * UTF-8 byte order mark at the start is dropped. The limit counts neither, nor the CR of a CR LF. One
 * thread at a time. */
#ifndef PAWL_BASE_OS_LINES_H
#define PAWL_BASE_OS_LINES_H

#include <pawl/pawl.h>

#include "base/core/buf.h"

struct pawl__lines {
    int fd;          /* borrowed */
    uint64_t number; /* of the line that was returned last, from 1 */
    uint64_t bytes;  /* of the input, up to the end of that line */
    size_t line_bytes_max;
    struct pawl__buf buf; /* [at, len) is still to be returned ... */
    size_t at;
    size_t searched; /* ... and has no line feed before this */
    bool ended;
};

struct pawl__lines pawl__lines_of(int fd, size_t line_bytes_max);
void pawl__lines_done(struct pawl__lines *lines);

/* The next line without its LF, valid until the next call. NOT_FOUND: the input is at its end.
 * INVALID: a line is longer than allowed; the message names the line. */
PAWL_MUST_USE pawl_status pawl__lines_next(struct pawl__lines *lines,
                                           pawl_view *ret_line,
                                           pawl_error *reterr);

/* True when the next call will not wait for anybody. A caller that holds answers back until there are
 * enough of them asks this first, so that a slow writer gets its answer at once. What it reads
 * moves the buffer: the last line is gone. */
bool pawl__lines_ready(struct pawl__lines *lines);

#endif
