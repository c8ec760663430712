/* <pawl/publisher.h>: publish events to NATS JetStream through a durable outbox.
 *
 *     pawl_publisher_options options = PAWL_PUBLISHER_OPTIONS_INIT;
 *     options.servers = "nats://localhost:4222";
 *     options.source = "shop";
 *     pawl_publisher_open("data/wal/producer", &options, &publisher, &error);
 *
 *     pawl_outgoing event = PAWL_OUTGOING_INIT;
 *     event.subject = pawl_view_of("orders");
 *     event.event_id = pawl_view_of("order-17-paid");
 *     event.payload = pawl_view_of("{\"euro\": 5}");
 *     pawl_publisher_publish(publisher, &event, 1, NULL, &error);
 *
 * PAWL_OK from publish means: on disk, in the outbox. A thread of the publisher sends it to the stream, in the order
 * of acceptance per subject, for as long as that takes: hours without a broker are fine.
 *
 *   Identity    An event is {source}:{event_id}:{sequence}. It is the message's Nats-Msg-Id, and the headers
 *               Pawl-Source, Pawl-Event-Id and Pawl-Sequence carry its parts, Pawl-Outbox where it came from. The same event again is a duplicate
 *               and is not stored a second time; the same id with another payload is a CONFLICT.
 *   Once        A message without an answer is looked up in the stream before it is sent again. So each event is in
 *               the stream once, also after the server's duplicate window, as long as nobody else writes to its
 *               subject. Where others do, the window decides; a pipeline that reads the stream finds every
 *               duplicate by its id.
 *   Lost tails  An acknowledgement of a server that syncs late does not survive its power cut. The outbox keeps
 *               what was acknowledged for `keep_ms`, compares it with the stream after every reconnect, and
 *               publishes again what the stream has lost, in order.
 *   Owner       One process has an outbox open at a time; another gets BUSY.
 *   Threads     Any thread may call anything but close at any time. */
#ifndef PAWL_PUBLISHER_H
#define PAWL_PUBLISHER_H

#include <pawl/pawl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_PUBLISHER_BATCH_MAX 10000      /* events of one call */
#define PAWL_PUBLISHER_PAYLOAD_MAX 67108864 /* bytes of a payload, whatever the options say */
#define PAWL_PUBLISHER_HEADERS_MAX 60       /* of one event */
#define PAWL_PUBLISHER_ID_BYTES_MAX 200     /* of an event id, and of a source */
#define PAWL_PUBLISHER_PARTITIONS_MAX 1048576

/* Texts are copied. */
typedef struct pawl_publisher_options {
    size_t size;
    const char *
        servers; /* "nats://host:4222", several behind commas; NULL: nothing is sent, only accepted */
    const char
        *source; /* of events that name none; no ':' in it. NULL: each event must name its own */
    const char *user; /* with password; or one of the next three */
    const char *password;
    const char *token;
    const char *nkey_seed_file;
    const char *creds_file;
    const char *tls_ca_file; /* NULL: whom this machine trusts. tls:// in `servers` asks for TLS */
    const char *tls_cert_file;
    const char *tls_key_file;
    uint32_t partitions;       /* 0: none; else the subject becomes "subject.{p}", p from `key` */
    uint32_t payload_max;      /* bytes; 1,000,000 */
    uint64_t bytes_max;        /* of all that is pending, kept or failed; 4 GiB. BUSY beyond */
    uint32_t keep_ms;          /* longer than the server's sync_interval; 180,000 */
    uint32_t check_ms;         /* how often the stream is compared when nothing else asks; 30,000 */
    uint32_t retry_ms;         /* first wait after a failure, doubling up to 60 times that; 1,000 */
    uint32_t attempts_max;     /* of a message that the server refuses for no known reason; 100 */
    uint64_t dedupe_ms;        /* ids are kept for so long, of running time; 30 days */
    uint64_t dedupe_bytes_max; /* and at most so many bytes of them; 1 GiB */
    uint32_t close_ms_max;     /* 30,000 */
    uint64_t memtable_bytes;   /* of the store; 16 MiB */
    uint64_t blob_file_bytes;  /* 64 MiB */
    uint32_t background_jobs;  /* 2 */
    bool no_compression;
    bool unsafe_no_sync;     /* a power cut loses what was accepted */
    bool read_only;          /* to look at an outbox that nobody has open; `servers` must be NULL */
    uint64_t free_space_min; /* of the disk, below which nothing is accepted; 64 MiB */
} pawl_publisher_options;

