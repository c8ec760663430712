/* What must be in a store, remembered outside of the process that writes it.
 *
 * A writer stores numbered records in batches, one batch a transaction, and says so when a commit
 * has returned. Which numbers form a batch follows from its first one, so both sides agree without
 * talking. Then it dies. What it acknowledged must be there, exactly once; the batch that it was
 * busy with may be there, whole, or not at all; nothing else may be. */
#ifndef TESTS_TORTURE_ORACLE_H
#define TESTS_TORTURE_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/macros.h"

#define RECORD_BYTES_MAX 2048

/* How many records the batch that starts with this number has: a few as a rule, now and then so many
 * that no store writes them at once, and only a part of them may reach the disk. */
#define BATCH_LEN_MAX 24
uint64_t batch_len(uint64_t first);

/* What record `number` must say; its length varies with the number. Returns the length. */
size_t record_text(uint64_t number, char ret_text[RECORD_BYTES_MAX]);

struct oracle {
    unsigned char *fate; /* by number; how often it must be there */
    unsigned char *seen; /* by number; how often it was, up to 255 */
    uint64_t size;       /* of both arrays */
    uint64_t next;       /* first number of the batch that may be under way */
};

struct oracle_finding {
    uint64_t acknowledged; /* in total that must be there */
    uint64_t lost;
    uint64_t duplicated;
    uint64_t invented;   /* never attempted, or known to be gone */
    bool torn;           /* only a part of the batch that was under way is there */
    uint64_t first_lost; /* a number to look for; 0: none */
};

void oracle_init(struct oracle *oracle);
void oracle_done(struct oracle *oracle);

/* The writer says that everything up to `last` is committed. False when that ends no batch it could
 * have been busy with: then the test itself is wrong. */
__attribute__((warn_unused_result)) bool oracle_acknowledge(struct oracle *oracle, uint64_t last);

/* The writer is dead; here comes what the store has, in any order. */
void oracle_see(struct oracle *oracle, uint64_t number);

/* Compares. Afterwards what was seen is what must be there (a loss is found once), and a new writer
 * may start at oracle->next. */
struct oracle_finding oracle_compare(struct oracle *oracle);

#endif
