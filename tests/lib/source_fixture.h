/* A source of each kind, for the contract of delivery/core/source.h: memory, jetstream, file or ledger. */
#ifndef TESTS_SOURCE_FIXTURE_H
#define TESTS_SOURCE_FIXTURE_H

#include "base/os/clock.h"
#include "delivery/core/source.h"
#include "lib/check.h"
#include "lib/tempdir.h"

struct source_fixture;

struct source_kind {
    const char *name;
    void (*make)(struct source_fixture *f); /* what the source reads; empty */
    void (*open)(struct source_fixture *f); /* fills `source` */
    void (*publish)(struct source_fixture *f, const char *payload);
    void (*destroy)(struct source_fixture *f);
};

struct source_fixture {
    struct delivery_source *source;
    const struct source_kind *kind;
    void *own; /* the kind's */
    char dir[TEMPDIR_SIZE];
    pawl_error error;
};

/* The kind from the command line. */
void source_fixture_choose(int argc, char **argv);

int source_fixture_start(void **state); /* group */
int source_fixture_end(void **state);
int source_fixture_open(void **state); /* test */
int source_fixture_close(void **state);

#define source_test(function) \
    cmocka_unit_test_setup_teardown(function, source_fixture_open, source_fixture_close)

/* Messages {"n": from} to {"n": to}. */
void source_publish(struct source_fixture *f, int from, int to);
bool source_is(const struct delivery_message *message, int number);

void source_restart(struct source_fixture *f, uint64_t sequence);
void source_reopen(struct source_fixture *f);
void source_state(struct source_fixture *f,
                  uint64_t probe,
                  struct delivery_stream_state *ret_state);
void source_await_acked(struct source_fixture *f,
                        uint64_t sequence); /* a server hears of it a little later */

/* Waits for `count` messages, at most 10 s. They may come in several batches: what is returned are copies with
 * payloads and without headers, good until the next call. */
struct delivery_batch source_fetch_all(struct source_fixture *f, size_t count);
void source_expect_none(struct source_fixture *f);

#endif
