/* pawl token create|list|revoke */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/json/object.h"
#include "base/os/fs.h"
#include "cli/commands.h"
#include "cli/frame/run.h"
#include "cli/node/tokens.h"
#include "config/config.h"
#include "server/tokens/store.h"

enum { LINE_BYTES_MAX = 4096 };

#define MAKE "pawl token create collector --data ./data --scope write >token && "

pawl_status pawl__cli_tokens_path(const struct pawl__cli_run *run,
                                  struct pawl__buf *path,
                                  pawl_error *reterr)
{
    const char *data = pawl__config_text(run->config, PAWL__DATA);

    pawl__buf_add_format(path, "%s/tokens.sqlite", data);
    return pawl__buf_check(path, "the path", reterr);
}

static pawl_status open_tokens(const struct pawl__cli_run *run,
                               bool create,
                               struct pawl__tokens **ret_tokens,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf path = BUF_INIT(1 << 16);

    TRY(pawl__cli_tokens_path(run, &path, reterr));
    if (create) {
        TRY(pawl__fs_make_dir(pawl__config_text(run->config, PAWL__DATA), reterr));
    }
    return pawl__serve_tokens_open(path.data, create, run->clock, ret_tokens, reterr);
}

/* --- create --- */

static enum pawl__scope scope_named(const char *name)
{
    size_t found = 0;

    while (strcmp(pawl__serve_scope_names[found], name) != 0) {
        found++;
        REQUIRE(pawl__serve_scope_names[found] != NULL); /* the flag's choices allow no other */
    }
    return (enum pawl__scope)found;
}

static pawl_status read_expiry(const struct pawl__cli_run *run, int64_t *ret_ms, pawl_error *reterr)
{
    const char *given = pawl__cli_args_value(run->args, "expires");
    int64_t ns = 0;

    *ret_ms = 0;
    if (given == NULL) {
        return PAWL_OK;
    }
    pawl_status status = pawl__duration_parse(pawl_view_of(given), &ns, reterr);
    if (status == PAWL_OK && ns < NS_PER_S) {
        status = pawl__fail(reterr, PAWL_INVALID, "'%s' is less than a second", given);
    }
    *ret_ms = ns / NS_PER_MS;
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "--expires");
}

static pawl_status create_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__serve_tokens_close_p) struct pawl__tokens *tokens = NULL;
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(LINE_BYTES_MAX);
    struct pawl__token token;
    char secret[TOKEN_SECRET_SIZE];
    int64_t expires_ms = 0;

    TRY(read_expiry(run, &expires_ms, reterr));
    TRY(open_tokens(run, true, &tokens, reterr));
    TRY(pawl__serve_tokens_create(tokens,
                                  pawl_view_of(pawl__cli_args_operand(run->args, 0)),
                                  scope_named(pawl__cli_args_value(run->args, "scope")),
                                  expires_ms,
                                  &token,
                                  secret,
                                  reterr));
    if (run->json) {
        struct pawl__object object = pawl__object_start(&out);
        pawl__object_text(&object, "token_id", pawl_view_of(token.token_id));
        pawl__object_text(&object, "token", pawl_view_of(secret));
        pawl__object_end(&object);
        pawl__buf_add_char(&out, '\n');
    } else {
        pawl__buf_add_format(&out, "%s\n", secret);
    }
    return pawl__cli_out_add(&out, reterr);
}

static const struct pawl__cli_command create = {
    .name = "create",
    .summary = "make a token and print it, once",
    .description =
        "Prints the token alone on a line. Only its hash is stored: it cannot be shown again. "
        "From the first token on, a node asks every request for one, also on this machine: send it "
        "as the header 'Authorization: Bearer TOKEN'. A node that runs knows it at once.",
    .flags = FLAGS(FLAG("scope",
                        "SCOPE",
                        "What it allows, each also what those before it do.",
                        .choices = CHOICES("read", "write", "admin"),
                        .required = true),
                   FLAG("expires",
                        "DURATION",
                        "It is good for so long, say 30d; without it until it is revoked.")),
    .operands = OPERANDS({ .name = "NAME", .help = "For people: who uses it." }),
    .examples = EXAMPLES(TESTED(MAKE "wc -c token", "into a file"),
                         TESTED("pawl token create laptop --data ./data --scope read "
                                "--expires 30d",
                                "reads for a month")),
    .run = create_run,
};

