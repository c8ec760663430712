/* An open data directory: its declarations, its DuckDB file, and a runner per pipeline. */
#ifndef PAWL_DELIVERY_SERVICE_INTERNAL_H
#define PAWL_DELIVERY_SERVICE_INTERNAL_H

#include <pawl/delivery.h>
#include <pawl/ledger.h>

#include "base/thread/cancel.h"
#include "delivery/duckdb/sink.h"
#include "delivery/pipeline/failed.h"
#include "delivery/service/declaration.h"
#include "delivery/sources/inbox.h"
#include "engine/calls.h"
#include "net/nats/nats.h"
#include "store/lock.h"

/* What somebody asks the thread of a pipeline to do about failed events. Lives with who asked, until it is done. */
struct delivery_errand {
    const struct delivery_failed_request *request;
    struct delivery_failed_result result;
    pawl_status status;
    pawl_error error;
    bool is_taken; /* this and the next are covered by delivery->lock */
    bool is_done;
};

/* What a pipeline moves events between, opened by its thread and closed by it. */
struct delivery_opened {
    struct delivery_source *source;
    struct delivery_wal *wal;
    struct delivery_sink *sink;
    pawl_ledger *ledger;                  /* of a ledger source */
    struct pawl__nats_options connection; /* of a JetStream source, which borrows it */
    const char *subjects[1];              /* likewise */
    char consumer[PAWL__NATS_NAME_SIZE];  /* of a reader, likewise */
};

/* What a pipeline says of itself, copied by its thread after every round. */
struct delivery_report {
    struct delivery_counters counters;
    struct delivery_totals totals;
    struct delivery_recovery recovery;
    const char *pairing; /* NULL: it has not been opened */
    uint64_t sequence;
    delivery_lsn applied;
    bool breaker_is_open;
    int64_t checkpointed_ns; /* monotonic: the last checkpoint, or when it was opened */
};

/* Where the two threads of a pipeline meet: one takes in, the other one applies. */
struct delivery_meeting {
    struct pawl__lock lock; /* covers everything below but the link; taken after all others */
    struct pawl__cond changed;
    struct pawl__cancel_link link;

    /* Told by intake. */
    delivery_lsn appended;    /* the last one */
    int64_t waiting_since_ns; /* for apply, when it had caught up before */
    uint64_t taken;           /* messages since apply looked */
    bool is_idle;             /* the source has nothing more; see idle_for */
    uint64_t idle_for;        /* drains_asked when the fetch began that found nothing */
    size_t rest_bytes;        /* of a last line without its end */
    pawl_error error;         /* it passes, and intake tries again; PAWL_OK: none */
    pawl_status ended;        /* other than OK: intake has stopped, for this reason */
    pawl_error ended_why;

    /* Told by apply. */
    delivery_lsn applied;
    bool sink_is_away;

    bool is_called; /* somebody wants something of apply, or of intake that it stops */
};

struct delivery_runner {
    struct pawl_delivery *delivery;
    struct delivery_runner *next; /* by name; covered by delivery->lock */
    struct delivery_declared
        declared; /* replaced under delivery->manage and delivery->lock, while no thread runs */

    /* Covered by delivery->manage. */
    struct pawl__thread thread;
    bool has_thread;
    bool must_open; /* the first failure to open ends the thread */
    const char
        *held_for; /* somebody has its stores instead of a thread: "replayed"; NULL: nobody */

    /* Covered by delivery->lock. */
    pawl_pipeline_state state;
    pawl_error error; /* the newest; PAWL_OK: none since the last success */
    struct delivery_report report;
    uint64_t drains_asked; /* counts calls that want it drained */
    uint64_t drained_for;  /* a round that began after so many of them found it drained */
    size_t rest_bytes;     /* of a last line without its end, when it is drained */
    size_t waiting;        /* calls that wait for it; it is not freed before they have left */
    bool is_gone;          /* it is being removed */
    struct delivery_errand *errand; /* one at a time; NULL: none waits */

