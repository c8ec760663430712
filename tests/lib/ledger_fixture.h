/* One ledger for each test of a contract suite, on the backend that the program was started for.
 *
 *     int main(int argc, char **argv)
 *     {
 *         ...
 *         return ledger_suite(argc, argv, tests, COUNT_OF(tests));
 *     }
 */
#ifndef TESTS_LEDGER_FIXTURE_H
#define TESTS_LEDGER_FIXTURE_H

#include "lib/check.h"

#include <pawl/ledger.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "lib/tempdir.h"

struct ledger_fixture {
    const char *backend;
    char dir[TEMPDIR_SIZE];
    char location[TEMPDIR_SIZE + 128];
    pawl_ledger *ledger;
    pawl_error err;
};

#define LEDGER_TEST(name) \
    cmocka_unit_test_setup_teardown(name, ledger_fixture_setup, ledger_fixture_teardown)

int ledger_fixture_setup(void **state);
int ledger_fixture_teardown(void **state);

/* Runs the tests on the backend of argv[1]. */
int ledger_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

/* False on a backend whose ledgers are gone when they are closed: the test has nothing to look at.
 * Closes it otherwise. */
bool ledger_fixture_close(struct ledger_fixture *f);
void ledger_fixture_open(struct ledger_fixture *f, const pawl_ledger_options *options);

/* Runs SQL on the store behind the ledger's back; false where there is none. Quote "offset", which
 * PostgreSQL keeps for itself. */
bool ledger_fixture_sql(struct ledger_fixture *f, const char *sql);

/* An event of run "r", kind "k", actor "a". */
pawl_event event_of(const char *id, int64_t turn, const char *payload);

/* Appends one event of run "r" or fails the test; its offset. */
uint64_t append_one(struct ledger_fixture *f, const char *id, int64_t turn, const char *payload);

uint64_t latest_offset(struct ledger_fixture *f);
pawl_turn *begin_turn(struct ledger_fixture *f, const char *run_id, int64_t turn);

/* Appends events without ids to a turn, one for each payload, of actor "a" and kind "k". */
void turn_says(struct ledger_fixture *f, pawl_turn *turn, const char *payloads);

/* Adds a line "offset run/turn kind payload", for events of the ledger's own without "pawl.". */
void add_event_line(struct pawl__buf *text, const pawl_event *event);

/* Everything that a reader with these options (NULL: all) shows, and "at N": its position. */
void assert_reads(struct ledger_fixture *f,
                  const pawl_reader_options *options,
                  const char *expected);

void assert_text(struct pawl__buf *text, const char *expected);

#endif
