#include "cli/frame/report.h"

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/terminal/display.h"

#define REPORT_SIZE (PAWL_ERROR_MESSAGE_SIZE * 6 + 256) /* every byte of a message escaped */

static void add_json(struct pawl__buf *line, const pawl_error *error)
{
    pawl__buf_add_format(line,
                         "{\"error\":{\"status\":\"%s\",\"exit_code\":%d,\"retryable\":%s,"
                         "\"message\":",
                         pawl_status_name(error->status),
                         pawl_status_exit_code(error->status),
                         error->retryable ? "true" : "false");
    pawl__display_add_json(line, pawl_view_of(error->message));
    pawl__buf_add_text(line, "}}\n");
}

static void add_text(struct pawl__buf *line, const pawl_error *error)
{
    pawl__buf_add_text(line, "pawl: ");
    pawl__display_add_message(line, pawl_view_of(error->message));
    pawl__buf_add_char(line, '\n');
}

void pawl__cli_report(FILE *file, const pawl_error *error, bool json)
{
    char text[REPORT_SIZE]; /* not from the heap: memory may be what ran out */
    struct pawl__buf line = BUF_OVER(text);

    if (json) {
        add_json(&line, error);
    } else {
        add_text(&line, error);
    }
    REQUIRE(!line.broken);
    (void)fwrite(line.data, 1, line.len, file);
    (void)fflush(file);
}
