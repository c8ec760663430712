#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/macros.h"
#include "cli/ledger.h"
#include "cli/settings.h"

void pawl__ledger_close_p(pawl_ledger **ledger)
{
    pawl_ledger_close(*ledger);
}

void pawl__reader_close_p(pawl_reader **reader)
{
    pawl_reader_close(*reader);
}

void pawl__event_free_p(pawl_event **event)
{
    pawl_event_free(*event);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
}

/* True when the ledger is a file in the data directory. */
static bool is_in_data(const struct pawl__run *run)
{
    return !pawl__args_has(run->args, "ledger") && !pawl__settings_use_database(run->config);
}

static pawl_status location_in_data(const struct pawl__run *run,
                                    char **ret_location,
                                    pawl_error *reterr)
{
    struct pawl__buf location = BUF_INIT(1 << 16);
    AUTO(pawl__text_free)
    char *path = pawl__fs_join(pawl__config_text(run->config, PAWL__DATA), "ledger.sqlite");

    if (path == NULL) {
        return no_memory(reterr);
    }
    /* With its kind, because the path may look like another. */
    pawl__buf_add_format(&location, "sqlite:%s", path);
    *ret_location = pawl__buf_steal(&location);
    return *ret_location == NULL ? no_memory(reterr) : PAWL_OK;
}

pawl_status pawl__ledger_location(const struct pawl__run *run,
                                  char **ret_location,
                                  pawl_error *reterr)
{
    const char *given = pawl__args_value(run->args, "ledger");

    if (is_in_data(run)) {
        return location_in_data(run, ret_location, reterr);
    }
    *ret_location =
        strdup(given != NULL ? given : pawl__config_text(run->config, PAWL__DATABASE_URL));
    return *ret_location == NULL ? no_memory(reterr) : PAWL_OK;
}

static pawl_status check_memory(const char *location,
                                enum pawl__ledger_wish wish,
                                pawl_error *reterr)
{
    bool is_memory = strcmp(location, "memory:") == 0;

    return is_memory && wish != LEDGER_TO_CREATE
               ? pawl__fail(reterr,
                            PAWL_INVALID,
                            "'--ledger' is 'memory:', which is empty in every new process; it is "
                            "good for append and import alone, to try an input out")
               : PAWL_OK;
}

pawl_status pawl__ledger_open(const struct pawl__run *run,
                              enum pawl__ledger_wish wish,
                              pawl_ledger **ret_ledger,
                              pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    int64_t busy_ns = pawl__config_number(run->config, PAWL__STORE_BUSY_TIMEOUT);

    options.busy_ms_max = (uint32_t)(busy_ns / NS_PER_MS);
    options.must_exist = wish != LEDGER_TO_CREATE;
    options.read_only = wish == LEDGER_TO_READ;
    pawl_status status = pawl__ledger_location(run, &location, reterr);
    if (status == PAWL_OK) {
        status = check_memory(location, wish, reterr);
    }
    if (status == PAWL_OK && wish == LEDGER_TO_CREATE && is_in_data(run)) {
        status = pawl__fs_make_dir(pawl__config_text(run->config, PAWL__DATA), reterr);
    }
    if (status != PAWL_OK) {
        return status;
    }
    if (wish != LEDGER_TO_READ && strstr(location, "durability=normal") != NULL) {
        LOG_WARNING("durability is normal: a power cut can take the last events that were answered",
                    LOG_TEXT("ledger", location));
    }
    return pawl_ledger_open(location, &options, ret_ledger, reterr);
}

pawl_status pawl__ledger_snapshots(const struct pawl__run *run,
                                   char **ret_directory,
                                   pawl_error *reterr)
{
    const char *given = pawl__args_value(run->args, "dir");

    *ret_directory = given != NULL
                         ? strdup(given)
                         : pawl__fs_join(pawl__config_text(run->config, PAWL__DATA), "snapshots");
    return *ret_directory == NULL ? no_memory(reterr) : PAWL_OK;
}
