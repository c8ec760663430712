/* A ledger file with a bit of everything in it, for tests that do something bad to it, and the ways
 * to do that behind the ledger's back.
 *
 *    1 .. 10   events e-1 .. e-10 of run "r", turn 0, payload {"n":1,"text":"marker-0001"} and so
 * on 11 .. 15   turn 1: begin, three events, commit 16 .. 21   turn 2: begin, an event, abandon;
 * begin again, an event, commit 22, 23     turn 3: begin, an event; still open 24 .. 30   events
 * e-24 .. e-30, as above */
#ifndef TESTS_LEDGER_SAMPLE_H
#define TESTS_LEDGER_SAMPLE_H

#include "lib/check.h"

#include <pawl/ledger.h>

#include "lib/file.h"
#include "lib/tempdir.h"

enum { SAMPLE_EVENTS = 30 };

struct sample {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    char anchor[TEMPDIR_SIZE + 64];
    pawl_error err;
};

#define SAMPLE_TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int sample_setup(void **state); /* makes the ledger and closes it; *state is a struct sample * */
int sample_teardown(void **state);

pawl_ledger *sample_open(struct sample *sample, const char *location); /* or fails the test */
void sample_fill(struct sample *sample, pawl_ledger *ledger);          /* the thirty */

/* Appends e-FIRST .. e-LAST. */
void sample_append(struct sample *sample, pawl_ledger *ledger, int first, int last);

pawl_ledger_head sample_head(struct sample *sample, pawl_ledger *ledger);

/* Verifies an open ledger: expects PAWL_OK with everything up to `offset`. */
void assert_verifies(struct sample *sample, pawl_ledger *ledger, uint64_t offset);

/* Both hold the same events with the same hashes, turns and embeddings. */
void assert_same_ledgers(struct sample *sample, pawl_ledger *a, pawl_ledger *b);

/* Opens the file, verifies it and compares it with `like` (NULL: does not). */
void assert_good_copy(struct sample *sample, const char *path, pawl_ledger *like, uint64_t offset);

/* pawl_snapshot_restore with these options and no others. `ret_path` has PATH_MAX bytes or is NULL. */
pawl_status sample_restore(const char *snapshot,
                           const char *target,
                           const char *tail_location,
                           char *ret_path,
                           pawl_error *reterr);

/* The same with accept_older. */
pawl_status sample_restore_older(const char *snapshot,
                                 const char *target,
                                 const char *tail_location,
                                 char *ret_path,
                                 pawl_error *reterr);

/* The names in a directory, sorted, with a space behind each. */
void sample_names(const char *directory, char *ret_names, size_t size);

/* Runs SQL on the file with plain SQLite. */
void sample_sql(const char *path, const char *sql);

/* Waits for the anchor of the ledger file to reach `offset`. */
void sample_await_anchor(struct sample *sample, uint64_t offset);

/* Files: bytes malloc'ed; a copy; the position of `text` in the file. */
void sample_copy(const char *from, const char *to);
size_t sample_find(const char *bytes, size_t size, const char *text);

#endif
