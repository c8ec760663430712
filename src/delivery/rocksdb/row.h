/* How a value lies in a store of delivery: the consumer WAL (format.h) and the outbox (outbox/rows.h) have one way.
 *
 * A value begins with its version (1) and ends with a checksum (4): the CRC-32C of all before it, XORed with the
 * CRC-32C of its key, so that a row under another key does not fit either. The checksum is looked at first: a
 * version that is not known is UNSUPPORTED only when it is not a flipped bit. Integers are big-endian.
 *
 * Readers trust no byte. One that takes what is not there keeps returning zeroes; finish says so at the end. */
#ifndef PAWL_DELIVERY_ROCKSDB_ROW_H
#define PAWL_DELIVERY_ROCKSDB_ROW_H

#include "base/core/buf.h"
#include "delivery/core/identity.h"
#include "delivery/rocksdb/wal.h"
#include "store/rocksdb/rocksdb.h"

#define DELIVERY_ROW_BYTES_MAX ((size_t)256 << 20) /* of a value, and of one text in it */

/* --- writing --- */

void pawl__delivery_row_begin(uint8_t version,
                              struct pawl__buf *value); /* replaces what is in it */
void pawl__delivery_row_seal(pawl_view key, struct pawl__buf *value);
void pawl__delivery_row_add_text(struct pawl__buf *value, pawl_view text);
void pawl__delivery_row_add_hash(struct pawl__buf *value, const struct delivery_hash *hash);
/* Texts of fixed room: up to 255 bytes, none of them NUL. */
void pawl__delivery_row_add_short(struct pawl__buf *value, const char *text, size_t size);

/* --- reading --- */

/* What is left of a value, and whether everything so far was there and legal. */
struct delivery_row {
    pawl_view rest;
    bool ok;
};

/* CORRUPT, UNSUPPORTED. `name` is how messages call the row. */
PAWL_MUST_USE pawl_status pawl__delivery_row_open(uint8_t version,
                                                  pawl_view key,
                                                  const char *name,
                                                  pawl_view value,
                                                  struct delivery_row *ret_row,
                                                  pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_row_finish(const struct delivery_row *in,
                                                    const char *name,
                                                    pawl_error *reterr);
uint8_t pawl__delivery_row_take_u8(struct delivery_row *in, uint8_t max);
uint32_t pawl__delivery_row_take_u32(struct delivery_row *in);
uint64_t pawl__delivery_row_take_u64(struct delivery_row *in);
void pawl__delivery_row_take_bytes(struct delivery_row *in, void *ret_bytes, size_t len);
pawl_view pawl__delivery_row_take_text(struct delivery_row *in); /* points into the value */
void pawl__delivery_row_take_short(struct delivery_row *in, char *ret_text, size_t size);

/* --- the row "format", which says whose store this is --- */

/* Every version can read which one it is. `magic` names the kind of store. */
void pawl__delivery_row_format_encode(const char *magic, uint32_t format, struct pawl__buf *value);
PAWL_MUST_USE pawl_status pawl__delivery_row_format_decode(const char *magic,
                                                           uint32_t known,
                                                           pawl_view value,
                                                           pawl_error *reterr);

/* What the engine is told, but for the families. */
struct pawl__rocks_options pawl__delivery_rocksdb_engine_options(
    const struct delivery_rocksdb_options *options);

/* INVALID: a directory with somebody's files and no store. Nothing is put between them. `what` is "WAL". */
PAWL_MUST_USE pawl_status pawl__delivery_row_refuse_foreign(const char *dir,
                                                            const char *what,
                                                            pawl_error *reterr);

#endif
