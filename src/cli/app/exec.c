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

enum {
    COMMAND_BYTES_MAX = 8 << 20,
    IN_FLIGHT_MAX = 256,      /* and commands of a batch */
    BATCH_BYTES_MAX = 4 << 20 /* below what a node takes */
};

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

static pawl_status exec_remote(struct pawl__cli_remote *remote,
                               pawl_view command,
                               char **ret_json,
                               pawl_error *reterr)
{
    const struct pawl__cli_ask ask = { .method = "POST", .target = "/commands", .body = command };
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(SIZE_MAX / 2);
    json_auto_t *answer = NULL;

    TRY(pawl__cli_remote_ask(remote, &ask, &answer, reterr));
    TRY(pawl__json_dump(answer, &text, reterr));
    return pawl__buf_hand_out(&text, "the answer", ret_json, NULL, reterr);
}

static pawl_status exec_one(const struct pawl__cli_run *run,
                            const struct pawl__cli_app *app,
                            pawl_view command,
                            pawl_error *reterr)
{
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    TRY(app->remote == NULL ? pawl_app_exec_json(app->local, 0, command, &json, &len, reterr)
                            : exec_remote(app->remote, command, &json, reterr));
    TRY(print_answer(run, json, reterr));
    return pawl__cli_out_check(reterr);
}

/* --- many lines in flight, answered in the order of the input ---
 *
 * A refused line ends the command, and the corrected input is run again from that line or from the first. So only
 * lines with a key are in flight together: those that were executed after the refused one are found by their keys.
 *
 * A node is sent them in batches: a line waits until its answer is wanted, or a batch is full. */

struct line {
    struct in_flight *flight;
    uint64_t number;
    bool answered;
    pawl_app_response *response; /* of this process, or... */
    char *json;                  /* ...of a node */
    char *command;               /* what a node is to be sent */
    pawl_error error;
};

struct in_flight {
    struct pawl__lock lock; /* covers what answers write: answered, response, error */
    struct pawl__cond changed;
    const struct pawl__cli_run *run;
    const struct pawl__cli_app *app;
    size_t unsent_bytes;              /* of the commands that a node is to be sent */
    struct line lines[IN_FLIGHT_MAX]; /* a ring */
    size_t first;
    size_t count;
};

static void on_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    struct line *line = context;
    struct in_flight *flight = line->flight;

    pawl__lock(&flight->lock);
    line->response = response;
    line->error = *error;
    line->answered = true;
    pawl__cond_signal(&flight->changed);
    pawl__unlock(&flight->lock);
}

static struct line *line_at(struct in_flight *flight, size_t index)
{
    return &flight->lines[(flight->first + index) % IN_FLIGHT_MAX];
}

static void line_done(struct line *line)
{
    pawl_app_response_free(STEAL(line->response));
    free(STEAL(line->json));
    free(STEAL(line->command));
}

/* --- a batch for a node --- */

static pawl_status send_batch(struct in_flight *flight, json_t **ret_answer, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(SIZE_MAX / 2);

    pawl__buf_add_text(&body, "{\"commands\":[");
    for (size_t i = 0; i < flight->count; i++) {
        pawl__buf_add_text(&body, i == 0 ? "" : ",");
        pawl__buf_add_text(&body, line_at(flight, i)->command);
    }
    pawl__buf_add_text(&body, "]}");
    TRY(pawl__buf_check(&body, "a batch", reterr));
    const struct pawl__cli_ask ask = { .method = "POST",
                                       .target = "/batch",
                                       .body = pawl__buf_view(&body) };
    return pawl__cli_remote_ask(flight->app->remote, &ask, ret_answer, reterr);
}

/* Behind one that is refused nothing is executed: there are no outcomes. */
static void read_outcome(struct line *line, const json_t *outcome)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(SIZE_MAX / 2);
    json_t *response = json_object_get(outcome, "response");

    line->answered = true;
    if (outcome == NULL) {
        (void)pawl__fail(&line->error, PAWL_CANCELLED, "a line before it was refused");
    } else if (!json_is_object(response)) {
        (void)pawl__cli_remote_error(outcome, &line->error);
    } else if (pawl__json_dump(response, &text, &line->error) == PAWL_OK) {
        (void)!pawl__buf_hand_out(&text, "the answer", &line->json, NULL, &line->error);
    }
}

