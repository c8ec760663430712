/* What is on the other end of a file descriptor, and the progress of long work on it.
 *
 * A progress bar appears on a terminal once the work has taken a second, is redrawn at most ten
 * times a second, and is gone when the work is done. Where no terminal is, nothing is written. It
 * has no thread: the code that does the work calls pawl__progress_update as often as it likes.
 *
 *     import  ━━━━━━━━━━━━━━━━━━━━━━───────────────────  57%  12.3 k/s  1:23 left
 *     tail    12.3 k  841/s  0:15                            (a total that nobody knows)
 *
 * Threads: a progress belongs to one thread at a time. */
#ifndef PAWL_BASE_TERMINAL_TERM_H
#define PAWL_BASE_TERMINAL_TERM_H

#include <pawl/pawl.h>

#include "base/core/sink.h"
#include "base/os/clock.h"

struct pawl__term {
    bool is_terminal; /* and one that can do more than TERM=dumb */
    bool colour;      /* is_terminal, and NO_COLOR is not set */
    bool unicode;     /* the locale of the environment is UTF-8 */
    size_t width;     /* columns: the terminal's, else COLUMNS, else 80 */
};

struct pawl__term pawl__term_detect(int fd, const char *const *environment);

/* The terminal's columns now; `otherwise` when it is none or does not tell. */
size_t pawl__term_width(int fd, size_t otherwise);

struct pawl__progress_options {
    struct pawl__term term;
    int fd; /* asked for its width before each frame; -1: term.width holds */
    struct pawl__sink sink;
    struct pawl__clock *clock;
    const char *label; /* any text, borrowed; shown safe and cut */
    uint64_t total;    /* 0: unknown */
    uint64_t already;  /* done before: resumed work does not count as speed */
    bool bytes;        /* counts are sizes */
};

struct pawl__progress {
    struct pawl__progress_options options;
    int64_t started_ns;
    int64_t drawn_ns;
    uint64_t drawn_done; /* what drawn_ns and rate are for */
    double rate;         /* a second, recent speed weighing more */
    bool drawn;          /* a frame is on the screen */
    bool off;            /* no terminal, or it went away */
};

struct pawl__progress pawl__progress_start(const struct pawl__progress_options *options);
void pawl__progress_update(struct pawl__progress *progress, uint64_t done);

/* Clears the line, so that something else can be printed; the next frame comes in its time. */
void pawl__progress_clear(struct pawl__progress *progress);

/* Clears the line for good. For AUTO, too. */
void pawl__progress_done(struct pawl__progress *progress);

#endif
