/* Applications side by side in a directory: apps/NAME is one, apps/NAME.anchor its anchor. */
#ifndef PAWL_APP_ROCKSDB_DIRECTORY_H
#define PAWL_APP_ROCKSDB_DIRECTORY_H

#include "app/core/anchor.h"

#define APP_ANCHOR_SUFFIX ".anchor"

/* Appends what is in the file; nothing when there is none. */
PAWL_MUST_USE pawl_status pawl__app_anchor_read_file(const char *path,
                                                     struct pawl__buf *text,
                                                     pawl_error *reterr);

/* CONFLICT names another application of the directory of `path` (`path` is of one that `anchor` describes) that
 * has the same id and was there before. Those of format 1 were never asked for ids of their own, and stay. */
PAWL_MUST_USE pawl_status pawl__app_directory_check_neighbours(const char *path,
                                                               const struct app_anchor *anchor,
                                                               pawl_error *reterr);

/* The same, before an application is made, for those of the directory that have no anchor, or one that cannot be
 * read: it looks into each of them. Any other status: one cannot be read either, and may have the id. */
PAWL_MUST_USE pawl_status pawl__app_directory_check_unanchored(const char *path,
                                                               const struct app_anchor *anchor,
                                                               pawl_error *reterr);

/* CORRUPT: there is no application here, but there was, says its anchor. A damaged anchor is reported later. */
PAWL_MUST_USE pawl_status pawl__app_directory_check_new(const char *anchor_path,
                                                        pawl_error *reterr);

#endif
