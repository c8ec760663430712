/* Log events as lines: logfmt for people, JSON for machines.
 *
 *   time=2026-01-29T10:20:30.123456Z level=info msg="ledger opened" path=runs/a.db events=12
 *   {"time":"2026-01-29T10:20:30.123456Z","level":"info","msg":"ledger
 * opened","path":"runs/a.db",...}
 *
 * Whatever is in a value, an event is one line and the line is well-formed: control characters and
 * quotes are escaped, bytes that are not UTF-8 become U+FFFD. A value that is too long is cut and
 * says so, "abc...(5000 bytes)"; fields that do not fit are counted in `fields_dropped`. */
#ifndef PAWL_BASE_LOG_LOG_WRITE_H
#define PAWL_BASE_LOG_LOG_WRITE_H

#include <stdatomic.h>

#include <pawl/pawl.h>

#include "base/core/buf.h"

/* A line with its newline. No more than PIPE_BUF, so that lines of several processes that share a
 * pipe do not mix. */
#define PAWL__LOG_LINE_MAX 4096
#define PAWL__LOG_MESSAGE_MAX 512 /* bytes of a message */
#define PAWL__LOG_VALUE_MAX 1024  /* bytes of a value */
#define PAWL__LOG_KEY_MAX 64 /* bytes of a key; what is no letter, digit, '.', '-' becomes '_' */
#define PAWL__LOG_FIELDS_MAX 32

enum pawl__log_format {
    PAWL__LOG_LOGFMT,
    PAWL__LOG_JSON,
};

/* Appends one line; `buf` has room for PAWL__LOG_LINE_MAX more. */
void pawl__log_line(const pawl_log_event *event,
                    enum pawl__log_format format,
                    struct pawl__buf *buf);

struct pawl__log_writer {
    int fd;
    enum pawl__log_format format;
    atomic_ulong dropped; /* lines that could not be written: logging never fails its program */
};

/* logfmt when `fd` is a terminal, JSON otherwise. */
void pawl__log_writer_init(struct pawl__log_writer *writer, int fd);

/* The sink: one write(2) a line. `context` is the writer. */
void pawl__log_writer_sink(void *context, const pawl_log_event *event);

#endif
