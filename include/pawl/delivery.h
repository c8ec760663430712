/* <pawl/delivery.h>: events from a source into DuckDB, each exactly once in effect.
 *
 * A pipeline reads one source (a JetStream stream, a ledger, a file of JSON lines, standard input), writes every event
 * into a write-ahead log of its own before the source hears that it has it, and from there into one table. Rows and
 * the place that they came from commit in one transaction, so a crash anywhere loses no event and doubles none.
 *
 *     pawl_delivery_open("data", NULL, &delivery, &error);
 *     pawl_pipeline_add(delivery, pawl_view_of("{\"name\": \"orders\", \"from\": \"file:/srv/orders.jsonl\"}"), &error);
 *     pawl_pipeline_start(delivery, "orders", &error);
 *     pawl_pipeline_drain(delivery, "orders", 60000, NULL, &error);
 *     pawl_delivery_close(delivery, 0, &error);
 *
 * In the directory: `pipelines/NAME.json` (declarations), `wal/consumer/NAME/` (write-ahead logs), `analytics.duckdb`
 * (tables, failed_events, delivery_losses). One process at a time has them open; another one gets BUSY.
 *
 * Threads: any function from any thread. A pipeline that runs has two threads of its own: one takes in, one applies. */
#ifndef PAWL_DELIVERY_H
#define PAWL_DELIVERY_H

#include <pawl/pawl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_PIPELINE_NAME_BYTES_MAX 63 /* a-z 0-9 _ - */
#define PAWL_PIPELINES_MAX 256
#define PAWL_PIPELINE_GENERATIONS_MAX 4096 /* of one pipeline, over its life */
#define PAWL_DECLARATION_BYTES_MAX ((size_t)1 << 18)

typedef struct pawl_delivery pawl_delivery;

typedef struct pawl_delivery_options {
    size_t size;             /* PAWL_DELIVERY_OPTIONS_INIT sets it */
    uint32_t busy_ms_max;    /* how long another process that has the directory is waited for; 0 */
    uint32_t close_ms_max;   /* 30,000 */
    uint64_t memory_max;     /* bytes of memory of a DuckDB file; 1 GiB */
    uint64_t free_space_min; /* bytes of the disk that the write-ahead logs leave free; 256 MiB */
    uint32_t batch_max;      /* events of one transaction, 1 to 1,000,000; 20,000 */

    /* Of every write-ahead log. */
    bool unsafe_no_sync; /* a power cut loses what the source was told we have */
    bool no_compression;
    uint32_t compactors;        /* threads, 2 at the least; 2 */
    uint64_t memtable_bytes;    /* 16 MiB */
    uint64_t blob_file_bytes;   /* large payloads are in files of this size; 64 MiB */
    uint32_t retry_interval_ms; /* between two looks at events that wait for a retry; 30,000 */
    uint32_t retry_backoff_ms;  /* of the first retry; doubles up to 300,000; 5,000 */
    uint32_t retries_max;       /* then an event goes to failed_events; 100 */
    uint32_t lease_ms;          /* 120,000 */
    uint64_t
        entry_ttl_ms; /* of an event that keeps failing, in time that its pipeline runs; 7 days */
    uint64_t
        pending_bytes_max;     /* of a pipeline: beyond it nothing is read from the source; 4 GiB */
    uint64_t failed_bytes_max; /* the same for events in failed_events; 1 GiB */
    const char *wal_dir;       /* where write-ahead logs are; NULL: wal/consumer in the directory */
} pawl_delivery_options;

#define PAWL_DELIVERY_OPTIONS_INIT                                                              \
    {                                                                                           \
        sizeof(pawl_delivery_options), 0, 30000, UINT64_C(1) << 30, UINT64_C(256) << 20, 20000, \
            false, false, 2, UINT64_C(16) << 20, UINT64_C(64) << 20, 30000, 5000, 100, 120000,  \
            UINT64_C(604800000), UINT64_C(4) << 30, UINT64_C(1) << 30, NULL                     \
    }

/* Opens the directory, and makes it when it is missing. Starts nothing. `options` may be NULL.
 *
 * BUSY: another process has it, and the message names it. CORRUPT: a declaration cannot be read; nothing is changed. */
PAWL_API PAWL_MUST_USE pawl_status pawl_delivery_open(const char *dir,
                                                      const pawl_delivery_options *options,
                                                      pawl_delivery **ret_delivery,
                                                      pawl_error *reterr);

/* Stops every pipeline after the transaction that is under way; calls that wait return CLOSED. See pawl.h, Closing. */
PAWL_API pawl_status pawl_delivery_close(pawl_delivery *delivery,
                                         uint32_t timeout_ms,
                                         pawl_error *reterr);

