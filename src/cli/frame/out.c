#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/terminal/display.h"
#include "cli/frame/report.h"
#include "cli/frame/run.h"

/* Opened the wrong way round, so that reading or writing a closed stream still fails (EBADF)
 * instead of pretending. */
static void reopen_closed(int fd, int flags)
{
    if (fcntl(fd, F_GETFD) >= 0) {
        return;
    }
    int opened = open("/dev/null", flags); /* the lowest free number: fd */
    if (opened >= 0 && opened != fd) {
        close(opened);
    }
}

void pawl__cli_out_start(void)
{
    reopen_closed(STDIN_FILENO, O_WRONLY);
    reopen_closed(STDOUT_FILENO, O_RDONLY);
    reopen_closed(STDERR_FILENO, O_RDONLY);
    signal(SIGPIPE, SIG_IGN);
}

static pawl_status fail_output(int error_number, pawl_error *reterr)
{
    if (error_number == EPIPE) {
        pawl__fail(reterr, PAWL_CLOSED, "nobody reads standard output any more");
        if (reterr != NULL) {
            reterr->native = EPIPE;
        }
        return PAWL_CLOSED;
    }
    pawl__fail_errno(reterr, error_number, "write standard output");
    if (reterr != NULL) {
        reterr->status = PAWL_IO; /* NO_SPACE and the like are for stores: callers act on them */
        reterr->retryable = false;
    }
    return PAWL_IO;
}

pawl_status pawl__cli_out_fail_gone(pawl_error *reterr)
{
    return fail_output(EPIPE, reterr);
}

pawl_status pawl__cli_out_check(pawl_error *reterr)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return fail_output(errno == 0 ? EIO : errno, reterr);
    }
    return PAWL_OK;
}

static pawl_status write_output(void *context, pawl_view bytes, pawl_error *reterr)
{
    (void)context;
    errno = 0;
    if (bytes.len > 0 && fwrite(bytes.data, 1, bytes.len, stdout) != bytes.len) {
        return fail_output(errno == 0 ? EIO : errno, reterr);
    }
    return PAWL_OK;
}

struct pawl__sink pawl__cli_out_sink(void)
{
    return (struct pawl__sink){ .write = write_output };
}

pawl_status pawl__cli_out_add(const struct pawl__buf *buf, pawl_error *reterr)
{
    TRY(pawl__buf_check(buf, "output", reterr));
    return write_output(NULL, pawl__buf_view(buf), reterr);
}

struct pawl__table_options pawl__cli_out_table(const struct pawl__cli_run *run)
{
    return (struct pawl__table_options){
        .form = run->json               ? PAWL__TABLE_JSON
                : run->term.is_terminal ? PAWL__TABLE_TERMINAL
                                        : PAWL__TABLE_PLAIN,
        .width = run->term.width,
        .colour = run->term.colour,
        .sink = pawl__cli_out_sink(),
    };
}

pawl_status pawl__cli_out_add_json(struct pawl__buf *buf, json_t *json, pawl_error *reterr)
{
    json_auto_t *owned = json;

    TRY(pawl__check_memory(owned, "the output", reterr));
    TRY(pawl__json_dump(owned, buf, reterr));
    pawl__buf_add_char(buf, '\n');
    return PAWL_OK;
}

/* Control characters stand only in the strings of JSON, where \uNNNN means the same; line breaks
 * were taken out before. */
static void add_harmless(struct pawl__buf *buf, pawl_view json)
{
    while (json.len > 0) {
        pawl_view before = json;
        pawl_view taken;
        uint32_t code;

        if (!pawl__view_take_utf8(&json, &code)) {
            return;
        }
        bool acts = (code >= 0x7F && code <= 0x9F) || (code >= 0x200E && code <= 0x200F)
                    || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
        if (acts) {
            pawl__buf_add_format(buf, "\\u%04x", code);
        } else if (pawl__view_take(&before, before.len - json.len, &taken)) {
            pawl__buf_add(buf, taken);
        }
    }
}

void pawl__cli_out_add_value(const struct pawl__cli_run *run, struct pawl__buf *buf, pawl_view json)
{
    if (run->term.is_terminal) {
        add_harmless(buf, json);
    } else {
        pawl__buf_add(buf, json);
    }
}

json_t *pawl__cli_out_text(const char *text)
{
    AUTO(pawl__buf_done) struct pawl__buf safe = BUF_INIT(SIZE_MAX / 2);

    if (pawl__view_is_utf8(pawl_view_of(text))) {
        return json_string(text);
    }
    pawl__display_add_message(&safe, pawl_view_of(text));
    return safe.broken ? NULL : json_string(safe.data);
}

/* close() is the last chance to hear of a write that failed (network file systems). */
static pawl_status close_output(pawl_error *reterr)
{
    pawl_status status = pawl__cli_out_check(reterr);

    errno = 0;
    if (fclose(stdout) != 0 && status == PAWL_OK) {
        status = fail_output(errno == 0 ? EIO : errno, reterr);
    }
    return status;
}

int pawl__cli_out_finish(pawl_status status, const pawl_error *error, bool json, bool only_prints)
{
    pawl_error late = PAWL_ERROR_INIT;
    /* What was printed before a failure still belongs to its reader. */
    pawl_status closing = close_output(&late);

    if (status == PAWL_OK) {
        status = closing;
        error = &late;
    }
    if (only_prints && status == PAWL_CLOSED && error->native == EPIPE) {
        status = PAWL_OK; /* the reader left: it has what it wanted */
    }
    if (status != PAWL_OK) {
        pawl__cli_report(stderr, error, json);
    }
    return pawl_status_exit_code(status);
}
