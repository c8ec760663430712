#include "net/h2/tls.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"

static const unsigned char alpn[] = { 2, 'h', '2' };

/* What OpenSSL says, of the newest error, and forgets the others. */
static pawl_status tls_failed(pawl_error *reterr, pawl_status status, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);

    ERR_clear_error();
    return pawl__fail(reterr, status, "%s: %s", what, reason == NULL ? "TLS failed" : reason);
}

static int select_h2(SSL *ssl,
                     const unsigned char **out,
                     unsigned char *out_len,
                     const unsigned char *in,
                     unsigned in_len,
                     void *context)
{
    unsigned char *chosen = NULL;

    (void)ssl;
    (void)context;
    if (SSL_select_next_proto(&chosen, out_len, alpn, sizeof(alpn), in, in_len)
        != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static pawl_status use_certificate(SSL_CTX *context,
                                   const struct pawl__h2_tls *tls,
                                   pawl_error *reterr)
{
    char what[PATH_MAX + 32] = "";

    if (tls->certificate_file == NULL && tls->key_file == NULL) {
        return PAWL_OK;
    }
    if (tls->certificate_file == NULL || tls->key_file == NULL) {
        return pawl__fail(
            reterr, PAWL_INVALID, "a certificate needs its key, and a key its certificate");
    }
    (void)snprintf(what, sizeof(what), "certificate '%s'", tls->certificate_file);
    if (SSL_CTX_use_certificate_chain_file(context, tls->certificate_file) != 1) {
        return tls_failed(reterr, PAWL_INVALID, what);
    }
    (void)snprintf(what, sizeof(what), "key '%s'", tls->key_file);
    if (SSL_CTX_use_PrivateKey_file(context, tls->key_file, SSL_FILETYPE_PEM) != 1
        || SSL_CTX_check_private_key(context) != 1) {
        return tls_failed(reterr, PAWL_INVALID, what);
    }
    return PAWL_OK;
}

static pawl_status use_ca(SSL_CTX *context, const char *ca_file, pawl_error *reterr)
{
    char what[PATH_MAX + 32] = "";

    (void)snprintf(what, sizeof(what), "CA '%s'", ca_file);
    return SSL_CTX_load_verify_locations(context, ca_file, NULL) == 1
               ? PAWL_OK
               : tls_failed(reterr, PAWL_INVALID, what);
}

static pawl_status make(const SSL_METHOD *method,
                        const struct pawl__h2_tls *tls,
                        SSL_CTX **ret_context,
                        pawl_error *reterr)
{
    AUTO(SSL_CTX_free_p) SSL_CTX *context = SSL_CTX_new(method);

    ERR_clear_error();
    if (context == NULL || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
        return tls_failed(reterr, PAWL_NOMEM, "set up TLS");
    }
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                         | SSL_MODE_RELEASE_BUFFERS);
    TRY(use_certificate(context, tls, reterr));
    *ret_context = STEAL(context);
    return PAWL_OK;
}

pawl_status pawl__h2_tls_server(const struct pawl__h2_tls *tls,
                                SSL_CTX **ret_context,
                                pawl_error *reterr)
{
    AUTO(SSL_CTX_free_p) SSL_CTX *context = NULL;

    if (tls->certificate_file == NULL) {
        return pawl__fail(
            reterr, PAWL_INVALID, "a server with TLS needs a certificate and its key");
    }
    TRY(make(TLS_server_method(), tls, &context, reterr));
    SSL_CTX_set_alpn_select_cb(context, select_h2, NULL);
    if (tls->ca_file != NULL) {
        TRY(use_ca(context, tls->ca_file, reterr));
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(tls->ca_file);
        SSL_CTX_set_client_CA_list(context, names);
    }
    /* Sessions are not resumed: a certificate is looked at on every connection. */
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_num_tickets(context, 0);
    *ret_context = STEAL(context);
    return PAWL_OK;
}

pawl_status pawl__h2_tls_client(const struct pawl__h2_tls *tls,
                                SSL_CTX **ret_context,
                                pawl_error *reterr)
{
    AUTO(SSL_CTX_free_p) SSL_CTX *context = NULL;

    TRY(make(TLS_client_method(), tls, &context, reterr));
    if (SSL_CTX_set_alpn_protos(context, alpn, sizeof(alpn)) != 0) {
        return tls_failed(reterr, PAWL_NOMEM, "set up TLS");
    }
    if (tls->ca_file != NULL) {
        TRY(use_ca(context, tls->ca_file, reterr));
    } else if (SSL_CTX_set_default_verify_paths(context) != 1) {
        return tls_failed(reterr, PAWL_IO, "read the certificates that this machine trusts");
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    *ret_context = STEAL(context);
    return PAWL_OK;
}

pawl_status pawl__h2_tls_accept(SSL_CTX *context, int fd, SSL **ret_ssl, pawl_error *reterr)
{
    SSL *ssl = SSL_new(context);

    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        return tls_failed(reterr, PAWL_NOMEM, "begin TLS");
    }
    SSL_set_accept_state(ssl);
    *ret_ssl = ssl;
    return PAWL_OK;
}

/* An address is looked for among the addresses of a certificate, and is no name to send. */
static bool expect_name(SSL *ssl, const char *name)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1) {
        return true;
    }
    ERR_clear_error();
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1
           && SSL_set_tlsext_host_name(ssl, (void *)(uintptr_t)name) == 1;
}

