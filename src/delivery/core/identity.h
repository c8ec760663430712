/* Who an event is: a pure function of the message, never of a counter, a clock or chance.
 *
 *     {source}:{event_id}:{sequence}                        the producer gave an id
 *     {source}:{stream}@{created}@{stored}:{sequence}       it gave none: the message's place
 *
 * Where the id comes from, the first that is there:
 *   1. headers Pawl-Source, Pawl-Event-Id and Pawl-Sequence, which `pawl publish` writes
 *   2. the JSON field that the pipeline names (`id_field`)
 *   3. the header Nats-Msg-Id
 *   4. the place */
#ifndef PAWL_DELIVERY_CORE_IDENTITY_H
#define PAWL_DELIVERY_CORE_IDENTITY_H

#include "base/core/buf.h"
#include "delivery/core/message.h"

#define DELIVERY_HEADER_SOURCE "Pawl-Source"
#define DELIVERY_HEADER_EVENT_ID "Pawl-Event-Id"
#define DELIVERY_HEADER_SEQUENCE "Pawl-Sequence"
#define DELIVERY_HEADER_MESSAGE_ID "Nats-Msg-Id"

struct delivery_hash {
    uint8_t bytes[16]; /* the first half of a SHA-256 */
};

bool pawl__delivery_hash_equal(const struct delivery_hash *a, const struct delivery_hash *b);

struct delivery_identity_rule {
    pawl_view source;   /* of the pipeline; no ':' in it */
    pawl_view stream;   /* the source's own name, part of ids by place */
    pawl_view id_field; /* a key of the payload's object; empty: none */
};

enum delivery_id_kind {
    DELIVERY_ID_GIVEN,    /* the producer's */
    DELIVERY_ID_BY_PLACE, /* it gave none */
    DELIVERY_ID_BAD, /* it gave one that is too long, not UTF-8 or no number: by place, and the event
                           * fails validation */
};

struct delivery_identity {
    enum delivery_id_kind kind;
    struct delivery_hash id;      /* of the transaction id: the key of the index */
    struct delivery_hash payload; /* tells a duplicate from a conflict */
    pawl_view transaction_id;     /* this and the next two point into `text` of the call */
    pawl_view source;
    pawl_view event_id;
    uint64_t sequence;
};

enum { DELIVERY_TRANSACTION_ID_BYTES_MAX = 2 * DELIVERY_ID_BYTES_MAX + 96 };

/* Appends the transaction id to `text`, a buffer that must not move afterwards (take one of
 * DELIVERY_TRANSACTION_ID_BYTES_MAX, or reserve). INVALID only for a rule that is none. NOMEM. */
PAWL_MUST_USE pawl_status pawl__delivery_identify(const struct delivery_identity_rule *rule,
                                                  const struct delivery_message *message,
                                                  struct pawl__buf *text,
                                                  struct delivery_identity *ret_identity,
                                                  pawl_error *reterr);

/* INVALID: the source is empty, too long, not UTF-8 or has a ':'. */
PAWL_MUST_USE pawl_status pawl__delivery_check_rule(const struct delivery_identity_rule *rule,
                                                    pawl_error *reterr);

/* The key under which a conflict is indexed: the same id with this payload. The first payload keeps the
 * id; a conflict that is delivered twice is found by this and becomes one row, not two. */
PAWL_MUST_USE pawl_status pawl__delivery_conflict_key(const struct delivery_hash *id,
                                                      const struct delivery_hash *payload,
                                                      struct delivery_hash *ret_key,
                                                      pawl_error *reterr);

/* The key of an id that the producer gave, from its transaction id. */
PAWL_MUST_USE pawl_status pawl__delivery_given_key(pawl_view transaction_id,
                                                   struct delivery_hash *ret_key,
                                                   pawl_error *reterr);

#endif
