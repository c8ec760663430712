/* The keys of an application's store. All integers big-endian, so that the order of keys is the order
 * of numbers; the application's id first, so that two of them may share a store.
 *
 *   META     app(4)                                        the descriptor, JSON
 *            app(4) "format"                               the format of all this, in decimal
 *   PLOG     app(4) partition(2) offset(8)                 an event (event.h)
 *   WLOG     app(4) workspace(8) offset(8)                 the PLog offset(8), then the same event
 *   RECORDS  app(4) workspace(8) id(8)                     a record (event.h)
 *   SEQ      app(4) partition(2) workspace(8) sequence(2)  the last number (stored.h)
 *   OFFSETS  app(4) partition(2)                           the first offset that SEQ does not cover (stored.h)
 *   KEYS     app(4) workspace(8) key                       request hash(32), PLog offset(8)
 *   NUMBERS  app(4) workspace(8) sequence(2) number(8)     the PLog offset(8) of the event that used it;
 *                                                          of own sequences, at trust levels 0 and 1
 *
 * C-records are one range of ids, the last one: a scan of RECORDS from PAWL_APP_C_ID_MIN lists those of
 * a workspace. Pure. */
#ifndef PAWL_APP_CORE_KEYS_H
#define PAWL_APP_CORE_KEYS_H

#include <pawl/app.h>

#include "base/core/buf.h"

enum app_family {
    APP_META,
    APP_PLOG,
    APP_WLOG,
    APP_RECORDS,
    APP_SEQ,
    APP_OFFSETS,
    APP_KEYS,
    APP_NUMBERS,
    APP_FAMILY_COUNT
};

#define APP_KEY_SIZE (12 + PAWL_APP_KEY_BYTES_MAX)

struct app_key {
    size_t len;
    char bytes[APP_KEY_SIZE];
};

/* "plog"; the name of a column family. Static. */
const char *pawl__app_family_name(enum app_family family);

struct app_key pawl__app_key_meta(uint32_t app);
struct app_key pawl__app_key_format(uint32_t app);
struct app_key pawl__app_key_plog(uint32_t app, uint16_t partition, uint64_t offset);
struct app_key pawl__app_key_wlog(uint32_t app, uint64_t workspace, uint64_t offset);
struct app_key pawl__app_key_record(uint32_t app, uint64_t workspace, uint64_t id);
struct app_key pawl__app_key_seq(uint32_t app,
                                 uint16_t partition,
                                 uint64_t workspace,
                                 uint16_t sequence);
struct app_key pawl__app_key_offset(uint32_t app, uint16_t partition);
struct app_key pawl__app_key_used(uint32_t app,
                                  uint64_t workspace,
                                  uint16_t sequence,
                                  uint64_t number);
struct app_key pawl__app_key_idempotency(uint32_t app, uint64_t workspace, pawl_view text);

pawl_view pawl__app_key_view(const struct app_key *key);

/* The number at the end of a key of PLOG, WLOG or RECORDS. False: it is none of those. */
PAWL_MUST_USE bool pawl__app_key_number(enum app_family family,
                                        pawl_view key,
                                        uint64_t *ret_number);

/* The parts of a key, those that its family has. */
struct app_key_parts {
    uint32_t app;
    uint16_t partition;
    uint64_t workspace;
    uint16_t sequence;
    uint64_t number; /* offset, id or number */
    pawl_view text;  /* of META and KEYS */
};

/* False: no key of the family is like that. */
PAWL_MUST_USE bool pawl__app_key_parse(enum app_family family,
                                       pawl_view key,
                                       struct app_key_parts *ret_parts);

/* For people: "offset 5 of the PLog of partition 0 (application 1)". */
void pawl__app_key_describe(enum app_family family, pawl_view key, struct pawl__buf *buf);

#endif