#define PAWL_PUBLISHER_OPTIONS_INIT                                                              \
    {                                                                                            \
        sizeof(pawl_publisher_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,    \
            NULL, 0, 1000000, UINT64_C(4) << 30, 180000, 30000, 1000, 100, UINT64_C(2592000000), \
            UINT64_C(1) << 30, 30000, 16 << 20, 64 << 20, 2, false, false, false, 64 << 20       \
    }

typedef struct pawl_publisher pawl_publisher;

/* Makes the directory when it is missing. Does not wait for a broker. INVALID names the option, or says that the
 * directory holds other things; BUSY: another process has it; UNSUPPORTED: a newer pawl made it, or this build has
 * no NATS or no RocksDB; CORRUPT, DENIED, NO_SPACE; NOT_FOUND (read_only). */
PAWL_API PAWL_MUST_USE pawl_status pawl_publisher_open(const char *directory,
                                                       const pawl_publisher_options *options,
                                                       pawl_publisher **ret_publisher,
                                                       pawl_error *reterr);

typedef struct pawl_outgoing_header {
    size_t size;
    pawl_view name;  /* printable ASCII without ':', not of "Nats-" or "Pawl-" */
    pawl_view value; /* without CR, LF and NUL */
} pawl_outgoing_header;

#define PAWL_OUTGOING_HEADER_INIT                  \
    {                                              \
        sizeof(pawl_outgoing_header), { NULL, 0 }, \
        {                                          \
            NULL, 0                                \
        }                                          \
    }

typedef struct pawl_outgoing {
    size_t size;
    pawl_view subject;  /* parts behind dots, no wildcards */
    pawl_view source;   /* empty: that of the options */
    pawl_view event_id; /* the producer's own; UTF-8 without control characters */
    uint64_t sequence;  /* of several events with one id; 0 otherwise */
    pawl_view payload;
    pawl_view key; /* decides the partition; empty: event_id does */
    const pawl_outgoing_header *headers;
    size_t header_count;
} pawl_outgoing;

#define PAWL_OUTGOING_INIT                                                                         \
    {                                                                                              \
        sizeof(pawl_outgoing), { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, 0, { NULL, 0 }, { NULL, 0 }, \
            NULL, 0                                                                                \
    }

typedef struct pawl_published {
    size_t size;
    uint64_t number; /* of the event in this outbox: 1, 2, 3 ... */
    bool duplicate;  /* it was there already, under this number */
} pawl_published;

#define PAWL_PUBLISHED_INIT              \
    {                                    \
        sizeof(pawl_published), 0, false \
    }

/* Accepts all of the events, with one fsync, or none. ret_results (NULL: nobody asks) has one per event.
 *
 * INVALID   `index` says which event, the message what is wrong with it
 * CONFLICT  ID_TAKEN: its id has another payload; `index` says which
 * BUSY      QUEUE_FULL (retryable): the outbox holds bytes_max that the broker has not taken, or not yet for good
 * NO_SPACE, IO, DENIED (read_only), CLOSED */
PAWL_API PAWL_MUST_USE pawl_status pawl_publisher_publish(pawl_publisher *publisher,
                                                          const pawl_outgoing *events,
                                                          size_t count,
                                                          pawl_published *ret_results,
                                                          pawl_error *reterr);

/* Waits until nothing is pending. TIMEOUT says how many events wait, and why. UNAVAILABLE: there are no servers to
 * send to. Events that failed are not waited for. */
PAWL_API PAWL_MUST_USE pawl_status pawl_publisher_flush(pawl_publisher *publisher,
                                                        uint32_t timeout_ms,
                                                        pawl_error *reterr);

typedef struct pawl_publisher_status {
    size_t size;
    bool connected;
    uint64_t accepted; /* ever, without duplicates: the highest number */
    uint64_t pending;  /* not acknowledged */
    uint64_t pending_bytes;
    uint64_t kept; /* acknowledged, and kept until the server has surely synced them */
    uint64_t kept_bytes;
    uint64_t failed; /* refused for a reason of their own */
    uint64_t failed_bytes;
    uint64_t ids;          /* by which duplicates are found */
    uint64_t published;    /* acknowledged since the publisher was opened */
    uint64_t republished;  /* of these, lost by the stream and published again */
    pawl_error last_error; /* of the broker; PAWL_OK: the last thing went well */
} pawl_publisher_status;

#define PAWL_PUBLISHER_STATUS_INIT                                                          \
    {                                                                                       \
        sizeof(pawl_publisher_status), false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, PAWL_ERROR_INIT \
    }

PAWL_API PAWL_MUST_USE pawl_status pawl_publisher_get_status(pawl_publisher *publisher,
                                                             pawl_publisher_status *ret_status,
                                                             pawl_error *reterr);

/* An event that the server refuses, whoever sends it: too large, or refused attempts_max times. */
typedef struct pawl_failed_outgoing {
    size_t size;
    uint64_t number;
    int64_t failed_us; /* wall clock */
    pawl_view subject;
    pawl_view source;
    pawl_view event_id;
    uint64_t sequence;
    pawl_view payload;
    pawl_view reason;
} pawl_failed_outgoing;

typedef bool (*pawl_failed_outgoing_visit)(void *context, const pawl_failed_outgoing *failed);

/* In the order of numbers, from page->from on. */
PAWL_API PAWL_MUST_USE pawl_status pawl_publisher_list_failed(pawl_publisher *publisher,
                                                              pawl_page *page,
                                                              pawl_failed_outgoing_visit visit,
                                                              void *context,
                                                              pawl_error *reterr);

/* Tries all of them again, as if they were published now: under new numbers. ret_count (NULL: nobody asks) says how many. */
PAWL_API PAWL_MUST_USE pawl_status pawl_publisher_retry_failed(pawl_publisher *publisher,
                                                               uint64_t *ret_count,
                                                               pawl_error *reterr);

/* Ends it within timeout_ms (0: close_ms_max). What is pending stays in the outbox, for the next time: flush before
 * to wait for it. See Closing in pawl.h. */
PAWL_API pawl_status pawl_publisher_close(pawl_publisher *publisher,
                                          uint32_t timeout_ms,
                                          pawl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
