/* What every store of applications does. Argument: the backend. */
#include "lib/app_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/core/batch.h"
#include "base/core/error.h"

static const struct app_store_options new_one = { .app_id = 1, .app_name = "orders" };

struct fixture {
    char dir[TEMPDIR_SIZE];
    char location[APP_LOCATION_SIZE];
    struct app_store *store;
    struct pawl__arena arena;
    struct app_batch batch;
    pawl_error error;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_ok(tempdir_make(f->dir, "app-store", &f->error), &f->error);
    app_new_location(f->dir, f->location);
    assert_ok(pawl__app_store_open(f->location, &new_one, &f->store, &f->error), &f->error);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__app_store_close(f->store);
    pawl__arena_done(&f->arena);
    pawl__app_batch_done(&f->batch);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static void add(struct fixture *f, enum app_mode mode, uint64_t offset, const char *value)
{
    struct app_key key = pawl__app_key_plog(1, 0, offset);

    assert_ok(pawl__app_batch_add(&f->batch, APP_PLOG, mode, &key, pawl_view_of(value), &f->error),
              &f->error);
}

static pawl_status write_batch(struct fixture *f)
{
    pawl_status status =
        f->store->ops->write(f->store, f->batch.entries, f->batch.count, &f->error);

    pawl__app_batch_clear(&f->batch);
    return status;
}

static void put(struct fixture *f, uint64_t offset, const char *value)
{
    add(f, APP_PUT, offset, value);
    assert_ok(write_batch(f), &f->error);
}

static void expect_stored(struct fixture *f, uint64_t offset, const char *value)
{
    struct app_key key = pawl__app_key_plog(1, 0, offset);
    struct app_value found;

    assert_ok(pawl__app_store_get(
                  f->store, APP_PLOG, pawl__app_key_view(&key), &f->arena, &found, &f->error),
              &f->error);
    assert_int_equal(found.found, value != NULL);
    if (value != NULL) {
        assert_true(pawl__view_is(found.bytes, value));
    }
}

static void test_what_was_put_is_there_and_the_last_one_stays(void **state)
{
    struct fixture *f = *state;

    expect_stored(f, 1, NULL);
    put(f, 1, "a");
    expect_stored(f, 1, "a");
    put(f, 1, "b");
    expect_stored(f, 1, "b");
    put(f, 1, "");
    expect_stored(f, 1, "");
    add(f, APP_PUT, 2, "first");
    add(f, APP_PUT, 2, "second");
    assert_ok(write_batch(f), &f->error);
    expect_stored(f, 2, "second");
    assert_ok(write_batch(f), &f->error); /* nothing at all */
}

static void test_an_insert_of_a_key_that_is_there_fails_the_whole_batch(void **state)
{
    struct fixture *f = *state;

    put(f, 5, "there");
    add(f, APP_PUT, 4, "new");
    add(f, APP_INSERT, 5, "other");
    add(f, APP_INSERT, 6, "new");
    assert_status(write_batch(f), PAWL_CONFLICT, &f->error);
    assert_message(&f->error,
                   "offset 5 of the PLog of partition 0 (application 1) is there already");
    expect_stored(f, 4, NULL);
    expect_stored(f, 5, "there");
    expect_stored(f, 6, NULL);
    add(f, APP_INSERT, 6, "new");
    add(f, APP_PUT, 6, "newer");
    assert_ok(write_batch(f), &f->error);
    expect_stored(f, 6, "newer");
}

static void test_a_key_of_one_family_is_not_in_another(void **state)
{
    struct fixture *f = *state;
    struct app_key key = pawl__app_key_wlog(1, 7, 1);

    assert_ok(
        pawl__app_batch_add(&f->batch, APP_WLOG, APP_INSERT, &key, pawl_view_of("w"), &f->error),
        &f->error);
    assert_ok(
        pawl__app_batch_add(&f->batch, APP_RECORDS, APP_INSERT, &key, pawl_view_of("r"), &f->error),
        &f->error);
    assert_ok(write_batch(f), &f->error);
    assert_ok(
        pawl__app_batch_add(&f->batch, APP_RECORDS, APP_INSERT, &key, pawl_view_of("r"), &f->error),
        &f->error);
    assert_status(write_batch(f), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "record 1 of workspace 7");
}

static void test_many_keys_come_in_the_order_in_which_they_were_asked(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 150 };
    struct app_key keys[MANY];
    pawl_view views[MANY];
    struct app_value values[MANY];
    char text[16];

