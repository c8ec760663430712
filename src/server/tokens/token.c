#include "server/tokens/token.h"

#include <string.h>
#include <strings.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/hex.h"
#include "base/core/macros.h"

#define PREFIX "pawl_"

const char *const pawl__serve_scope_names[] = { "", "read", "write", "admin", NULL };

pawl_status pawl__serve_token_draw(struct pawl__random *random,
                                   char ret_secret[TOKEN_SECRET_SIZE],
                                   pawl_error *reterr)
{
    uint8_t bytes[32];

    TRY(pawl__random_bytes(random, bytes, sizeof(bytes), reterr));
    memcpy(ret_secret, PREFIX, strlen(PREFIX));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        pawl__hex_byte(bytes[i], &ret_secret[strlen(PREFIX) + 2 * i]);
    }
    ret_secret[TOKEN_SECRET_SIZE - 1] = '\0';
    return PAWL_OK;
}

pawl_status pawl__serve_token_hash(pawl_view secret,
                                   struct pawl__sha256 *ret_hash,
                                   pawl_error *reterr)
{
    return pawl__sha256(secret, ret_hash, reterr);
}

/* The time that this takes tells nothing about a secret: it compares hashes, all of them, and whole. */
const struct pawl__token *pawl__serve_token_find(const struct pawl__token *tokens,
                                                 size_t count,
                                                 const struct pawl__sha256 *hash)
{
    const struct pawl__token *found = NULL;

    for (size_t i = 0; i < count; i++) {
        found = pawl__sha256_equal(&tokens[i].hash, hash) ? &tokens[i] : found;
    }
    return found;
}

enum pawl__token_answer pawl__serve_token_decide(const struct pawl__token *token,
                                                 enum pawl__scope needed,
                                                 int64_t now_us)
{
    if (needed == PAWL__SCOPE_PUBLIC) {
        return PAWL__TOKEN_ALLOWS;
    }
    if (token == NULL) {
        return PAWL__TOKEN_UNKNOWN;
    }
    if (token->revoked_at_us != 0) {
        return PAWL__TOKEN_REVOKED;
    }
    if (token->expires_at_us != 0 && now_us >= token->expires_at_us) {
        return PAWL__TOKEN_EXPIRED;
    }
    return token->scope >= (needed == PAWL__SCOPE_UNDECLARED ? PAWL__SCOPE_ADMIN : needed)
               ? PAWL__TOKEN_ALLOWS
               : PAWL__TOKEN_OTHER_SCOPE;
}

pawl_view pawl__serve_token_of_header(const char *header)
{
    static const char scheme[] = "Bearer ";

    if (header == NULL || strncasecmp(header, scheme, strlen(scheme)) != 0) {
        return (pawl_view){ NULL, 0 };
    }
    return pawl_view_of(header + strlen(scheme) + strspn(header + strlen(scheme), " "));
}
