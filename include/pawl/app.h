/* <pawl/app.h>: an application whose events and records are numbered by sequences.
 *
 * An application has workspaces, spread over partitions (workspace modulo partitions). A command of a
 * workspace becomes one event: in the log of the partition (PLog), in the log of the workspace (WLog),
 * and in the records that it creates and updates. All of it is one atomic write.
 *
 *     pawl_app_create new = { .size = sizeof(new), .record_class = PAWL_APP_C_RECORD, .raw_id = 1,
 *                             .table = pawl_view_of("order"), .data = pawl_view_of("{\"sum\": 5}") };
 *     pawl_app_command command = { .size = sizeof(command), .workspace = 7, .kind = pawl_view_of("shop"),
 *                                  .creates = &new, .create_count = 1 };
 *     pawl_app_exec(app, &command, &response, &error);       response->ids[0].id is the real id
 *
 * Threads: any function from any thread; close and free when nobody is in a call. Commands of a
 * partition queue, and one fsync serves all that wait. Visitors may call everything but pawl_app_close, a `done`
 * (pawl.h, Async) also nothing that waits for a command: that is WRONG_THREAD.
 *
 * A NULL where something is needed, or a view with a length but no data, is INVALID, and the message names
 * it. WRONG_THREAD, UNKNOWN_KIND and UNKNOWN_SEQUENCE are details (PAWL_DETAIL_...) of INVALID; EXHAUSTED is one of
 * FAILED, KEY_REUSED one of CONFLICT. */
#ifndef PAWL_APP_H
#define PAWL_APP_H

#include <pawl/sequencer.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_APP_NAME_BYTES_MAX 128 /* of an application, kind, sequence or table */
#define PAWL_APP_KEY_BYTES_MAX 255  /* of an idempotency key */
#define PAWL_APP_PARTITIONS_MAX 256
#define PAWL_APP_KINDS_MAX 256
#define PAWL_APP_SEQUENCES_MAX 128 /* of a kind, of its own */
#define PAWL_APP_RECORDS_MAX 1000  /* that a command creates and updates */
#define PAWL_APP_COMMAND_BYTES_MAX ((size_t)4 << 20)
#define PAWL_APP_WORKSPACE_MAX (UINT64_MAX >> 1) /* what JSON can hold */

/* Record ids: four ranges that never meet, so that an id names one record. */
#define PAWL_APP_RAW_ID_MAX UINT64_C(65535) /* from 1: what a command calls its new records */
#define PAWL_APP_SINGLETON_ID_MIN UINT64_C(65536)
#define PAWL_APP_SINGLETON_ID_MAX UINT64_C(66047)
#define PAWL_APP_OW_ID_MIN UINT64_C(200001)
#define PAWL_APP_OW_ID_MAX (PAWL_APP_C_ID_MIN - 1)
#define PAWL_APP_C_ID_MIN (UINT64_C(1) << 40)
#define PAWL_APP_C_ID_MAX (UINT64_MAX >> 1) /* what JSON can hold */

/* The sequences that every kind has. The offsets of a PLog are the log's own. */
enum {
    PAWL_APP_SEQ_WLOG_OFFSET = 1,
    PAWL_APP_SEQ_C_RECORD = 2,
    PAWL_APP_SEQ_OW_RECORD = 3,
    PAWL_APP_SEQ_OWN_MIN = 16 /* the application's own from here on */
};

/* How events and new records are written. A number that is used already is found where it says insert,
 * and overwritten where it says put. Numbers of the application's own sequences are keys that are inserted,
 * so that none is given out twice whatever became of what is stored of the sequence.
 *
 *               events (PLog and WLog)   new records   own numbers
 *   level 0     insert                   insert        insert
 *   level 1     insert                   put           insert
 *   level 2     put                      put           - */
typedef enum pawl_app_trust { PAWL_APP_TRUST_0, PAWL_APP_TRUST_1, PAWL_APP_TRUST_2 } pawl_app_trust;

