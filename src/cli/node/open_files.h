/* How many files a process may have open, and how many of them a node may spend on connections. */
#ifndef PAWL_CLI_NODE_OPEN_FILES_H
#define PAWL_CLI_NODE_OPEN_FILES_H

#include <pawl/pawl.h>

enum { PAWL__CONNECTIONS_LEAST = 16 }; /* with fewer a node is not worth starting */

/* Connections that fit, of those wanted: half of the files are for the stores, whose engines do not
 * survive it when they get none. Pure. */
uint32_t pawl__cli_connections_that_fit(uint64_t open_files_max, uint32_t wanted);

/* Raises the soft limit to the hard one; what it is then. */
PAWL_MUST_USE pawl_status pawl__cli_open_files_raise(uint64_t *ret_max, pawl_error *reterr);

#endif