    struct pawl__cancel cancel;
    struct delivery_inbox inbox; /* of a pipeline that takes posted events; else empty */
    struct delivery_meeting meeting;

    struct pawl__lock wal_lock; /* keeps `wal` from being closed while others read it */
    struct delivery_wal *wal;   /* of `opened`; NULL: it is not open */

    /* The thread's own; the source is intake's while that runs. */
    struct delivery_opened opened;
    struct delivery_pipeline pipeline;
    struct pawl__thread intake_thread;
    struct pawl__cancel stop_intake; /* a child of `cancel`, made anew with every opening */
};

struct pawl_delivery {
    struct pawl__calls calls;
    struct pawl__lock manage; /* one change of what runs at a time; taken before all others */
    struct pawl__lock lock;   /* covers the list of runners and what they report */
    struct pawl__cond changed;
    struct delivery_runner *runners;
    size_t runner_count;
    bool is_closing;
    bool is_started;    /* pawl_delivery_start was called */
    size_t observers;   /* that have sinks of the file open */
    bool is_rebuilding; /* the file is replaced: nobody observes */

    struct pawl__lock file_lock; /* covers `file` */
    struct delivery_duckdb_file *file;

    struct pawl__store_lock *store_lock;
    struct pawl__clock *clock;
    pawl_delivery_options options;
    char *dir;
    char *pipelines_dir;
    char *wal_dir;
};

/* --- directory.c: what is on disk --- */

PAWL_MUST_USE pawl_status pawl__delivery_directory_open(struct pawl_delivery *delivery,
                                                        pawl_error *reterr);

