/* Tokens: what one looks like, what it allows, and whether it still does. Pure.
 *
 * A token is 256 random bits, written "pawl_" and 64 hex digits. It is shown when it is made and never again:
 * only its hash is stored. */
#ifndef PAWL_SERVER_TOKENS_TOKEN_H
#define PAWL_SERVER_TOKENS_TOKEN_H

#include <pawl/pawl.h>

#include "base/core/random.h"
#include "base/core/sha256.h"

enum {
    TOKEN_SECRET_SIZE = 5 + 64 + 1,
    TOKEN_ID_SIZE = 37,
    TOKEN_NAME_MAX = 64,
};

/* What a token allows, each also what those before it do, and what a route needs. The numbers of the first
 * three are stored. */
enum pawl__scope {
    PAWL__SCOPE_UNDECLARED, /* of a route that does not say: as ADMIN */
    PAWL__SCOPE_READ,       /* what changes nothing */
    PAWL__SCOPE_WRITE,      /* what programs do all day */
    PAWL__SCOPE_ADMIN,      /* what changes how the node works */
    PAWL__SCOPE_PUBLIC,     /* of a route alone: no token is needed */
};
extern const char
    *const pawl__serve_scope_names[]; /* of a token's, by value; NULL after the last */

struct pawl__token {
    char token_id[TOKEN_ID_SIZE];
    char name[TOKEN_NAME_MAX + 1];
    enum pawl__scope scope;
    struct pawl__sha256 hash;
    int64_t created_at_us;
    int64_t expires_at_us; /* 0: never */
    int64_t revoked_at_us; /* 0: it was not */
};

enum pawl__token_answer {
    PAWL__TOKEN_ALLOWS,
    PAWL__TOKEN_UNKNOWN,
    PAWL__TOKEN_EXPIRED,
    PAWL__TOKEN_REVOKED,
    PAWL__TOKEN_OTHER_SCOPE, /* it is good, and allows less */
};

/* Draws a new secret. */
PAWL_MUST_USE pawl_status pawl__serve_token_draw(struct pawl__random *random,
                                                 char ret_secret[TOKEN_SECRET_SIZE],
                                                 pawl_error *reterr);

/* Of anything that was sent: one that is no token has a hash that nobody has. */
PAWL_MUST_USE pawl_status pawl__serve_token_hash(pawl_view secret,
                                                 struct pawl__sha256 *ret_hash,
                                                 pawl_error *reterr);

/* NULL: none of them has this hash. Takes as long for each. */
const struct pawl__token *pawl__serve_token_find(const struct pawl__token *tokens,
                                                 size_t count,
                                                 const struct pawl__sha256 *hash);

/* `token` is NULL when none was found. */
enum pawl__token_answer pawl__serve_token_decide(const struct pawl__token *token,
                                                 enum pawl__scope needed,
                                                 int64_t now_us);

/* The token of a header "Authorization: Bearer pawl_..."; empty when it says something else. */
pawl_view pawl__serve_token_of_header(const char *header);

#endif
