/* An open application: its partitions, each with a queue, a thread that commits, and a sequencer. */
#ifndef PAWL_APP_CORE_INTERNAL_H
#define PAWL_APP_CORE_INTERNAL_H

#include <stdatomic.h>

#include "app/core/anchor.h"
#include "app/core/batch.h"
#include "app/core/command.h"
#include "app/core/seq.h"
#include "app/definition/descriptor.h"
#include "base/thread/cancel.h"
#include "base/thread/watch.h"
#include "engine/committer.h"

struct app_item;

struct app_partition {
    struct pawl_app *app;
    struct app_seq seq;
    pawl_sequencer *sequencer;
    struct pawl__commit *commit;
    _Atomic uint64_t written; /* the offset of the last event that is durable; 0: none */

    /* Only the committer uses these. */
    struct app_batch batch;
    struct pawl__arena arena; /* what an attempt needs until it is over */
    struct pawl__buf bytes;
    struct app_item **attempt; /* the commands of an attempt */
    size_t attempt_count;
};

/* The thread that keeps the anchor up to date (anchor_writer.c). */
struct app_anchor_writer {
    struct app_anchor anchor; /* as it was written last */
    bool known;               /* it is stored as it is here */
    bool ready;
    bool started;             /* there are events to follow */
    bool failing;             /* the last write failed, and that was logged */
    struct pawl__watch watch; /* changes with every write of a partition */
    struct pawl__cancel cancel;
    struct pawl__thread thread;
};

struct pawl_app {
    struct pawl__clock *clock; /* what is stamped and decided by time */
    struct pawl__clock
        *wait_clock; /* of callers' deadlines; it runs, whatever the other one does */
    struct app_definition definition;
    const pawl_seq_type *types; /* of all kinds */
    size_t type_count;
    pawl_app_options options;
    struct app_store *store;
    int format;      /* of the store */
    bool rebuilding; /* of the store, too: see pawl__app_format_read */
    struct pawl__sha256 stored_descriptor;
    struct app_anchor_writer anchor_writer;
    struct app_partition *partitions;
    size_t partition_count; /* that were made */
    char
        answering; /* no value: its address says that a thread is in an answer (base/thread/inside.h) */
};

/* pawl_app_open on a given clock: of a test, or a simulation. NULL: the real one. */
PAWL_MUST_USE pawl_status pawl__app_open_at(const char *location,
                                            const pawl_app_descriptor *descriptor,
                                            const pawl_app_options *options,
                                            struct pawl__clock *clock,
                                            pawl_app **ret_app,
                                            pawl_error *reterr);

/* Reads the anchor, once the definition and the format are known. CORRUPT: the log is not the one that the
 * anchor describes; CONFLICT: another application has the id. `found`: whether there is an application. A reader
 * may open a log that was cut off. */
PAWL_MUST_USE pawl_status pawl__app_anchor_load(struct pawl_app *app,
                                                bool found,
                                                pawl_error *reterr);

/* The anchor as it is stored. *ret_known false: there is none. CORRUPT: it is damaged or another's. */
PAWL_MUST_USE pawl_status pawl__app_anchor_read(const struct pawl_app *app,
                                                struct app_anchor *ret_anchor,
                                                bool *ret_known,
                                                pawl_error *reterr);

/* CORRUPT: the stored descriptor is not the one of the anchor. Without an anchor nothing is compared. */
PAWL_MUST_USE pawl_status pawl__app_anchor_compare_descriptor(struct app_store *store,
                                                              const struct pawl__sha256 *stored,
                                                              pawl_error *reterr);

/* Whether a log has what the anchor says of it. CORRUPT says how it differs. */
PAWL_MUST_USE pawl_status pawl__app_anchor_compare(const struct pawl_app *app,
                                                   const struct app_anchor *anchor,
                                                   uint16_t partition,
                                                   pawl_error *reterr);

/* Writes the anchor after the partitions have written: `init` before they start, `start` when they have, `stop`
 * when they have ended. The thread then writes it once more and ends; false: it did not come back in time. */
void pawl__app_anchor_writer_init(struct pawl_app *app);
PAWL_MUST_USE pawl_status pawl__app_anchor_writer_start(struct pawl_app *app, pawl_error *reterr);
bool pawl__app_anchor_writer_stop(struct pawl_app *app, int64_t deadline_ns);

/* A partition has written up to this offset. */
void pawl__app_anchor_writer_note(struct app_partition *partition, uint64_t offset);

/* A partition from its definition on: applies the last event again, starts the threads. `done` also
 * after a failure; false: a thread did not come back, and whatever it uses must stay. */
PAWL_MUST_USE pawl_status pawl__app_partition_init(struct app_partition *partition,
                                                   pawl_error *reterr);
bool pawl__app_partition_done(struct app_partition *partition, int64_t deadline_ns);

/* Ends its threads, with `drain` after the commands that wait. False: not by the deadline; may be repeated. */
bool pawl__app_partition_stop(struct app_partition *partition, bool drain, int64_t deadline_ns);

/* DENIED when it was opened for reading: its partitions have neither threads nor a sequencer. */
PAWL_MUST_USE pawl_status pawl__app_refuse_reader(const pawl_app *app, pawl_error *reterr);

/* INVALID: there is no such partition. */
PAWL_MUST_USE pawl_status pawl__app_check_partition(const pawl_app *app,
                                                    uint16_t partition,
                                                    pawl_error *reterr);

struct app_partition *pawl__app_partition(pawl_app *app, uint64_t workspace);

#endif
