/* The state of a run, shared by runner.c, slot.c and supervise.c. */
#ifndef PAWL_CLI_RUN_INTERNAL_H
#define PAWL_CLI_RUN_INTERNAL_H

#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "cli/run/child.h"
#include "cli/run/guard.h"
#include "cli/run/holder.h"
#include "cli/run/output.h"
#include "cli/run/runner.h"
#include "cli/run/step.h"

/* Items that were claimed together; freed with the last of them. */
struct runner_batch {
    pawl_claimed *claimed;
    size_t left;
};

enum runner_slot_state {
    RUNNER_IDLE,
    RUNNER_ASSIGNED,
    RUNNER_RUNNING,   /* the heart extends its lease */
    RUNNER_FINISHING, /* the command has ended */
};

struct runner;

struct runner_slot {
    struct runner *runner;
    struct pawl__thread thread;
    struct pawl__cond cond;
    int wake_fd; /* an eventfd: something below has changed */
    enum runner_slot_state state;
    struct runner_batch *batch;
    const pawl_item *item;
    uint64_t number; /* in the order of claims */
    struct runner_beat beat;
    bool lost;
    bool stop;
};

struct runner {
    struct pawl__lock lock;    /* covers the plan, the slots, the counts and the failure */
    struct pawl__cond changed; /* main waits here */
    struct pawl__cond beats;   /* the heart waits here */
    struct pawl__cli_run *run;
    const struct runner_options *options;
    pawl_work *work;
    struct runner_guard guard;
    struct runner_holder we;
    char holder[RUNNER_HOLDER_SIZE];
    int signal_fd; /* an eventfd: Ctrl-C */
    int stop_fd;   /* an eventfd: the run ends */
    int quit_fd;   /* an eventfd: the watcher is to end */
    struct runner_output output;

    struct runner_plan plan;
    struct runner_slot *slots;
    size_t slot_count;
    bool quit;        /* slots and heart end */
    int64_t quiet_ns; /* since when the run is stopping and no command runs */
    bool abandoned;   /* the store did not answer since then: the run makes no more calls, ... */
    uint64_t untold;  /* ... and this many items have no recorded outcome */
    uint64_t total;   /* for the progress; 0: unknown */
    uint64_t completed, failed, retried, released, lost;
    pawl_status status; /* the first failure that ends the run */
    pawl_error error;

    struct pawl__thread heart;
    struct pawl__thread watcher;
    int64_t looked_after_ns; /* main's */
    int64_t swept_ns;
};

static inline int64_t runner_now(const struct runner *runner)
{
    return pawl__monotonic_ns(runner->run->clock);
}

/* Claims nothing more, and asks running commands to end. */
void pawl__cli_runner_stop(struct runner *runner);

/* The same because of a failure; the run ends with the first one. */
void pawl__cli_runner_fail(struct runner *runner, pawl_status status, const pawl_error *error);
void pawl__cli_runner_fail_locked(struct runner *runner,
                                  pawl_status status,
                                  const pawl_error *error) REQUIRES_LOCK(runner->lock);

void pawl__cli_runner_wake(int eventfd);

/* --- slot.c --- */
void pawl__cli_runner_slot(void *context); /* a thread */

/* What --json says of a try: {"work_item_id":"...","status":"completed","attempt":1,...}. */
struct runner_told {
    pawl_view work_item_id;
    const char *status;
    int64_t attempt;
    const char *message; /* "": none */
    pawl_view output;    /* empty: none */
};
void pawl__cli_runner_add_json(const struct runner *runner,
                               const struct runner_told *told,
                               struct pawl__buf *line);

/* --- supervise.c --- */
void pawl__cli_runner_heart(void *context);   /* a thread */
void pawl__cli_runner_watcher(void *context); /* a thread */

/* Takes back items held by dead runs on this machine, and items that we hold without knowing it (the answer of
 * a claim was lost). On the main thread, as the sweep. */
PAWL_MUST_USE pawl_status pawl__cli_runner_supervise(struct runner *runner, pawl_error *reterr);

/* Takes back expired leases, our own and those of others, when a sweep is due. */
PAWL_MUST_USE pawl_status pawl__cli_runner_sweep(struct runner *runner, pawl_error *reterr);
int64_t pawl__cli_runner_sweep_at_ns(const struct runner *runner);

/* The items of the run's task and types in these statuses. (count.c) */
PAWL_MUST_USE pawl_status pawl__cli_runner_list(struct runner *runner,
                                                uint32_t statuses,
                                                pawl_item_visit visit,
                                                void *context,
                                                pawl_error *reterr);

/* What is left to do. */
PAWL_MUST_USE pawl_status pawl__cli_runner_left(struct runner *runner,
                                                struct runner_left *ret_left,
                                                pawl_error *reterr);

/* Counts items: the unfinished ones for the progress, the failed ones of a whole task. */
PAWL_MUST_USE pawl_status pawl__cli_runner_count(struct runner *runner,
                                                 uint32_t statuses,
                                                 uint64_t *ret_count,
                                                 pawl_error *reterr);

#endif
