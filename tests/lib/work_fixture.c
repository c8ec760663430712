#include "lib/work_fixture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "lib/work_path.h"
#include "model/model.h"
#include "work/core/internal.h"
#include "work/items/item.h"

static const char *suite_backend;
static bool suite_plain; /* PostgreSQL without its fast path */

/* One server for the program; each test begins with an empty database. */
static struct pg_fixture postgres;

int work_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;

    if (argc != 2) {
        fprintf(stderr, "usage: %s model|memory|sqlite|postgres|postgres-plain\n", argv[0]);
        return 2;
    }
    work_model_register();
    suite_plain = strcmp(argv[1], "postgres-plain") == 0;
    suite_backend = suite_plain ? "postgres" : argv[1];
    if (strcmp(suite_backend, "postgres") == 0) {
        status = pg_server_start(
            &(struct pg_server_options){ .settings = NULL }, &postgres.server, &error);
    }
    if (status == PAWL_UNSUPPORTED) {
        printf("1..0 # SKIP %s\n", error.message);
        return 0;
    }
    if (status != PAWL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int failed = postgres.server == NULL
                     ? _cmocka_run_group_tests(suite_backend, tests, count, NULL, NULL)
                     : work_path_run(argv[1], suite_plain, tests, count);
    pg_server_free(postgres.server);
    return failed;
}

bool work_is(const struct work_fixture *f, const char *backend)
{
    return strcmp(f->backend, backend) == 0;
}

bool work_forgets(const struct work_fixture *f)
{
    return work_is(f, "model") || work_is(f, "memory");
}

