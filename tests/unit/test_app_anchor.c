/* Who an application is and how long its logs were, kept apart from the logs. Argument: the backend. */
#include "lib/app_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/core/anchor.h"
#include "base/core/macros.h"
#include "base/core/sealed.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"

enum { WORKSPACE = 7, PARTITION = 1 };

/* --- as text --- */

static struct app_anchor sample(void)
{
    struct app_anchor anchor = { .name = "orders", .id = 5, .born_us = 77, .partitions = 3 };

    anchor.ends[2].offset = 9;
    memset(anchor.ends[2].hash.bytes, 0xAB, sizeof(anchor.ends[2].hash.bytes));
    anchor.has_descriptor = true;
    memset(anchor.descriptor.bytes, 0xCD, sizeof(anchor.descriptor.bytes));
    return anchor;
}

static void test_an_anchor_comes_back_from_its_text(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    struct app_anchor anchor = sample();
    struct app_anchor back;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    pawl__app_anchor_write(&anchor, &text);
    assert_memory_equal(text.data, "pawl-app-anchor 2 orders 5 77 3 cdcd", 36);
    assert_ok(pawl__app_anchor_parse(pawl__buf_view(&text), &back, &error), &error);
    assert_memory_equal(&anchor, &back, sizeof(anchor));
    assert_status(pawl__app_anchor_check_new(&back, "here", &error), PAWL_CORRUPT, &error);
    assert_message(&error, "at offset 9 of partition 2");
}

static void test_an_anchor_of_the_first_version_is_read(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    struct app_anchor anchor = sample();
    struct app_anchor back;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    anchor.has_descriptor = false;
    memset(&anchor.descriptor, 0, sizeof(anchor.descriptor));
    pawl__app_anchor_write(&anchor, &text);
    assert_memory_equal(text.data, "pawl-app-anchor 1 orders 5 77 3\n2 9 abab", 40);
    assert_ok(pawl__app_anchor_parse(pawl__buf_view(&text), &back, &error), &error);
    assert_memory_equal(&anchor, &back, sizeof(anchor));
}

static void test_an_anchor_of_a_later_version_is_unsupported_not_damaged(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    struct app_anchor back;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    pawl__buf_add_text(&text, "pawl-app-anchor 3 whatever there will be\n");
    pawl__sealed_end(&text);
    assert_status(
        pawl__app_anchor_parse(pawl__buf_view(&text), &back, &error), PAWL_UNSUPPORTED, &error);
    assert_message(&error, "version 3");
}

static void test_no_changed_byte_of_an_anchor_goes_unnoticed(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    struct app_anchor anchor = sample();
    struct app_anchor back;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    pawl__app_anchor_write(&anchor, &text);
    for (size_t i = 0; i < text.len; i++) {
        text.data[i] ^= 1;
        assert_status(
            pawl__app_anchor_parse(pawl__buf_view(&text), &back, &error), PAWL_CORRUPT, &error);
        text.data[i] ^= 1;
        assert_status(pawl__app_anchor_parse((pawl_view){ text.data, i }, &back, &error),
                      PAWL_CORRUPT,
                      &error);
    }
}

/* --- logs that were cut --- */

static pawl_status try_open(struct app_fixture *f)
{
    return pawl_app_open(f->location, NULL, &f->options, &f->app, &f->error);
}

/* The last event and all that was made of it, and what is stored of the sequences. */
static void cut_everything(struct app_fixture *f, uint64_t offset)
{
    app_delete(f, APP_PLOG, pawl__app_key_plog(1, PARTITION, offset));
    app_delete(f, APP_WLOG, pawl__app_key_wlog(1, WORKSPACE, offset));
    app_delete(f, APP_RECORDS, pawl__app_key_record(1, WORKSPACE, PAWL_APP_OW_ID_MIN + offset - 1));
    app_delete(f, APP_NUMBERS, pawl__app_key_used(1, WORKSPACE, APP_INVOICE, 999 + offset));
    app_delete(f, APP_OFFSETS, pawl__app_key_offset(1, PARTITION));
    static const uint16_t sequences[] = { PAWL_APP_SEQ_WLOG_OFFSET,
                                          PAWL_APP_SEQ_OW_RECORD,
                                          APP_INVOICE };
    for (size_t i = 0; i < COUNT_OF(sequences); i++) {
        app_delete(f, APP_SEQ, pawl__app_key_seq(1, PARTITION, WORKSPACE, sequences[i]));
    }
}

