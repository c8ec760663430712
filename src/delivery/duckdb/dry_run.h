/* What a mapping makes of a sample, without a file. */
#ifndef PAWL_DELIVERY_DUCKDB_DRY_RUN_H
#define PAWL_DELIVERY_DUCKDB_DRY_RUN_H

#include "base/os/clock.h"
#include "delivery/mapping/mapping.h"

/* Called with each event in its order. `row` is a JSON object of the columns that the mapping names; empty unless the
 * verdict is ROW. */
typedef pawl_status delivery_dry_visitor(void *context,
                                         const struct delivery_entry *entry,
                                         const struct delivery_verdict *verdict,
                                         pawl_view row,
                                         pawl_error *reterr);

/* INVALID: it is no mapping. `mapping` NULL: the default; `clock` NULL: the real one. */
PAWL_MUST_USE pawl_status pawl__delivery_dry_run(const struct delivery_mapping *mapping,
                                                 struct pawl__clock *clock,
                                                 const struct delivery_entry *entries,
                                                 size_t count,
                                                 delivery_dry_visitor *visit,
                                                 void *context,
                                                 pawl_error *reterr);

#endif
