/* pawl work claim|heartbeat|complete|fail|release: what a worker says. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "cli/frame/input.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/out_watch.h"
#include "cli/work/work.h"
#include "records/work.h"

#define LEASE_FLAG \
    FLAG("lease", "DURATION", "How long it holds from now, from 1ms to 7d; instead of work.lease.")
#define SUBMIT_AND_CLAIM                                                                     \
    "pawl work submit --data ./data --type mail --id m-1 >queued && pawl work claim --data " \
    "./data "                                                                                \
    "--holder ada && "

static pawl_status lease_of(const struct pawl__cli_run *run, uint32_t *ret_ms, pawl_error *reterr)
{
    int64_t ms = 0; /* that of the options */

    TRY(pawl__cli_work_ms(run, "lease", 1, WORK_TIME_MS_MAX, &ms, reterr));
    *ret_ms = (uint32_t)ms;
    return PAWL_OK;
}

static pawl_status print_status(const struct pawl__cli_run *run,
                                pawl_item_status status,
                                pawl_error *reterr)
{
    return pawl__cli_work_answer(
        run,
        ANSWER({ "work_item_id", true, pawl__cell_text(pawl__cli_work_operand(run, 0)) },
               { "status", true, pawl__cell_text(pawl_view_of(pawl_item_status_name(status))) }),
        reterr);
}

/* --- claim --- */

static void wake_claim(void *work)
{
    pawl_work_interrupt(work);
}

/* Ends early by Ctrl-C, or when the reader of the output is gone. */
static pawl_status claim_waiting(pawl_work *work,
                                 const pawl_claim *claim,
                                 pawl_claimed **ret_claimed,
                                 pawl_error *reterr)
{
    const struct pawl__cli_wakeable woken = { wake_claim, work };
    struct pawl__cli_out_watch output;

    pawl__cli_out_watch_start(&output, &woken);
    return pawl__cli_out_watch_end(
        &output, pawl_work_claim(work, claim, ret_claimed, reterr), reterr);
}

static bool claim_row(struct pawl__cli_rows *rows, const pawl_item *item)
{
    char time[WORK_TIME_SIZE];

    if (rows->run->json) {
        return pawl__cli_item_row(rows, item);
    }
    const struct pawl__cell cells[] = {
        pawl__cli_cell_of(item->work_item_id),
        pawl__cell_integer((int64_t)item->token),
        pawl__cli_cell_of(item->task_id),
        pawl__cli_cell_of(item->work_type),
        pawl__cell_integer(item->attempts),
        pawl__cli_cell_time(item->lease_expires_at_us, time),
        pawl__cli_cell_value(item->input_data),
    };
    return pawl__cli_rows_add(rows, cells);
}

static pawl_status print_claimed(const struct pawl__cli_run *run,
                                 const pawl_claimed *claimed,
                                 pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "work_item_id", true }, { "token", true },   { "task_id", true },
        { "work_type", false },   { "attempt", true }, { "lease_expires_at", true },
        { "input_data", false },
    };
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;

    pawl__cli_rows_start_records(
        &rows, run, &pawl__item_record, columns, COUNT_OF(columns), reterr);
    for (size_t i = 0; i < claimed->count && claim_row(&rows, &claimed->items[i]); i++) {
    }
    return pawl__cli_rows_end(&rows, PAWL_OK);
}

/* Tries again while there is time when the store does not answer, as a claim on an open store does. The claim
 * has the rest of the time. */