/* Starts every pipeline that is neither paused nor reads standard input. What cannot be opened now is tried again,
 * with growing pauses; pawl_pipeline_get says why. */
PAWL_API PAWL_MUST_USE pawl_status pawl_delivery_start(pawl_delivery *delivery, pawl_error *reterr);

/* --- failed events --- */

typedef enum pawl_failed_status {
    PAWL_FAILED_PENDING,
    PAWL_FAILED_RETRYING, /* a retry is under way, or broke off; `pending` again when the pipeline is next opened */
    PAWL_FAILED_RESOLVED,
    PAWL_FAILED_ABANDONED
} pawl_failed_status;

/* "pending"; "unknown" for a number that is no status. Static. */
PAWL_API const char *pawl_failed_status_name(pawl_failed_status status);

/* A row of failed_events. Times are microseconds since 1970, 0: never; views are empty where there is nothing. */
typedef struct pawl_failed_event {
    size_t size;
    pawl_view pipeline;
    pawl_view id; /* a UUID */
    uint64_t lsn; /* of the pipeline's write-ahead log: the order in which events arrived */
    pawl_view transaction_id;
    pawl_view event_id;
    pawl_view source;
    pawl_view subject;
    pawl_view session_key;
    pawl_view correlation_key;
    pawl_failed_status status;
    pawl_view failure_reason;
    pawl_view failure_layer;
    pawl_view last_error;
    int32_t retry_count;
    bool max_retries_exceeded;
    int64_t received_at_us;
    int64_t failed_at_us;
    int64_t last_retry_at_us;
    pawl_view resolution; /* how it was resolved: "delivered" or "filtered" by a retry, "by_hand" */
    int64_t resolved_at_us;
    pawl_view resolved_by;
    pawl_view resolution_notes;
    pawl_view
        payload_encoding; /* "json"; "base64": event_payload is {"base64": ...}; "base64_cut": only its beginning */
    pawl_view headers;        /* JSON, a list of [name, value] */
    pawl_view event_payload;  /* JSON, as it arrived */
    pawl_view edited_payload; /* JSON that was delivered in its place */
} pawl_failed_event;

typedef struct pawl_failed_filter {
    size_t size;
    pawl_view id;      /* this one; the rest does not count then */
    unsigned statuses; /* bits 1 << pawl_failed_status; 0: any */
    pawl_view reason;  /* this and the next two, empty: any */
    pawl_view source;
    pawl_view transaction_id;
    int64_t since_us; /* when it failed, inclusive; 0: no bound */
    int64_t until_us; /* exclusive; 0: no bound */
    bool newest_first;
} pawl_failed_filter;

#define PAWL_FAILED_FILTER_INIT                                                                  \
    {                                                                                            \
        sizeof(pawl_failed_filter), { NULL, 0 }, 0, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, 0, 0, \
            false                                                                                \
    }

typedef bool (*pawl_failed_visit)(void *context, const pawl_failed_event *event);

/* Visits the failed events of a pipeline in the order of their LSNs, from the LSN page->from on, also while it runs.
 * `filter` NULL: all. Not one moment: what changes meanwhile may be seen or not. NOT_FOUND: no such pipeline. */
PAWL_API PAWL_MUST_USE pawl_status pawl_failed_list(pawl_delivery *delivery,
                                                    const char *pipeline,
                                                    const pawl_failed_filter *filter,
                                                    pawl_page *page,
                                                    pawl_failed_visit visit,
                                                    void *context,
                                                    pawl_error *reterr);

/* "{...}" on one line; pawl_free ends it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_failed_to_json(const pawl_failed_event *event,
                                                       char **ret_json,
                                                       size_t *ret_len,
                                                       pawl_error *reterr);

typedef enum pawl_failed_action {
    PAWL_FAILED_RETRY,   /* pending or abandoned: deliver it after all */
    PAWL_FAILED_RESOLVE, /* pending or abandoned: somebody has dealt with it elsewhere */
    PAWL_FAILED_ABANDON  /* pending: nobody will */
} pawl_failed_action;

typedef struct pawl_failed_decision {
    size_t size;
    pawl_view by;             /* who decides, up to 200 bytes; must be given */
    pawl_view notes;          /* up to 4,096 bytes */
    pawl_view edited_payload; /* JSON to deliver in place of the payload, for a retry of one id */
    uint64_t expected;        /* without an id: what pawl_failed_count said */
} pawl_failed_decision;

