/* Commands, responses, records and events as JSON. Argument: the backend. */
#include "lib/app_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"

static pawl_status try_json(struct app_fixture *f,
                            uint64_t workspace,
                            const char *command,
                            char **ret_json)
{
    size_t len = 0;
    pawl_status status = PAWL_BUSY;

    while (status == PAWL_BUSY) {
        assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
        status =
            pawl_app_exec_json(f->app, workspace, pawl_view_of(command), ret_json, &len, &f->error);
    }
    return status;
}

static void expect(struct app_fixture *f, const char *command, const char *response)
{
    char *json = NULL;

    assert_ok(try_json(f, 0, command, &json), &f->error);
    app_assert_text(json, response);
}

static bool take_event(void *context, const pawl_app_event *event)
{
    struct app_fixture *f = context;
    char *json = NULL;
    size_t len = 0;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl_app_event_to_json(f->app, event, &json, &len, &error), &error);
    assert_int_equal(len, strlen(json));
    app_assert_text(
        json,
        "{\"plog_offset\":1,\"wlog_offset\":1,\"workspace\":7,\"kind\":\"shop\",\"key\":\"k\","
        "\"records\":[{\"id\":1099511627776,\"class\":\"c\",\"table\":\"order\",\"update\":false,"
        "\"data\":{\"no\":1000}},{\"id\":65536,\"class\":\"singleton\",\"table\":\"shop\","
        "\"update\":false,\"data\":{\"first\":1099511627776}}],\"numbers\":["
        "{\"sequence\":\"wlog_offset\",\"number\":1},{\"sequence\":\"c_record\",\"number\":"
        "1099511627776},{\"sequence\":\"invoice\",\"number\":1000}]}");
    return true;
}

static bool take_record(void *context, const pawl_app_record *record)
{
    char *json = NULL;
    size_t len = 0;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl_app_record_to_json(record, &json, &len, &error), &error);
    app_assert_text(json, context);
    return true;
}

static void test_a_command_as_json_is_answered_in_json(void **state)
{
    static const char first[] =
        "{\"workspace\": 7, \"kind\": \"shop\", \"key\": \"k\", \"creates\": ["
        "{\"class\": \"c\", \"raw_id\": 5, \"table\": \"order\", \"data\": "
        "{\"no\": {\"$next\": \"invoice\"}}},"
        "{\"class\": \"singleton\", \"id\": 65536, \"table\": \"shop\", \"data\": "
        "{\"first\": {\"$raw\": 5}}}]}";
    static char record[] =
        "{\"id\":65536,\"class\":\"singleton\",\"table\":\"shop\",\"data\":{\"a\":1}}";
    struct app_fixture *f = *state;
    pawl_page one = PAWL_PAGE_INIT;

    one.limit = 1;
    app_open(f);
    expect(
        f,
        first,
        "{\"partition\":1,\"plog_offset\":1,\"wlog_offset\":1,\"duplicate\":false,"
        "\"ids\":{\"5\":1099511627776},\"numbers\":[{\"sequence\":\"invoice\",\"number\":1000}]}");
    expect(
        f,
        first,
        "{\"partition\":1,\"plog_offset\":1,\"wlog_offset\":1,\"duplicate\":true,"
        "\"ids\":{\"5\":1099511627776},\"numbers\":[{\"sequence\":\"invoice\",\"number\":1000}]}");
    assert_ok(pawl_app_read_wlog(f->app, 7, &one, take_event, f, &f->error), &f->error);
    expect(f,
           "{\"workspace\":7,\"kind\":\"shop\",\"updates\":[{\"id\":65536,\"data\":{\"a\":1}}]}",
           "{\"partition\":1,\"plog_offset\":2,\"wlog_offset\":2,\"duplicate\":false,"
           "\"ids\":{},\"numbers\":[]}");
    assert_ok(pawl_app_read_record(f->app, 7, 65536, take_record, record, &f->error), &f->error);
}

static void test_a_record_is_one_line_however_it_was_written(void **state)
{
    static char record[] = "{\"id\":1099511627776,\"class\":\"c\",\"table\":\"order\",\"data\":"
                           "{ \"a\":  [1, 2] }}";
    struct app_fixture *f = *state;
    const pawl_app_create create = { .size = sizeof(pawl_app_create),
                                     .record_class = PAWL_APP_C_RECORD,
                                     .raw_id = 1,
                                     .table = pawl_view_of("order"),
                                     .data = pawl_view_of("{ \"a\":\r\n[1,\n2] }") };
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = 7,
                                       .kind = pawl_view_of("shop"),
                                       .creates = &create,
                                       .create_count = 1 };

    app_open(f);
    app_exec(f, &command);
    assert_ok(pawl_app_read_record(f->app, 7, PAWL_APP_C_ID_MIN, take_record, record, &f->error),
              &f->error);
}

