/* pawl work submit: one item from flags, or an item for every line of standard input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/sha256.h"
#include "base/json/json.h"
#include "base/os/lines.h"
#include "base/terminal/display.h"
#include "cli/frame/interrupt.h"
#include "cli/work/queue.h"
#include "cli/work/work.h"

enum {
    BATCH_BYTES_MAX = 4 << 20,
    LINE_BYTES_MAX = WORK_DATA_BYTES_MAX, /* the store's own limit for an input */
    ID_SIZE = 64,
};

struct submit {
    struct work_queue queue;
    const struct pawl__cli_run *run;
    char *input; /* of one item */
    pawl_submission defaults;
    bool dedupe;
    bool json_lines;
    bool atomic;
    bool lines_given;

    size_t cap;
    size_t count;
    struct pawl__buf bytes; /* inputs, one after the other */
    size_t *starts;         /* cap + 1 of them */
    uint64_t *lines;        /* which line an item came from */
    char (*ids)[ID_SIZE];
    pawl_submission *submissions;
    pawl_submit_result *results;

    uint64_t submitted;
    uint64_t duplicates;
    uint64_t last_line; /* everything up to it is queued */
};

static void submit_done(struct submit *submit)
{
    pawl__buf_done(&submit->bytes);
    free(submit->input);
    free(submit->starts);
    free(submit->lines);
    free(submit->ids);
    free(submit->submissions);
    free(submit->results);
    pawl__cli_work_close_p(&submit->queue.work);
}

static pawl_status make_room(struct submit *submit, pawl_error *reterr)
{
    submit->cap = PAWL_WORK_BATCH_MAX;
    submit->starts = calloc(submit->cap + 1, sizeof(*submit->starts));
    submit->lines = calloc(submit->cap, sizeof(*submit->lines));
    submit->ids = calloc(submit->cap, sizeof(*submit->ids));
    submit->submissions = calloc(submit->cap, sizeof(*submit->submissions));
    submit->results = calloc(submit->cap, sizeof(*submit->results));
    bool made = submit->starts != NULL && submit->lines != NULL && submit->ids != NULL
                && submit->submissions != NULL && submit->results != NULL;
    if (!made) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a batch");
    }
    submit->results[0].size = sizeof(submit->results[0]);
    return PAWL_OK;
}

/* An item is known to people by its line, or is the only one. */
static void name_line(const struct submit *submit, pawl_error *reterr)
{
    if (reterr == NULL || reterr->index < 0 || (size_t)reterr->index >= submit->count) {
        return;
    }
    size_t index = (size_t)reterr->index;
    char item[48];
    size_t len = (size_t)snprintf(item, sizeof(item), "item %zu: ", index);
    char *message = reterr->message;

    if (strncmp(message, item, len) == 0) {
        memmove(message, message + len, strlen(message + len) + 1);
    }
    if (submit->lines_given) {
        pawl__fail_context(
            reterr, reterr->status, "line %llu", (unsigned long long)submit->lines[index]);
    }
}

static pawl_status queue(struct submit *submit, size_t count, pawl_error *reterr)
{
    const struct work_batch batch = { submit->submissions, count, submit->results };
    pawl_status status = pawl__cli_queue_add(&submit->queue, &batch, reterr);

    if (status != PAWL_OK) {
        name_line(submit, reterr);
    }
    return status;
}

/* --- lines --- */

/* "lines-3f0c...-0000000017-9a1e...": sorted as the lines are, and the same for the same line of the
 * same task and type. */
static pawl_status derive_id(const struct submit *submit,
                             uint64_t line,
                             pawl_view input,
                             char ret_id[ID_SIZE],
                             pawl_error *reterr)
{
    const pawl_view parts[] = { pawl_view_of(submit->queue.task_id),
                                { "", 1 },
                                submit->defaults.work_type };
    struct pawl__sha256 of_task;
    struct pawl__sha256 of_line;
    char task_hex[PAWL__SHA256_HEX_SIZE];
    char line_hex[PAWL__SHA256_HEX_SIZE];

    TRY(pawl__sha256_parts(parts, COUNT_OF(parts), &of_task, reterr));
    TRY(pawl__sha256(input, &of_line, reterr));
    pawl__sha256_hex(&of_task, task_hex);
    pawl__sha256_hex(&of_line, line_hex);
    snprintf(
        ret_id, ID_SIZE, "lines-%.12s-%010llu-%.16s", task_hex, (unsigned long long)line, line_hex);
    return PAWL_OK;
}

static pawl_status fail_at_line(uint64_t line, pawl_status status, pawl_error *reterr)
{
    return pawl__fail_context(reterr, status, "line %llu", (unsigned long long)line);
}

