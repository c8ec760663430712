/* pawl work: the verbs stand in cmd_work_*.c. */
#include "cli/commands.h"
#include "cli/work/work.h"

const struct pawl__command pawl__cmd_work = {
    .name = "work",
    .summary = "jobs that go on where they died",
    .description =
        "A task owns work items. Workers lease items; every lease has a token that the worker "
        "shows "
        "with each call, and whoever comes back too late is told so (exit code 4) and changes "
        "nothing. 'pawl work run' is such a worker for shell commands: a durable "
        "xargs.\n\n" WORK_WHERE,
    .flags = FLAGS(WORK_FLAG),
    .when_damaged = "stop the workers, keep a copy of the store, and restore a backup of it",
    .commands = COMMANDS(&pawl__cmd_work_submit,
                         &pawl__cmd_work_run,
                         &pawl__cmd_work_list,
                         &pawl__cmd_work_show,
                         &pawl__cmd_work_cancel,
                         &pawl__cmd_work_claim,
                         &pawl__cmd_work_heartbeat,
                         &pawl__cmd_work_complete,
                         &pawl__cmd_work_fail,
                         &pawl__cmd_work_release,
                         &pawl__cmd_work_sweep,
                         &pawl__cmd_work_task,
                         &pawl__cmd_work_checkpoint,
                         &pawl__cmd_work_recover,
                         &pawl__cmd_work_schedule,
                         &pawl__cmd_work_stats,
                         &pawl__cmd_work_retention),
    .examples = EXAMPLES(
        { .line = "seq 1 100 | pawl work submit --data ./data --type square --lines && "
                  "pawl work run --data ./data --type square --exec 'expr {} \\* {}' -j 4",
          .says = "queue lines, and run a command for each of them once",
          .runs = true },
        { .line = "pawl work list --data ./data --status failed", .says = "what went wrong?" }),
};