/* A sequence of the application's own: an id has the same name and initial value in every kind. */
typedef struct pawl_app_sequence {
    size_t size;
    const char *name; /* none of those that every kind has: see pawl_app_sequence_name */
    uint16_t id;      /* PAWL_APP_SEQ_OWN_MIN or above */
    uint64_t initial; /* 1 .. PAWL_APP_C_ID_MAX */
} pawl_app_sequence;

#define PAWL_APP_SEQUENCE_INIT                \
    {                                         \
        sizeof(pawl_app_sequence), NULL, 0, 1 \
    }

typedef struct pawl_app_kind {
    size_t size;
    const char *name;
    uint16_t id;
    const pawl_app_sequence *sequences;
    size_t sequence_count;
} pawl_app_kind;

#define PAWL_APP_KIND_INIT                      \
    {                                           \
        sizeof(pawl_app_kind), NULL, 0, NULL, 0 \
    }

/* What an application is. It is stored when it is created, and does not change afterwards. */
typedef struct pawl_app_descriptor {
    size_t size;      /* PAWL_APP_DESCRIPTOR_INIT sets it */
    const char *name; /* a-z 0-9 - _ */
    uint32_t id;      /* in every key; not 0 */
    uint16_t partitions;
    pawl_app_trust trust;
    const pawl_app_kind *kinds;
    size_t kind_count;
} pawl_app_descriptor;

#define PAWL_APP_DESCRIPTOR_INIT                                           \
    {                                                                      \
        sizeof(pawl_app_descriptor), NULL, 0, 1, PAWL_APP_TRUST_0, NULL, 0 \
    }

typedef enum pawl_app_class {
    PAWL_APP_SINGLETON,
    PAWL_APP_C_RECORD, /* can be listed */
    PAWL_APP_O_RECORD, /* there may be too many for that: read by id */
    PAWL_APP_W_RECORD
} pawl_app_class;

/* "singleton", "c", "o", "w"; "unknown". */
PAWL_API const char *pawl_app_class_word(pawl_app_class record_class);

/* A record to create. `data` is a JSON object. In it {"$raw": N} stands for the id of the record that
 * the same command creates as N, and {"$next": "NAME"} for the next number of a sequence of the
 * application's own. */
typedef struct pawl_app_create {
    size_t size;
    pawl_app_class record_class;
    uint64_t raw_id;    /* 1 .. PAWL_APP_RAW_ID_MAX; a singleton may have 0: nobody refers to it */
    uint64_t singleton; /* the id of a singleton; else 0 */
    pawl_view table;
    pawl_view data;
} pawl_app_create;

#define PAWL_APP_CREATE_INIT                                           \
    {                                                                  \
        sizeof(pawl_app_create), PAWL_APP_C_RECORD, 0, 0, { NULL, 0 }, \
        {                                                              \
            NULL, 0                                                    \
        }                                                              \
    }

/* A record to update: its data is replaced. The same two forms may stand in it. */
typedef struct pawl_app_update {
    size_t size;
    uint64_t id;
    pawl_view data;
} pawl_app_update;

#define PAWL_APP_UPDATE_INIT        \
    {                               \
        sizeof(pawl_app_update), 0, \
        {                           \
            NULL, 0                 \
        }                           \
    }

typedef struct pawl_app_command {
    size_t size;
    uint64_t workspace; /* 1 .. PAWL_APP_WORKSPACE_MAX */
    pawl_view kind;     /* the name */
    pawl_view key;      /* idempotency key in UTF-8, unique in the workspace; empty: none */
    const pawl_app_create *creates;
    size_t create_count;
    const pawl_app_update *updates;
    size_t update_count;
} pawl_app_command;

#define PAWL_APP_COMMAND_INIT                                                   \
    {                                                                           \
        sizeof(pawl_app_command), 0, { NULL, 0 }, { NULL, 0 }, NULL, 0, NULL, 0 \
    }

typedef struct pawl_app_id {
    uint64_t raw;
    uint64_t id;
} pawl_app_id;