#define PAWL_FAILED_DECISION_INIT                                              \
    {                                                                          \
        sizeof(pawl_failed_decision), { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, 0 \
    }

typedef struct pawl_failed_result {
    size_t size;
    uint64_t matched;
    uint64_t delivered; /* by a retry: rows of the table now */
    uint64_t filtered;  /* by a retry: the filter wants no row */
    uint64_t refused;   /* a retry failed again: pending, with the new error */
    uint64_t closed;    /* resolved or abandoned */
    char error[160];    /* of the last that was refused */
} pawl_failed_result;

#define PAWL_FAILED_RESULT_INIT                    \
    {                                              \
        sizeof(pawl_failed_result), 0, 0, 0, 0, 0, \
        {                                          \
            '\0'                                   \
        }                                          \
    }

/* How many events an action would be about. */
PAWL_API PAWL_MUST_USE pawl_status pawl_failed_count(pawl_delivery *delivery,
                                                     const char *pipeline,
                                                     pawl_failed_action action,
                                                     const pawl_failed_filter *filter,
                                                     uint64_t *ret_count,
                                                     pawl_error *reterr);

/* Retries, resolves or abandons what the filter means, also while the pipeline runs: its thread then does it between two
 * transactions. The row of the table, the status and the counters change together, and PAWL_OK means that write-ahead
 * log and table both know. Its order does not count.
 *
 * NOT_FOUND: no such pipeline or id. CONFLICT: that one is resolved already; or other than `expected` match by now, and
 * nothing was done. UNAVAILABLE: the table cannot be written to now. After an error *ret_result has what was done before. */
PAWL_API PAWL_MUST_USE pawl_status pawl_failed_act(pawl_delivery *delivery,
                                                   const char *pipeline,
                                                   pawl_failed_action action,
                                                   const pawl_failed_filter *filter,
                                                   const pawl_failed_decision *decision,
                                                   pawl_failed_result *ret_result,
                                                   pawl_error *reterr);

/* --- pipelines --- */

/* Declares a pipeline, durably, and makes its table. The declaration is a JSON object:
 *
 *   name           a-z 0-9 _ -
 *   from           "nats://HOST:4222" or "tls://...", "ledger:LOCATION", "file:PATH", "http" (events are handed
 *                  in: pawl_pipeline_submit, POST /v1/pipelines/NAME/events), "-" (standard input)
 *   into           its table; "events". No two pipelines share one
 *   source         begins the transaction id of events that bring none of their own; as a rule the name
 *   id_field       key of the payload with the producer's id; without it ids come from headers, or from the place
 *   generation     of a file or standard input; "1". Another one means other lines
 *   stream, consumer, subject, create_stream                      of JetStream; consumer: "pawl-NAME"
 *   nkey_file, creds_file, tls_ca, tls_certificate, tls_key        of NATS
 *   complete_turns  of a ledger: open turns wait, abandoned ones are left out
 *   columns        [{"name", "type", "path", "from", "expression", "required", "lenient"}]; without any the default columns.
 *                  path: "$.key"; from: "transaction_id", "source", "event_id", "subject", "headers", "received" instead of
 *                  a path; expression: of DuckDB, over `payload`
 *   filter         an expression: only events for which it is true become rows
 *   unique_index   an index on transaction_id, which costs two thirds of the speed
 *
 * Declared again: what may change is changed, and a pipeline that runs is started again. CONFLICT: what may not
 * (kind of source, source, id_field, stream, table); another file in the same generation; a generation that was followed by another. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_add(pawl_delivery *delivery,
                                                     pawl_view declaration,
                                                     pawl_error *reterr);

/* Stops it and forgets its declaration and write-ahead log; table and failed_events stay. CONFLICT: events are still
 * pending in the log, unless they are to be dropped. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_remove(pawl_delivery *delivery,
                                                        const char *name,
                                                        bool unsafe_drop_pending,
                                                        pawl_error *reterr);

/* Starts one and returns when it runs. Any failure to open it is returned, and it does not run; later ones it waits out
 * by itself. One that runs is fine. CONFLICT: it is paused. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_start(pawl_delivery *delivery,
                                                       const char *name,
                                                       pawl_error *reterr);

/* Stops one, and keeps pawl_delivery_start from starting it again, also after a restart. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_pause(pawl_delivery *delivery,
                                                       const char *name,
                                                       pawl_error *reterr);

/* The opposite: no longer paused. Starts it when pawl_delivery_start has been called. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_resume(pawl_delivery *delivery,
                                                        const char *name,
                                                        pawl_error *reterr);

typedef enum pawl_pipeline_state {
    PAWL_PIPELINE_STOPPED,
    PAWL_PIPELINE_PAUSED,
    PAWL_PIPELINE_STARTING, /* or waiting to be opened again */
    PAWL_PIPELINE_RUNNING,
    PAWL_PIPELINE_FAILED /* stopped on an error that does not pass by itself */
} pawl_pipeline_state;

