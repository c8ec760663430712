#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/fs.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/location.h"
#include "cli/ledger/ledger.h"
#include "config/config.h"

void pawl__cli_ledger_close_p(pawl_ledger **ledger)
{
    pawl__cli_interrupt_release();
    pawl__cli_interrupt_escalates(NULL);
    pawl_ledger_close(*ledger, 0, NULL);
}

void pawl__cli_reader_close_p(pawl_reader **reader)
{
    pawl_reader_free(*reader);
}

void pawl__cli_event_free_p(pawl_event **event)
{
    pawl_event_free(*event);
}

static const struct pawl__cli_location store = { .flag = "ledger", .file = "ledger.sqlite" };

pawl_status pawl__cli_ledger_location(const struct pawl__cli_run *run,
                                      char **ret_location,
                                      pawl_error *reterr)
{
    return pawl__cli_location_of(run, &store, ret_location, reterr);
}

bool pawl__cli_ledger_is_memory(const struct pawl__cli_run *run)
{
    const char *given = pawl__cli_args_value(run->args, store.flag);

    return given != NULL && strcmp(given, "memory:") == 0;
}

static pawl_status check_memory(const char *location,
                                enum pawl__cli_ledger_access access,
                                pawl_error *reterr)
{
    bool is_memory = strcmp(location, "memory:") == 0;

    return is_memory && access != LEDGER_TO_CREATE
               ? pawl__fail(reterr,
                            PAWL_INVALID,
                            "'--ledger' is 'memory:', which is empty in every new process; it is "
                            "good for append and import alone, to try an input out")
               : PAWL_OK;
}

static void interrupt_store(void *ledger)
{
    pawl_ledger_interrupt(ledger);
}

static struct pawl__cli_wakeable escalation; /* a command has one ledger open at a time */

pawl_status pawl__cli_ledger_open(const struct pawl__cli_run *run,
                                  enum pawl__cli_ledger_access access,
                                  pawl_ledger **ret_ledger,
                                  pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;

    options.busy_ms_max = pawl__cli_busy_ms(run);
    options.answer_ms_max = pawl__cli_answer_ms(run);
    options.must_exist = access != LEDGER_TO_CREATE;
    options.read_only = access == LEDGER_TO_READ || access == LEDGER_TO_VERIFY;
    options.accept_damage = access == LEDGER_TO_VERIFY;
    TRY(pawl__cli_ledger_location(run, &location, reterr));
    TRY(check_memory(location, access, reterr));
    if (access == LEDGER_TO_CREATE) {
        TRY(pawl__cli_location_make(run, &store, reterr));
    }
    TRY(pawl_ledger_open(location, &options, ret_ledger, reterr));
    escalation = (struct pawl__cli_wakeable){ interrupt_store, *ret_ledger };
    pawl__cli_interrupt_escalates(&escalation);
    if (!options.read_only && strstr(location, "durability=normal") != NULL) {
        LOG_WARNING("durability is normal: a power cut can take the last events that were answered",
                    LOG_TEXT("ledger", location));
    }
    return PAWL_OK;
}

void pawl__cli_ledger_interruptible(void)
{
    pawl__cli_interrupt_catch(&escalation);
}

pawl_status pawl__cli_ledger_snapshots(const struct pawl__cli_run *run,
                                       char **ret_directory,
                                       pawl_error *reterr)
{
    const char *given = pawl__cli_args_value(run->args, "dir");

    *ret_directory = given != NULL
                         ? strdup(given)
                         : pawl__fs_join(pawl__config_text(run->config, PAWL__DATA), "snapshots");
    return pawl__fs_check_path(*ret_directory, reterr);
}