/* Three invoices, and a way to its entries that nobody remembers. */
static void fill(struct app_fixture *f)
{
    app_open(f);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(app_invoice(f, WORKSPACE), 1000 + i);
    }
    app_reopen(f);
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    app_await_written(f, PARTITION);
}

static void test_a_cut_of_everything_at_once_is_noticed_at_the_next_start(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return; /* it has no next start */
    }
    fill(f);
    cut_everything(f, 3);
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_status(try_open(f), PAWL_CORRUPT, &f->error);
    assert_message(&f->error,
                   "cut off: the log of partition 1 ends at offset 2, its anchor is at 3");
    f->options.read_only = true; /* to look at what is left */
    assert_ok(try_open(f), &f->error);
}

static void test_another_last_event_is_noticed_at_the_next_start(void **state)
{
    struct app_fixture *f = *state;
    AUTO(pawl__buf_done) struct pawl__buf bytes = BUF_INIT(4096);
    const pawl_app_event event = { .size = sizeof(pawl_app_event),
                                   .workspace = 7,
                                   .plog_offset = 3,
                                   .wlog_offset = 3,
                                   .kind = 1 };

    if (f->in_memory) {
        return;
    }
    fill(f);
    pawl__app_event_encode(&event, &bytes);
    app_sabotage(f, APP_PLOG, pawl__app_key_plog(1, PARTITION, 3), pawl__buf_view(&bytes));
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_status(try_open(f), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "offset 3 of the log of partition 1 is not the one");
    assert_message(&f->error, "restore it, or to continue with this one remove the anchor");
}

static void test_a_log_that_was_cut_goes_on_when_somebody_removes_the_anchor(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    fill(f);
    cut_everything(f, 3);
    app_remove_anchor(f);
    f->app->anchor_writer.started = false; /* and it is not written again */
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_ok(try_open(f), &f->error);
    assert_int_equal(app_invoice(f, WORKSPACE), 1002);
}

static void test_a_damaged_anchor_is_told_and_an_older_one_is_fine(void **state)
{
    struct app_fixture *f = *state;
    AUTO(pawl__buf_done) struct pawl__buf old = BUF_INIT(APP_ANCHOR_BYTES_MAX);

    if (f->in_memory) {
        return;
    }
    fill(f);
    struct app_store *store = f->app->store;
    assert_ok(store->ops->read_anchor(store, &old, &f->error), &f->error);
    app_invoice(f, WORKSPACE);
    pawl_app_close(STEAL(f->app), 0, NULL);
    app_open(f);
    store = f->app->store;
    assert_ok(store->ops->write_anchor(store, pawl__buf_view(&old), &f->error), &f->error);
    f->app->anchor_writer.started = false;
    app_reopen(f);
    assert_int_equal(app_invoice(f, WORKSPACE), 1004);
    store = f->app->store;
    assert_ok(store->ops->write_anchor(store, pawl_view_of("junk"), &f->error), &f->error);
    f->app->anchor_writer.started = false;
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_status(try_open(f), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "anchor");
    assert_message(&f->error, "not what pawl wrote");
    assert_message(&f->error, "restore it from a backup; or check the application");
}

/* --- a descriptor that was altered --- */

/* Replaces the first `from` in the stored descriptor by `to`, which is as long. */
static void alter_descriptor(struct app_fixture *f, const char *from, const char *to)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_key key = pawl__app_key_meta(1);
    struct app_value value;

    assert_ok(pawl__app_store_get(
                  f->app->store, APP_META, pawl__app_key_view(&key), &arena, &value, &f->error),
              &f->error);
    assert_true(value.found);
    char *at = memmem(value.bytes.data, value.bytes.len, from, strlen(from));
    assert_non_null(at);
    for (size_t i = 0; to[i] != '\0'; i++) {
        at[i] = to[i];
    }
    app_sabotage(f, APP_META, key, value.bytes);
}

