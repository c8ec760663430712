/* Somebody changes the store, not the events: triggers and rules that drop what is written, keys that
 * are gone, rows where nobody looks. Nothing is acknowledged that is not stored, and verify tells. */
#include "lib/ledger_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool on_sqlite(const struct ledger_fixture *f)
{
    return strcmp(f->backend, "sqlite") == 0;
}

struct sabotage {
    const char *sql;
    const char *undo;
    const char *message; /* of the open and of verify */
};

static const struct sabotage sqlite_sabotage[] = {
    { "CREATE TRIGGER eve BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END",
      "DROP TRIGGER eve",
      "'eve' on 'events'" },
    { "CREATE TRIGGER eve AFTER INSERT ON events BEGIN DELETE FROM events WHERE offset = "
      "NEW.offset;"
      " END",
      "DROP TRIGGER eve",
      "DROP TRIGGER \"eve\"" },
    { "CREATE TRIGGER eve AFTER INSERT ON events WHEN NEW.id = 'first' BEGIN"
      " DELETE FROM events WHERE offset = NEW.offset; END",
      "DROP TRIGGER eve",
      "'eve' on 'events'" },
    { "CREATE TRIGGER eve AFTER INSERT ON events BEGIN"
      " UPDATE events SET payload = '0' WHERE offset = NEW.offset; END",
      "DROP TRIGGER eve",
      "'eve' on 'events'" },
    { "CREATE TRIGGER eve AFTER INSERT ON turns BEGIN DELETE FROM turns; END",
      "DROP TRIGGER eve",
      "'eve' on 'turns'" },
    { "CREATE TRIGGER eve BEFORE DELETE ON embeddings BEGIN SELECT RAISE(IGNORE); END",
      "DROP TRIGGER eve",
      "'eve' on 'embeddings'" },
    /* Names of tables that are not looked at. */
    { "CREATE TRIGGER schema_version BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END",
      "DROP TRIGGER schema_version",
      "'schema_version' on 'events'" },
    { "CREATE TRIGGER eve BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END;"
      "PRAGMA writable_schema = ON;"
      "UPDATE sqlite_schema SET name = 'sqlite_eve', sql = replace(sql, 'eve ', 'sqlite_eve ')"
      " WHERE name = 'eve'",
      "DROP TRIGGER sqlite_eve",
      "'sqlite_eve' on 'events'" },
};

#define EVE(body)                                                                        \
    "SET search_path = pawl; CREATE FUNCTION eve() RETURNS trigger LANGUAGE plpgsql AS " \
    "$$BEGIN " body " END$$;"
#define NO_EVE "DROP FUNCTION pawl.eve CASCADE"

static const struct sabotage postgres_sabotage[] = {
    { EVE("RETURN NULL;") "CREATE TRIGGER eve BEFORE INSERT ON events FOR EACH ROW"
                          " EXECUTE FUNCTION eve()",
      NO_EVE,
      "'eve' on 'events'" },
    { EVE("DELETE FROM pawl.events WHERE \"offset\" = NEW.\"offset\"; RETURN NULL;") "CREATE "
                                                                                     "TRIGGER eve "
                                                                                     "AFTER INSERT "
                                                                                     "ON events "
                                                                                     "FOR EACH ROW "
                                                                                     "EXECUTE "
                                                                                     "FUNCTION "
                                                                                     "eve()",
      NO_EVE,
      "a trigger that is not pawl's" },
    { EVE("IF NEW.id = 'first' THEN RETURN NULL; END IF; RETURN NEW;") "CREATE TRIGGER eve BEFORE "
                                                                       "INSERT ON events FOR EACH "
                                                                       "ROW EXECUTE FUNCTION eve()",
      NO_EVE,
      "'eve' on 'events'" },
    { EVE("NEW.payload := '0'; RETURN NEW;") "CREATE TRIGGER eve BEFORE INSERT ON events FOR EACH "
                                             "ROW EXECUTE FUNCTION eve()",
      NO_EVE,
      "'eve' on 'events'" },
    { EVE("RETURN NULL;") "CREATE TRIGGER eve BEFORE UPDATE ON ledger_head FOR EACH ROW"
                          " EXECUTE FUNCTION eve()",
      NO_EVE,
      "'eve' on 'ledger_head'" },
    { EVE("RETURN NULL;") "CREATE TRIGGER eve BEFORE INSERT ON turns FOR EACH ROW"
                          " EXECUTE FUNCTION eve()",
      NO_EVE,
      "'eve' on 'turns'" },
    { "CREATE RULE eve AS ON INSERT TO pawl.events DO INSTEAD NOTHING",
      "DROP RULE eve ON pawl.events",
      "a rule that is not pawl's" },
    { "CREATE RULE eve AS ON UPDATE TO pawl.ledger_head DO INSTEAD NOTHING",
      "DROP RULE eve ON pawl.ledger_head",
      "'eve' on 'ledger_head'" },
    { "ALTER TABLE pawl.events DROP CONSTRAINT events_id_key",
      "ALTER TABLE pawl.events ADD CONSTRAINT events_id_key UNIQUE (id)",
      "no index 'events_id_key'" },
};

