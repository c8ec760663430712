#include "lib/app_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

const char *app_backend = "memory";
struct pg_fixture app_server;

static const pawl_app_sequence own[] = {
    { sizeof(pawl_app_sequence), "invoice", APP_INVOICE, 1000 }
};
static const pawl_app_kind kinds[] = { { sizeof(pawl_app_kind), "shop", 1, own, COUNT_OF(own) },
                                       { sizeof(pawl_app_kind), "office", 2, NULL, 0 } };

static bool is(const char *backend)
{
    return strcmp(app_backend, backend) == 0;
}

int app_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;
    struct repeat repeat;

    if (!repeat_parse(&argc, argv, &repeat)) {
        return 2;
    }
    app_backend = argc > 1 ? argv[1] : app_backend;
    if (is("postgres")) {
        status = pg_server_start(
            &(struct pg_server_options){ .settings = NULL }, &app_server.server, &error);
    }
    if (status == PAWL_UNSUPPORTED) {
        printf("1..0 # SKIP %s\n", error.message);
        return 0;
    }
    if (status != PAWL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int failed = repeat.rounds > 0 ? repeat_run(&repeat, tests, count)
                                   : _cmocka_run_group_tests(app_backend, tests, count, NULL, NULL);
    pg_server_free(app_server.server);
    return failed;
}

void app_new_location(const char *dir, char location[APP_LOCATION_SIZE])
{
    if (is("memory")) {
        snprintf(location, APP_LOCATION_SIZE, "memory:");
    } else if (is("postgres")) {
        pg_admin(&app_server, "DROP SCHEMA IF EXISTS pawl CASCADE");
        snprintf(location, APP_LOCATION_SIZE, "%s", pg_server_url(app_server.server));
    } else {
        snprintf(location, APP_LOCATION_SIZE, "%s/orders", dir);
    }
}

int app_setup(void **state)
{
    struct app_fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_ok(tempdir_make(f->dir, "app", &f->error), &f->error);
    f->in_memory = is("memory");
    app_new_location(f->dir, f->location);
    f->descriptor = (pawl_app_descriptor)PAWL_APP_DESCRIPTOR_INIT;
    f->descriptor.name = "orders";
    f->descriptor.id = 1;
    f->descriptor.partitions = 2;
    f->descriptor.kinds = kinds;
    f->descriptor.kind_count = COUNT_OF(kinds);
    f->options = (pawl_app_options)PAWL_APP_OPTIONS_INIT;
    *state = f;
    return 0;
}

int app_teardown(void **state)
{
    struct app_fixture *f = *state;

    pawl_app_response_free(f->response);
    pawl_app_close(f->app, 0, NULL);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

void app_open(struct app_fixture *f)
{
    assert_ok(pawl_app_open(f->location, &f->descriptor, &f->options, &f->app, &f->error),
              &f->error);
}

void app_reopen(struct app_fixture *f)
{
    pawl_app_close(f->app, 0, NULL);
    f->app = NULL;
    app_open(f);
}

pawl_status app_try(struct app_fixture *f, const pawl_app_command *command)
{
    int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + APP_PATIENCE_MS * NS_PER_MS;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_BUSY;

    pawl_app_response_free(f->response);
    f->response = NULL;
    while (status == PAWL_BUSY && pawl__monotonic_ns(pawl__clock_real()) < deadline_ns) {
        (void)!pawl_app_wait(f->app, APP_PATIENCE_MS, NULL);
        error = (pawl_error)PAWL_ERROR_INIT;
        status = pawl_app_exec(f->app, command, &f->response, &error);
    }
    if (status != PAWL_OK || error.status != PAWL_OK) {
        f->error = error; /* one that came with PAWL_OK shows, too */
    }
    return status;
}

void app_exec(struct app_fixture *f, const pawl_app_command *command)
{
    assert_ok(app_try(f, command), &f->error);
    assert_non_null(f->response);
}

pawl_status app_try_create(struct app_fixture *f,
                           uint64_t workspace,
                           pawl_app_class record_class,
                           const char *key)
{
    const pawl_app_create create = { .size = sizeof(pawl_app_create),
                                     .record_class = record_class,
                                     .raw_id = 1,
                                     .table = pawl_view_of("order"),
                                     .data = pawl_view_of("{\"self\":{\"$raw\":1}}") };
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = workspace,
                                       .kind = pawl_view_of("shop"),
                                       .key = pawl_view_of(key),
                                       .creates = &create,
                                       .create_count = 1 };

    return app_try(f, &command);
}

uint64_t app_create(struct app_fixture *f, uint64_t workspace, pawl_app_class record_class)
{
    assert_ok(app_try_create(f, workspace, record_class, NULL), &f->error);
    assert_int_equal(f->response->id_count, 1);
    assert_int_equal(f->response->ids[0].raw, 1);
    return f->response->ids[0].id;
}

void app_sabotage(struct app_fixture *f,
                  enum app_family family,
                  struct app_key key,
                  pawl_view bytes)
{
    const struct app_entry entry = { family, APP_PUT, pawl__app_key_view(&key), bytes };

    assert_ok(f->app->store->ops->write(f->app->store, &entry, 1, &f->error), &f->error);
}

