#include "cli/frame/place.h"

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

bool pawl__place_is_in_data(const struct pawl__run *run, const struct pawl__place *place)
{
    return !pawl__args_has(run->args, place->flag) && !pawl__settings_use_database(run->config);
}

static pawl_status location_in_data(const struct pawl__run *run,
                                    const struct pawl__place *place,
                                    char **ret_location,
                                    pawl_error *reterr)
{
    struct pawl__buf location = BUF_INIT(1 << 16);
    AUTO(pawl__text_free)
    char *path = pawl__fs_join(pawl__config_text(run->config, PAWL__DATA), place->file);

    if (path == NULL) {
        return no_memory(reterr);
    }
    /* With its kind, because the path may look like another. */
    pawl__buf_add_format(&location, "sqlite:%s", path);
    *ret_location = pawl__buf_steal(&location);
    return *ret_location == NULL ? no_memory(reterr) : PAWL_OK;
}

pawl_status pawl__place_location(const struct pawl__run *run,
                                 const struct pawl__place *place,
                                 char **ret_location,
                                 pawl_error *reterr)
{
    const char *given = pawl__args_value(run->args, place->flag);

    if (pawl__place_is_in_data(run, place)) {
        return location_in_data(run, place, ret_location, reterr);
    }
    *ret_location =
        strdup(given != NULL ? given : pawl__config_text(run->config, PAWL__DATABASE_URL));
    return *ret_location == NULL ? no_memory(reterr) : PAWL_OK;
}

pawl_status pawl__place_make(const struct pawl__run *run,
                             const struct pawl__place *place,
                             pawl_error *reterr)
{
    return pawl__place_is_in_data(run, place)
               ? pawl__fs_make_dir(pawl__config_text(run->config, PAWL__DATA), reterr)
               : PAWL_OK;
}

uint32_t pawl__place_busy_ms(const struct pawl__run *run)
{
    return (uint32_t)(pawl__config_number(run->config, PAWL__STORE_BUSY_TIMEOUT) / NS_PER_MS);
}

uint32_t pawl__place_answer_ms(const struct pawl__run *run)
{
    return (uint32_t)(pawl__config_number(run->config, PAWL__STORE_ANSWER_TIMEOUT) / NS_PER_MS);
}
