/* The names of the newest rows, so that an exporter's retry is recognised: a window of fixed size that forgets the oldest
 * name first. Rebuilt from the newest rows when a store is opened. */
#ifndef PAWL_TELEMETRY_CORE_DEDUPE_H
#define PAWL_TELEMETRY_CORE_DEDUPE_H

#include "base/core/macros.h"
#include "telemetry/core/row.h"

struct telemetry_window;

PAWL_MUST_USE pawl_status pawl__telemetry_window_new(size_t names_max,
                                                     struct telemetry_window **ret_window,
                                                     pawl_error *reterr);
DEFINE_AUTO(struct telemetry_window *, pawl__telemetry_window_free)

bool pawl__telemetry_window_has(const struct telemetry_window *window,
                                const struct telemetry_row_key *key);
/* A name that is not in it. */
void pawl__telemetry_window_add(struct telemetry_window *window,
                                const struct telemetry_row_key *key);
/* Takes the newest `count` out again: their rows were not stored after all. Names that they pushed out are forgotten. */
void pawl__telemetry_window_undo(struct telemetry_window *window, size_t count);
size_t pawl__telemetry_window_count(const struct telemetry_window *window);

#endif
