/* What may be an event, when two are the same, and how a turn names its own. */
#ifndef PAWL_LEDGER_CORE_EVENT_H
#define PAWL_LEDGER_CORE_EVENT_H

#include <pawl/ledger.h>

#include "base/core/arena.h"
#include "base/core/buf.h"

#define PAWL__KIND_RESERVED "pawl."
#define PAWL__KIND_TURN_BEGIN "pawl.turn.begin"
#define PAWL__KIND_TURN_COMMIT "pawl.turn.commit"
#define PAWL__KIND_TURN_ABANDON "pawl.turn.abandon"

#define PAWL__SCHEMA_VERSION_MAX INT32_MAX

/* INVALID names the field and what is wrong with it. Defaults must be filled in before. */
PAWL_MUST_USE pawl_status pawl__ledger_event_check(const pawl_event *event,
                                                   uint32_t payload_bytes_max,
                                                   pawl_error *reterr);

/* INVALID names a field that has so many bytes at NULL. */
PAWL_MUST_USE pawl_status pawl__ledger_event_check_views(const pawl_event *event,
                                                         pawl_error *reterr);

/* A reserved kind may be written by the ledger alone, or copied from another ledger. */
PAWL_MUST_USE pawl_status pawl__ledger_event_check_kind(const pawl_event *event,
                                                        pawl_error *reterr);

/* PAWL_OK when `again` says the same as `stored` did: run_id, turn, kind, actor, schema_version and
 * the canonical form of the payload; not created_at. CONFLICT names the first field that differs.
 * An offset of 0 means that `stored` comes from the same batch.
 */
PAWL_MUST_USE pawl_status pawl__ledger_event_same_content(const pawl_event *stored,
                                                          const pawl_event *again,
                                                          pawl_error *reterr);

/* The id of an event that has none: 32 hex digits of the SHA-256 over run, turn, attempt,
 * actor, kind and ordinal, after "t-". The same event of the same attempt gets the same id again.
 */
#define PAWL__EVENT_ID_SIZE 40
PAWL_MUST_USE pawl_status pawl__ledger_event_derive_id(const pawl_event *event,
                                                       uint32_t attempt,
                                                       uint64_t ordinal,
                                                       char ret_id[PAWL__EVENT_ID_SIZE],
                                                       pawl_error *reterr);

/* {"attempt":2} and, when there is a reason, "reason". */
PAWL_MUST_USE pawl_status pawl__ledger_event_turn_payload(uint32_t attempt,
                                                          pawl_view reason,
                                                          struct pawl__buf *buf,
                                                          pawl_error *reterr);

/* Which attempt an event of a turn kind is about. INVALID when it is none that the ledger writes:
 * another reserved kind, no attempt in its payload, or an id that does not follow from it. */
PAWL_MUST_USE pawl_status pawl__ledger_event_turn_attempt(const pawl_event *event,
                                                          uint32_t *ret_attempt,
                                                          pawl_error *reterr);

/* One text field of an event, or of a question about events. INVALID names it. */
PAWL_MUST_USE pawl_status pawl__ledger_event_check_name(const char *field,
                                                        pawl_view text,
                                                        pawl_error *reterr);

/* True for the kinds that begin with "pawl.". */
bool pawl__ledger_event_is_reserved(const pawl_event *event);

/* The bytes that pawl__ledger_event_copy_to needs for the texts of the event. */
size_t pawl__ledger_event_text_bytes(const pawl_event *event);

/* A copy whose texts stand in `space`, one after the other. */
void pawl__ledger_event_copy_to(const pawl_event *event, char *space, pawl_event *ret_copy);

/* A copy in one allocation, which pawl_event_free frees. */
PAWL_MUST_USE pawl_status pawl__ledger_event_copy_out(const pawl_event *event,
                                                      pawl_event **ret_event,
                                                      pawl_error *reterr);

/* A copy whose texts live in the arena; false without memory. */
PAWL_MUST_USE bool pawl__ledger_event_copy(struct pawl__arena *arena,
                                           const pawl_event *event,
                                           pawl_event *ret_copy);

/* True when the filter (NULL: all) lets the event through. */
bool pawl__ledger_event_matches(const pawl_event_filter *filter, const pawl_event *event);

/* An error is about event `index` of `count`. Returns `status`. */
pawl_status pawl__ledger_event_name(pawl_error *reterr,
                                    size_t count,
                                    size_t index,
                                    pawl_status status);

#endif