typedef struct pawl_app_number {
    uint16_t sequence;
    uint64_t number;
} pawl_app_number;

typedef struct pawl_app_response {
    size_t size;
    uint16_t partition;
    uint64_t plog_offset;
    uint64_t wlog_offset;
    bool duplicate;         /* the key was used before by the same command: this is its response */
    const pawl_app_id *ids; /* of the records that were created with a raw id, in order */
    size_t id_count;
    const pawl_app_number *numbers; /* for each "$next", in order */
    size_t number_count;
} pawl_app_response;

/* A record as it is stored or as an event has it. Views live until the visitor returns. */
typedef struct pawl_app_record {
    size_t size;
    pawl_app_class record_class;
    bool update;     /* in an event: it was there before */
    uint64_t raw_id; /* in an event; 0: it had none */
    uint64_t id;
    pawl_view table;
    pawl_view data;
} pawl_app_record;

typedef struct pawl_app_event {
    size_t size;
    uint64_t workspace;
    uint64_t plog_offset;
    uint64_t wlog_offset;
    uint16_t kind;
    pawl_view key;
    uint8_t request_hash[32]; /* of the command, when it had a key */
    const pawl_app_record *records;
    size_t record_count;
    const pawl_app_number *numbers; /* every number that it used, but the offsets of the PLog */
    size_t number_count;
} pawl_app_event;

typedef struct pawl_app pawl_app;

typedef struct pawl_app_options {
    size_t size;                /* PAWL_APP_OPTIONS_INIT sets it */
    uint32_t exec_ms_max;       /* a command waits so long at the most; 30,000 */
    uint32_t unflushed_max;     /* numbers of a partition that wait to be written; 20,000 */
    uint32_t flush_interval_ms; /* 500 */
    uint32_t cache_size;        /* numbers of a partition kept in memory, up to 2^28; 100,000 */
    uint32_t close_ms_max;      /* 5000 */
    bool unsafe_no_sync;        /* a power cut loses commands that were answered: for tests */
    uint64_t free_space_min; /* bytes of the disk that stay free, for an application in a directory:
                              * its engine does not survive a full disk; PAWL_APP_FREE_SPACE_MIN */
    uint32_t busy_ms_max;    /* commands wait so long in their queue before they are BUSY; 0 */
    bool read_only;          /* no commands: nothing is written, and a full disk is no hindrance */
    uint32_t answer_ms_max;  /* a PostgreSQL server silent for longer has stalled; 10,000 */
    uint64_t
        memory_max; /* bytes of memory for the stores of all applications in directories that the
                          * process has open, as the last one opened says, 16 MiB at the least; 0: as it
                          * is, or PAWL_APP_MEMORY_MAX */
    bool
        rebuild; /* what is stored of the sequences, and the keys of numbers, are made anew from the logs;
                   * CORRUPT, and nothing is changed, when the logs themselves are not whole */
} pawl_app_options;

#define PAWL_APP_FREE_SPACE_MIN (UINT64_C(256) << 20) /* the default of store.free_space_min, too */

#define PAWL_APP_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(pawl_app_options), 30000, 20000, 500, 100000, 5000, false, PAWL_APP_FREE_SPACE_MIN, \
            0, false, 10000, 0, false                                                              \
    }

#define PAWL_APP_MEMORY_MAX (UINT64_C(128) << 20) /* the default of store.memory_max, too */

/* INVALID: no application can have the name. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_check_name(const char *name, pawl_error *reterr);

/* The applications at a place, in order of their names, from page->from_id on: the directories in a directory (one that is not
 * there has none; whether there is an application in each of them, opening it tells), or those of the
 * database postgres://USER@HOST/DB. */
typedef struct pawl_app_entry {
    size_t size;
    pawl_view name;
} pawl_app_entry;

typedef bool (*pawl_app_entry_visit)(void *context, const pawl_app_entry *entry);
PAWL_API PAWL_MUST_USE pawl_status pawl_app_list(const char *place,
                                                 pawl_page *page,
                                                 pawl_app_entry_visit visit,
                                                 void *context,
                                                 pawl_error *reterr);

