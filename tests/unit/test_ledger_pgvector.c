/* What the ledger does with pgvector beside searching (test_ledger_recall runs on it, too): who
 * installs it, where it lives, and what becomes of rows that were written without it. */
#include "lib/check.h"

#include <stdlib.h>

#include <pawl/ledger.h>

#include "base/core/macros.h"
#include "ledger/core/backend.h"
#include "ledger/recall/recall.h"
#include "lib/pglite.h"
#include "store/location.h"

static struct pglite pglite;

struct fixture {
    pawl_ledger *ledger;
    pawl_error err;
};

static void admin(struct fixture *f, const char *sql)
{
    assert_ok(pglite_admin(&pglite, sql, &f->err), &f->err);
}

static void open_ledger(struct fixture *f)
{
    assert_ok(pawl_ledger_open(pglite.url, NULL, &f->ledger, &f->err), &f->err);
}

static void close_ledger(struct fixture *f)
{
    pawl_ledger_close(f->ledger, 0, NULL);
    f->ledger = NULL;
}

/* Three events whose embeddings are [1,0], [1,1] and [0,1]. */
static void fill(struct fixture *f)
{
    static const float vectors[3][2] = { { 1, 0 }, { 1, 1 }, { 0, 1 } };
    static const char *const ids[] = { "1", "2", "3" };

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        pawl_event event = { .size = sizeof(pawl_event),
                             .id = pawl_view_of(ids[i]),
                             .run_id = pawl_view_of("r"),
                             .kind = pawl_view_of("k"),
                             .actor = pawl_view_of("a"),
                             .payload = pawl_view_of("1") };
        assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);
        assert_ok(pawl_ledger_embed(f->ledger, i + 1, vectors[i], 2, &f->err), &f->err);
    }
}

static void assert_order(struct fixture *f, uint64_t first, uint64_t second)
{
    pawl_recalled found[2];
    size_t count;

    assert_ok(
        pawl_ledger_recall(f->ledger, (float[]){ 1, 0.1F }, 2, NULL, found, 2, &count, &f->err),
        &f->err);
    assert_int_equal(count, 2);
    assert_int_equal(found[0].offset, first);
    assert_int_equal(found[1].offset, second);
}

/* Asks the backend itself, which cannot fall back on anything; no ledger may be open. */
static pawl_status ask_server(struct fixture *f, bool read_only)
{
    struct pawl__location location = { 0 };
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    struct ledger_backend *backend = NULL;
    pawl_recalled found[2];
    struct recall_top top = { found, 0, COUNT_OF(found) };

    options.read_only = read_only;
    assert_ok(pawl__location_parse(pglite.url, &location, &f->err), &f->err);
    assert_ok(pawl__ledger_postgres_open(&location, &options, &backend, &f->err), &f->err);
    pawl_status status = backend->ops->nearest(backend, (float[]){ 1, 0 }, 2, NULL, &top, &f->err);
    if (status == PAWL_OK) {
        assert_int_equal(top.count, 2);
        assert_int_equal(found[0].offset, 1);
        assert_int_equal(found[1].offset, 2);
    }
    backend->ops->close(backend);
    pawl__location_done(&location);
    return status;
}

static void test_the_ledger_installs_the_extension_and_lets_it_search(void **state)
{
    struct fixture *f = *state;

    open_ledger(f);
    fill(f);
    assert_order(f, 1, 2);
    close_ledger(f);
    assert_status(ask_server(f, false), PAWL_OK, &f->err);
    assert_status(ask_server(f, true), PAWL_OK, &f->err);
}

static void test_the_extension_may_live_in_any_schema(void **state)
{
    struct fixture *f = *state;

    admin(f, "CREATE SCHEMA \"Odd \"\"one\"; CREATE EXTENSION vector SCHEMA \"Odd \"\"one\"");
    open_ledger(f);
    fill(f);
    assert_order(f, 1, 2);
    close_ledger(f);
    assert_status(ask_server(f, false), PAWL_OK, &f->err);
}

static void test_a_row_written_without_it_is_found_and_filled_in_later(void **state)
{
    struct fixture *f = *state;

    open_ledger(f);
    fill(f);
    close_ledger(f);
    /* What a writer without pgvector leaves behind. */
    admin(f, "UPDATE embeddings SET embedding = NULL WHERE \"offset\" = 1");
    assert_status(ask_server(f, true), PAWL_UNSUPPORTED, &f->err);
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    options.read_only = true;
    assert_ok(pawl_ledger_open(pglite.url, &options, &f->ledger, &f->err), &f->err);
    assert_order(f, 1, 2); /* searched here, all rows included */
    close_ledger(f);
    assert_status(ask_server(f, false), PAWL_OK, &f->err);
}

static void test_embeddings_from_before_the_extension_become_searchable(void **state)
{
    struct fixture *f = *state;

    open_ledger(f);
    fill(f);
    close_ledger(f);
    admin(f, "DROP EXTENSION vector CASCADE");
    assert_status(ask_server(f, true), PAWL_UNSUPPORTED, &f->err);
    open_ledger(f); /* which installs it again and fills the column */
    assert_order(f, 1, 2);
    close_ledger(f);
    assert_status(ask_server(f, false), PAWL_OK, &f->err);
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    assert_non_null(*state);
    admin(*state,
          "DROP SCHEMA IF EXISTS pawl CASCADE; DROP EXTENSION IF EXISTS vector CASCADE;"
          " DROP SCHEMA IF EXISTS \"Odd \"\"one\" CASCADE");
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl_ledger_close(f->ledger, 0, NULL);
    free(f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_the_ledger_installs_the_extension_and_lets_it_search, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_extension_may_live_in_any_schema, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_row_written_without_it_is_found_and_filled_in_later, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_embeddings_from_before_the_extension_become_searchable, setup, teardown),
    };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pglite_start(&pglite, &error);

    if (status == PAWL_UNSUPPORTED) {
        print_message("1..0 # SKIP %s\n", error.message);
        return 0;
    }
    if (status != PAWL_OK) {
        print_error("%s\n", error.message);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pglite_stop(&pglite);
    return failed;
}
