/* pawl app exec: one command from a flag, or a line each from standard input. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lines.h"
#include "base/macros.h"
#include "cli/app.h"
#include "cli/input.h"
#include "cli/place.h"

enum { COMMAND_BYTES_MAX = 8 << 20 };

/* Busy is waited out as long as the settings say: the flusher needs a moment. */
static pawl_status exec_patiently(const struct pawl__run *run,
                                  pawl_app *app,
                                  pawl_view command,
                                  char **ret_json,
                                  pawl_error *reterr)
{
    struct pawl__clock *clock = pawl__clock_real();
    int64_t deadline_ns = pawl__monotonic_ns(clock) + pawl__place_busy_ms(run) * NS_PER_MS;
    size_t len = 0;
    pawl_status status = pawl_app_exec_json(app, 0, command, ret_json, &len, reterr);

    while (status == PAWL_BUSY && pawl__monotonic_ns(clock) < deadline_ns) {
        pawl__sleep_until(clock, pawl__monotonic_ns(clock) + 5 * NS_PER_MS);
        status = pawl_app_exec_json(app, 0, command, ret_json, &len, reterr);
    }
    return status;
}

static pawl_status exec_one(const struct pawl__run *run,
                            pawl_app *app,
                            pawl_view command,
                            pawl_error *reterr)
{
    AUTO(pawl__text_free) char *json = NULL;
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(SIZE_MAX / 2);
    pawl_status status = exec_patiently(run, app, command, &json, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    pawl__out_add_value(run, &out, pawl_view_of(json));
    pawl__buf_add_char(&out, '\n');
    status = pawl__out_add(&out, reterr);
    return status == PAWL_OK ? pawl__out_check(reterr) : status;
}

static bool is_blank(pawl_view line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] == '\0' || strchr(" \t\r", line.data[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static pawl_status exec_lines(const struct pawl__run *run, pawl_app *app, pawl_error *reterr)
{
    AUTO(pawl__lines_done)
    struct pawl__lines lines = pawl__lines_of(STDIN_FILENO, COMMAND_BYTES_MAX);
    pawl_view line;
    pawl_status status;

    while ((status = pawl__lines_next(&lines, &line, reterr)) == PAWL_OK) {
        if (is_blank(line)) {
            continue;
        }
        status = exec_one(run, app, line, reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(
                reterr, status, "line %llu", (unsigned long long)lines.number);
        }
    }
    return status == PAWL_NOT_FOUND ? PAWL_OK
                                    : pawl__fail_context(reterr, status, "standard input");
}

static pawl_status exec_run(struct pawl__run *run, pawl_error *reterr)
{
    AUTO(pawl__app_close_p) pawl_app *app = NULL;
    AUTO(pawl__text_free) char *command = NULL;
    bool one = pawl__args_has(run->args, "command");
    pawl_status status =
        one ? pawl__input_read(
            "command", pawl__args_value(run->args, "command"), COMMAND_BYTES_MAX, &command, reterr)
            : PAWL_OK;

    if (status == PAWL_OK) {
        status = pawl__app_open_named(run, &app, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__app_await_numbers(app, reterr);
    }
    if (status != PAWL_OK) {
        return status;
    }
    return one ? exec_one(run, app, pawl_view_of(command), reterr) : exec_lines(run, app, reterr);
}

const struct pawl__command pawl__cmd_app_exec = {
    .name = "exec",
    .summary = "execute commands",
    .description =
        "Executes the command of --command, or one a line from standard input: {\"workspace\": 7, "
        "\"kind\": \"shop\", \"key\": \"pay-1\", \"creates\": [{\"class\": \"c\", \"raw_id\": 1, "
        "\"table\": "
        "\"order\", \"data\": {}}], \"updates\": [{\"id\": 200001, \"data\": {}}]}. Classes are c "
        "(can be "
        "listed), o, w, and singleton, which has an id of its own, 65536 to 66047, instead of a "
        "raw id. In data {\"$raw\": 1} stands for the real id of the record created as 1, and "
        "{\"$next\": \"NAME\"} for the next number of a sequence of the application's own.\n\n"
        "Each command is answered, when it is on disk, by a line "
        "{\"partition\": 1, \"plog_offset\": 5, "
        "\"wlog_offset\": 3, \"duplicate\": false, \"ids\": {\"1\": 1099511627776}, \"numbers\": "
        "[]}. The "
        "same command with the same key again is a duplicate and has the same answer; another "
        "command with that key is a conflict, exit code 4. A line that is refused ends the command "
        "with its number.",
    .flags = FLAGS({ .name = "command",
                     .value = "JSON",
                     .help = "The command; @FILE reads a file, - standard input." }),
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES({ .line = APP_EXAMPLE_CREATE " && " APP_EXAMPLE_EXEC,
                           .says = "one command",
                           .runs = true }),
    .run = exec_run,
};
