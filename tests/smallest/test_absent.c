/* What a library without DuckDB, NATS, PostgreSQL and RocksDB says when somebody asks for them. */
#include "lib/check.h"

#include <pawl/app.h>
#include <pawl/ledger.h>
#include <pawl/publisher.h>
#include <pawl/work.h>

#include <stdio.h>
#include <unistd.h>

#include "lib/tempdir.h"
#include "net/h2/client.h"
#include "net/h2/h2.h"
#include "net/nats/nats.h"

static const char url[] = "postgres://nobody@127.0.0.1:1/nothing";

static void assert_absent(pawl_status status, const pawl_error *error, const char *what)
{
    assert_int_equal(status, PAWL_UNSUPPORTED);
    assert_int_equal(error->status, PAWL_UNSUPPORTED);
    assert_message(error, what);
}

static void test_a_ledger_on_postgresql_is_unsupported(void **state)
{
    pawl_ledger *ledger = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_absent(pawl_ledger_open(url, NULL, &ledger, &error),
                  &error,
                  "this build has no PostgreSQL; build pawl with -Dpostgres=enabled");
    assert_null(ledger);
}

static void test_a_work_store_on_postgresql_is_unsupported(void **state)
{
    pawl_work *work = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_absent(pawl_work_open(url, NULL, &work, &error), &error, "this build has no PostgreSQL");
    assert_null(work);
}

static void test_an_outbox_is_unsupported(void **state)
{
    pawl_publisher_options options = PAWL_PUBLISHER_OPTIONS_INIT;
    pawl_publisher *publisher = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    options.servers = "nats://127.0.0.1:1";
    assert_absent(pawl_publisher_open("/nonexistent/outbox", &options, &publisher, &error),
                  &error,
                  "this build has no RocksDB");
    assert_null(publisher);
}

static bool see_entry(void *context, const pawl_app_entry *entry)
{
    (void)context;
    (void)entry;
    return true;
}

static void test_an_application_on_postgresql_or_in_a_directory_is_unsupported(void **state)
{
    static const char definition[] =
        "{\"name\": \"orders\", \"id\": 1, \"kinds\": [{\"name\": \"shop\", \"id\": 1}]}";
    char dir[TEMPDIR_SIZE];
    char place[TEMPDIR_SIZE + 8];
    pawl_app *app = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(tempdir_make(dir, "absent", &error), &error);
    snprintf(place, sizeof(place), "%s/orders", dir);
    assert_absent(pawl_app_open_json(place, pawl_view_of(definition), NULL, &app, &error),
                  &error,
                  "this build has no RocksDB; build pawl with -Drocksdb=enabled");
    assert_int_equal(access(place, F_OK), -1); /* and nothing was made */
    assert_absent(pawl_app_open_json(url, pawl_view_of(definition), NULL, &app, &error),
                  &error,
                  "this build has no PostgreSQL");
    assert_absent(
        pawl_app_list(url, NULL, see_entry, NULL, &error), &error, "this build has no PostgreSQL");
    assert_null(app);
    tempdir_remove(dir);
}

static void test_parquet_is_unsupported_both_ways_and_leaves_no_file(void **state)
{
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 16];
    pawl_ledger *ledger = NULL;
    pawl_import_report report = PAWL_IMPORT_REPORT_INIT;
    uint64_t count = 7;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(tempdir_make(dir, "absent", &error), &error);
    snprintf(path, sizeof(path), "%s/x.parquet", dir);
    assert_ok(pawl_ledger_open("memory:", NULL, &ledger, &error), &error);
    assert_absent(pawl_ledger_export(ledger, path, PAWL_FORMAT_PARQUET, NULL, NULL, &count, &error),
                  &error,
                  "this build has no DuckDB; build pawl with -Dduckdb=enabled");
    assert_int_equal(count, 7);
    assert_int_equal(access(path, F_OK), -1);
    assert_absent(pawl_ledger_import(ledger, path, PAWL_FORMAT_PARQUET, NULL, &report, &error),
                  &error,
                  "this build has no DuckDB");
    pawl_ledger_close(ledger, 0, NULL);
    tempdir_remove(dir);
}

static void test_nats_is_unsupported(void **state)
{
    struct pawl__nats *nats = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_absent(pawl__nats_open("nats://127.0.0.1:4222", NULL, &nats, &error),
                  &error,
                  "this build has no NATS; build pawl with -Dnats=enabled");
    assert_null(nats);
    pawl__nats_close(nats);
}

static void test_grpc_is_unsupported(void **state)
{
    struct pawl__h2_options options = PAWL__H2_OPTIONS_INIT;
    struct pawl__h2_client_options client_options = { .address = "127.0.0.1:4317" };
    struct pawl__h2 *server = NULL;
    struct pawl__h2_client *client = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_absent(pawl__h2_start(&options, &server, &error),
                  &error,
                  "this build has no gRPC; build pawl with -Dh2=enabled");
    assert_absent(pawl__h2_client_open(&client_options, &client, &error),
                  &error,
                  "this build has no gRPC; build pawl with -Dh2=enabled");
    assert_null(server);
    assert_null(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ledger_on_postgresql_is_unsupported),
        cmocka_unit_test(test_a_work_store_on_postgresql_is_unsupported),
        cmocka_unit_test(test_an_outbox_is_unsupported),
        cmocka_unit_test(test_an_application_on_postgresql_or_in_a_directory_is_unsupported),
        cmocka_unit_test(test_nats_is_unsupported),
        cmocka_unit_test(test_grpc_is_unsupported),
        cmocka_unit_test(test_parquet_is_unsupported_both_ways_and_leaves_no_file),
    };

    return cmocka_run_group_tests_name("absent", tests, NULL, NULL);
}