/* "running"; "unknown" for a number that is no state. Static. */
PAWL_API const char *pawl_pipeline_state_name(pawl_pipeline_state state);

/* What recovery found when the pipeline was last opened. */
typedef struct pawl_pipeline_recovery {
    size_t size;
    const char *pairing;    /* of log and table: "first", "resume", "replay", "rebuild", "adopt" */
    uint64_t total_pending; /* events that the log had as pending */
    uint64_t already_committed; /* of these, in the table */
    uint64_t recovered;         /* committed since */
    uint64_t expired;
    uint64_t failed;
    uint64_t skipped; /* still to be tried */
    int64_t duration_us;
} pawl_pipeline_recovery;

/* accepted = delivered + filtered + failed + pending, always and across restarts. */
typedef struct pawl_pipeline_status {
    size_t size;
    pawl_view name;
    pawl_view from; /* without passwords */
    pawl_view into;
    pawl_view source;
    pawl_view generation;
    pawl_pipeline_state state;
    uint64_t accepted;
    uint64_t delivered;
    uint64_t filtered;
    uint64_t failed;
    uint64_t pending;
    uint64_t
        sequence; /* up to this place of the source all is applied: line, offset, stream sequence */
    uint64_t applied_lsn;

    /* Since it was started. */
    uint64_t duplicates;
    uint64_t conflicts;
    uint64_t retries;
    uint64_t losses;      /* rows of delivery_losses: what the source lost before we had it */
    uint64_t outages;     /* of the sink */
    bool breaker_is_open; /* the sink is away: nothing is tried for a while */
    pawl_view last_error; /* empty: none since the last success */
    const pawl_pipeline_recovery
        *recovery;           /* NULL: it has not run since the directory was opened */
    pawl_status last_status; /* of last_error */
} pawl_pipeline_status;

typedef bool (*pawl_pipeline_visit)(void *context, const pawl_pipeline_status *status);

/* Visits one, or those of a page in the order of their names. NOT_FOUND: no such pipeline. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_get(pawl_delivery *delivery,
                                                     const char *name,
                                                     pawl_pipeline_visit visit,
                                                     void *context,
                                                     pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_list(pawl_delivery *delivery,
                                                      pawl_page *page,
                                                      pawl_pipeline_visit visit,
                                                      void *context,
                                                      pawl_error *reterr);

/* All of them as each reported last, in the order of their names. Waits for no store: of a pipeline that has not run since
 * the directory was opened only name, source, table and state are known. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_peek(pawl_delivery *delivery,
                                                      pawl_pipeline_visit visit,
                                                      void *context,
                                                      pawl_error *reterr);

/* "{...}" on one line; pawl_free ends it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_to_json(const pawl_pipeline_status *status,
                                                         char **ret_json,
                                                         size_t *ret_len,
                                                         pawl_error *reterr);

/* Waits until a running pipeline has taken in everything that its source has, and all of it is in the table, filtered
 * or in failed_events. 0 ms: for as long as it takes. `watch` is told about ten times a second how many events of those
 * that were taken in are settled; it may ask for the status.
 *
 * TIMEOUT: not yet. Its own error when it has stopped on one. CONFLICT: it does not run. INVALID: the last line of a
 * file has no line feed; all others are delivered. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_drain(pawl_delivery *delivery,
                                                       const char *name,
                                                       uint32_t timeout_ms,
                                                       const pawl_watch *watch,
                                                       pawl_error *reterr);

/* What a declaration would make of the first events of its source, one JSON object each: {"transaction_id", "verdict":
 * "row", "filtered" or "failed", "row", "reason", "error"}. Writes nothing anywhere. Not for NATS: UNSUPPORTED. */
typedef bool (*pawl_json_visit)(void *context, const pawl_view *json);
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_preview(pawl_view declaration,
                                                         uint32_t limit,
                                                         pawl_json_visit visit,
                                                         void *context,
                                                         pawl_error *reterr);

/* --- handing events in --- */

#define PAWL_INCOMING_BATCH_MAX 10000 /* events of one call */

typedef struct pawl_incoming {
    size_t size;
    pawl_view
        event_id; /* the producer's own; empty: the pipeline's id_field names the key of the payload that has it */
    uint64_t sequence; /* of several events with one id; 0 otherwise */
    pawl_view source;  /* empty: that of the pipeline */
    pawl_view subject;
    pawl_view payload;
} pawl_incoming;

