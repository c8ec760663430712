/* The anchor: how far a ledger's log certainly reached, kept outside the database file.
 *
 * SQLite notices neither a flipped bit in a payload nor a log whose tail was lost. The hash chain
 * finds the first; the second looks like a shorter, intact ledger, unless somebody remembers how
 * long it was. That is this file's one job.
 *
 *   pawl-anchor 1 <offset> <64 hex digits of the hash> <8 hex digits: CRC-32C of what is before>\n
 *
 * It is replaced as a whole, under the write lock, with a head that is durable already: it is never
 * ahead of the log and only grows. It is written at least once a second while events arrive and
 * when the ledger is closed; so a tail that is cut within that second can go unnoticed, and no
 * other. */
#ifndef PAWL_LEDGER_CORE_ANCHOR_H
#define PAWL_LEDGER_CORE_ANCHOR_H

#include <pawl/ledger.h>

/* "<path>.anchor", malloc'ed; NULL without memory. */
char *pawl__ledger_anchor_path(const char *ledger_path);

/* NOT_FOUND: there is none, and `reterr` is left alone: no anchor is no error. CORRUPT: it is not an anchor, or not whole. */
PAWL_MUST_USE pawl_status pawl__ledger_anchor_read(const char *path,
                                                   pawl_ledger_head *ret_head,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__ledger_anchor_write(const char *path,
                                                    const pawl_ledger_head *head,
                                                    pawl_error *reterr);

#endif
