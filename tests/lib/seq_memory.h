/* A storage in memory, log included: the reference for the others, and the one that tests switch off.
 *
 * Any thread. */
#ifndef TESTS_SEQ_MEMORY_H
#define TESTS_SEQ_MEMORY_H

#include <pawl/sequencer.h>

#include "base/core/macros.h"

struct seq_memory;

PAWL_MUST_USE pawl_status seq_memory_new(struct seq_memory **ret_memory, pawl_error *reterr);
void seq_memory_free(struct seq_memory *memory);
DEFINE_AUTO(struct seq_memory *, seq_memory_free)

pawl_seq_storage seq_memory_storage(struct seq_memory *memory);

/* The log: the event at `offset` used these numbers. CONFLICT when the offset is not the next one. */
PAWL_MUST_USE pawl_status seq_memory_append(struct seq_memory *memory,
                                            const pawl_seq_value *values,
                                            size_t count,
                                            uint64_t offset,
                                            pawl_error *reterr);

/* From now on, and until PAWL_OK is set, every such call fails with the status; TIMEOUT fails only
 * when its deadline has passed. */
enum seq_memory_call { SEQ_MEMORY_READ, SEQ_MEMORY_WRITE, SEQ_MEMORY_LOG, SEQ_MEMORY_CALL_COUNT };
void seq_memory_fail(struct seq_memory *memory, enum seq_memory_call call, pawl_status status);

/* Every such call that begins from now on does not come back before it is let go. */
void seq_memory_hold(struct seq_memory *memory, enum seq_memory_call call, bool hold);

/* Takes an event out of the log, so that there is a hole; or puts it back. */
void seq_memory_hide(struct seq_memory *memory, uint64_t offset, bool hide);

/* What is stored. */
uint64_t seq_memory_number(struct seq_memory *memory, uint64_t workspace, uint16_t sequence);
uint64_t seq_memory_next_offset(struct seq_memory *memory);

/* Calls that have begun so far. */
uint64_t seq_memory_calls(struct seq_memory *memory, enum seq_memory_call call);

/* Waits until so many calls have begun. False: the monotonic deadline passed first. */
PAWL_MUST_USE bool seq_memory_await_calls(struct seq_memory *memory,
                                          enum seq_memory_call call,
                                          uint64_t count,
                                          int64_t deadline_ns);

/* Waits until this offset, or a later one, is stored. */
PAWL_MUST_USE bool seq_memory_await_offset(struct seq_memory *memory,
                                           uint64_t offset,
                                           int64_t deadline_ns);

#endif
