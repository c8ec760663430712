/* pawl ledger snapshot|prune|prove|restore */
#include <stdio.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "cli/ledger/ledger.h"

#define DIR_FLAG                                   \
    FLAG("dir",                                    \
         "DIR",                                    \
         "Where they are; snapshots/ of the data " \
         "directory if it is left out.",           \
         .kind = VALUE_DIR)
#define KEEP_FLAG \
    NUMBER_FLAG("keep", "N", 1, 1000000, "How many of the newest stay.", .fallback = "3")
/* --- snapshot --- */

static pawl_status snapshot_to(const struct pawl__cli_run *run,
                               pawl_ledger *ledger,
                               const char *path,
                               pawl_error *reterr)
{
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress work = pawl__cli_progress_start(run, "snapshot", false);
    const pawl_watch watch = pawl__cli_progress_watch(&work);
    char text[LEDGER_HEAD_SIZE];
    pawl_ledger_head head;
    pawl_status status = pawl_ledger_snapshot_to(ledger, path, &watch, &head, reterr);

    pawl__cli_progress_done(&work);
    if (status != PAWL_OK) {
        return status;
    }
    pawl__cli_ledger_head_text(&head, text);
    return pawl__cli_ledger_print_row(
        json_pack("{s:b, s:o, s:s}", "taken", 1, "path", pawl__cli_out_text(path), "head", text),
        reterr);
}

static pawl_status snapshot_into(const struct pawl__cli_run *run,
                                 pawl_ledger *ledger,
                                 pawl_error *reterr)
{
    AUTO(pawl__text_free) char *directory = NULL;
    bool scheduled = pawl__cli_args_has(run->args, "schedule");
    int64_t every = scheduled ? pawl__cli_args_number(run->args, "every") : 0;
    int64_t keep = pawl__cli_args_number(run->args, "keep");
    bool taken = false;

    TRY(pawl__cli_ledger_snapshots(run, &directory, reterr));
    TRY(pawl__fs_make_dir(directory, reterr));
    pawl__cli_ledger_interruptible();
    TRY(pawl_ledger_snapshot_schedule(
        ledger, directory, (uint32_t)every, (uint32_t)keep, &taken, reterr));
    return pawl__cli_ledger_print_row(
        json_pack("{s:b, s:o}", "taken", (int)taken, "directory", pawl__cli_out_text(directory)),
        reterr);
}

static pawl_status snapshot_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    const char *path = pawl__cli_args_operand(run->args, 0);

    if (path != NULL
        && (pawl__cli_args_has(run->args, "schedule") || pawl__cli_args_has(run->args, "dir"))) {
        return pawl__fail(reterr, PAWL_INVALID, "a FILE and --schedule or --dir: choose one");
    }
    TRY(pawl__cli_ledger_open(run, LEDGER_TO_READ, &ledger, reterr));
    return path != NULL ? snapshot_to(run, ledger, path, reterr)
                        : snapshot_into(run, ledger, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_ledger_snapshot = {
    .name = "snapshot",
    .summary = "copy the ledger as it is now, while it is used",
    .description =
        "Writes the ledger into a new file, verified and on disk before it gets its name; writers "
        "continue. The file is a ledger like any other, also when this one is in PostgreSQL.\n\n"
        "Without FILE it goes into the directory of snapshots, of which the newest --keep stay. "
        "With --schedule it is taken only when --every turns were committed since the newest one: "
        "run it as often as you like.",
    .flags = FLAGS({ .name = "schedule", .help = "Only when enough turns were committed." },
                   NUMBER_FLAG("every",
                               "N",
                               1,
                               UINT32_MAX,
                               "With --schedule: how many turns are enough.",
                               .fallback = "100"),
                   KEEP_FLAG,
                   DIR_FLAG),
    .operands = OPERANDS({ .name = "FILE",
                           .help = "The new file. An existing one is a conflict.",
                           .kind = VALUE_FILE,
                           .optional = true }),
    .examples =
        EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND "pawl ledger snapshot --data ./data village-1.db",
                        "into a file"),
                 { .line = "pawl ledger snapshot --data ./data --schedule --every 100 --keep 3",
                   .says = "from cron, or after every turn" }),
    .run = snapshot_run,
};

/* --- prune --- */

static pawl_status prune_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *directory = NULL;
    uint32_t removed = 0;

    TRY(pawl__cli_ledger_snapshots(run, &directory, reterr));
    TRY(pawl_snapshot_prune(
        directory, (uint32_t)pawl__cli_args_number(run->args, "keep"), &removed, reterr));
    return pawl__cli_ledger_print_row(json_pack("{s:I}", "removed", (json_int_t)removed), reterr);
}

const struct pawl__cli_command pawl__cli_cmd_ledger_prune = {
    .name = "prune",
    .summary = "remove old snapshots",
    .description = "Removes all but the newest good snapshots of the directory.",
    .flags = FLAGS(KEEP_FLAG, DIR_FLAG),
    .examples = EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND
                                "pawl ledger snapshot --data ./data && pawl ledger prune --data "
                                "./data --keep 1",
                                "keep one")),
    .run = prune_run,
};

/* --- prove --- */

