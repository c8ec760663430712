/* SHA-256 over OpenSSL. The digest is fetched once and every thread keeps one context, so hashing
 * many short things allocates nothing. */
#ifndef PAWL_BASE_CORE_SHA256_H
#define PAWL_BASE_CORE_SHA256_H

#include <pawl/pawl.h>

#include "base/core/macros.h"

struct pawl__sha256 {
    uint8_t bytes[32];
};

/* The hash of `bytes`. Any thread. Fails only without memory (the first time in a thread) or when
 * OpenSSL was set up to refuse SHA-256. */
PAWL_MUST_USE pawl_status pawl__sha256(pawl_view bytes,
                                       struct pawl__sha256 *ret_hash,
                                       pawl_error *reterr);

/* The same over `count` parts, as if they stood behind each other. */
PAWL_MUST_USE pawl_status pawl__sha256_parts(const pawl_view *parts,
                                             size_t count,
                                             struct pawl__sha256 *ret_hash,
                                             pawl_error *reterr);

/* For what does not fit into memory: open, add, finish. One thread at a time. */
struct pawl__sha256_stream;

PAWL_MUST_USE pawl_status pawl__sha256_open(struct pawl__sha256_stream **ret_stream,
                                            pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__sha256_add(struct pawl__sha256_stream *stream,
                                           pawl_view bytes,
                                           pawl_error *reterr);

/* Gives the hash of what was added and starts anew. */
PAWL_MUST_USE pawl_status pawl__sha256_finish(struct pawl__sha256_stream *stream,
                                              struct pawl__sha256 *ret_hash,
                                              pawl_error *reterr);
DEFINE_AUTO(struct pawl__sha256_stream *, pawl__sha256_close)

/* Written forms: 64 lower-case hex digits, and the same behind "sha256:". Both with a NUL. */
#define PAWL__SHA256_HEX_SIZE 65
#define PAWL__SHA256_TEXT_SIZE 72
void pawl__sha256_hex(const struct pawl__sha256 *hash, char ret_hex[PAWL__SHA256_HEX_SIZE]);
void pawl__sha256_text(const struct pawl__sha256 *hash, char ret_text[PAWL__SHA256_TEXT_SIZE]);

/* Reads either form; digits in either case. INVALID says what is wrong. */
PAWL_MUST_USE pawl_status pawl__sha256_parse(pawl_view text,
                                             struct pawl__sha256 *ret_hash,
                                             pawl_error *reterr);

/* In a time that does not depend on where they differ: these may be secrets' hashes. */
bool pawl__sha256_equal(const struct pawl__sha256 *a, const struct pawl__sha256 *b);

#endif
