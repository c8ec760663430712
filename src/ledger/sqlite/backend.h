/* Shared by the files of the SQLite backend: backend.c (open, write), read.c and anchor.c. */
#ifndef PAWL_LEDGER_SQLITE_BACKEND_H
#define PAWL_LEDGER_SQLITE_BACKEND_H

#include "ledger/core/backend.h"
#include "ledger/sqlite/statements.h"
#include "store/sqlite/pool.h"

struct sqlite_backend {
    struct ledger_backend base;
    char *path; /* of the file itself: no symbolic link, and the same after a chdir */
    char *anchor_path;
    char *log_path; /* "<path>-wal" */
    struct pawl__sqlite_pool pool;
    struct pawl__sqlite *writer;    /* the committer's; NULL when read-only */
    struct pawl__sqlite *anchor_db; /* the anchor thread's, opened when it first writes */
    bool anchor_spoilt;             /* the anchor thread's: the log could not be synced */
};

/* The head as this handle sees it; offset 0 for an empty ledger. */
PAWL_MUST_USE pawl_status pawl__ledger_sqlite_head(struct pawl__sqlite *db,
                                                   pawl_ledger_head *ret_head,
                                                   pawl_error *reterr);

/* read.c */
ledger_lookup_fn pawl__ledger_sqlite_lookup;
ledger_open_turns_fn pawl__ledger_sqlite_open_turns;
ledger_read_fn pawl__ledger_sqlite_read;
ledger_head_fn pawl__ledger_sqlite_get_head;
ledger_offset_fn pawl__ledger_sqlite_highest;
ledger_offset_fn pawl__ledger_sqlite_check;
ledger_call_fn pawl__ledger_sqlite_schema;
ledger_entries_fn pawl__ledger_sqlite_entries;
ledger_get_fn pawl__ledger_sqlite_get;
ledger_turn_of_fn pawl__ledger_sqlite_turn_of;
ledger_counts_fn pawl__ledger_sqlite_counts;
ledger_turns_fn pawl__ledger_sqlite_turns;
ledger_unfinished_fn pawl__ledger_sqlite_unfinished;
ledger_embeddings_fn pawl__ledger_sqlite_embeddings;

/* anchor.c */
ledger_call_fn pawl__ledger_sqlite_write_anchor;
ledger_head_fn pawl__ledger_sqlite_anchor;

#endif