/* Where an application of a place is, as pawl_app_open takes it: a directory in the directory, or the URL
 * with ?app=NAME. INVALID: the name is none. For pawl_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_locate(const char *place,
                                                   const char *name,
                                                   char **ret_location,
                                                   pawl_error *reterr);

/* Opens the application at a location: a directory; postgres://USER@HOST/DB; or "memory:" for one that
 * ends with the handle. A database may have several applications: without a descriptor ?app=NAME says
 * which one. ?connections=N is how many connections it uses at the most; 8.
 *
 * With a descriptor it is created when it is not there; CONFLICT when the one that is there has
 * another. Without one (NULL) it must be there: NOT_FOUND. INVALID names what is wrong in the
 * descriptor, BUSY: another process has it, CORRUPT: the last event of a log cannot be read.
 *
 * A directory has the application's name: CONFLICT when it holds another one, as a copy does, or when another
 * application of the same directory has the id. CORRUPT also: a log is shorter than the application's anchor
 * knows; one that only reads may look at it.
 *
 * The last event of each partition is applied again, whatever the trust level; not for one that only
 * reads, which must be there: commands and the status of its sequences are DENIED then. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_open(const char *location,
                                                 const pawl_app_descriptor *descriptor,
                                                 const pawl_app_options *options,
                                                 pawl_app **ret_app,
                                                 pawl_error *reterr);

/* The same with the descriptor as JSON:
 *
 *     {"name": "orders", "id": 1, "partitions": 4, "trust": 0,
 *      "kinds": [{"name": "shop", "id": 1,
 *                 "sequences": [{"name": "invoice", "id": 16, "initial": 1000}]}]}
 *
 * partitions (1), trust (0), sequences (none) and initial (1) may be left out. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_open_json(const char *location,
                                                      pawl_view descriptor,
                                                      const pawl_app_options *options,
                                                      pawl_app **ret_app,
                                                      pawl_error *reterr);

/* The descriptor as JSON, in the form of above, for pawl_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_descriptor_to_json(const pawl_app *app,
                                                               char **ret_json,
                                                               size_t *ret_len,
                                                               pawl_error *reterr);

/* What pawl_app_open_json would make of a descriptor, in the form of pawl_app_descriptor_to_json: equal ones
 * give equal bytes. Nothing is opened. INVALID names what is wrong. For pawl_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_descriptor_normalize(pawl_view descriptor,
                                                                 char **ret_json,
                                                                 size_t *ret_len,
                                                                 pawl_error *reterr);

/* Commands that wait are answered first; then the numbers are stored, and a store in a directory is flushed,
 * so that the next open reads no log. It takes `timeout_ms` (0: close_ms_max) at the most, and a second to give up
 * a flush, however many partitions there are. After TIMEOUT the application can be opened again only by another
 * process, once this one has ended. See Closing in pawl.h. */
PAWL_API pawl_status pawl_app_close(pawl_app *app, uint32_t timeout_ms, pawl_error *reterr);

/* Lives as long as the application. */
PAWL_API const pawl_app_descriptor *pawl_app_get_descriptor(const pawl_app *app);
/* "wlog_offset", "c_record", "ow_record", or the name of one of the application's own; "": unknown. */
PAWL_API const char *pawl_app_sequence_name(const pawl_app *app, uint16_t sequence);
/* The sequences that the application has, each id once: those of every kind, then its own. */
typedef bool (*pawl_app_sequence_visit)(void *context, const pawl_app_sequence *sequence);
PAWL_API PAWL_MUST_USE pawl_status pawl_app_visit_sequences(const pawl_app *app,
                                                            pawl_app_sequence_visit visit,
                                                            void *context,
                                                            pawl_error *reterr);
PAWL_API uint16_t pawl_app_partition_of(const pawl_app *app, uint64_t workspace);