static pawl_status submit_batch(struct submit *submit, pawl_error *reterr)
{
    for (size_t i = 0; i < submit->count; i++) {
        pawl_submission *item = &submit->submissions[i];
        *item = submit->defaults;
        item->task_id = pawl_view_of(submit->queue.task_id);
        item->input_data = (pawl_view){ submit->bytes.data + submit->starts[i],
                                        submit->starts[i + 1] - submit->starts[i] };
        item->work_item_id = pawl_view_of(submit->dedupe ? submit->ids[i] : NULL);
    }
    TRY(queue(submit, submit->count, reterr));
    for (size_t i = 0; i < submit->count; i++) {
        submit->duplicates += submit->results[i].duplicate ? 1 : 0;
    }
    submit->submitted += submit->count;
    submit->last_line = submit->lines[submit->count - 1];
    submit->count = 0;
    pawl__buf_clear(&submit->bytes);
    return PAWL_OK;
}

static pawl_status flush(struct submit *submit, pawl_error *reterr)
{
    if (submit->count == 0) {
        return PAWL_OK;
    }
    TRY(pawl__cli_queue_name_task(&submit->queue, reterr));
    return submit_batch(submit, reterr);
}

static pawl_status check_line(const struct submit *submit, pawl_view line, pawl_error *reterr)
{
    if (line.len > 0 && memchr(line.data, '\0', line.len) != NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "has a NUL byte in it");
    }
    if (submit->json_lines) {
        return pawl__json_check(line, LINE_BYTES_MAX, reterr);
    }
    return pawl__view_is_utf8(line) ? PAWL_OK
                                    : pawl__fail(reterr, PAWL_INVALID, "is not UTF-8 text");
}

/* As a JSON string, byte for byte: it goes to the store, not to a terminal. */
static void add_string(struct pawl__buf *buf, pawl_view text)
{
    pawl__buf_add_char(buf, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c == '"' || c == '\\') {
            pawl__buf_add_char(buf, '\\');
            pawl__buf_add_char(buf, (char)c);
        } else if (c < 0x20) {
            pawl__buf_add_format(buf, "\\u%04x", c);
        } else {
            pawl__buf_add_char(buf, (char)c);
        }
    }
    pawl__buf_add_char(buf, '"');
}

static pawl_status hold(struct submit *submit, pawl_view line, uint64_t number, pawl_error *reterr)
{
    size_t index = submit->count;

    submit->starts[index] = submit->bytes.len;
    if (submit->json_lines) {
        pawl__buf_add(&submit->bytes, line);
    } else {
        add_string(&submit->bytes, line);
    }
    submit->starts[index + 1] = submit->bytes.len;
    submit->lines[index] = number;
    pawl_status status = pawl__buf_check(&submit->bytes, "a batch", reterr);
    size_t len = submit->bytes.len - submit->starts[index];
    if (status == PAWL_OK && len > WORK_DATA_BYTES_MAX) {
        pawl__buf_cut(&submit->bytes, submit->starts[index]);
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "has %zu bytes as a JSON string, the limit is %d",
                          len,
                          WORK_DATA_BYTES_MAX);
    }
    if (status == PAWL_OK && submit->dedupe) {
        status = derive_id(submit, number, line, submit->ids[index], reterr);
    }
    submit->count += status == PAWL_OK ? 1 : 0;
    return status;
}

static pawl_status add_line(struct submit *submit,
                            pawl_view line,
                            uint64_t number,
                            pawl_error *reterr)
{
    if (line.len > 0 && line.data[line.len - 1] == '\r') {
        line.len--; /* of a file from elsewhere */
    }
    if (submit->json_lines && line.len == 0) {
        return PAWL_OK;
    }
    if (submit->atomic && submit->count == submit->cap) {
        return pawl__fail(
            reterr, PAWL_INVALID, "--atomic takes at most %d lines", PAWL_WORK_BATCH_MAX);
    }
    TRY(check_line(submit, line, reterr));
    return hold(submit, line, number, reterr);
}

static bool is_full(const struct submit *submit)
{
    return submit->count == submit->cap || submit->bytes.len >= BATCH_BYTES_MAX;
}

/* What was read before the line at fault is queued, unless all or nothing was asked for. */
static pawl_status end_at(struct submit *submit,
                          uint64_t line,
                          pawl_status status,
                          const pawl_error *bad,
                          pawl_error *reterr)
{
    pawl_status flushed = submit->atomic ? PAWL_OK : flush(submit, reterr);

    if (flushed != PAWL_OK) {
        return flushed;
    }
    *reterr = *bad;
    return line == 0 ? status : fail_at_line(line, status, reterr);
}

