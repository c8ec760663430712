/* One row as it travels: the bytes of its protobuf message. The columns of its type say how (core/types.h). */
#ifndef PAWL_TELEMETRY_CORE_ROW_H
#define PAWL_TELEMETRY_CORE_ROW_H

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "telemetry/core/types.h"

#define TELEMETRY_ROW_BYTES_MAX ((size_t)8 << 20)   /* a larger row is refused at intake */
#define TELEMETRY_PAGE_BYTES_MAX ((size_t)15 << 20) /* encoded; a message has 16 MiB */
enum { TELEMETRY_ATTRIBUTES_MAX = 1024, TELEMETRY_FRAMES_MAX = 1024 };

/* What may be stored: times within DuckDB's range, finite numbers, UTF-8 without NUL, attributes a JSON object of
 * strings, frames an array of them, at most TELEMETRY_ROW_BYTES_MAX encoded. INVALID names the column. */
PAWL_MUST_USE pawl_status pawl__telemetry_row_check(enum telemetry_type type,
                                                    const struct telemetry_values *values,
                                                    pawl_error *reterr);

/* Appends the message with its sequence id; 0 leaves the id out. The values are as _check wants them. */
PAWL_MUST_USE pawl_status pawl__telemetry_row_encode(enum telemetry_type type,
                                                     uint64_t seq_id,
                                                     const struct telemetry_values *values,
                                                     struct pawl__buf *buf,
                                                     pawl_error *reterr);

/* Texts are views into `bytes`, or copies in the arena where they had to be made. Unknown fields are passed over; of a
 * field given twice the last one counts. INVALID: it cannot be stored. */
PAWL_MUST_USE pawl_status pawl__telemetry_row_decode(enum telemetry_type type,
                                                     pawl_view bytes,
                                                     struct pawl__arena *arena,
                                                     uint64_t *ret_seq_id,
                                                     struct telemetry_values *ret_values,
                                                     pawl_error *reterr);

/* Only the sequence id, which a row has that cannot be decoded otherwise. False: there is none. */
bool pawl__telemetry_row_seq(enum telemetry_type type, pawl_view bytes, uint64_t *ret_seq_id);

/* What an exporter's retry is recognised by: the columns that name a row, attributes in canonical form. False: rows of
 * this type have no name. */
struct telemetry_row_key {
    uint8_t bytes[16];
};
PAWL_MUST_USE pawl_status pawl__telemetry_row_key(enum telemetry_type type,
                                                  const struct telemetry_values *values,
                                                  struct telemetry_row_key *ret_key,
                                                  bool *ret_has_key,
                                                  pawl_error *reterr);

#endif
