/* The handle behind pawl_ledger, for the files of this folder. */
#ifndef PAWL_LEDGER_INTERNAL_H
#define PAWL_LEDGER_INTERNAL_H

#include "base/commit.h"
#include "base/thread.h"
#include "ledger/backend.h"
#include "ledger/watch.h"
#include "ledger/write.h"

enum { LEDGER_GROUP_MAX = 1000 }; /* requests that one transaction serves, ... */
#define LEDGER_GROUP_BYTES_MAX \
    ((size_t)8 << 20) /* ... and their bytes, unless one alone has more */
#define LEDGER_PAYLOAD_BYTES_LIMIT (256U << 20)

struct pawl_ledger {
    struct ledger_backend *backend;
    pawl_ledger_options options;
    struct ledger_writer writer; /* the committer thread's */
    struct pawl__commit *commit; /* NULL when read-only */
    struct ledger_watch watch;   /* tells readers that there is more */
    bool watch_ready;
    struct pawl__thread settler; /* writes the anchor behind the commits */
    struct pawl__cancel settler_cancel;
    bool settler_ready;
};

/* Puts a request through the group commit and returns its own answer. */
PAWL_MUST_USE pawl_status pawl__ledger_submit(pawl_ledger *ledger,
                                              struct ledger_request *request,
                                              pawl_error *reterr);

/* Copies events to append, fills in what they leave out and checks every field. *ret_bytes is their
 * share of a group. */
PAWL_MUST_USE pawl_status pawl__ledger_prepare(const pawl_ledger *ledger,
                                               const pawl_event *given,
                                               size_t count,
                                               int64_t now_us,
                                               pawl_event *ret_events,
                                               size_t *ret_bytes,
                                               pawl_error *reterr);

#endif