static bool run_sql(struct work_fixture *f, const char *sql, char *ret_why, size_t size)
{
    char text[2048];
    sqlite3 *db = NULL;

    if (work_is(f, "postgres")) {
        struct pawl__pg *pg = pg_connect(&postgres, NULL);
        snprintf(text, sizeof(text), "SET search_path TO pawl; %s", sql);
        bool ok = pawl__pg_script(pg, text, &f->err) == PAWL_OK;
        pawl__pg_close(pg);
        snprintf(ret_why, size, "%s", f->err.message);
        return ok;
    }
    assert_int_equal(sqlite3_open(f->location, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    bool ok = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
    snprintf(ret_why, size, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    return ok;
}

void work_sql(struct work_fixture *f, const char *sql)
{
    char why[512];

    if (!run_sql(f, sql, why, sizeof(why))) {
        fail_msg("%s: %s", sql, why);
    }
}

bool work_refuses(struct work_fixture *f, const char *sql)
{
    char why[512];

    return !run_sql(f, sql, why, sizeof(why));
}

static void open_store(struct work_fixture *f, const char *boot_id)
{
    assert_ok(
        pawl__work_open_at(f->location, &f->options, &f->clock.base, boot_id, &f->work, &f->err),
        &f->err);
    f->work->backend->without_fast_path = suite_plain;
}

int work_fixture_setup(void **state)
{
    struct work_fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    *state = f;
    f->backend = suite_backend;
    f->options = (pawl_work_options)PAWL_WORK_OPTIONS_INIT;
    f->clock = pawl__clock_virtual_at(INT64_C(1769680000) * US_PER_S, 1000 * NS_PER_S);
    assert_ok(tempdir_make(f->dir, "work", &f->err), &f->err);
    if (work_forgets(f)) {
        snprintf(f->location, sizeof(f->location), "%s:", f->backend);
    } else if (work_is(f, "sqlite")) {
        snprintf(f->location, sizeof(f->location), "%s/work.sqlite", f->dir);
    } else if (work_is(f, "postgres")) {
        pg_admin(&postgres, "DROP SCHEMA IF EXISTS pawl CASCADE");
        snprintf(f->location, sizeof(f->location), "%s", pg_server_url(postgres.server));
    } else {
        fail_msg("no backend '%s'", f->backend);
    }
    open_store(f, WORK_BOOT);
    return 0;
}

int work_fixture_teardown(void **state)
{
    struct work_fixture *f = *state;

    if (work_is(f, "postgres")) {
        work_path_count(&postgres);
    }
    pawl_work_close(f->work, 0, NULL);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

bool work_reopen(struct work_fixture *f, const char *boot_id)
{
    if (work_forgets(f)) {
        return false;
    }
    pawl_work_close(f->work, 0, NULL);
    f->work = NULL;
    open_store(f, boot_id);
    return true;
}

pawl_work *work_open_real(struct work_fixture *f, const pawl_work_options *options)
{
    pawl_work *work = NULL;

    assert_ok(pawl_work_open(f->location, options, &work, &f->err), &f->err);
    work->backend->without_fast_path = suite_plain;
    return work;
}

void work_pass(struct work_fixture *f, int64_t ms)
{
    pawl__clock_advance(&f->clock, ms * NS_PER_MS);
}

/* --- doing things --- */

void make_task(struct work_fixture *f, const char *task_id)
{
    pawl_task task = { .size = sizeof(pawl_task), .task_id = pawl_view_of(task_id) };

    assert_ok(pawl_task_create(f->work, &task, NULL, 0, &f->err), &f->err);
}

void submit(struct work_fixture *f, const char *id, const char *task_id, int32_t priority)
{
    pawl_submission submission = PAWL_SUBMISSION_INIT;

    submission.work_item_id = pawl_view_of(id);
    submission.task_id = pawl_view_of(task_id);
    submission.work_type = pawl_view_of("t");
    submission.priority = priority;
    assert_ok(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), &f->err);
    pawl__clock_advance(&f->clock, NS_PER_MS); /* the next one is younger */
}

pawl_status submit_after(struct work_fixture *f,
                         const char *id,
                         const char *task_id,
                         const char *after)
{
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    pawl_view ids[16];
    pawl_view rest = pawl_view_of(after);

    submission.work_item_id = pawl_view_of(id);
    submission.task_id = pawl_view_of(task_id);
    submission.work_type = pawl_view_of("t");
    submission.after = ids;
    while (pawl__view_split(&rest, ' ', &ids[submission.after_count])) {
        submission.after_count++;
    }
    return pawl_work_submit(f->work, &submission, 1, NULL, &f->err);
}

uint64_t claim_it(struct work_fixture *f, const char *holder, const char *id)
{
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    claim.holder = pawl_view_of(holder);
    assert_ok(pawl_work_claim(f->work, &claim, &claimed, &f->err), &f->err);
    assert_int_equal(claimed->count, 1);
    assert_true(pawl__view_is(claimed->items[0].work_item_id, id));
    uint64_t token = claimed->items[0].token;
    pawl_claimed_free(claimed);
    return token;
}

bool nothing_to_claim(struct work_fixture *f)
{
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of("nobody");
    return claim_ids(f, &claim)[0] == '\0';
}

const char *claim_ids(struct work_fixture *f, const pawl_claim *claim)
{
    struct pawl__buf text = BUF_OVER(f->text);
    pawl_claimed *claimed = NULL;
    pawl_status status = pawl_work_claim(f->work, claim, &claimed, &f->err);

    f->text[0] = '\0';
    if (status == PAWL_NOT_FOUND) {
        return f->text;
    }
    assert_ok(status, &f->err);
    for (size_t i = 0; i < claimed->count; i++) {
        pawl__buf_add(&text, claimed->items[i].work_item_id);
        pawl__buf_add_char(&text, ' ');
    }
    pawl_claimed_free(claimed);
    return f->text;
}

pawl_lease lease_of(const char *id, uint64_t token)
{
    return (
        pawl_lease){ .size = sizeof(pawl_lease), .work_item_id = pawl_view_of(id), .token = token };
}

pawl_status complete(struct work_fixture *f, const char *id, uint64_t token)
{
    pawl_lease lease = lease_of(id, token);

    return pawl_work_complete(f->work, &lease, pawl_view_of("{\"ok\":true}"), &f->err);
}

pawl_status fail_with(
    struct work_fixture *f, const char *id, uint64_t token, const char *message, bool retryable)
{
    pawl_lease lease = lease_of(id, token);

    return pawl_work_fail(
        f->work, &lease, pawl_view_of(message), (pawl_view){ NULL, 0 }, retryable, NULL, &f->err);
}

/* --- looking --- */

const char *item_text(struct work_fixture *f, const char *id)
{
    pawl_item *item = NULL;

    assert_ok(pawl_work_get(f->work, pawl_view_of(id), &item, &f->err), &f->err);
    snprintf(f->text,
             sizeof(f->text),
             "%s %d/%d token %llu attempts %lld '%.*s'",
             pawl__work_item_status_text(item->status),
             item->retry_count,
             item->max_retries,
             (unsigned long long)item->token,
             (long long)item->attempts,
             VIEW_ARGS(item->error_message));
    pawl_item_free(item);
    return f->text;
}

static bool add_event(void *context, const pawl_item_event *event)
{
    struct pawl__buf *text = context;

    pawl__buf_add_format(text,
                         "%s%s>%s %llu",
                         text->len == 0 ? "" : "|",
                         event->from,
                         event->to,
                         (unsigned long long)event->token);
    if (event->lease_holder.len > 0) {
        pawl__buf_add_format(text, " by %.*s", VIEW_ARGS(event->lease_holder));
    }
    if (event->message.len > 0) {
        pawl__buf_add_format(text, " '%.*s'", VIEW_ARGS(event->message));
    }
    return true;
}

const char *history_text(struct work_fixture *f, const char *id)
{
    struct pawl__buf text = BUF_OVER(f->text);

    f->text[0] = '\0';
    assert_ok(pawl_work_history(f->work, pawl_view_of(id), NULL, add_event, &text, &f->err),
              &f->err);
    return f->text;
}

const char *task_text(struct work_fixture *f, const char *task_id)
{
    pawl_task *task = NULL;

    assert_ok(pawl_task_get(f->work, pawl_view_of(task_id), &task, &f->err), &f->err);
    snprintf(f->text,
             sizeof(f->text),
             "%s%s w%llu p%llu r%llu c%llu f%llu",
             pawl__work_task_status_text(task->status),
             task->set_by_user ? "!" : "",
             (unsigned long long)task->waiting,
             (unsigned long long)task->pending,
             (unsigned long long)task->in_progress,
             (unsigned long long)task->completed,
             (unsigned long long)task->failed);
    pawl_task_free(task);
    return f->text;
}

void use_real_clock(struct work_fixture *f)
{
    pawl_work_close(f->work, 0, NULL);
    f->work = work_open_real(f, &f->options);
}