#define PAWL_INCOMING_INIT                                               \
    {                                                                    \
        sizeof(pawl_incoming), { NULL, 0 }, 0, { NULL, 0 }, { NULL, 0 }, \
        {                                                                \
            NULL, 0                                                      \
        }                                                                \
    }

typedef enum pawl_submit_outcome {
    PAWL_SUBMIT_ACCEPTED,
    PAWL_SUBMIT_DUPLICATE, /* it was there already, with the same payload */
    PAWL_SUBMIT_CONFLICT   /* its id was there with another payload: this one is in failed_events */
} pawl_submit_outcome;

/* "accepted"; "unknown" for a number that is no outcome. Static. */
PAWL_API const char *pawl_submit_outcome_name(pawl_submit_outcome outcome);

/* Hands events to a pipeline that runs and whose `from` is "http". PAWL_OK: every one of them is in its write-ahead log, on
 * disk; ret_outcomes[i] says what event i is. Calls at the same time share one fsync. Not all or none: after an error some
 * may be accepted, and sending them all again, with the same ids, makes them duplicates.
 *
 * INVALID      `index` says which event: it has no id, or a bad one. Nothing was accepted
 * NOT_FOUND    no such pipeline
 * CONFLICT     the pipeline reads another source
 * BUSY         its write-ahead log is full (pending_bytes_max, failed_bytes_max), or too many events wait: try again later
 * UNAVAILABLE  it is paused or does not run now, or the log cannot be written to: try again later */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_submit(pawl_delivery *delivery,
                                                        const char *name,
                                                        const pawl_incoming *events,
                                                        size_t count,
                                                        pawl_submit_outcome *ret_outcomes,
                                                        pawl_error *reterr);

/* `outcomes` are as many as there were events. */
typedef void (*pawl_submit_done)(void *context,
                                 const pawl_submit_outcome *outcomes,
                                 const pawl_error *outcome);

/* The same without waiting: see Async in pawl.h. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_submit_async(pawl_delivery *delivery,
                                                              const char *name,
                                                              const pawl_incoming *events,
                                                              size_t count,
                                                              pawl_submit_done done,
                                                              void *context,
                                                              pawl_error *reterr);

/* --- write-ahead logs --- */

typedef struct pawl_wal_status {
    size_t size;
    uint64_t first_lsn; /* the lowest that is still there; one above last_lsn without any */
    uint64_t last_lsn;  /* the highest ever given out */
    uint64_t pending;   /* entries */
    uint64_t confirmed; /* in the table, and kept until a checkpoint covers them */
    uint64_t failed;    /* in failed_events, and kept until somebody has dealt with them */
    uint64_t pending_bytes;
    uint64_t confirmed_bytes;
    uint64_t failed_bytes;
    uint64_t index_entries; /* ids that duplicates are found by; about */
    uint64_t index_bytes;
    uint64_t epoch;
    uint64_t fence;
    char lease_holder[64]; /* who had it last */
    int64_t lease_until_us;
} pawl_wal_status;

#define PAWL_WAL_STATUS_INIT                                                  \
    {                                                                         \
        sizeof(pawl_wal_status), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0 \
    }

/* NOT_FOUND: no such pipeline. One that never ran has a log without entries. */
PAWL_API PAWL_MUST_USE pawl_status pawl_wal_get_status(pawl_delivery *delivery,
                                                       const char *name,
                                                       pawl_wal_status *ret_status,
                                                       pawl_error *reterr);

typedef enum pawl_wal_state {
    PAWL_WAL_PENDING,
    PAWL_WAL_CONFIRMED,
    PAWL_WAL_FAILED
} pawl_wal_state;

typedef struct pawl_wal_entry {
    size_t size;
    uint64_t lsn;
    pawl_wal_state state;
    pawl_view transaction_id;
    pawl_view source;
    pawl_view event_id;
    pawl_view subject;
    pawl_view message_id;
    pawl_view payload; /* byte for byte */
    uint64_t sequence; /* its place in the source */
    uint32_t attempts;
    int64_t created_at_us;
    int64_t last_attempt_at_us; /* 0: none */
    int64_t ended_at_us;        /* confirmed or failed; 0: not yet */
    pawl_view last_error;
    pawl_view failure_reason;
} pawl_wal_entry;

typedef struct pawl_wal_filter {
    size_t size;
    uint64_t to;  /* the last LSN; 0: all */
    bool pending; /* only entries that are pending */
} pawl_wal_filter;

