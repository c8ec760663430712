/* Events and records as bytes. Both formats are version 1, all integers big-endian.
 *
 * EVENT
 *   u8   version, 1
 *   u32  crc32c of all that follows
 *   u64  workspace; u64 PLog offset; u64 WLog offset; u16 kind
 *   u8   length of the idempotency key, 0: none; the key; with a key: request hash (32)
 *   u32  records, each: u8 class, u8 1 for an update, u16 raw id (0: none), u64 id,
 *        u8 length of the table's name, the name, u32 length of the data, the data (JSON)
 *   u32  numbers, each: u16 sequence, u64 number
 *
 * RECORD
 *   u8   version, 1
 *   u32  crc32c of all that follows
 *   u8   class; u8 length of the table's name; the name; the rest is the data (JSON)
 *
 * Nothing follows. An event says at which offset it belongs, so that one that lies elsewhere is found.
 * To change a format: add version 2 beside it, with the same first two fields, and keep
 * reading 1. Pure. */
#ifndef PAWL_APP_CORE_EVENT_H
#define PAWL_APP_CORE_EVENT_H

#include <pawl/app.h>

#include "base/core/arena.h"
#include "base/core/buf.h"

/* Numbers in place of references may make the data longer than the command was. */
#define APP_EVENT_BYTES_MAX ((size_t)16 << 20)

/* Appends. A buffer that is too small is broken afterwards. */
void pawl__app_event_encode(const pawl_app_event *event, struct pawl__buf *buf);
void pawl__app_record_encode(const pawl_app_record *record, struct pawl__buf *buf);

/* Views point into `bytes`, arrays are in the arena. CORRUPT says what is wrong; UNSUPPORTED: a newer
 * version. */
PAWL_MUST_USE pawl_status pawl__app_event_decode(pawl_view bytes,
                                                 struct pawl__arena *arena,
                                                 pawl_app_event *ret_event,
                                                 pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__app_record_decode(pawl_view bytes,
                                                  pawl_app_record *ret_record,
                                                  pawl_error *reterr);

#endif
