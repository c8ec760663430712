/* What doctor finds out about a real PostgreSQL server. */
#include "lib/check.h"

#include <stdlib.h>

#include "cli/node/doctor_checks.h"
#include "config/config.h"
#include "lib/pg_server.h"

/* Lets doctor look at a server with these settings; `doctor->findings` has room for two. */
static void look_at(const char *settings, struct pawl__cli_doctor *doctor)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pg_server *server = NULL;
    struct pg_server_options options = { .settings = settings };
    pawl_status status = pg_server_start(&options, &server, &error);

    if (status == PAWL_UNSUPPORTED) {
        skip();
    }
    assert_ok(status, &error);
    const struct pawl__config_flag url = { PAWL__DATABASE_URL, pg_server_url(server) };
    const struct pawl__config_sources sources = {
        .search = (const char *const[]){ NULL },
        .environment = (const char *const[]){ "HOME=/nowhere", NULL },
        .flags = &url,
        .flags_count = 1,
    };
    assert_ok(pawl__config_load(&sources, &doctor->config, &error), &error);
    doctor->postgres = true;
    pawl__cli_inspect_postgres(doctor);
    pawl__config_free(doctor->config);
    pg_server_free(server);
}

static void test_a_server_as_it_comes_is_fine(void **state)
{
    struct pawl__cli_finding findings[FINDINGS_MAX];
    struct pawl__cli_doctor doctor = { .findings = findings };

    (void)state;
    look_at(NULL, &doctor);
    assert_int_equal(doctor.count, 2);
    assert_int_equal(findings[0].verdict, VERDICT_OK);
    assert_non_null(strstr(findings[0].says, "@127.0.0.1:"));
    assert_int_equal(findings[1].verdict, VERDICT_OK);
    assert_non_null(strstr(findings[1].says, "synchronous_commit is on"));
}

static void test_a_server_that_may_lose_everything_is_a_warning(void **state)
{
    struct pawl__cli_finding findings[FINDINGS_MAX];
    struct pawl__cli_doctor doctor = { .findings = findings };

    (void)state;
    look_at("fsync = off\nsynchronous_commit = off\n", &doctor);
    assert_int_equal(doctor.count, 2);
    assert_int_equal(findings[0].verdict, VERDICT_OK);
    assert_int_equal(findings[1].verdict, VERDICT_WARNING);
    assert_string_equal(findings[1].says, "fsync is off");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_as_it_comes_is_fine),
        cmocka_unit_test(test_a_server_that_may_lose_everything_is_a_warning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