#define PAWL_WAL_FILTER_INIT              \
    {                                     \
        sizeof(pawl_wal_filter), 0, false \
    }

typedef bool (*pawl_wal_visit)(void *context, const pawl_wal_entry *entry);

/* Visits entries in the order of their LSNs, from page->from on; `filter` NULL: all. Also while the pipeline runs. */
PAWL_API PAWL_MUST_USE pawl_status pawl_wal_read(pawl_delivery *delivery,
                                                 const char *name,
                                                 const pawl_wal_filter *filter,
                                                 pawl_page *page,
                                                 pawl_wal_visit visit,
                                                 void *context,
                                                 pawl_error *reterr);

/* "pending"; "unknown" for a number that is no state. Static. */
PAWL_API const char *pawl_wal_state_name(pawl_wal_state state);

/* "{...}" on one line; pawl_free ends it. A payload that is no JSON is a string. */
PAWL_API PAWL_MUST_USE pawl_status pawl_wal_entry_to_json(const pawl_wal_entry *entry,
                                                          char **ret_json,
                                                          size_t *ret_len,
                                                          pawl_error *reterr);

/* --- replay, rebuild, trace, audit ---
 *
 * All four may take long: see Progress in pawl.h. */

typedef enum pawl_replay_by {
    PAWL_REPLAY_LSN,      /* what the write-ahead log still has */
    PAWL_REPLAY_SEQUENCE, /* stream sequence, line of a file, offset of a ledger */
    PAWL_REPLAY_TIME      /* when the stream stored it; without such a time, when it arrived here */
} pawl_replay_by;

typedef struct pawl_replay_range {
    size_t size;
    pawl_replay_by by;
    uint64_t from;   /* the first LSN or sequence; 0: from the beginning */
    uint64_t to;     /* the last one; 0: as far as the pipeline has read */
    int64_t from_us; /* by time: inclusive, microseconds since 1970; 0: from the beginning */
    int64_t to_us;   /* by time: exclusive; 0: as far as the pipeline has read */
} pawl_replay_range;

#define PAWL_REPLAY_RANGE_INIT                                      \
    {                                                               \
        sizeof(pawl_replay_range), PAWL_REPLAY_SEQUENCE, 0, 0, 0, 0 \
    }

typedef struct pawl_replay_result {
    size_t size;
    uint64_t from_wal;    /* events that were read from the write-ahead log */
    uint64_t from_source; /* and from the source: most of these are the same events */
    uint64_t present;     /* of both: in the table, filtered, in failed_events, or on the way */
    uint64_t delivered;   /* were missing, and are rows now */
    uint64_t filtered;
    uint64_t failed;  /* were missing, and are in failed_events now */
    uint64_t pending; /* the table refuses them for the moment: they are retried */
    uint64_t gone;    /* LSNs or sequences of the range that nobody holds any more */
} pawl_replay_result;

