/* Foreign SQL changes items without us: the sweep does what it leaves undone. */
#include "lib/work_fixture.h"

#include <stdio.h>

#include "base/core/macros.h"
#include "work/items/item.h"
#include "work/items/steps.h"

#define CLAIM_A                                                         \
    "UPDATE work_items SET status = 'in_progress', lease_holder = 'w'," \
    " lease_expires_at = CURRENT_TIMESTAMP WHERE work_item_id = 'a';"
#define END_A(status)                                                                \
    "UPDATE work_items SET status = '" status "', completed_at = CURRENT_TIMESTAMP," \
    " lease_holder = NULL, lease_expires_at = NULL, updated_at = CURRENT_TIMESTAMP"  \
    " WHERE work_item_id = 'a';"

static pawl_sweep_report sweep(struct work_fixture *f)
{
    pawl_sweep_report report = { .size = sizeof(pawl_sweep_report) };

    assert_ok(pawl_work_sweep(f->work, &report, &f->err), &f->err);
    return report;
}

static void test_what_it_completes_frees_what_comes_after(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    submit(f, "c", "T", 0);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    assert_ok(submit_after(f, "d", "T", "a c"), &f->err);
    assert_int_equal(sweep(f).due, 0);
    work_sql(f, CLAIM_A END_A("completed"));
    assert_int_equal(sweep(f).due, 1);
    assert_item(f, "b", "pending 0/3 token 0 attempts 0 ''");
    assert_item(f, "d", "waiting 0/3 token 0 attempts 0 ''");
    assert_int_equal(sweep(f).due, 0);
    /* The half that it did is not done again. */
    pawl_claim claim = PAWL_CLAIM_INIT;
    claim.holder = pawl_view_of("w");
    claim.count_max = 10;
    assert_string_equal(claim_ids(f, &claim), "c b ");
    assert_ok(complete(f, "c", 1), &f->err);
    assert_item(f, "d", "pending 0/3 token 0 attempts 0 ''");
}

static void test_a_completed_item_that_it_deletes_was_completed(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    work_sql(f, CLAIM_A END_A("completed") "DELETE FROM work_items WHERE work_item_id = 'a'");
    assert_int_equal(sweep(f).due, 1);
    assert_item(f, "b", "pending 0/3 token 0 attempts 0 ''");
}

static void test_what_it_fails_or_deletes_fails_what_comes_after(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    assert_ok(submit_after(f, "c", "T", "b"), &f->err);
    work_sql(f, CLAIM_A END_A("failed"));
    assert_int_equal(sweep(f).due, 0);
    assert_item(f, "b", "failed 0/3 token 0 attempts 0 'item 'a', which it comes after, failed'");
    assert_item(f, "c", "failed 0/3 token 0 attempts 0 'item 'b', which it comes after, failed'");
    assert_task(f, "T", "failed w0 p0 r0 c0 f3");

    make_task(f, "U");
    submit(f, "e", "U", 0);
    assert_ok(submit_after(f, "g", "U", "e"), &f->err);
    work_sql(f, "DELETE FROM work_items WHERE work_item_id = 'e'");
    assert_int_equal(sweep(f).due, 0);
    assert_item(f, "g", "failed 0/3 token 0 attempts 0 'item 'e', which it comes after, failed'");
}

static void test_what_it_left_expired_goes_on(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    work_sql(f,
             CLAIM_A "UPDATE work_items SET status = 'expired', lease_holder = NULL,"
                     " lease_expires_at = NULL WHERE work_item_id = 'a'");
    pawl_sweep_report report = sweep(f);
    assert_int_equal(report.expired, 1);
    assert_int_equal(report.retried, 1);
    assert_item(f, "a", "pending 1/3 token 1 attempts 1 'Lease expired - no heartbeat received'");
    assert_history(f,
                   "a",
                   ">pending 0|pending>in_progress 1 by w|in_progress>expired 1 by w|"
                   "expired>pending 1 'Lease expired - no heartbeat received'");
    pawl_checkpoint *boundary = NULL;
    assert_ok(pawl_checkpoint_latest(f->work, pawl_view_of("T"), NULL, true, &boundary, &f->err),
              &f->err);
    assert_int_equal(boundary->type, PAWL_CHECKPOINT_ERROR_BOUNDARY);
    pawl_checkpoint_free(boundary);
    assert_int_equal(sweep(f).expired, 0);
}

/* --- what the triggers let happen --- */

