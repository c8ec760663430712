/* pawl deliver: one pipeline, made from flags and run here. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/core/macros.h"
#include "cli/commands.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/interrupt.h"

enum { FOLLOW_MS = 60000, FOLLOW_ALL_MS = 1000 };

struct work {
    struct pawl__cli_progress progress;
    pawl_watch watch;
    pawl_pipeline_state state;
};

/* A source may have more than was taken in so far: there is no total to show. */
static bool show(void *context, uint64_t done, uint64_t total)
{
    struct work *work = context;

    (void)total;
    return pawl__cli_progress_step(&work->progress, done, 0);
}

static bool look(void *context, const pawl_pipeline_status *status)
{
    ((struct work *)context)->state = status->state;
    return true;
}

/* A line without its end is waited for, and a source that is away, too. */
static pawl_status follow(struct pawl__cli_delivery *delivery,
                          const char *name,
                          struct work *work,
                          pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;

    work->state = PAWL_PIPELINE_RUNNING;
    while (work->state != PAWL_PIPELINE_FAILED && status != PAWL_CANCELLED) {
        status = pawl__cli_pipeline_drain(delivery, name, FOLLOW_MS, &work->watch, &error);
        TRY(pawl__cli_pipeline_visit(delivery, name, look, work, reterr));
    }
    return work->state == PAWL_PIPELINE_FAILED ? pawl__fail_with(reterr, status, &error) : PAWL_OK;
}

static pawl_status run_pipeline(const struct pawl__cli_run *run,
                                struct pawl__cli_delivery *delivery,
                                const char *name,
                                struct work *work,
                                pawl_error *reterr)
{
    bool is_stdin = strcmp(pawl__cli_args_value(run->args, "from"), "-") == 0;
    bool ends = pawl__cli_args_has(run->args, "drain") || is_stdin;

    if (is_stdin && delivery->here == NULL) {
        return pawl__fail_advised(
            reterr,
            PAWL_BUSY,
            "another process has the pipelines, and it cannot read this command's standard input; "
            "stop it, write the lines to a file, or post them to a pipeline with --from http");
    }
    TRY(pawl__cli_delivery_add(run, delivery, name, reterr));
    TRY(pawl__cli_pipeline_start(delivery, name, reterr));
    pawl_status status = ends ? pawl__cli_pipeline_drain(delivery, name, 0, &work->watch, reterr)
                              : follow(delivery, name, work, reterr);
    pawl__cli_progress_done(&work->progress);
    TRY(status);
    return pawl__cli_delivery_print(run, delivery, name, reterr);
}

/* --- all of them --- */

struct names {
    char **items;
    size_t count;
    size_t room;
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
}

/* A paused one is left out, and one that reads standard input. */
static bool note_name(void *context, const pawl_pipeline_status *status)
{
    struct names *names = context;
    char **items = pawl__grow(names->items, names->count, &names->room, sizeof(*items));

    if (items == NULL) {
        return false;
    }
    names->items = items;
    if (status->state != PAWL_PIPELINE_PAUSED && !pawl__view_is(status->from, "-")) {
        items[names->count] = pawl__view_dup(status->name);
        names->count += items[names->count] != NULL;
    }
    return true;
}

/* One that fails does not keep the others from being drained; the first error is the command's. */
static pawl_status drain_all(struct pawl__cli_delivery *delivery,
                             const struct names *names,
                             struct work *work,
                             pawl_error *reterr)
{
    pawl_status first = PAWL_OK;

    for (size_t i = 0; i < names->count && first != PAWL_CANCELLED; i++) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__cli_pipeline_start(delivery, names->items[i], &error);
        if (status == PAWL_OK) {
            status = pawl__cli_pipeline_drain(delivery, names->items[i], 0, &work->watch, &error);
        }
        if (status != PAWL_OK && first == PAWL_OK) {
            *reterr = error;
            first = pawl__fail_context(reterr, status, "pipeline '%s'", names->items[i]);
        }
    }
    return first;
}

/* Each waits out its own troubles until Ctrl-C. */
static pawl_status follow_all(struct pawl__cli_delivery *delivery,
                              const struct names *names,
                              struct work *work,
                              pawl_error *reterr)
{
    TRY(delivery->here == NULL ? PAWL_OK : pawl_delivery_start(delivery->here, reterr));
    for (size_t i = 0; !pawl__cli_interrupted(); i = (i + 1) % names->count) {
        (void)!pawl__cli_pipeline_drain(
            delivery, names->items[i], FOLLOW_ALL_MS, &work->watch, NULL);
    }
    return PAWL_OK;
}

