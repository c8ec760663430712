/* A value from the command line: as it is, from a file (@FILE) or from standard input (-). */
#ifndef PAWL_CLI_FRAME_INPUT_H
#define PAWL_CLI_FRAME_INPUT_H

#include <pawl/pawl.h>

/* malloc'ed. A line end at the end is an editor's and dropped. INVALID: a NUL byte in it, or more
 * than `bytes_max` bytes; `name` is what messages call it. */
PAWL_MUST_USE pawl_status pawl__cli_input_read(
    const char *name, const char *given, size_t bytes_max, char **ret_text, pawl_error *reterr);

#endif
