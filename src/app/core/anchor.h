/* The anchor of an application: how far the log of each partition certainly reached, kept apart from the logs,
 * and who it is. A log whose end was cut off together with all that was made of it looks like a shorter one
 * that is whole, unless somebody remembers how long it was.
 *
 *   pawl-app-anchor 2 <name> <id> <born: microseconds since 1970, 0 for one of format 1> <partitions>
 *                     <SHA-256 of the stored descriptor, 64 hex digits>                   on the same line
 *   <partition> <offset of its last event> <SHA-256 of that event, 64 hex digits>       for each with events
 *   <8 hex digits: CRC-32C of what is before>
 *
 * Version 1 had no descriptor: it is read, and replaced when the application is opened for writing.
 *
 * It is replaced as a whole, with events that are durable: it is never ahead of a log, and only grows. It is
 * written within a second of the events and when the application is closed. Pure. */
#ifndef PAWL_APP_CORE_ANCHOR_H
#define PAWL_APP_CORE_ANCHOR_H

#include <pawl/app.h>

#include "base/core/buf.h"
#include "base/core/sha256.h"

enum { APP_ANCHOR_BYTES_MAX = 64 << 10 };

struct app_log_end {
    uint64_t offset; /* 0: there is no event */
    struct pawl__sha256 hash;
};

struct app_anchor {
    char name[PAWL_APP_NAME_BYTES_MAX + 1];
    uint32_t id;
    uint64_t born_us;
    uint16_t partitions;
    bool has_descriptor; /* false: written before there was one, version 1 */
    struct pawl__sha256 descriptor;
    struct app_log_end ends[PAWL_APP_PARTITIONS_MAX];
};

void pawl__app_anchor_write(const struct app_anchor *anchor, struct pawl__buf *text);

/* CORRUPT: it is none, or not whole. UNSUPPORTED: a newer version wrote it. */
PAWL_MUST_USE pawl_status pawl__app_anchor_parse(pawl_view text,
                                                 struct app_anchor *ret_anchor,
                                                 pawl_error *reterr);

/* CORRUPT: the stored descriptor is not the one that the anchor knows; `where` it is. */
PAWL_MUST_USE pawl_status pawl__app_anchor_check_descriptor(const struct app_anchor *anchor,
                                                            const struct pawl__sha256 *stored,
                                                            const char *where,
                                                            pawl_error *reterr);

/* There is no application. CORRUPT: the anchor knows of events; `where` it is. */
PAWL_MUST_USE pawl_status pawl__app_anchor_check_new(const struct app_anchor *anchor,
                                                     const char *where,
                                                     pawl_error *reterr);

#endif