static pawl_status run_all(const struct pawl__cli_run *run,
                           struct pawl__cli_delivery *delivery,
                           struct work *work,
                           pawl_error *reterr)
{
    AUTO(names_done) struct names names = { .count = 0 };

    TRY(pawl__cli_delivery_add_configured(run, delivery, reterr));
    TRY(pawl__cli_pipeline_visit(delivery, NULL, note_name, &names, reterr));
    if (names.count == 0) {
        return pawl__fail_advised(
            reterr,
            PAWL_NOT_FOUND,
            "no pipeline to run; give --from, or declare pipelines in pawl.yaml or "
            "with `pawl pipeline add`");
    }
    pawl_status status = pawl__cli_args_has(run->args, "drain")
                             ? drain_all(delivery, &names, work, reterr)
                             : follow_all(delivery, &names, work, reterr);
    pawl__cli_progress_done(&work->progress);
    for (size_t i = 0; status == PAWL_OK && i < names.count; i++) {
        status = pawl__cli_delivery_print(run, delivery, names.items[i], reterr);
    }
    return status;
}

static pawl_status deliver_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    const char *name = pawl__cli_args_value(run->args, "name");
    struct work work = { .progress = pawl__cli_progress_start(run, "deliver", false),
                         .watch = { sizeof(pawl_watch), show, &work } };
    struct pawl__serve_node *node = NULL;
    struct pawl__cli_delivery delivery;

    name = name == NULL ? pawl__cli_args_value(run->args, "into") : name;
    bool runs_one = pawl__cli_args_has(run->args, "from");
    if (!runs_one
        && (pawl__cli_args_has(run->args, "dry-run") || pawl__cli_args_has(run->args, "name"))) {
        return pawl__fail(reterr, PAWL_INVALID, "'--from' is missing");
    }
    if (pawl__cli_args_has(run->args, "dry-run")) {
        return pawl__cli_delivery_preview(run, name, reterr);
    }
    TRY(pawl__cli_delivery_reach(run, &delivery, reterr));
    pawl__cli_deliver_listen(&delivery, &node);
    pawl_status status = runs_one ? run_pipeline(run, &delivery, name, &work, reterr)
                                  : run_all(run, &delivery, &work, reterr);
    pawl__cli_progress_done(&work.progress);
    pawl__cli_deliver_stop_listening(node);
    return pawl__cli_delivery_leave(&delivery, status, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_deliver = {
    .name = "deliver",
    .summary = "deliver events into DuckDB, each exactly once",
    .description =
        "Reads a JetStream stream, a ledger, a file of JSON lines or standard input, and writes "
        "each event as a row of a table in analytics.duckdb, in the data directory. Every event is "
        "on disk in a write-ahead log before the source hears that we have it. Killed at any point "
        "and run again, the same command goes on where it stopped: no event is lost, none is there "
        "twice.\n\n"
        "An event that cannot be a row (not JSON, a value that its column cannot hold, the id of "
        "another event) becomes a row of failed_events, with its payload and the reason.\n\n"
        "With --drain it ends when the source has no more; without, it waits for more until "
        "Ctrl-C. Standard input is read to its end.\n\n"
        "The first run declares a pipeline, named after the table unless --name says otherwise; "
        "'pawl pipeline' shows it. Lines of a file are known by their place: a file that was "
        "changed before the last line that was delivered is refused until --generation names "
        "something new. A last line without a line feed waits, and with --drain it is exit code "
        "2.\n\n"
        "Without --from it runs every pipeline that is declared in pawl.yaml, under 'pipelines', "
        "or "
        "was declared before, unless it is paused.\n\n"
        "One process at a time has the pipelines of a data directory. While a node or another "
        "'pawl "
        "deliver' has them, this command asks that process to run the pipeline, and ends as it "
        "would "
        "otherwise; the pipeline goes on there. Standard input cannot be handed over: exit code 5.",
    .flags = FLAGS(PIPELINE_FROM_FLAG(.required = false),
                   PIPELINE_FLAGS,
                   FLAG("name",
                        "PIPELINE",
                        "What to call the pipeline; the table's name if it is "
                        "left out."),
                   { .name = "drain", .help = "End when the source has no more." },
                   { .name = "dry-run",
                     .help = "Print what would become of the first ten events, as JSON, and write "
                             "nothing." }),
    .examples = EXAMPLES(
        TESTED("echo '{\"order\":17,\"euro\":5}' > orders.jsonl && pawl deliver --data ./data "
               "--from orders.jsonl --into orders --drain",
               "a file, once; run it again and nothing is there twice"),
        TESTED("echo '{\"order\":17}' | pawl deliver --data ./data --from - --source nightly "
               "--into orders",
               "what a program writes"),
        { .line = "pawl deliver --from nats://localhost:4222 --stream ORDERS --into orders",
          .says = "a JetStream stream, for as long as it runs" },
        { .line = "pawl deliver --from ledger:./data/ledger.sqlite --into events --drain",
          .says = "a ledger" }),
    .run = deliver_run,
};
