/* The socket that a server listens on. */
#ifndef PAWL_NET_HTTP_LISTEN_H
#define PAWL_NET_HTTP_LISTEN_H

#include <sys/un.h>

#include "net/http/http.h"

/* Binds and listens. `ret_text` becomes the address with the port that it got. BUSY: it is in use. */
PAWL_MUST_USE pawl_status pawl__http_listen(
    const char *address, int *ret_fd, char *ret_text, size_t size, pawl_error *reterr);

/* The same in the file system, for this user alone. A file that a killed process left is replaced. BUSY: a
 * process listens on it. */
PAWL_MUST_USE pawl_status pawl__http_listen_unix(const char *path, int *ret_fd, pawl_error *reterr);

/* What connects to or binds such a path. The kernel takes 107 bytes: a longer path is named through its
 * directory, which *ret_directory holds open until the address has been used; -1: it need not. */
PAWL_MUST_USE pawl_status pawl__http_unix_address(const char *path,
                                                  struct sockaddr_un *ret_address,
                                                  int *ret_directory,
                                                  pawl_error *reterr);

/* Whether the process at the other end of such a socket is of this user, or root. */
bool pawl__http_is_own_peer(int fd);

#endif
