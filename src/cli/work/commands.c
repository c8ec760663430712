/* pawl work: each verb has a file of its own in this folder. */
#include "cli/commands.h"
#include "cli/work/work.h"

const struct pawl__cli_command pawl__cli_cmd_work = {
    .name = "work",
    .summary = "jobs that resume where they stopped",
    .description =
        "A task owns work items. Workers lease items; every lease has a token that the worker "
        "shows "
        "with each call, and whoever comes back too late is told so (exit code 4) and changes "
        "nothing. 'pawl work run' is such a worker for shell commands: a durable "
        "xargs.\n\n" WORK_WHERE,
    .flags = FLAGS(WORK_FLAG),
    .when_damaged = "stop the workers, keep a copy of the store, and restore a backup of it",
    .commands = COMMANDS(&pawl__cli_cmd_work_submit,
                         &pawl__cli_cmd_work_run,
                         &pawl__cli_cmd_work_list,
                         &pawl__cli_cmd_work_show,
                         &pawl__cli_cmd_work_cancel,
                         &pawl__cli_cmd_work_claim,
                         &pawl__cli_cmd_work_heartbeat,
                         &pawl__cli_cmd_work_complete,
                         &pawl__cli_cmd_work_fail,
                         &pawl__cli_cmd_work_release,
                         &pawl__cli_cmd_work_sweep,
                         &pawl__cli_cmd_work_task,
                         &pawl__cli_cmd_work_checkpoint,
                         &pawl__cli_cmd_work_recover,
                         &pawl__cli_cmd_work_schedule,
                         &pawl__cli_cmd_work_stats,
                         &pawl__cli_cmd_work_retention),
    .examples = EXAMPLES(
        TESTED("seq 1 100 | pawl work submit --data ./data --type square --lines && "
               "pawl work run --data ./data --type square --exec 'expr {} \\* {}' -j 4",
               "queue lines, and run a command for each of them once"),
        { .line = "pawl work list --data ./data --status failed", .says = "what went wrong?" }),
};