/* Calls add(delivery, declared) with every declaration, which it then owns. */
PAWL_MUST_USE pawl_status pawl__delivery_directory_load(
    struct pawl_delivery *delivery,
    pawl_status (*add)(struct pawl_delivery *, struct delivery_declared *, pawl_error *),
    pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_directory_save(const struct pawl_delivery *delivery,
                                                        const struct delivery_declared *declared,
                                                        pawl_error *reterr);
/* The declaration first: without it nobody finds what is left of the log. */
PAWL_MUST_USE pawl_status pawl__delivery_directory_forget(const struct pawl_delivery *delivery,
                                                          const char *name,
                                                          pawl_error *reterr);

/* Whether there is a DuckDB file, open or not. */
bool pawl__delivery_directory_has_file(struct pawl_delivery *delivery);

/* The DuckDB file, opened by the first who asks. */
PAWL_MUST_USE pawl_status pawl__delivery_directory_file(struct pawl_delivery *delivery,
                                                        struct delivery_duckdb_file **ret_file,
                                                        pawl_error *reterr);

#define DELIVERY_FILE_NAME "analytics.duckdb"

/* Closes it and opens it again: one that does not open, or any with `replace`, is moved aside and a new one made. The
 * caller holds `manage`, and nobody has a sink of it. */
PAWL_MUST_USE pawl_status
pawl__delivery_directory_replace_file(struct pawl_delivery *delivery,
                                      bool replace,
                                      struct delivery_duckdb_opened *ret_opened,
                                      pawl_error *reterr);

/* --- open.c: the parts of one pipeline --- */

/* NOT_FOUND with read_only: it has none yet. */
PAWL_MUST_USE pawl_status pawl__delivery_open_wal(const struct pawl_delivery *delivery,
                                                  const struct delivery_declared *declared,
                                                  bool read_only,
                                                  struct delivery_wal **ret_wal,
                                                  pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_open_sink(struct pawl_delivery *delivery,
                                                   const struct delivery_declared *declared,
                                                   struct delivery_sink **ret_sink,
                                                   pawl_error *reterr);

/* Only to read it. */
PAWL_MUST_USE pawl_status pawl__delivery_open_ledger(const char *location,
                                                     pawl_ledger **ret_ledger,
                                                     pawl_error *reterr);

/* All of them, and the pipeline on them. After a failure, too: pawl__delivery_close_parts. */
PAWL_MUST_USE pawl_status pawl__delivery_open_parts(struct delivery_runner *runner,
                                                    pawl_error *reterr);
void pawl__delivery_close_parts(struct delivery_runner *runner);

/* The source alone, for somebody who reads beside the pipeline: JetStream with a consumer of its own. `opened` may have
 * a sink already, which a file is compared with. UNSUPPORTED: see is_readable. Both outlive the source. */
PAWL_MUST_USE pawl_status pawl__delivery_open_to_read(struct pawl_delivery *delivery,
                                                      const struct delivery_declared *declared,
                                                      struct delivery_opened *opened,
                                                      pawl_error *reterr);
void pawl__delivery_close_opened(struct delivery_opened *opened);

/* Standard input and what calls hand in are read once. */
bool pawl__delivery_is_readable(const struct delivery_declared *declared);

/* WAL, sink and the pipeline on them, for what needs no source. Closed as above. */
PAWL_MUST_USE pawl_status pawl__delivery_open_stores(struct delivery_runner *runner,
                                                     pawl_error *reterr);

/* --- failed.c: what people do about failed events --- */

/* Does the errand that waits, if there is one; of the runner's thread. */
void pawl__delivery_run_errand(struct delivery_runner *runner);

/* --- runner.c: the thread of one pipeline, which applies --- */

void pawl__delivery_runner_run(void *context); /* the runner */

uint64_t pawl__delivery_drains_asked(struct delivery_runner *runner);

/* What passes by itself: the pipeline stays open and tries again. */
bool pawl__delivery_may_pass(pawl_status status);

/* --- take_in.c: its second thread, which takes in --- */

/* Of a pipeline that is open. */
PAWL_MUST_USE pawl_status pawl__delivery_intake_start(struct delivery_runner *runner,
                                                      pawl_error *reterr);
void pawl__delivery_intake_stop(struct delivery_runner *runner); /* waits for it */

/* Ends a wait of either thread, for something that was left for it. */
void pawl__delivery_call(struct delivery_runner *runner);

/* --- status.c --- */

/* Statuses of pipelines and the memory that they point into. */
struct delivery_statuses {
    struct pawl__arena arena;
    pawl_pipeline_status *items;
    size_t count;
};
void pawl__delivery_statuses_done(struct delivery_statuses *statuses);

/* Of one pipeline, or of all (NULL). The caller holds `manage`. */
PAWL_MUST_USE pawl_status pawl__delivery_statuses_read(struct pawl_delivery *delivery,
                                                       struct delivery_runner *only,
                                                       struct delivery_statuses *statuses,
                                                       pawl_error *reterr);

/* The same of one that runs, from what it reported last; without `manage`, but the runner must stay. */
PAWL_MUST_USE pawl_status pawl__delivery_status_seen(struct delivery_runner *runner,
                                                     struct delivery_statuses *statuses,
                                                     pawl_error *reterr);

/* The same of all of them. */
PAWL_MUST_USE pawl_status pawl__delivery_statuses_seen(struct pawl_delivery *delivery,
                                                       struct delivery_statuses *statuses,
                                                       pawl_error *reterr);

/* What a pipeline that does not run has in its stores. The caller holds `manage`. */
PAWL_MUST_USE pawl_status pawl__delivery_read_report(struct delivery_runner *runner,
                                                     struct delivery_report *ret_report,
                                                     pawl_error *reterr);

/* --- wal.c --- */

typedef pawl_status delivery_wal_look(struct delivery_wal *wal, void *context, pawl_error *reterr);

/* Calls `look` with the log of a pipeline, which neither starts nor stops meanwhile: do not stay long. Not called, and
 * PAWL_OK, when there is none yet. */
PAWL_MUST_USE pawl_status pawl__delivery_look_at_wal(struct pawl_delivery *delivery,
                                                     const char *name,
                                                     delivery_wal_look *look,
                                                     void *context,
                                                     pawl_error *reterr);

/* --- observer.c: a pipeline seen by somebody who is beside it --- */

/* From enter to leave the DuckDB file is not replaced. BUSY: that is under way. */
PAWL_MUST_USE pawl_status pawl__delivery_enter_file(struct pawl_delivery *delivery,
                                                    pawl_error *reterr);
void pawl__delivery_leave_file(struct pawl_delivery *delivery);

/* A copy of the declaration, and connections of its own to table and source: the pipeline may run, change or go. */
struct delivery_observer {
    struct pawl_delivery *delivery;
    struct delivery_declared declared;
    struct delivery_opened opened;
    bool is_open; /* counts in delivery->observers */
};

/* BUSY: the file is being rebuilt. The source is not opened. */
PAWL_MUST_USE pawl_status pawl__delivery_observe(struct pawl_delivery *delivery,
                                                 const char *name,
                                                 struct delivery_observer *observer,
                                                 pawl_error *reterr);
void pawl__delivery_observer_done(struct delivery_observer *observer);

/* The names of all pipelines, in the arena; *ret_count of them. */
PAWL_MUST_USE pawl_status pawl__delivery_names(struct pawl_delivery *delivery,
                                               struct pawl__arena *arena,
                                               const char ***ret_names,
                                               size_t *ret_count,
                                               pawl_error *reterr);

/* Messages of a source in the order of their places. False ends the walk. */
typedef pawl_status delivery_messages_visitor(void *context,
                                              const struct delivery_message *messages,
                                              size_t count,
                                              bool *ret_enough,
                                              pawl_error *reterr);

/* Reads the source from place `from` to place `to`, both inclusive. *ret_state: what it says of itself. A stream that is
 * another one than `created_ns` (0: any) is not read. CLOSED: the delivery is being closed. */
PAWL_MUST_USE pawl_status pawl__delivery_walk_source(struct delivery_observer *observer,
                                                     int64_t created_ns,
                                                     uint64_t from,
                                                     uint64_t to,
                                                     delivery_messages_visitor *visitor,
                                                     void *context,
                                                     struct delivery_stream_state *ret_state,
                                                     pawl_error *reterr);

/* Tells a watch how far it is. CANCELLED: it has had enough. */
PAWL_MUST_USE pawl_status pawl__delivery_show_progress(struct pawl_delivery *delivery,
                                                       const pawl_watch *watch,
                                                       uint64_t done,
                                                       uint64_t total,
                                                       pawl_error *reterr);

/* --- stores.c: what is done with the stores of a pipeline that does not run --- */

/* Applies what is pending and retries what waits, until nothing moves. */
PAWL_MUST_USE pawl_status pawl__delivery_settle_all(struct delivery_runner *runner,
                                                    pawl_error *reterr);

/* Checkpoints, so that the log can be cleaned up behind it. */
void pawl__delivery_checkpoint_now(struct delivery_runner *runner);

/* --- service.c --- */

/* Stops a pipeline and keeps it from being started, changed or removed until it is let go; `why` is a participle:
 * "replayed". BUSY: somebody has it already. Without `manage`. */
PAWL_MUST_USE pawl_status pawl__delivery_hold(struct pawl_delivery *delivery,
                                              const char *name,
                                              const char *why,
                                              struct delivery_runner **ret_runner,
                                              bool *ret_was_running,
                                              pawl_error *reterr);
void pawl__delivery_let_go(struct delivery_runner *runner, bool start);

/* BUSY: somebody holds it. The caller holds `manage`. */
PAWL_MUST_USE pawl_status pawl__delivery_check_free(const struct delivery_runner *runner,
                                                    pawl_error *reterr);

/* NOT_FOUND: no such pipeline. The caller holds `manage`, which keeps it from being removed. */
PAWL_MUST_USE pawl_status pawl__delivery_find(struct pawl_delivery *delivery,
                                              const char *name,
                                              struct delivery_runner **ret_runner,
                                              pawl_error *reterr);

#endif
