#include "cli/frame/location.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "cli/frame/settings.h"
#include "config/config.h"

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
}

/* True when the store is a file in the data directory. */
static bool is_in_data(const struct pawl__cli_run *run, const struct pawl__cli_location *location)
{
    return !pawl__cli_args_has(run->args, location->flag)
           && !pawl__cli_settings_use_database(run->config);
}

static pawl_status location_in_data(const struct pawl__cli_run *run,
                                    const struct pawl__cli_location *location,
                                    char **ret_location,
                                    pawl_error *reterr)
{
    struct pawl__buf text = BUF_INIT(1 << 16);
    AUTO(pawl__text_free)
    char *path = pawl__fs_join(pawl__config_text(run->config, PAWL__DATA), location->file);

    if (path == NULL) {
        return no_memory(reterr);
    }
    /* With its kind, because the path may look like another. */
    pawl__buf_add_format(&text, "sqlite:%s", path);
    *ret_location = pawl__buf_steal(&text);
    return *ret_location == NULL ? no_memory(reterr) : PAWL_OK;
}

pawl_status pawl__cli_location_of(const struct pawl__cli_run *run,
                                  const struct pawl__cli_location *location,
                                  char **ret_location,
                                  pawl_error *reterr)
{
    const char *given = pawl__cli_args_value(run->args, location->flag);

    if (is_in_data(run, location)) {
        return location_in_data(run, location, ret_location, reterr);
    }
    *ret_location =
        strdup(given != NULL ? given : pawl__config_text(run->config, PAWL__DATABASE_URL));
    return *ret_location == NULL ? no_memory(reterr) : PAWL_OK;
}

pawl_status pawl__cli_location_make(const struct pawl__cli_run *run,
                                    const struct pawl__cli_location *location,
                                    pawl_error *reterr)
{
    return is_in_data(run, location)
               ? pawl__fs_make_dir(pawl__config_text(run->config, PAWL__DATA), reterr)
               : PAWL_OK;
}

uint32_t pawl__cli_busy_ms(const struct pawl__cli_run *run)
{
    return (uint32_t)(pawl__config_number(run->config, PAWL__STORE_BUSY_TIMEOUT) / NS_PER_MS);
}

uint32_t pawl__cli_answer_ms(const struct pawl__cli_run *run)
{
    return (uint32_t)(pawl__config_number(run->config, PAWL__STORE_ANSWER_TIMEOUT) / NS_PER_MS);
}
