/* Events as lines of JSON, for import, export and the public pair of calls. */
#ifndef PAWL_LEDGER_TRANSFER_EVENT_JSON_H
#define PAWL_LEDGER_TRANSFER_EVENT_JSON_H

#include <pawl/ledger.h>

#include "base/core/arena.h"
#include "base/core/buf.h"

/* As pawl_event_from_json, with what had to be unescaped in the arena; everything else borrows
 * `json` and `defaults`. */
PAWL_MUST_USE pawl_status pawl__ledger_event_read_json(pawl_view json,
                                                       const pawl_event *defaults,
                                                       struct pawl__arena *arena,
                                                       pawl_event *ret_event,
                                                       pawl_error *reterr);

/* Appends the event as a JSON object, without a line's end. A payload that is not JSON is CORRUPT in an
 * event of a ledger, which has an offset, and INVALID in others; nothing is appended then. */
PAWL_MUST_USE pawl_status pawl__ledger_event_add_json(const pawl_event *event,
                                                      struct pawl__buf *buf,
                                                      pawl_error *reterr);

#endif