void app_remove_anchor(struct app_fixture *f)
{
    struct app_store *store = f->app->store;

    if (strcmp(app_backend, "rocksdb") == 0) {
        assert_int_equal(unlink(store->anchor_name), 0);
    } else {
        assert_ok(store->ops->write_anchor(store, pawl_view_of(""), &f->error), &f->error);
    }
}

void app_delete(struct app_fixture *f, enum app_family family, struct app_key key)
{
    const struct app_entry entry = { family, APP_DELETE, pawl__app_key_view(&key), { NULL, 0 } };

    assert_ok(f->app->store->ops->write(f->app->store, &entry, 1, &f->error), &f->error);
}

void app_sabotage_number(struct app_fixture *f,
                         enum app_family family,
                         struct app_key key,
                         uint64_t number,
                         uint64_t offset)
{
    const struct app_stored stored = { number, offset };
    char bytes[APP_STORED_BYTES];

    pawl__app_stored_encode(&key, &stored, bytes);
    app_sabotage(f, family, key, (pawl_view){ bytes, sizeof(bytes) });
}

pawl_status app_try_invoice(struct app_fixture *f, uint64_t workspace)
{
    const pawl_app_create create = { .size = sizeof(pawl_app_create),
                                     .record_class = PAWL_APP_O_RECORD,
                                     .raw_id = 1,
                                     .table = pawl_view_of("bill"),
                                     .data = pawl_view_of("{\"no\":{\"$next\":\"invoice\"}}") };
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = workspace,
                                       .kind = pawl_view_of("shop"),
                                       .creates = &create,
                                       .create_count = 1 };

    return app_try(f, &command);
}

uint64_t app_invoice(struct app_fixture *f, uint64_t workspace)
{
    assert_ok(app_try_invoice(f, workspace), &f->error);
    assert_int_equal(f->response->number_count, 1);
    return f->response->numbers[0].number;
}

void app_forget_quickly(struct app_fixture *f)
{
    f->options.cache_size = 1;
    f->options.flush_interval_ms = 1;
}

void app_await_written(struct app_fixture *f, uint16_t partition)
{
    int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + APP_PATIENCE_MS * NS_PER_MS;
    pawl_sequencer_status status = { .size = sizeof(pawl_sequencer_status), .next_offset = 1 };

    while (status.stored_offset != status.next_offset) {
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
        assert_ok(pawl_app_get_status(f->app, partition, &status, &f->error), &f->error);
    }
}

/* --- as text --- */

static void add_record(struct pawl__buf *text, const pawl_app_record *record)
{
    pawl__buf_add_format(text,
                         "%s%" PRIu64 " %.*s %.*s",
                         record->update ? "~" : "",
                         record->id,
                         VIEW_ARGS(record->table),
                         VIEW_ARGS(record->data));
}

static bool visit_record(void *context, const pawl_app_record *record)
{
    add_record(context, record);
    pawl__buf_add_char(context, '\n');
    return true;
}

static bool visit_event(void *context, const pawl_app_event *event)
{
    pawl__buf_add_format(context,
                         "p%" PRIu64 " w%" PRIu64 " of %" PRIu64,
                         event->plog_offset,
                         event->wlog_offset,
                         event->workspace);
    for (size_t i = 0; i < event->record_count; i++) {
        pawl__buf_add_text(context, i == 0 ? ": " : ", ");
        add_record(context, &event->records[i]);
    }
    pawl__buf_add_char(context, '\n');
    return true;
}

static char *finish(struct app_fixture *f, pawl_status status, struct pawl__buf *text)
{
    assert_ok(status, &f->error);
    char *made = pawl__buf_steal(text);
    assert_non_null(made);
    return made;
}

static pawl_page page_of(uint64_t from, uint64_t limit)
{
    pawl_page page = PAWL_PAGE_INIT;

    page.from = from;
    page.limit = limit;
    return page;
}

char *app_c_records(struct app_fixture *f, uint64_t workspace, uint64_t from, uint64_t limit)
{
    struct pawl__buf text = BUF_INIT(1 << 20);
    pawl_page page = page_of(from, limit);

    return finish(f,
                  pawl_app_read_c_records(f->app, workspace, &page, visit_record, &text, &f->error),
                  &text);
}

char *app_record(struct app_fixture *f, uint64_t workspace, uint64_t id)
{
    struct pawl__buf text = BUF_INIT(1 << 20);

    return finish(
        f, pawl_app_read_record(f->app, workspace, id, visit_record, &text, &f->error), &text);
}

char *app_wlog(struct app_fixture *f, uint64_t workspace, uint64_t from, uint64_t limit)
{
    struct pawl__buf text = BUF_INIT(1 << 20);
    pawl_page page = page_of(from, limit);

    return finish(
        f, pawl_app_read_wlog(f->app, workspace, &page, visit_event, &text, &f->error), &text);
}

char *app_plog(struct app_fixture *f, uint16_t partition, uint64_t from, uint64_t limit)
{
    struct pawl__buf text = BUF_INIT(1 << 20);
    pawl_page page = page_of(from, limit);

    return finish(
        f, pawl_app_read_plog(f->app, partition, &page, visit_event, &text, &f->error), &text);
}
