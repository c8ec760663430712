#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/fs.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/place.h"
#include "cli/ledger/ledger.h"
#include "config/config.h"

void pawl__ledger_close_p(pawl_ledger **ledger)
{
    pawl__interrupt_hurries(NULL);
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

static const struct pawl__place place = { .flag = "ledger", .file = "ledger.sqlite" };

pawl_status pawl__ledger_location(const struct pawl__run *run,
                                  char **ret_location,
                                  pawl_error *reterr)
{
    return pawl__place_location(run, &place, ret_location, reterr);
}

bool pawl__ledger_is_memory(const struct pawl__run *run)
{
    const char *given = pawl__args_value(run->args, place.flag);

    return given != NULL && strcmp(given, "memory:") == 0;
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

static void hurry(void *ledger)
{
    pawl_ledger_interrupt(ledger);
}

static struct pawl__woken hurried; /* a command has one ledger open at a time */

pawl_status pawl__ledger_open(const struct pawl__run *run,
                              enum pawl__ledger_wish wish,
                              pawl_ledger **ret_ledger,
                              pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;

    options.busy_ms_max = pawl__place_busy_ms(run);
    options.answer_ms_max = pawl__place_answer_ms(run);
    options.must_exist = wish != LEDGER_TO_CREATE;
    options.read_only = wish == LEDGER_TO_READ || wish == LEDGER_TO_VERIFY;
    options.accept_damage = wish == LEDGER_TO_VERIFY;
    pawl_status status = pawl__ledger_location(run, &location, reterr);
    if (status == PAWL_OK) {
        status = check_memory(location, wish, reterr);
    }
    if (status == PAWL_OK && wish == LEDGER_TO_CREATE) {
        status = pawl__place_make(run, &place, reterr);
    }
    if (status != PAWL_OK) {
        return status;
    }
    status = pawl_ledger_open(location, &options, ret_ledger, reterr);
    if (status == PAWL_OK) {
        hurried = (struct pawl__woken){ hurry, *ret_ledger };
        pawl__interrupt_hurries(&hurried);
    }
    if (status == PAWL_OK && !options.read_only && strstr(location, "durability=normal") != NULL) {
        LOG_WARNING("durability is normal: a power cut can take the last events that were answered",
                    LOG_TEXT("ledger", location));
    }
    return status;
}

pawl_status pawl__ledger_snapshots(const struct pawl__run *run,
                                   char **ret_directory,
                                   pawl_error *reterr)
{
    const char *given = pawl__args_value(run->args, "dir");

    *ret_directory = given != NULL
                         ? strdup(given)
                         : pawl__fs_join(pawl__config_text(run->config, PAWL__DATA), "snapshots");
    return *ret_directory == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a path")
                                  : PAWL_OK;
}
