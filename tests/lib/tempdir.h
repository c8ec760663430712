/* A directory of a test's own, below $TMPDIR or /tmp. */
#ifndef TESTS_TEMPDIR_H
#define TESTS_TEMPDIR_H

#include <pawl/pawl.h>

#define TEMPDIR_SIZE 64

/* `name` begins the directory's name. */
PAWL_MUST_USE pawl_status tempdir_make(char ret_path[TEMPDIR_SIZE],
                                       const char *name,
                                       pawl_error *reterr);

/* The same in memory where there is room for `bytes`, else as above. For what is written and thrown
 * away by the gigabyte. */
PAWL_MUST_USE pawl_status tempdir_make_in_memory(char ret_path[TEMPDIR_SIZE],
                                                 const char *name,
                                                 uint64_t bytes,
                                                 pawl_error *reterr);

/* Removes a file or directory with all that is in it; what is not there is fine. */
void tempdir_remove(const char *path);

#endif