/* All lines in flight wait to be sent, or none does. */
static void flush_batch(struct in_flight *flight)
{
    json_auto_t *answer = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = send_batch(flight, &answer, &error);
    const json_t *items = json_object_get(answer, "items");

    for (size_t i = 0; i < flight->count; i++) {
        struct line *line = line_at(flight, i);

        if (status != PAWL_OK) {
            line->answered = true;
            line->error = error;
        } else {
            read_outcome(line, json_array_get(items, i));
        }
    }
    flight->unsent_bytes = 0;
}

/* --- waiting --- */

static struct line *wait_for_first(struct in_flight *flight)
{
    struct line *line = line_at(flight, 0);

    if (flight->app->remote != NULL && !line->answered) {
        flush_batch(flight);
    }
    pawl__lock(&flight->lock);
    while (!line->answered) {
        pawl__cond_wait(&flight->changed, &flight->lock);
    }
    pawl__unlock(&flight->lock);
    flight->first = (flight->first + 1) % IN_FLIGHT_MAX;
    flight->count--;
    return line;
}

static void in_flight_free(struct in_flight *flight)
{
    if (flight == NULL) {
        return;
    }
    while (flight->count > 0) {
        struct line *line = line_at(flight, 0);

        if (flight->app->remote == NULL) { /* what is on its way writes here */
            line = wait_for_first(flight);
        } else { /* what was not sent is not executed */
            flight->first = (flight->first + 1) % IN_FLIGHT_MAX;
            flight->count--;
        }
        line_done(line);
    }
    pawl__cond_done(&flight->changed);
    pawl__lock_done(&flight->lock);
    free(flight);
}
DEFINE_AUTO(struct in_flight *, in_flight_free)

static pawl_status in_flight_new(const struct pawl__cli_run *run,
                                 const struct pawl__cli_app *app,
                                 struct in_flight **ret_ahead,
                                 pawl_error *reterr)
{
    struct in_flight *flight = calloc(1, sizeof(*flight));

    if (flight == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %d lines", IN_FLIGHT_MAX);
    }
    flight->run = run;
    flight->app = app;
    pawl__lock_cond_init(&flight->lock, &flight->changed);
    *ret_ahead = flight;
    return PAWL_OK;
}

static pawl_status fail_line(uint64_t number, const pawl_error *error, pawl_error *reterr)
{
    *reterr = *error;
    return pawl__fail_context(reterr, error->status, "line %llu", (unsigned long long)number);
}

static pawl_status print_first(struct in_flight *flight, pawl_error *reterr)
{
    struct line *line = wait_for_first(flight);
    size_t len = 0;

    pawl_status status = line->error.status;
    if (status != PAWL_OK) {
        status = fail_line(line->number, &line->error, reterr);
    } else if (line->json == NULL) {
        status = pawl_app_response_to_json(
            flight->app->local, line->response, &line->json, &len, reterr);
    }
    if (status == PAWL_OK) {
        status = print_answer(flight->run, line->json, reterr);
    }
    line_done(line);
    return status;
}

static pawl_status print_all(struct in_flight *flight, pawl_error *reterr)
{
    while (flight->count > 0) {
        TRY(print_first(flight, reterr));
    }
    return pawl__cli_out_check(reterr);
}

/* INVALID and so on: it is refused at once, and not in flight. */
static pawl_status put_in_flight(struct in_flight *flight,
                                 struct line *line,
                                 pawl_view command,
                                 pawl_error *reterr)
{
    if (flight->app->remote == NULL) {
        return pawl_app_exec_json_async(
            flight->app->local, 0, (pawl_view){ NULL, 0 }, command, on_answer, line, reterr);
    }
    TRY(pawl__json_check(command, COMMAND_BYTES_MAX, reterr)); /* else it would spoil the batch */
    line->command = pawl__view_dup(command);
    flight->unsent_bytes += command.len;
    return pawl__check_memory(line->command, "a line", reterr);
}

