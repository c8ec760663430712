/* What the steps of a pipeline share. */
#ifndef PAWL_DELIVERY_PIPELINE_INTERNAL_H
#define PAWL_DELIVERY_PIPELINE_INTERNAL_H

#include "delivery/pipeline/pipeline.h"

enum {
    DELIVERY_READ_ENTRIES = 1000, /* of a page, where all entries are read */
    DELIVERY_READ_BYTES = 4 << 20,
};

/* From then on nothing that it does counts. Of any thread. */
static inline void pawl__delivery_break_if(struct delivery_pipeline *pipeline, bool is_so)
{
    if (is_so) {
        pipeline->is_broken = true;
    }
}

int64_t pawl__delivery_now_ns(struct delivery_pipeline *pipeline);
int64_t pawl__delivery_running_now(struct delivery_pipeline *pipeline);
uint64_t pawl__delivery_draw(
    struct delivery_pipeline *pipeline); /* for jitter; 0 when there is none */

/* Calls the visitor with every entry of the WAL in LSN order, whatever its state. */
typedef pawl_status delivery_entry_visitor(struct delivery_pipeline *pipeline,
                                           const struct delivery_entry *entry,
                                           void *context,
                                           pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_each_entry(struct delivery_pipeline *pipeline,
                                                    delivery_lsn from,
                                                    delivery_entry_visitor *visitor,
                                                    void *context,
                                                    pawl_error *reterr);

struct delivery_exceptions {
    struct delivery_exception *items;
    size_t count;
    size_t room;
};
void pawl__delivery_exceptions_done(struct delivery_exceptions *exceptions);
PAWL_MUST_USE pawl_status pawl__delivery_exceptions_add(struct delivery_exceptions *exceptions,
                                                        const struct delivery_exception *exception,
                                                        pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_exceptions_read(struct delivery_pipeline *pipeline,
                                                         struct delivery_exceptions *exceptions,
                                                         pawl_error *reterr);
const struct delivery_exception *pawl__delivery_exceptions_find(
    const struct delivery_exceptions *exceptions, delivery_lsn lsn);

/* One entry; *ret_found false: the WAL does not have it. The page is replaced. */
PAWL_MUST_USE pawl_status pawl__delivery_read_one(struct delivery_pipeline *pipeline,
                                                  delivery_lsn lsn,
                                                  struct delivery_page *page,
                                                  bool *ret_found,
                                                  pawl_error *reterr);

/* Whether the sink has this very event, under its id or as a conflict. `found` false: not with this payload. */
PAWL_MUST_USE pawl_status pawl__delivery_find_in_sink(struct delivery_pipeline *pipeline,
                                                      const struct delivery_entry *entry,
                                                      struct delivery_known *ret_known,
                                                      pawl_error *reterr);

/* Marks entries as the sink says they are: those up to the applied LSN that are no exception are in it, those above
 * are pending. With `recovery`, counts what was pending and what had been committed. */
PAWL_MUST_USE pawl_status pawl__delivery_settle_marks(struct delivery_pipeline *pipeline,
                                                      const struct delivery_exceptions *exceptions,
                                                      struct delivery_recovery *recovery,
                                                      pawl_error *reterr);

/* Asks the stream and follows it; makes the consumer anew where it must. Before the first fetch, after every broken
 * one, and when idle. */
PAWL_MUST_USE pawl_status pawl__delivery_check_stream(struct delivery_pipeline *pipeline,
                                                      pawl_error *reterr);

/* What the WAL is to know with the next batch. */
struct delivery_wal_meta pawl__delivery_next_meta(struct delivery_pipeline *pipeline);

void pawl__delivery_intake_free(struct intake *intake); /* NULL is fine */

#endif
