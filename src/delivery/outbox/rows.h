/* How the outbox lies in its store. Integers are big-endian, values are rows of rocksdb/row.h; docs/formats.md has
 * the same as tables.
 *
 *   family    key                              value
 *   meta      format, outbox, appended, moved  one row each
 *   hours     running hour (8)                 the first number accepted in it
 *   entries   number (8)                       what never changes: ids, subject, headers, payload
 *   pending   subject, NUL, number (8)         bytes
 *   kept      stream, NUL, sequence (8),       stream created, session, time of the acknowledgement, bytes
 *             number (8)
 *   failed    number (8)                       bytes, time, reason
 *   index     key (16)                         number, payload hash
 *   ids       number (8)                       the key (16) of its index row
 *
 * Payloads are written once; what becomes of an entry moves a small row. Pending ones are found by subject, so that
 * one that cannot be published holds up nobody else's. Decoders trust no byte: CORRUPT or UNSUPPORTED. */
#ifndef PAWL_DELIVERY_OUTBOX_ROWS_H
#define PAWL_DELIVERY_OUTBOX_ROWS_H

#include "delivery/outbox/store.h"

enum outbox_family {
    OUTBOX_META,
    OUTBOX_HOURS,
    OUTBOX_ENTRIES,
    OUTBOX_PENDING_ROWS,
    OUTBOX_KEPT_ROWS,
    OUTBOX_FAILED_ROWS,
    OUTBOX_INDEX,
    OUTBOX_IDS,
    OUTBOX_FAMILY_COUNT
};

enum { OUTBOX_FORMAT = 1, OUTBOX_KEY_SIZE = 640 };

#define OUTBOX_MAGIC "pawl outbox"
#define OUTBOX_SMALL_BYTES_MAX ((size_t)1024) /* of any value but an entry's */

struct outbox_key {
    char bytes[OUTBOX_KEY_SIZE];
    size_t len;
};

pawl_view pawl__delivery_outbox_key(const struct outbox_key *key);
struct outbox_key pawl__delivery_outbox_text_key(const char *name);
struct outbox_key pawl__delivery_outbox_number_key(uint64_t number);
struct outbox_key pawl__delivery_outbox_hash_key(const struct delivery_hash *hash);
/* A name and up to two numbers after it. */
struct outbox_key pawl__delivery_outbox_pending_key(pawl_view subject, uint64_t number);
struct outbox_key pawl__delivery_outbox_kept_key(pawl_view stream,
                                                 uint64_t sequence,
                                                 uint64_t number);
/* After every key of the name. */
struct outbox_key pawl__delivery_outbox_name_end(pawl_view name);

/* CORRUPT for a key that is none. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_parse_number(pawl_view key,
                                                             uint64_t *ret_number,
                                                             pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_outbox_parse_pending(pawl_view key,
                                                              pawl_view *ret_subject,
                                                              uint64_t *ret_number,
                                                              pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_outbox_parse_kept(pawl_view key,
                                                           pawl_view *ret_stream,
                                                           uint64_t *ret_sequence,
                                                           uint64_t *ret_number,
                                                           pawl_error *reterr);

/* Each encoder replaces what is in `value`. */

void pawl__delivery_outbox_entry_encode(const struct outbox_entry *entry, struct pawl__buf *value);
/* Texts point into `value`, headers into the arena. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_entry_decode(uint64_t number,
                                                             pawl_view value,
                                                             struct pawl__arena *arena,
                                                             struct outbox_entry *ret_entry,
                                                             pawl_error *reterr);

/* Rows of numbers: what the small families hold. */
enum { OUTBOX_NUMBERS_MAX = 12 };
struct outbox_numbers {
    uint64_t at[OUTBOX_NUMBERS_MAX];
    size_t count;
};
void pawl__delivery_outbox_numbers_encode(const struct outbox_key *key,
                                          const struct outbox_numbers *numbers,
                                          struct pawl__buf *value);
/* `name` is how messages call the row, `numbers->count` how many there must be. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_numbers_decode(pawl_view key,
                                                               const char *name,
                                                               pawl_view value,
                                                               struct outbox_numbers *numbers,
                                                               pawl_error *reterr);

struct outbox_failed_row {
    uint64_t bytes;
    struct outbox_failed failed;
};
void pawl__delivery_outbox_failed_encode(const struct outbox_failed_row *row,
                                         struct pawl__buf *value);
PAWL_MUST_USE pawl_status pawl__delivery_outbox_failed_decode(uint64_t number,
                                                              pawl_view value,
                                                              struct outbox_failed_row *ret_row,
                                                              pawl_error *reterr);

void pawl__delivery_outbox_index_encode(const struct delivery_hash *key,
                                        const struct outbox_hit *hit,
                                        struct pawl__buf *value);
PAWL_MUST_USE pawl_status pawl__delivery_outbox_index_decode(const struct delivery_hash *key,
                                                             pawl_view value,
                                                             struct outbox_hit *ret_hit,
                                                             pawl_error *reterr);

void pawl__delivery_outbox_id_encode(uint64_t number,
                                     const struct delivery_hash *key,
                                     struct pawl__buf *value);
PAWL_MUST_USE pawl_status pawl__delivery_outbox_id_decode(uint64_t number,
                                                          pawl_view value,
                                                          struct delivery_hash *ret_key,
                                                          pawl_error *reterr);

#endif
