/* A program of 0.1.0 that uses <pawl/work.h>: submit, claim, complete, checkpoints, keys. */
#include <pawl/work.h>
#include <stdio.h>
#include <stdlib.h>

static void on_answer(void *context, const pawl_error *outcome)
{
    (void)context;
    printf("%s\n", pawl_status_name(outcome->status));
}

static bool print_difference(void *context, pawl_view path, pawl_view from, pawl_view to)
{
    (void)context;
    printf("%.*s %zu %zu\n", (int)path.len, path.data, from.len, to.len);
    return true;
}

static pawl_status use(pawl_work *work, pawl_error *error)
{
    const pawl_task task = { .title = pawl_view_of("nightly") };
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    char hash[PAWL_REQUEST_HASH_SIZE];
    pawl_checkpoint checkpoint = { .type = PAWL_CHECKPOINT_ITERATION_END };
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;
    pawl_work_answer answer = on_answer;
    pawl_status status = pawl_task_create(work, &task, id, error);

    submission.task_id = pawl_view_of(id);
    submission.work_type = pawl_view_of("mail");
    claim.holder = pawl_view_of("worker-1");
    if (status == PAWL_OK) {
        status = pawl_work_submit(work, &submission, 1, NULL, error);
    }
    if (status == PAWL_OK && (status = pawl_work_claim(work, &claim, &claimed, error)) == PAWL_OK) {
        const pawl_lease lease = { .work_item_id = claimed->items[0].work_item_id,
                                   .token = claimed->items[0].token };
        status = pawl_work_complete_async(work, &lease, pawl_view_of(""), answer, NULL, error);
    }
    pawl_claimed_free(claimed);
    if (status == PAWL_OK) {
        status = pawl_request_hash(pawl_view_of("{}"), hash, error);
    }
    if (status == PAWL_OK) {
        status = pawl_checkpoint_add(work, &checkpoint, NULL, NULL, id, error);
    }
    return status == PAWL_OK
               ? pawl_checkpoint_diff(&checkpoint, &checkpoint, print_difference, NULL, error)
               : status;
}

int main(void)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *work = NULL;
    pawl_status status = pawl_work_open("memory:", NULL, &work, &error);

    if (status == PAWL_OK) {
        status = use(work, &error);
    }
    pawl_work_close(work);
    return pawl_status_exit_code(status);
}