#define PAWL_REPLAY_RESULT_INIT                            \
    {                                                      \
        sizeof(pawl_replay_result), 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* Reads a part of what a pipeline has already read once more, from its write-ahead log and from its source, and delivers what
 * the table lacks. What the table, the filtered events or failed_events have under the same transaction id and payload
 * is not delivered again. A pipeline that runs stops meanwhile and is started again.
 *
 * PAWL_OK: all of it is settled. BUSY: the pipeline is replayed or rebuilt already. INVALID: the range is upside down.
 * UNSUPPORTED: standard input cannot be read again, except by LSN. After an error *ret_result has what was done before. */
PAWL_API PAWL_MUST_USE pawl_status pawl_pipeline_replay(pawl_delivery *delivery,
                                                        const char *name,
                                                        const pawl_replay_range *range,
                                                        const pawl_watch *watch,
                                                        pawl_replay_result *ret_result,
                                                        pawl_error *reterr);

/* What became of one pipeline. Views are empty where there is nothing. */
typedef struct pawl_rebuilt {
    size_t size;
    pawl_view pipeline;
    uint64_t delivered; /* rows of the table now */
    uint64_t filtered;
    uint64_t failed;
    uint64_t pending;
    uint64_t losses;    /* rows of delivery_losses that this rebuild added */
    pawl_status status; /* PAWL_OK: all that its log and its source hold is in the table */
    pawl_view error;    /* why not: its source is away, or cannot be read again */
} pawl_rebuilt;

typedef bool (*pawl_rebuilt_visit)(void *context, const pawl_rebuilt *rebuilt);

typedef struct pawl_rebuild_result {
    size_t size;
    bool file_was_missing;
    bool file_was_damaged;  /* it did not open */
    char quarantined[1024]; /* where the damaged file is now; empty: nowhere */
    uint64_t pipelines;
    uint64_t incomplete; /* of them: their status is not PAWL_OK */
} pawl_rebuild_result;

#define PAWL_REBUILD_RESULT_INIT                            \
    {                                                       \
        sizeof(pawl_rebuild_result), false, false, "", 0, 0 \
    }

/* Makes a lost or damaged DuckDB file anew: from the write-ahead logs, then from the sources. What none of them holds becomes
 * a row of delivery_losses. A file that does not open is moved aside first (`quarantined`), with its log; one that
 * opens is kept, unless `replace` is set. Pipelines that run stop meanwhile and are started again; `visit` (or NULL) is
 * told of each.
 *
 * PAWL_OK: every pipeline has all that its log and source hold. UNAVAILABLE: some do not, see `visit`; their pipelines go on
 * with what is missing when they run. BUSY: another process has the file. */
PAWL_API PAWL_MUST_USE pawl_status pawl_delivery_rebuild(pawl_delivery *delivery,
                                                         bool replace,
                                                         const pawl_watch *watch,
                                                         pawl_rebuilt_visit visit,
                                                         void *context,
                                                         pawl_rebuild_result *ret_result,
                                                         pawl_error *reterr);

typedef enum pawl_trace_place {
    PAWL_TRACE_OUTBOX,
    PAWL_TRACE_SOURCE, /* the stream, the file or the ledger; `sequence` says where */
    PAWL_TRACE_WAL,    /* `lsn` */
    PAWL_TRACE_TABLE,
    PAWL_TRACE_FILTERED,
    PAWL_TRACE_FAILED
} pawl_trace_place;

/* "outbox"; "unknown" for a number that is no place. Static. */
PAWL_API const char *pawl_trace_place_name(pawl_trace_place place);

/* One step of an event on its way. Views are empty, numbers and times 0 where nobody knows. */
typedef struct pawl_trace_step {
    size_t size;
    pawl_trace_place place;
    pawl_view pipeline;
    pawl_view transaction_id;
    pawl_view
        state; /* outbox: "pending", "acknowledged", "failed"; log: as pawl_wal_state, "retrying" or "cleaned_up"; failed: its status */
    uint64_t number; /* of the outbox */
    uint64_t sequence;
    uint64_t lsn;
    int64_t at_us;    /* accepted, stored, appended, committed, failed: microseconds since 1970 */
    pawl_view detail; /* a table, a subject, or a reason and an error */
} pawl_trace_step;

typedef bool (*pawl_trace_visit)(void *context, const pawl_trace_step *step);

typedef struct pawl_trace_options {
    size_t size;
    const char *pipeline;    /* NULL: all of them */
    const char *outbox_dir;  /* of `pawl publish`; NULL: wal/producer in the directory */
    bool no_source;          /* do not search the source when log and table do not know the place */
    const pawl_watch *watch; /* NULL: nobody */
} pawl_trace_options;

#define PAWL_TRACE_OPTIONS_INIT                             \
    {                                                       \
        sizeof(pawl_trace_options), NULL, NULL, false, NULL \
    }

/* Follows one event: outbox, source, write-ahead log, and the row, the filtered or the failed event that it became. `id` is a
 * transaction id or the producer's event id, which several events may share. Visits their steps in this order, pipeline by pipeline. `options`
 * may be NULL.
 *
 * NOT_FOUND: nobody knows it. A source or an outbox that cannot be read is left out, and *ret_skipped (or NULL) counts it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_delivery_trace(pawl_delivery *delivery,
                                                       pawl_view id,
                                                       const pawl_trace_options *options,
                                                       pawl_trace_visit visit,
                                                       void *context,
                                                       uint64_t *ret_skipped,
                                                       pawl_error *reterr);

typedef enum pawl_audit_fault {
    PAWL_AUDIT_LOST,       /* the source or the log has it, and nothing says what became of it */
    PAWL_AUDIT_DUPLICATED, /* more than one row */
    PAWL_AUDIT_MISCOUNTED  /* the table does not have as many as its counters say */
} pawl_audit_fault;

/* "lost"; "unknown" for a number that is no fault. Static. */
PAWL_API const char *pawl_audit_fault_name(pawl_audit_fault fault);

typedef struct pawl_audit_finding {
    size_t size;
    pawl_audit_fault fault;
    pawl_view pipeline;
    pawl_view transaction_id; /* empty: not about one event */
    uint64_t sequence;        /* 0: not known */
    uint64_t lsn;             /* 0: not known */
    pawl_view what;
} pawl_audit_finding;