static pawl_status append_two(struct ledger_fixture *f)
{
    pawl_event events[] = { event_of("first", 0, "1"), event_of("second", 0, "2") };

    return pawl_ledger_append_many(f->ledger, events, 2, NULL, &f->err);
}

static void assert_not_opened(struct ledger_fixture *f, const char *message)
{
    pawl_ledger *ledger = NULL;

    assert_status(pawl_ledger_open(f->location, NULL, &ledger, &f->err), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, message);
}

/* As `pawl ledger verify` does. */
static pawl_status verify_damaged(struct ledger_fixture *f, pawl_verify_report *ret_report)
{
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *ledger = NULL;

    *ret_report =
        (pawl_verify_report){ .size = sizeof(pawl_verify_report), .first_bad_offset = 99 };
    options.read_only = true;
    options.accept_damage = true;
    assert_ok(pawl_ledger_open(f->location, &options, &ledger, &f->err), &f->err);
    pawl_status status = pawl_ledger_verify(ledger, NULL, ret_report, &f->err);
    pawl_ledger_close(ledger, 0, NULL);
    return status;
}

static void assert_finds(struct ledger_fixture *f, uint64_t offset, const char *what)
{
    pawl_verify_report report = PAWL_VERIFY_REPORT_INIT;

    assert_status(verify_damaged(f, &report), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, what);
    assert_int_equal(report.first_bad_offset, offset);
    assert_string_not_equal(report.what, "");
}

static void try_out(struct ledger_fixture *f, const struct sabotage *sabotage)
{
    pawl_verify_report report = { .size = sizeof(pawl_verify_report), .first_bad_offset = 0 };
    uint64_t before = latest_offset(f);

    ledger_fixture_sql(f, sabotage->sql); /* under an open ledger that writes */
    pawl_status status = append_two(f);
    if (status != PAWL_CORRUPT) {
        fail_msg("%s: %s", sabotage->sql, pawl_status_name(status));
    }
    assert_int_equal(latest_offset(f), before);
    assert_status(pawl_ledger_verify(f->ledger, NULL, &report, &f->err), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, sabotage->message);
    assert_int_equal(report.first_bad_offset, 0); /* the events are whole */
    assert_int_equal(report.verified.offset, before);
    assert_not_opened(f, sabotage->message);
    assert_finds(f, 0, sabotage->message);

    ledger_fixture_sql(f, sabotage->undo);
    assert_ok(pawl_ledger_verify(f->ledger, NULL, &report, &f->err), &f->err);
    /* PostgreSQL keeps the plan of an INSERT that a rule made nothing of, also when the rule is gone. */
    ledger_fixture_close(f);
    ledger_fixture_open(f, NULL);
    assert_ok(append_two(f), &f->err);
}

static void test_triggers_rules_and_lost_keys_lose_nothing_and_are_found(void **state)
{
    struct ledger_fixture *f = *state;
    const struct sabotage *all = on_sqlite(f) ? sqlite_sabotage : postgres_sabotage;
    size_t count = on_sqlite(f) ? COUNT_OF(sqlite_sabotage) : COUNT_OF(postgres_sabotage);

    append_one(f, "whole", 0, "0");
    for (size_t i = 0; i < count; i++) {
        try_out(f, &all[i]);
        ledger_fixture_close(f); /* the next one meets an empty ledger that nobody touched */
        ledger_fixture_teardown(state);
        assert_int_equal(ledger_fixture_setup(state), 0);
        f = *state;
        append_one(f, "whole", 0, "0");
    }
}

