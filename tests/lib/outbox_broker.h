/* A broker in memory that does what JetStream does, as far as an outbox can tell, and fails when it is told to. One
 * stream "S" takes every subject. What happens is written into a trace. */
#ifndef TESTS_OUTBOX_BROKER_H
#define TESTS_OUTBOX_BROKER_H

#include "delivery/outbox/broker.h"
#include "lib/trace.h"

enum { OUTBOX_BROKER_MESSAGES_MAX = 256 };

struct outbox_broker_message {
    uint64_t sequence;
    char subject[64];
    char id[64];
    int64_t stored_s;
    struct outbox_origin origin;
};

struct outbox_broker_model {
    struct outbox_broker base;
    struct trace *trace;
    bool down;        /* no link */
    bool no_stream;   /* nobody takes the subjects */
    bool silent;      /* takes messages and does not answer */
    int64_t window_s; /* in which it knows ids; 0: 120 */
    struct outbox_link link;
    struct outbox_stream stream;
    size_t refuse_bytes; /* payloads of at least so many; 0: none */
    struct outbox_broker_message messages[OUTBOX_BROKER_MESSAGES_MAX];
    size_t count;
    struct outbox_answer answers[OUTBOX_BROKER_MESSAGES_MAX];
    size_t answer_count;
    size_t reads; /* messages that were read back */
};

void outbox_broker_init(struct outbox_broker_model *model, struct trace *trace);

/* Another process of the server, which has only the messages up to `last`. */
void outbox_broker_restart(struct outbox_broker_model *model, uint64_t last);

/* Somebody else's message. */
void outbox_broker_publish(struct outbox_broker_model *model, const char *subject, const char *id);

/* What an outbox sent before: that of memory is 1. */
void outbox_broker_publish_as(struct outbox_broker_model *model,
                              const char *subject,
                              const char *id,
                              struct outbox_origin origin);

/* "a:s:e1:7 a:s:e2:7": subject and id of all messages. */
const char *outbox_broker_messages(struct outbox_broker_model *model);

#endif
