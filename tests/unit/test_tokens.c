/* Tokens: what they allow and for how long, and the file that they are in. */
#include "lib/check.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "lib/tempdir.h"
#include "lib/virtual_clock.h"
#include "server/tokens/store.h"

struct fixture {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    struct pawl__tokens *tokens;
    struct pawl__clock_virtual clock;
    pawl_error error;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->clock = pawl__clock_virtual_at(1000 * US_PER_S, 0);
    assert_ok(tempdir_make(f->dir, "tokens", &f->error), &f->error);
    (void)snprintf(f->path, sizeof(f->path), "%s/tokens.sqlite", f->dir);
    assert_ok(pawl__serve_tokens_open(f->path, true, &f->clock.base, &f->tokens, &f->error),
              &f->error);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__serve_tokens_close(f->tokens);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static struct pawl__token make(struct fixture *f,
                               enum pawl__scope scope,
                               int64_t expires_ms,
                               char secret[TOKEN_SECRET_SIZE])
{
    struct pawl__token token;

    assert_ok(pawl__serve_tokens_create(
                  f->tokens, pawl_view_of("a"), scope, expires_ms, &token, secret, &f->error),
              &f->error);
    return token;
}

static void assert_answer(struct fixture *f,
                          const char *secret,
                          enum pawl__scope needed,
                          enum pawl__token_answer expected)
{
    enum pawl__token_answer answer = PAWL__TOKEN_UNKNOWN;

    assert_ok(pawl__serve_tokens_check(f->tokens, pawl_view_of(secret), needed, &answer, &f->error),
              &f->error);
    assert_int_equal(answer, expected);
}

/* --- tests --- */

static void test_a_scope_allows_what_those_before_it_do(void **state)
{
    static const struct {
        enum pawl__scope of_token;
        enum pawl__scope needed;
        enum pawl__token_answer answer;
    } rows[] = {
        { PAWL__SCOPE_READ, PAWL__SCOPE_READ, PAWL__TOKEN_ALLOWS },
        { PAWL__SCOPE_READ, PAWL__SCOPE_WRITE, PAWL__TOKEN_OTHER_SCOPE },
        { PAWL__SCOPE_READ, PAWL__SCOPE_ADMIN, PAWL__TOKEN_OTHER_SCOPE },
        { PAWL__SCOPE_READ, PAWL__SCOPE_PUBLIC, PAWL__TOKEN_ALLOWS },
        { PAWL__SCOPE_READ, PAWL__SCOPE_UNDECLARED, PAWL__TOKEN_OTHER_SCOPE },
        { PAWL__SCOPE_WRITE, PAWL__SCOPE_READ, PAWL__TOKEN_ALLOWS },
        { PAWL__SCOPE_WRITE, PAWL__SCOPE_WRITE, PAWL__TOKEN_ALLOWS },
        { PAWL__SCOPE_WRITE, PAWL__SCOPE_ADMIN, PAWL__TOKEN_OTHER_SCOPE },
        { PAWL__SCOPE_WRITE, PAWL__SCOPE_UNDECLARED, PAWL__TOKEN_OTHER_SCOPE },
        { PAWL__SCOPE_ADMIN, PAWL__SCOPE_ADMIN, PAWL__TOKEN_ALLOWS },
        { PAWL__SCOPE_ADMIN, PAWL__SCOPE_UNDECLARED, PAWL__TOKEN_ALLOWS },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pawl__token token = { .scope = rows[i].of_token };

        assert_int_equal(pawl__serve_token_decide(&token, rows[i].needed, 0), rows[i].answer);
    }
    assert_int_equal(pawl__serve_token_decide(NULL, PAWL__SCOPE_READ, 0), PAWL__TOKEN_UNKNOWN);
    assert_int_equal(pawl__serve_token_decide(NULL, PAWL__SCOPE_PUBLIC, 0), PAWL__TOKEN_ALLOWS);
}

static void test_a_header_names_a_token_or_none(void **state)
{
    static const struct {
        const char *header;
        const char *token;
    } rows[] = {
        { "Bearer abc", "abc" }, { "bearer  abc", "abc" }, { "Bearer ", "" },
        { "Basic abc", "" },     { "Bearerabc", "" },      { NULL, "" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        pawl_view token = pawl__serve_token_of_header(rows[i].header);

        assert_int_equal(token.len, strlen(rows[i].token));
        assert_memory_equal(token.len == 0 ? "" : token.data, rows[i].token, token.len);
    }
}

static void test_everybody_may_until_there_is_a_token(void **state)
{
    struct fixture *f = *state;
    char secret[TOKEN_SECRET_SIZE];

    assert_answer(f, "", PAWL__SCOPE_ADMIN, PAWL__TOKEN_ALLOWS);
    struct pawl__token token = make(f, PAWL__SCOPE_READ, 0, secret);
    assert_answer(f, "", PAWL__SCOPE_READ, PAWL__TOKEN_UNKNOWN);
    assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_ALLOWS);
    /* Revoking the last one opens nothing. */
    assert_ok(pawl__serve_tokens_revoke(f->tokens, pawl_view_of(token.token_id), &f->error),
              &f->error);
    assert_answer(f, "", PAWL__SCOPE_READ, PAWL__TOKEN_UNKNOWN);
    assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_REVOKED);
}