/* Waits until no partition actualizes its sequences. TIMEOUT; CORRUPT: a log has a hole or a damaged
 * event. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_wait(pawl_app *app,
                                                 uint32_t timeout_ms,
                                                 pawl_error *reterr);

/* INVALID when there is no such partition. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_get_status(pawl_app *app,
                                                       uint16_t partition,
                                                       pawl_sequencer_status *ret_status,
                                                       pawl_error *reterr);

/* The offset of the last event in the log of a partition; 0: it has none. While a partition actualizes,
 * next_offset of its status goes up to the one after this. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_get_log_end(pawl_app *app,
                                                        uint16_t partition,
                                                        uint64_t *ret_offset,
                                                        pawl_error *reterr);

/* How its commands are committed, all partitions together, as metrics in the text format of Prometheus:
 * pawl_commit_batches_total, pawl_commit_calls_total and pawl_commit_waiting, with store="app/NAME"; all 0 when
 * it was opened to read. *ret_text is NUL-terminated, for pawl_free. `ret_len` may be
 * NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_get_metrics(pawl_app *app,
                                                        char **ret_text,
                                                        size_t *ret_len,
                                                        pawl_error *reterr);

/* Executes a command. PAWL_OK: event, records, numbers and key are on disk, all of them.
 *
 * INVALID           names what is wrong in the command; UNKNOWN_KIND, UNKNOWN_SEQUENCE
 * NOT_FOUND         a record to update is not there
 * CONFLICT          the key was used by another command (KEY_REUSED); the singleton is there already; or the trust
 *                   level found a number in use, and the message names what is stored there: the next
 *                   command of the workspace gets the same number
 * BUSY (retryable)  sequences are being actualized, or too much waits
 * EXHAUSTED         the last number of a sequence or of a range of ids is used
 * NO_SPACE          less of the disk is free than free_space_min says; works again when there is room
 * TIMEOUT, IO, UNAVAILABLE
 *                   unknown outcome: send the same command with the same key
 * CORRUPT           the log, a record or a key cannot be read; UNSUPPORTED: it is of a newer version
 * CLOSED, NOMEM     the application is being closed; there is no memory for it
 * DENIED            the application was opened for reading
 * WRONG_THREAD      from within a `done`: use pawl_app_exec_async
 * LEASE_LOST        on PostgreSQL, after all connections were lost: another process has the application
 *                   now, and only close is left for this handle
 *
 * Nothing is applied after any of them but TIMEOUT, UNAVAILABLE and IO, where it may be. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_exec(pawl_app *app,
                                                 const pawl_app_command *command,
                                                 pawl_app_response **ret_response,
                                                 pawl_error *reterr);
PAWL_API void pawl_app_response_free(pawl_app_response *response);

/* What became of a command. The response is the receiver's, to be freed. */
typedef void (*pawl_app_exec_done)(void *context,
                                   pawl_app_response *response,
                                   const pawl_error *outcome);