typedef bool (*pawl_audit_visit)(void *context, const pawl_audit_finding *finding);

typedef struct pawl_audit_report {
    size_t size;
    uint64_t pipelines;
    uint64_t source_events; /* compared: up to the place that the table covers */
    uint64_t waiting;       /* places of the sources behind it: not read yet */
    uint64_t log_entries;
    uint64_t rows;
    uint64_t filtered;
    uint64_t failed;
    uint64_t pending;        /* accepted, and not in the table yet */
    uint64_t recorded;       /* rows of delivery_losses: what the sources lost, on record */
    uint64_t unread_sources; /* standard input and HTTP, which nobody can read again */
    uint64_t lost;
    uint64_t duplicated;
    uint64_t miscounted;
} pawl_audit_report;

#define PAWL_AUDIT_REPORT_INIT                                           \
    {                                                                    \
        sizeof(pawl_audit_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* Compares source, write-ahead log, table and failed_events of a pipeline, or of all (`name` NULL), also while they run:
 * every event that the source and the log hold up to the place that the table covers must be in the table, among the
 * filtered or in failed_events, once. Reads the source with a consumer of its own.
 *
 * PAWL_OK: nothing is wrong. CORRUPT: something is; `visit` (or NULL) was told of each, and the report is filled in.
 * Anything else: it could not be checked. */
PAWL_API PAWL_MUST_USE pawl_status pawl_delivery_audit(pawl_delivery *delivery,
                                                       const char *name,
                                                       const pawl_watch *watch,
                                                       pawl_audit_visit visit,
                                                       void *context,
                                                       pawl_audit_report *ret_report,
                                                       pawl_error *reterr);

/* --- SQL --- */

typedef struct pawl_query_options {
    size_t size;
    uint64_t memory_max; /* bytes; 256 MiB */
    uint32_t timeout_ms; /* 30,000 */
} pawl_query_options;

#define PAWL_QUERY_OPTIONS_INIT                                \
    {                                                          \
        sizeof(pawl_query_options), UINT64_C(256) << 20, 30000 \
    }

typedef enum pawl_query_kind {
    PAWL_QUERY_NULL,
    PAWL_QUERY_NUMBER,  /* `text` is a JSON number */
    PAWL_QUERY_BOOLEAN, /* "true", "false" */
    PAWL_QUERY_TEXT
} pawl_query_kind;

/* Complete: it has no size. */
typedef struct pawl_query_cell {
    pawl_query_kind kind;
    pawl_view text;
} pawl_query_cell;

typedef struct pawl_query_row {
    size_t size;
    size_t count;             /* of columns */
    const char *const *names; /* of the columns */
    const pawl_query_cell *cells;
} pawl_query_row;

typedef bool (*pawl_query_visit)(void *context, const pawl_query_row *row);

/* Runs one statement on the DuckDB file of a data directory, in a transaction that only reads, and visits its rows.
 * SQL sees the tables of the file: no other files, no network. `options` may be NULL.
 *
 * DENIED: it would write. INVALID: what DuckDB does not understand. TIMEOUT, NOMEM: over a limit. BUSY: another handle or
 * process has the file. NOT_FOUND: nothing was delivered there yet. */
PAWL_API PAWL_MUST_USE pawl_status pawl_delivery_query(const char *dir,
                                                       const char *sql,
                                                       const pawl_query_options *options,
                                                       pawl_query_visit visit,
                                                       void *context,
                                                       pawl_error *reterr);

/* The same on the file of an open directory, beside the pipelines that write to it: memory_max does not count, the limit is
 * that of the directory's options. Checkpoints wait until it has ended. `visit` must not call anything on the handle. BUSY: 4
 * of them run already, or the file is just being opened again. */
PAWL_API PAWL_MUST_USE pawl_status pawl_delivery_select(pawl_delivery *delivery,
                                                        const char *sql,
                                                        const pawl_query_options *options,
                                                        pawl_query_visit visit,
                                                        void *context,
                                                        pawl_error *reterr);

/* --- metrics --- */

/* Counts of all pipelines in the text format of Prometheus, each with the label `pipeline`: consumer_wal_writes_total,
 * consumer_wal_pending_entries, pawl_delivery_events (accepted = delivered + filtered + failed + pending) and so on. Those
 * of a pipeline begin when it first runs. *ret_text is NUL-terminated, for pawl_free. `ret_len` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_delivery_get_metrics(pawl_delivery *delivery,
                                                             char **ret_text,
                                                             size_t *ret_len,
                                                             pawl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
