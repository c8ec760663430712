/* pawl work checkpoint add|list|latest|diff|verify */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/sha256.h"
#include "base/os/fs.h"
#include "base/terminal/display.h"
#include "cli/frame/text.h"
#include "cli/work/work.h"
#include "records/work.h"

#define TASK_OPERAND                             \
    {                                            \
        .name = "TASK", .help = "The task's id." \
    }
#define TYPE_FLAG FLAG("type", "TYPE", "Of this type.", .choices = CHECKPOINT_TYPES)
#define ADD                                                                                       \
    "pawl work task create --data ./data --id t-1 --title 'Read books' >task && "                 \
    "pawl work checkpoint add --data ./data --task t-1 --type iteration_end --id c-1 --snapshot " \
    "'{\"page\":1}' && "

/* --- add --- */

enum { EVIDENCE_MAX = 100 };

struct evidence {
    pawl_evidence list[EVIDENCE_MAX];
    char hashes[EVIDENCE_MAX][PAWL__SHA256_TEXT_SIZE];
    char *copies[EVIDENCE_MAX]; /* what `list` points into */
    size_t count;
};

static void evidence_done(struct evidence *evidence)
{
    for (size_t i = 0; i < evidence->count; i++) {
        free(evidence->copies[i]);
    }
}

static pawl_status hash_file(const char *path,
                             char ret_text[PAWL__SHA256_TEXT_SIZE],
                             pawl_error *reterr)
{
    AUTO(pawl__fs_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct pawl__sha256 hash;
    int problem = 0;

    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", path);
    }
    TRY(pawl__fs_hash(fd, &hash, &problem, reterr));
    if (problem != 0) {
        return pawl__fail_errno(reterr, problem, "read '%s'", path);
    }
    pawl__sha256_text(&hash, ret_text);
    return PAWL_OK;
}

/* A later verification may run in another directory. */
static pawl_status make_absolute(char **path, pawl_error *reterr)
{
    if ((*path)[0] == '/') {
        return PAWL_OK;
    }
    AUTO(pawl__text_free) char *here = getcwd(NULL, 0);
    if (here == NULL) {
        return pawl__fail_errno(reterr, errno, "find out the current directory");
    }
    char *absolute = pawl__fs_join(here, *path);
    if (absolute == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for evidence");
    }
    free(*path);
    *path = absolute;
    return PAWL_OK;
}

/* CODE:COMMAND, or COMMAND alone for exit code 0. */
static void split_command(pawl_evidence *evidence)
{
    pawl_view rest = evidence->subject;
    pawl_view code;
    size_t digits = strspn(rest.data, "0123456789");

    evidence->expected = pawl_view_of("0");
    if (digits > 0 && rest.data[digits] == ':' && pawl__view_split(&rest, ':', &code)) {
        evidence->expected = code;
        evidence->subject = rest;
    }
}

static pawl_status parse_one(struct evidence *evidence, const char *given, pawl_error *reterr)
{
    enum { KIND_COUNT = PAWL_EVIDENCE_ROW_EXISTS + 1 };
    size_t len = strcspn(given, "=");
    pawl_evidence *one = &evidence->list[evidence->count];
    size_t kind =
        pawl__view_index((pawl_view){ given, len }, pawl__evidence_kind_names, KIND_COUNT);

    one->size = sizeof(*one);
    if (kind == KIND_COUNT || given[len] != '=') {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--evidence' is %s; it has to begin with file_exists=, file_sha256=, "
                          "command_exit= or row_exists=",
                          pawl__cli_quote(given).text);
    }
    char **copy = &evidence->copies[evidence->count];
    char *hash = evidence->hashes[evidence->count];
    *copy = strdup(given + len + 1);
    if (*copy == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for evidence");
    }
    evidence->count++;
    pawl_status status = kind == PAWL_EVIDENCE_FILE_EXISTS || kind == PAWL_EVIDENCE_FILE_SHA256
                             ? make_absolute(copy, reterr)
                             : PAWL_OK;
    *one = (pawl_evidence){ .size = sizeof(pawl_evidence),
                            .kind = (pawl_evidence_kind)kind,
                            .subject = pawl_view_of(*copy) };
    if (one->kind == PAWL_EVIDENCE_COMMAND_EXIT) {
        split_command(one);
    } else if (status == PAWL_OK && one->kind == PAWL_EVIDENCE_FILE_SHA256) {
        status = hash_file(*copy, hash, reterr);
        one->expected = pawl_view_of(hash);
    }
    return status;
}

