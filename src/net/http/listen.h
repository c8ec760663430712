/* The socket that a server listens on. */
#ifndef PAWL_NET_HTTP_LISTEN_H
#define PAWL_NET_HTTP_LISTEN_H

#include "net/http/http.h"

/* Binds and listens. `ret_text` becomes the address with the port that it got. BUSY: it is in use. */
PAWL_MUST_USE pawl_status pawl__http_listen(
    const char *address, int *ret_fd, char *ret_text, size_t size, pawl_error *reterr);

#endif