    for (uint64_t i = 0; i < MANY; i += 2) {
        snprintf(text, sizeof(text), "%u", (unsigned)i);
        add(f, APP_INSERT, i + 1, text);
    }
    assert_ok(write_batch(f), &f->error);
    for (size_t i = 0; i < MANY; i++) {
        keys[i] = pawl__app_key_plog(1, 0, MANY - i);
        views[i] = pawl__app_key_view(&keys[i]);
    }
    assert_ok(f->store->ops->get_many(f->store,
                                      &(struct app_lookup){ APP_PLOG, views, MANY, 0 },
                                      &f->arena,
                                      values,
                                      &f->error),
              &f->error);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(text, sizeof(text), "%u", (unsigned)(MANY - 1 - i));
        assert_int_equal(values[i].found, (MANY - 1 - i) % 2 == 0);
        assert_true(!values[i].found || pawl__view_is(values[i].bytes, text));
    }
}

/* "3 4 5": the offsets of a page. */
static void expect_page(struct fixture *f, struct app_range range, const char *offsets)
{
    AUTO(pawl__app_page_done) struct app_page page = { .count = 0 };
    char space[128];
    struct pawl__buf text = BUF_OVER(space);

    space[0] = '\0';
    assert_ok(pawl__app_store_scan(f->store, &range, &page, &f->error), &f->error);
    for (size_t i = 0; i < page.count; i++) {
        uint64_t offset = 0;
        assert_true(pawl__app_key_number(APP_PLOG, page.entries[i].key, &offset));
        assert_int_equal(page.entries[i].value.len, 1);
        pawl__buf_add_format(&text, i == 0 ? "%u" : " %u", (unsigned)offset);
    }
    assert_string_equal(space, offsets);
}

static void test_a_scan_gives_a_range_in_order_and_in_pages(void **state)
{
    struct fixture *f = *state;
    struct app_key from = pawl__app_key_plog(1, 0, 2);
    struct app_key until = pawl__app_key_plog(1, 0, 6);
    struct app_key beyond = pawl__app_key_plog(1, 0, 100);
    struct app_range range = { .family = APP_PLOG,
                               .from = pawl__app_key_view(&from),
                               .until = pawl__app_key_view(&until),
                               .limit = 8,
                               .bytes_max = SIZE_MAX };
    struct app_range all = { .family = APP_PLOG, .limit = 8, .bytes_max = SIZE_MAX };

    expect_page(f, range, "");
    for (uint64_t i = 7; i >= 1; i--) {
        put(f, i, "x");
    }
    expect_page(f, range, "2 3 4 5");
    expect_page(f, all, "1 2 3 4 5 6 7");
    range.limit = 2;
    expect_page(f, range, "2 3");
    range.backwards = true;
    expect_page(f, range, "5 4");
    all.backwards = true;
    all.limit = 1;
    expect_page(f, all, "7");
    range.backwards = false;
    range.limit = 8;
    range.bytes_max = 0; /* one entry is always given */
    expect_page(f, range, "2");
    range.bytes_max = 15; /* a key has 14 */
    expect_page(f, range, "2 3");
    range.from = pawl__app_key_view(&beyond);
    expect_page(f, range, "");
    range.until.len = 0;
    expect_page(f, range, "");
}

