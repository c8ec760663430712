/* Failed events and what people decide about them.
 *
 *              retry                 the sink took it
 *   pending ──────────► retrying ───────────────────────► resolved (delivered, filtered)
 *      ▲                   │
 *      └───────────────────┘ refused again, or the process ended
 *   pending, abandoned ── resolve ──► resolved (by_hand)
 *   pending            ── abandon ──► abandoned ── retry ──► retrying
 *
 * A row of failed_events stays for good: what was retried is in the table as well. Its payload is the one that
 * arrived; an edited payload is kept beside it, and the table's row has the key and the payload hash of the
 * original, so that the message is recognised when it comes again. */
#ifndef PAWL_DELIVERY_CORE_FAILED_H
#define PAWL_DELIVERY_CORE_FAILED_H

#include "delivery/core/entry.h"

enum delivery_failed_status {
    DELIVERY_FAILED_PENDING,
    DELIVERY_FAILED_RETRYING,
    DELIVERY_FAILED_RESOLVED,
    DELIVERY_FAILED_ABANDONED,
};
enum { DELIVERY_FAILED_STATUS_COUNT = 4 };
const char *pawl__delivery_failed_status_name(enum delivery_failed_status status); /* "pending" */
/* INVALID names those that there are. */
PAWL_MUST_USE pawl_status pawl__delivery_failed_status_parse(
    pawl_view name, enum delivery_failed_status *ret_status, pawl_error *reterr);

/* How a failure was resolved. */
enum delivery_resolution {
    DELIVERY_NOT_RESOLVED,
    DELIVERY_RESOLVED_DELIVERED, /* a retry made it a row */
    DELIVERY_RESOLVED_FILTERED,  /* a retry, and the mapping wants no row */
    DELIVERY_RESOLVED_BY_HAND,
};
enum { DELIVERY_RESOLUTION_COUNT = 4 };
const char *pawl__delivery_resolution_name(enum delivery_resolution resolution); /* "": not yet */

enum {
    DELIVERY_WHO_BYTES_MAX = 200,
    DELIVERY_NOTES_BYTES_MAX = 4096,
};

/* What a person decided about an entry. The WAL keeps it as long as the entry; the sink's row has it, too. */
struct delivery_decision {
    delivery_lsn lsn;
    enum delivery_failed_status status; /* RESOLVED or ABANDONED */
    enum delivery_resolution resolution;
    int64_t at_us;
    pawl_view who;
    pawl_view notes;
    pawl_view edited_payload; /* empty: the original */
};

/* INVALID: too long, or no UTF-8 without NULs. */
PAWL_MUST_USE pawl_status pawl__delivery_decision_check(pawl_view who,
                                                        pawl_view notes,
                                                        pawl_error *reterr);

/* A copy whose texts are in the arena. */
PAWL_MUST_USE pawl_status pawl__delivery_decision_copy(const struct delivery_decision *decision,
                                                       struct pawl__arena *arena,
                                                       struct delivery_decision *ret_copy,
                                                       pawl_error *reterr);

/* A row of failed_events. Times are wall times, 0: never. */
struct delivery_failed_row {
    struct delivery_uuid id;
    delivery_lsn lsn;
    enum delivery_failed_status status;
    enum delivery_resolution resolution;
    bool retries_exceeded;
    uint32_t retry_count;
    struct delivery_hash key;
    struct delivery_hash payload_hash;
    int64_t failed_us;
    int64_t received_us;
    int64_t last_retry_us;
    int64_t resolved_us;
    int64_t updated_us;
    pawl_view transaction_id;
    pawl_view event_id;
    pawl_view source;
    pawl_view subject;
    pawl_view session_key;
    pawl_view correlation_key;
    pawl_view reason;
    pawl_view layer;
    pawl_view last_error;
    pawl_view resolved_by;
    pawl_view notes;
    pawl_view headers;        /* JSON, a list of pairs; empty: none */
    pawl_view payload;        /* JSON in any case, as `encoding` says */
    pawl_view encoding;       /* "json", "base64", "base64_cut": see mapping.h */
    pawl_view edited_payload; /* empty: none */
};