static pawl_status parse_evidence(const struct pawl__cli_run *run,
                                  struct evidence *evidence,
                                  pawl_error *reterr)
{
    size_t index = 0;
    const char *given;

    while ((given = pawl__cli_args_next(run->args, "evidence", &index)) != NULL) {
        TRY(evidence->count == EVIDENCE_MAX
                ? pawl__fail(reterr, PAWL_INVALID, "more than %d times --evidence", EVIDENCE_MAX)
                : parse_one(evidence, given, reterr));
    }
    return PAWL_OK;
}

/* A checkpoint of an item shows its lease, and belongs to the item's task. */
static pawl_status add_one(const struct pawl__cli_run *run,
                           pawl_work *work,
                           pawl_checkpoint *checkpoint,
                           pawl_error *reterr)
{
    AUTO(pawl_item_free_p) pawl_item *item = NULL;
    const char *item_id = pawl__cli_args_value(run->args, "item");
    const pawl_lease lease = {
        .size = sizeof(pawl_lease),
        .work_item_id = pawl_view_of(item_id),
        .token = item_id == NULL ? 0 : (uint64_t)pawl__cli_args_number(run->args, "token"),
    };
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    int64_t sequence = 0;

    if (item_id != NULL) {
        TRY(pawl_work_get(work, lease.work_item_id, &item, reterr));
    }
    checkpoint->task_id = item != NULL ? item->task_id : pawl__cli_work_value(run, "task");
    checkpoint->work_item_id = lease.work_item_id;
    TRY(pawl_checkpoint_add(work,
                            checkpoint,
                            item == NULL ? NULL : &lease,
                            &sequence,
                            id,
                            PAWL_WORK_NAME_BYTES_MAX + 1,
                            reterr));
    return pawl__cli_work_answer(
        run,
        ANSWER({ "checkpoint_id", true, pawl__cell_text(pawl_view_of(id)) },
               { "sequence_number", true, pawl__cell_integer(sequence) }),
        reterr);
}

static pawl_status add_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__text_free) char *snapshot = NULL;
    AUTO(pawl__text_free) char *metadata = NULL;
    AUTO(evidence_done) struct evidence evidence = { .count = 0 };
    bool of_item = pawl__cli_args_has(run->args, "item");

    if (of_item == pawl__cli_args_has(run->args, "task")
        || of_item != pawl__cli_args_has(run->args, "token")) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "a checkpoint is of a task (--task) or of an item that you hold (--item "
                          "with --token)");
    }
    TRY(pawl__cli_work_json(run, "snapshot", &snapshot, reterr));
    TRY(pawl__cli_work_json(run, "metadata", &metadata, reterr));
    TRY(parse_evidence(run, &evidence, reterr));
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    pawl_checkpoint checkpoint = {
        .size = sizeof(pawl_checkpoint),
        .checkpoint_id = pawl__cli_work_value(run, "id"),
        .type = pawl__cli_checkpoint_type_named(pawl__cli_args_value(run->args, "type")),
        .snapshot_data = pawl_view_of(snapshot),
        .metadata = pawl_view_of(metadata),
        .evidence_count = evidence.count,
        .evidence = evidence.list,
    };
    return add_one(run, work, &checkpoint, reterr);
}

