/* Between the image and a real directory: what is there before the mount counts as durable, and
 * after a cut the durable image is written out to be looked at. */
#ifndef TESTS_LOSSFS_DISK_H
#define TESTS_LOSSFS_DISK_H

#include "torture/lossfs/names.h"

/* Takes everything below the directory `live` into the image. 0 or a negative errno. */
int loss_disk_import(struct loss_names *names, int live);

/* Writes the durable image below `path`, which must be an empty directory. 0 or a negative errno.
 */
int loss_disk_save(const struct loss_names *names, const char *path);

#endif
