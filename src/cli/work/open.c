#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "cli/frame/input.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/location.h"
#include "cli/work/work.h"
#include "config/config.h"

static const struct pawl__cli_location store = { .flag = "work", .file = "work.sqlite" };

void pawl__cli_work_close_p(pawl_work **work)
{
    pawl__cli_interrupt_escalates(NULL);
    pawl_work_close(*work, 0, NULL);
}

int64_t pawl__cli_work_setting_ms(const struct pawl__cli_run *run, enum pawl__setting_id id)
{
    return pawl__config_number(run->config, id) / NS_PER_MS;
}

pawl_work_options pawl__cli_work_options(const struct pawl__cli_run *run)
{
    pawl_work_options options = PAWL_WORK_OPTIONS_INIT;

    options.busy_ms_max = pawl__cli_busy_ms(run);
    options.answer_ms_max = pawl__cli_answer_ms(run);
    options.lease_ms = (uint32_t)pawl__cli_work_setting_ms(run, PAWL__WORK_LEASE);
    options.stale_ms = (uint32_t)pawl__cli_work_setting_ms(run, PAWL__WORK_STALE);
    return options;
}

void pawl__cli_work_bound_answer(pawl_work_options *options, int64_t wait_ms)
{
    enum { LEAST_MS = 1000 };

    if (wait_ms > 0) {
        int64_t half_ms = MAX(wait_ms / 2, (int64_t)LEAST_MS);
        options->busy_ms_max = (uint32_t)MIN((int64_t)options->busy_ms_max, half_ms);
        options->answer_ms_max = (uint32_t)MIN((int64_t)options->answer_ms_max, half_ms);
    }
}

static void interrupt_store(void *work)
{
    pawl_work_interrupt(work);
}

static struct pawl__cli_wakeable escalation; /* a command has one store open at a time */

pawl_status pawl__cli_work_open_with(const struct pawl__cli_run *run,
                                     enum pawl__cli_work_access access,
                                     pawl_work_options *options,
                                     pawl_work **ret_work,
                                     pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;

    options->must_exist = access == WORK_THAT_EXISTS;
    TRY(pawl__cli_location_of(run, &store, &location, reterr));
    if (strcmp(location, "memory:") == 0) {
        return pawl__fail(
            reterr, PAWL_INVALID, "'--work' is 'memory:', which is empty in every new process");
    }
    if (access == WORK_TO_CREATE) {
        TRY(pawl__cli_location_make(run, &store, reterr));
    }
    TRY(pawl_work_open(location, options, ret_work, reterr));
    escalation = (struct pawl__cli_wakeable){ interrupt_store, *ret_work };
    pawl__cli_interrupt_escalates(&escalation);
    return PAWL_OK;
}

pawl_status pawl__cli_work_open(const struct pawl__cli_run *run,
                                enum pawl__cli_work_access access,
                                pawl_work **ret_work,
                                pawl_error *reterr)
{
    pawl_work_options options = pawl__cli_work_options(run);

    return pawl__cli_work_open_with(run, access, &options, ret_work, reterr);
}

pawl_status pawl__cli_work_check_task(pawl_work *work, pawl_view task_id, pawl_error *reterr)
{
    AUTO(pawl_task_free_p) pawl_task *task = NULL;

    return task_id.len == 0 ? PAWL_OK : pawl_task_get(work, task_id, &task, reterr);
}

pawl_status pawl__cli_work_ms(const struct pawl__cli_run *run,
                              const char *flag,
                              int64_t min_ms,
                              int64_t max_ms,
                              int64_t *ret_ms,
                              pawl_error *reterr)
{
    const char *text = pawl__cli_args_value(run->args, flag);
    char min[PAWL__QUANTITY_SIZE];
    char max[PAWL__QUANTITY_SIZE];
    int64_t ns = 0;

    if (text == NULL) {
        return PAWL_OK;
    }
    pawl_status status = pawl__duration_parse(pawl_view_of(text), &ns, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "'--%s'", flag);
    }
    if (ns < min_ms * NS_PER_MS || ns > max_ms * NS_PER_MS) {
        pawl__duration_format(min_ms * NS_PER_MS, min);
        pawl__duration_format(max_ms * NS_PER_MS, max);
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--%s' is '%s'; allowed: a duration from %s to %s",
                          flag,
                          text,
                          min,
                          max);
    }
    *ret_ms = ns / NS_PER_MS;
    return PAWL_OK;
}

pawl_status pawl__cli_work_types(const struct pawl__cli_run *run,
                                 pawl_view ret_types[WORK_TYPES_MAX],
                                 size_t *ret_count,
                                 pawl_error *reterr)
{
    size_t index = 0;
    size_t count = 0;
    const char *type;

    while ((type = pawl__cli_args_next(run->args, "type", &index)) != NULL) {
        if (count == WORK_TYPES_MAX) {
            return pawl__fail(reterr, PAWL_INVALID, "more than %d types", WORK_TYPES_MAX);
        }
        ret_types[count++] = pawl_view_of(type);
    }
    *ret_count = count;
    return PAWL_OK;
}

pawl_status pawl__cli_work_json(const struct pawl__cli_run *run,
                                const char *flag,
                                char **ret_json,
                                pawl_error *reterr)
{
    const char *given = pawl__cli_args_value(run->args, flag);
    AUTO(pawl__text_free) char *json = NULL;

    *ret_json = NULL;
    if (given == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__cli_input_read(flag, given, WORK_DATA_BYTES_MAX, &json, reterr));
    pawl_status status = pawl__json_check(pawl_view_of(json), WORK_DATA_BYTES_MAX, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "'--%s'", flag);
    }
    *ret_json = STEAL(json);
    return PAWL_OK;
}

pawl_lease pawl__cli_work_lease(const struct pawl__cli_run *run)
{
    return (pawl_lease){
        .size = sizeof(pawl_lease),
        .work_item_id = pawl__cli_work_operand(run, 0),
        .token = (uint64_t)pawl__cli_args_number(run->args, "token"),
    };
}
