/* The table of an item's states: every decision follows it, and docs/work.md shows it. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "lib/file.h"
#include "work/items/decide.h"
#include "work/items/item.h"
#include "work/items/steps.h"

#define LEASE_NS (300 * NS_PER_S)

static const struct work_now now = { .wall_us = 1000, .ns = 1000 };

/* An item in a state, held by token 1 while it is in progress. */
static struct work_row in_state(pawl_item_status status)
{
    return (struct work_row){
        .item = { .work_item_id = { "a", 1 },
                  .status = status,
                  .max_retries = 3,
                  .token = 1,
                  .error_message = { "before", 6 } },
        .home = status == PAWL_ITEM_WAITING ? WORK_IN_WAITING : WORK_IN_ITEMS,
        .deadline_ns = status == PAWL_ITEM_IN_PROGRESS ? now.ns + LEASE_NS : 0,
        .due_ns = INT64_MIN,
    };
}

static struct work_command command_of(enum work_command_kind kind, bool retryable)
{
    return (struct work_command){
        .kind = kind,
        .token = 1,
        .lease_ns = LEASE_NS,
        .error_message = pawl_view_of("broken"),
        .retryable = retryable,
        .backoff = { NS_PER_S, NS_PER_S },
    };
}

/* What a step does to a row. False: refused, and the row must be as it was. */
typedef bool take_step(struct work_row *row);

static bool leased(struct work_row *row, enum work_command_kind kind, bool retryable)
{
    struct work_command command = command_of(kind, retryable);
    bool changed = false;

    return pawl__work_decide_leased(row, &command, &now, &changed, NULL) == PAWL_OK && changed;
}

static bool heartbeat(struct work_row *row)
{
    return leased(row, WORK_HEARTBEAT, false);
}

static bool complete(struct work_row *row)
{
    return leased(row, WORK_COMPLETE, false);
}

static bool fail_for_good(struct work_row *row)
{
    return leased(row, WORK_FAIL, false);
}

static bool fail_to_retry(struct work_row *row)
{
    return leased(row, WORK_FAIL, true);
}

static bool release(struct work_row *row)
{
    return leased(row, WORK_RELEASE, false);
}

static bool expire(struct work_row *row)
{
    struct work_now later = { .wall_us = 2000, .ns = now.ns + LEASE_NS };

    return pawl__work_decide_expire(row, &later);
}

static bool cancel(struct work_row *row)
{
    return pawl__work_decide_cancel(row, pawl_view_of("cancelled"), &now);
}

/* The steps that refuse by themselves; claim, enter and what follows an expiry are only called on rows
 * that were picked for them, and abort otherwise. */
static const struct {
    enum work_step step;
    take_step *take;
} takes[] = {
    { WORK_STEP_HEARTBEAT, heartbeat }, { WORK_STEP_COMPLETE, complete },
    { WORK_STEP_FAIL, fail_for_good },  { WORK_STEP_FAIL_RETRY, fail_to_retry },
    { WORK_STEP_RELEASE, release },     { WORK_STEP_EXPIRE, expire },
    { WORK_STEP_CANCEL, cancel },
};

static void test_every_decision_follows_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(takes); i++) {
        for (int from = 0; from < WORK_NO_ITEM; from++) {
            struct work_row row = in_state((pawl_item_status)from);
            struct work_row before = row;
            pawl_item_status next;
            bool there = pawl__work_step(from, takes[i].step, &next);
            if (takes[i].take(&row) != there) {
                fail_msg("'%s' of an item that is %s",
                         pawl__work_step_text(takes[i].step),
                         pawl__work_item_status_text((pawl_item_status)from));
            }
            if (there) {
                assert_int_equal(row.item.status, next);
            } else {
                assert_memory_equal(&row, &before, sizeof(row));
            }
        }
    }
}

static void test_nothing_follows_an_end(void **state)
{
    pawl_item_status next;

    (void)state;
    for (int step = 0; step < WORK_STEPS; step++) {
        assert_false(pawl__work_step(PAWL_ITEM_COMPLETED, (enum work_step)step, &next));
        assert_false(pawl__work_step(PAWL_ITEM_FAILED, (enum work_step)step, &next));
        assert_false(pawl__work_step(-1, (enum work_step)step, &next));
        assert_false(pawl__work_step(WORK_STATES, (enum work_step)step, &next));
    }
}

/* --- what the holder may do, and what a repetition of it is --- */

static void test_a_retry_is_counted_until_none_is_left(void **state)
{
    struct work_row row = in_state(PAWL_ITEM_IN_PROGRESS);

    (void)state;
    row.item.retry_count = 2;
    assert_true(fail_to_retry(&row));
    assert_int_equal(row.item.status, PAWL_ITEM_WAITING);
    assert_int_equal(row.item.retry_count, 3);
    assert_true(row.due_ns > now.ns);
    row = in_state(PAWL_ITEM_IN_PROGRESS);
    row.item.retry_count = 3;
    assert_true(fail_to_retry(&row));
    assert_int_equal(row.item.status, PAWL_ITEM_FAILED);
    assert_int_equal(row.item.retry_count, 3);
}

static void test_a_release_counts_no_retry(void **state)
{
    struct work_row row = in_state(PAWL_ITEM_IN_PROGRESS);

    (void)state;
    assert_true(release(&row));
    assert_int_equal(row.item.retry_count, 0);
    assert_int_equal(row.item.error_message.len, 0);
    assert_int_equal(row.item.lease_holder.len, 0);
}