/* Which rows are meant. Zeroes: all, in the order of their LSNs. */
struct delivery_failed_query {
    const struct delivery_uuid *id; /* NULL: any */
    unsigned statuses;              /* bits 1 << enum delivery_failed_status; 0: any */
    pawl_view reason;               /* this and the next two, empty: any */
    pawl_view source;
    pawl_view transaction_id;
    int64_t since_us; /* failed_at, inclusive; 0: no bound */
    int64_t until_us; /* failed_at, exclusive; 0: no bound */

    /* The page. */
    bool newest_first;
    delivery_lsn after; /* the LSN of the last row of the page before; 0: the first page */
    size_t rows_max;
    size_t bytes_max; /* a page ends after the row that exceeds it */
};

/* Rows and the memory that they point into. Start with zeroes; a read replaces what is in it. */
struct delivery_failed_page {
    struct pawl__arena arena;
    struct delivery_failed_row *rows;
    size_t count;
    size_t room;
    size_t bytes;
};

void pawl__delivery_failed_page_clear(struct delivery_failed_page *page);
void pawl__delivery_failed_page_done(struct delivery_failed_page *page);

/* For sinks: adds a copy of the row. */
PAWL_MUST_USE pawl_status pawl__delivery_failed_page_add(struct delivery_failed_page *page,
                                                         const struct delivery_failed_row *row,
                                                         pawl_error *reterr);

/* True when the page may have another one behind it. */
bool pawl__delivery_failed_page_is_full(const struct delivery_failed_page *page,
                                        const struct delivery_failed_query *query);

/* For sinks that compare by themselves: whether the query means this row. The page's bounds count, too. */
bool pawl__delivery_failed_matches(const struct delivery_failed_query *query,
                                   const struct delivery_failed_row *row);

/* What becomes of a row, in a transaction of the sink. */
struct delivery_failed_change {
    struct delivery_uuid id;
    struct delivery_decision
        decision;    /* its LSN names the row; PENDING and RETRYING decide nothing:
                                        * who, notes and edited payload stay as they are */
    bool is_attempt; /* one more retry, at decision.at_us */
    pawl_view error; /* last_error; empty: stays */
};

/* The row after the change. Texts are borrowed from both. */
struct delivery_failed_row pawl__delivery_failed_changed(
    const struct delivery_failed_row *row, const struct delivery_failed_change *change);

enum delivery_failed_action {
    DELIVERY_FAILED_RETRY,
    DELIVERY_FAILED_RESOLVE,
    DELIVERY_FAILED_ABANDON,
};
const char *pawl__delivery_failed_action_name(enum delivery_failed_action action); /* "retry" */

/* Bits of the statuses that the action may begin from. */
unsigned pawl__delivery_failed_from(enum delivery_failed_action action);

/* The event as it arrived, from its row: for a WAL that no longer has it. INVALID: the row has only the beginning
 * of the payload. CORRUPT: it is not what this program wrote. */
PAWL_MUST_USE pawl_status pawl__delivery_failed_entry(const struct delivery_failed_row *row,
                                                      struct pawl__arena *arena,
                                                      struct delivery_entry *ret_entry,
                                                      pawl_error *reterr);

/* Appends the row as one JSON object, payloads as they are. */
PAWL_MUST_USE pawl_status pawl__delivery_failed_json(const struct delivery_failed_row *row,
                                                     struct pawl__buf *buf,
                                                     pawl_error *reterr);

/* The id of a row as people write it: a UUID. */
PAWL_MUST_USE pawl_status pawl__delivery_failed_id_parse(pawl_view text,
                                                         struct delivery_uuid *ret_id,
                                                         pawl_error *reterr);
void pawl__delivery_failed_id_text(const struct delivery_uuid *id, char ret_text[37]);

#endif
