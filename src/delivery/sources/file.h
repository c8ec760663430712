/* A file of JSON lines, or standard input, as a source.
 *
 *   Sequence    The number of the line. Blank lines count and are not delivered.
 *   Stored      A fingerprint of everything from the beginning of the file to the end of the line, so that a place
 *               also says what was before it.
 *   Created     A hash of the generation, which the user names. The same command run again reads the same places.
 *
 * A line without its line feed waits for it. A file whose bytes changed before the last place that was applied, or
 * that became shorter or was replaced, is refused with CONFLICT until the user names a new generation. Standard input
 * is read from its beginning by every run; lines up to the place that was applied are checked and passed over. */
#ifndef PAWL_DELIVERY_SOURCES_FILE_H
#define PAWL_DELIVERY_SOURCES_FILE_H

#include "base/os/clock.h"
#include "base/thread/cancel.h"
#include "delivery/core/source.h"

enum { DELIVERY_LINE_BYTES_MAX = 16 << 20 };

/* Borrowed for as long as the source is open. */
struct delivery_file_options {
    const char *path;              /* NULL: standard input, or `fd` */
    int fd;                        /* without a path: what to read; not closed */
    const char *generation;        /* NULL: "1" */
    struct delivery_place applied; /* of the cursor row; sequence 0: nothing yet */
    size_t
        line_bytes_max; /* 0: DELIVERY_LINE_BYTES_MAX. A longer line is INVALID, with its number */
    struct pawl__cancel *cancel; /* ends a fetch that waits; NULL: nobody does */
    struct pawl__clock *clock;   /* NULL: the real one */
};

PAWL_MUST_USE pawl_status pawl__delivery_file_open(const struct delivery_file_options *options,
                                                   struct delivery_source **ret_source,
                                                   pawl_error *reterr);

/* Everything that was ever written was handed out: the writer of a pipe has closed it, or a file has no more now.
 * `*ret_rest`: bytes of a last line that waits for its end. */
bool pawl__delivery_file_is_at_end(const struct delivery_source *source, size_t *ret_rest);

#endif
