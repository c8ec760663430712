/* Random play: one seed draws commands, each is carried out on three stores side by side, and what they
 * answer and hold must be the same. Memory is the model; SQLite and PostgreSQL play against it, and the
 * links to PostgreSQL are cut on the way. All of them run on one virtual clock.
 *
 *   draw.c      what comes next: mostly sensible, now and then stale, repeated or wrong
 *   act.c       carries a command out on one store and writes down its answer
 *   cut.c       the same on PostgreSQL while a link is cut: a client that repeats what it does not know
 *   state.c     everything that a store holds, as text
 *   names.c     ids that a store made by itself have one name for all
 *
 * Where stores may differ, and how it is made equal:
 *   ids made by a store           one name for the three of them, by the command that made them
 *   jitter of a backoff           drawn from the step, not by the store
 *   a claim whose answer is lost  leases of which nobody was told stay leased; the others claim as many
 *   a repetition that tells what it did itself (a sweep, a cancel)   what the lost try has done is not told
 *                                 again: not compared
 *   a task's status after a cut   is derived by the next sweep; the play does that part of it at once
 *   two changes of one instant    SQLite makes the second a microsecond younger: its triggers tell our
 *                                 changes from others' by a new updated_at. So the clock moves by ticks
 *   bytes given back, messages    not compared
 */
#ifndef TESTS_PLAY_H
#define TESTS_PLAY_H

#include "lib/check.h"

#include <pawl/work.h>

#include "base/core/buf.h"
#include "base/core/random.h"
#include "lib/pg_fixture.h"
#include "lib/tempdir.h"
#include "lib/virtual_clock.h"

enum {
    PLAY_STORES = 3,
    PLAY_NAME = 48, /* bytes of a name, with its NUL */
    PLAY_ITEMS_MAX = 8,
    PLAY_AFTER_MAX = 2,
    PLAY_TYPES = 3,
    PLAY_KEYS = 8,
    PLAY_RECENT = 64,
    PLAY_TRACE = 60, /* commands that a failure shows */
    PLAY_TICK_US = 10,
};

enum play_store { PLAY_MODEL, PLAY_SQLITE, PLAY_POSTGRES };

enum play_kind {
    PLAY_TASK,
    PLAY_SET_STATUS,
    PLAY_CANCEL_TASK,
    PLAY_SUBMIT,
    PLAY_CLAIM,
    PLAY_HEARTBEAT,
    PLAY_COMPLETE,
    PLAY_COMPLETE_AND_CLAIM,
    PLAY_FAIL,
    PLAY_RELEASE,
    PLAY_CANCEL,
    PLAY_SWEEP,
    PLAY_RETENTION,
    PLAY_CHECKPOINT,
    PLAY_BEGIN,
    PLAY_KEY_COMPLETE,
    PLAY_KEY_FAIL,
    PLAY_KEY_RELEASE,
    PLAY_SCHEDULE_PUT,
    PLAY_SCHEDULE_REMOVE,
    PLAY_SCHEDULE_FIRE,
    PLAY_PASS,
    PLAY_REOPEN,
    PLAY_KINDS
};

enum play_cut {
    PLAY_WHOLE,
    PLAY_CUT_IDLE, /* the server ends every session before the call */
    PLAY_CUT_EXEC_BEFORE,
    PLAY_CUT_EXEC_AFTER,
    PLAY_CUT_COMMIT_BEFORE,
    PLAY_CUT_COMMIT_AFTER,
    PLAY_CUTS
};

struct play_item {
    char id[PLAY_NAME]; /* its name; `made`: the store makes the id */
    bool made;
    char after[PLAY_AFTER_MAX][PLAY_NAME];
    size_t after_count;
    int64_t delay_ms;
};

struct play_command {
    enum play_kind kind;
    enum play_cut cut;
    char id[PLAY_NAME]; /* of an item, schedule or checkpoint */
    char task[PLAY_NAME];
    char who[PLAY_NAME]; /* holder or owner: each claim has its own */
    char key[PLAY_NAME];
    uint64_t token;
    uint32_t types; /* bits */
    uint32_t count;
    uint32_t lease_ms;
    int number; /* which message, output, status, checkpoint type, ... */
    bool yes;   /* retryable, take_over, with a lease, archive */
    int64_t pass_us;
    size_t item_count;
    struct play_item items[PLAY_ITEMS_MAX];
};

struct play_alias {
    char name[PLAY_NAME];
    char actual[PLAY_STORES][PLAY_NAME];
};

struct play_lease {
    char id[PLAY_NAME];
    uint64_t token;
};

struct play_known {
    char id[PLAY_NAME];
    char task[PLAY_NAME];
};

struct play {
    uint64_t seed;
    uint64_t step;
    struct pawl__prng prng;
    struct pawl__clock_virtual clock;
    char dir[TEMPDIR_SIZE];
    struct pg_fixture postgres;
    pawl_work *work[PLAY_STORES];
    pawl_error err;

    /* What was seen, to draw from. */
    uint64_t tasks;
    uint64_t checkpoints;
    struct play_lease leases[PLAY_RECENT];
    uint64_t lease_count;
    struct play_known items[PLAY_RECENT];
    uint64_t item_count;
    uint64_t key_tokens[PLAY_KEYS];
    struct play_command last; /* of those with a token */

    struct play_alias *aliases;
    size_t alias_count;
    size_t alias_room;

    struct pawl__buf answers[PLAY_STORES];
    struct pawl__buf states[PLAY_STORES];
    struct pawl__buf trace[PLAY_TRACE];
    uint64_t cuts;     /* that a call met */
    uint64_t repeated; /* calls whose outcome was not known */
    uint64_t done[PLAY_KINDS];
};

extern const char *const play_store_names[PLAY_STORES];

/* --- draw.c --- */

void play_draw(struct play *play, struct play_command *ret_command);
/* What its answer taught. */
void play_saw_item(struct play *play, const char *id, const char *task);
void play_saw_lease(struct play *play, pawl_view name, uint64_t token);
const char *play_kind_name(enum play_kind kind);
void play_describe(const struct play_command *command, struct pawl__buf *text);

/* Content follows from the name, so that the same id again is the same item, as a rule. */
uint64_t play_hash(const char *name);

/* --- act.c --- */

/* One try. The answer is added to play->answers[store]; a status that says that it is not known what
 * happened is returned and adds nothing. */
pawl_status play_act(struct play *play, enum play_store store, const struct play_command *command);
pawl_status play_open(struct play *play, enum play_store store);

/* --- cut.c --- */

/* Until it is known what happened. May change `command` to what the others have to do. */
void play_postgres(struct play *play, struct play_command *command);

/* --- state.c --- */

void play_state(struct play *play, enum play_store store);

/* --- names.c --- */

void play_alias(struct play *play, const char *name, enum play_store store, const char *actual);
pawl_view play_actual(struct play *play, enum play_store store, const char *name);
/* With every id that a store made replaced by its name. */
void play_add_named(struct play *play,
                    enum play_store store,
                    struct pawl__buf *text,
                    pawl_view given);

#endif
