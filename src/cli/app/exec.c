/* pawl app exec: one command from a flag, or one per line of standard input. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/json.h"
#include "base/os/lines.h"
#include "base/thread/thread.h"
#include "cli/app/app.h"
#include "cli/frame/input.h"

enum { COMMAND_BYTES_MAX = 8 << 20, AHEAD_MAX = 256 };

/* --- one --- */

static pawl_status print_answer(const struct pawl__cli_run *run,
                                const char *json,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(SIZE_MAX / 2);

    pawl__cli_out_add_value(run, &out, pawl_view_of(json));
    pawl__buf_add_char(&out, '\n');
    return pawl__cli_out_add(&out, reterr);
}

static pawl_status exec_one(const struct pawl__cli_run *run,
                            pawl_app *app,
                            pawl_view command,
                            pawl_error *reterr)
{
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    TRY(pawl_app_exec_json(app, 0, command, &json, &len, reterr));
    TRY(print_answer(run, json, reterr));
    return pawl__cli_out_check(reterr);
}

/* --- many: those that are on their way, answered in the order of the input ---
 *
 * A line that is refused ends it, and whoever corrects it begins again with that line or with the
 * first. So only lines with a key are on their way together: those that were executed behind it are
 * known by their keys. */

struct line {
    struct lines_ahead *ahead;
    uint64_t number;
    bool answered;
    pawl_app_response *response;
    pawl_error error;
};

struct lines_ahead {
    struct pawl__lock lock; /* covers what answers write: answered, response, error */
    struct pawl__cond changed;
    const struct pawl__cli_run *run;
    pawl_app *app;
    struct line lines[AHEAD_MAX]; /* a ring */
    size_t first;
    size_t count;
};

static void on_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    struct line *line = context;
    struct lines_ahead *ahead = line->ahead;

    pawl__lock(&ahead->lock);
    line->response = response;
    line->error = *error;
    line->answered = true;
    pawl__cond_signal(&ahead->changed);
    pawl__unlock(&ahead->lock);
}

static struct line *wait_for_first(struct lines_ahead *ahead)
{
    struct line *line = &ahead->lines[ahead->first];

    pawl__lock(&ahead->lock);
    while (!line->answered) {
        pawl__cond_wait(&ahead->changed, &ahead->lock);
    }
    pawl__unlock(&ahead->lock);
    ahead->first = (ahead->first + 1) % AHEAD_MAX;
    ahead->count--;
    return line;
}

static void lines_ahead_free(struct lines_ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    while (ahead->count > 0) { /* what is on its way writes here */
        pawl_app_response_free(wait_for_first(ahead)->response);
    }
    pawl__cond_done(&ahead->changed);
    pawl__lock_done(&ahead->lock);
    free(ahead);
}
DEFINE_AUTO(struct lines_ahead *, lines_ahead_free)

static pawl_status lines_ahead_new(const struct pawl__cli_run *run,
                                   pawl_app *app,
                                   struct lines_ahead **ret_ahead,
                                   pawl_error *reterr)
{
    struct lines_ahead *ahead = calloc(1, sizeof(*ahead));

    if (ahead == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %d lines", AHEAD_MAX);
    }
    ahead->run = run;
    ahead->app = app;
    pawl__lock_cond_init(&ahead->lock, &ahead->changed);
    *ret_ahead = ahead;
    return PAWL_OK;
}

static pawl_status fail_line(uint64_t number, const pawl_error *error, pawl_error *reterr)
{
    *reterr = *error;
    return pawl__fail_context(reterr, error->status, "line %llu", (unsigned long long)number);
}

static pawl_status print_first(struct lines_ahead *ahead, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *json = NULL;
    struct line *line = wait_for_first(ahead);
    size_t len = 0;

    if (line->error.status != PAWL_OK) {
        return fail_line(line->number, &line->error, reterr);
    }
    pawl_status status = pawl_app_response_to_json(ahead->app, line->response, &json, &len, reterr);
    pawl_app_response_free(STEAL(line->response));
    return status == PAWL_OK ? print_answer(ahead->run, json, reterr) : status;
}