static const struct pawl__cli_command add = {
    .name = "add",
    .summary = "record how far a task came",
    .description =
        "Prints the checkpoint's id and its number within the task: 1, 2, 3, ... The same --id "
        "again with the same content answers with its number; with other content it is a conflict "
        "(exit code 4).\n\n"
        "Evidence is looked at now, and again when the task is recovered: what does not hold is "
        "refused (exit code 2). file_exists=PATH; file_sha256=PATH, with the hash that the file "
        "has now; both keep the absolute path. command_exit=COMMAND for exit code 0, or "
        "command_exit=3:COMMAND; row_exists=SELECT "
        "..., one statement on the work store.",
    .flags = FLAGS(FLAG("task", "TASK", "The task it belongs to."),
                   FLAG("item", "ID", "Or the item, which you hold."),
                   NUMBER_FLAG("token", "N", 1, INT64_MAX, "Of the item's lease."),
                   FLAG("type",
                        "TYPE",
                        "What kind it is.",
                        .choices = CHECKPOINT_TYPES,
                        .fallback = "manual_checkpoint"),
                   FLAG("snapshot",
                        "JSON",
                        "The state to go on from; @FILE reads a file, - standard input.",
                        .required = true),
                   FLAG("metadata", "JSON", "Anything else."),
                   FLAG("id", "ID", "Of the checkpoint; a new one if it is left out."),
                   FLAG("evidence", "KIND=WHAT", "What shows that it is true.", .repeats = true)),
    .examples = EXAMPLES(TESTED(ADD "true", "after a page"),
                         { .line = "pawl work checkpoint add --data ./data --task t-1 --snapshot "
                                   "'{\"page\":2}' --evidence file_sha256=page-2.txt",
                           .says = "with evidence" }),
    .run = add_run,
};

/* --- list and latest --- */

static void start_rows(struct pawl__cli_rows *rows,
                       const struct pawl__cli_run *run,
                       pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "sequence_number", false }, { "checkpoint_id", true }, { "checkpoint_type", false },
        { "work_item_id", false },    { "verified", false },     { "created_at", true },
        { "snapshot_data", false },
    };

    pawl__cli_rows_start_records(
        rows, run, &pawl__checkpoint_record, columns, COUNT_OF(columns), reterr);
}

static pawl_status list_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    const char *given = pawl__cli_args_value(run->args, "type");
    pawl_checkpoint_type type = given == NULL ? 0 : pawl__cli_checkpoint_type_named(given);
    pawl_view task_id = pawl__cli_work_operand(run, 0);

    start_rows(&rows, run, reterr);
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl__cli_work_check_task(work, task_id, reterr));
    return pawl__cli_rows_end(&rows,
                              pawl_checkpoint_list(work,
                                                   task_id,
                                                   pawl__cli_work_value(run, "item"),
                                                   given == NULL ? NULL : &type,
                                                   NULL,
                                                   pawl__cli_checkpoint_row,
                                                   &rows,
                                                   reterr));
}

static const struct pawl__cli_command list = {
    .name = "list",
    .summary = "list a task's checkpoints by number",
    .description = "With --json all of each, its evidence too.",
    .flags = FLAGS(TYPE_FLAG, FLAG("item", "ID", "Of this item.")),
    .operands = OPERANDS(TASK_OPERAND),
    .examples =
        EXAMPLES(TESTED(ADD "pawl work checkpoint list --data ./data t-1", "how far did it come?")),
    .run = list_run,
    .only_prints = true,
};

static pawl_status latest_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    AUTO(pawl_checkpoint_free_p) pawl_checkpoint *checkpoint = NULL;
    const char *given = pawl__cli_args_value(run->args, "type");
    pawl_checkpoint_type type = given == NULL ? 0 : pawl__cli_checkpoint_type_named(given);

    start_rows(&rows, run, reterr);
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_checkpoint_latest(work,
                               pawl__cli_work_operand(run, 0),
                               given == NULL ? NULL : &type,
                               pawl__cli_args_has(run->args, "verified"),
                               &checkpoint,
                               reterr));
    (void)pawl__cli_checkpoint_row(&rows, checkpoint);
    return pawl__cli_rows_end(&rows, PAWL_OK);
}

static const struct pawl__cli_command latest = {
    .name = "latest",
    .summary = "print a task's newest checkpoint",
    .description = "Exit code 3 when the task has none. --verified goes by what was found when the "
                   "evidence was last looked at.",
    .flags = FLAGS(TYPE_FLAG, { .name = "verified", .help = "Whose evidence held." }),
    .operands = OPERANDS(TASK_OPERAND),
    .examples = EXAMPLES(
        TESTED(ADD "pawl work checkpoint latest --data ./data t-1 --json", "where to go on from")),
    .run = latest_run,
    .only_prints = true,
};

