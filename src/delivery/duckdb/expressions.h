/* Filters and computed columns: SQL expressions of DuckDB over one event. They see
 *
 *   payload JSON, headers JSON, subject, source, event_id, transaction_id VARCHAR, received_at TIMESTAMP
 *
 * and run in a database in memory: no table, no file, no network, a limit of memory and time. An event for which an
 * expression fails, or takes too long, is at fault itself; the others of its batch are not. A rebuild computes again:
 * an expression should give the same for the same event.
 *
 *   filter     payload->>'type' = 'play'
 *   compute    (payload->>'cents')::BIGINT / 100.0
 *   redact     json_merge_patch(payload, '{"email": null}')
 */
#ifndef PAWL_DELIVERY_DUCKDB_EXPRESSIONS_H
#define PAWL_DELIVERY_DUCKDB_EXPRESSIONS_H

#include "base/os/clock.h"
#include "delivery/mapping/mapping.h"

struct delivery_expressions;

/* INVALID: an expression that DuckDB does not understand, or that is not one. The mapping outlives it. */
PAWL_MUST_USE pawl_status
pawl__delivery_expressions_open(const struct delivery_mapping *mapping,
                                struct pawl__clock *clock,
                                struct delivery_expressions **ret_expressions,
                                pawl_error *reterr);
DEFINE_AUTO(struct delivery_expressions *, pawl__delivery_expressions_close)

/* Verdicts of a batch: readable, wanted by the filter, fit for the columns, computed. Remembers what it computed until
 * the next batch. */
PAWL_MUST_USE pawl_status pawl__delivery_expressions_judge(struct delivery_expressions *expressions,
                                                           const struct delivery_entry *entries,
                                                           size_t count,
                                                           struct delivery_verdict *ret_verdicts,
                                                           pawl_error *reterr);

/* The value of a computed column for an event of the last batch; another event is computed now, in its place. Texts
 * live until the next batch. INVALID: it cannot be computed. */
PAWL_MUST_USE pawl_status pawl__delivery_expressions_value(struct delivery_expressions *expressions,
                                                           const struct delivery_column *column,
                                                           const struct delivery_entry *entry,
                                                           struct delivery_value *ret_value,
                                                           pawl_error *reterr);

#endif
