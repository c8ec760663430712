#include "lib/trace.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/check.h"

enum { TRACE_BYTES_MAX = 64 * 1024, LINE_SIZE = 512 };

struct trace trace_start(void)
{
    return (struct trace){ pawl__clock_virtual_at(0, 0), BUF_INIT(TRACE_BYTES_MAX) };
}

void trace_done(struct trace *trace)
{
    pawl__buf_done(&trace->text);
}

void trace_at(struct trace *trace, int64_t seconds)
{
    pawl__clock_advance(&trace->clock, seconds * NS_PER_S - trace_now_ns(trace));
}

int64_t trace_now_ns(struct trace *trace)
{
    return pawl__monotonic_ns(&trace->clock.base);
}

void trace_add(struct trace *trace, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    pawl__buf_add_format(&trace->text, "[%3" PRId64 "] %s\n", trace_now_ns(trace) / NS_PER_S, line);
}

void assert_trace(struct trace *trace, const char *expected)
{
    pawl_view is = pawl__buf_view(&trace->text);
    pawl_view should = pawl_view_of(expected);
    pawl_view is_line = { 0 };
    pawl_view should_line = { 0 };

    assert_false(trace->text.broken);
    for (int line = 1; is.len > 0 || should.len > 0; line++) {
        bool more_is = pawl__view_split(&is, '\n', &is_line);
        bool more_should = pawl__view_split(&should, '\n', &should_line);
        if (more_is != more_should || !pawl__view_equal(is_line, should_line)) {
            fail_msg("line %d of the trace\n  is     %.*s\n  should %.*s",
                     line,
                     more_is ? (int)is_line.len : 5,
                     more_is ? is_line.data : "(end)",
                     more_should ? (int)should_line.len : 5,
                     more_should ? should_line.data : "(end)");
        }
    }
    pawl__buf_clear(&trace->text);
}
