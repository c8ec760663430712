/* Many events at once: does the table have them? */
#ifndef PAWL_DELIVERY_SERVICE_ASKED_H
#define PAWL_DELIVERY_SERVICE_ASKED_H

#include "delivery/core/sink.h"

enum { DELIVERY_ASKED_MAX = 20000 }; /* a question costs a scan of the table: ask rarely */

struct delivery_asked_event {
    struct delivery_names names; /* the sink may have it under either */
    struct delivery_hash payload_hash;
    pawl_view transaction_id; /* in the arena */
    uint64_t sequence;
    delivery_lsn lsn; /* 0: it came from the source */
    bool is_known;    /* the answer: a row, filtered or in failed_events, with this payload */
    bool id_taken;    /* the sink has the id with another payload */
};

/* Starts with zeroes. */
struct delivery_asked {
    struct pawl__arena arena;
    struct delivery_asked_event *events;
    size_t count;
    struct delivery_key *keys;
    struct delivery_known *known;
    size_t *which;
};

void pawl__delivery_asked_done(struct delivery_asked *asked);
void pawl__delivery_asked_clear(struct delivery_asked *asked);

/* There must be room: DELIVERY_ASKED_MAX. */
PAWL_MUST_USE pawl_status
pawl__delivery_asked_add_message(struct delivery_asked *asked,
                                 const struct delivery_identity_rule *rule,
                                 const struct delivery_message *message,
                                 pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_asked_add_entry(struct delivery_asked *asked,
                                                         const struct delivery_entry *entry,
                                                         pawl_error *reterr);

/* Fills in the answers. */
PAWL_MUST_USE pawl_status pawl__delivery_ask(struct delivery_asked *asked,
                                             struct delivery_sink *sink,
                                             pawl_error *reterr);

#endif