static bool count_descriptor(void *context, const pawl_app_damage *damage)
{
    *(int *)context += damage->part == PAWL_APP_PART_DESCRIPTOR
                       && strstr(damage->what, "descriptor of application") != NULL;
    return true;
}

static void expect_altered(struct app_fixture *f)
{
    pawl_app_report report = PAWL_APP_REPORT_INIT;
    int named = 0;

    assert_status(try_open(f), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "the stored descriptor of application 'orders' was altered");
    assert_message(&f->error, "restore it from a backup");
    assert_status(pawl_app_open(f->location, &f->descriptor, &f->options, &f->app, &f->error),
                  PAWL_CORRUPT,
                  &f->error);
    f->options.rebuild = true;
    assert_status(try_open(f), PAWL_CORRUPT, &f->error);
    f->options.rebuild = false;
    f->options.read_only = true; /* to look at it */
    assert_ok(try_open(f), &f->error);
    assert_status(pawl_app_verify(f->app, 0, count_descriptor, &named, NULL, &report, &f->error),
                  PAWL_CORRUPT,
                  &f->error);
    assert_int_equal(named, 1);
    pawl_app_close(STEAL(f->app), 0, NULL);
    f->options.read_only = false;
}

static void test_an_altered_descriptor_gives_no_number_at_the_next_start(void **state)
{
    static const char *const edits[][2] = {
        { "\"trust\":0", "\"trust\":2" },
        { "\"id\":16", "\"id\":17" },
        { "\"initial\":1000", "\"initial\":1001" },
    };
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    fill(f);
    for (size_t i = 0; i < COUNT_OF(edits); i++) {
        alter_descriptor(f, edits[i][0], edits[i][1]);
        pawl_app_close(STEAL(f->app), 0, NULL);
        expect_altered(f);
        struct app_store *store = NULL;
        const struct app_store_options options = { .must_exist = true, .app_name = "orders" };
        assert_ok(pawl__app_store_open(f->location, &options, &store, &f->error), &f->error);
        struct pawl_app bare = { .store = store };
        f->app = &bare;
        alter_descriptor(f, edits[i][1], edits[i][0]); /* as from a backup */
        f->app = NULL;
        pawl__app_store_close(store);
        app_open(f);
    }
    assert_int_equal(app_invoice(f, WORKSPACE), 1003);
}

static void test_a_descriptor_with_the_id_of_another_is_refused_without_an_anchor_too(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    fill(f);
    alter_descriptor(f, "\"id\":1,", "\"id\":2,");
    app_remove_anchor(f);
    f->app->anchor_writer.started = false;
    pawl_app_close(STEAL(f->app), 0, NULL);
    for (int i = 0; i < 2; i++) {
        f->options.read_only = i == 1;
        assert_status(try_open(f), PAWL_CORRUPT, &f->error);
        assert_message(&f->error, "the stored descriptor has id 2");
    }
}

