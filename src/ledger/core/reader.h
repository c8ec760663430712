/* For the files of this folder that read as pawl_reader does. */
#ifndef PAWL_LEDGER_CORE_READER_H
#define PAWL_LEDGER_CORE_READER_H

#include <pawl/ledger.h>

#include "base/core/macros.h"

DEFINE_AUTO(pawl_reader *, pawl_reader_free)

/* Complete turns are those of now, though the reader ends at `up_to`. Before the first event. */
void pawl__ledger_reader_as_of_now(pawl_reader *reader);

/* INVALID when `from` is after the end of the log. */
PAWL_MUST_USE pawl_status pawl__ledger_reader_check_from(uint64_t from,
                                                         uint64_t end,
                                                         pawl_error *reterr);

#endif