static pawl_status print_proof(const struct pawl__cli_run *run,
                               const pawl_proof *proof,
                               pawl_error *reterr)
{
    char proven_at[PAWL__TIME_SIZE];
    char taken_at[PAWL__TIME_SIZE];
    char head[LEDGER_HEAD_SIZE];
    int64_t age_us = pawl__wall_us(run->clock) - proof->proven_at_us;

    pawl__time_rfc3339(proof->proven_at_us, proven_at);
    pawl__time_rfc3339(proof->snapshot_taken_at_us, taken_at);
    pawl__cli_ledger_head_text(&proof->head, head);
    return pawl__cli_ledger_print_row(json_pack("{s:o, s:I, s:s, s:I, s:s, s:s, s:I}",
                                                "snapshot",
                                                pawl__cli_out_text(proof->snapshot),
                                                "snapshot_offset",
                                                (json_int_t)proof->snapshot_offset,
                                                "snapshot_taken_at",
                                                taken_at,
                                                "replayed",
                                                (json_int_t)proof->replayed,
                                                "head",
                                                head,
                                                "proven_at",
                                                proven_at,
                                                "age_seconds",
                                                (json_int_t)MAX(age_us / US_PER_S, 0)),
                                      reterr);
}

static pawl_status prove_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(pawl__text_free) char *directory = NULL;
    pawl_proof proof = PAWL_PROOF_INIT;

    TRY(pawl__cli_ledger_snapshots(run, &directory, reterr));
    if (pawl__cli_args_has(run->args, "last")) {
        TRY(pawl_ledger_last_proof(directory, &proof, reterr));
    } else {
        TRY(pawl__cli_ledger_open(run, LEDGER_TO_READ, &ledger, reterr));
        pawl__cli_ledger_interruptible();
        TRY(pawl_ledger_prove(ledger, directory, &proof, reterr));
    }
    return print_proof(run, &proof, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_ledger_prove = {
    .name = "prove",
    .summary = "prove that the newest snapshot restores",
    .description =
        "Restores the newest snapshot into a scratch file, appends what the ledger has after it, "
        "and compares the heads. Exit code 6 when they differ. With --last nothing is done: it "
        "prints the last proof and its age, exit code 3 when there was none.",
    .flags = FLAGS({ .name = "last", .help = "Only print the last proof." }, DIR_FLAG),
    .examples = EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND
                                "pawl ledger snapshot --data ./data && pawl ledger prove "
                                "--data ./data",
                                "a backup you have never restored is not a backup")),
    .run = prove_run,
};

/* --- restore --- */

static pawl_status print_restored(const struct pawl__cli_run *run,
                                  const pawl_restored *restored,
                                  pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(1 << 16);
    char head[LEDGER_HEAD_SIZE];

    if (!run->json) {
        pawl__buf_add_format(&out, "%s\n", restored->path);
        return pawl__cli_out_add(&out, reterr);
    }
    pawl__cli_ledger_head_text(&restored->head, head);
    return pawl__cli_ledger_print_row(json_pack("{s:o, s:o, s:o, s:s, s:I}",
                                                "path",
                                                pawl__cli_out_text(restored->path),
                                                "snapshot",
                                                pawl__cli_out_text(restored->snapshot),
                                                "passed_over",
                                                restored->passed_over[0] == '\0'
                                                    ? json_null()
                                                    : pawl__cli_out_text(restored->passed_over),
                                                "head",
                                                head,
                                                "lost",
                                                (json_int_t)restored->lost),
                                      reterr);
}

static pawl_status restore_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress work = pawl__cli_progress_start(run, "restore", false);
    pawl_restore_options options = PAWL_RESTORE_OPTIONS_INIT;
    pawl_restored restored = PAWL_RESTORED_INIT;

    options.target = pawl__cli_args_value(run->args, "to");
    options.tail_location = pawl__cli_args_value(run->args, "tail");
    options.accept_older = pawl__cli_args_has(run->args, "accept-older");
    const pawl_watch watch = pawl__cli_progress_watch(&work);
    options.watch = &watch;
    pawl_status status =
        pawl_snapshot_restore(pawl__cli_args_operand(run->args, 0), &options, &restored, reterr);
    pawl__cli_progress_done(&work);
    return status == PAWL_OK ? print_restored(run, &restored, reterr) : status;
}

const struct pawl__cli_command pawl__cli_cmd_ledger_restore = {
    .name = "restore",
    .summary = "make a ledger of a snapshot again",
    .description =
        "Copies the snapshot, which stays as it is, to a new file, NAME.restored-N.db beside it "
        "unless --to says where. With --tail it appends the events that a surviving ledger has "
        "after the snapshot. The result is verified, and its path printed.\n\n"
        "Given a directory, it restores the newest good snapshot. If a newer one is damaged, it "
        "names both and ends with exit code 6: --accept-older restores the older one. The same "
        "holds for a --tail that is shorter than its anchor says. How many events are lost is then "
        "said on standard error, and with --json as 'lost'.",
    .flags = FLAGS(
        FLAG("to", "FILE", "The new file.", .kind = VALUE_FILE),
        FLAG("tail",
             "LOCATION",
             "A ledger that has the events after the snapshot.",
             .kind = VALUE_FILE),
        { .name = "accept-older", .help = "Restore what is left when newer events are damaged." }),
    .operands =
        OPERANDS({ .name = "SNAPSHOT",
                   .help = "The file to restore, or a directory: then the newest good one in it.",
                   .kind = VALUE_FILE }),
    .examples = EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND
                                "pawl ledger snapshot --data ./data village-1.db && pawl "
                                "ledger restore village-1.db --to village.db",
                                "go back to a snapshot"),
                         { .line = "pawl ledger restore ./data/snapshots --accept-older --to "
                                   "village.db",
                           .says = "the newest snapshot is damaged" }),
    .run = restore_run,
};
