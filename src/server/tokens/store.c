#include "server/tokens/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/core/macros.h"
#include "base/core/uuid.h"
#include "base/thread/thread.h"
#include "server/tokens/statements.h"
#include "store/layout.h"
#include "store/schemas.h"
#include "store/sqlite/sqlite.h"

enum { BUSY_MS_MAX = 5000 };

struct pawl__tokens {
    struct pawl__lock lock;  /* covers all below */
    struct pawl__sqlite *db; /* NULL: the file was not there when it was last looked for */
    char *path;
    struct pawl__clock *clock;
    struct pawl__token *tokens; /* as they were at data_version */
    size_t count;
    bool was_any; /* there was one: from then on everybody is asked, whatever becomes of the file */
    int64_t data_version; /* -1: they were never read */
};

static pawl_status open_file_locked(struct pawl__tokens *tokens,
                                    enum pawl__sqlite_mode mode,
                                    pawl_error *reterr) REQUIRES_LOCK(tokens->lock)
{
    struct pawl__sqlite_options options = PAWL__SQLITE_OPTIONS_INIT;

    options.mode = mode;
    options.application_id = PAWL__TOKENS_APPLICATION_ID;
    options.schema = &pawl__schema_sqlite_tokens;
    options.statements = pawl__token_sql_statements;
    options.statement_count = TOKEN_SQL_COUNT;
    options.busy_ms_max = BUSY_MS_MAX;
    options.clock = tokens->clock;
    return pawl__sqlite_open(tokens->path, &options, &tokens->db, reterr);
}

/* The schema checks all of this, but for a program that tells SQLite not to. */
static pawl_status read_row(struct pawl__sqlite_stmt *row,
                            struct pawl__token *ret_token,
                            pawl_error *reterr)
{
    struct pawl__token token = {
        .created_at_us = pawl__sqlite_i64(row, 4),
        .expires_at_us = pawl__sqlite_i64(row, 5),
        .revoked_at_us = pawl__sqlite_i64(row, 6),
    };
    pawl_view id = pawl__sqlite_text(row, 0);
    pawl_view name = pawl__sqlite_text(row, 1);
    int64_t scope = pawl__sqlite_i64(row, 2);
    pawl_view hash = pawl__sqlite_blob(row, 3);

    if (scope < PAWL__SCOPE_READ || scope > PAWL__SCOPE_ADMIN
        || hash.len != sizeof(token.hash.bytes) || id.len == 0 || id.len >= sizeof(token.token_id)
        || name.len == 0 || name.len >= sizeof(token.name)) {
        return pawl__fail_advised(reterr,
                                  PAWL_CORRUPT,
                                  "the row of token '%.*s' is damaged: remove it, or restore the "
                                  "file from a copy",
                                  (int)MIN(id.len, sizeof(token.token_id)),
                                  id.data == NULL ? "" : id.data);
    }
    token.scope = (enum pawl__scope)scope;
    memcpy(token.token_id, id.data, id.len);
    memcpy(token.name, name.data, name.len);
    memcpy(token.hash.bytes, hash.data, hash.len);
    *ret_token = token;
    return PAWL_OK;
}

static pawl_status reload_locked(struct pawl__tokens *tokens, pawl_error *reterr)
    REQUIRES_LOCK(tokens->lock)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt row = pawl__sqlite_use(tokens->db, TOKEN_SQL_TOKEN_LIST);
    struct pawl__token *list = NULL;
    size_t count = 0;
    size_t room = 0;
    bool any = true;
    pawl_status status = PAWL_OK;

    while (status == PAWL_OK && any) {
        status = pawl__sqlite_next(&row, &any, reterr);
        if (status != PAWL_OK || !any) {
            break;
        }
        struct pawl__token *more = pawl__grow(list, count, &room, sizeof(*list));
        if (more == NULL) {
            status = pawl__fail(reterr, PAWL_NOMEM, "no memory for tokens");
            break;
        }
        list = more;
        status = read_row(&row, &list[count++], reterr);
    }
    if (status != PAWL_OK) {
        free(list);
        return status;
    }
    free(tokens->tokens);
    tokens->tokens = list;
    tokens->count = count;
    tokens->was_any |= count > 0;
    return PAWL_OK;
}

/* Leaves it closed while the file holds no store: it is missing, or empty because the disk was full or
 * another process is just making it. */