static void test_a_workspace_may_stand_beside_the_command(void **state)
{
    struct app_fixture *f = *state;
    char *json = NULL;

    app_open(f);
    assert_ok(try_json(f, 8, "{\"kind\":\"shop\"}", &json), &f->error);
    app_assert_text(json,
                    "{\"partition\":0,\"plog_offset\":1,\"wlog_offset\":1,\"duplicate\":false,"
                    "\"ids\":{},\"numbers\":[]}");
    assert_ok(try_json(f, 8, "{\"workspace\":8,\"kind\":\"shop\"}", &json), &f->error);
    free(json);
    assert_status(
        try_json(f, 8, "{\"workspace\":9,\"kind\":\"shop\"}", &json), PAWL_INVALID, &f->error);
    assert_message(&f->error, "command.workspace: is not 8");
}

static void test_json_that_is_no_command_is_refused_by_its_place(void **state)
{
    static const char *const bad[][2] = {
        { "", "" },
        { "[]", "command: expected an object" },
        { "{}", "command.workspace: missing" },
        { "{\"workspace\":0,\"kind\":\"shop\"}", "command.workspace" },
        { "{\"workspace\":7}", "command.kind: missing" },
        { "{\"workspace\":7,\"kind\":\"shop\",\"key\":\"\"}", "command.key: is empty" },
        { "{\"workspace\":7,\"kind\":\"shop\",\"more\":1}", "more" },
        { "{\"workspace\":7,\"kind\":\"shop\",\"creates\":1}", "command.creates" },
        { "{\"workspace\":7,\"kind\":\"shop\",\"creates\":[{}]}", "creates[0].class: missing" },
        { "{\"workspace\":7,\"kind\":\"shop\",\"creates\":[{\"class\":\"x\"}]}",
          "creates[0].class: is none of c, o, w and singleton" },
        { "{\"workspace\":7,\"kind\":\"shop\",\"creates\":[{\"class\":\"c\",\"raw_id\":1,"
          "\"table\":\"t\",\"data\":5}]}",
          "creates[0].data: expected an object" },
        { "{\"workspace\":7,\"kind\":\"shop\",\"creates\":[{\"class\":\"c\",\"raw_id\":70000,"
          "\"table\":\"t\",\"data\":{}}]}",
          "raw id 70000 is not in 1-65535" },
        { "{\"workspace\":7,\"kind\":\"shop\",\"updates\":[{\"data\":{}}]}",
          "updates[0].id: missing" },
    };
    struct app_fixture *f = *state;
    char *json = NULL;

    app_open(f);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(try_json(f, 0, bad[i][0], &json), PAWL_INVALID, &f->error);
        assert_message(&f->error, bad[i][1]);
        assert_null(json);
    }
}

static void test_an_application_is_created_from_json(void **state)
{
    static const char descriptor[] =
        "{\"name\":\"cafe\",\"id\":9,\"kinds\":[{\"name\":\"table\",\"id\":3,\"sequences\":"
        "[{\"name\":\"bill\",\"id\":20}]}]}";
    struct app_fixture *f = *state;

    if (strcmp(app_backend, "rocksdb") == 0) { /* where its name says */
        snprintf(f->location, sizeof(f->location), "%s/cafe", f->dir);
    }
    assert_ok(
        pawl_app_open_json(f->location, pawl_view_of(descriptor), &f->options, &f->app, &f->error),
        &f->error);
    const pawl_app_descriptor *made = pawl_app_get_descriptor(f->app);
    assert_int_equal(made->partitions, 1);
    assert_int_equal(made->trust, PAWL_APP_TRUST_0);
    assert_int_equal(made->kinds[0].sequences[0].initial, 1);
    assert_string_equal(pawl_app_sequence_name(f->app, 20), "bill");
    assert_string_equal(pawl_app_sequence_name(f->app, PAWL_APP_SEQ_C_RECORD), "c_record");
    assert_string_equal(pawl_app_sequence_name(f->app, 21), "");
    char *json = NULL;
    size_t len = 0;
    assert_ok(pawl_app_descriptor_to_json(f->app, &json, &len, &f->error), &f->error);
    assert_int_equal(len, strlen(json));
    app_assert_text(json,
                    "{\"id\":9,\"kinds\":[{\"id\":3,\"name\":\"table\",\"sequences\":[{\"id\":20,"
                    "\"initial\":1,\"name\":\"bill\"}]}],\"name\":\"cafe\",\"partitions\":1,"
                    "\"trust\":0}");
    pawl_app *other = NULL;
    assert_status(pawl_app_open_json("memory:", pawl_view_of("{}"), NULL, &other, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "descriptor.name: missing");
}

static void test_a_descriptor_is_normalized_without_an_application(void **state)
{
    static const char *const same[] = {
        "{\"name\":\"cafe\",\"id\":9,\"kinds\":[{\"name\":\"b\",\"id\":4},{\"name\":\"a\",\"id\":3}"
        "]}",
        "{\"kinds\":[{\"id\":3,\"name\":\"a\",\"sequences\":[]},{\"id\":4,\"name\":\"b\"}],"
        "\"trust\":0,\"partitions\":1,\"id\":9,\"name\":\"cafe\"}",
    };
    struct app_fixture *f = *state;
    char *json[2] = { NULL, NULL };
    char *untouched = NULL;
    size_t len = 0;

    for (size_t i = 0; i < COUNT_OF(same); i++) {
        assert_ok(pawl_app_descriptor_normalize(pawl_view_of(same[i]), &json[i], &len, &f->error),
                  &f->error);
        assert_int_equal(len, strlen(json[i]));
    }
    assert_string_equal(json[0], json[1]);
    assert_status(
        pawl_app_descriptor_normalize(pawl_view_of("{\"id\":1}"), &untouched, &len, &f->error),
        PAWL_INVALID,
        &f->error);
    assert_message(&f->error, "descriptor.name: missing");
    assert_null(untouched);
    free(json[0]);
    free(json[1]);
}

static void test_an_application_is_located_at_its_place(void **state)
{
    static const struct {
        const char *place;
        const char *location;
    } cases[] = {
        { "data/apps", "data/apps/orders" },
        { "postgres://u@h/db", "postgres://u@h/db?app=orders" },
        { "postgresql://u@h/db?sslmode=disable", "postgresql://u@h/db?sslmode=disable&app=orders" },
    };
    struct app_fixture *f = *state;
    char *location = NULL;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_ok(pawl_app_locate(cases[i].place, "orders", &location, &f->error), &f->error);
        assert_string_equal(location, cases[i].location);
        free(location);
    }
    location = NULL;
    assert_status(pawl_app_locate("apps", "../x", &location, &f->error), PAWL_INVALID, &f->error);
    assert_null(location);
}