static void test_what_was_written_is_there_after_a_restart(void **state)
{
    struct fixture *f = *state;
    const struct app_store_options options = { .must_exist = true };
    struct app_store *second = NULL;
    char elsewhere[APP_LOCATION_SIZE + 32];

    put(f, 1, "kept");
    if (strcmp(app_backend, "memory") == 0) {
        return; /* it ends with its handle */
    }
    assert_status(
        pawl__app_store_open(f->location, &options, &second, &f->error), PAWL_BUSY, &f->error);
    pawl__app_store_close(f->store);
    f->store = NULL;
    assert_ok(pawl__app_store_open(f->location, &options, &f->store, &f->error), &f->error);
    expect_stored(f, 1, "kept");
    bool shared = strcmp(app_backend, "postgres") == 0;
    const char *more = strchr(f->location, '?') == NULL ? "?app=" : "&app=";
    snprintf(elsewhere, sizeof(elsewhere), "%s%selsewhere", f->location, shared ? more : "-");
    assert_status(
        pawl__app_store_open(elsewhere, &options, &second, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_message(&f->error, shared ? "no application 'elsewhere'" : "elsewhere': there is no");
}

static void test_a_location_that_is_none_is_refused(void **state)
{
    struct fixture *f = *state;
    struct app_store *store = NULL;

    assert_status(
        pawl__app_store_open("ftp://x", &new_one, &store, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "'ftp://x'");
    assert_status(pawl__app_store_open("", &new_one, &store, &f->error), PAWL_INVALID, &f->error);
    assert_status(pawl__app_store_open(NULL, &new_one, &store, &f->error), PAWL_INVALID, &f->error);
}

/* Planted while the store is open, where only the counts of rows tell. */
static void test_rows_that_a_foreign_trigger_drops_are_not_taken_for_stored(void **state)
{
    struct fixture *f = *state;

    if (strcmp(app_backend, "postgres") != 0) {
        return;
    }
    put(f, 1, "old");
    pg_admin(&app_server,
             "CREATE FUNCTION eve() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
             " IF NEW.value = 'eve'::bytea THEN RETURN NULL; END IF; RETURN NEW; END$$;"
             "CREATE TRIGGER eve BEFORE INSERT OR UPDATE ON app_entries FOR EACH ROW"
             " EXECUTE FUNCTION eve()");
    add(f, APP_INSERT, 2, "new");
    add(f, APP_INSERT, 3, "eve");
    assert_status(write_batch(f), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "the server dropped rows");
    add(f, APP_PUT, 1, "eve");
    add(f, APP_PUT, 4, "new");
    assert_status(write_batch(f), PAWL_CORRUPT, &f->error);
    expect_stored(f, 1, "old");
    expect_stored(f, 2, NULL);
    expect_stored(f, 3, NULL);
    expect_stored(f, 4, NULL);
    pg_admin(&app_server, "DROP FUNCTION eve CASCADE");
    put(f, 1, "eve");
    expect_stored(f, 1, "eve");
}

static void test_a_function_of_ours_with_another_body_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct app_store_options options = { .must_exist = true };

    if (strcmp(app_backend, "postgres") != 0) {
        return;
    }
    pawl__app_store_close(f->store);
    f->store = NULL;
    pg_admin(&app_server,
             "CREATE OR REPLACE FUNCTION app_lock_of(app_id bigint) RETURNS bigint LANGUAGE sql"
             " IMMUTABLE AS $$ SELECT random()::bigint $$");
    assert_status(
        pawl__app_store_open(f->location, &options, &f->store, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "no function 'app_lock_of', or it was changed");
    pg_admin(&app_server,
             "CREATE OR REPLACE FUNCTION app_lock_of(app_id bigint) RETURNS bigint LANGUAGE sql"
             " IMMUTABLE AS $$\n    SELECT (1885435745::bigint << 32) + app_id -- \"pawa\"\n$$");
    assert_ok(pawl__app_store_open(f->location, &options, &f->store, &f->error), &f->error);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_what_was_put_is_there_and_the_last_one_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_an_insert_of_a_key_that_is_there_fails_the_whole_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_key_of_one_family_is_not_in_another, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_many_keys_come_in_the_order_in_which_they_were_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_scan_gives_a_range_in_order_and_in_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_what_was_written_is_there_after_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_rows_that_a_foreign_trigger_drops_are_not_taken_for_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_function_of_ours_with_another_body_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_location_that_is_none_is_refused, setup, teardown),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
