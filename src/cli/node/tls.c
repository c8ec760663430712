#include "cli/node/tls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"
#include "config/config.h"

enum { PEM_BYTES_MAX = 1 << 18 };

static pawl_status read_pem(const char *path, char **ret_text, pawl_error *reterr)
{
    size_t len = 0;

    *ret_text = calloc(1, PEM_BYTES_MAX);
    return *ret_text == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for '%s'", path)
                             : pawl__fs_read_small(path, *ret_text, PEM_BYTES_MAX, &len, reterr);
}

static pawl_status check_secret(const char *path, pawl_error *reterr)
{
    struct stat info;

    if (stat(path, &info) == 0 && (info.st_mode & (S_IROTH | S_IWOTH)) != 0) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "everybody on this machine may read the key '%s': make a new one with "
                          "mode 0600",
                          path);
    }
    return PAWL_OK;
}

/* GnuTLS says of all of this only that it does not start. */
static pawl_status check_kind(
    const char *path, const char *text, const char *mark, const char *what, pawl_error *reterr)
{
    if (strstr(text, mark) == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "'%s' has no %s in PEM", path, what);
    }
    if (strstr(text, "ENCRYPTED") != NULL) {
        return pawl__fail(
            reterr,
            PAWL_INVALID,
            "the key '%s' is encrypted: store it without a passphrase, with mode 0600",
            path);
    }
    return PAWL_OK;
}

pawl_status pawl__cli_tls_read(const struct pawl__config *config,
                               char **ret_certificate,
                               char **ret_key,
                               pawl_error *reterr)
{
    const char *certificate = pawl__config_text(config, PAWL__SERVER_TLS_CERTIFICATE);
    const char *key = pawl__config_text(config, PAWL__SERVER_TLS_KEY);

    if ((certificate[0] == '\0') != (key[0] == '\0')) {
        return pawl__fail(
            reterr,
            PAWL_INVALID,
            "server.tls_certificate and server.tls_key belong together: %s is not set",
            key[0] == '\0' ? "server.tls_key" : "server.tls_certificate");
    }
    if (key[0] == '\0') {
        return PAWL_OK;
    }
    TRY(read_pem(certificate, ret_certificate, reterr));
    TRY(check_kind(
        certificate, *ret_certificate, "-----BEGIN CERTIFICATE-----", "certificate", reterr));
    TRY(check_secret(key, reterr));
    TRY(read_pem(key, ret_key, reterr));
    return check_kind(key, *ret_key, "PRIVATE KEY-----", "private key", reterr);
}
