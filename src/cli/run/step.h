/* Decides what happens to one item while its command runs. Pure: event and time in, action out.
 *
 * The command is asked to end (SIGTERM to its process group) when the lease is lost, the user
 * stops the run or its time is up, and ended (SIGKILL) when it has not obeyed after `grace_ns`. The
 * first reason stands, but a lost lease outweighs the others: nothing may be written any more.
 *
 * Times are of the monotonic clock. */
#ifndef PAWL_CLI_RUN_STEP_H
#define PAWL_CLI_RUN_STEP_H

#include <pawl/pawl.h>

enum runner_event {
    RUNNER_LOST,   /* the lease is not ours any more */
    RUNNER_STOP,   /* the user wants to end */
    RUNNER_TICK,   /* time passed */
    RUNNER_EXITED, /* the command has ended */
};

enum runner_action { RUNNER_NOTHING, RUNNER_TERM, RUNNER_KILL };

enum runner_reason { RUNNER_RUNS, RUNNER_WAS_LOST, RUNNER_WAS_STOPPED, RUNNER_TIMED_OUT };

struct runner_step {
    int64_t timeout_at_ns; /* INT64_MAX: never */
    int64_t grace_ns;
    enum runner_reason reason;
    int64_t kill_at_ns; /* once it was asked to end */
    bool killed;
};

struct runner_step pawl__cli_step_start(int64_t now_ns, int64_t timeout_ns, int64_t grace_ns);
enum runner_action pawl__cli_step(struct runner_step *step,
                                  enum runner_event event,
                                  int64_t now_ns);

/* When the next TICK is due; INT64_MAX: none. */
int64_t pawl__cli_step_wake_ns(const struct runner_step *step);

/* How the command ended. */
struct runner_exit {
    bool started; /* false: it could not be started; `code` is errno */
    int code;     /* of exit; meaningless with a signal */
    int signal;   /* 0: none */
};

enum runner_verdict {
    RUNNER_COMPLETE,
    RUNNER_RETRY,   /* fail, retryable */
    RUNNER_FAIL,    /* fail for good */
    RUNNER_RELEASE, /* give it back, nothing counted */
    RUNNER_FORGET,  /* another holder has it */
};

/* What to tell the store. Exit code 0 of a command that was asked to end says that it tidied up, not
 * that it got through: only one that ended by itself has completed. `may_retry`: --retries allows another try. */
enum runner_verdict pawl__cli_step_verdict(const struct runner_step *step,
                                           const struct runner_exit *exit,
                                           bool may_retry);

/* "exit code 3", "ended by signal 9 (Killed)", "timed out": for error_message. */
#define RUNNER_MESSAGE_SIZE 200
void pawl__cli_step_message(const struct runner_step *step,
                            const struct runner_exit *exit,
                            char ret_message[RUNNER_MESSAGE_SIZE]);

/* --- heartbeats --- */

/* One lease as its holder sees it. `until_ns` is counted from before the call that won it, so it is
 * never later than the store's own deadline. */
struct runner_beat {
    int64_t lease_ns;
    int64_t every_ns;
    int64_t next_ns;
    int64_t until_ns;
};

enum runner_beat_answer { RUNNER_BEAT_FINE, RUNNER_BEAT_LOST };

struct runner_beat pawl__cli_beat_start(int64_t asked_at_ns, int64_t lease_ns, int64_t every_ns);

/* After a heartbeat that was sent at `asked_at_ns` and answered with `status`. A store that cannot be
 * reached is asked again soon, until the lease must have run out. */
enum runner_beat_answer pawl__cli_beat_answered(struct runner_beat *beat,
                                                pawl_status status,
                                                int64_t asked_at_ns,
                                                int64_t now_ns);

/* Defaults adapt to the lease: two heartbeats may fail before it is lost, and a sweep comes within half of it. */
int64_t pawl__cli_beat_fitting_ms(int64_t heartbeat_ms, int64_t lease_ms);
int64_t pawl__cli_sweep_fitting_ms(int64_t sweep_ms, int64_t lease_ms);

/* --- the run as a whole --- */

struct runner_plan {
    uint64_t jobs;    /* commands at a time */
    uint64_t threads; /* more than jobs: the next command runs while the store hears of the last */
    uint64_t limit;   /* items to take; UINT64_MAX: no limit */
    uint64_t running; /* taken, and their command has not ended */
    uint64_t finishing; /* their command has ended, the store does not know yet */
    uint64_t taken;
    bool stopping;
    bool stays; /* --wait: does not end when nothing is left */
};

/* How many items to claim now. */
uint64_t pawl__cli_plan_want(const struct runner_plan *plan);

/* Whether the run continues after the store has failed for this long. A run that waits for new items
 * always continues, any other for up to a minute. */
bool pawl__cli_plan_outlasts(const struct runner_plan *plan, int64_t failing_ns);

/* What is left of the items that the run is for. */
struct runner_left {
    uint64_t pending;
    uint64_t in_progress; /* of others */
    uint64_t delayed;     /* waiting for a time */
    uint64_t held_back;   /* waiting for other items */
};

enum runner_next {
    RUNNER_GO_ON, /* a command is running: wait for it, then decide again */
    RUNNER_WAIT,  /* nothing to do now: wait for items */
    RUNNER_END,
    RUNNER_STUCK, /* all that is left waits for items that this run does not claim */
};

/* What to do when nothing could be claimed, or nothing may be. */
enum runner_next pawl__cli_plan_next(const struct runner_plan *plan,
                                     const struct runner_left *left);

#endif
