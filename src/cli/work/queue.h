/* Queues items into a task that may not exist yet: it is created together with the first item or not at all. */
#ifndef PAWL_CLI_WORK_QUEUE_H
#define PAWL_CLI_WORK_QUEUE_H

#include <pawl/work.h>

struct work_queue {
    pawl_work *work;
    char task_id[PAWL_WORK_NAME_BYTES_MAX + 1]; /* "": a new one */
    pawl_view title;                            /* of a task that is made; empty: its id */
    bool task_is_there;
};

struct work_batch {
    const pawl_submission *items; /* of the queue's task */
    size_t count;
    pawl_submit_result *results;
};

/* Gives the task an id if it has none. */
PAWL_MUST_USE pawl_status pawl__cli_queue_name_task(struct work_queue *queue, pawl_error *reterr);

/* Refused items leave no empty task. */
PAWL_MUST_USE pawl_status pawl__cli_queue_add(struct work_queue *queue,
                                              const struct work_batch *batch,
                                              pawl_error *reterr);

#endif
