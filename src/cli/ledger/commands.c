/* pawl ledger: each verb is in a file of this folder. */
#include "cli/commands.h"
#include "cli/ledger/ledger.h"

const struct pawl__cli_command pawl__cli_cmd_ledger = {
    .name = "ledger",
    .summary = "an append-only event log that proves itself",
    .description =
        "Events have an id that you choose and an offset that the ledger gives: 1, 2, 3, ... "
        "without holes. Appending the same event again answers with its first offset; the same id "
        "with other content is a conflict. A hash chain shows whether anything was changed.\n\n"
        "The ledger is the one of --ledger: a path, sqlite:PATH?durability=normal, or "
        "postgres://USER@HOST/DB. Without it, it is ledger.sqlite in the directory of --data; "
        "without that, the database of DATABASE_URL; and without that, ledger.sqlite in the data "
        "directory of the settings.",
    .flags = FLAGS(FLAG("ledger",
                        "LOCATION",
                        "Which ledger: a path, sqlite:PATH or postgres://...",
                        .kind = VALUE_FILE)),
    .when_damaged =
        "to see what is damaged, run `pawl ledger verify`; to go back to the newest good "
        "snapshot, run `pawl ledger restore DIR`",
    .commands = COMMANDS(&pawl__cli_cmd_ledger_append,
                         &pawl__cli_cmd_ledger_tail,
                         &pawl__cli_cmd_ledger_show,
                         &pawl__cli_cmd_ledger_stats,
                         &pawl__cli_cmd_ledger_turn,
                         &pawl__cli_cmd_ledger_turns,
                         &pawl__cli_cmd_ledger_replay,
                         &pawl__cli_cmd_ledger_verify,
                         &pawl__cli_cmd_ledger_snapshot,
                         &pawl__cli_cmd_ledger_prune,
                         &pawl__cli_cmd_ledger_prove,
                         &pawl__cli_cmd_ledger_restore,
                         &pawl__cli_cmd_ledger_import,
                         &pawl__cli_cmd_ledger_export,
                         &pawl__cli_cmd_ledger_embed,
                         &pawl__cli_cmd_ledger_recall),
    .examples =
        EXAMPLES(TESTED("echo '{\"id\":\"e-1\",\"run_id\":\"village\",\"turn\":1,\"kind\":\"say\","
                        "\"actor\":\"ada\",\"payload\":{\"text\":\"hello\"}}' | pawl ledger append "
                        "--data ./data",
                        "append what a program writes, one event per line"),
                 { .line = "pawl ledger tail --data ./data --follow",
                   .says = "see every event once, as it comes" }),
};