/* --- diff --- */

static bool diff_row(void *context, const pawl_difference *difference)
{
    struct pawl__cli_rows *rows = context;

    if (rows->run->json) {
        struct pawl__object object = pawl__object_start(&rows->line);
        pawl__object_key(&object, "path"); /* the whole document's is empty, not missing */
        pawl__display_add_json(&rows->line, difference->path);
        pawl__object_json(&object, "from", difference->from);
        pawl__object_json(&object, "to", difference->to);
        pawl__object_end(&object);
        return pawl__cli_rows_add_line(rows);
    }
    const struct pawl__cell cells[] = { pawl__cell_text(difference->path),
                                        pawl__cli_cell_value(difference->from),
                                        pawl__cli_cell_value(difference->to) };
    return pawl__cli_rows_add(rows, cells);
}

static pawl_status diff_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    static const struct pawl__column columns[] = { { "path", true },
                                                   { "from", false },
                                                   { "to", false } };
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    AUTO(pawl_checkpoint_free_p) pawl_checkpoint *from = NULL;
    AUTO(pawl_checkpoint_free_p) pawl_checkpoint *to = NULL;
    const pawl_view no_task = { NULL, 0 };

    pawl__cli_rows_start(&rows, run, columns, COUNT_OF(columns), reterr);
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_checkpoint_get(work, pawl__cli_work_operand(run, 0), no_task, 0, &from, reterr));
    TRY(pawl_checkpoint_get(work, pawl__cli_work_operand(run, 1), no_task, 0, &to, reterr));
    return pawl__cli_rows_end(&rows, pawl_checkpoint_diff(from, to, diff_row, &rows, reterr));
}

static const struct pawl__cli_command diff = {
    .name = "diff",
    .summary = "how two checkpoints' snapshots differ",
    .description = "A line for each value that was added, removed or changed, with its path (RFC "
                   "6901), what it was and what it is.",
    .operands = OPERANDS({ .name = "FROM", .help = "A checkpoint's id." },
                         { .name = "TO", .help = "Another one's." }),
    .examples = EXAMPLES(TESTED(ADD "pawl work checkpoint add --data ./data --task t-1 --id c-2 "
                                    "--snapshot '{\"page\":2}' && pawl work checkpoint diff "
                                    "--data ./data c-1 c-2",
                                "what changed?")),
    .run = diff_run,
    .only_prints = true,
};

/* --- verify --- */

static pawl_status verify_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_view id = pawl__cli_work_operand(run, 0);
    char what[512] = "";
    bool verified = false;

    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_checkpoint_verify(work, id, &verified, what, 512, reterr));
    const struct pawl__cell wrong = pawl__cli_cell_of(pawl_view_of(verified ? "" : what));
    TRY(pawl__cli_work_answer(run,
                              ANSWER({ "checkpoint_id", true, pawl__cell_text(id) },
                                     { "verified", true, pawl__cell_bool(verified) },
                                     { "what", false, wrong }),
                              reterr));
    if (!verified) {
        return pawl__fail(reterr, PAWL_CORRUPT, "the evidence does not hold: %s", what);
    }
    return PAWL_OK;
}

static const struct pawl__cli_command verify = {
    .name = "verify",
    .summary = "look at a checkpoint's evidence again",
    .description = "Records what it finds. Exit code 6 when something does not hold; a checkpoint "
                   "without evidence always does.",
    .when_damaged =
        "go on from an earlier checkpoint: `pawl work checkpoint latest TASK --verified`",
    .operands = OPERANDS({ .name = "ID", .help = "The checkpoint's id." }),
    .examples =
        EXAMPLES(TESTED(ADD "pawl work checkpoint verify --data ./data c-1", "is it still true?")),
    .run = verify_run,
};

const struct pawl__cli_command pawl__cli_cmd_work_checkpoint = {
    .name = "checkpoint",
    .summary = "how far a task came",
    .description = "Checkpoints are numbered within their task and never changed.",
    .commands = COMMANDS(&add, &list, &latest, &diff, &verify),
    .examples = EXAMPLES({ .line = "pawl work checkpoint latest --data ./data t-1 --verified",
                           .says = "where to go on from" }),
};
