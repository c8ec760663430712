/* Asks a request for its token, before anything else of it is looked at. */
#include <stdio.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "server/node_internal.h"
#include "server/tokens/store.h"

static void refuse_scope(struct pawl__http_request *request, enum pawl__scope needed)
{
    char detail[80];

    (void)snprintf(
        detail,
        sizeof(detail),
        "this needs a token of scope '%s'; the one sent allows less",
        pawl__serve_scope_names[needed == PAWL__SCOPE_UNDECLARED ? PAWL__SCOPE_ADMIN : needed]);
    pawl__http_refuse(request, &pawl__http_wrong_scope, detail);
}

static void refuse(struct pawl__http_request *request, enum pawl__token_answer answer, bool given)
{
    static const char *const details[] = {
        [PAWL__TOKEN_UNKNOWN] = "the token is unknown",
        [PAWL__TOKEN_EXPIRED] = "the token has expired",
        [PAWL__TOKEN_REVOKED] = "the token was revoked",
    };

    pawl__http_set_header(request,
                          "WWW-Authenticate",
                          given ? "Bearer realm=\"pawl\", error=\"invalid_token\""
                                : "Bearer realm=\"pawl\"");
    pawl__http_refuse(request,
                      &pawl__http_no_token,
                      given ? details[answer] : "send the header Authorization: Bearer TOKEN");
}

/* Whatever is wrong with the file is never the fault of whoever asked. */
static void fail(struct pawl__http_request *request, const pawl_error *error)
{
    pawl_error inner = *error;

    if (pawl__http_problem_of(error->status)->http < 500) {
        inner.status = PAWL_FAILED;
    }
    pawl__http_fail(request, &inner);
}

bool pawl__serve_authorize(struct pawl__http_request *request, unsigned scope, void *context)
{
    struct pawl__serve_node *node = context;
    pawl_error error = PAWL_ERROR_INIT;
    enum pawl__token_answer answer = PAWL__TOKEN_UNKNOWN;

    /* Through the socket the user's id, which net/http has checked, counts as an admin's token. */
    if (node->tokens == NULL || scope == PAWL__SCOPE_PUBLIC || pawl__http_is_trusted(request)) {
        return true;
    }
    pawl_view secret = pawl__serve_token_of_header(pawl__http_header(request, "Authorization"));
    pawl_status status =
        pawl__serve_tokens_check(node->tokens, secret, (enum pawl__scope)scope, &answer, &error);
    if (status != PAWL_OK) {
        fail(request, &error);
    } else if (answer == PAWL__TOKEN_OTHER_SCOPE) {
        refuse_scope(request, (enum pawl__scope)scope);
    } else if (answer != PAWL__TOKEN_ALLOWS) {
        refuse(request, answer, secret.len > 0);
    }
    return status == PAWL_OK && answer == PAWL__TOKEN_ALLOWS;
}
