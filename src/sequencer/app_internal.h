/* An open application: its partitions, each with a queue, a thread that commits, and a sequencer. */
#ifndef PAWL_SEQUENCER_APP_INTERNAL_H
#define PAWL_SEQUENCER_APP_INTERNAL_H

#include "base/commit.h"
#include "sequencer/app_batch.h"
#include "sequencer/app_seq.h"
#include "sequencer/command.h"
#include "sequencer/descriptor.h"

struct app_item;

struct app_partition {
    struct pawl_app *app;
    struct app_seq seq;
    pawl_sequencer *sequencer;
    struct pawl__commit *commit;

    /* The committer's alone. */
    struct app_batch batch;
    struct pawl__arena arena; /* what an attempt needs until it is over */
    struct pawl__buf bytes;
    struct app_item **taken; /* the commands of an attempt */
    size_t taken_count;
};

struct pawl_app {
    struct app_definition definition;
    const pawl_seq_type *types; /* of all kinds */
    size_t type_count;
    pawl_app_options options;
    struct app_store *store;
    struct app_partition *partitions;
    size_t partition_count; /* that were made */
};

/* Adds what an event does to everything but the PLog: WLog, records, key. `bytes` is the event. */
PAWL_MUST_USE pawl_status pawl__app_apply(struct app_batch *batch,
                                          uint32_t app,
                                          const pawl_app_event *event,
                                          pawl_view bytes,
                                          const enum app_mode modes[2],
                                          pawl_error *reterr);
enum { APP_MODE_EVENTS, APP_MODE_RECORDS }; /* places in `modes` */

/* Applies the last event of a log again, whatever the trust level: what is there is overwritten. */
PAWL_MUST_USE pawl_status pawl__app_reapply(const struct app_seq *seq, pawl_error *reterr);

/* A partition from its definition on: applies the last event again, starts the threads. `done` also
 * after a failure; false: a thread did not come back, and whatever it uses must stay. */
PAWL_MUST_USE pawl_status pawl__app_partition_init(struct app_partition *partition,
                                                   pawl_error *reterr);
bool pawl__app_partition_done(struct app_partition *partition, int64_t deadline_ns);

/* DENIED when it was opened for reading: its partitions have neither threads nor a sequencer. */
PAWL_MUST_USE pawl_status pawl__app_refuse_reader(const pawl_app *app, pawl_error *reterr);

struct app_partition *pawl__app_partition(pawl_app *app, uint64_t workspace);

#endif