/* A waiting item stands in a table of its own, and is pending in the history. */
static pawl_item_status stored(int state)
{
    return state == PAWL_ITEM_WAITING ? PAWL_ITEM_PENDING : (pawl_item_status)state;
}

static bool is_in_the_table(pawl_item_status from, pawl_item_status to)
{
    for (int step = 0; step < WORK_STEPS; step++) {
        for (int state = 0; state < WORK_NO_ITEM; state++) {
            pawl_item_status next;
            if (stored(state) == from && pawl__work_step(state, (enum work_step)step, &next)
                && stored((int)next) == to) {
                return true;
            }
        }
    }
    return false;
}

static void set_status(char *ret_sql, size_t size, const char *id, pawl_item_status status)
{
    bool leased = status == PAWL_ITEM_IN_PROGRESS;
    bool ended = status == PAWL_ITEM_COMPLETED || status == PAWL_ITEM_FAILED;

    snprintf(ret_sql,
             size,
             "UPDATE work_items SET status = '%s', lease_holder = %s, lease_expires_at = %s,"
             " completed_at = %s WHERE work_item_id = '%s'",
             pawl__work_item_status_text(status),
             leased ? "'w'" : "NULL",
             leased ? "'2999-01-01 00:00:00'" : "NULL",
             ended ? "'2026-01-01 00:00:00'" : "NULL",
             id);
}

/* By the way of the table, on which every state is reached from in_progress. */
static void bring_to(struct work_fixture *f, const char *id, pawl_item_status status)
{
    char sql[400];

    submit(f, id, "T", 0);
    if (status != PAWL_ITEM_PENDING) {
        set_status(sql, sizeof(sql), id, PAWL_ITEM_IN_PROGRESS);
        work_sql(f, sql);
    }
    if (status != PAWL_ITEM_PENDING && status != PAWL_ITEM_IN_PROGRESS) {
        set_status(sql, sizeof(sql), id, status);
        work_sql(f, sql);
    }
}

static void test_the_store_lets_happen_what_is_in_the_table_and_nothing_else(void **state)
{
    struct work_fixture *f = *state;
    char sql[400];
    char id[16];

    make_task(f, "T");
    for (int from = 0; from < PAWL_ITEM_WAITING; from++) {
        for (int to = 0; to < PAWL_ITEM_WAITING; to++) {
            /* What has not ended may be written again as it is. */
            bool allowed = is_in_the_table((pawl_item_status)from, (pawl_item_status)to)
                           || (from == to && from == PAWL_ITEM_PENDING);
            snprintf(id, sizeof(id), "%d-%d", from, to);
            bring_to(f, id, (pawl_item_status)from);
            set_status(sql, sizeof(sql), id, (pawl_item_status)to);
            if (work_refuses(f, sql) == allowed) {
                fail_msg("%s to %s",
                         pawl__work_item_status_text((pawl_item_status)from),
                         pawl__work_item_status_text((pawl_item_status)to));
            }
        }
    }
    work_sql(f, "DELETE FROM work_items"); /* what SQL completed says nothing of our paths */
}

static void test_a_trigger_or_rule_that_is_not_ours_is_refused(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = NULL;

    make_task(f, "T");
    if (work_is(f, "sqlite")) {
        work_sql(f,
                 "CREATE TRIGGER eve BEFORE INSERT ON work_items BEGIN SELECT RAISE(IGNORE); END");
        assert_status(submit_after(f, "a", "T", NULL), PAWL_CORRUPT, &f->err);
        assert_message(&f->err, "'eve' on 'work_items'");
    } else {
        work_sql(f, "CREATE RULE eve AS ON INSERT TO work_items DO INSTEAD NOTHING");
    }
    assert_status(pawl_work_open(f->location, NULL, &work, &f->err), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, "'eve' on 'work_items'");
    work_sql(f, work_is(f, "sqlite") ? "DROP TRIGGER eve" : "DROP RULE eve ON work_items");
    assert_ok(pawl_work_open(f->location, NULL, &work, &f->err), &f->err);
    pawl_work_close(work, 0, NULL);
    assert_ok(submit_after(f, "a", "T", NULL), &f->err);
    work_sql(f,
             work_is(f, "sqlite")
                 ? "DROP TRIGGER check_work_items_insert"
                 : "ALTER TABLE work_items DISABLE TRIGGER check_work_items_insert");
    work = NULL;
    assert_status(pawl_work_open(f->location, NULL, &work, &f->err), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, "no trigger 'check_work_items_insert'");
}

