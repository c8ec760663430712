/* cnats can read the files and sign by itself, but takes a signature for a text (3.4.1): one that begins with a zero
 * byte, as one in 256 does, is not sent, and the server says "Authorization Violation". So we sign in its
 * place, and have it connect again with another nonce. The files are read at each connect, as cnats does: they
 * may have been renewed. */
#include "net/nats/identity.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/fs.h"
#include "net/nats/internal.h"
#include "net/nats/nkey.h"

enum { FILE_SIZE = 64 << 10 };

#define JWT_TITLE "-----BEGIN NATS USER JWT-----"
#define SEED_TITLE "-----BEGIN USER NKEY SEED-----"

/* --- files --- */

static pawl_view trim(pawl_view text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.data[0]) != NULL) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]) != NULL) {
        text.len--;
    }
    return text;
}

/* The line behind a title; empty: there is none. */
static pawl_view line_behind(pawl_view text, const char *title)
{
    const char *at = memmem(text.data, text.len, title, strlen(title));

    if (at == NULL) {
        return (pawl_view){ NULL, 0 };
    }
    at += strlen(title);
    pawl_view rest = trim((pawl_view){ at, text.len - (size_t)(at - text.data) });
    const char *end = memchr(rest.data, '\n', rest.len);
    return trim((pawl_view){ rest.data, end == NULL ? rest.len : (size_t)(end - rest.data) });
}

static pawl_status read_file(const char *path,
                             char text[FILE_SIZE],
                             pawl_view *ret,
                             pawl_error *reterr)
{
    size_t len = 0;

    TRY(pawl__fs_read_small(path, text, FILE_SIZE, &len, reterr));
    *ret = trim((pawl_view){ text, len });
    return PAWL_OK;
}

/* A creds file has a title above its seed; a seed file has nothing else. */
static pawl_view seed_in(pawl_view text)
{
    pawl_view titled = line_behind(text, SEED_TITLE);

    return titled.len > 0 ? titled : text;
}

static pawl_status check_file(const char *path,
                              bool has_jwt,
                              char ret_public[PAWL__NKEY_SIZE],
                              pawl_error *reterr)
{
    char text[FILE_SIZE];
    pawl_view all;

    TRY(read_file(path, text, &all, reterr));
    pawl_status status = PAWL_OK;
    if (has_jwt && line_behind(all, JWT_TITLE).len == 0) {
        status = pawl__fail(reterr, PAWL_INVALID, "has no line '%s' with a token below", JWT_TITLE);
    } else {
        status = pawl__nats_nkey_public(seed_in(all), ret_public, reterr);
    }
    explicit_bzero(text, sizeof(text));
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "'%s'", path);
}

/* --- what cnats asks --- */

static natsStatus tell(const pawl_error *error, char **ret_text)
{
    *ret_text = strdup(error->message);
    return NATS_ERR;
}

static natsStatus on_jwt(char **ret_jwt, char **ret_text, void *closure)
{
    const struct nats_identity *identity = closure;
    pawl_error error = PAWL_ERROR_INIT;
    char text[FILE_SIZE];
    pawl_view all;

    if (read_file(identity->path, text, &all, &error) != PAWL_OK) {
        return tell(&error, ret_text);
    }
    *ret_jwt = pawl__view_dup(line_behind(all, JWT_TITLE));
    explicit_bzero(text, sizeof(text));
    return *ret_jwt == NULL ? NATS_NO_MEMORY : NATS_OK;
}

/* NATS_OK: *ret_signature is there. */
static natsStatus sign(const char *path,
                       const char *nonce,
                       unsigned char **ret_signature,
                       int *ret_len,
                       pawl_error *reterr)
{
    char text[FILE_SIZE];
    pawl_view all;

    if (read_file(path, text, &all, reterr) != PAWL_OK) {
        return NATS_ERR;
    }
    char *seed = pawl__view_dup(seed_in(all));
    natsStatus native =
        seed == NULL ? NATS_NO_MEMORY : nats_Sign(seed, nonce, ret_signature, ret_len);
    if (native != NATS_OK) {
        (void)pawl__fail(reterr, PAWL_INVALID, "'%s': its seed signs nothing", path);
    }
    explicit_bzero(text, sizeof(text));
    if (seed != NULL) {
        explicit_bzero(seed, strlen(seed));
        free(seed);
    }
    return native;
}

static natsStatus on_nonce(
    char **ret_text, unsigned char **ret_signature, int *ret_len, const char *nonce, void *closure)
{
    struct nats_identity *identity = closure;
    pawl_error error = PAWL_ERROR_INIT;

    if (sign(identity->path, nonce, ret_signature, ret_len, &error) != NATS_OK) {
        return tell(&error, ret_text);
    }
    if ((*ret_signature)[0] == 0) {
        free(STEAL(*ret_signature));
        atomic_store(&identity->unsendable, true);
        (void)pawl__fail(&error, PAWL_UNAVAILABLE, "the signature cannot be sent; another one can");
        return tell(&error, ret_text);
    }
    return NATS_OK;
}

/* --- setting it --- */

void pawl__nats_identity_done(struct nats_identity *identity)
{
    free(identity->path);
}

static pawl_status check_identity(const struct pawl__nats_options *options,
                                  const struct pawl__nats_url *url,
                                  pawl_error *reterr)
{
    int ways = (url->user != NULL || options->user != NULL)
               + (url->token != NULL || options->token != NULL) + (options->nkey_seed_file != NULL)
               + (options->creds_file != NULL);

    if (ways > 1) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "NATS credentials: give one of user and password, token, nkey seed file "
                          "and creds file");
    }
    if ((options->tls.cert_file == NULL) != (options->tls.key_file == NULL)) {
        return pawl__fail(
            reterr, PAWL_INVALID, "NATS TLS: a client certificate and its key go together");
    }
    return PAWL_OK;
}

static pawl_status set_keys(natsOptions *native,
                            const struct pawl__nats_options *options,
                            struct nats_identity *identity,
                            pawl_error *reterr)
{
    bool has_jwt = options->creds_file != NULL;
    const char *path = has_jwt ? options->creds_file : options->nkey_seed_file;
    char public[PAWL__NKEY_SIZE];

    TRY(check_file(path, has_jwt, public, reterr));
    identity->path = strdup(path);
    TRY(pawl__check_memory(identity->path, "credentials", reterr));
    return has_jwt ? pawl__nats_fail_option(natsOptions_SetUserCredentialsCallbacks(
                                                native, on_jwt, identity, on_nonce, identity),
                                            "creds file",
                                            reterr)
                   : pawl__nats_fail_option(natsOptions_SetNKey(native, public, on_nonce, identity),
                                            "nkey seed file",
                                            reterr);
}

pawl_status pawl__nats_set_identity(natsOptions *native,
                                    const struct pawl__nats_options *options,
                                    const struct pawl__nats_url *url,
                                    struct nats_identity *identity,
                                    pawl_error *reterr)
{
    const char *user = url->user != NULL ? url->user : options->user;
    const char *password = url->user != NULL ? url->password : options->password;
    const char *token = url->token != NULL ? url->token : options->token;

    TRY(check_identity(options, url, reterr));
    if (user != NULL) {
        return pawl__nats_fail_option(
            natsOptions_SetUserInfo(native, user, password == NULL ? "" : password),
            "user and password",
            reterr);
    }
    if (token != NULL) {
        return pawl__nats_fail_option(natsOptions_SetToken(native, token), "token", reterr);
    }
    return options->creds_file == NULL && options->nkey_seed_file == NULL
               ? PAWL_OK
               : set_keys(native, options, identity, reterr);
}
