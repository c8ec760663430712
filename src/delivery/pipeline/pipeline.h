/* One pipeline: a source, a WAL and a sink, and the steps that move events from one to the next.
 *
 * Each step does a bounded amount of work and returns; who calls it and when is the caller's business (a node's
 * threads, a command, a simulation). Intake may have one thread, and all other steps another: what the two share is
 * `shared`, under its lock, and no store is called while it is held. `turn` keeps a look at the stream and a
 * transaction apart: each sees the other done or not begun.
 *
 * A step that returns an error has changed nothing that open cannot recover. After some of them the pipeline has to be
 * closed and opened again: pawl__delivery_must_reopen. */
#ifndef PAWL_DELIVERY_PIPELINE_PIPELINE_H
#define PAWL_DELIVERY_PIPELINE_PIPELINE_H

#include <stdatomic.h>

#include "base/core/random.h"
#include "base/decide/lease.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "delivery/core/admission.h"
#include "delivery/core/apply.h"
#include "delivery/core/breaker.h"
#include "delivery/core/reconcile.h"
#include "delivery/core/recovery.h"
#include "delivery/core/running.h"
#include "delivery/core/stream.h"

struct delivery_settings {
    struct delivery_identity_rule identity;
    struct delivery_fetch fetch;
    size_t apply_entries_max; /* of a transaction */
    size_t apply_bytes_max;
    uint64_t pending_bytes_max; /* of the WAL: beyond it no fetch begins */
    uint64_t failed_bytes_max;
    size_t payload_bytes_max; /* a larger one fails at once */
    struct delivery_retry_rule retry;
    int64_t retry_interval_ns; /* between two looks at the exceptions */
    struct pawl__backoff outage;
    int64_t nak_delay_ns; /* of what could not be appended */
    int64_t lease_ns;     /* LEASE_DURATION */
    int64_t checkpoint_age_ns;
    uint64_t checkpoint_bytes; /* applied since the last one */
    int64_t state_interval_ns; /* between two looks at an idle stream */
    char holder[DELIVERY_HOLDER_SIZE];
};

/* The seed's values; `identity` is the caller's. */
struct delivery_settings pawl__delivery_settings_default(void);

/* The four parts. Borrowed: whoever made them closes them, after the pipeline. */
struct delivery_parts {
    struct delivery_source *source;
    struct delivery_wal *wal;
    struct delivery_sink *sink;
    struct pawl__clock *clock;
    struct pawl__random *random; /* for ids and jitter */
};

struct delivery_totals {
    uint64_t writes;     /* consumer_wal_writes_total */
    uint64_t confirms;   /* consumer_wal_confirms_total */
    uint64_t retries;    /* consumer_wal_retries_total */
    uint64_t failures;   /* consumer_wal_failures_total */
    uint64_t recoveries; /* consumer_wal_recoveries_total */
    uint64_t duplicates;
    uint64_t conflicts;
    uint64_t losses; /* rows of delivery_losses */
    uint64_t outages;
    uint64_t checkpoints;
};

struct delivery_shared {
    struct pawl__lock lock; /* covers everything below */
    struct delivery_position position;
    uint64_t accepted;
    delivery_lsn next_lsn;
    delivery_lsn applied_seen;     /* what the sink has committed: for the record in the WAL */
    bool check_stream;             /* before the next fetch */
    struct delivery_losses losses; /* seen by the position, not yet committed with it */
    struct delivery_running running;
    struct delivery_totals totals;
};

struct delivery_pipeline {
    struct delivery_settings settings;
    struct delivery_parts parts;
    struct delivery_shared shared;
    struct pawl__lock turn; /* taken before the lock of `shared`; covers `cursor` against intake */
    atomic_bool is_broken;  /* close it and open it again */

    /* Intake's. */
    struct delivery_wal_meta meta;
    struct delivery_batch_keys batch_keys;
    struct intake *intake; /* its arrays; intake.c */
    bool is_connected;     /* the stream has been asked, and nothing broke since */
    bool rebuilding;       /* until then: what the stream no longer has is lost by a rebuild */
    int64_t asked_ns;      /* when the stream was last asked */
    int64_t consumer_created_ns;

    /* Apply's. */
    struct delivery_cursor cursor; /* as committed */
    bool cursor_in_doubt;          /* read it again before the next transaction */
    struct delivery_losses losses; /* of the transaction that was last tried */
    struct pawl__lease lease;      /* its token is the fence */
    struct delivery_breaker breaker;
    struct delivery_window window;
    struct delivery_window retry_window;
    struct delivery_page page;
    struct delivery_outcome *outcomes;
    size_t outcome_room;
    struct delivery_verdict *verdicts;
    size_t verdict_room;
    delivery_lsn *mark_lsns; /* of a step of marks */
    struct delivery_fate *mark_fates;
    int64_t retried_ns;
    int64_t checkpointed_ns;
    uint64_t bytes_since_checkpoint;
    bool decisions_due; /* WAL and sink may not agree yet about what people decided */

    enum delivery_pairing pairing; /* what open found */
    const char *pairing_why;
    struct delivery_recovery recovery;
    delivery_lsn recovery_until;
    int64_t opened_ns;
};

/* Reconciles WAL and sink, claims both under a new fence, recovers what was pending, and checks the stream. Nothing is
 * admitted before. After a failure: pawl__delivery_pipeline_close, then try again later. */
PAWL_MUST_USE pawl_status pawl__delivery_pipeline_open(struct delivery_pipeline *pipeline,
                                                       const struct delivery_settings *settings,
                                                       const struct delivery_parts *parts,
                                                       pawl_error *reterr);
void pawl__delivery_pipeline_close(struct delivery_pipeline *pipeline);

/* Fetches a batch, appends what is new, acknowledges. *ret_moved: how many messages were fetched. BUSY: the WAL is
 * full. An error of the source is returned after the rest is safe; fetch again later. */
PAWL_MUST_USE pawl_status pawl__delivery_intake(struct delivery_pipeline *pipeline,
                                                size_t *ret_moved,
                                                pawl_error *reterr);

/* Commits one transaction of pending entries. *ret_moved: how many entries were settled or deferred. PAWL_OK with 0:
 * nothing is pending, or the breaker is open. */
PAWL_MUST_USE pawl_status pawl__delivery_apply(struct delivery_pipeline *pipeline,
                                               size_t *ret_moved,
                                               pawl_error *reterr);

/* The same for exceptions that are due; looks at them every retry_interval. */
PAWL_MUST_USE pawl_status pawl__delivery_retry(struct delivery_pipeline *pipeline,
                                               size_t *ret_moved,
                                               pawl_error *reterr);

/* Checkpoints when it is time, and cleans up the WAL behind it. After a start, brings WAL and sink to agree about what
 * people decided (failed.h) before anything is cleaned up. */
PAWL_MUST_USE pawl_status pawl__delivery_maintain(struct delivery_pipeline *pipeline,
                                                  pawl_error *reterr);

/* The fence is lost, or the WAL failed in mid write: nothing that this pipeline does counts any more. */
bool pawl__delivery_must_reopen(const struct delivery_pipeline *pipeline);

struct delivery_counters pawl__delivery_pipeline_counters(struct delivery_pipeline *pipeline);

#endif
