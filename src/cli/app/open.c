#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "cli/app/app.h"
#include "cli/frame/location.h"
#include "cli/frame/settings.h"
#include "config/config.h"
#include "store/location.h"

enum { ACTUALIZE_MS_MAX = 600000, RETRY_NS = 20 * NS_PER_MS };

void pawl__cli_app_close_p(pawl_app **app)
{
    pawl_app_close(*app, 0, NULL);
}

/* What was said, and by whom: --apps, or DATABASE_URL when it is PostgreSQL and no --data is given. NULL:
 * nobody. */
static const char *given_location(const struct pawl__cli_run *run)
{
    const char *given = pawl__cli_args_value(run->args, "apps");
    const char *database = pawl__config_text(run->config, PAWL__DATABASE_URL);

    if (given == NULL && pawl__cli_settings_use_database(run->config)
        && pawl__location_is_postgres(database)) {
        given = database;
    }
    return given;
}

pawl_status pawl__cli_apps_location(const struct pawl__cli_run *run,
                                    char **ret_location,
                                    pawl_error *reterr)
{
    const char *given = given_location(run);

    if (given != NULL && strcmp(given, "memory:") == 0) {
        return pawl__fail(
            reterr, PAWL_INVALID, "'--apps' is 'memory:', which is empty in every new process");
    }
    if (given != NULL
        && (strncmp(given, "sqlite:", 7) == 0
            || (strstr(given, "://") != NULL && !pawl__location_is_postgres(given)))) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--apps' is '%s'; applications are kept in a directory or in "
                          "postgres://...",
                          given);
    }
    *ret_location = given == NULL
                        ? pawl__fs_join(pawl__config_text(run->config, PAWL__DATA), "apps")
                        : strdup(given);
    return *ret_location == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a path") : PAWL_OK;
}

pawl_status pawl__cli_app_location(const struct pawl__cli_run *run,
                                   const char *name,
                                   char **ret_location,
                                   pawl_error *reterr)
{
    AUTO(pawl__text_free) char *apps = NULL;

    /* first: the name is what the user typed */
    TRY(pawl_app_check_name(name, reterr));
    TRY(pawl__cli_apps_location(run, &apps, reterr));
    return pawl_app_locate(apps, name, ret_location, reterr);
}

pawl_app_options pawl__cli_app_options(const struct pawl__cli_run *run)
{
    pawl_app_options options = PAWL_APP_OPTIONS_INIT;

    options.free_space_min = (uint64_t)pawl__config_number(run->config, PAWL__STORE_FREE_SPACE_MIN);
    options.memory_max = (uint64_t)pawl__config_number(run->config, PAWL__STORE_MEMORY_MAX);
    options.busy_ms_max = pawl__cli_busy_ms(run);
    options.answer_ms_max = pawl__cli_answer_ms(run);
    return options;
}

void pawl__cli_app_done(struct pawl__cli_app *app)
{
    pawl_app_close(app->local, 0, NULL);
    pawl__cli_remote_close(app->remote);
}

/* --- here, or in a node --- */

/* Where one is, and how it is opened. */
struct wanted {
    const struct pawl__cli_run *run;
    const char *name;
    const char *apps;
    const char *location;
    const pawl_app_options *options;
};

/* NOT_FOUND: no node has it. */
static pawl_status ask_node(const struct wanted *wanted,
                            struct pawl__cli_app *ret_app,
                            pawl_error *reterr)
{
    AUTO(pawl__cli_remote_close_p) struct pawl__cli_remote *remote = NULL;

    TRY(pawl__cli_remote_connect(wanted->run, wanted->apps, &remote, reterr));
    TRY(pawl__cli_remote_choose(remote, wanted->name, reterr));
    ret_app->remote = STEAL(remote);
    return PAWL_OK;
}

/* A node is asked first: opening on PostgreSQL waits for an owner that may have crashed, two seconds that a living
 * one would cost every command. BUSY: another process has it, and does not let itself be asked. */
static pawl_status open_once(const struct wanted *wanted,
                             struct pawl__cli_app *ret_app,
                             pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status asked = ask_node(wanted, ret_app, &error);

    if (asked == PAWL_OK) {
        return PAWL_OK;
    }
    pawl_status status =
        pawl_app_open(wanted->location, NULL, wanted->options, &ret_app->local, reterr);
    return status == PAWL_BUSY && asked != PAWL_NOT_FOUND ? pawl__fail_with(reterr, asked, &error)
                                                          : status;
}