static pawl_status open_for_claim(struct pawl__cli_run *run,
                                  int64_t *wait_ms,
                                  pawl_work **ret_work,
                                  pawl_error *reterr)
{
    enum { AGAIN_MS = 100 };
    struct pawl__clock *clock = run->clock;
    int64_t deadline_ns = pawl__monotonic_ns(clock) + *wait_ms * NS_PER_MS;
    bool waits = *wait_ms > 0;

    for (;;) {
        pawl_work_options options = pawl__cli_work_options(run);
        pawl__cli_work_bound_answer(&options, *wait_ms);
        pawl_status status =
            pawl__cli_work_open_with(run, WORK_THAT_EXISTS, &options, ret_work, reterr);
        int64_t left_ms = (deadline_ns - pawl__monotonic_ns(clock)) / NS_PER_MS;

        if (waits && status == PAWL_OK) {
            *wait_ms = MAX(left_ms, INT64_C(1));
        }
        if ((status != PAWL_TIMEOUT && status != PAWL_BUSY) || left_ms <= AGAIN_MS) {
            return status;
        }
        *wait_ms = left_ms;
        pawl__sleep_until(clock, pawl__monotonic_ns(clock) + AGAIN_MS * NS_PER_MS);
    }
}

static pawl_status claim_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_view types[WORK_TYPES_MAX];
    pawl_claim claim = PAWL_CLAIM_INIT;
    AUTO(pawl_claimed_free_p) pawl_claimed *claimed = NULL;
    int64_t wait_ms = 0;

    claim.holder = pawl__cli_work_value(run, "holder");
    claim.task_id = pawl__cli_work_value(run, "task");
    claim.count_max = (uint32_t)pawl__cli_args_number(run->args, "count");
    claim.work_types = types;
    TRY(pawl__cli_work_types(run, types, &claim.work_type_count, reterr));
    TRY(lease_of(run, &claim.lease_ms, reterr));
    TRY(pawl__cli_work_ms(run, "wait", 0, WORK_TIME_MS_MAX, &wait_ms, reterr));
    TRY(open_for_claim(run, &wait_ms, &work, reterr));
    TRY(pawl__cli_work_check_task(work, claim.task_id, reterr));
    claim.wait_ms = (uint32_t)wait_ms;
    pawl_status status = wait_ms > 0 ? claim_waiting(work, &claim, &claimed, reterr)
                                     : pawl_work_claim(work, &claim, &claimed, reterr);
    if (status == PAWL_TIMEOUT) {
        pawl_work_interrupt(work); /* closing does not wait for the same store again */
    }
    return status == PAWL_OK ? print_claimed(run, claimed, reterr) : status;
}

const struct pawl__cli_command pawl__cli_cmd_work_claim = {
    .name = "claim",
    .summary = "lease items, the most urgent first",
    .description =
        "Leases items by priority, then in the order of submission. Each comes with a token, to be "
        "shown with heartbeat, "
        "complete, fail and release. A lease that runs out is taken back at the next sweep. Exit "
        "code 3 when there is nothing to claim, with --wait only after that time.",
    .flags = FLAGS(FLAG("holder", "NAME", "Who claims.", .required = true),
                   FLAG("type", "TYPE", "Only items of this type.", .repeats = true),
                   FLAG("task", "TASK", "Only items of this task."),
                   NUMBER_FLAG("count",
                               "N",
                               1,
                               PAWL_WORK_BATCH_MAX,
                               "Up to this many.",
                               .letter = 'n',
                               .fallback = "1"),
                   LEASE_FLAG,
                   FLAG("wait", "DURATION", "How long to wait for the first.")),
    .examples = EXAMPLES(TESTED("pawl work submit --data ./data --type mail --id m-1 >queued && "
                                "pawl work claim --data ./data --holder ada --type mail",
                                "one item"),
                         { .line = "pawl work claim --data ./data --holder ada --wait 1m --json",
                           .says = "wait for one, for a program" }),
    .run = claim_run,
};

/* --- heartbeat --- */

static pawl_status heartbeat_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_lease lease = pawl__cli_work_lease(run);
    char time[WORK_TIME_SIZE];
    int64_t expires_at_us = 0;
    uint32_t lease_ms = 0;

    TRY(lease_of(run, &lease_ms, reterr));
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_work_heartbeat(work, &lease, lease_ms, &expires_at_us, reterr));
    return pawl__cli_work_answer(
        run,
        ANSWER({ "work_item_id", true, pawl__cell_text(lease.work_item_id) },
               { "lease_expires_at", true, pawl__cli_cell_time(expires_at_us, time) }),
        reterr);
}