static void test_triggers_on_tables_of_others_are_their_own(void **state)
{
    struct ledger_fixture *f = *state;

    ledger_fixture_sql(
        f,
        on_sqlite(f) ? "CREATE TABLE mine (x); CREATE INDEX mine_x ON mine(x);"
                       "CREATE TRIGGER mine BEFORE INSERT ON mine BEGIN SELECT RAISE(IGNORE); END;"
                       "CREATE INDEX events_turn ON events(turn)"
                     : "CREATE TABLE pawl.mine (x int); CREATE RULE mine AS ON INSERT TO pawl.mine"
                       " DO INSTEAD NOTHING; CREATE INDEX events_turn ON pawl.events(turn)");
    assert_ok(append_two(f), &f->err);
    ledger_fixture_close(f);
    ledger_fixture_open(f, NULL);
    assert_ok(pawl_ledger_verify(f->ledger, NULL, NULL, &f->err), &f->err);
}

/* A table that was made again: as it was but for its key. */
static void test_a_table_without_its_unique_key_is_refused(void **state)
{
    struct ledger_fixture *f = *state;

    if (!on_sqlite(f)) {
        return; /* 'ALTER TABLE' is in the list above */
    }
    append_one(f, "one", 0, "0");
    ledger_fixture_sql(
        f,
        "PRAGMA foreign_keys = OFF; CREATE TABLE other (offset INTEGER PRIMARY KEY AUTOINCREMENT,"
        " id TEXT UNIQUE ON CONFLICT REPLACE NOT NULL, run_id TEXT NOT NULL, turn INTEGER NOT NULL,"
        " kind TEXT NOT NULL, actor TEXT NOT NULL, payload TEXT NOT NULL, created_at TEXT NOT NULL,"
        " schema_version INTEGER NOT NULL DEFAULT 1, hash BLOB NOT NULL);"
        "INSERT INTO other SELECT * FROM events; DROP TABLE events;"
        "ALTER TABLE other RENAME TO events; CREATE INDEX idx_run_id ON events(run_id);"
        "CREATE INDEX idx_kind ON events(kind); CREATE INDEX idx_actor ON events(actor)");
    assert_int_equal(append_two(f), PAWL_CORRUPT);
    assert_not_opened(f, "the table 'events' is not the one that pawl made");
    assert_finds(f, 0, "the table 'events'");
}

/* --- rows --- */

#define FORGED                                                             \
    ", 'forged', 'r', 0, 'k', 'a', '0', '2026-01-01 00:00:00.000000', 1, " \
    "(SELECT hash FROM events WHERE \"offset\" = 1))"

static void test_an_event_before_the_first_is_found(void **state)
{
    struct ledger_fixture *f = *state;
    static const char *const offsets[] = { "0", "-7" };

    append_one(f, "one", 0, "0");
    for (size_t i = 0; i < COUNT_OF(offsets); i++) {
        char sql[256];
        snprintf(sql,
                 sizeof(sql),
                 "%sINSERT INTO events VALUES (%s" FORGED,
                 on_sqlite(f) ? "" : "SET search_path = pawl; ",
                 offsets[i]);
        ledger_fixture_sql(f, sql);
        assert_status(pawl_ledger_verify(f->ledger, NULL, NULL, &f->err), PAWL_CORRUPT, &f->err);
        assert_message(&f->err, "inserted: an event stands before the first");
        assert_not_opened(f, "inserted");
        assert_finds(f, 1, "inserted");
        ledger_fixture_sql(f,
                           on_sqlite(f) ? "DELETE FROM events WHERE offset < 1"
                                        : "DELETE FROM pawl.events WHERE \"offset\" < 1");
    }
}

