/* The tokens of a node: tokens.sqlite in its data directory. Any number of processes may have it open: what
 * `pawl token` changes counts for the next request that a running node gets. */
#ifndef PAWL_SERVER_TOKENS_STORE_H
#define PAWL_SERVER_TOKENS_STORE_H

#include "base/os/clock.h"
#include "server/tokens/token.h"

struct pawl__tokens;

/* `path` names the file. When it is missing or empty there is no token, until somebody makes one; to make one,
 * open it with `create`. */
PAWL_MUST_USE pawl_status pawl__serve_tokens_open(const char *path,
                                                  bool create,
                                                  struct pawl__clock *clock,
                                                  struct pawl__tokens **ret_tokens,
                                                  pawl_error *reterr);
DEFINE_AUTO(struct pawl__tokens *, pawl__serve_tokens_close)

/* Makes a token. expires_ms 0: it never does. INVALID: the name is empty, too long, or has a control character. */
PAWL_MUST_USE pawl_status pawl__serve_tokens_create(struct pawl__tokens *tokens,
                                                    pawl_view name,
                                                    enum pawl__scope scope,
                                                    int64_t expires_ms,
                                                    struct pawl__token *ret_token,
                                                    char ret_secret[TOKEN_SECRET_SIZE],
                                                    pawl_error *reterr);

/* NOT_FOUND: there is none with this id. Again is fine: the first time counts. */
PAWL_MUST_USE pawl_status pawl__serve_tokens_revoke(struct pawl__tokens *tokens,
                                                    pawl_view token_id,
                                                    pawl_error *reterr);

/* In order of their creation. False ends it. */
typedef bool pawl__token_visit(void *context, const struct pawl__token *token);
PAWL_MUST_USE pawl_status pawl__serve_tokens_list(struct pawl__tokens *tokens,
                                                  pawl__token_visit *visit,
                                                  void *context,
                                                  pawl_error *reterr);

/* Whether there is any, revoked ones too. From the first on, everybody is asked for one. */
PAWL_MUST_USE pawl_status pawl__serve_tokens_any(struct pawl__tokens *tokens,
                                                 bool *ret_any,
                                                 pawl_error *reterr);

/* Whether the secret allows it now. While there was no token at all everything is allowed: the node can only
 * be reached from this machine then. Once there was one, an emptied or missing file opens nothing, and one that
 * was replaced is read anew. CORRUPT: a row is damaged. Any thread. */
PAWL_MUST_USE pawl_status pawl__serve_tokens_check(struct pawl__tokens *tokens,
                                                   pawl_view secret,
                                                   enum pawl__scope needed,
                                                   enum pawl__token_answer *ret_answer,
                                                   pawl_error *reterr);

#endif