static void test_a_column_and_an_index_of_the_users_are_accepted(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = NULL;

    make_task(f, "T");
    work_sql(f,
             "ALTER TABLE work_items ADD COLUMN note TEXT;"
             "ALTER TABLE tasks ADD COLUMN team TEXT NOT NULL DEFAULT 'ours';"
             "CREATE INDEX by_note ON work_items (note)");
    assert_ok(submit_after(f, "a", "T", NULL), &f->err);
    assert_ok(pawl_work_open(f->location, NULL, &work, &f->err), &f->err);
    pawl_work_close(work, 0, NULL);
    work_sql(f, "UPDATE work_items SET note = 'mine'");
    assert_ok(complete(f, "a", claim_it(f, "w", "a")), &f->err);
}

static void test_a_trigger_that_is_called_like_a_table_of_ours_is_refused(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = NULL;

    if (!work_is(f, "sqlite")) {
        return; /* PostgreSQL's triggers are looked for by table and name */
    }
    make_task(f, "T");
    work_sql(f,
             "CREATE TRIGGER schema_version BEFORE INSERT ON work_items BEGIN"
             " SELECT RAISE(IGNORE); END");
    assert_status(submit_after(f, "a", "T", NULL), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, "'schema_version' on 'work_items'");
    assert_status(pawl_work_open(f->location, NULL, &work, &f->err), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, "DROP TRIGGER \"schema_version\"");
    work_sql(f, "DROP TRIGGER schema_version");
    assert_ok(submit_after(f, "a", "T", NULL), &f->err);
}

static const struct {
    const char *sql;
    const char *undo;
    const char *message;
} changed_schemas[] = {
    { "ALTER TABLE work_history SET UNLOGGED",
      "ALTER TABLE work_history SET LOGGED",
      "table 'work_history' is UNLOGGED" },
    { "DROP INDEX idx_checkpoints_task_sequence;"
      "CREATE UNIQUE INDEX idx_checkpoints_task_sequence ON checkpoints"
      " (task_id, sequence_number, checkpoint_id)",
      "DROP INDEX idx_checkpoints_task_sequence;"
      "CREATE UNIQUE INDEX idx_checkpoints_task_sequence ON checkpoints (task_id, sequence_number)",
      "no index 'idx_checkpoints_task_sequence'" },
    { "CREATE TABLE eve () INHERITS (work_items)",
      "DROP TABLE eve",
      "a child table that is not pawl's, 'eve' on 'work_items'" },
    { "CREATE FUNCTION eve() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;"
      "CREATE OR REPLACE TRIGGER raise_work_items_truncated BEFORE TRUNCATE ON work_items"
      " FOR EACH STATEMENT EXECUTE FUNCTION eve()",
      "CREATE OR REPLACE TRIGGER raise_work_items_truncated BEFORE TRUNCATE ON work_items"
      " FOR EACH STATEMENT EXECUTE FUNCTION raise_floors_truncated()",
      "no trigger 'raise_work_items_truncated'" },
    { "CREATE OR REPLACE TRIGGER check_work_counters_update BEFORE UPDATE ON work_counters"
      " FOR EACH ROW WHEN (NEW.one <> OLD.one)"
      " EXECUTE FUNCTION refuse('the counters of work do not go down')",
      "CREATE OR REPLACE TRIGGER check_work_counters_update BEFORE UPDATE ON work_counters"
      " FOR EACH ROW WHEN (NEW.one <> OLD.one OR NEW.token_floor < OLD.token_floor"
      " OR NEW.owner_token_floor < OLD.owner_token_floor)"
      " EXECUTE FUNCTION refuse('the counters of work do not go down')",
      "no trigger 'check_work_counters_update'" },
    { "CREATE OR REPLACE TRIGGER raise_work_items_truncated AFTER TRUNCATE ON work_items"
      " FOR EACH STATEMENT EXECUTE FUNCTION raise_floors_truncated()",
      "CREATE OR REPLACE TRIGGER raise_work_items_truncated BEFORE TRUNCATE ON work_items"
      " FOR EACH STATEMENT EXECUTE FUNCTION raise_floors_truncated()",
      "no trigger 'raise_work_items_truncated'" },
    { "CREATE OR REPLACE FUNCTION keep_item() RETURNS trigger LANGUAGE plpgsql AS"
      " $$BEGIN RETURN NULL; END$$",
      "CREATE OR REPLACE FUNCTION keep_item() RETURNS trigger LANGUAGE plpgsql AS $$\n"
      "BEGIN\n    NEW.item_id := NEW.work_item_id;\n    RETURN NEW;\nEND $$",
      "no function 'keep_item'" },
    { "ALTER TABLE work_items ENABLE REPLICA TRIGGER check_work_items_status",
      "ALTER TABLE work_items ENABLE TRIGGER check_work_items_status",
      "no trigger 'check_work_items_status'" },
    { "ALTER TABLE checkpoints_3 DISABLE TRIGGER count_checkpoints_insert",
      "ALTER TABLE checkpoints_3 ENABLE TRIGGER count_checkpoints_insert",
      "no trigger 'count_checkpoints_insert'" },
};

