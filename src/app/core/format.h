/* The format of a store: which one it has, upgrading it, and making again what is derived from the logs. */
#ifndef PAWL_APP_CORE_FORMAT_H
#define PAWL_APP_CORE_FORMAT_H

#include "app/core/batch.h"

struct app_store;
struct pawl_app;

/* Format 1 had bare numbers and no keys of numbers. RocksDB's families and the schema of PostgreSQL make a program
 * that knows only 1 refuse 2. */
enum { APP_FORMAT_BARE = 1, APP_FORMAT = 2 };

/* UNSUPPORTED: a newer format. *ret_rebuilding: a rebuild has begun and not ended. It must be repeated before
 * anything else is written: half of what is stored of the sequences is deleted. */
PAWL_MUST_USE pawl_status pawl__app_format_read(struct app_store *store,
                                                uint32_t app,
                                                int *ret_format,
                                                bool *ret_rebuilding,
                                                pawl_error *reterr);

/* Adds the format to a batch. */
PAWL_MUST_USE pawl_status pawl__app_format_add(struct app_batch *batch,
                                               uint32_t app,
                                               int format,
                                               pawl_error *reterr);

/* Upgrades a store of an older format: rewrites the stored numbers, and makes the keys of all numbers that the
 * log has. Does nothing when the format is the current one. May be interrupted at any point. CORRUPT: an event
 * cannot be read. */
PAWL_MUST_USE pawl_status pawl__app_format_upgrade(struct pawl_app *app, pawl_error *reterr);

/* Deletes what is stored of the sequences and the keys of numbers, so that all of it is made from the logs
 * again: the keys before this returns, the rest by actualization. CORRUPT, and nothing is changed, when the
 * logs are not whole. The partitions are known and have not started. */
PAWL_MUST_USE pawl_status pawl__app_format_rebuild(struct pawl_app *app, pawl_error *reterr);

#endif
