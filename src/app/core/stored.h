/* A stored number, as `seq` and `offsets` have them:
 *
 *   u64  the number
 *   u64  the offset of the PLog that it belongs to: it is the last one of the events before it
 *   u32  crc32c of the key and of the two
 *
 * All integers big-endian. The key is under the checksum, so that a row which was copied elsewhere is found.
 * Format 1 had the number alone: read where `accepts_short` says so, see format.c. Pure. */
#ifndef PAWL_APP_CORE_STORED_H
#define PAWL_APP_CORE_STORED_H

#include "app/core/keys.h"
#include "base/core/buf.h"

enum { APP_STORED_BYTES = 20, APP_STORED_SHORT_BYTES = 8 };

struct app_stored {
    uint64_t number;
    uint64_t offset; /* 0: not known, of a short one */
};

void pawl__app_stored_encode(const struct app_key *key,
                             const struct app_stored *stored,
                             char ret_bytes[APP_STORED_BYTES]);

/* CORRUPT names the key, and what to do about it; by `name` when it is that of a sequence (else NULL). */
PAWL_MUST_USE pawl_status pawl__app_stored_decode(enum app_family family,
                                                  pawl_view key,
                                                  pawl_view bytes,
                                                  bool accepts_short,
                                                  const char *name,
                                                  struct app_stored *ret_stored,
                                                  pawl_error *reterr);

#endif
