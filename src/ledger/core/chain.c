/* CHAIN, version 1. All integers little-endian.
 *
 *   hash(n) = SHA-256 of
 *     16  bytes  "pawl ledger v1" and two NULs
 *     32  bytes  hash(n - 1); zeros before the first event
 *      8  u64    offset
 *      8  i64    turn
 *      8  i64    created_at, microseconds since 1970 UTC
 *      8  i64    schema_version
 *      4  u32    length of id       4  u32  length of run_id
 *      4  u32    length of kind     4  u32  length of actor
 *      8  u64    length of payload
 *     ..  bytes  id, run_id, kind, actor, payload, one after the other
 *
 * Every length stands before the bytes, so no two events give the same input. The payload is hashed
 * as it is stored, byte for byte; times as numbers, so that the same event has the same hash in
 * memory, in SQLite and in PostgreSQL. To change the format: add version 2 with another tag, record
 * at which offset it starts, keep verifying version 1 below it. */
#include "ledger/core/chain.h"

#include <assert.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/sha256.h"

#define CHAIN_TAG "pawl ledger v1\0" /* 16 bytes with the literal's own NUL */
enum { CHAIN_HEADER_BYTES = 16 + 32 + 4 * 8 + 4 * 4 + 8 };

static_assert(sizeof(CHAIN_TAG) == 16, "the tag fills its field");

pawl_status pawl__ledger_chain_extend(pawl_ledger_head *head,
                                      const pawl_event *event,
                                      pawl_error *reterr)
{
    char space[CHAIN_HEADER_BYTES + 1];
    struct pawl__buf header = BUF_OVER(space);
    struct pawl__sha256 hash;

    REQUIRE(event->offset == head->offset + 1);
    pawl__buf_add(&header, (pawl_view){ CHAIN_TAG, sizeof(CHAIN_TAG) });
    pawl__buf_add(&header, (pawl_view){ (const char *)head->hash, sizeof(head->hash) });
    pawl__buf_add_u64le(&header, event->offset);
    pawl__buf_add_u64le(&header, (uint64_t)event->turn);
    pawl__buf_add_u64le(&header, (uint64_t)event->created_at_us);
    pawl__buf_add_u64le(&header, (uint64_t)event->schema_version);
    pawl__buf_add_u32le(&header, (uint32_t)event->id.len);
    pawl__buf_add_u32le(&header, (uint32_t)event->run_id.len);
    pawl__buf_add_u32le(&header, (uint32_t)event->kind.len);
    pawl__buf_add_u32le(&header, (uint32_t)event->actor.len);
    pawl__buf_add_u64le(&header, event->payload.len);
    REQUIRE(header.len == CHAIN_HEADER_BYTES);

    const pawl_view parts[] = {
        pawl__buf_view(&header), event->id, event->run_id, event->kind, event->actor, event->payload
    };

    TRY(pawl__sha256_parts(parts, COUNT_OF(parts), &hash, reterr));
    head->offset = event->offset;
    memcpy(head->hash, hash.bytes, sizeof(head->hash));
    return PAWL_OK;
}

bool pawl__ledger_chain_hash_equal(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, PAWL_LEDGER_HASH_BYTES) == 0;
}
