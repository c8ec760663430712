/* Shared by the files of the PostgreSQL backend: backend.c (open, write), read.c and vector.c
 * (embeddings, and the extension pgvector where the server has it). */
#ifndef PAWL_LEDGER_POSTGRES_BACKEND_H
#define PAWL_LEDGER_POSTGRES_BACKEND_H

#include <stdatomic.h>

#include "ledger/core/backend.h"
#include "ledger/postgres/statements.h"
#include "store/postgres/store.h"

#define PAWL__LEDGER_CHANNEL "pawl_ledger" /* NOTIFY: the payload is the new head's offset */

/* Those before it need no pgvector. */
enum { LEDGER_PG_COUNT_PLAIN = LEDGER_PG_VECTOR_EMBED };

enum { PG_INSERT_ARRAYS = 9 };

struct postgres_backend {
    struct ledger_backend base;
    struct pawl__pg_store pg; /* its writer is the committer's */
    bool has_vector;
    atomic_uint page_rows; /* how many rows make a page of good size, as far as one knows */
    struct pawl__pg_array arrays[PG_INSERT_ARRAYS]; /* the committer's */
};

static inline struct postgres_backend *pawl__ledger_pg_of(struct ledger_backend *base)
{
    return (struct postgres_backend *)base; /* base is its first member */
}

static inline pawl_status pawl__ledger_pg_borrow(struct ledger_backend *base,
                                                 struct pawl__pg_borrowed *ret_borrowed,
                                                 pawl_error *reterr)
{
    return pawl__pg_store_borrow(&pawl__ledger_pg_of(base)->pg, ret_borrowed, reterr);
}

/* Seven parameters from `values` on: run, kind, actor, two turns, two times. */
enum { PG_FILTER_VALUES = 7 };
void pawl__ledger_pg_filter(const pawl_event_filter *filter, struct pawl__pg_value *values);

/* Reads the one row of ledger_head through `statement`. */
PAWL_MUST_USE pawl_status pawl__ledger_pg_head(struct pawl__pg *pg,
                                               size_t statement,
                                               pawl_ledger_head *ret_head,
                                               pawl_error *reterr);

/* The events that have one of the ids, in any order. */
PAWL_MUST_USE pawl_status pawl__ledger_pg_lookup(struct pawl__pg *pg,
                                                 const pawl_view *ids,
                                                 size_t count,
                                                 ledger_event_sink sink,
                                                 void *context,
                                                 pawl_error *reterr);

/* Brings pgvector into use when it can be had, and says so in has_vector. A server without it, or a
 * user without the right to install it, is no failure. `pg` has no statements. */
PAWL_MUST_USE pawl_status pawl__ledger_pg_vector_setup(struct postgres_backend *backend,
                                                       struct pawl__pg *pg,
                                                       bool read_only,
                                                       pawl_error *reterr);

/* Gives the rows that were written without pgvector their searchable column. */
PAWL_MUST_USE pawl_status pawl__ledger_pg_vector_fill(struct postgres_backend *backend,
                                                      pawl_error *reterr);

/* read.c */
ledger_read_fn pawl__ledger_pg_read;
ledger_head_fn pawl__ledger_pg_get_head;
ledger_get_fn pawl__ledger_pg_get;
ledger_turn_of_fn pawl__ledger_pg_turn_of;
ledger_counts_fn pawl__ledger_pg_counts;
ledger_turns_fn pawl__ledger_pg_turns;
ledger_open_turns_fn pawl__ledger_pg_open_turns;
ledger_unfinished_fn pawl__ledger_pg_unfinished;

/* vector.c */
ledger_embed_fn pawl__ledger_pg_embed;
ledger_embeddings_fn pawl__ledger_pg_embeddings;
ledger_nearest_fn pawl__ledger_pg_nearest;

#endif
