#include "cli/report.h"

#include "base/buf.h"
#include "base/macros.h"
#include "cli/text.h"

#define REPORT_BYTES_MAX 8192 /* a whole message, every byte of it escaped */

static void add_json(struct pawl__buf *line, const pawl_error *error)
{
    pawl__buf_add_format(line,
                         "{\"error\":{\"status\":\"%s\",\"exit_code\":%d,\"retryable\":%s,"
                         "\"message\":",
                         pawl_status_name(error->status),
                         pawl_status_exit_code(error->status),
                         error->retryable ? "true" : "false");
    pawl__text_add_json(line, pawl_view_of(error->message));
    pawl__buf_add_text(line, "}}\n");
}

static void add_text(struct pawl__buf *line, const pawl_error *error)
{
    pawl__buf_add_text(line, "pawl: ");
    pawl__text_add_safe(line, pawl_view_of(error->message));
    pawl__buf_add_char(line, '\n');
}

void pawl__report(FILE *file, const pawl_error *error, bool json)
{
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(REPORT_BYTES_MAX);

    if (json) {
        add_json(&line, error);
    } else {
        add_text(&line, error);
    }
    if (line.broken) { /* memory is what ran out */
        (void)fprintf(file, "pawl: %s\n", pawl_status_text(error->status));
    } else {
        (void)fwrite(line.data, 1, line.len, file);
    }
    (void)fflush(file);
}
