/* The records of <pawl/ledger.h>. */
#ifndef PAWL_RECORDS_LEDGER_H
#define PAWL_RECORDS_LEDGER_H

#include <pawl/ledger.h>

#include "base/record/record.h"

extern const struct pawl__record pawl__event_record; /* without its hash, which is no text */

#endif
