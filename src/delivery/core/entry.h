/* One event in the consumer WAL, under its LSN. What never changes once it is appended comes first; what the
 * pipeline learns about it later (`fate`) may be lost with a crash and is then found out again, because the
 * sink knows what it has applied.
 *
 * Stored under `consumer:pending:`, `consumer:confirmed:` and `consumer:failed:` + LSN. */
#ifndef PAWL_DELIVERY_CORE_ENTRY_H
#define PAWL_DELIVERY_CORE_ENTRY_H

#include "base/core/arena.h"
#include "delivery/core/identity.h"

/* Log sequence number: given out by the pipeline, one per entry, ascending, never reused by the same wal_id.
 * 0 is before the first. */
typedef uint64_t delivery_lsn;

enum delivery_admitted {
    DELIVERY_AS_EVENT,
    DELIVERY_AS_CONFLICT, /* its id is known with another payload */
    DELIVERY_AS_BAD_ID,   /* DELIVERY_ID_BAD */
};

enum delivery_entry_state {
    DELIVERY_PENDING,
    DELIVERY_CONFIRMED, /* in the table, or filtered */
    DELIVERY_FAILED,    /* in failed_events */
};
enum { DELIVERY_STATE_COUNT = 3 };

enum { DELIVERY_ERROR_SIZE = 160 }; /* of the text that is kept with an entry */

struct delivery_fate {
    enum delivery_entry_state state;
    uint32_t attempts;
    int64_t last_attempt_us; /* wall, for people; 0: never */
    int64_t ended_us;        /* confirmed_at or failed_at, wall, for people; 0: not yet */
    char last_error[DELIVERY_ERROR_SIZE];
    char failure_reason[DELIVERY_ERROR_SIZE];
};

struct delivery_entry {
    delivery_lsn lsn;
    enum delivery_admitted admitted;
    bool by_place;
    struct delivery_hash key; /* in the index: the id, or of a conflict its conflict key */
    struct delivery_hash payload_hash;
    struct delivery_place place;
    int64_t created_us; /* wall, for people */
    uint64_t sequence;  /* the caller's, part of the transaction id */
    pawl_view transaction_id;
    pawl_view source;
    pawl_view event_id;
    pawl_view subject;    /* nats_subject */
    pawl_view message_id; /* nats_message_id */
    const struct delivery_header *headers;
    size_t header_count;
    pawl_view payload; /* event_payload, byte for byte */
    struct delivery_fate fate;
};

/* An entry of a message, which it borrows; without LSN and time. `key`: its id's, or that of a conflict. */
void pawl__delivery_entry_of(const struct delivery_message *message,
                             const struct delivery_identity *identity,
                             const struct delivery_hash *key,
                             bool is_conflict,
                             struct delivery_entry *ret_entry);

/* Its id for people, a UUID (version 8) of the WAL and the LSN: the same on every read, never stored. */
struct delivery_uuid {
    uint8_t bytes[16];
};
PAWL_MUST_USE pawl_status pawl__delivery_entry_id(const struct delivery_uuid *wal_id,
                                                  delivery_lsn lsn,
                                                  struct delivery_uuid *ret_id,
                                                  pawl_error *reterr);

/* Both keys that a sink may have its event under: its id, and that of a conflict. Which of two payloads came first
 * depends on what was lost in between, so an entry's own key may be the other one. */
struct delivery_names {
    struct delivery_hash id;
    struct delivery_hash conflict;
};
PAWL_MUST_USE pawl_status pawl__delivery_entry_names(const struct delivery_entry *entry,
                                                     struct delivery_names *ret_names,
                                                     pawl_error *reterr);

/* Bytes that an entry counts for in limits. */
size_t pawl__delivery_entry_bytes(const struct delivery_entry *entry);

/* A copy whose texts are in the arena. NOMEM leaves *ret_copy alone. */
PAWL_MUST_USE pawl_status pawl__delivery_entry_copy(const struct delivery_entry *entry,
                                                    struct pawl__arena *arena,
                                                    struct delivery_entry *ret_copy,
                                                    pawl_error *reterr);

/* Entries and the memory that they point into. Start with zeroes; a read replaces what is in it. */
struct delivery_page {
    struct pawl__arena arena;
    struct delivery_entry *entries;
    size_t count;
    size_t room;
    size_t bytes;
};

void pawl__delivery_page_clear(struct delivery_page *page);
void pawl__delivery_page_done(struct delivery_page *page);

/* For backends: adds a copy of the entry. */
PAWL_MUST_USE pawl_status pawl__delivery_page_add(struct delivery_page *page,
                                                  const struct delivery_entry *entry,
                                                  pawl_error *reterr);

#endif