static pawl_status send_line(struct in_flight *flight,
                             uint64_t number,
                             pawl_view command,
                             pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (flight->unsent_bytes + command.len > BATCH_BYTES_MAX
        || (flight->app->remote != NULL && flight->count == IN_FLIGHT_MAX)) {
        TRY(print_all(flight, reterr)); /* those of a batch are answered together */
    }
    if (flight->count == IN_FLIGHT_MAX) {
        TRY(print_first(flight, reterr));
    }
    struct line *line = line_at(flight, flight->count);
    *line = (struct line){ .flight = flight, .number = number };
    if (put_in_flight(flight, line, command, &error) == PAWL_OK) {
        flight->count++;
        return PAWL_OK;
    }
    /* one before it may have been refused as well */
    TRY(print_all(flight, reterr));
    return fail_line(number, &error, reterr);
}

/* Whether the command may be executed again. What cannot be read is refused in any case. */
static bool has_key(pawl_view command)
{
    json_auto_t *json = NULL;

    return pawl__json_parse(command, COMMAND_BYTES_MAX, &json, NULL) != PAWL_OK
           || json_object_get(json, "key") != NULL;
}

static pawl_status exec_line(struct in_flight *flight,
                             uint64_t number,
                             pawl_view command,
                             pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (has_key(command)) {
        return send_line(flight, number, command, reterr);
    }
    TRY(print_all(flight, reterr));
    return exec_one(flight->run, flight->app, command, &error) != PAWL_OK
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

static pawl_status exec_lines(const struct pawl__cli_run *run,
                              const struct pawl__cli_app *app,
                              pawl_error *reterr)
{
    AUTO(pawl__lines_done)
    struct pawl__lines lines = pawl__lines_of(STDIN_FILENO, COMMAND_BYTES_MAX);
    AUTO(in_flight_free_p) struct in_flight *flight = NULL;
    pawl_status status = in_flight_new(run, app, &flight, reterr);
    pawl_status read = PAWL_OK;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_view line;

    while (status == PAWL_OK && read == PAWL_OK) {
        if (!pawl__lines_ready(&lines)) { /* the writer may be waiting for answers */
            status = print_all(flight, reterr);
        }
        if (status == PAWL_OK) {
            read = pawl__lines_next(&lines, &line, &error);
        }
        if (status == PAWL_OK && read == PAWL_OK && !is_blank(line)) {
            status = exec_line(flight, lines.number, line, reterr);
        }
    }
    if (status == PAWL_OK) {
        status = print_all(flight, reterr);
    }
    if (status != PAWL_OK || read == PAWL_NOT_FOUND) {
        return status;
    }
    *reterr = error;
    return pawl__fail_context(reterr, read, "standard input");
}

static pawl_status exec_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_app_done) struct pawl__cli_app app = { .local = NULL };
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
    TRY(pawl__cli_app_await_numbers(&app, reterr));
    return one ? exec_one(run, &app, pawl_view_of(command), reterr) : exec_lines(run, &app, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_app_exec = {
    .name = "exec",
    .summary = "execute commands",
    .description =
        "Executes the command of --command, or one a line from standard input: {\"workspace\": 7, "
        "\"kind\": \"shop\", \"key\": \"pay-1\", \"creates\": [{\"class\": \"c\", \"raw_id\": 1, "
        "\"table\": \"order\", \"data\": {}}], \"updates\": [{\"id\": 200001, \"data\": {}}]}. "
        "Classes are c (can be listed), o, w, and singleton, which has an id of its own, 65536 to "
        "66047, instead of a raw id. In data {\"$raw\": 1} stands for the real id of the record "
        "created as 1, and {\"$next\": \"NAME\"} for the next number of a sequence of the "
        "application's own.\n\n"
        "Each command is answered, when it is on disk, by a line {\"partition\": 1, "
        "\"plog_offset\": 5, \"wlog_offset\": 3, \"duplicate\": false, \"ids\": {\"1\": "
        "1099511627776}, \"numbers\": []}. The same command with the same key again is a "
        "duplicate and has the same answer; another command with that key is a conflict, exit "
        "code 4. A line that is refused ends the command with its number.\n\n"
        "Lines that have a key are executed up to 256 at a time, which is many times faster, and "
        "for each workspace in their order. When one is refused, some after it may have been "
        "executed; the same input again finds them by their keys. A line without a key waits for "
        "those before it.",
    .flags = FLAGS(FLAG("command", "JSON", "The command; @FILE reads a file, - standard input.")),
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(TESTED(APP_EXAMPLE_CREATE " && " APP_EXAMPLE_EXEC, "one command")),
    .run = exec_run,
};
