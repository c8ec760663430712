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
    pawl_app_close(*app);
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

/* Another process that has it is waited for, as long as the settings say: commands of a script run one
 * after the other. */
static pawl_status open_patiently(struct pawl__clock *clock,
                                  const char *location,
                                  const pawl_app_options *options,
                                  pawl_app **ret_app,
                                  pawl_error *reterr)
{
    int64_t deadline_ns = pawl__monotonic_ns(clock) + options->busy_ms_max * NS_PER_MS;
    pawl_status status = pawl_app_open(location, NULL, options, ret_app, reterr);

    while (status == PAWL_BUSY && pawl__monotonic_ns(clock) < deadline_ns) {
        pawl__sleep_until(clock, MIN(deadline_ns, pawl__monotonic_ns(clock) + RETRY_NS));
        status = pawl_app_open(location, NULL, options, ret_app, reterr);
    }
    return status;
}

pawl_status pawl__cli_app_open_with(const struct pawl__cli_run *run,
                                    const pawl_app_options *options,
                                    pawl_app **ret_app,
                                    pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;

    TRY(pawl__cli_app_location(run, pawl__cli_args_operand(run->args, 0), &location, reterr));
    return open_patiently(run->clock, location, options, ret_app, reterr);
}

pawl_status pawl__cli_app_open_named(const struct pawl__cli_run *run,
                                     pawl_app **ret_app,
                                     pawl_error *reterr)
{
    const pawl_app_options options = pawl__cli_app_options(run);

    return pawl__cli_app_open_with(run, &options, ret_app, reterr);
}

pawl_status pawl__cli_app_open_to_read(const struct pawl__cli_run *run,
                                       pawl_app **ret_app,
                                       pawl_error *reterr)
{
    pawl_app_options options = pawl__cli_app_options(run);

    options.read_only = true;
    return pawl__cli_app_open_with(run, &options, ret_app, reterr);
}

pawl_status pawl__cli_app_await_numbers(pawl_app *app, pawl_error *reterr)
{
    return pawl_app_wait(app, ACTUALIZE_MS_MAX, reterr);
}
