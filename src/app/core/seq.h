/* The sequences of a partition in an application's store: what a sequencer asks for. */
#ifndef PAWL_APP_CORE_SEQ_H
#define PAWL_APP_CORE_SEQ_H

#include "app/core/backend.h"
#include "app/core/event.h"
#include "app/core/stored.h"

struct app_seq {
    struct app_store *store;
    uint32_t app;
    uint16_t partition;
    bool accepts_short;                    /* a store of format 1 that is only read: see stored.h */
    const pawl_app_descriptor *descriptor; /* for names in messages; NULL: there are numbers */
    bool numbered;                         /* each number of an own sequence is a key (NUMBERS) */
};

/* `seq` outlives the sequencer. */
pawl_seq_storage pawl__app_seq_storage(struct app_seq *seq);

/* An event of the log. What it holds is valid during the call. */
typedef pawl_status app_event_visitor(void *context,
                                      const pawl_app_event *event,
                                      pawl_error *reterr);

/* Calls the visitor with the events of a partition from `offset` on, in order; `limit` at the most, 0: all of
 * them. CORRUPT: one cannot be read, or stands at an offset that it does not name; UNSUPPORTED: a newer version
 * wrote it. */
PAWL_MUST_USE pawl_status pawl__app_seq_walk(const struct app_seq *seq,
                                             uint64_t offset,
                                             size_t limit,
                                             app_event_visitor *visitor,
                                             void *context,
                                             pawl_error *reterr);

/* The last event of the log, views in the page. *ret_found false: the log is empty. */
PAWL_MUST_USE pawl_status pawl__app_seq_last(const struct app_seq *seq,
                                             struct app_page *page,
                                             bool *ret_found,
                                             pawl_app_event *ret_event,
                                             pawl_error *reterr);

/* Its offset, though it cannot be read; 0: the log is empty. */
PAWL_MUST_USE pawl_status pawl__app_seq_end(const struct app_seq *seq,
                                            uint64_t *ret_offset,
                                            pawl_error *reterr);

/* What is stored of a sequence and as the offset; a number of 0: nothing is. CORRUPT. */
PAWL_MUST_USE pawl_status pawl__app_seq_stored(const struct app_seq *seq,
                                               enum app_family family,
                                               const struct app_key *key,
                                               struct app_stored *ret_stored,
                                               pawl_error *reterr);

/* An entry of a PLog as an event. */
PAWL_MUST_USE pawl_status pawl__app_seq_event_of(const struct app_entry *entry,
                                                 struct pawl__arena *arena,
                                                 pawl_app_event *ret_event,
                                                 pawl_error *reterr);

#endif