static pawl_status submit_lines(struct submit *submit, pawl_error *reterr)
{
    AUTO(pawl__lines_done) struct pawl__lines lines = pawl__lines_of(STDIN_FILENO, LINE_BYTES_MAX);
    pawl_error bad = PAWL_ERROR_INIT;
    pawl_view line;
    pawl_status status;

    pawl__cli_interrupt_catch(NULL);
    while ((status = pawl__lines_next(&lines, &line, &bad)) == PAWL_OK
           && !pawl__cli_interrupted()) {
        status = add_line(submit, line, lines.number, &bad);
        if (status != PAWL_OK) {
            return end_at(submit, lines.number, status, &bad, reterr);
        }
        if (!submit->atomic && (is_full(submit) || !pawl__lines_ready(&lines))) {
            status = flush(submit, reterr);
        }
        if (status != PAWL_OK) {
            return status;
        }
    }
    if (pawl__cli_interrupted()) {
        status = pawl__fail(&bad, PAWL_CANCELLED, "interrupted");
    }
    return status == PAWL_NOT_FOUND ? flush(submit, reterr)
                                    : end_at(submit, 0, status, &bad, reterr);
}

static pawl_status print_lines(const struct submit *submit,
                               const struct pawl__cli_run *run,
                               pawl_error *reterr)
{
    uint64_t queued = submit->submitted - submit->duplicates;

    return pawl__cli_work_answer(
        run,
        ANSWER({ "task_id", true, pawl__cli_cell_of(pawl_view_of(submit->queue.task_id)) },
               { "submitted", false, pawl__cell_integer((int64_t)queued) },
               { "duplicates", false, pawl__cell_integer((int64_t)submit->duplicates) }),
        reterr);
}

/* After a failure in the middle it says how many lines are queued. */
static pawl_status run_lines(struct submit *submit,
                             const struct pawl__cli_run *run,
                             pawl_error *reterr)
{
    pawl_status status = submit_lines(submit, reterr);

    if (status != PAWL_OK && submit->submitted > 0) {
        (void)print_lines(submit, run, NULL);
        return pawl__fail_context(reterr,
                                  status,
                                  "lines up to %llu are queued in task '%s', nothing after them",
                                  (unsigned long long)submit->last_line,
                                  submit->queue.task_id);
    }
    return status == PAWL_OK ? print_lines(submit, run, reterr) : status;
}

/* --- one item --- */

static pawl_status run_one(struct submit *submit,
                           const struct pawl__cli_run *run,
                           pawl_error *reterr)
{
    pawl_submission *item = &submit->submissions[0];
    pawl_view after[PAWL_WORK_AFTER_MAX + 1];
    size_t index = 0;
    const char *id;

    TRY(pawl__cli_queue_name_task(&submit->queue, reterr));
    *item = submit->defaults;
    item->work_item_id = pawl__cli_work_value(run, "id");
    item->task_id = pawl_view_of(submit->queue.task_id);
    item->input_data = pawl_view_of(submit->input);
    item->after = after;
    while (item->after_count < COUNT_OF(after)
           && (id = pawl__cli_args_next(run->args, "after", &index)) != NULL) {
        after[item->after_count++] = pawl_view_of(id);
    }
    TRY(queue(submit, 1, reterr));
    const pawl_submit_result *result = &submit->results[0];
    return pawl__cli_work_answer(
        run,
        ANSWER({ "work_item_id", true, pawl__cell_text(pawl_view_of(result->work_item_id)) },
               { "task_id", true, pawl__cell_text(pawl_view_of(submit->queue.task_id)) },
               { "duplicate", false, pawl__cell_bool(result->duplicate) }),
        reterr);
}

/* --- the command --- */

static pawl_status check_flags(const struct pawl__cli_run *run, pawl_error *reterr)
{
    static const char *const of_lines[] = { "json-lines", "dedupe", "atomic" };
    static const char *const of_one[] = { "id", "input", "after" };
    bool lines = pawl__cli_args_has(run->args, "lines");

    for (size_t i = 0; i < COUNT_OF(of_lines); i++) {
        if (!lines && pawl__cli_args_has(run->args, of_lines[i])) {
            return pawl__fail(reterr, PAWL_INVALID, "'--%s' needs --lines beside it", of_lines[i]);
        }
    }
    for (size_t i = 0; i < COUNT_OF(of_one); i++) {
        if (lines && pawl__cli_args_has(run->args, of_one[i])) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "'--%s' is for one item and does not go with --lines",
                              of_one[i]);
        }
    }
    if (pawl__cli_args_has(run->args, "dedupe") && !pawl__cli_args_has(run->args, "task")) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--dedupe' needs --task beside it: a line is the same only within a "
                          "task");
    }
    return PAWL_OK;
}

