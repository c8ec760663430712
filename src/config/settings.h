/* Every setting pawl knows: one row each in PAWL__SETTING_MAP, and nothing else to keep in step.
 * The schema of pawl.yaml, the names of environment variables and flags, the checks, the defaults
 * and what `pawl config show` prints all come from the row.
 *
 *   key      "log.level": `level` below `log:` in pawl.yaml. Rows of one section stand together.
 *   type     what a value must look like, see below
 *   default  as text, read like any other value; "" is 'not set', which only such a row allows
 *   min, max the range of a number; 0, 0 for what is none
 *   one_of   "a|b": the words of a CHOICE, the schemes of a URL; NULL elsewhere
 *   also     an environment variable that people know already, or NULL
 *   help     one sentence
 *
 * The environment variable is PAWL_LOG_LEVEL and the flag is --log-level: both follow from the key.
 * Settings that nothing reads do not belong here.
 *
 *   TEXT      UTF-8 without control characters
 *   BOOL      true, false, yes, no, on, off
 *   INTEGER, DURATION, SIZE   as in base/core/quantity.h
 *   CHOICE    one of a few words
 *   PATH      like TEXT; '~/' is the home directory, and a relative path in a file starts at the
 *             directory of that file
 *   URL       scheme://...; passwords in it are never shown
 *   SECRET    like TEXT, never shown */
#ifndef PAWL_CONFIG_SETTINGS_H
#define PAWL_CONFIG_SETTINGS_H

#include <pawl/pawl.h>

#include "base/core/buf.h"
#include "base/os/clock.h"

enum pawl__setting_type {
    PAWL__SETTING_TEXT,
    PAWL__SETTING_BOOL,
    PAWL__SETTING_INTEGER,
    PAWL__SETTING_DURATION,
    PAWL__SETTING_SIZE,
    PAWL__SETTING_CHOICE,
    PAWL__SETTING_PATH,
    PAWL__SETTING_URL,
    PAWL__SETTING_SECRET,
};