static bool add_name(void *context, const pawl_app_entry *entry)
{
    char *names = context;

    strcat(strncat(names, entry->name.data, entry->name.len), " ");
    return true;
}

static bool stop_at_once(void *context, const pawl_app_entry *entry)
{
    (void)entry;
    ++*(int *)context;
    return false;
}

static void test_applications_of_a_place_are_listed_by_name(void **state)
{
    struct app_fixture *f = *state;
    char names[256] = "";
    bool database = strstr(f->location, "://") != NULL;
    const char *place = database ? f->location : f->dir;
    char path[sizeof(f->dir) + 32];

    (void)snprintf(path, sizeof(path), "%s/nowhere", f->dir);
    assert_ok(pawl_app_list(database ? place : path, NULL, add_name, names, &f->error), &f->error);
    assert_string_equal(names, "");
    app_open(f);
    if (database) {
        assert_ok(pawl_app_list(place, NULL, add_name, names, &f->error), &f->error);
        assert_string_equal(names, "orders ");
    } else {
        static const char *const others[] = { "zebra", "Not-A-Name", "aardvark" };

        for (size_t i = 0; i < COUNT_OF(others); i++) {
            (void)snprintf(path, sizeof(path), "%s/%s", f->dir, others[i]);
            assert_ok(pawl__fs_make_dir(path, &f->error), &f->error);
        }
        assert_ok(pawl_app_list(place, NULL, add_name, names, &f->error), &f->error);
        assert_string_equal(names, f->in_memory ? "aardvark zebra " : "aardvark orders zebra ");
        pawl_page page = PAWL_PAGE_INIT;
        page.limit = 1;
        names[0] = '\0';
        do {
            assert_ok(pawl_app_list(place, &page, add_name, names, &f->error), &f->error);
            strcat(names, page.more ? "| " : "");
        } while (page.more);
        assert_string_equal(names,
                            f->in_memory ? "aardvark | zebra " : "aardvark | orders | zebra ");
        (void)snprintf(path, sizeof(path), "%s/dangling", f->dir);
        assert_int_equal(symlink("nowhere", path), 0); /* no directory, and no reason to fail */
        assert_ok(pawl_app_list(place, NULL, add_name, names, &f->error), &f->error);
        (void)snprintf(path, sizeof(path), "%s/loop", f->dir);
        assert_int_equal(symlink("loop", path), 0); /* nobody can say what this is */
        assert_status(
            pawl_app_list(place, NULL, add_name, names, &f->error), PAWL_INVALID, &f->error);
        assert_message(&f->error, "/loop'");
        assert_int_equal(unlink(path), 0);
    }
    int seen = 0;
    assert_ok(pawl_app_list(place, NULL, stop_at_once, &seen, &f->error), &f->error);
    assert_int_equal(seen, 1);
}

#define APP_TEST(name) cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        APP_TEST(test_a_command_as_json_is_answered_in_json),
        APP_TEST(test_a_record_is_one_line_however_it_was_written),
        APP_TEST(test_a_workspace_may_stand_beside_the_command),
        APP_TEST(test_json_that_is_no_command_is_refused_by_its_place),
        APP_TEST(test_an_application_is_created_from_json),
        APP_TEST(test_a_descriptor_is_normalized_without_an_application),
        APP_TEST(test_an_application_is_located_at_its_place),
        APP_TEST(test_applications_of_a_place_are_listed_by_name),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