static void test_a_schema_that_has_our_names_only_is_refused(void **state)
{
    struct work_fixture *f = *state;

    if (!work_is(f, "postgres")) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(changed_schemas); i++) {
        pawl_work *work = NULL;

        work_sql(f, changed_schemas[i].sql);
        assert_status(pawl_work_open(f->location, NULL, &work, &f->err), PAWL_CORRUPT, &f->err);
        assert_message(&f->err, changed_schemas[i].message);
        work_sql(f, changed_schemas[i].undo);
        assert_ok(pawl_work_open(f->location, NULL, &work, &f->err), &f->err);
        pawl_work_close(work, 0, NULL);
    }
}

/* Planted while the store is open. */
static void test_items_that_a_foreign_trigger_drops_are_not_taken_for_submitted(void **state)
{
    struct work_fixture *f = *state;

    if (!work_is(f, "postgres")) {
        return;
    }
    make_task(f, "T");
    work_sql(f,
             "CREATE FUNCTION eve() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;"
             "CREATE TRIGGER eve BEFORE INSERT ON work_items FOR EACH ROW EXECUTE FUNCTION eve()");
    assert_status(submit_after(f, "a", "T", NULL), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, "the server dropped rows");
    work_sql(f, "DROP FUNCTION eve CASCADE");
    assert_ok(submit_after(f, "a", "T", NULL), &f->err);
}

/* Every statement reports success, so only the sweep finds it. */
static void test_a_sweep_finds_a_trigger_that_was_planted_while_the_store_is_open(void **state)
{
    struct work_fixture *f = *state;

    if (!work_is(f, "postgres")) {
        return;
    }
    make_task(f, "T");
    assert_int_equal(sweep(f).due, 0);
    work_sql(f,
             "CREATE FUNCTION eve() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
             " DELETE FROM work_items WHERE work_item_id = NEW.work_item_id; RETURN NULL; END$$;"
             "CREATE TRIGGER eve AFTER INSERT ON work_items FOR EACH ROW EXECUTE FUNCTION eve()");
    assert_status(pawl_work_sweep(f->work, NULL, &f->err), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, "a trigger that is not pawl's, 'eve' on 'work_items'");
    work_sql(f, "DROP FUNCTION eve CASCADE");
    assert_int_equal(sweep(f).due, 0);
}

static void test_a_session_without_triggers_is_refused(void **state)
{
    struct work_fixture *f = *state;
    pawl_work *work = NULL;
    char location[1024];

    if (!work_is(f, "postgres")) {
        return;
    }
    snprintf(location,
             sizeof(location),
             "%s%coptions=-c%%20session_replication_role%%3Dreplica",
             f->location,
             strchr(f->location, '?') == NULL ? '?' : '&');
    assert_status(pawl_work_open(location, NULL, &work, &f->err), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, "session_replication_role is 'replica'");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_what_it_completes_frees_what_comes_after),
        work_test(test_a_completed_item_that_it_deletes_was_completed),
        work_test(test_what_it_fails_or_deletes_fails_what_comes_after),
        work_test(test_what_it_left_expired_goes_on),
        work_test(test_a_trigger_or_rule_that_is_not_ours_is_refused),
        work_test(test_a_trigger_that_is_called_like_a_table_of_ours_is_refused),
        work_test(test_a_schema_that_has_our_names_only_is_refused),
        work_test(test_items_that_a_foreign_trigger_drops_are_not_taken_for_submitted),
        work_test(test_a_sweep_finds_a_trigger_that_was_planted_while_the_store_is_open),
        work_test(test_a_session_without_triggers_is_refused),
        work_test(test_a_column_and_an_index_of_the_users_are_accepted),
        work_test(test_the_store_lets_happen_what_is_in_the_table_and_nothing_else),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