static void test_a_token_ends_when_it_expires(void **state)
{
    struct fixture *f = *state;
    char secret[TOKEN_SECRET_SIZE];

    (void)make(f, PAWL__SCOPE_WRITE, 1000, secret);
    pawl__clock_advance(&f->clock, NS_PER_S - NS_PER_US);
    assert_answer(f, secret, PAWL__SCOPE_WRITE, PAWL__TOKEN_ALLOWS);
    pawl__clock_advance(&f->clock, NS_PER_US);
    assert_answer(f, secret, PAWL__SCOPE_WRITE, PAWL__TOKEN_EXPIRED);
}

/* What `pawl token` does while a node runs. */
static void test_what_another_process_changes_counts_at_once(void **state)
{
    struct fixture *f = *state;
    struct pawl__tokens *node = f->tokens;
    struct pawl__tokens *other = NULL;
    char secret[TOKEN_SECRET_SIZE];

    assert_answer(f, "", PAWL__SCOPE_READ, PAWL__TOKEN_ALLOWS);
    assert_ok(pawl__serve_tokens_open(f->path, true, &f->clock.base, &other, &f->error), &f->error);
    f->tokens = other;
    struct pawl__token token = make(f, PAWL__SCOPE_READ, 0, secret);
    f->tokens = node;
    assert_answer(f, "", PAWL__SCOPE_READ, PAWL__TOKEN_UNKNOWN);
    assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_ALLOWS);
    assert_ok(pawl__serve_tokens_revoke(other, pawl_view_of(token.token_id), &f->error), &f->error);
    assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_REVOKED);
    pawl__serve_tokens_close(other);
}

