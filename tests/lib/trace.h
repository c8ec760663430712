/* A readable record of what happened when, made on the virtual clock and compared as a whole:
 *
 *     struct trace trace = trace_start();
 *     trace_at(&trace, 30);
 *     trace_add(&trace, "bob claims -> token %d", 2);
 *     assert_trace(&trace, "[ 30] bob claims -> token 2\n");
 *
 * A failure shows the first line that differs. */
#ifndef TESTS_TRACE_H
#define TESTS_TRACE_H

#include "base/core/buf.h"
#include "lib/virtual_clock.h"

struct trace {
    struct pawl__clock_virtual clock;
    struct pawl__buf text;
};

struct trace trace_start(void); /* at second 0 */
void trace_done(struct trace *trace);
void trace_at(struct trace *trace, int64_t seconds); /* moves the clock forward to there */
int64_t trace_now_ns(struct trace *trace);
PRINTF_LIKE(2, 3) void trace_add(struct trace *trace, const char *format, ...);
void assert_trace(struct trace *trace, const char *expected);

#endif