static pawl_status check_name(const char *flag, size_t len, pawl_error *reterr)
{
    return len > 0 && len <= PAWL_WORK_NAME_BYTES_MAX
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "'--%s' has %zu bytes, 1 to %d are allowed",
                            flag,
                            len,
                            PAWL_WORK_NAME_BYTES_MAX);
}

static pawl_status parse_names(struct submit *submit, pawl_error *reterr)
{
    const char *task = pawl__cli_args_value(submit->run->args, "task");
    const char *id = pawl__cli_args_value(submit->run->args, "id");

    TRY(check_name("type", submit->defaults.work_type.len, reterr));
    submit->queue.title = pawl__cli_work_value(submit->run, "title");
    if (task != NULL) {
        TRY(check_name("task", strlen(task), reterr));
        memcpy(submit->queue.task_id, task, strlen(task) + 1);
    } else if (submit->queue.title.len == 0) {
        submit->queue.title = submit->defaults.work_type;
    }
    return id == NULL ? PAWL_OK : check_name("id", strlen(id), reterr);
}

static pawl_status submit_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(submit_done)
    struct submit submit = { .defaults = PAWL_SUBMISSION_INIT, .bytes = BUF_INIT(SIZE_MAX / 2) };

    submit.lines_given = pawl__cli_args_has(run->args, "lines");
    submit.defaults.work_type = pawl__cli_work_value(run, "type");
    submit.defaults.priority = (int32_t)pawl__cli_args_number(run->args, "priority");
    submit.defaults.max_retries = (int32_t)pawl__cli_args_number(run->args, "retries");
    submit.dedupe = pawl__cli_args_has(run->args, "dedupe");
    submit.json_lines = pawl__cli_args_has(run->args, "json-lines");
    submit.atomic = pawl__cli_args_has(run->args, "atomic");
    submit.run = run;
    TRY(check_flags(run, reterr));
    TRY(parse_names(&submit, reterr));
    TRY(pawl__cli_work_json(run, "input", &submit.input, reterr));
    TRY(pawl__cli_work_ms(
        run, "delay", 0, INT64_C(3650) * 86400000, &submit.defaults.delay_ms, reterr));
    TRY(make_room(&submit, reterr));
    TRY(pawl__cli_work_open(run, WORK_TO_CREATE, &submit.queue.work, reterr));
    return submit.lines_given ? run_lines(&submit, run, reterr) : run_one(&submit, run, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_work_submit = {
    .name = "submit",
    .summary = "queue one item, or one for every line",
    .description =
        "Queues one item with --input, or with --lines one for every line of standard input: the "
        "line as a JSON string, or as it is with --json-lines. The items belong to the task of "
        "--task, which is made if it is not there; without it, to a new one.\n\n"
        "An item is queued once by its id: the same --id again with the same content is a "
        "duplicate, with other content a conflict (exit code 4). Lines get new ids, so the same "
        "input twice is queued twice. With --task and --dedupe a line's id follows from the task, "
        "the type, the number of the line and what it says: whoever was interrupted submits the "
        "same input again, and what is queued already stays as it is.\n\n"
        "Lines are queued in batches, as they come. A line that is not UTF-8, has a NUL byte or "
        "makes an input of more than 1 MiB (as a JSON string, with its quotes and escapes) ends "
        "the command with its number (exit code 2): everything before it is queued, nothing after "
        "it. With --atomic the whole input, up to 10000 lines, is queued "
        "or nothing of it.",
    .flags = FLAGS(
        FLAG("type", "TYPE", "What kind of work it is.", .required = true),
        FLAG("task", "TASK", "The task it belongs to."),
        FLAG("title", "TEXT", "Of the task, if it is made."),
        FLAG("id", "ID", "Of the item; a new one if it is left out."),
        FLAG("input", "JSON", "What to work on; @FILE reads a file, - standard input."),
        { .name = "lines", .help = "An item for every line of standard input." },
        { .name = "json-lines", .help = "Lines are JSON values already." },
        { .name = "dedupe", .help = "The same lines of the same task are queued once." },
        { .name = "atomic", .help = "All of the lines or none." },
        WORK_PRIORITY_FLAG,
        WORK_RETRIES_FLAG,
        FLAG("delay", "DURATION", "Delay before the item can be claimed: 90s, 2h."),
        FLAG("after", "ID", "An item of the same task that must complete first.", .repeats = true)),
    .examples = EXAMPLES(
        TESTED("seq 1 1000 | pawl work submit --data ./data --type square --lines",
               "a thousand items"),
        TESTED("ls | pawl work submit --data ./data --type pack --task backup-7 --lines --dedupe",
               "again after a crash, without queueing a line twice"),
        TESTED("pawl work submit --data ./data --type mail --input '{\"to\":\"ada\"}' "
               "--delay 2h --priority 10",
               "one item, for later")),
    .run = submit_run,
};
