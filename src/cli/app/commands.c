/* pawl app: exec.c and read.c have the other verbs. pawl seq: seq.c, seq_verify.c */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "cli/app/app.h"
#include "cli/commands.h"
#include "cli/frame/input.h"

enum { DESCRIPTOR_BYTES_MAX = 16 << 20, RETRY_NS = 20 * NS_PER_MS };

/* --- create --- */

/* Where it goes follows from its name, so that is read first. */
static pawl_status name_of(const char *descriptor, char **ret_name, pawl_error *reterr)
{
    json_auto_t *json = NULL;
    struct pawl__json_node object;
    pawl_view name;

    TRY(pawl__json_parse(pawl_view_of(descriptor), DESCRIPTOR_BYTES_MAX, &json, reterr));
    TRY(pawl__json_object(pawl__json_root(json, "descriptor"), &object, reterr));
    TRY(pawl__json_text(pawl__json_key(&object, "name"), &name, reterr));
    *ret_name = pawl__view_dup(name);
    return *ret_name == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a name") : PAWL_OK;
}

static pawl_status print_created(const struct pawl__cli_run *run,
                                 const pawl_app *app,
                                 pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "name", true },   { "id", true },     { "partitions", false },
        { "trust", false }, { "kinds", false },
    };
    const pawl_app_descriptor *descriptor = pawl_app_get_descriptor(app);
    AUTO(pawl__table_done) struct pawl__table table = { 0 };
    struct pawl__table_options options = pawl__cli_out_table(run);
    const struct pawl__cell cells[] = {
        pawl__cell_text(pawl_view_of(descriptor->name)),     pawl__cell_integer(descriptor->id),
        pawl__cell_integer(descriptor->partitions),          pawl__cell_integer(descriptor->trust),
        pawl__cell_integer((int64_t)descriptor->kind_count),
    };

    pawl__table_init(&table, columns, COUNT_OF(columns), &options);
    TRY(pawl__table_add(&table, cells, reterr));
    return pawl__table_end(&table, reterr);
}

/* A node that runs has to know of it: NOT_FOUND when there is none. */
static pawl_status create_remotely(const struct pawl__cli_run *run,
                                   const char *name,
                                   const char *descriptor,
                                   pawl_error *reterr)
{
    AUTO(pawl__cli_remote_close_p) struct pawl__cli_remote *remote = NULL;
    AUTO(pawl__text_free) char *apps = NULL;
    char target[PAWL_APP_NAME_BYTES_MAX + 16];
    json_auto_t *created = NULL;

    TRY(pawl__cli_apps_location(run, &apps, reterr));
    TRY(pawl__cli_remote_connect(run, apps, &remote, reterr));
    (void)snprintf(target, sizeof(target), "/v1/apps/%s", name);
    const struct pawl__cli_ask ask = {
        .method = "PUT", .target = target, .whole = true, .body = pawl_view_of(descriptor)
    };
    return pawl__cli_remote_ask(remote, &ask, &created, reterr);
}

/* Whichever comes first: a node that is starting may take the place meanwhile. */
static pawl_status create_somewhere(const struct pawl__cli_run *run,
                                    const char *name,
                                    const char *descriptor,
                                    pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;
    AUTO(pawl__cli_app_close_p) pawl_app *app = NULL;
    const pawl_app_options options = pawl__cli_app_options(run);
    int64_t deadline_ns = pawl__monotonic_ns(run->clock) + options.busy_ms_max * NS_PER_MS;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_BUSY;

    TRY(pawl__cli_app_location(run, name, &location, reterr));
    for (;;) {
        status = create_remotely(run, name, descriptor, &error);
        if (status == PAWL_NOT_FOUND) {
            status = pawl_app_open_json(location, pawl_view_of(descriptor), &options, &app, &error);
        }
        if (status != PAWL_BUSY || pawl__monotonic_ns(run->clock) >= deadline_ns) {
            break;
        }
        pawl__sleep_until(run->clock, pawl__monotonic_ns(run->clock) + RETRY_NS);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

static pawl_status create_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *descriptor = NULL;
    AUTO(pawl__text_free) char *name = NULL;
    AUTO(pawl__text_free) char *location = NULL;
    AUTO(pawl__cli_app_close_p) pawl_app *trial = NULL;

    TRY(pawl__cli_input_read("descriptor",
                             pawl__cli_args_value(run->args, "descriptor"),
                             DESCRIPTOR_BYTES_MAX,
                             &descriptor,
                             reterr));
    TRY(name_of(descriptor, &name, reterr));
    TRY(pawl__cli_app_location(run, name, &location, reterr));
    /* A refused descriptor must leave no directory. */
    TRY(pawl_app_open_json("memory:", pawl_view_of(descriptor), NULL, &trial, reterr));
    TRY(create_somewhere(run, name, descriptor, reterr));
    return print_created(run, trial, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_app_create = {
    .name = "create",
    .summary = "create an application from its descriptor",
    .description =
        "The descriptor is JSON: {\"name\": \"orders\", \"id\": 1, \"partitions\": 4, \"trust\": "
        "0, \"kinds\": [{\"name\": \"shop\", \"id\": 1, \"sequences\": [{\"name\": \"invoice\", "
        "\"id\": 16, \"initial\": 1000}]}]}. Partitions (1), trust (0), sequences (none) and "
        "initial values (1) may be left out.\n\n"
        "The trust level says how numbers are written: 0 finds an event or a new record whose "
        "number is used already, 1 only an event, 2 neither. It cannot be changed afterwards. "
        "Creating the same application again is fine; with another descriptor it is a conflict, "
        "exit code 4.",
    .flags = FLAGS(FLAG("descriptor",
                        "JSON",
                        "What the application is; @FILE reads a file, - standard input.",
                        .required = true)),
    .examples = EXAMPLES(TESTED(APP_EXAMPLE_CREATE, "the least")),
    .run = create_run,
};

const struct pawl__cli_command pawl__cli_cmd_app = {
    .name = "app",
    .summary = "applications whose events and records have numbers",
    .description =
        "An application has workspaces. A command of a workspace becomes one event, in the log of "
        "its partition (PLog) and in that of the workspace (WLog), and the records that it creates "
        "and updates, in one atomic write. Numbers go up by one, without a gap, and are never "
        "given out twice.\n\n" APP_WHERE APP_BESIDE_NODE,
    .flags = FLAGS(APP_FLAG),
    .when_damaged =
        "to see what is damaged, run `pawl seq verify --all`; restore the application from a "
        "backup, or if only numbers are wrong, run `pawl seq rebuild`",
    .commands = COMMANDS(&pawl__cli_cmd_app_create,
                         &pawl__cli_cmd_app_exec,
                         &pawl__cli_cmd_app_records,
                         &pawl__cli_cmd_app_wlog,
                         &pawl__cli_cmd_app_plog,
                         &pawl__cli_cmd_app_seq),
    .examples = EXAMPLES(
        TESTED(APP_EXAMPLE_CREATE " && " APP_EXAMPLE_EXEC, "an application and its first command"),
        { .line = "pawl app records --data ./data orders --workspace 7",
          .says = "what a workspace has" }),
};