static pawl_status print_all(struct lines_ahead *ahead, pawl_error *reterr)
{
    while (ahead->count > 0) {
        TRY(print_first(ahead, reterr));
    }
    return pawl__cli_out_check(reterr);
}

static pawl_status send_line(struct lines_ahead *ahead,
                             uint64_t number,
                             pawl_view command,
                             pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (ahead->count == AHEAD_MAX) {
        TRY(print_first(ahead, reterr));
    }
    struct line *line = &ahead->lines[(ahead->first + ahead->count) % AHEAD_MAX];
    *line = (struct line){ .ahead = ahead, .number = number };
    if (pawl_app_submit_json(ahead->app, 0, command, on_answer, line, &error) == PAWL_OK) {
        ahead->count++;
        return PAWL_OK;
    }
    /* one before it may have been refused as well */
    TRY(print_all(ahead, reterr));
    return fail_line(number, &error, reterr);
}

/* Whether the command may be executed again. What cannot be read is refused in any case. */
static bool has_key(pawl_view command)
{
    json_auto_t *json = NULL;

    return pawl__json_parse(command, COMMAND_BYTES_MAX, &json, NULL) != PAWL_OK
           || json_object_get(json, "key") != NULL;
}

static pawl_status exec_line(struct lines_ahead *ahead,
                             uint64_t number,
                             pawl_view command,
                             pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (has_key(command)) {
        return send_line(ahead, number, command, reterr);
    }
    TRY(print_all(ahead, reterr));
    return exec_one(ahead->run, ahead->app, command, &error) != PAWL_OK
               ? fail_line(number, &error, reterr)
               : PAWL_OK;
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

static pawl_status exec_lines(const struct pawl__cli_run *run, pawl_app *app, pawl_error *reterr)
{
    AUTO(pawl__lines_done)
    struct pawl__lines lines = pawl__lines_of(STDIN_FILENO, COMMAND_BYTES_MAX);
    AUTO(lines_ahead_free_p) struct lines_ahead *ahead = NULL;
    pawl_status status = lines_ahead_new(run, app, &ahead, reterr);
    pawl_status read = PAWL_OK;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_view line;

    while (status == PAWL_OK && read == PAWL_OK) {
        if (!pawl__lines_ready(&lines)) { /* whoever writes them may wait for answers */
            status = print_all(ahead, reterr);
        }
        if (status == PAWL_OK) {
            read = pawl__lines_next(&lines, &line, &error);
        }
        if (status == PAWL_OK && read == PAWL_OK && !is_blank(line)) {
            status = exec_line(ahead, lines.number, line, reterr);
        }
    }
    if (status == PAWL_OK) {
        status = print_all(ahead, reterr);
    }
    if (status != PAWL_OK || read == PAWL_NOT_FOUND) {
        return status;
    }
    *reterr = error;
    return pawl__fail_context(reterr, read, "standard input");
}

static pawl_status exec_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_app_close_p) pawl_app *app = NULL;
    AUTO(pawl__text_free) char *command = NULL;
    bool one = pawl__cli_args_has(run->args, "command");

    if (one) {
        TRY(pawl__cli_input_read("command",
                                 pawl__cli_args_value(run->args, "command"),
                                 COMMAND_BYTES_MAX,
                                 &command,
                                 reterr));
    }
    TRY(pawl__cli_app_open_named(run, &app, reterr));
    TRY(pawl__cli_app_await_numbers(app, reterr));
    return one ? exec_one(run, app, pawl_view_of(command), reterr) : exec_lines(run, app, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_app_exec = {
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
        "with its number.\n\n"
        "Lines that have a key are executed up to 256 at a time, which is many times faster, and "
        "for each workspace in their order. When one is refused, some behind it may have been "
        "executed; the same input again finds them by their keys. A line without a key waits for "
        "those before it.",
    .flags = FLAGS({ .name = "command",
                     .value = "JSON",
                     .help = "The command; @FILE reads a file, - standard input." }),
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES({ .line = APP_EXAMPLE_CREATE " && " APP_EXAMPLE_EXEC,
                           .says = "one command",
                           .runs = true }),
    .run = exec_run,
};