/* pawl_app_exec without waiting for it, in the form of all asynchronous calls (pawl.h). Refused, and `done` not
 * called: something is wrong in the command, DENIED because the application was opened for reading, or BUSY, too many
 * wait.
 *
 * Commands that one thread gives to one partition are executed in this order, those that are answered
 * BUSY left out: with options.busy_ms_max there are none of them but where nothing works any more. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_exec_async(pawl_app *app,
                                                       const pawl_app_command *command,
                                                       pawl_app_exec_done done,
                                                       void *context,
                                                       pawl_error *reterr);

/* The same with command and response as JSON:
 *
 *     {"workspace": 7, "kind": "shop", "key": "pay-1",
 *      "creates": [{"class": "c", "raw_id": 1, "table": "order", "data": {...}},
 *                  {"class": "singleton", "id": 65536, "table": "shop", "data": {...}}],
 *      "updates": [{"id": 200001, "data": {...}}]}
 *
 *     {"partition": 1, "plog_offset": 5, "wlog_offset": 3, "duplicate": false,
 *      "ids": {"1": 1099511627776}, "numbers": [{"sequence": "invoice", "number": 1000}]}
 *
 * Classes are c, o, w and singleton; key, creates and updates may be left out. `workspace` not 0 is for
 * commands that leave theirs out. *ret_json ends in a NUL; pawl_free ends it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_exec_json(pawl_app *app,
                                                      uint64_t workspace,
                                                      pawl_view command,
                                                      char **ret_json,
                                                      size_t *ret_len,
                                                      pawl_error *reterr);

/* pawl_app_exec_async of a command as JSON. A `key` beside the command (empty: none) is the command's when that has
 * none; INVALID: it has another one. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_exec_json_async(pawl_app *app,
                                                            uint64_t workspace,
                                                            pawl_view key,
                                                            pawl_view command,
                                                            pawl_app_exec_done done,
                                                            void *context,
                                                            pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_app_response_to_json(const pawl_app *app,
                                                             const pawl_app_response *response,
                                                             char **ret_json,
                                                             size_t *ret_len,
                                                             pawl_error *reterr);

/* A record and an event as JSON, on one line, for pawl_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_record_to_json(const pawl_app_record *record,
                                                           char **ret_json,
                                                           size_t *ret_len,
                                                           pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_app_event_to_json(const pawl_app *app,
                                                          const pawl_app_event *event,
                                                          char **ret_json,
                                                          size_t *ret_len,
                                                          pawl_error *reterr);

/* Reading. Visitors and pages are those of pawl.h. */
typedef bool (*pawl_app_record_visit)(void *context, const pawl_app_record *record);
typedef bool (*pawl_app_event_visit)(void *context, const pawl_app_event *event);

/* One record of any class. NOT_FOUND; INVALID: the id is in none of the ranges of records. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_read_record(pawl_app *app,
                                                        uint64_t workspace,
                                                        uint64_t id,
                                                        pawl_app_record_visit visit,
                                                        void *context,
                                                        pawl_error *reterr);

/* The C-records of a workspace in order of their ids, from the id page->from on. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_read_c_records(pawl_app *app,
                                                           uint64_t workspace,
                                                           pawl_page *page,
                                                           pawl_app_record_visit visit,
                                                           void *context,
                                                           pawl_error *reterr);

/* Events in order of their offsets, from page->from on. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_read_wlog(pawl_app *app,
                                                      uint64_t workspace,
                                                      pawl_page *page,
                                                      pawl_app_event_visit visit,
                                                      void *context,
                                                      pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_app_read_plog(pawl_app *app,
                                                      uint16_t partition,
                                                      pawl_page *page,
                                                      pawl_app_event_visit visit,
                                                      void *context,
                                                      pawl_error *reterr);

/* What is wrong with the numbers of a workspace. */
typedef enum pawl_app_fault {
    PAWL_APP_MISSING,  /* first .. last were never used */
    PAWL_APP_DOUBLED,  /* `first` was used again, in the event at plog_offset */
    PAWL_APP_AHEAD,    /* the store has `first` as the last number; the log ends at `last` */
    PAWL_APP_BEHIND,   /* the store has `first` as the last number, and does not read those events
                         of the log again that go on to `last`: numbers would be given out twice */
    PAWL_APP_NO_EVENT, /* the partition's log lacks its offsets first .. last, of any workspace */
    PAWL_APP_DAMAGED   /* what is stored of it, or of its partition's offset, cannot be read */
} pawl_app_fault;

/* "missing", "doubled", "ahead", "behind", "no_event", "damaged"; "unknown". */
PAWL_API const char *pawl_app_fault_word(pawl_app_fault fault);

typedef struct pawl_app_finding {
    size_t size;
    uint16_t sequence;
    pawl_app_fault fault;
    uint64_t first;
    uint64_t last;
    uint64_t plog_offset; /* 0: of no event */
} pawl_app_finding;

typedef bool (*pawl_app_finding_visit)(void *context, const pawl_app_finding *finding);