/* Commands of a script run one after the other, and a node may be starting or stopping. */
static pawl_status open_patiently(const struct wanted *wanted,
                                  struct pawl__cli_app *ret_app,
                                  pawl_error *reterr)
{
    struct pawl__clock *clock = wanted->run->clock;
    int64_t deadline_ns = pawl__monotonic_ns(clock) + wanted->options->busy_ms_max * NS_PER_MS;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = open_once(wanted, ret_app, &error);

    while (status == PAWL_BUSY && pawl__monotonic_ns(clock) < deadline_ns) {
        pawl__sleep_until(clock, MIN(deadline_ns, pawl__monotonic_ns(clock) + RETRY_NS));
        status = open_once(wanted, ret_app, &error);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

pawl_status pawl__cli_app_open_with(const struct pawl__cli_run *run,
                                    const pawl_app_options *options,
                                    struct pawl__cli_app *ret_app,
                                    pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;
    AUTO(pawl__text_free) char *apps = NULL;
    const char *name = pawl__cli_args_operand(run->args, 0);

    TRY(pawl__cli_app_location(run, name, &location, reterr));
    TRY(pawl__cli_apps_location(run, &apps, reterr));
    const struct wanted wanted = { run, name, apps, location, options };
    ret_app->clock = run->clock;
    return open_patiently(&wanted, ret_app, reterr);
}

pawl_status pawl__cli_app_open_named(const struct pawl__cli_run *run,
                                     struct pawl__cli_app *ret_app,
                                     pawl_error *reterr)
{
    const pawl_app_options options = pawl__cli_app_options(run);

    return pawl__cli_app_open_with(run, &options, ret_app, reterr);
}

pawl_status pawl__cli_app_open_to_read(const struct pawl__cli_run *run,
                                       struct pawl__cli_app *ret_app,
                                       pawl_error *reterr)
{
    pawl_app_options options = pawl__cli_app_options(run);

    options.read_only = true;
    return pawl__cli_app_open_with(run, &options, ret_app, reterr);
}

/* --- its numbers --- */

/* Whether a node still reads the logs; what a log that does not allow it says. */
static pawl_status look_at_numbers(struct pawl__cli_remote *remote,
                                   bool *ret_actualizing,
                                   pawl_error *reterr)
{
    const struct pawl__cli_ask ask = { .method = "GET", .target = "/seq" };
    json_auto_t *page = NULL;

    *ret_actualizing = false;
    TRY(pawl__cli_remote_ask(remote, &ask, &page, reterr));
    const json_t *items = json_object_get(page, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *row = json_array_get(items, i);
        const char *detail = json_string_value(json_object_get(row, "last_error_detail"));
        const char *code = json_string_value(json_object_get(row, "last_error"));

        if (json_is_true(json_object_get(row, "actualizing"))) {
            *ret_actualizing = true;
        }
        if (code != NULL && strcmp(code, "CORRUPT") == 0) {
            return pawl__fail(reterr,
                              PAWL_CORRUPT,
                              "partition %zu: %s",
                              i,
                              detail == NULL ? "its log is damaged" : detail);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__cli_app_await_numbers(struct pawl__cli_app *app, pawl_error *reterr)
{
    bool actualizing = true;

    if (app->remote == NULL) {
        return pawl_app_wait(app->local, ACTUALIZE_MS_MAX, reterr);
    }
    struct pawl__clock *clock = app->clock;
    int64_t deadline_ns = pawl__monotonic_ns(clock) + ACTUALIZE_MS_MAX * NS_PER_MS;
    while (actualizing) {
        TRY(look_at_numbers(app->remote, &actualizing, reterr));
        if (actualizing && pawl__monotonic_ns(clock) >= deadline_ns) {
            return pawl__fail(reterr, PAWL_TIMEOUT, "the node still reads the logs");
        }
        if (actualizing) {
            pawl__sleep_until(clock, pawl__monotonic_ns(clock) + RETRY_NS);
        }
    }
    return PAWL_OK;
}