/* clang-format off */
#define PAWL__SETTING_MAP(X) \
    X(DATA, "data", PATH, "~/.local/share/pawl", 0, 0, NULL, NULL, "Directory that holds every store of this node.") \
    X(DATABASE_URL, "database_url", URL, "", 0, 0, "postgresql|postgres|sqlite", "DATABASE_URL", "PostgreSQL server that holds ledger and work instead of files in the data directory, or sqlite:FILE.") \
    X(LOG_LEVEL, "log.level", CHOICE, "info", 0, 0, "debug|info|warning|error", NULL, "Least severe kind of event that is logged.") \
    X(LOG_FORMAT, "log.format", CHOICE, "auto", 0, 0, "auto|logfmt|json", NULL, "Form of a log line; auto is logfmt on a terminal and JSON elsewhere.") \
    X(STORE_BUSY_TIMEOUT, "store.busy_timeout", DURATION, "5s", 0, 3600 * NS_PER_S, NULL, NULL, "How long a store that another process holds is waited for.") \
    X(STORE_ANSWER_TIMEOUT, "store.answer_timeout", DURATION, "10s", 100 * NS_PER_MS, 3600 * NS_PER_S, NULL, NULL, "How long a PostgreSQL server may be silent before it counts as stalled and the call fails.") \
    X(STORE_FREE_SPACE_MIN, "store.free_space_min", SIZE, "256MiB", 0, INT64_MAX, NULL, NULL, "Free disk space below which an application in a directory refuses commands, before the disk is full.") \
    X(STORE_MEMORY_MAX, "store.memory_max", SIZE, "128MiB", 16 << 20, INT64_C(1) << 44, NULL, NULL, "Memory for the stores of all applications in directories together: what was read, and what waits to be written to files.") \
    X(CONSUMER_WAL_PATH, "consumer_wal.path", PATH, "", 0, 0, NULL, "CONSUMER_WAL_PATH", "Directory of the write-ahead logs of pipelines, each in one of its own; wal/consumer in the data directory if it is not set.") \
    X(CONSUMER_WAL_SYNC_WRITES, "consumer_wal.sync_writes", BOOL, "true", 0, 0, NULL, "CONSUMER_WAL_SYNC_WRITES", "Whether an event is on disk before its source hears that we have it; without, a power cut loses events.") \
    X(CONSUMER_WAL_RETRY_INTERVAL, "consumer_wal.retry_interval", DURATION, "30s", NS_PER_MS, 86400 * NS_PER_S, NULL, "CONSUMER_WAL_RETRY_INTERVAL", "How often a pipeline looks at events that wait for a retry.") \
    X(CONSUMER_WAL_MAX_RETRIES, "consumer_wal.max_retries", INTEGER, "100", 1, 1000000, NULL, "CONSUMER_WAL_MAX_RETRIES", "Attempts at an event before it goes to failed_events.") \
    X(CONSUMER_WAL_RETRY_BACKOFF, "consumer_wal.retry_backoff", DURATION, "5s", NS_PER_MS, 86400 * NS_PER_S, NULL, "CONSUMER_WAL_RETRY_BACKOFF", "Pause before the first retry; it doubles up to five minutes.") \
    X(CONSUMER_WAL_ENTRY_TTL, "consumer_wal.entry_ttl", DURATION, "168h", NS_PER_S, INT64_C(36500) * 86400 * NS_PER_S, NULL, "CONSUMER_WAL_ENTRY_TTL", "How long an event that fails is tried, in time that its pipeline runs.") \
    X(CONSUMER_WAL_MEMTABLE_SIZE, "consumer_wal.memtable_size", SIZE, "16MiB", 1 << 20, INT64_C(1) << 32, NULL, "CONSUMER_WAL_MEMTABLE_SIZE", "Memory in which a write-ahead log collects entries.") \
    X(CONSUMER_WAL_VLOG_SIZE, "consumer_wal.vlog_size", SIZE, "64MiB", 1 << 20, INT64_C(1) << 40, NULL, "CONSUMER_WAL_VLOG_SIZE", "Size of the files that hold large payloads.") \
    X(CONSUMER_WAL_NUM_COMPACTORS, "consumer_wal.num_compactors", INTEGER, "2", 2, 64, NULL, "CONSUMER_WAL_NUM_COMPACTORS", "Threads that compact a write-ahead log.") \
    X(CONSUMER_WAL_COMPRESSION, "consumer_wal.compression", BOOL, "true", 0, 0, NULL, "CONSUMER_WAL_COMPRESSION", "Whether write-ahead logs are compressed.") \
    X(CONSUMER_WAL_CLOSE_TIMEOUT, "consumer_wal.close_timeout", DURATION, "30s", NS_PER_MS, 3600 * NS_PER_S, NULL, "CONSUMER_WAL_CLOSE_TIMEOUT", "How long pipelines may take to stop.") \
    X(CONSUMER_WAL_LEASE_DURATION, "consumer_wal.lease_duration", DURATION, "2m", NS_PER_S, 86400 * NS_PER_S, NULL, "CONSUMER_WAL_LEASE_DURATION", "How long a pipeline holds its write-ahead log and table without a transaction.") \
    X(CONSUMER_WAL_MAX_PENDING, "consumer_wal.max_pending", SIZE, "4GiB", 1 << 20, INT64_MAX, NULL, NULL, "Events that are in no table yet, of one pipeline; beyond it nothing is read from its source.") \
    X(CONSUMER_WAL_MAX_FAILED, "consumer_wal.max_failed", SIZE, "1GiB", 1 << 20, INT64_MAX, NULL, NULL, "The same for events in failed_events that nobody has dealt with.") \
    X(DELIVERY_MEMORY_MAX, "delivery.memory_max", SIZE, "1GiB", 16 << 20, INT64_C(1) << 44, NULL, NULL, "Memory of DuckDB while pipelines run.") \
    X(SERVER_LISTEN, "server.listen", TEXT, "127.0.0.1:8470", 0, 0, NULL, NULL, "Address and port that 'pawl serve' listens on; one that other machines reach needs a token and TLS.") \
    X(SERVER_TLS_CERTIFICATE, "server.tls_certificate", PATH, "", 0, 0, NULL, NULL, "File with the certificate of 'pawl serve' and its chain (PEM); without it the node speaks plain HTTP.") \
    X(SERVER_TLS_KEY, "server.tls_key", PATH, "", 0, 0, NULL, NULL, "File with the key of that certificate (PEM), which nobody else may read.") \
    X(SERVER_BODY_MAX, "server.body_max", SIZE, "8MiB", 1024, 64 << 20, NULL, NULL, "Largest body of a request.") \
    X(SERVER_BODIES_MAX, "server.bodies_max", SIZE, "256MiB", 1 << 20, INT64_C(64) << 30, NULL, NULL, "Bodies of all requests together; more are answered 503.") \
    X(SERVER_HEADER_MAX, "server.header_max", SIZE, "32KiB", 4096, 1 << 20, NULL, NULL, "Largest first line and headers of a request.") \
    X(SERVER_CONNECTIONS_MAX, "server.connections_max", INTEGER, "4096", 2, 100000, NULL, NULL, "Connections at a time; more wait to be accepted.") \
    X(SERVER_PARTITIONS_MAX, "server.partitions_max", INTEGER, "256", 1, 65536, NULL, NULL, "Partitions of all applications together: each has three threads and its numbers in memory.") \
    X(SERVER_IDLE_TIMEOUT, "server.idle_timeout", DURATION, "1m", NS_PER_S, 3600 * NS_PER_S, NULL, NULL, "How long a connection may be silent.") \
    X(SERVER_READ_TIMEOUT, "server.read_timeout", DURATION, "30s", 100 * NS_PER_MS, 3600 * NS_PER_S, NULL, NULL, "How long a request may take to arrive.") \
    X(SERVER_ANSWER_TIMEOUT, "server.answer_timeout", DURATION, "1m", 100 * NS_PER_MS, 3600 * NS_PER_S, NULL, NULL, "How long an answer may take, before it is 504, and to be read.") \
    X(SERVER_BUSY_TIMEOUT, "server.busy_timeout", DURATION, "1s", 0, 60 * NS_PER_S, NULL, NULL, "How long a command waits for sequences that are busy before it is answered 503.") \
    X(SERVER_STOP_TIMEOUT, "server.stop_timeout", DURATION, "10s", 0, 600 * NS_PER_S, NULL, NULL, "How long requests that have begun may take when the node stops.") \
    X(WORK_LEASE, "work.lease", DURATION, "5m", 5 * NS_PER_S, INT64_C(7) * 86400 * NS_PER_S, NULL, NULL, "How long a claimed item stays with its holder without a heartbeat.") \
    X(WORK_HEARTBEAT, "work.heartbeat", DURATION, "1m", 100 * NS_PER_MS, INT64_C(7) * 86400 * NS_PER_S, NULL, NULL, "How often 'pawl work run' extends its leases; unless it is set, three times in a lease at the least.") \
    X(WORK_STALE, "work.stale", DURATION, "2m", NS_PER_S, INT64_C(7) * 86400 * NS_PER_S, NULL, NULL, "A lease without a heartbeat for longer is counted as stale.") \
    X(WORK_SWEEP, "work.sweep", DURATION, "1m", 100 * NS_PER_MS, INT64_C(7) * 86400 * NS_PER_S, NULL, NULL, "How often 'pawl work run' and 'pawl serve' take back leases that ran out; unless it is set, twice in a lease at the least.") \
    X(PRODUCER_WAL_PATH, "producer_wal.path", PATH, "", 0, 0, NULL, "PRODUCER_WAL_PATH", "Directory of the outbox of 'pawl publish'; wal/producer in the data directory if it is not set.") \
    X(PRODUCER_WAL_SYNC_WRITES, "producer_wal.sync_writes", BOOL, "true", 0, 0, NULL, "PRODUCER_WAL_SYNC_WRITES", "Whether an event is on disk before it counts as accepted; without, a power cut loses some.") \
    X(PRODUCER_WAL_RETRY_INTERVAL, "producer_wal.retry_interval", DURATION, "30s", 100 * NS_PER_MS, 3600 * NS_PER_S, NULL, "PRODUCER_WAL_RETRY_INTERVAL", "How often the outbox compares the stream with what it acknowledged.") \
    X(PRODUCER_WAL_MAX_RETRIES, "producer_wal.max_retries", INTEGER, "100", 1, 1000000, NULL, "PRODUCER_WAL_MAX_RETRIES", "How often an event is tried that the server refuses for no known reason, before it counts as failed.") \
    X(PRODUCER_WAL_RETRY_BACKOFF, "producer_wal.retry_backoff", DURATION, "5s", NS_PER_MS, 3600 * NS_PER_S, NULL, "PRODUCER_WAL_RETRY_BACKOFF", "First wait after the broker failed; it doubles up to 60 times that.") \
    X(PRODUCER_WAL_MEMTABLE_SIZE, "producer_wal.memtable_size", SIZE, "16MiB", 64 << 10, INT64_C(1) << 32, NULL, "PRODUCER_WAL_MEMTABLE_SIZE", "Memory of the outbox for what is not yet in its files.") \
    X(PRODUCER_WAL_VLOG_SIZE, "producer_wal.vlog_size", SIZE, "64MiB", 1 << 20, INT64_C(1) << 40, NULL, "PRODUCER_WAL_VLOG_SIZE", "Size of one blob file of the outbox.") \
    X(PRODUCER_WAL_NUM_COMPACTORS, "producer_wal.num_compactors", INTEGER, "2", 2, 64, NULL, "PRODUCER_WAL_NUM_COMPACTORS", "Background jobs of the outbox.") \
    X(PRODUCER_WAL_COMPRESSION, "producer_wal.compression", BOOL, "true", 0, 0, NULL, "PRODUCER_WAL_COMPRESSION", "Whether the files of the outbox are compressed.") \
    X(PRODUCER_WAL_CLOSE_TIMEOUT, "producer_wal.close_timeout", DURATION, "30s", NS_PER_MS, 3600 * NS_PER_S, NULL, "PRODUCER_WAL_CLOSE_TIMEOUT", "How long closing the outbox may take.") \
    X(PRODUCER_WAL_KEEP, "producer_wal.keep", DURATION, "3m", NS_PER_MS, INT64_C(7) * 86400 * NS_PER_S, NULL, "PRODUCER_WAL_KEEP", "How long an acknowledged event stays in the outbox; longer than the sync_interval of the server.") \
    X(PRODUCER_WAL_MAX_BYTES, "producer_wal.max_bytes", SIZE, "4GiB", 1 << 20, INT64_MAX, NULL, "PRODUCER_WAL_MAX_BYTES", "Largest outbox; beyond it nothing is accepted until the broker has taken some.") \
    X(PRODUCER_WAL_DEDUPE_HORIZON, "producer_wal.dedupe_horizon", DURATION, "720h", 0, INT64_C(3650) * 86400 * NS_PER_S, NULL, "PRODUCER_WAL_DEDUPE_HORIZON", "How long the outbox remembers ids, in running time.") \
    X(PRODUCER_WAL_DEDUPE_MAX_BYTES, "producer_wal.dedupe_max_bytes", SIZE, "1GiB", 1 << 20, INT64_MAX, NULL, "PRODUCER_WAL_DEDUPE_MAX_BYTES", "Most bytes of ids that the outbox remembers.")