typedef struct pawl_app_certificate {
    size_t size;
    uint64_t initial;
    uint64_t last;     /* the highest that was used; 0: none was */
    uint64_t used;     /* how many numbers */
    uint64_t findings; /* 0: initial .. last were used once each */
    uint64_t events;   /* of the partition's log that were read */
} pawl_app_certificate;

#define PAWL_APP_CERTIFICATE_INIT                   \
    {                                               \
        sizeof(pawl_app_certificate), 0, 0, 0, 0, 0 \
    }

/* Proves from the log that each number from the initial value to the last was used once. CORRUPT:
 * it was not so, or what is stored does not fit it, and `visit` (or NULL) was told of each finding; the certificate is filled in this
 * case too. CORRUPT without a finding: the log itself cannot be read. UNKNOWN_SEQUENCE. Reads the
 * whole log of the partition; `watch` counts its events. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_verify_sequence(pawl_app *app,
                                                            uint64_t workspace,
                                                            uint16_t sequence,
                                                            pawl_app_finding_visit visit,
                                                            void *context,
                                                            const pawl_watch *watch,
                                                            pawl_app_certificate *ret_certificate,
                                                            pawl_error *reterr);

/* What an application is made of, as it is checked. */
typedef enum pawl_app_part {
    PAWL_APP_PART_ANCHOR,
    PAWL_APP_PART_PLOG,
    PAWL_APP_PART_WLOG,
    PAWL_APP_PART_RECORDS,
    PAWL_APP_PART_SEQUENCES,   /* the last number of each, as it is stored */
    PAWL_APP_PART_OFFSETS,     /* up to where the log is in them */
    PAWL_APP_PART_NUMBER_KEYS, /* of the application's own sequences, at trust levels 0 and 1 */
    PAWL_APP_PART_KEYS,        /* idempotency keys */
    PAWL_APP_PART_DESCRIPTOR,  /* as it is stored, and the format */
    PAWL_APP_PARTS
} pawl_app_part;

/* "anchor", "plog", "wlog", "records", "sequences", "offsets", "number_keys", "keys",
 * "descriptor"; "unknown". */
PAWL_API const char *pawl_app_part_word(pawl_app_part part);

/* One thing that is wrong. */
typedef struct pawl_app_damage {
    size_t size;
    pawl_app_part part;
    const char *what; /* as a sentence */
} pawl_app_damage;

/* After false no more damage is shown; it is counted all the same. */
typedef bool (*pawl_app_damage_visit)(void *context, const pawl_app_damage *damage);

typedef struct pawl_app_report {
    size_t size;
    uint64_t entries[PAWL_APP_PARTS]; /* that were read */
    uint64_t wrong[PAWL_APP_PARTS];   /* how many things are */
    uint64_t unaccounted; /* events in WLogs that no PLog has, as after a cut of the PLog */
    bool anchor_missing;  /* there are events, and nothing says how long the logs were: no fault */
} pawl_app_report;

#define PAWL_APP_REPORT_INIT                            \
    {                                                   \
        sizeof(pawl_app_report), { 0 }, { 0 }, 0, false \
    }

/* Compares descriptor, logs, records, numbers, keys, offsets and anchor with each other: of a workspace, or of all
 * (`workspace` 0). PAWL_OK: nothing is wrong. CORRUPT: something is; `visit` (or NULL) was told of each, and the
 * report is filled in. Anything else: it could not be checked.
 *
 * Each family is read once, in order, and the logs a second time when something is wrong. When more than 200,000
 * different records were updated, logs and records are read once more for every 100,000 of them. Memory has a
 * bound of some 40 MiB whatever the size. It may be open for reading or for writing. In a directory it is compared as it
 * was when this began, and commands continue. Elsewhere commands that are executed meanwhile look like faults: when there
 * are both, it is BUSY, and what the visitor was told does not count. */
PAWL_API PAWL_MUST_USE pawl_status pawl_app_verify(pawl_app *app,
                                                   uint64_t workspace,
                                                   pawl_app_damage_visit visit,
                                                   void *context,
                                                   const pawl_watch *watch,
                                                   pawl_app_report *ret_report,
                                                   pawl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
