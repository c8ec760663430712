/* Proving a log: every hash computed again, and what stands beside the log compared with it.
 *
 * verify.c walks the log. Where the chain breaks, context.c reads the events around the break and says
 * what was done to them. turns.c compares the rows of turns with the events they come from, index.c the
 * entries of the store's indexes. */
#ifndef PAWL_LEDGER_VERIFY_VERIFY_H
#define PAWL_LEDGER_VERIFY_VERIFY_H

#include "base/core/hash.h"
#include "base/core/sha256.h"
#include "ledger/core/backend.h"

/* pawl_ledger_verify without a ledger around the backend. `options` may be NULL. The report is
 * filled when the log was read: on PAWL_OK, CORRUPT and CANCELLED. */
PAWL_MUST_USE pawl_status pawl__ledger_verify_chain(struct ledger_backend *backend,
                                                    const pawl_verify_options *options,
                                                    pawl_verify_report *ret_report,
                                                    pawl_error *reterr);

/* Only what can be seen at once: whether the log still ends where it must and holds what its anchor
 * says. For every open. */
PAWL_MUST_USE pawl_status pawl__ledger_verify_ends(struct ledger_backend *backend,
                                                   pawl_error *reterr);

/* PAWL_OK when the event at head->offset is there and has this hash (offset 0 always is). CORRUPT
 * names the offset and `whose` head it is; *ret_bad (may be NULL) is the first offset that is not
 * what it was. */
PAWL_MUST_USE pawl_status pawl__ledger_verify_contains(struct ledger_backend *backend,
                                                       const pawl_ledger_head *head,
                                                       const char *whose,
                                                       uint64_t *ret_bad,
                                                       pawl_error *reterr);

/* --- where the chain broke --- */

enum { LEDGER_VERIFY_RECENT = 64 };

struct ledger_verify_context {
    struct ledger_backend *backend;
    pawl_ledger_head verified; /* the last good one: the chain breaks after it */
    uint64_t end;              /* the log's last offset */
    /* hash(n) stands at n % LEDGER_VERIFY_RECENT, for as many n up to `verified` as are known. */
    const struct pawl__sha256 *recent;
    size_t recent_count;
};

/* Says which offset was the first that somebody touched, and how. Never fails: what it cannot find
 * out it calls a change. */
void pawl__ledger_verify_explain(const struct ledger_verify_context *context,
                                 uint64_t *ret_offset,
                                 char *ret_what,
                                 size_t what_size);

/* --- turns --- */

/* Two sums over (kind, offset, run, turn, attempt), one over the events, one over the rows: equal
 * when they say the same, in whatever order and without remembering any. */
struct ledger_turn_sum {
    uint64_t lanes[4];
    uint64_t count;
};

/* Takes a walked event into the sum; others than pawl.turn.* are nothing. */
PAWL_MUST_USE pawl_status pawl__ledger_verify_turn_event(struct ledger_turn_sum *sum,
                                                         const pawl_event *event,
                                                         pawl_error *reterr);

/* Compares with the rows, as far as they speak of events after `from` up to `end`. CORRUPT and
 * *ret_bad, the first offset whose event and row do not agree. */
PAWL_MUST_USE pawl_status pawl__ledger_verify_turn_rows(struct ledger_backend *backend,
                                                        const struct ledger_turn_sum *events,
                                                        uint64_t from,
                                                        uint64_t end,
                                                        uint64_t *ret_bad,
                                                        pawl_error *reterr);

/* --- indexes --- */

/* Over (key, offset) of each index, as the walked events have them. */
struct ledger_index_sums {
    struct pawl__hash_seed seed;
    uint64_t sums[LEDGER_INDEXES];
    uint64_t count;
};

PAWL_MUST_USE pawl_status pawl__ledger_verify_index_start(struct ledger_index_sums *ret_sums,
                                                          pawl_error *reterr);
void pawl__ledger_verify_index_event(struct ledger_index_sums *sums, const pawl_event *event);

struct ledger_index_check {
    struct ledger_backend *backend;
    const struct ledger_index_sums *sums; /* of the events after `from` up to `end` */
    uint64_t from;
    uint64_t end;
    pawl_watch watch; /* only asked whether to continue */
};

/* Compares the entries of every index that the store has with the events. CORRUPT and *ret_bad, the
 * first offset that an index does not lead to, or leads to without reason. */
PAWL_MUST_USE pawl_status pawl__ledger_verify_indexes(const struct ledger_index_check *check,
                                                      uint64_t *ret_bad,
                                                      pawl_error *reterr);

#endif
