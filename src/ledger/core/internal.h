/* An open pawl_ledger, for the files of this folder. */
#ifndef PAWL_LEDGER_CORE_INTERNAL_H
#define PAWL_LEDGER_CORE_INTERNAL_H

#include "engine/engine.h"
#include "ledger/core/backend.h"
#include "ledger/core/write.h"

enum { LEDGER_GROUP_MAX = 1000 }; /* requests that one transaction serves, ... */
#define LEDGER_GROUP_BYTES_MAX \
    ((size_t)8 << 20) /* ... and their bytes, unless one alone has more */
#define LEDGER_ASYNC_BYTES_MAX \
    ((size_t)64 << 20) /* of all that wait, once an append without a waiting caller comes */
#define LEDGER_PAYLOAD_BYTES_LIMIT (256U << 20)

struct pawl_ledger {
    /* No calls are counted: all that writes waits for the committer, which answers everybody before it
     * ends, and appending threads would meet at the counter's lock. */
    struct pawl__engine engine;
    struct ledger_backend *backend;
    pawl_ledger_options options;
    struct ledger_writer writer;       /* the committer thread's */
    struct pawl__thread anchor_thread; /* writes the anchor after the commits */
    struct pawl__cancel anchor_cancel;
    bool anchor_ready;
};

/* pawl_ledger_open on a given clock: of a test, or a simulation. NULL: the real one. */
PAWL_MUST_USE pawl_status pawl__ledger_open_at(const char *location,
                                               const pawl_ledger_options *options,
                                               struct pawl__clock *clock,
                                               pawl_ledger **ret_ledger,
                                               pawl_error *reterr);

/* The caller's options (NULL: the defaults), checked. */
PAWL_MUST_USE pawl_status pawl__ledger_read_options(const pawl_ledger_options *given,
                                                    pawl_ledger_options *ret_options,
                                                    pawl_error *reterr);

/* WRONG_THREAD inside a `done`: its thread is the committer's, which a call that waits would wait for. */
PAWL_MUST_USE pawl_status pawl__ledger_check_may_wait(const pawl_ledger *ledger,
                                                      pawl_error *reterr);

/* Puts a request through the group commit and returns its own answer. */
PAWL_MUST_USE pawl_status pawl__ledger_submit(pawl_ledger *ledger,
                                              struct ledger_request *request,
                                              pawl_error *reterr);

/* Events on their way into the log: copies with everything filled in, and answers that reach the
 * caller only when all of it is durable. A single event needs no allocation. */
struct ledger_batch {
    size_t count;
    pawl_event *events;
    pawl_append_result *results;
    pawl_event one_event;
    pawl_append_result one_result;
};

/* INVALID for more than PAWL_LEDGER_BATCH_MAX events. Ended with _done, also when it failed. */
PAWL_MUST_USE pawl_status pawl__ledger_batch_init(struct ledger_batch *batch,
                                                  const pawl_event *events,
                                                  size_t count,
                                                  pawl_error *reterr);
void pawl__ledger_batch_done(struct ledger_batch *batch);

/* Fills in what the events leave out and checks every field. */
PAWL_MUST_USE pawl_status pawl__ledger_batch_check(const pawl_ledger *ledger,
                                                   struct ledger_batch *batch,
                                                   pawl_error *reterr);

/* Appends them as `request` says, unless there are none, and hands the answers out; `ret_results` may be NULL. */
PAWL_MUST_USE pawl_status pawl__ledger_batch_submit(pawl_ledger *ledger,
                                                    struct ledger_batch *batch,
                                                    struct ledger_request *request,
                                                    pawl_append_result *ret_results,
                                                    pawl_error *reterr);

/* Appends events of another ledger or an archive, in their order, all or none, with the turns that
 * the ledger's own kinds among them tell of. Offsets and hashes are given anew. An error names
 * the event by its index. */
PAWL_MUST_USE pawl_status pawl__ledger_copy(pawl_ledger *ledger,
                                            const pawl_event *events,
                                            size_t count,
                                            pawl_append_result *ret_results,
                                            pawl_error *reterr);

/* A filter as the caller gave it (NULL: all), checked. Its texts are still the caller's. */
PAWL_MUST_USE pawl_status pawl__ledger_check_filter(const pawl_event_filter *given,
                                                    pawl_event_filter *ret_filter,
                                                    pawl_error *reterr);

/* The backend of a location alone, with the options: no threads, no anchor, nothing is checked. */
extern const struct pawl__backends pawl__ledger_backends;

#endif