/* --- list --- */

static const struct pawl__column columns[] = {
    { "token_id", true },   { "name", false },      { "scope", true },
    { "created_at", true }, { "expires_at", true }, { "revoked_at", true },
};

struct listing {
    struct pawl__table table;
    pawl_status status;
    pawl_error *reterr;
};

static struct pawl__cell time_cell(int64_t us, char text[PAWL__TIME_SIZE])
{
    if (us == 0) {
        return pawl__cell_none();
    }
    pawl__time_rfc3339(us, text);
    return pawl__cell_text(pawl_view_of(text));
}

static bool add_token(void *context, const struct pawl__token *token)
{
    struct listing *listing = context;
    char times[3][PAWL__TIME_SIZE];
    const struct pawl__cell cells[] = {
        pawl__cell_text(pawl_view_of(token->token_id)),
        pawl__cell_text(pawl_view_of(token->name)),
        pawl__cell_text(pawl_view_of(pawl__serve_scope_names[token->scope])),
        time_cell(token->created_at_us, times[0]),
        time_cell(token->expires_at_us, times[1]),
        time_cell(token->revoked_at_us, times[2]),
    };

    listing->status = pawl__table_add(&listing->table, cells, listing->reterr);
    return listing->status == PAWL_OK;
}

static pawl_status list_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__serve_tokens_close_p) struct pawl__tokens *tokens = NULL;
    struct pawl__table_options options = pawl__cli_out_table(run);
    struct listing listing = { .reterr = reterr };

    TRY(open_tokens(run, false, &tokens, reterr));
    pawl__table_init(&listing.table, columns, COUNT_OF(columns), &options);
    pawl_status status = pawl__serve_tokens_list(tokens, add_token, &listing, reterr);
    if (status == PAWL_OK) {
        status =
            listing.status == PAWL_OK ? pawl__table_end(&listing.table, reterr) : listing.status;
    }
    pawl__table_done(&listing.table);
    return status;
}

static const struct pawl__cli_command list = {
    .name = "list",
    .summary = "list the tokens, without what they are",
    .description = "Prints every token that was made, those too that expired or were revoked.",
    .examples = EXAMPLES(TESTED(MAKE "pawl token list --data ./data", "who may ask this node?")),
    .run = list_run,
    .only_prints = true,
};

/* --- revoke --- */

static pawl_status revoke_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__serve_tokens_close_p) struct pawl__tokens *tokens = NULL;

    TRY(open_tokens(run, false, &tokens, reterr));
    return pawl__serve_tokens_revoke(
        tokens, pawl_view_of(pawl__cli_args_operand(run->args, 0)), reterr);
}

static const struct pawl__cli_command revoke = {
    .name = "revoke",
    .summary = "end a token",
    .description = "A node that runs refuses it from the next request on. Again is no error.",
    .operands =
        OPERANDS({ .name = "ID", .help = "The token's id, as 'pawl token list' shows it." }),
    .examples = EXAMPLES(TESTED(MAKE "pawl token list --data ./data | cut -f 1 | "
                                     "xargs pawl token revoke --data ./data",
                                "the only one")),
    .run = revoke_run,
};

const struct pawl__cli_command pawl__cli_cmd_token = {
    .name = "token",
    .summary = "who may ask a node",
    .description =
        "Tokens of the node whose data directory this is (tokens.sqlite). Without any, a node "
        "answers everybody on this machine and listens nowhere else.",
    .commands = COMMANDS(&create, &list, &revoke),
    .examples = EXAMPLES(TESTED("pawl token create laptop --data ./data --scope read",
                                "makes the first one: from here on every request needs one")),
};