static pawl_status open_existing_locked(struct pawl__tokens *tokens, pawl_error *reterr)
    REQUIRES_LOCK(tokens->lock)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (access(tokens->path, F_OK) != 0) {
        return PAWL_OK;
    }
    pawl_status status = open_file_locked(tokens, PAWL__SQLITE_MUST_EXIST, &error);
    return status == PAWL_OK || status == PAWL_NOT_FOUND ? PAWL_OK
                                                         : pawl__fail_with(reterr, status, &error);
}

/* A file that was replaced, as by a restored copy, is another one: what `pawl token` revokes is in that. */
static void leave_replaced_locked(struct pawl__tokens *tokens) REQUIRES_LOCK(tokens->lock)
{
    if (tokens->db != NULL && pawl__sqlite_check_place(tokens->db, NULL) != PAWL_OK) {
        pawl__sqlite_close(STEAL(tokens->db));
        tokens->data_version = -1;
    }
}

/* What another process has changed counts from here on. Without the file its last tokens do. */
static pawl_status refresh_locked(struct pawl__tokens *tokens, pawl_error *reterr)
    REQUIRES_LOCK(tokens->lock)
{
    int64_t version = 0;

    leave_replaced_locked(tokens);
    if (tokens->db == NULL) {
        TRY(open_existing_locked(tokens, reterr));
    }
    if (tokens->db == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__sqlite_data_version(tokens->db, &version, reterr));
    if (version != tokens->data_version) {
        TRY(reload_locked(tokens, reterr));
        tokens->data_version = version;
    }
    return PAWL_OK;
}

/* --- opening and closing --- */

pawl_status pawl__serve_tokens_open(const char *path,
                                    bool create,
                                    struct pawl__clock *clock,
                                    struct pawl__tokens **ret_tokens,
                                    pawl_error *reterr)
{
    AUTO(pawl__serve_tokens_close_p) struct pawl__tokens *tokens = calloc(1, sizeof(*tokens));

    if (tokens == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for tokens");
    }
    pawl__lock_init(&tokens->lock);
    tokens->clock = pawl__clock_or_real(clock);
    tokens->data_version = -1;
    tokens->path = strdup(path);
    if (tokens->path == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for tokens");
    }
    pawl__lock(&tokens->lock);
    pawl_status status = create ? open_file_locked(tokens, PAWL__SQLITE_CREATE, reterr)
                                : refresh_locked(tokens, reterr);
    pawl__unlock(&tokens->lock);
    if (status == PAWL_OK) {
        *ret_tokens = STEAL(tokens);
    }
    return status;
}

void pawl__serve_tokens_close(struct pawl__tokens *tokens)
{
    if (tokens != NULL) {
        pawl__sqlite_close(tokens->db);
        pawl__lock_done(&tokens->lock);
        free(tokens->tokens);
        free(tokens->path);
        free(tokens);
    }
}

/* --- reading --- */

pawl_status pawl__serve_tokens_list(struct pawl__tokens *tokens,
                                    pawl__token_visit *visit,
                                    void *context,
                                    pawl_error *reterr)
{
    pawl__lock(&tokens->lock);
    pawl_status status = refresh_locked(tokens, reterr);
    for (size_t i = 0; status == PAWL_OK && i < tokens->count; i++) {
        if (!visit(context, &tokens->tokens[i])) {
            break;
        }
    }
    pawl__unlock(&tokens->lock);
    return status;
}

pawl_status pawl__serve_tokens_any(struct pawl__tokens *tokens, bool *ret_any, pawl_error *reterr)
{
    pawl__lock(&tokens->lock);
    pawl_status status = refresh_locked(tokens, reterr);
    *ret_any = tokens->count > 0;
    pawl__unlock(&tokens->lock);
    return status;
}

pawl_status pawl__serve_tokens_check(struct pawl__tokens *tokens,
                                     pawl_view secret,
                                     enum pawl__scope needed,
                                     enum pawl__token_answer *ret_answer,
                                     pawl_error *reterr)
{
    struct pawl__sha256 hash;

    TRY(pawl__serve_token_hash(secret, &hash, reterr));
    pawl__lock(&tokens->lock);
    pawl_status status = refresh_locked(tokens, reterr);
    if (status == PAWL_OK) {
        const struct pawl__token *token =
            pawl__serve_token_find(tokens->tokens, tokens->count, &hash);

        *ret_answer = tokens->was_any
                          ? pawl__serve_token_decide(token, needed, pawl__wall_us(tokens->clock))
                          : PAWL__TOKEN_ALLOWS;
    }
    pawl__unlock(&tokens->lock);
    return status;
}

