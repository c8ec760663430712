/* How the consumer WAL lies in its store. Integers are big-endian; docs/formats.md has the same as tables.
 *
 *   family    key                                      value
 *   meta      format, meta, appended, marked, cleaned  one row each
 *   entries   LSN (8)                                  what never changes: ids, place, headers, payload
 *   fates     consumer:pending:|confirmed:|failed:     what the pipeline learned later, 36 bytes as a rule
 *             and LSN (8)
 *   fates     consumer:decided: and LSN (8)            what a person decided about a failed event
 *   index     key (16)                                 epoch, LSN, payload hash
 *
 * The payload is written once: a mark moves only the small row between the prefixes. Moving whole entries was
 * measured (bench/bench_delivery_wal.c): it writes 1.4 times the bytes at 300 bytes of payload and 1.7 times at 2,000;
 * per CPU second it handles 10 % more events at 300 bytes and a quarter fewer at 2,000.
 *
 * Every value is a row of row.h, with its version and a checksum.
 *
 * Decoders trust no byte: CORRUPT or UNSUPPORTED, with the row's name. What they accept encodes to the same bytes. */
#ifndef PAWL_DELIVERY_ROCKSDB_FORMAT_H
#define PAWL_DELIVERY_ROCKSDB_FORMAT_H

#include "base/core/buf.h"
#include "delivery/core/wal.h"

enum wal_family { WAL_META, WAL_ENTRIES, WAL_FATES, WAL_INDEX, WAL_FAMILY_COUNT };

enum { WAL_FORMAT = 1 };

#define WAL_VALUE_BYTES_MAX \
    ((size_t)256 << 20)                    /* of an entry; the store's batch has the same limit */
#define WAL_SMALL_BYTES_MAX ((size_t)1024) /* of any other value */

struct wal_key {
    char bytes[32];
    size_t len;
};

pawl_view pawl__delivery_wal_key(const struct wal_key *key);
struct wal_key pawl__delivery_wal_text_key(const char *name); /* of family meta */
struct wal_key pawl__delivery_wal_entry_key(delivery_lsn lsn);
struct wal_key pawl__delivery_wal_fate_key(enum delivery_entry_state state, delivery_lsn lsn);
/* Behind the last LSN of a state. */
struct wal_key pawl__delivery_wal_fate_end(enum delivery_entry_state state);
struct wal_key pawl__delivery_wal_index_key(const struct delivery_hash *hash);

struct wal_key pawl__delivery_wal_decision_key(delivery_lsn lsn);
struct wal_key pawl__delivery_wal_decision_end(void); /* behind the last one */

/* CORRUPT for a key that is none of the state's, or none of family entries. */
PAWL_MUST_USE pawl_status pawl__delivery_wal_parse_fate_key(pawl_view key,
                                                            enum delivery_entry_state state,
                                                            delivery_lsn *ret_lsn,
                                                            pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_wal_parse_entry_key(pawl_view key,
                                                             delivery_lsn *ret_lsn,
                                                             pawl_error *reterr);

PAWL_MUST_USE pawl_status pawl__delivery_wal_parse_decision_key(pawl_view key,
                                                                delivery_lsn *ret_lsn,
                                                                pawl_error *reterr);

const char *pawl__delivery_state_name(enum delivery_entry_state state); /* "pending" */

/* Each encoder replaces what is in `value`. */

void pawl__delivery_wal_entry_encode(const struct delivery_entry *entry, struct pawl__buf *value);

/* Texts point into `value`, headers into the arena. The fate is left zero: it is in its own row. */
PAWL_MUST_USE pawl_status pawl__delivery_wal_entry_decode(delivery_lsn lsn,
                                                          pawl_view value,
                                                          struct pawl__arena *arena,
                                                          struct delivery_entry *ret_entry,
                                                          pawl_error *reterr);

struct wal_fate_row {
    struct delivery_fate fate;
    uint64_t bytes; /* that the entry counts for in limits */
    bool by_place;  /* `key` is in the index only as long as the entry is there */
    struct delivery_hash key;
};

void pawl__delivery_wal_fate_encode(delivery_lsn lsn,
                                    const struct wal_fate_row *row,
                                    struct pawl__buf *value);
PAWL_MUST_USE pawl_status pawl__delivery_wal_fate_decode(enum delivery_entry_state state,
                                                         delivery_lsn lsn,
                                                         pawl_view value,
                                                         struct wal_fate_row *ret_row,
                                                         pawl_error *reterr);

void pawl__delivery_wal_decision_encode(const struct delivery_decision *decision,
                                        struct pawl__buf *value);
/* Texts point into `value`. */
PAWL_MUST_USE pawl_status pawl__delivery_wal_decision_decode(delivery_lsn lsn,
                                                             pawl_view value,
                                                             struct delivery_decision *ret_decision,
                                                             pawl_error *reterr);

struct wal_index_row {
    bool by_place;
    uint64_t epoch;
    delivery_lsn lsn; /* 0: from a sink's row */
    struct delivery_hash payload_hash;
};

void pawl__delivery_wal_index_encode(const struct delivery_hash *hash,
                                     const struct wal_index_row *row,
                                     struct pawl__buf *value);
PAWL_MUST_USE pawl_status pawl__delivery_wal_index_decode(const struct delivery_hash *hash,
                                                          pawl_view value,
                                                          struct wal_index_row *ret_row,
                                                          pawl_error *reterr);

void pawl__delivery_wal_meta_encode(const struct delivery_wal_meta *meta, struct pawl__buf *value);
PAWL_MUST_USE pawl_status pawl__delivery_wal_meta_decode(pawl_view value,
                                                         struct delivery_wal_meta *ret_meta,
                                                         pawl_error *reterr);

/* The statistics, in three rows: each is written by one kind of call, in the batch that makes it true, so that it is
 * right after every crash and no call waits for another's fsync. */
struct wal_counters {
    struct wal_appended {
        uint64_t last; /* LSN */
        uint64_t entries;
        uint64_t bytes;
    } appended;
    struct wal_marked { /* what marks have changed; may be "negative", modulo 2^64 */
        uint64_t entries[DELIVERY_STATE_COUNT];
        uint64_t bytes[DELIVERY_STATE_COUNT];
        uint64_t
            floors[DELIVERY_STATE_COUNT]; /* no row of that state is below: marks leave deleted rows
                                                * behind, which a seek would step over one by one */
    } marked;
    struct wal_cleaned {
        uint64_t cleaned; /* LSN; entries up to it without a fate row are forgotten */
        uint64_t
            swept; /* LSN; rows of family entries below it are gone but for those that were kept */
        uint64_t entries;
        uint64_t bytes;
    } cleaned;
};

enum wal_counter { WAL_APPENDED, WAL_MARKED, WAL_CLEANED, WAL_COUNTER_COUNT };
const char *pawl__delivery_wal_counter_name(enum wal_counter counter); /* its key in family meta */

void pawl__delivery_wal_counter_encode(enum wal_counter counter,
                                       const struct wal_counters *counters,
                                       struct pawl__buf *value);
/* Replaces that part of the counters. */
PAWL_MUST_USE pawl_status pawl__delivery_wal_counter_decode(enum wal_counter counter,
                                                            pawl_view value,
                                                            struct wal_counters *counters,
                                                            pawl_error *reterr);

/* The row that says whose directory this is. */
void pawl__delivery_wal_format_encode(uint32_t format, struct pawl__buf *value);
PAWL_MUST_USE pawl_status pawl__delivery_wal_format_decode(pawl_view value, pawl_error *reterr);

#endif
