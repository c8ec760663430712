/* TLS 1.2 and 1.3 through OpenSSL, with ALPN h2. An error of OpenSSL becomes ours here and nowhere else. */
#ifndef PAWL_NET_H2_TLS_H
#define PAWL_NET_H2_TLS_H

#include <openssl/ssl.h>
#include <sys/types.h>

#include "net/h2/h2.h"

DEFINE_AUTO(SSL_CTX *, SSL_CTX_free)

/* INVALID names the file that does not fit. */
PAWL_MUST_USE pawl_status pawl__h2_tls_server(const struct pawl__h2_tls *tls,
                                              SSL_CTX **ret_context,
                                              pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__h2_tls_client(const struct pawl__h2_tls *tls,
                                              SSL_CTX **ret_context,
                                              pawl_error *reterr);

/* For a socket; the client checks that the server's certificate is for `name`, a host or an address. */
PAWL_MUST_USE pawl_status pawl__h2_tls_accept(SSL_CTX *context,
                                              int fd,
                                              SSL **ret_ssl,
                                              pawl_error *reterr);
PAWL_MUST_USE pawl_status
pawl__h2_tls_connect(SSL_CTX *context, int fd, const char *name, SSL **ret_ssl, pawl_error *reterr);

enum pawl__h2_tls_step {
    PAWL__H2_TLS_DONE, /* and both speak h2 */
    PAWL__H2_TLS_WANTS_READ,
    PAWL__H2_TLS_WANTS_WRITE,
    PAWL__H2_TLS_FAILED,
};
enum pawl__h2_tls_step pawl__h2_tls_handshake(SSL *ssl, pawl_error *reterr);

/* Bytes; 0: not now; -1: the connection has ended. */
ssize_t pawl__h2_tls_read(SSL *ssl, char *to, size_t size);
ssize_t pawl__h2_tls_write(SSL *ssl, const char *from, size_t len);
void pawl__h2_tls_close(SSL *ssl); /* says goodbye once, and frees it */

/* The peer's name in its verified certificate: the first DNS name, else the common name. False: it has none. */
PAWL_MUST_USE bool pawl__h2_tls_peer_name(SSL *ssl, char *ret_name, size_t size);

#endif
