/* Stores of an application, filled without its command processing: what benchmarks of numbers need in
 * millions. Keys and events are the real ones (app/core/keys.h, app/core/event.h). */
#ifndef BENCH_SEQ_STORE_H
#define BENCH_SEQ_STORE_H

#include "app/core/seq.h"
#include "must.h"

enum { SEQ_STORE_APP = 1, SEQ_STORE_KIND = 1, SEQ_STORE_PATH_SIZE = 96 };

/* "NAME" in a temporary directory of the program, which goes when the program ends. */
void seq_store_path(const char *name, char ret_path[SEQ_STORE_PATH_SIZE]);

/* The last numbers of workspaces 1 .. `workspaces`, all sequences of an application's kind, in no
 * order, as flushers would leave them: the levels of the engine are as usual, nothing is compacted
 * by force. The store is closed afterwards. */
void seq_store_fill_numbers(const char *path, uint64_t workspaces);

/* Events first .. last of the log, each of one of `workspaces` with a record and two numbers. */
void seq_store_fill_log(const char *path, uint64_t first, uint64_t last, uint64_t workspaces);

/* An open store and what a sequencer needs to live on it. */
struct seq_store {
    struct app_store *store;
    struct app_seq seq;
};

void seq_store_open(const char *path, struct seq_store *store);
void seq_store_close(struct seq_store *store);

/* Forgets up to where numbers were flushed: of a closed store whose transactions wrote no log, which
 * could not be opened again otherwise. */
void seq_store_forget_offset(const char *path);

/* With the defaults of <pawl/sequencer.h>, but for `unflushed_max` when it is not 0. It is being
 * actualized. */
pawl_sequencer *seq_store_sequencer(struct seq_store *store, uint32_t unflushed_max);

/* Runs `work` in a process of its own, in which nothing has been allocated yet; what it returned. */
double seq_store_in_child(double (*work)(void *context), void *context);

#endif
