/* A free port on loopback. */
#ifndef TESTS_PORT_H
#define TESTS_PORT_H

#include <pawl/pawl.h>

/* Below those that the kernel gives to clients: one of them would have the port of a server that was killed and
 * is to start again. Between this and the server's bind somebody else may take it: then try another. */
PAWL_MUST_USE pawl_status port_free(int *ret_port, pawl_error *reterr);

#endif
