/* The last number of each key, merged by maximum: what waits to be written.
 *
 * Values lie side by side, in the order in which their keys came, so that a storage is handed them
 * as they are. One thread at a time. */
#ifndef PAWL_SEQUENCER_TABLE_H
#define PAWL_SEQUENCER_TABLE_H

#include <pawl/sequencer.h>

#include "base/core/hash.h"

struct seq_table {
    pawl_seq_value *values;
    size_t count;
    uint32_t *slots; /* place in `values` + 1; 0: free. A power of two, twice `room` */
    size_t slot_count;
    size_t room; /* how many values it holds without growing */
    struct pawl__hash_seed seed;
};

PAWL_MUST_USE pawl_status pawl__seq_table_init(struct seq_table *table, pawl_error *reterr);
void pawl__seq_table_done(struct seq_table *table);

/* Makes room for `more` keys, so that the merges of so many cannot fail. NOMEM, or NO_SPACE beyond
 * 2^30 keys; nothing changed. */
PAWL_MUST_USE pawl_status pawl__seq_table_reserve(struct seq_table *table,
                                                  size_t more,
                                                  pawl_error *reterr);

/* There must be room. */
void pawl__seq_table_merge(struct seq_table *table, const pawl_seq_value *value);

/* The key, or another one of its workspace, will be merged soon: its place comes into the processor's
 * cache meanwhile. */
void pawl__seq_table_expect(const struct seq_table *table, uint64_t workspace, uint16_t sequence);

/* 0: not there. */
uint64_t pawl__seq_table_get(const struct seq_table *table, uint64_t workspace, uint16_t sequence);

/* Keeps the memory. */
void pawl__seq_table_clear(struct seq_table *table);

#endif