/* What `pawl token create` leaves on a full disk, and what it has made a moment before the first token is in it. */
static void test_an_empty_file_has_no_token(void **state)
{
    struct fixture *f = *state;
    char secret[TOKEN_SECRET_SIZE];
    struct pawl__tokens *maker = NULL;

    pawl__serve_tokens_close(STEAL(f->tokens));
    assert_int_equal(truncate(f->path, 0), 0);
    assert_ok(pawl__serve_tokens_open(f->path, false, &f->clock.base, &f->tokens, &f->error),
              &f->error);
    assert_answer(f, "", PAWL__SCOPE_ADMIN, PAWL__TOKEN_ALLOWS);
    assert_status(pawl__serve_tokens_revoke(f->tokens, pawl_view_of("nobody"), &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_message(&f->error, "there is no token 'nobody'");

    struct pawl__tokens *node = f->tokens;
    assert_ok(pawl__serve_tokens_open(f->path, true, &f->clock.base, &maker, &f->error), &f->error);
    f->tokens = maker;
    (void)make(f, PAWL__SCOPE_READ, 0, secret);
    f->tokens = node;
    assert_answer(f, "", PAWL__SCOPE_READ, PAWL__TOKEN_UNKNOWN);
    assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_ALLOWS);
    pawl__serve_tokens_close(maker);
}

static void test_the_file_keeps_no_secret_and_is_its_owners(void **state)
{
    struct fixture *f = *state;
    char secret[TOKEN_SECRET_SIZE];
    char content[1 << 16];
    struct stat info;

    (void)make(f, PAWL__SCOPE_ADMIN, 0, secret);
    pawl__serve_tokens_close(STEAL(f->tokens)); /* which moves the log into the file */
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    FILE *file = fopen(f->path, "rb");
    assert_non_null(file);
    size_t len = fread(content, 1, sizeof(content), file);
    fclose(file);
    assert_null(memmem(content, len, secret + 5, 16));
}

static void test_bad_names_and_ids_are_refused(void **state)
{
    struct fixture *f = *state;
    struct pawl__token token;
    char secret[TOKEN_SECRET_SIZE];
    char name[TOKEN_NAME_MAX + 2];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const struct {
        const char *name;
        const char *says;
    } names[] = {
        { "", "1 to 64 are allowed" },
        { name, "1 to 64 are allowed" },
        { "two\nlines", "has a control character" },
        { "del\x7f", "has a control character" },
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_status(pawl__serve_tokens_create(f->tokens,
                                                pawl_view_of(names[i].name),
                                                PAWL__SCOPE_READ,
                                                0,
                                                &token,
                                                secret,
                                                &f->error),
                      PAWL_INVALID,
                      &f->error);
        assert_message(&f->error, names[i].says);
    }
    assert_status(pawl__serve_tokens_revoke(f->tokens, pawl_view_of("nobody"), &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_message(&f->error, "there is no token 'nobody'");
}

/* What a program that is not ours does to a file. */
static void edit(const char *path, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA ignore_check_constraints = on", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static bool never(void *context, const struct pawl__token *token)
{
    (void)context;
    fail_msg("token '%s' is shown", token->token_id);
    return false;
}

static void test_a_damaged_row_lets_nobody_in(void **state)
{
    static const char *const edits[] = {
        "scope = 99",    "scope = -5",
        "scope = 0",     "scope = 4294967297",
        "hash = x'00'",  "hash = x''",
        "name = ''",     "name = printf('%.*c', 65, 'n')",
        "token_id = ''", "token_id = printf('%.*c', 500, 'i')",
    };
    struct fixture *f = *state;
    char secret[TOKEN_SECRET_SIZE];
    char sql[128];

    for (size_t i = 0; i < COUNT_OF(edits); i++) {
        enum pawl__token_answer answer = PAWL__TOKEN_UNKNOWN;

        (void)make(f, PAWL__SCOPE_READ, 0, secret);
        assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_ALLOWS);
        (void)snprintf(sql, sizeof(sql), "UPDATE tokens SET %s", edits[i]);
        edit(f->path, sql);
        assert_status(pawl__serve_tokens_check(
                          f->tokens, pawl_view_of(secret), PAWL__SCOPE_READ, &answer, &f->error),
                      PAWL_CORRUPT,
                      &f->error);
        assert_int_equal(answer, PAWL__TOKEN_UNKNOWN);
        assert_status(
            pawl__serve_tokens_list(f->tokens, never, NULL, &f->error), PAWL_CORRUPT, &f->error);
        edit(f->path, "DELETE FROM tokens");
    }
}

static void test_an_emptied_file_opens_nothing(void **state)
{
    struct fixture *f = *state;
    char secret[TOKEN_SECRET_SIZE];

    (void)make(f, PAWL__SCOPE_READ, 0, secret);
    assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_ALLOWS);
    edit(f->path, "DELETE FROM tokens");
    assert_answer(f, "", PAWL__SCOPE_READ, PAWL__TOKEN_UNKNOWN);
    assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_UNKNOWN);
}

/* A copy is put in the place of the file, as a restore does; `pawl token` then revokes in that. */
static void test_a_replaced_file_is_read_anew(void **state)
{
    struct fixture *f = *state;
    struct pawl__tokens *node = f->tokens;
    struct pawl__tokens *other = NULL;
    char secret[TOKEN_SECRET_SIZE];
    char copy[sizeof(f->path) + 8];
    char sql[sizeof(copy) + 32];

    struct pawl__token token = make(f, PAWL__SCOPE_READ, 0, secret);
    assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_ALLOWS);
    (void)snprintf(copy, sizeof(copy), "%s.copy", f->path);
    (void)snprintf(sql, sizeof(sql), "VACUUM INTO '%s'", copy);
    edit(f->path, sql);
    assert_int_equal(rename(copy, f->path), 0);
    assert_ok(pawl__serve_tokens_open(f->path, false, &f->clock.base, &other, &f->error),
              &f->error);
    assert_ok(pawl__serve_tokens_revoke(other, pawl_view_of(token.token_id), &f->error), &f->error);
    pawl__serve_tokens_close(other);
    assert_ptr_equal(f->tokens, node);
    assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_REVOKED);
    assert_int_equal(unlink(f->path), 0);
    assert_answer(f, secret, PAWL__SCOPE_READ, PAWL__TOKEN_REVOKED);
    assert_answer(f, "", PAWL__SCOPE_READ, PAWL__TOKEN_UNKNOWN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_scope_allows_what_those_before_it_do),
        cmocka_unit_test(test_a_header_names_a_token_or_none),
        TEST(everybody_may_until_there_is_a_token),
        TEST(a_token_ends_when_it_expires),
        TEST(what_another_process_changes_counts_at_once),
        TEST(an_empty_file_has_no_token),
        TEST(the_file_keeps_no_secret_and_is_its_owners),
        TEST(bad_names_and_ids_are_refused),
        TEST(a_damaged_row_lets_nobody_in),
        TEST(an_emptied_file_opens_nothing),
        TEST(a_replaced_file_is_read_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
