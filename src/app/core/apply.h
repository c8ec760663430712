/* What an event does to everything but the log that it is in. */
#ifndef PAWL_APP_CORE_APPLY_H
#define PAWL_APP_CORE_APPLY_H

#include "app/core/batch.h"
#include "app/core/seq.h"

/* How each thing that an event does is written; by trust level, and when it is applied again. */
struct app_modes {
    enum app_mode events;
    enum app_mode records;
    enum app_mode numbers; /* of the application's own sequences, one key each */
};

/* Whether the level has keys of numbers. */
bool pawl__app_is_numbered(pawl_app_trust trust);

/* Adds the keys of an event's numbers, of those that have one. */
PAWL_MUST_USE pawl_status pawl__app_apply_numbers(struct app_batch *batch,
                                                  uint32_t app,
                                                  const pawl_app_event *event,
                                                  enum app_mode mode,
                                                  pawl_error *reterr);

/* Adds what an event does to everything but the PLog: WLog, records, key, keys of numbers. `bytes` is the
 * event. */
PAWL_MUST_USE pawl_status pawl__app_apply(struct app_batch *batch,
                                          uint32_t app,
                                          const pawl_app_event *event,
                                          pawl_view bytes,
                                          const struct app_modes *modes,
                                          pawl_error *reterr);

/* Applies the last event of a log again, whatever the trust level: what is there is overwritten. */
PAWL_MUST_USE pawl_status pawl__app_reapply(const struct app_seq *seq, pawl_error *reterr);

#endif
