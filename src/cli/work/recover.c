/* pawl work recover: where a task resumes. */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/work/work.h"

static bool recover_row(struct pawl__cli_rows *rows,
                        const char *what,
                        pawl_view id,
                        const char *state,
                        struct pawl__cell data)
{
    const struct pawl__cell cells[] = { pawl__cell_text(pawl_view_of(what)),
                                        pawl__cli_cell_of(id),
                                        pawl__cli_cell_of(pawl_view_of(state)),
                                        data };

    return pawl__cli_rows_add(rows, cells);
}

/* --- what was passed over --- */

enum { PASSED_SHOWN_MAX = 20 };

struct passed {
    int64_t after; /* the number of the checkpoint to resume from; 0: none */
    size_t count;
    struct {
        char id[PAWL_WORK_NAME_BYTES_MAX + 1];
        const char *type;
    } list[PASSED_SHOWN_MAX];
};

static bool note_passed(void *context, const pawl_checkpoint *checkpoint)
{
    struct passed *passed = context;
    struct pawl__buf id = BUF_OVER(passed->list[passed->count].id);

    if (checkpoint->sequence_number > passed->after
        && checkpoint->type != PAWL_CHECKPOINT_ERROR_BOUNDARY) {
        pawl__buf_add(&id, checkpoint->checkpoint_id);
        passed->list[passed->count++].type = pawl_checkpoint_type_name(checkpoint->type);
    }
    return passed->count < PASSED_SHOWN_MAX;
}

/* One row each, with what does not hold; how many more there are. */
static pawl_status passed_rows(struct pawl__cli_rows *rows,
                               pawl_work *work,
                               const pawl_recovery *recovery)
{
    struct passed passed = { .after =
                                 recovery->resume == NULL ? 0 : recovery->resume->sequence_number };
    char what[512] = "";
    bool verified = false;

    TRY(pawl_checkpoint_list(work,
                             recovery->task->task_id,
                             pawl_view_of(NULL),
                             NULL,
                             NULL,
                             note_passed,
                             &passed,
                             rows->reterr));
    for (size_t i = 0; i < passed.count; i++) {
        pawl_view id = pawl_view_of(passed.list[i].id);
        TRY(pawl_checkpoint_verify(work, id, &verified, what, 512, rows->reterr));
        if (!verified
            && !recover_row(rows,
                            "passed_over",
                            id,
                            passed.list[i].type,
                            pawl__cell_text(pawl_view_of(what)))) {
            return rows->status;
        }
    }
    if (recovery->passed_over > passed.count) {
        (void)recover_row(rows,
                          "passed_over_more",
                          pawl_view_of(NULL),
                          NULL,
                          pawl__cell_integer((int64_t)(recovery->passed_over - passed.count)));
    }
    return rows->status;
}

/* --- as text --- */

static bool checkpoint_row(struct pawl__cli_rows *rows,
                           const char *what,
                           const char *state,
                           const pawl_checkpoint *checkpoint)
{
    return recover_row(rows,
                       what,
                       checkpoint->checkpoint_id,
                       state,
                       pawl__cli_cell_value(checkpoint->snapshot_data));
}

/* The last iteration_end may be one that was passed over, or one that the search did not reach. */
static pawl_status iteration_row(struct pawl__cli_rows *rows,
                                 pawl_work *work,
                                 const pawl_checkpoint *last)
{
    bool verified = false;

    TRY(pawl_checkpoint_verify(work, last->checkpoint_id, &verified, NULL, 0, rows->reterr));
    (void)checkpoint_row(rows, "iteration_end", verified ? "iteration_end" : "does_not_hold", last);
    return rows->status;
}

static pawl_status checkpoint_rows(struct pawl__cli_rows *rows,
                                   pawl_work *work,
                                   const pawl_recovery *recovery)
{
    const pawl_checkpoint *resume = recovery->resume;

    if (recovery->passed_over > 0) {
        TRY(passed_rows(rows, work, recovery));
    }
    if (resume != NULL) {
        (void)checkpoint_row(rows, "resume", pawl_checkpoint_type_name(resume->type), resume);
        TRY(rows->status);
    }
    return recovery->iteration_end != NULL ? iteration_row(rows, work, recovery->iteration_end)
                                           : PAWL_OK;
}

static pawl_status recover_text(struct pawl__cli_rows *rows,
                                pawl_work *work,
                                const pawl_recovery *recovery)
{
    bool more = recover_row(rows,
                            "task",
                            recovery->task->task_id,
                            pawl_task_status_name(recovery->task->status),
                            pawl__cli_cell_of(recovery->task->title));
    pawl_status status = more ? checkpoint_rows(rows, work, recovery) : rows->status;

    more = status == PAWL_OK;
    for (size_t i = 0; i < recovery->item_count && more; i++) {
        const pawl_item *item = &recovery->items[i];
        more = recover_row(rows,
                           "item",
                           item->work_item_id,
                           pawl_item_status_name(item->status),
                           pawl__cli_cell_value(item->input_data));
    }
    for (size_t i = 0; i < recovery->key_count && more; i++) {
        more = recover_row(rows,
                           "answer",
                           recovery->keys[i],
                           "completed",
                           pawl__cli_cell_value(recovery->responses[i]));
    }
    return pawl__cli_rows_end(rows, status);
}

static pawl_status recover_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "what", true }, { "id", true }, { "state", true }, { "data", false }
    };
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    AUTO(pawl_recovery_free_p) pawl_recovery *recovery = NULL;

    pawl__cli_rows_start(&rows, run, columns, COUNT_OF(columns), reterr);
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_work_recover(work, pawl__cli_work_operand(run, 0), &recovery, reterr));
    if (!run->json) {
        return recover_text(&rows, work, recovery);
    }
    (void)pawl__cli_rows_add_json(
        &rows, pawl_recovery_to_json(recovery, &rows.json, &rows.json_len, reterr));
    return pawl__cli_rows_end(&rows, PAWL_OK);
}

const struct pawl__cli_command pawl__cli_cmd_work_recover = {
    .name = "recover",
    .summary = "where a task continues",
    .description =
        "Looks at the evidence of the task's checkpoints from the newest on until one holds, and "
        "prints it (resume); those that it passed over, and what does not hold of each; the last "
        "iteration_end, whose state is does_not_hold when its evidence does not; the items that "
        "are unfinished, and the cached answers of the task's idempotency keys. With --json one "
        "object. Exit code 3 when there is no such task.",
    .operands = OPERANDS({ .name = "TASK", .help = "The task's id." }),
    .examples =
        EXAMPLES(TESTED("pawl work task create --data ./data --id t-1 --title 'Read books' && "
                        "pawl work checkpoint add --data ./data --task t-1 --type iteration_end "
                        "--snapshot '{\"page\":1}' && pawl work recover --data ./data t-1",
                        "after a crash")),
    .run = recover_run,
};