pawl_status pawl__h2_tls_connect(
    SSL_CTX *context, int fd, const char *name, SSL **ret_ssl, pawl_error *reterr)
{
    SSL *ssl = SSL_new(context);

    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || !expect_name(ssl, name)) {
        SSL_free(ssl);
        return tls_failed(reterr, PAWL_NOMEM, "begin TLS");
    }
    SSL_set_connect_state(ssl);
    *ret_ssl = ssl;
    return PAWL_OK;
}

static enum pawl__h2_tls_step check_alpn(SSL *ssl, pawl_error *reterr)
{
    const unsigned char *chosen = NULL;
    unsigned len = 0;

    SSL_get0_alpn_selected(ssl, &chosen, &len);
    if (len != 2 || memcmp(chosen, "h2", 2) != 0) {
        pawl__fail(reterr, PAWL_UNAVAILABLE, "the peer does not speak HTTP/2 (no ALPN h2)");
        return PAWL__H2_TLS_FAILED;
    }
    return PAWL__H2_TLS_DONE;
}

enum pawl__h2_tls_step pawl__h2_tls_handshake(SSL *ssl, pawl_error *reterr)
{
    ERR_clear_error();
    int code = SSL_do_handshake(ssl);
    if (code == 1) {
        return check_alpn(ssl, reterr);
    }
    switch (SSL_get_error(ssl, code)) {
    case SSL_ERROR_WANT_READ:
        return PAWL__H2_TLS_WANTS_READ;
    case SSL_ERROR_WANT_WRITE:
        return PAWL__H2_TLS_WANTS_WRITE;
    default:
        break;
    }
    long verified = SSL_get_verify_result(ssl);
    if (verified != X509_V_OK) {
        pawl__fail(reterr,
                   PAWL_DENIED,
                   "the peer's certificate: %s",
                   X509_verify_cert_error_string(verified));
        ERR_clear_error();
    } else {
        (void)tls_failed(reterr, PAWL_UNAVAILABLE, "TLS handshake");
    }
    return PAWL__H2_TLS_FAILED;
}

static ssize_t result_of(SSL *ssl, int code)
{
    int error = SSL_get_error(ssl, code);
    bool later = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;

    ERR_clear_error();
    return later ? 0 : -1;
}

ssize_t pawl__h2_tls_read(SSL *ssl, char *to, size_t size)
{
    ERR_clear_error();
    int got = SSL_read(ssl, to, (int)MIN(size, (size_t)INT_MAX));
    return got > 0 ? got : result_of(ssl, got);
}

ssize_t pawl__h2_tls_write(SSL *ssl, const char *from, size_t len)
{
    ERR_clear_error();
    int written = SSL_write(ssl, from, (int)MIN(len, (size_t)INT_MAX));
    return written > 0 ? written : result_of(ssl, written);
}

void pawl__h2_tls_close(SSL *ssl)
{
    ERR_clear_error();
    if (SSL_is_init_finished(ssl)) {
        (void)SSL_shutdown(ssl); /* the alert goes out if it can; nobody waits for the answer */
    }
    SSL_free(ssl);
    ERR_clear_error();
}

static bool copy_name(const ASN1_STRING *from, char *ret_name, size_t size)
{
    int len = from == NULL ? 0 : ASN1_STRING_length(from);
    const unsigned char *data = len <= 0 ? NULL : ASN1_STRING_get0_data(from);

    /* A NUL in a name is somebody who wants to be taken for another. */
    if (data == NULL || (size_t)len >= size || memchr(data, '\0', (size_t)len) != NULL) {
        return false;
    }
    memcpy(ret_name, data, (size_t)len);
    ret_name[len] = '\0';
    return true;
}

static bool dns_name(X509 *certificate, char *ret_name, size_t size)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    bool found = false;

    for (int i = 0; names != NULL && !found && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        found = name->type == GEN_DNS && copy_name(name->d.dNSName, ret_name, size);
    }
    GENERAL_NAMES_free(names);
    return found;
}

static bool common_name(X509 *certificate, char *ret_name, size_t size)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

    return at >= 0
           && copy_name(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), ret_name, size);
}

bool pawl__h2_tls_peer_name(SSL *ssl, char *ret_name, size_t size)
{
    X509 *certificate = SSL_get0_peer_certificate(ssl);

    return certificate != NULL && SSL_get_verify_result(ssl) == X509_V_OK
           && (dns_name(certificate, ret_name, size) || common_name(certificate, ret_name, size));
}
