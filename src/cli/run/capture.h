/* The output of a command: all of it for our own output, and its end for the store.
 *
 * The first bytes stay in memory, the rest goes to a file: the log, if there is one, or a temporary
 * one without a name. When that cannot be written (no space) the rest is dropped, counted and said.
 * One thread at a time. */
#ifndef PAWL_CLI_RUN_CAPTURE_H
#define PAWL_CLI_RUN_CAPTURE_H

#include <pawl/pawl.h>

#include "base/core/buf.h"
#include "base/core/sink.h"

enum {
    RUNNER_MEMORY_BYTES = 64 << 10,
    RUNNER_KEPT_BYTES = 64 << 10, /* of each stream, in output_data */
};

struct runner_capture {
    struct pawl__buf memory; /* all of it, up to RUNNER_MEMORY_BYTES */
    int fd;                  /* all of it, once it is open; -1: not yet */
    uint64_t total;          /* bytes written by the command */
    uint64_t stored;         /* of them, those that can be read back */
};

#define RUNNER_CAPTURE_INIT                                \
    {                                                      \
        .memory = BUF_INIT(RUNNER_MEMORY_BYTES), .fd = -1, \
    }

void pawl__cli_capture_done(struct runner_capture *capture);

/* From the start on, all goes into this file, too; what it held is gone. */
PAWL_MUST_USE pawl_status pawl__cli_capture_log(struct runner_capture *capture,
                                                const char *path,
                                                pawl_error *reterr);

void pawl__cli_capture_add(struct runner_capture *capture, pawl_view bytes);

/* Everything, to the sink. */
PAWL_MUST_USE pawl_status pawl__cli_capture_copy(const struct runner_capture *capture,
                                                 const struct pawl__sink *sink,
                                                 pawl_error *reterr);

/* Some of it; start + len is not beyond what is stored. */
PAWL_MUST_USE pawl_status pawl__cli_capture_copy_part(const struct runner_capture *capture,
                                                      uint64_t start,
                                                      uint64_t len,
                                                      const struct pawl__sink *sink,
                                                      pawl_error *reterr);

/* The last bytes, at most RUNNER_KEPT_BYTES of them, as a JSON string: what is no text is U+FFFD.
 * True when something before or after them is missing. */
bool pawl__cli_capture_add_json(const struct runner_capture *capture, struct pawl__buf *json);

/* A file name for an id that may hold anything; malloc'ed, NULL without memory. "a/b", 2, "out":
 * "a%2Fb.2.out". A long one is cut and ends in its hash. */
char *pawl__cli_capture_name(pawl_view id, int64_t attempt, const char *suffix);

#endif