/* --- writing --- */

static pawl_status add_locked(struct pawl__tokens *tokens,
                              const struct pawl__token *token,
                              pawl_error *reterr) REQUIRES_LOCK(tokens->lock)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt add = pawl__sqlite_use(tokens->db, TOKEN_SQL_TOKEN_ADD);
    pawl_view hash = { (const char *)token->hash.bytes, sizeof(token->hash.bytes) };

    pawl__sqlite_bind_text(&add, 1, pawl_view_of(token->token_id));
    pawl__sqlite_bind_text(&add, 2, pawl_view_of(token->name));
    pawl__sqlite_bind_i64(&add, 3, token->scope);
    pawl__sqlite_bind_blob(&add, 4, hash);
    pawl__sqlite_bind_i64(&add, 5, token->created_at_us);
    pawl__sqlite_bind_i64(&add, 6, token->expires_at_us);
    tokens->data_version = -1; /* its own changes do not change it */
    return pawl__sqlite_run(&add, reterr);
}

static pawl_status check_name(pawl_view name, pawl_error *reterr)
{
    if (name.len == 0 || name.len > TOKEN_NAME_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the token's name has %zu bytes: 1 to %d are allowed",
                          name.len,
                          TOKEN_NAME_MAX);
    }
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.data[i] < ' ' || name.data[i] == '\x7f') {
            return pawl__fail(reterr, PAWL_INVALID, "the token's name has a control character");
        }
    }
    return PAWL_OK;
}

pawl_status pawl__serve_tokens_create(struct pawl__tokens *tokens,
                                      pawl_view name,
                                      enum pawl__scope scope,
                                      int64_t expires_ms,
                                      struct pawl__token *ret_token,
                                      char ret_secret[TOKEN_SECRET_SIZE],
                                      pawl_error *reterr)
{
    struct pawl__token token = { .scope = scope, .created_at_us = pawl__wall_us(tokens->clock) };
    struct pawl__uuid id;

    REQUIRE(scope >= PAWL__SCOPE_READ && scope <= PAWL__SCOPE_ADMIN);
    TRY(check_name(name, reterr));
    memcpy(token.name, name.data, name.len);
    if (expires_ms > 0) {
        token.expires_at_us = token.created_at_us + expires_ms * (NS_PER_MS / NS_PER_US);
    }
    TRY(pawl__uuid_next(pawl__uuid_process(), &id, reterr));
    pawl__uuid_text(&id, token.token_id);
    TRY(pawl__serve_token_draw(pawl__random_real(), ret_secret, reterr));
    TRY(pawl__serve_token_hash(pawl_view_of(ret_secret), &token.hash, reterr));
    pawl__lock(&tokens->lock);
    pawl_status status = add_locked(tokens, &token, reterr);
    pawl__unlock(&tokens->lock);
    *ret_token = token;
    return status;
}

static bool has_locked(const struct pawl__tokens *tokens, pawl_view token_id)
    REQUIRES_LOCK(tokens->lock)
{
    for (size_t i = 0; i < tokens->count; i++) {
        if (pawl__view_is(token_id, tokens->tokens[i].token_id)) {
            return true;
        }
    }
    return false;
}

static pawl_status revoke_locked(struct pawl__tokens *tokens,
                                 pawl_view token_id,
                                 pawl_error *reterr) REQUIRES_LOCK(tokens->lock)
{
    TRY(refresh_locked(tokens, reterr));
    if (tokens->db == NULL || !has_locked(tokens, token_id)) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "there is no token '%.*s'", VIEW_ARGS(token_id));
    }
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt revoke = pawl__sqlite_use(tokens->db, TOKEN_SQL_TOKEN_REVOKE);
    pawl__sqlite_bind_text(&revoke, 1, token_id);
    pawl__sqlite_bind_i64(&revoke, 2, pawl__wall_us(tokens->clock));
    tokens->data_version = -1;
    return pawl__sqlite_run(&revoke, reterr);
}

pawl_status pawl__serve_tokens_revoke(struct pawl__tokens *tokens,
                                      pawl_view token_id,
                                      pawl_error *reterr)
{
    pawl__lock(&tokens->lock);
    pawl_status status = revoke_locked(tokens, token_id, reterr);
    pawl__unlock(&tokens->lock);
    return status;
}
