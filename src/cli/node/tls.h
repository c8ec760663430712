/* The certificate and key of a node, as the settings name them. */
#ifndef PAWL_CLI_NODE_TLS_H
#define PAWL_CLI_NODE_TLS_H

#include <pawl/pawl.h>

struct pawl__config;

/* Both as PEM, malloc'ed; NULL when they are not set. INVALID: one is set without the other, is not what it should
 * be, or everybody may read the key. */
PAWL_MUST_USE pawl_status pawl__cli_tls_read(const struct pawl__config *config,
                                             char **ret_certificate,
                                             char **ret_key,
                                             pawl_error *reterr);

#endif
