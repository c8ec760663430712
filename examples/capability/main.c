/* counter add DIR NAME [--by N], counter serve DIR: the commands of the example, and its node. */
#include <signal.h>
#include <stdio.h>

#include "base/core/error.h"
#include "cli/frame/run.h"
#include "counter.h"

static pawl_status run_add(struct pawl__cli_run *run, pawl_error *reterr)
{
    struct change change = { .value = pawl__cli_args_number(run->args, "by") };
    struct counter *counter = NULL;

    (void)snprintf(change.name, sizeof(change.name), "%s", pawl__cli_args_operand(run->args, 1));
    TRY(counter_open(pawl__cli_args_operand(run->args, 0), &counter, reterr));
    pawl_status status = counter_add(counter, &change, reterr);
    if (status == PAWL_OK) {
        printf("%s %lld\n", change.name, (long long)change.value);
    }
    return counter_close(counter, NULL) == PAWL_OK ? status : PAWL_TIMEOUT;
}

static pawl_status run_serve(struct pawl__cli_run *run, pawl_error *reterr)
{
    static const struct pawl__serve_part *const parts[] = { &counter_part, NULL };
    struct pawl__serve_options options = { .parts = parts, .http = PAWL__HTTP_OPTIONS_INIT };
    struct pawl__serve_node *node = NULL;
    sigset_t ends;
    int number = 0;

    options.location = pawl__cli_args_operand(run->args, 0);
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before there are threads */
    TRY(pawl__serve_node_open(&options, &node, reterr));
    printf("listening on http://%s\n", pawl__serve_listens_on(node));
    (void)fflush(stdout);
    (void)sigwait(&ends, &number);
    return pawl__serve_node_close(node, reterr);
}

static const struct pawl__cli_command add = {
    .name = "add",
    .summary = "add to a counter",
    .operands = OPERANDS({ .name = "DIR" }, { .name = "NAME" }),
    .flags = FLAGS(NUMBER_FLAG("by", "N", -BY_MAX, BY_MAX, "How much.", .fallback = "1")),
    .run = run_add,
};
static const struct pawl__cli_command serve = {
    .name = "serve",
    .summary = "serve counters over HTTP, on a free port",
    .operands = OPERANDS({ .name = "DIR" }),
    .run = run_serve,
};
static const struct pawl__cli_command root = { .name = "counter",
                                               .commands = COMMANDS(&add, &serve) };

int main(int argc, char **argv)
{
    const struct pawl__cli cli = { .root = &root };
    struct pawl__cli_args args = { 0 };
    struct pawl__cli_run run = { .args = &args };
    pawl_error error = PAWL_ERROR_INIT;

    pawl__cli_out_start();
    error.status = pawl__cli_args_parse(&cli, argc, (const char *const *)argv, &args, &error);
    if (error.status == PAWL_OK) {
        error.status = pawl__cli_path_leaf(&args.path)->run(&run, &error);
    }
    pawl__cli_args_done(&args);
    return pawl__cli_out_finish(error.status, &error, false, false);
}