/* Ends the log at `offset` as if there never had been more, but for the rows of turns. */
static void cut_off(struct ledger_fixture *f, const char *offset)
{
    char sql[512];
    char anchor[sizeof(f->location) + 16];

    ledger_fixture_close(f); /* the anchor is written before it goes */
    if (on_sqlite(f)) {
        snprintf(sql,
                 sizeof(sql),
                 "DELETE FROM events WHERE offset > %s; UPDATE sqlite_sequence SET seq = %s",
                 offset,
                 offset);
        snprintf(anchor, sizeof(anchor), "%s.anchor", f->location);
        assert_int_equal(unlink(anchor), 0);
    } else {
        snprintf(sql,
                 sizeof(sql),
                 "SET search_path = pawl; DELETE FROM events WHERE \"offset\" > %s;"
                 "UPDATE ledger_head SET (\"offset\", hash) ="
                 " (SELECT \"offset\", hash FROM events WHERE \"offset\" = %s)",
                 offset,
                 offset);
    }
    ledger_fixture_sql(f, sql);
}

static void test_a_tail_that_was_cut_off_a_turn_is_found_by_its_row(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *turn = begin_turn(f, "r", 1);

    turn_says(f, turn, "1 2");
    assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
    pawl_turn_free(turn);
    cut_off(f, "2"); /* in the turn: its commit is missing */
    assert_finds(f, 3, "cut off: the log ends at offset 2, a turn's row is about 4");
    ledger_fixture_open(f, NULL);
    turn = begin_turn(f, "r", 2);
    assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
    pawl_turn_free(turn);
    assert_status(pawl_ledger_verify(f->ledger, NULL, NULL, &f->err), PAWL_CORRUPT, &f->err);
}

static void test_a_row_of_a_turn_before_the_first_event_is_found(void **state)
{
    struct ledger_fixture *f = *state;
    static const char *const begins[] = { "0", "-3" };

    append_one(f, "one", 0, "0");
    for (size_t i = 0; i < COUNT_OF(begins); i++) {
        char sql[128];
        snprintf(sql,
                 sizeof(sql),
                 "INSERT INTO %sturns VALUES ('r', %zu, 1, 0, %s, 0)",
                 on_sqlite(f) ? "" : "pawl.",
                 i,
                 begins[i]);
        ledger_fixture_sql(f, sql);
        assert_finds(f, 1, "a turn's row is about an offset before the first");
        ledger_fixture_sql(f, on_sqlite(f) ? "DELETE FROM turns" : "DELETE FROM pawl.turns");
    }
}

static void test_an_emptied_ledger_is_not_a_new_one(void **state)
{
    struct ledger_fixture *f = *state;
    char anchor[sizeof(f->location) + 16];
    pawl_verify_report report = PAWL_VERIFY_REPORT_INIT;

    if (!on_sqlite(f)) { /* its head is in a row of its own */
        append_one(f, "one", 0, "0");
        ledger_fixture_sql(f, "DELETE FROM pawl.events");
        assert_not_opened(f, "the log ends at offset 0, its head is at 1");
        assert_finds(f, 1, "");
        return;
    }
    assert_ok(verify_damaged(f, &report), &f->err);
    assert_true(report.anchor_missing); /* it was never written to: nothing is wrong */
    append_one(f, "one", 0, "0");
    ledger_fixture_close(f);
    snprintf(anchor, sizeof(anchor), "%s.anchor", f->location);
    assert_int_equal(unlink(anchor), 0);
    ledger_fixture_sql(f, "DELETE FROM events");
    assert_not_opened(f, "cut off: the log ends at offset 0, but had events up to 1");
    assert_finds(f, 1, "cut off");
    ledger_fixture_sql(f, "DELETE FROM sqlite_sequence"); /* who forgets nothing */
    assert_ok(verify_damaged(f, &report), &f->err);
    assert_true(report.anchor_missing); /* is told that nobody can know */
    ledger_fixture_open(f, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_triggers_rules_and_lost_keys_lose_nothing_and_are_found),
        LEDGER_TEST(test_triggers_on_tables_of_others_are_their_own),
        LEDGER_TEST(test_a_table_without_its_unique_key_is_refused),
        LEDGER_TEST(test_an_event_before_the_first_is_found),
        LEDGER_TEST(test_a_tail_that_was_cut_off_a_turn_is_found_by_its_row),
        LEDGER_TEST(test_a_row_of_a_turn_before_the_first_event_is_found),
        LEDGER_TEST(test_an_emptied_ledger_is_not_a_new_one),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
