/* <pawl/ledger.h>: an append-only event log that is the source of truth.
 *
 * Events have an id that the caller chooses and an offset that the ledger gives: 1, 2, 3, ...
 * without holes. Appending the same event again returns its first offset; the same id with other
 * content is a conflict. Each event carries a SHA-256 over its content and the hash before it, so
 * that a ledger can prove that nothing in it was changed, removed, inserted or cut off.
 *
 * The same program runs on three backends, chosen by location:
 *
 *   memory:                      a ledger in this process, gone when it is closed
 *   runs/village.db              SQLite, any number of processes; also sqlite:runs/village.db
 *   postgres://user@host/db      PostgreSQL, any number of machines; in the schema `pawl`
 *
 * `?durability=normal` after a SQLite location trades the last commits at a power cut for speed;
 * `?connections=4` after a PostgreSQL one is the most that a handle opens (1 to 256; 8), beside the
 * one that a handle with followers listens on.
 *
 * Threads: a pawl_ledger may be used by any number of threads at once; appends of threads that wait
 * at the same time share one transaction and one fsync. Readers and turns belong to one thread.
 *
 * Arguments: a NULL where something is needed, a view of some bytes at NULL and a number that is no
 * value of its enum are INVALID, with the name of the argument.
 *
 * Callbacks (visit, step, progress) run on the thread of the call. They may call any function of this
 * header on the same ledger, append too, except pawl_ledger_close: it is INVALID there (WRONG_THREAD), and
 * the ledger stays open. */
#ifndef PAWL_LEDGER_H
#define PAWL_LEDGER_H

#include <pawl/pawl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_LEDGER_NAME_BYTES_MAX 200 /* id, run_id, kind, actor */
#define PAWL_LEDGER_HASH_BYTES 32
#define PAWL_LEDGER_BATCH_MAX 100000 /* events in one append */

typedef struct pawl_ledger pawl_ledger;

typedef struct pawl_ledger_options {
    size_t size;                /* sizeof(pawl_ledger_options): PAWL_LEDGER_OPTIONS_INIT sets it */
    uint32_t payload_bytes_max; /* one payload; 1 MiB */
    uint32_t busy_ms_max;       /* how long to wait for another process's lock; 5000 */
    bool must_exist;            /* do not create; NOT_FOUND when there is none */
    bool read_only;             /* never write, not even a migration */
    uint32_t answer_ms_max;     /* a PostgreSQL server silent for longer has stalled; 10,000 */
    bool accept_damage; /* opens although its ends are damaged, for verify; needs read_only */
} pawl_ledger_options;

#define PAWL_LEDGER_OPTIONS_INIT                                                \
    {                                                                           \
        sizeof(pawl_ledger_options), 1U << 20, 5000, false, false, 10000, false \
    }

/* One event. Text is UTF-8 without NUL bytes; views are borrowed.
 *
 * To append: id, run_id, turn, kind, actor, payload; created_at_us 0 means now, schema_version 0
 * means 1, offset and hash are ignored. Kinds that begin with "pawl." are the ledger's own. */
typedef struct pawl_event {
    size_t size;
    uint64_t offset;
    pawl_view id;           /* 1 to 200 bytes */
    pawl_view run_id;       /* 1 to 200 bytes */
    int64_t turn;           /* 0 or more */
    pawl_view kind;         /* 1 to 200 bytes */
    pawl_view actor;        /* 1 to 200 bytes */
    pawl_view payload;      /* a JSON value, stored as it was given */
    int64_t created_at_us;  /* UTC microseconds since 1970; shown, never decides anything */
    int64_t schema_version; /* 1 to 2^31 - 1 */
    uint8_t hash[PAWL_LEDGER_HASH_BYTES];
} pawl_event;

