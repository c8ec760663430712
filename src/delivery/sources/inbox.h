/* Events that calls of this process hand to a pipeline (HTTP intake), and the source that fetches them.
 *
 * Nothing here survives the process: who handed an event in hears that it is accepted after the write-ahead log's fsync,
 * and hands it in again when it hears nothing. Calls that come while a batch is being written share the next batch, and so
 * one fsync.
 *
 * Threads: any for pawl__delivery_inbox_submit; the source belongs to the thread of the pipeline. */
#ifndef PAWL_DELIVERY_SOURCES_INBOX_H
#define PAWL_DELIVERY_SOURCES_INBOX_H

#include "base/core/arena.h"
#include "base/os/clock.h"
#include "base/thread/cancel.h"
#include "delivery/core/source.h"

enum {
    DELIVERY_INBOX_EVENTS_MAX = 65536, /* that wait */
    DELIVERY_INBOX_BYTES_MAX = 64 << 20,
};

struct delivery_submission;

/* Every event has been answered; `error` is PAWL_OK when all of them are on disk. On the thread of the pipeline, or of
 * whoever closes the source; owns the submission from here on. */
typedef void delivery_submission_done(struct delivery_submission *submission,
                                      const pawl_error *error);

/* The events of one call. Made and filled by the caller; the inbox's until `done`. */
struct delivery_submission {
    struct pawl__arena arena;          /* of everything below */
    struct delivery_message *messages; /* their places are given when they are fetched */
    enum delivery_taken *taken;
    size_t count;
    delivery_submission_done *done;
    void *context;

    /* The inbox's. */
    struct delivery_submission *next;
    size_t fetched;
    size_t answered;
    size_t bytes;
    pawl_error error;
};

struct delivery_inbox {
    struct pawl__lock lock; /* covers all of it */
    struct pawl__cond changed;
    bool is_open; /* a source fetches from it */
    struct delivery_submission *first;
    struct delivery_submission *last;
    size_t events; /* that no source has fetched */
    size_t bytes;
};

void pawl__delivery_inbox_init(struct delivery_inbox *inbox);
void pawl__delivery_inbox_done(struct delivery_inbox *inbox); /* when no source has it */

/* PAWL_OK: `done` is called exactly once, perhaps before this returns. UNAVAILABLE: no pipeline fetches from it now.
 * BUSY: too many wait. After any error `done` is not called. */
PAWL_MUST_USE pawl_status pawl__delivery_inbox_submit(struct delivery_inbox *inbox,
                                                      struct delivery_submission *submission,
                                                      pawl_error *reterr);

/* Answers everything that was not fetched yet with this error: the pipeline can take nothing now. */
void pawl__delivery_inbox_refuse(struct delivery_inbox *inbox, const pawl_error *error);

/* The source. Closing it answers everything that it has not answered, with UNAVAILABLE. */
PAWL_MUST_USE pawl_status pawl__delivery_inbox_open(struct delivery_inbox *inbox,
                                                    struct pawl__cancel *cancel,
                                                    struct pawl__clock *clock,
                                                    struct delivery_source **ret_source,
                                                    pawl_error *reterr);

#endif