/* clang-format on */

enum pawl__setting_id {
#define SETTING_ID_(id, key, type, text, min, max, one_of, also, help) PAWL__##id,
    PAWL__SETTING_MAP(SETTING_ID_)
#undef SETTING_ID_
        PAWL__SETTING_COUNT
};

struct pawl__setting {
    const char *key;
    enum pawl__setting_type type;
    const char *text; /* the default */
    int64_t min;
    int64_t max;
    const char *one_of;
    const char *also;
    const char *help;
};

extern const struct pawl__setting pawl__settings[PAWL__SETTING_COUNT];

enum {
    PAWL__SETTING_NAME_SIZE = 128,        /* of a key, variable or flag, with its NUL */
    PAWL__SETTING_VALUE_BYTES_MAX = 4096, /* of one value */
};

void pawl__setting_variable(const struct pawl__setting *setting,
                            char ret_name[PAWL__SETTING_NAME_SIZE]); /* "PAWL_LOG_LEVEL" */
void pawl__setting_flag(const struct pawl__setting *setting,
                        char ret_name[PAWL__SETTING_NAME_SIZE]); /* "--log-level" */

/* Checks a value. *ret_number is 0 or 1 for BOOL, the number for INTEGER, nanoseconds for DURATION,
 * bytes for SIZE, the position in the list for CHOICE, else 0. INVALID says what is wrong and what
 * is allowed, without the name of the setting; it shows the value unless that may hold a secret. */
PAWL_MUST_USE pawl_status pawl__setting_parse(const struct pawl__setting *setting,
                                              pawl_view text,
                                              int64_t *ret_number,
                                              pawl_error *reterr);

/* Adds what may be put in: "one of auto, logfmt, json", "a duration from 0s to 1h". */
void pawl__setting_add_allowed(const struct pawl__setting *setting, struct pawl__buf *buf);

/* Adds a value as it may be shown: a SECRET as "********", a URL with its passwords hidden. */
void pawl__setting_add_shown(const struct pawl__setting *setting,
                             pawl_view text,
                             struct pawl__buf *buf);

/* Adds a URL with "***" for the password of user:password@ and of parameters whose name says that
 * they are one (password, sslpassword, token, secret, key). What does not look like a URL is hidden
 * whole: a password may be anywhere in it. */
void pawl__url_add_masked(pawl_view url, struct pawl__buf *buf);

#endif