#define PAWL_EVENT_INIT                                                                            \
    {                                                                                              \
        sizeof(pawl_event), 0, { NULL, 0 }, { NULL, 0 }, 0, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, \
            0, 0,                                                                                  \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

typedef struct pawl_append_result {
    size_t size;
    uint64_t offset;     /* the event's first offset */
    bool duplicate;      /* it was there already, with the same content */
    char derived_id[40]; /* the id that a turn gave it; empty when the caller chose one */
} pawl_append_result;

#define PAWL_APPEND_RESULT_INIT                  \
    {                                            \
        sizeof(pawl_append_result), 0, false, "" \
    }

/* Opens the ledger at `location`, creating or migrating it unless the options say otherwise. NULL
 * takes DATABASE_URL from the environment. `options` may be NULL.
 *
 * CORRUPT: the anchor beside the file says that acknowledged events are gone or changed, a trigger or
 * rule that is not the ledger's stands on its tables, or a constraint is gone; nothing is modified. UNSUPPORTED: made by a newer pawl. INVALID: no ledger but something else; a database of
 * the original schema without hashes is named as such, with the command that imports it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_open(const char *location,
                                                    const pawl_ledger_options *options,
                                                    pawl_ledger **ret_ledger,
                                                    pawl_error *reterr);

/* Ends the ledger in bounded time: `timeout_ms`, or 10 seconds (0), when the store hangs. Appends under way
 * finish or fail first; no call may start once this one has. INVALID, and it stays open: a reader still follows
 * (pawl_reader_on_events). See Closing in pawl.h. */
PAWL_API pawl_status pawl_ledger_close(pawl_ledger *ledger,
                                       uint32_t timeout_ms,
                                       pawl_error *reterr);

/* For a store that does not answer: every call under way and every later one ends with CANCELLED, now
 * and for ever, within about two seconds, whatever the store does; only pawl_ledger_close is left. What
 * was being written is stored or is not. From any thread or signal handler. NULL is fine. */
PAWL_API void pawl_ledger_interrupt(pawl_ledger *ledger);

/* Appends one event. On PAWL_OK it is durable.
 *
 * CONFLICT: the id is taken by an event with other content (run_id, turn, kind, actor, canonical
 * payload or schema_version; created_at does not count). INVALID names the field. TIMEOUT and
 * UNAVAILABLE leave the outcome unknown: append the same event again. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_append(pawl_ledger *ledger,
                                                      const pawl_event *event,
                                                      pawl_append_result *ret_result,
                                                      pawl_error *reterr);

/* Appends `count` events in order, all or none, with consecutive offsets for the new ones.
 * `ret_results` has `count` entries, or is NULL. An error names the event by its index. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_append_many(pawl_ledger *ledger,
                                                           const pawl_event *events,
                                                           size_t count,
                                                           pawl_append_result *ret_results,
                                                           pawl_error *reterr);

/* What became of an append: `results` has `count` entries, borrowed for the call. NULL and 0 unless
 * outcome->status is PAWL_OK. */
typedef void (*pawl_append_done)(void *context,
                                 const pawl_append_result *results,
                                 size_t count,
                                 const pawl_error *outcome);

/* pawl_ledger_append_many without waiting, in the form of all asynchronous calls (pawl.h): many such appends
 * share a transaction and an fsync. Appends that one thread starts are stored in this order. INVALID: an event
 * is wrong, or `count` is 0. BUSY (detail QUEUE_FULL): too many wait; try again after the next `done`. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_append_async(pawl_ledger *ledger,
                                                            const pawl_event *events,
                                                            size_t count,
                                                            pawl_append_done done,
                                                            void *context,
                                                            pawl_error *reterr);

/* INVALID, with the name of the field, when no ledger with these options (NULL: the defaults) would append the
 * event outside a turn. Nothing is opened. PAWL_OK does not say that its id is free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_event_check(const pawl_event *event,
                                                    const pawl_ledger_options *options,
                                                    pawl_error *reterr);

/* --- Reading ---------------------------------------------------------------------------------- */

/* Which events: every field that is set must match. */
typedef struct pawl_event_filter {
    size_t size;
    pawl_view run_id; /* empty: any */
    pawl_view kind;
    pawl_view actor;
    int64_t turn_min; /* both ends belong to it */
    int64_t turn_max;
    int64_t time_min_us; /* created_at; from this one on ... */
    int64_t time_max_us; /* ... and before this one */
} pawl_event_filter;

#define PAWL_EVENT_FILTER_INIT                                                                     \
    {                                                                                              \
        sizeof(pawl_event_filter), { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, 0, INT64_MAX, INT64_MIN, \
            INT64_MAX                                                                              \
    }

typedef struct pawl_reader pawl_reader;

typedef struct pawl_reader_options {
    size_t size;
    uint64_t from;       /* the last offset already consumed: reading starts after it */
    uint64_t up_to;      /* stop after this offset; 0: no end */
    bool complete_turns; /* only what is outside turns or in a committed one; see below */
    const pawl_event_filter *filter; /* copied; NULL: all */
} pawl_reader_options;

#define PAWL_READER_OPTIONS_INIT                       \
    {                                                  \
        sizeof(pawl_reader_options), 0, 0, false, NULL \
    }

/* A reader walks events in offset order, in pages, with memory that does not grow. It belongs to
 * one thread and must be freed before its ledger is closed. It holds no lock between calls. Where an event is
 * missing from the log it is CORRUPT, and names the offset.
 *
 * It shows every event, those of the ledger's own kinds, of open and of abandoned turns too. With
 * complete_turns it holds back at the first turn that is open (of those that the filter lets
 * through; with up_to, one whose commit is after it counts as open), shows a committed turn with
 * its begin and commit, and of an abandoned attempt nothing. An event belongs to an attempt when it
 * has its run and turn and stands between its begin and its end. */
PAWL_API PAWL_MUST_USE pawl_status pawl_reader_open(pawl_ledger *ledger,
                                                    const pawl_reader_options *options,
                                                    pawl_reader **ret_reader,
                                                    pawl_error *reterr);

/* The next event, valid until the next call on this reader. NOT_FOUND: nothing more for now; call
 * again later, or pawl_reader_wait. INVALID: `from` is after the end of the ledger, so it is another
 * ledger or an older copy. CORRUPT: the ledger ends before what this reader has read. */
PAWL_API PAWL_MUST_USE pawl_status pawl_reader_next(pawl_reader *reader,
                                                    const pawl_event **ret_event,
                                                    pawl_error *reterr);

/* Blocks until there is another event, at most `timeout_ms`; TIMEOUT then. New events wake it at
 * once, also those of other processes; a poll is the safety net. A PostgreSQL server that is away is
 * tried again all that time, and then UNAVAILABLE: also one that has stalled, whose last answer may take
 * answer_ms_max longer than `timeout_ms`. CANCELLED after pawl_reader_cancel and pawl_ledger_interrupt;
 * NOT_FOUND when the reader is at its `up_to`; IO when the SQLite file was replaced, moved or deleted; CORRUPT when
 * the log has become shorter. */
PAWL_API PAWL_MUST_USE pawl_status pawl_reader_wait(pawl_reader *reader,
                                                    uint32_t timeout_ms,
                                                    pawl_error *reterr);

/* Follows without a thread per reader: `notify` runs soon after every append from now on, also of other
 * processes, and after pawl_reader_cancel and pawl_ledger_interrupt. Several appends may be one call, and there
 * may be nothing for this reader (its filter, an open turn). After this call, and again after each `notify`,
 * call pawl_reader_next until NOT_FOUND.
 *
 * One thread of the ledger tells all readers: wake another thread and return. Inside `notify` call nothing of
 * this reader; pawl_ledger_close is INVALID there (WRONG_THREAD). A second call replaces `notify`, NULL ends it. Once
 * this or pawl_reader_free has returned, the former `notify` does not run any more. */
typedef void (*pawl_reader_notify)(void *context);
PAWL_API PAWL_MUST_USE pawl_status pawl_reader_on_events(pawl_reader *reader,
                                                         pawl_reader_notify notify,
                                                         void *context,
                                                         pawl_error *reterr);

/* Ends a pawl_reader_wait, now and for ever, and a long search of pawl_reader_next. From any thread
 * or signal handler while the reader is open. */
PAWL_API void pawl_reader_cancel(pawl_reader *reader);

/* Pass it as `from` to continue later: everything up to it was returned or filtered out.
 */
PAWL_API uint64_t pawl_reader_position(const pawl_reader *reader);

PAWL_API void pawl_reader_free(pawl_reader *reader);

/* 0 for an empty ledger. For display: a follower keeps pawl_reader_position, never this. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_latest_offset(pawl_ledger *ledger,
                                                             uint64_t *ret_offset,
                                                             pawl_error *reterr);

/* The highest turn of a run, or of all when `run_id` is empty. NOT_FOUND without events. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_max_turn(pawl_ledger *ledger,
                                                        pawl_view run_id,
                                                        int64_t *ret_turn,
                                                        pawl_error *reterr);

/* Finds one event by its id, or by its offset when the id is empty. A copy, ended with
 * pawl_event_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_get(
    pawl_ledger *ledger, pawl_view id, uint64_t offset, pawl_event **ret_event, pawl_error *reterr);
PAWL_API void pawl_event_free(pawl_event *event);

typedef enum pawl_count_by {
    PAWL_COUNT_BY_RUN,
    PAWL_COUNT_BY_KIND,
    PAWL_COUNT_BY_ACTOR
} pawl_count_by;

typedef struct pawl_count {
    size_t size;
    pawl_view name;
    uint64_t count;
} pawl_count;

typedef bool (*pawl_count_visit)(void *context, const pawl_count *count);

/* Calls `visit` for each name in order of its bytes until it returns false. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_counts(pawl_ledger *ledger,
                                                      pawl_count_by by,
                                                      const pawl_event_filter *filter,
                                                      pawl_count_visit visit,
                                                      void *context,
                                                      pawl_error *reterr);

/* --- Turns ------------------------------------------------------------------------------------ */

/* A turn is a piece of a run that counts as a whole: begin, append, commit. What a crash leaves
 * half written is abandoned by the next attempt and skipped by folds. A turn handle is the fence:
 * once another attempt began, every call on the old one is LEASE_LOST.
 *
 * Inside a turn ids may be empty: they are derived from run, turn, attempt, actor, kind and the
 * ordinal of the event among those of its actor and kind, so that appending again after a lost
 * answer makes the same ids.
 *
 * While a turn is open, events of its run and turn come through its handle: pawl_ledger_append of a
 * new one is CONFLICT. */
typedef struct pawl_turn pawl_turn;

/* Starts an attempt at a turn. An attempt that was left open is recorded as abandoned first, in the
 * same transaction. CONFLICT: this turn is committed already. */
PAWL_API PAWL_MUST_USE pawl_status pawl_turn_begin(
    pawl_ledger *ledger, pawl_view run_id, int64_t turn, pawl_turn **ret_turn, pawl_error *reterr);

/* Events of this turn: run_id may be empty and turn is ignored, the handle knows them. */
PAWL_API PAWL_MUST_USE pawl_status pawl_turn_append(pawl_turn *turn,
                                                    const pawl_event *events,
                                                    size_t count,
                                                    pawl_append_result *ret_results,
                                                    pawl_error *reterr);

/* Appending and committing again after a lost answer is fine: the second finds the first. */
PAWL_API PAWL_MUST_USE pawl_status pawl_turn_commit(pawl_turn *turn, pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_turn_abandon(pawl_turn *turn,
                                                     pawl_view reason,
                                                     pawl_error *reterr);
PAWL_API uint32_t pawl_turn_attempt(const pawl_turn *turn);

/* `ordinal` of pawl_turn_resume: nothing was appended yet. */
#define PAWL_ORDINAL_FIRST UINT64_MAX

/* A handle to an attempt that another process, or an earlier life of this one, began. Nothing is
 * read or written: every call on the handle finds out whether the attempt is still the newest.
 *
 * `ordinal` is the number of events without an id that the attempt already has of an actor and kind.
 * The first append of each actor and kind compares it with the store. Equal: the events are new. Lower:
 * they repeat stored ones and are duplicates, or CONFLICT when their content differs. Higher: CONFLICT.
 * With PAWL_ORDINAL_FIRST any stored one is CONFLICT. The message names the next ordinal. */
PAWL_API PAWL_MUST_USE pawl_status pawl_turn_resume(pawl_ledger *ledger,
                                                    pawl_view run_id,
                                                    int64_t turn,
                                                    uint32_t attempt,
                                                    uint64_t ordinal,
                                                    pawl_turn **ret_turn,
                                                    pawl_error *reterr);

/* Frees the handle; an open turn stays open, as after a crash. */
PAWL_API void pawl_turn_free(pawl_turn *turn);

typedef enum pawl_turn_state {
    PAWL_TURN_OPEN,
    PAWL_TURN_COMMITTED,
    PAWL_TURN_ABANDONED
} pawl_turn_state;

typedef struct pawl_turn_info {
    size_t size;
    pawl_view run_id;
    int64_t turn;
    uint32_t attempt;
    pawl_turn_state state;
    uint64_t begin_offset;
    uint64_t end_offset; /* of its commit or abandon event; 0 while open */
} pawl_turn_info;

typedef bool (*pawl_turn_visit)(void *context, const pawl_turn_info *info);

/* Every attempt of every turn of a run (of all runs when empty), in order of begin_offset, from the begin_offset
 * page->from on. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_turns(pawl_ledger *ledger,
                                                     pawl_view run_id,
                                                     pawl_page *page,
                                                     pawl_turn_visit visit,
                                                     void *context,
                                                     pawl_error *reterr);

/* The highest turn that was committed: a conductor continues with the one after it. NOT_FOUND when
 * the run has none. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_last_complete_turn(pawl_ledger *ledger,
                                                                  pawl_view run_id,
                                                                  int64_t *ret_turn,
                                                                  pawl_error *reterr);

/* --- Folding ---------------------------------------------------------------------------------- */

/* Called for each event that counts, in order; another status than PAWL_OK ends the fold with it.
 */
typedef pawl_status (*pawl_fold_step)(void *context, const pawl_event *event, pawl_error *reterr);

typedef struct pawl_fold_options {
    size_t size;
    uint64_t from;         /* the projection already covers this offset; INVALID after the end */
    uint64_t up_to;        /* as of this offset; 0: as of now */
    int64_t up_to_time_us; /* as of this created_at, inclusive; INT64_MAX: any */
    const pawl_event_filter *filter;
} pawl_fold_options;

#define PAWL_FOLD_OPTIONS_INIT                           \
    {                                                    \
        sizeof(pawl_fold_options), 0, 0, INT64_MAX, NULL \
    }

/* Rebuilds a projection from the log: every event but those of abandoned attempts and the ledger's
 * own kinds. It ends before the first turn that is still open, or was at `up_to`: turns that the
 * filter refuses do not count. `ret_covered` (may be NULL) is the offset that the projection now
 * covers; hand it in as `from` next time, and it meets no event twice.
 *
 * As of a time, an event counts when its created_at is not later, and one of a turn when that of
 * the turn's commit is not, too. Times need not be in order: `ret_covered` stays before the first
 * event that was left out. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_fold(pawl_ledger *ledger,
                                                    const pawl_fold_options *options,
                                                    pawl_fold_step step,
                                                    void *context,
                                                    uint64_t *ret_covered,
                                                    pawl_error *reterr);

/* --- Metrics ---------------------------------------------------------------------------------- */

/* How its appends are committed, as metrics in the text format of Prometheus: pawl_commit_batches_total,
 * pawl_commit_calls_total and pawl_commit_waiting, with store="ledger"; all 0 when it was opened to read.
 * *ret_text is NUL-terminated, for pawl_free. `ret_len` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_get_metrics(pawl_ledger *ledger,
                                                           char **ret_text,
                                                           size_t *ret_len,
                                                           pawl_error *reterr);

/* --- Proof ------------------------------------------------------------------------------------ */

typedef struct pawl_ledger_head {
    uint64_t offset; /* also the number of events */
    uint8_t hash[PAWL_LEDGER_HASH_BYTES];
} pawl_ledger_head;

PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_get_head(pawl_ledger *ledger,
                                                        pawl_ledger_head *ret_head,
                                                        pawl_error *reterr);

typedef struct pawl_verify_options {
    size_t size;
    pawl_ledger_head from;          /* continue from here; offset 0: from the beginning */
    const pawl_ledger_head *expect; /* a head noted earlier that must be part of the chain */
    const pawl_watch *watch;        /* counts events; NULL: nobody */
} pawl_verify_options;

#define PAWL_VERIFY_OPTIONS_INIT                              \
    {                                                         \
        sizeof(pawl_verify_options), { 0, { 0 } }, NULL, NULL \
    }

typedef struct pawl_verify_report {
    size_t size;
    pawl_ledger_head verified; /* everything up to here is what was appended; resume from it */
    uint64_t first_bad_offset; /* 0: none */
    char what[160];            /* what is wrong there; empty: nothing */
    bool anchor_missing;       /* a tail that was cut off would not have shown */
} pawl_verify_report;

#define PAWL_VERIFY_REPORT_INIT                                \
    {                                                          \
        sizeof(pawl_verify_report), { 0, { 0 } }, 0, "", false \
    }

/* Walks the chain, the turns and the anchor, and compares the schema. CORRUPT: the report (filled
 * then, too) names the first offset that was changed, removed, inserted, reordered or cut off; 0 when
 * the events are whole and something beside them is not. CANCELLED: `verified` says how far it came. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_verify(pawl_ledger *ledger,
                                                      const pawl_verify_options *options,
                                                      pawl_verify_report *ret_report,
                                                      pawl_error *reterr);

/* --- Snapshots -------------------------------------------------------------------------------- */

/* A snapshot is a SQLite ledger file like any other; it opens like one, too.
 *
 * Copies the ledger as of now into such a file while writers continue: written beside it, fsynced,
 * verified, renamed into place. CONFLICT: there is such a file already, or one that would be taken
 * for a part of it (-wal, -shm, .anchor). After a failure no partial file is left. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_snapshot_to(pawl_ledger *ledger,
                                                           const char *path,
                                                           const pawl_watch *watch,
                                                           pawl_ledger_head *ret_head,
                                                           pawl_error *reterr);

/* Takes a snapshot into `directory` (made when missing) when at least `every_turns` turns were
 * committed since the newest one there (0: when anything was appended), then removes all but the
 * newest `keep`. `ret_taken` may be NULL. The file's name holds its offset:
 * snapshot-00000000000000001234.db. One that is damaged counts as none; when it has the name that the
 * new one needs, ".damaged-N" is appended to its name, and a warning is logged. BUSY: another schedule, prune
 * or proof works there. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_snapshot_schedule(pawl_ledger *ledger,
                                                                 const char *directory,
                                                                 uint32_t every_turns,
                                                                 uint32_t keep,
                                                                 bool *ret_taken,
                                                                 pawl_error *reterr);

typedef struct pawl_snapshot_info {
    size_t size;
    const char *path;
    uint64_t offset;     /* what its name says */
    int64_t taken_at_us; /* when the file was written last */
    pawl_status status;  /* PAWL_OK: it is good */
    const char *problem; /* why it is not; empty */
} pawl_snapshot_info;

typedef bool (*pawl_snapshot_visit)(void *context, const pawl_snapshot_info *info);

/* Verifies the snapshots of a directory, the newest first, from the offset page->from on (0: the newest), and shows
 * each to `visit`. Other files are passed over. */
PAWL_API PAWL_MUST_USE pawl_status pawl_snapshot_list(const char *directory,
                                                      pawl_page *page,
                                                      pawl_snapshot_visit visit,
                                                      void *context,
                                                      pawl_error *reterr);

/* Verifies snapshots from the newest on until `keep` (at least 1) good ones are found, and removes
 * the older ones. Damaged ones before that stay to be looked at and do not count; what is no ledger
 * file is never touched. `ret_removed` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_snapshot_prune(const char *directory,
                                                       uint32_t keep,
                                                       uint32_t *ret_removed,
                                                       pawl_error *reterr);

#define PAWL_LEDGER_PATH_SIZE 4096

typedef struct pawl_restore_options {
    size_t size;
    const char *target; /* the new file; NULL: <name>.restored-N.db beside the snapshot, N the
                                  first that is free */
    const char *tail_location; /* a surviving ledger: its events after the snapshot are appended */
    bool accept_older;       /* restore less than there was, when that is all there is; see below */
    const pawl_watch *watch; /* counts thousandths; NULL: nobody */
} pawl_restore_options;

#define PAWL_RESTORE_OPTIONS_INIT                             \
    {                                                         \
        sizeof(pawl_restore_options), NULL, NULL, false, NULL \
    }

typedef struct pawl_restored {
    size_t size;
    char path[PAWL_LEDGER_PATH_SIZE];        /* the new ledger */
    char snapshot[PAWL_LEDGER_PATH_SIZE];    /* what it was made from */
    char passed_over[PAWL_LEDGER_PATH_SIZE]; /* with accept_older: the newest snapshot of the
                                                directory, which could not be used; empty */
    pawl_ledger_head head;
    uint64_t
        lost; /* with accept_older: so many events after `head` are known to have been there, by
                      the tail's anchor or the name of the snapshot that was passed over */
} pawl_restored;

#define PAWL_RESTORED_INIT                                 \
    {                                                      \
        sizeof(pawl_restored), "", "", "", { 0, { 0 } }, 0 \
    }

/* Copies a snapshot into a new ledger file, never writing into the snapshot, and appends the tail.
 * The result is verified. `options` and `ret_restored` may be NULL.
 *
 * `snapshot` is a file, or a directory: then the newest good snapshot in it. A file that has the name
 * of a snapshot must end at the offset that its name says.
 *
 * CORRUPT: the snapshot or the tail is damaged; or a directory's newest snapshot is, or a tail is
 * shorter than its anchor says. In the last two cases accept_older restores what is left, and logs
 * how much is lost. A newest snapshot that cannot be read fails with the status of that read (DENIED,
 * UNSUPPORTED, ...), unless accept_older. CONFLICT: the target exists, or the tail is of another
 * ledger: the snapshot's last event is not in it. CANCELLED by `watch`. After a failure no
 * partial ledger is left. */
PAWL_API PAWL_MUST_USE pawl_status pawl_snapshot_restore(const char *snapshot,
                                                         const pawl_restore_options *options,
                                                         pawl_restored *ret_restored,
                                                         pawl_error *reterr);

typedef struct pawl_proof {
    size_t size;
    char snapshot[512]; /* the newest one, which was restored */
    uint64_t snapshot_offset;
    uint64_t replayed;     /* events of the tail that were appended to it */
    pawl_ledger_head head; /* of the restored copy; equal to the ledger's */
    int64_t proven_at_us;
    int64_t snapshot_taken_at_us;
} pawl_proof;

#define PAWL_PROOF_INIT                                  \
    {                                                    \
        sizeof(pawl_proof), "", 0, 0, { 0, { 0 } }, 0, 0 \
    }

/* Proves that the newest snapshot of `directory` restores: into a scratch file, tail replayed, head
 * compared with the ledger's. CORRUPT when it does not match, or is damaged. The time of the last
 * success is kept in the directory (proof.json) and read back by pawl_ledger_last_proof (NOT_FOUND:
 * never). */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_prove(pawl_ledger *ledger,
                                                     const char *directory,
                                                     pawl_proof *ret_proof,
                                                     pawl_error *reterr);
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_last_proof(const char *directory,
                                                          pawl_proof *ret_proof,
                                                          pawl_error *reterr);

/* --- Recall ----------------------------------------------------------------------------------- */

#define PAWL_EMBEDDING_DIMENSIONS_MAX 16000
#define PAWL_RECALL_COUNT_MAX 10000

typedef struct pawl_recalled {
    uint64_t offset;
    double similarity; /* cosine, -1 to 1 */
} pawl_recalled;

/* Attaches an embedding to the event at `offset`, replacing an earlier one. All embeddings of a
 * ledger have the same number of dimensions; finite, not all zero. It is derived data: not part of
 * the chain. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_embed(pawl_ledger *ledger,
                                                     uint64_t offset,
                                                     const float *values,
                                                     size_t dimensions,
                                                     pawl_error *reterr);

/* The `count` (1 to PAWL_RECALL_COUNT_MAX) events nearest to `values`, best first, ties by lower
 * offset. Exact; on PostgreSQL with pgvector the server searches. `ret_found` has `count` entries.
 */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_recall(pawl_ledger *ledger,
                                                      const float *values,
                                                      size_t dimensions,
                                                      const pawl_event_filter *filter,
                                                      pawl_recalled *ret_found,
                                                      size_t count,
                                                      size_t *ret_count,
                                                      pawl_error *reterr);

/* The embedding of the event at `offset`, scaled to length 1. NOT_FOUND: it has none. INVALID: it
 * has more dimensions than `ret_values` has room for; PAWL_EMBEDDING_DIMENSIONS_MAX is enough. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_get_embedding(pawl_ledger *ledger,
                                                             uint64_t offset,
                                                             float *ret_values,
                                                             size_t room,
                                                             size_t *ret_dimensions,
                                                             pawl_error *reterr);

/* --- Import and export ------------------------------------------------------------------------ */

/* Reads an event from a JSON object with the names of its fields:
 *
 *   {"id":"e-1","run_id":"village","turn":7,"kind":"say","actor":"ada","payload":{"text":"hello"},
 *    "created_at":"2026-01-29T10:20:30.5Z","schema_version":1}
 *
 * created_at is RFC 3339. The payload is kept byte for byte; it can also be a
 * string, `payload_text`, that holds it. `offset` and `hash` may be there; any other name is
 * INVALID. What is left out, or null, comes from `defaults` (NULL: none) and is empty when it has
 * none; only a turn must come from one of the two, where a negative one is none. Limits and the
 * payload's JSON are checked when the event is appended. Ended with pawl_event_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_event_from_json(pawl_view json,
                                                        const pawl_event *defaults,
                                                        pawl_event **ret_event,
                                                        pawl_error *reterr);

/* Writes an event as such an object, without line breaks, so that reading it gives the same event
 * back. It ends with a NUL and is ended with pawl_free. `ret_len` may be NULL. A payload that is not
 * JSON is CORRUPT when the event has an offset, so was stored, and INVALID otherwise. */
PAWL_API PAWL_MUST_USE pawl_status pawl_event_to_json(const pawl_event *event,
                                                      char **ret_json,
                                                      size_t *ret_len,
                                                      pawl_error *reterr);

typedef enum pawl_file_format {
    PAWL_FORMAT_JSONL,      /* an object of pawl_event_to_json per line */
    PAWL_FORMAT_PARQUET,    /* a column per field; created_at is a TIMESTAMP in UTC, hash a BLOB */
    PAWL_FORMAT_SEED_SQLITE /* import only: a database of the original schema, without hashes */
} pawl_file_format;

/* Writes the events that match, as of now, to a new file, fsynced and renamed into place ("-":
 * JSONL to standard output). CONFLICT: the file exists. `watch` counts offsets; it and
 * `ret_count` may be NULL. Embeddings are not exported. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_export(pawl_ledger *ledger,
                                                      const char *path,
                                                      pawl_file_format format,
                                                      const pawl_event_filter *filter,
                                                      const pawl_watch *watch,
                                                      uint64_t *ret_count,
                                                      pawl_error *reterr);

typedef struct pawl_import_report {
    size_t size;
    uint64_t appended;
    uint64_t duplicates; /* were there already, with the same content */
} pawl_import_report;

#define PAWL_IMPORT_REPORT_INIT          \
    {                                    \
        sizeof(pawl_import_report), 0, 0 \
    }

/* Appends the events of a file ("-": JSONL from standard input) in batches, turns included. What is
 * there already is a duplicate, so importing again after a failure resumes where it stopped. An
 * error names the line, row or offset, and everything before it was appended; `ret_report`, which
 * may be NULL, is filled then, too. `watch` counts bytes of JSONL, otherwise events.
 *
 * Nothing is rounded: a number that is not whole, or of another type, is INVALID. created_at and
 * schema_version may be left out in every format. Digits after the microsecond are cut off.
 *
 * Into an empty ledger, the export of a whole ledger gives the same offsets and hashes. */
PAWL_API PAWL_MUST_USE pawl_status pawl_ledger_import(pawl_ledger *ledger,
                                                      const char *path,
                                                      pawl_file_format format,
                                                      const pawl_watch *watch,
                                                      pawl_import_report *ret_report,
                                                      pawl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
