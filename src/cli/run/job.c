#include "cli/run/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "cli/run/template.h"

static const char *const names[] = {
    "PAWL_WORK_ITEM_ID", "PAWL_TASK_ID", "PAWL_WORK_TYPE", "PAWL_ATTEMPT",
    "PAWL_TOKEN",        "PAWL_RETRY",   "PAWL_INPUT",
};

void pawl__cli_job_done(struct runner_job *job)
{
    pawl__buf_done(&job->script);
    pawl__buf_done(&job->input);
    pawl__buf_done(&job->variables);
    free(job->environment);
    job->environment = NULL;
}

static bool is_ours(const char *variable)
{
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t len = strlen(names[i]);
        if (strncmp(variable, names[i], len) == 0 && variable[len] == '=') {
            return true;
        }
    }
    return false;
}

static void add_variable(struct pawl__buf *buf, const char *name, pawl_view value)
{
    pawl__buf_add_format(buf, "%s=", name);
    pawl__buf_add(buf, value);
    pawl__buf_add_char(buf, '\0');
}

static void add_number(struct pawl__buf *buf, const char *name, long long value)
{
    pawl__buf_add_format(buf, "%s=%lld", name, value);
    pawl__buf_add_char(buf, '\0');
}

static void add_variables(struct runner_job *job, const pawl_item *item, pawl_view input)
{
    struct pawl__buf *buf = &job->variables;

    add_variable(buf, "PAWL_WORK_ITEM_ID", item->work_item_id);
    add_variable(buf, "PAWL_TASK_ID", item->task_id);
    add_variable(buf, "PAWL_WORK_TYPE", item->work_type);
    add_number(buf, "PAWL_ATTEMPT", (long long)item->attempts);
    add_number(buf, "PAWL_TOKEN", (long long)item->token);
    add_number(buf, "PAWL_RETRY", (long long)item->retry_count);
    if (strlen("PAWL_INPUT=") + input.len < RUNNER_TEXT_MAX) {
        add_variable(buf, "PAWL_INPUT", input);
    }
}

static pawl_status make_environment(struct runner_job *job, pawl_error *reterr)
{
    size_t count = 0;
    size_t kept = 0;

    while (environ[count] != NULL) {
        count++;
    }
    job->environment = calloc(count + COUNT_OF(names) + 1, sizeof(*job->environment));
    if (job->environment == NULL || job->variables.broken) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for the command's variables");
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_ours(environ[i])) {
            job->environment[kept++] = environ[i];
        }
    }
    for (size_t at = 0; at < job->variables.len;) {
        job->environment[kept] = job->variables.data + at;
        at += strlen(job->environment[kept++]) + 1;
    }
    return PAWL_OK;
}

/* A string is given as it is, any other value as JSON. */
static pawl_status input_of(const pawl_item *item,
                            json_t **ret_json,
                            pawl_view *ret_text,
                            pawl_error *reterr)
{
    *ret_text = item->input_data;
    if (item->input_data.len == 0) {
        return PAWL_OK;
    }
    pawl_status status = pawl__json_parse(item->input_data, SIZE_MAX / 2, ret_json, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "the item's input");
    }
    if (json_is_string(*ret_json)) {
        *ret_text = (pawl_view){ json_string_value(*ret_json), json_string_length(*ret_json) };
    }
    return PAWL_OK;
}

pawl_status pawl__cli_job_make(struct runner_job *job,
                               pawl_view command,
                               pawl_view mark,
                               const pawl_item *item,
                               pawl_error *reterr)
{
    json_auto_t *json = NULL;
    pawl_view input;

    *job = (struct runner_job){ .script = BUF_INIT(SIZE_MAX / 2),
                                .input = BUF_INIT(SIZE_MAX / 2),
                                .variables = BUF_INIT(SIZE_MAX / 2) };
    TRY(input_of(item, &json, &input, reterr));
    pawl__cli_template_fill(&job->script, command, mark, input);
    job->too_long = job->script.len >= RUNNER_TEXT_MAX;
    pawl__buf_add(&job->input, input);
    if (input.len > 0) {
        pawl__buf_add_char(&job->input, '\n');
    }
    add_variables(job, item, input);
    if (job->script.broken || job->input.broken) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for the command");
    }
    return make_environment(job, reterr);
}

void pawl__cli_job_output(struct pawl__buf *json,
                          const struct runner_exit *exit,
                          const struct runner_capture captures[2],
                          int64_t duration_ns)
{
    static const char *const streams[] = { "stdout", "stderr" };
    bool cut = false;

    if (exit->signal == 0) {
        pawl__buf_add_format(json, "{\"exit_code\":%d,\"signal\":null", exit->code);
    } else {
        pawl__buf_add_format(json, "{\"exit_code\":null,\"signal\":%d", exit->signal);
    }
    for (int i = 0; i < 2; i++) {
        pawl__buf_add_format(json, ",\"%s\":", streams[i]);
        cut = pawl__cli_capture_add_json(&captures[i], json) || cut;
        pawl__buf_add_format(
            json, ",\"%s_bytes\":%llu", streams[i], (unsigned long long)captures[i].total);
    }
    pawl__buf_add_format(json,
                         ",\"truncated\":%s,\"duration_ms\":%lld}",
                         cut ? "true" : "false",
                         (long long)(duration_ns / NS_PER_MS));
}