static void test_an_anchor_of_the_first_version_is_brought_up_to_date_and_guards_then(void **state)
{
    struct app_fixture *f = *state;
    AUTO(pawl__buf_done) struct pawl__buf old = BUF_INIT(APP_ANCHOR_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf now = BUF_INIT(APP_ANCHOR_BYTES_MAX);

    if (f->in_memory) {
        return;
    }
    fill(f);
    struct app_anchor anchor = f->app->anchor_writer.anchor;
    anchor.has_descriptor = false;
    pawl__app_anchor_write(&anchor, &old);
    struct app_store *store = f->app->store;
    assert_ok(store->ops->write_anchor(store, pawl__buf_view(&old), &f->error), &f->error);
    f->app->anchor_writer.started = false;
    app_reopen(f);
    store = f->app->store;
    assert_ok(store->ops->read_anchor(store, &now, &f->error), &f->error);
    assert_memory_equal(now.data, "pawl-app-anchor 2 ", 18);
    alter_descriptor(f, "\"trust\":0", "\"trust\":1");
    pawl_app_close(STEAL(f->app), 0, NULL);
    expect_altered(f);
}

static void test_who_removes_the_anchor_accepts_the_descriptor_as_it_is(void **state)
{
    struct app_fixture *f = *state;

    if (f->in_memory) {
        return;
    }
    fill(f);
    alter_descriptor(f, "\"trust\":0", "\"trust\":1");
    app_remove_anchor(f);
    f->app->anchor_writer.started = false;
    pawl_app_close(STEAL(f->app), 0, NULL);
    assert_ok(try_open(f), &f->error);
    assert_int_equal(pawl_app_get_descriptor(f->app)->trust, PAWL_APP_TRUST_1);
    assert_int_equal(app_invoice(f, WORKSPACE), 1003);
}

/* --- a disk that fails or hangs --- */

static void test_closing_does_not_wait_for_an_anchor_that_cannot_be_written(void **state)
{
    static pawl_app *left_behind; /* it stays, as the header says, and is no leak for a checker */
    struct app_fixture *f = *state;

    app_open(f);
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    app_invoice(f, WORKSPACE);
    assert_ok(pawl__failpoint_set("app.anchor.write.before=delay:4000", &f->error), &f->error);
    left_behind = STEAL(f->app);
    assert_status(pawl_app_close(left_behind, 500, &f->error), PAWL_TIMEOUT, &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
}

struct told {
    atomic_int failing;
    atomic_int again;
};

static void count_lines(void *context, const pawl_log_event *event)
{
    struct told *told = context;

    if (strstr(event->message, "the anchor of an application cannot be written now") != NULL) {
        atomic_fetch_add(&told->failing, event->level == PAWL_LOG_WARNING);
    } else if (strstr(event->message, "the anchor of an application is written again") != NULL) {
        atomic_fetch_add(&told->again, 1);
    }
}

static void test_an_anchor_that_cannot_be_written_is_told_once(void **state)
{
    struct app_fixture *f = *state;
    struct told told = { 0 };
    int64_t deadline_ns = in_ms(APP_PATIENCE_MS);

    pawl_set_log_sink(count_lines, &told, PAWL_LOG_INFO);
    assert_ok(pawl__failpoint_set("app.anchor.write.before=error:NO_SPACE*2", &f->error),
              &f->error);
    app_open(f); /* fails to write it, and so does the first event */
    assert_int_equal(atomic_load(&told.failing), 1);
    while (atomic_load(&told.again) == 0) {
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
        app_invoice(f, WORKSPACE);
    }
    pawl_app_close(STEAL(f->app), 0, NULL);
    pawl_set_log_sink(NULL, NULL, PAWL_LOG_WARNING);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_int_equal(atomic_load(&told.failing), 1);
    assert_int_equal(atomic_load(&told.again), 1);
}

/* --- names and ids in a directory --- */

static bool in_a_directory(const struct app_fixture *f)
{
    return !f->in_memory && strcmp(app_backend, "rocksdb") == 0;
}

static char *beside(const struct app_fixture *f, const char *name)
{
    char *path = pawl__fs_join(f->dir, name);

    assert_non_null(path);
    return path;
}

static void copy(const char *from, const char *to)
{
    char command[2 * APP_LOCATION_SIZE + 32];

    snprintf(command, sizeof(command), "cp -r '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

static void test_an_application_that_was_moved_takes_no_more_commands(void **state)
{
    struct app_fixture *f = *state;

    if (!in_a_directory(f)) {
        return;
    }
    app_open(f);
    app_invoice(f, WORKSPACE);
    app_reopen(f);
    AUTO(pawl__text_free) char *away = beside(f, "away");
    assert_int_equal(rename(f->location, away), 0);
    copy(away, f->location);
    assert_status(app_try_invoice(f, WORKSPACE), PAWL_IO, &f->error);
    assert_message(&f->error, "was moved, replaced or deleted while it was open");
    pawl_app_close(STEAL(f->app), 0, NULL);
    tempdir_remove(f->location); /* what was moved is whole */
    assert_int_equal(rename(away, f->location), 0);
    app_open(f);
    assert_int_equal(app_invoice(f, WORKSPACE), 1001);
}

static void test_a_copy_under_another_name_is_refused_by_name(void **state)
{
    struct app_fixture *f = *state;
    pawl_app *second = NULL;

    if (!in_a_directory(f)) {
        return;
    }
    app_open(f);
    app_invoice(f, WORKSPACE);
    pawl_app_close(STEAL(f->app), 0, NULL);
    AUTO(pawl__text_free) char *backup = beside(f, "backup-orders");
    copy(f->location, backup);
    pawl_app_options options = PAWL_APP_OPTIONS_INIT;
    for (int i = 0; i < 2; i++) {
        options.read_only = i == 1;
        assert_status(
            pawl_app_open(backup, NULL, &options, &second, &f->error), PAWL_CONFLICT, &f->error);
        assert_message(&f->error, "'backup-orders' holds application 'orders'");
    }
    assert_status(
        pawl_app_open(backup, &f->descriptor, NULL, &second, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "lives in a directory of its name, not in 'backup-orders'");
    app_open(f); /* the original is as it was */
    assert_int_equal(app_invoice(f, WORKSPACE), 1001);
    pawl_app_close(STEAL(f->app), 0, NULL);
    snprintf(f->location, sizeof(f->location), "%s/./orders//", f->dir);
    app_open(f);
}

static void test_a_second_application_with_the_same_id_is_refused_by_name(void **state)
{
    struct app_fixture *f = *state;
    pawl_app_descriptor other = f->descriptor;
    pawl_app *second = NULL;

    if (!in_a_directory(f)) {
        return;
    }
    app_open(f);
    AUTO(pawl__text_free) char *bills = beside(f, "bills");
    other.name = "bills";
    assert_status(pawl_app_open(bills, &other, NULL, &second, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "application 'bills' has id 1, which application 'orders'");
    assert_int_not_equal(access(bills, F_OK), 0); /* nothing was made */
    AUTO(pawl__text_free) char *elsewhere = beside(f, "elsewhere");
    assert_ok(pawl__fs_make_dir(elsewhere, &f->error), &f->error);
    AUTO(pawl__text_free) char *made = pawl__fs_join(elsewhere, "bills");
    assert_ok(pawl_app_open(made, &other, NULL, &second, &f->error), &f->error);
    pawl_app_close(second, 0, NULL);
    assert_int_equal(rename(made, bills), 0); /* brought in from elsewhere */
    assert_status(pawl_app_open(bills, NULL, NULL, &second, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "'orders'");
    app_reopen(f); /* who was there first is not touched */
}

static void test_the_id_of_an_application_without_an_anchor_is_refused_by_name(void **state)
{
    struct app_fixture *f = *state;
    pawl_app_descriptor other = f->descriptor;
    pawl_app *second = NULL;

    if (!in_a_directory(f)) {
        return;
    }
    app_open(f);
    pawl_app_close(STEAL(f->app), 0, NULL);
    AUTO(pawl__text_free) char *path = beside(f, "orders.anchor");
    AUTO(pawl__text_free) char *bills = beside(f, "bills");
    other.name = "bills";
    for (int i = 0; i < 2; i++) { /* damaged, then missing */
        assert_int_equal(i == 0 ? truncate(path, 5) : unlink(path), 0);
        assert_status(
            pawl_app_open(bills, &other, NULL, &second, &f->error), PAWL_CONFLICT, &f->error);
        assert_message(&f->error, "application 'bills' has id 1, which application 'orders'");
        assert_int_not_equal(access(bills, F_OK), 0); /* nothing was made */
    }
    AUTO(pawl__text_free) char *current = pawl__fs_join(f->location, "CURRENT");
    assert_int_equal(truncate(current, 0), 0);
    assert_int_not_equal(pawl_app_open(bills, &other, NULL, &second, &f->error), PAWL_OK);
    assert_message(&f->error, "whether 'orders' has id 1 already");
    assert_message(&f->error, "move it out of the directory");
    assert_int_equal(unlink(current), 0); /* what is left of it is a store's */
    assert_status(pawl_app_open(bills, &other, NULL, &second, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "whether 'orders' has id 1 already");
    tempdir_remove(f->location);
    assert_ok(pawl_app_open(bills, &other, NULL, &second, &f->error), &f->error);
    pawl_app_close(second, 0, NULL);
}

static void test_an_application_that_is_gone_is_not_begun_anew(void **state)
{
    struct app_fixture *f = *state;

    if (!in_a_directory(f)) {
        return;
    }
    app_open(f);
    app_invoice(f, WORKSPACE);
    pawl_app_close(STEAL(f->app), 0, NULL);
    AUTO(pawl__text_free) char *away = beside(f, "away");
    assert_int_equal(rename(f->location, away), 0);
    assert_status(pawl_app_open(f->location, &f->descriptor, NULL, &f->app, &f->error),
                  PAWL_CORRUPT,
                  &f->error);
    assert_message(&f->error, "there is no application 'orders', but its anchor is at offset 1");
    assert_status(try_open(f), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "cut off: there is no application 'orders'");
    assert_int_not_equal(access(f->location, F_OK), 0); /* nothing was made */
}

static void test_an_anchor_that_cannot_be_read_is_not_taken_for_none(void **state)
{
    struct app_fixture *f = *state;
    static const off_t sizes[] = { 0, APP_ANCHOR_BYTES_MAX + 1 };

    if (!in_a_directory(f)) {
        return;
    }
    app_open(f);
    app_invoice(f, WORKSPACE);
    pawl_app_close(STEAL(f->app), 0, NULL);
    AUTO(pawl__text_free) char *path = beside(f, "orders.anchor");
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        pawl_app_report report = PAWL_APP_REPORT_INIT;
        assert_int_equal(truncate(path, sizes[i]), 0);
        f->options.read_only = false;
        assert_status(try_open(f), PAWL_CORRUPT, &f->error);
        f->options.read_only = true;
        assert_ok(try_open(f), &f->error);
        assert_status(pawl_app_verify(f->app, 0, NULL, NULL, NULL, &report, &f->error),
                      PAWL_CORRUPT,
                      &f->error);
        assert_false(report.anchor_missing);
        pawl_app_close(STEAL(f->app), 0, NULL);
    }
}

#define APP_TEST(name) cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_anchor_comes_back_from_its_text),
        cmocka_unit_test(test_an_anchor_of_the_first_version_is_read),
        cmocka_unit_test(test_an_anchor_of_a_later_version_is_unsupported_not_damaged),
        cmocka_unit_test(test_no_changed_byte_of_an_anchor_goes_unnoticed),
        APP_TEST(test_a_cut_of_everything_at_once_is_noticed_at_the_next_start),
        APP_TEST(test_another_last_event_is_noticed_at_the_next_start),
        APP_TEST(test_a_log_that_was_cut_goes_on_when_somebody_removes_the_anchor),
        APP_TEST(test_a_damaged_anchor_is_told_and_an_older_one_is_fine),
        APP_TEST(test_an_altered_descriptor_gives_no_number_at_the_next_start),
        APP_TEST(test_a_descriptor_with_the_id_of_another_is_refused_without_an_anchor_too),
        APP_TEST(test_an_anchor_of_the_first_version_is_brought_up_to_date_and_guards_then),
        APP_TEST(test_who_removes_the_anchor_accepts_the_descriptor_as_it_is),
        APP_TEST(test_an_application_that_was_moved_takes_no_more_commands),
        APP_TEST(test_an_anchor_that_cannot_be_written_is_told_once),
        APP_TEST(test_a_copy_under_another_name_is_refused_by_name),
        APP_TEST(test_a_second_application_with_the_same_id_is_refused_by_name),
        APP_TEST(test_the_id_of_an_application_without_an_anchor_is_refused_by_name),
        APP_TEST(test_an_anchor_that_cannot_be_read_is_not_taken_for_none),
        APP_TEST(test_an_application_that_is_gone_is_not_begun_anew),
        /* The last one: what it leaves behind keeps its application. */
        APP_TEST(test_closing_does_not_wait_for_an_anchor_that_cannot_be_written),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
