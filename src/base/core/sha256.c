#include "base/core/sha256.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/hex.h"

#define PREFIX "sha256:"

struct pawl__sha256_stream {
    EVP_MD_CTX *context;
};

/* EVP_sha256() would look the implementation up again at every init: most of the time of a short
 * hash. The fetched one lives as long as the process. */
static pthread_once_t fetch_once = PTHREAD_ONCE_INIT;
static EVP_MD *digest;
static pthread_key_t thread_key;
static bool have_thread_key;

static void free_context(void *context)
{
    EVP_MD_CTX_free(context);
}

static void fetch_digest(void)
{
    digest = EVP_MD_fetch(NULL, "SHA256", NULL);
    have_thread_key = pthread_key_create(&thread_key, free_context) == 0;
}

/* The one place where OpenSSL's errors become ours. */
static pawl_status fail_openssl(pawl_error *reterr, const char *what)
{
    unsigned long code = ERR_get_error();
    const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);

    ERR_clear_error();
    pawl_status status =
        code != 0 && ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE ? PAWL_NOMEM : PAWL_FAILED;
    return pawl__fail(reterr,
                      status,
                      "SHA-256: OpenSSL could not %s: %s",
                      what,
                      reason == NULL ? "no reason given" : reason);
}

static pawl_status new_context(EVP_MD_CTX **ret_context, pawl_error *reterr)
{
    REQUIRE(pthread_once(&fetch_once, fetch_digest) == 0);
    if (digest == NULL) {
        return fail_openssl(reterr, "find the digest");
    }
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    TRY(pawl__check_memory(context, "SHA-256", reterr));
    *ret_context = context;
    return PAWL_OK;
}

/* This thread's context; it ends with the thread. */
static pawl_status thread_context(EVP_MD_CTX **ret_context, pawl_error *reterr)
{
    REQUIRE(pthread_once(&fetch_once, fetch_digest) == 0);
    if (!have_thread_key) {
        return pawl__fail(reterr, PAWL_FAILED, "SHA-256: no key for thread-local data is left");
    }
    EVP_MD_CTX *context = pthread_getspecific(thread_key);
    if (context == NULL) {
        TRY(new_context(&context, reterr));
        if (pthread_setspecific(thread_key, context) != 0) {
            EVP_MD_CTX_free(context);
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for SHA-256");
        }
    }
    *ret_context = context;
    return PAWL_OK;
}

static pawl_status start(EVP_MD_CTX *context, pawl_error *reterr)
{
    return EVP_DigestInit_ex2(context, digest, NULL) == 1 ? PAWL_OK : fail_openssl(reterr, "start");
}

static pawl_status add(EVP_MD_CTX *context, pawl_view bytes, pawl_error *reterr)
{
    return bytes.len == 0 || EVP_DigestUpdate(context, bytes.data, bytes.len) == 1
               ? PAWL_OK
               : fail_openssl(reterr, "add bytes");
}

static pawl_status finish(EVP_MD_CTX *context, struct pawl__sha256 *ret_hash, pawl_error *reterr)
{
    struct pawl__sha256 hash;
    unsigned len = 0;

    if (EVP_DigestFinal_ex(context, hash.bytes, &len) != 1) {
        return fail_openssl(reterr, "finish");
    }
    REQUIRE(len == sizeof(hash.bytes));
    *ret_hash = hash;
    return PAWL_OK;
}

pawl_status pawl__sha256_parts(const pawl_view *parts,
                               size_t count,
                               struct pawl__sha256 *ret_hash,
                               pawl_error *reterr)
{
    EVP_MD_CTX *context = NULL;
    TRY(thread_context(&context, reterr));
    TRY(start(context, reterr));
    for (size_t i = 0; i < count; i++) {
        TRY(add(context, parts[i], reterr));
    }
    return finish(context, ret_hash, reterr);
}

pawl_status pawl__sha256(pawl_view bytes, struct pawl__sha256 *ret_hash, pawl_error *reterr)
{
    return pawl__sha256_parts(&bytes, 1, ret_hash, reterr);
}

pawl_status pawl__sha256_open(struct pawl__sha256_stream **ret_stream, pawl_error *reterr)
{
    AUTO(pawl__sha256_close_p) struct pawl__sha256_stream *stream = calloc(1, sizeof(*stream));

    TRY(pawl__check_memory(stream, "SHA-256", reterr));
    TRY(new_context(&stream->context, reterr));
    TRY(start(stream->context, reterr));
    *ret_stream = STEAL(stream);
    return PAWL_OK;
}

pawl_status pawl__sha256_add(struct pawl__sha256_stream *stream,
                             pawl_view bytes,
                             pawl_error *reterr)
{
    return add(stream->context, bytes, reterr);
}

pawl_status pawl__sha256_finish(struct pawl__sha256_stream *stream,
                                struct pawl__sha256 *ret_hash,
                                pawl_error *reterr)
{
    struct pawl__sha256 hash;

    TRY(finish(stream->context, &hash, reterr));
    TRY(start(stream->context, reterr));
    *ret_hash = hash;
    return PAWL_OK;
}

void pawl__sha256_close(struct pawl__sha256_stream *stream)
{
    if (stream != NULL) {
        EVP_MD_CTX_free(stream->context);
        free(stream);
    }
}

void pawl__sha256_hex(const struct pawl__sha256 *hash, char ret_hex[PAWL__SHA256_HEX_SIZE])
{
    for (size_t i = 0; i < sizeof(hash->bytes); i++) {
        pawl__hex_byte(hash->bytes[i], &ret_hex[2 * i]);
    }
    ret_hex[2 * sizeof(hash->bytes)] = '\0';
}

void pawl__sha256_text(const struct pawl__sha256 *hash, char ret_text[PAWL__SHA256_TEXT_SIZE])
{
    memcpy(ret_text, PREFIX, sizeof(PREFIX));
    pawl__sha256_hex(hash, ret_text + strlen(PREFIX));
}

pawl_status pawl__sha256_parse(pawl_view text, struct pawl__sha256 *ret_hash, pawl_error *reterr)
{
    struct pawl__sha256 hash;
    pawl_view hex = text;
    pawl_view prefix;

    if (text.len >= strlen(PREFIX) && memcmp(text.data, PREFIX, strlen(PREFIX)) == 0) {
        REQUIRE(pawl__view_take(&hex, strlen(PREFIX), &prefix));
    }
    if (hex.len != PAWL__SHA256_HEX_SIZE - 1) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "a SHA-256 has 64 hex digits, after '" PREFIX "' or alone, but here are "
                          "%zu bytes",
                          hex.len);
    }
    for (size_t i = 0; i < sizeof(hash.bytes); i++) {
        int high = pawl__hex_value(hex.data[2 * i]);
        int low = pawl__hex_value(hex.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "'%.*s' is no SHA-256: expected a hex digit at digit %zu",
                              VIEW_ARGS(text),
                              2 * i + (high < 0 ? 1 : 2));
        }
        hash.bytes[i] = (uint8_t)(high << 4 | low);
    }
    *ret_hash = hash;
    return PAWL_OK;
}

bool pawl__sha256_equal(const struct pawl__sha256 *a, const struct pawl__sha256 *b)
{
    return CRYPTO_memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}
