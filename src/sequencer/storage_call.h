/* Calls of a sequencer's storage, which is somebody else's code. What it returns counts, also when it does
 * not say why; while it runs, its thread is inside of the sequencer (base/thread/inside.h). */
#ifndef PAWL_SEQUENCER_STORAGE_CALL_H
#define PAWL_SEQUENCER_STORAGE_CALL_H

#include <pawl/sequencer.h>

/* A storage and whose it is. */
struct seq_storage_of {
    const pawl_seq_storage *storage;
    const void *sequencer;
};

PAWL_MUST_USE pawl_status pawl__seq_read_numbers(struct seq_storage_of of,
                                                 uint64_t workspace,
                                                 const uint16_t *sequences,
                                                 size_t count,
                                                 int64_t deadline_ns,
                                                 uint64_t *ret_numbers,
                                                 pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__seq_read_next_offset(struct seq_storage_of of,
                                                     uint64_t *ret_offset,
                                                     pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__seq_write(struct seq_storage_of of,
                                          const pawl_seq_value *values,
                                          size_t count,
                                          uint64_t next_offset,
                                          pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__seq_actualize(struct seq_storage_of of,
                                              uint64_t offset,
                                              pawl_seq_batcher batcher,
                                              void *batcher_context,
                                              pawl_error *reterr);

#endif