const struct pawl__cli_command pawl__cli_cmd_work_heartbeat = {
    .name = "heartbeat",
    .summary = "extend a lease",
    .description =
        "Extends the lease to --lease from now, never back. Exit code 4: it is not yours "
        "any more; stop working on it.",
    .flags = FLAGS(WORK_TOKEN_FLAG, LEASE_FLAG),
    .operands = OPERANDS(WORK_ID_OPERAND),
    .examples = EXAMPLES(TESTED(SUBMIT_AND_CLAIM "pawl work heartbeat --data ./data m-1 --token 1",
                                "once a minute")),
    .run = heartbeat_run,
};

/* --- complete --- */

static pawl_status complete_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__text_free) char *output = NULL;
    pawl_lease lease = pawl__cli_work_lease(run);

    TRY(pawl__cli_work_json(run, "output", &output, reterr));
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_work_complete(work, &lease, pawl_view_of(output), reterr));
    return print_status(run, PAWL_ITEM_COMPLETED, reterr);
}

#define OUTPUT_FLAG FLAG("output", "JSON", "What came of it; @FILE reads a file, - standard input.")

const struct pawl__cli_command pawl__cli_cmd_work_complete = {
    .name = "complete",
    .summary = "end an item with its result",
    .description = "Ends the item for good. Again with the same token and output it is answered as "
                   "before. Exit code 4: the lease is lost, and nothing was changed.",
    .flags = FLAGS(WORK_TOKEN_FLAG, OUTPUT_FLAG),
    .operands = OPERANDS(WORK_ID_OPERAND),
    .examples = EXAMPLES(TESTED(SUBMIT_AND_CLAIM "pawl work complete --data ./data m-1 --token 1 "
                                                 "--output '{\"sent\":true}'",
                                "done")),
    .run = complete_run,
};

/* --- fail --- */

static pawl_status fail_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__text_free) char *output = NULL;
    AUTO(pawl__text_free) char *message = NULL;
    pawl_lease lease = pawl__cli_work_lease(run);
    pawl_item_status item_status = PAWL_ITEM_FAILED;

    TRY(pawl__cli_work_json(run, "output", &output, reterr));
    TRY(pawl__cli_input_read(
        "error", pawl__cli_args_value(run->args, "error"), WORK_DATA_BYTES_MAX, &message, reterr));
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_work_fail(work,
                       &lease,
                       pawl_view_of(message),
                       pawl_view_of(output),
                       !pawl__cli_args_has(run->args, "permanent"),
                       &item_status,
                       reterr));
    return print_status(run, item_status, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_work_fail = {
    .name = "fail",
    .summary = "say that an item could not be done",
    .description =
        "The item waits for its backoff and can be claimed again while it has retries "
        "left; then, or with --permanent, it has failed for good. Exit code 4: the lease "
        "is lost, and nothing was changed.",
    .flags =
        FLAGS(WORK_TOKEN_FLAG,
              FLAG("error", "TEXT", "Why; @FILE reads a file, - standard input.", .required = true),
              OUTPUT_FLAG,
              { .name = "permanent", .help = "No retry would help." }),
    .operands = OPERANDS(WORK_ID_OPERAND),
    .examples = EXAMPLES(TESTED(SUBMIT_AND_CLAIM "pawl work fail --data ./data m-1 --token 1 "
                                                 "--error 'no such address' --permanent",
                                "for good")),
    .run = fail_run,
};

/* --- release --- */

static pawl_status release_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_lease lease = pawl__cli_work_lease(run);

    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_work_release(work, &lease, reterr));
    return print_status(run, PAWL_ITEM_PENDING, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_work_release = {
    .name = "release",
    .summary = "give an item back",
    .description =
        "The item can be claimed again at once, and no retry is counted. Exit code 4: the "
        "lease is lost, and nothing was changed.",
    .flags = FLAGS(WORK_TOKEN_FLAG),
    .operands = OPERANDS(WORK_ID_OPERAND),
    .examples = EXAMPLES(TESTED(SUBMIT_AND_CLAIM "pawl work release --data ./data m-1 --token 1",
                                "before going home")),
    .run = release_run,
};
