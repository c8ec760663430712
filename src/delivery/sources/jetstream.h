/* A JetStream stream as a source: a durable pull consumer with explicit acknowledgements.
 *
 * Opening binds to the stream and to the consumer, if there is one: every field of both is checked, and one that
 * would lose events is refused with CONFLICT and its name. The consumer is made by restart_at, at the place that the
 * pipeline knows; until then fetch is UNAVAILABLE. */
#ifndef PAWL_DELIVERY_SOURCES_JETSTREAM_H
#define PAWL_DELIVERY_SOURCES_JETSTREAM_H

#include "base/thread/cancel.h"
#include "delivery/core/source.h"
#include "net/nats/nats.h"

/* All of it is borrowed for as long as the source is open. */
struct delivery_jetstream_options {
    const char *url;
    const struct pawl__nats_options *connection; /* NULL: defaults */
    const char *stream;
    const char *consumer;
    const char *filter; /* a subject; NULL: all of the stream's */
    bool
        create_stream; /* when there is none: with `subjects` and the defaults of net/nats/stream.h */
    const char *const *subjects;
    size_t subject_count;
    int64_t max_ack_pending; /* messages on their way; 0: 20,000 */
    bool is_temporary;       /* the consumer is removed again: somebody reads beside the pipeline */
    const struct pawl__cancel *cancel; /* ends a fetch that waits; NULL: nobody does */
    struct pawl__clock *clock;         /* NULL: the real one */
};

/* NOT_FOUND: no such stream. CONFLICT: it, or its consumer, is not fit. UNSUPPORTED: a build without NATS. */
PAWL_MUST_USE pawl_status
pawl__delivery_jetstream_open(const struct delivery_jetstream_options *options,
                              struct delivery_source **ret_source,
                              pawl_error *reterr);

#endif