static void test_a_heartbeat_never_shortens_a_lease(void **state)
{
    struct work_row row = in_state(PAWL_ITEM_IN_PROGRESS);
    struct work_command command = command_of(WORK_HEARTBEAT, false);
    bool changed = false;

    (void)state;
    command.lease_ns = NS_PER_S;
    assert_int_equal(pawl__work_decide_leased(&row, &command, &now, &changed, NULL), PAWL_OK);
    assert_int_equal(row.deadline_ns, now.ns + LEASE_NS);
    command.lease_ns = 2 * LEASE_NS;
    assert_int_equal(pawl__work_decide_leased(&row, &command, &now, &changed, NULL), PAWL_OK);
    assert_int_equal(row.deadline_ns, now.ns + 2 * LEASE_NS);
}

/* A command by the token that did the same before is answered as the first was, and changes nothing. */
static void test_a_repetition_is_told_from_another_call(void **state)
{
    static const struct {
        pawl_item_status status;
        const char *output;
        const char *message;
        enum work_command_kind kind;
        bool same;
    } rows[] = {
        { PAWL_ITEM_COMPLETED, "{\"a\":1}", "", WORK_COMPLETE, true },
        { PAWL_ITEM_COMPLETED, "{ \"a\": 1.0 }", "", WORK_COMPLETE, true },
        { PAWL_ITEM_COMPLETED, "{\"a\":2}", "", WORK_COMPLETE, false },
        { PAWL_ITEM_COMPLETED, "", "", WORK_COMPLETE, false },
        { PAWL_ITEM_COMPLETED, "{\"a\":1}", "", WORK_FAIL, false },
        { PAWL_ITEM_COMPLETED, "{\"a\":1}", "", WORK_RELEASE, false },
        { PAWL_ITEM_COMPLETED, "{\"a\":1}", "", WORK_HEARTBEAT, false },
        { PAWL_ITEM_FAILED, "", "broken", WORK_FAIL, true },
        { PAWL_ITEM_FAILED, "", "cancelled", WORK_FAIL, false },
        { PAWL_ITEM_WAITING, "", "broken", WORK_FAIL, true },
        { PAWL_ITEM_PENDING, "", "broken", WORK_FAIL, true }, /* its backoff is over */
        { PAWL_ITEM_PENDING, "", WORK_EXPIRED_MESSAGE, WORK_FAIL, false },
        { PAWL_ITEM_PENDING, "", "", WORK_RELEASE, true },
        { PAWL_ITEM_PENDING, "", WORK_EXPIRED_MESSAGE, WORK_RELEASE, false },
        { PAWL_ITEM_PENDING, "", "broken", WORK_RELEASE, false },
        { PAWL_ITEM_PENDING, "", "", WORK_HEARTBEAT, false },
        { PAWL_ITEM_EXPIRED, "", WORK_EXPIRED_MESSAGE, WORK_COMPLETE, false },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct work_row row = in_state(rows[i].status);
        struct work_command command = command_of(rows[i].kind, true);
        bool changed = true;
        row.item.output_data = pawl_view_of(rows[i].output);
        row.item.error_message = pawl_view_of(rows[i].message);
        command.output_data = pawl_view_of("{\"a\":1}");
        struct work_row before = row;
        pawl_status status = pawl__work_decide_leased(&row, &command, &now, &changed, NULL);
        if (status != (rows[i].same ? PAWL_OK : PAWL_LEASE_LOST) || changed) {
            fail_msg("row %zu: %s", i, pawl_status_name(status));
        }
        assert_memory_equal(&row, &before, sizeof(row));
        /* Another token's is never a repetition. */
        command.token = 2;
        assert_int_equal(pawl__work_decide_leased(&row, &command, &now, &changed, NULL),
                         PAWL_LEASE_LOST);
    }
}

/* --- the page --- */

static void add_row(struct pawl__buf *page, enum work_step step)
{
    AUTO(pawl__buf_done) struct pawl__buf from = BUF_INIT(1024);
    pawl_item_status next = PAWL_ITEM_PENDING;

    for (int state = 0; state < WORK_STATES; state++) {
        if (pawl__work_step(state, step, &next)) {
            pawl__buf_add_format(
                &from,
                "%s%s",
                from.len == 0 ? "" : ", ",
                state == WORK_NO_ITEM ? "–" : pawl__work_item_status_text((pawl_item_status)state));
        }
    }
    pawl__buf_add_format(page,
                         "| %s | %.*s | %s |\n",
                         pawl__work_step_text(step),
                         VIEW_ARGS(pawl__buf_view(&from)),
                         pawl__work_item_status_text(next));
}

static void test_the_page_shows_the_table(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf page = BUF_INIT(1 << 16);
    char path[4096];
    size_t size = 0;

    (void)state;
    pawl__buf_add_text(&page, "| command | from | to |\n|---|---|---|\n");
    for (int step = 0; step < WORK_STEPS; step++) {
        add_row(&page, (enum work_step)step);
    }
    snprintf(path, sizeof(path), "%s/docs/work.md", getenv("PAWL_SOURCE"));
    char *bytes = file_read(path, &size);
    char *text = strndup(bytes, size);
    free(bytes);
    bool shown = strstr(text, page.data) != NULL;
    free(text);
    if (!shown) {
        fail_msg("docs/work.md must have this table:\n%.*s", VIEW_ARGS(pawl__buf_view(&page)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_decision_follows_the_table),
        cmocka_unit_test(test_nothing_follows_an_end),
        cmocka_unit_test(test_a_retry_is_counted_until_none_is_left),
        cmocka_unit_test(test_a_release_counts_no_retry),
        cmocka_unit_test(test_a_heartbeat_never_shortens_a_lease),
        cmocka_unit_test(test_a_repetition_is_told_from_another_call),
        cmocka_unit_test(test_the_page_shows_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
