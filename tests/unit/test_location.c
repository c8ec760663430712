/* Where a ledger lives: every way to write it, and what is wrong with the others. */
#include "lib/check.h"

#include "base/core/macros.h"
#include "lib/fault.h"
#include "store/location.h"

static void test_locations_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum pawl__scheme scheme;
        const char *path;
        bool normal;
    } rows[] = {
        { "memory:", PAWL__AT_MEMORY, NULL, false },
        { "x.db", PAWL__AT_SQLITE, "x.db", false },
        { "sqlite:x.db", PAWL__AT_SQLITE, "x.db", false },
        { "sqlite:/a/b c.db?durability=normal", PAWL__AT_SQLITE, "/a/b c.db", true },
        { "x.db?durability=full", PAWL__AT_SQLITE, "x.db", false },
        { "x.db?durability=normal&durability=full", PAWL__AT_SQLITE, "x.db", false },
        { "sqlite:what?/x.db", PAWL__AT_SQLITE, "what?/x.db", false },
        { "a?durability=none/b?c/x.db?durability=normal",
          PAWL__AT_SQLITE,
          "a?durability=none/b?c/x.db",
          true },
        { "./run:1.db", PAWL__AT_SQLITE, "./run:1.db", false },
        { "a/b:c", PAWL__AT_SQLITE, "a/b:c", false },
        { "sqlite:memory:", PAWL__AT_SQLITE, "memory:", false },
        { "postgres://u:p@h/d?x=1", PAWL__AT_POSTGRES, "postgres://u:p@h/d?x=1", false },
        { "postgresql://h/d", PAWL__AT_POSTGRES, "postgresql://h/d", false },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pawl__location location;
        pawl_error error = PAWL_ERROR_INIT;
        assert_ok(pawl__location_parse(rows[i].text, &location, &error), &error);
        assert_int_equal(location.scheme, rows[i].scheme);
        assert_int_equal(location.durability_normal, rows[i].normal);
        if (rows[i].path == NULL) {
            assert_null(location.path);
        } else {
            assert_string_equal(location.path, rows[i].path);
        }
        pawl__location_done(&location);
    }
}

static void test_what_is_not_understood_says_what_is(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        { "memory:x", "nothing may follow 'memory:'" },
        { "mysql://h/d", "allowed: memory:, a path, sqlite:PATH, postgres://" },
        { "file:x.db", "allowed: memory:" },
        { "sqlite:", "no path" },
        { "?durability=full", "no path" },
        { "x.db?durability=none", "durability is 'none'; allowed: full, normal" },
        { "x.db?durability", "durability is ''" },
        { "x.db?sync=off", "unknown parameter 'sync'; known: durability" },
        { "x.db?durability=normal&a=b", "unknown parameter 'a'" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pawl__location location = { .scheme = 77 };
        pawl_error error = PAWL_ERROR_INIT;
        assert_status(pawl__location_parse(rows[i].text, &location, &error), PAWL_INVALID, &error);
        assert_message(&error, rows[i].message);
        assert_int_equal(location.scheme, 77);
    }
}

static void test_parsing_survives_every_failed_allocation(void **state)
{
    (void)state;
    static const char *const texts[] = { "x.db?durability=normal", "postgres://u@h/d?a=b" };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        FAULT_WALK (walk) {
            struct pawl__location location = { 0 };
            pawl_error error = PAWL_ERROR_INIT;
            pawl_status status = pawl__location_parse(texts[i], &location, &error);
            assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
            pawl__location_done(&location);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locations_are_understood),
        cmocka_unit_test(test_what_is_not_understood_says_what_is),
        cmocka_unit_test(test_parsing_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests_name("ledger_location", tests, NULL, NULL);
}
