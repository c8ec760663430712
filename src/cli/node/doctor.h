/* `pawl doctor`: looks at everything that could cost a promise, and says what it would cost and how
 * to fix it.
 *
 * A check gathers facts (doctor_inspect.c, doctor_stores.c: the world) and hands them to a judge
 * (doctor_judge.c: pure, tested without the world). It adds one finding or more. A new check is a
 * function and a line in the table of doctor_inspect.c.
 *
 * Doctor changes nothing, except that a data directory that is missing is created. */
#ifndef PAWL_CLI_NODE_DOCTOR_H
#define PAWL_CLI_NODE_DOCTOR_H

#include <sys/types.h>

#include <pawl/pawl.h>

#include "base/core/macros.h"
#include "cli/frame/args.h"

enum pawl__cli_verdict {
    VERDICT_OK,
    VERDICT_WARNING, /* works, but costs something; --strict fails on it */
    VERDICT_PROBLEM, /* something does not work; decides the exit code by its status */
};

#define FINDING_FIX_SIZE 256

struct pawl__cli_finding {
    const char *check; /* static */
    enum pawl__cli_verdict verdict;
    pawl_status status; /* of a problem; PAWL_OK otherwise */
    char says[PAWL_ERROR_MESSAGE_SIZE];
    const char *cost; /* static; NULL for ok */
    char fix[FINDING_FIX_SIZE];
};

#define FINDINGS_MAX 200 /* one store can fail in one way; more than this says nothing new */

struct pawl__config;
struct pawl__clock;

struct pawl__cli_doctor {
    const struct pawl__cli_args *args;
    struct pawl__config *config; /* NULL when it could not be loaded */
    struct pawl__clock *clock;
    const char *data; /* the data directory; NULL without a configuration */
    bool database;    /* ledger and work live where database_url says */
    bool postgres;    /* ... which is PostgreSQL */
    bool data_usable; /* it is there and may be read and written */
    struct pawl__cli_finding *findings;
    size_t count;
};

/* Runs every check, in order. */
PAWL_MUST_USE pawl_status pawl__cli_doctor_inspect(struct pawl__cli_doctor *doctor,
                                                   pawl_error *reterr);
void pawl__cli_doctor_done(struct pawl__cli_doctor *doctor);
void pawl__cli_doctor_add(struct pawl__cli_doctor *doctor, struct pawl__cli_finding finding);

/* The status of the worst finding, which decides the exit code. From worst to least: damage; what cannot be
 * used (bad settings, a newer version); what fails; what could not be checked or may pass by itself (busy,
 * unreachable, no space). Warnings count, as FAILED, only with `strict`. */
pawl_status pawl__cli_doctor_worst(const struct pawl__cli_finding *findings,
                                   size_t count,
                                   bool strict);

/* Findings. `says` is a printf format. */
#define pawl__cli_finding_ok(check, ...) pawl__cli_finding_of(VERDICT_OK, check, NULL, __VA_ARGS__)
#define pawl__cli_finding_warning(check, cost, ...) \
    pawl__cli_finding_of(VERDICT_WARNING, check, cost, __VA_ARGS__)
PRINTF_LIKE(4, 5)
struct pawl__cli_finding pawl__cli_finding_of(
    enum pawl__cli_verdict verdict, const char *check, const char *cost, const char *says, ...);
struct pawl__cli_finding pawl__cli_finding_problem(const char *check,
                                                   const pawl_error *error,
                                                   const char *cost);
PRINTF_LIKE(2, 3)
void pawl__cli_finding_fix(struct pawl__cli_finding *finding, const char *fix, ...);

/* --- judges --- */

struct pawl__cli_directory_facts {
    const char *path;
    bool created;
    mode_t mode;
    uid_t owner;
    uid_t user; /* who asks */
};
struct pawl__cli_finding pawl__cli_judge_directory(const struct pawl__cli_directory_facts *facts);

struct pawl__cli_finding pawl__cli_judge_space(const char *path,
                                               uint64_t free_bytes,
                                               uint64_t needed_bytes);

/* `bytes`: what the process may have, all of it; 0: nobody knows. */
struct pawl__cli_finding pawl__cli_judge_memory(uint64_t bytes, uint64_t store_bytes);

/* The file system that holds a path, as /proc/self/mountinfo tells it. */
struct pawl__cli_mount {
    char type[32]; /* "ext4"; "" when it is not known */
    bool no_barrier;
    bool read_only;
};
struct pawl__cli_mount pawl__cli_mount_of(pawl_view mountinfo, const char *path);
struct pawl__cli_finding pawl__cli_judge_mount(const char *path,
                                               const struct pawl__cli_mount *mount);

/* `connections` are those that `pawl serve` is to take. */
struct pawl__cli_finding pawl__cli_judge_open_files(uint64_t soft,
                                                    uint64_t hard,
                                                    uint32_t connections);

/* `newest_us`: the latest change to anything in the data directory; 0 when there is nothing. */
struct pawl__cli_finding pawl__cli_judge_clock(int64_t now_us, int64_t newest_us);

struct pawl__cli_pg_facts {
    const char *location;
    int version; /* 150012 is 15.12 */
    bool fsync;
    bool full_page_writes;
    bool read_only;
    const char *default_commit;
};
struct pawl__cli_finding pawl__cli_judge_pg_access(const struct pawl__cli_pg_facts *facts);
struct pawl__cli_finding pawl__cli_judge_pg_durability(const struct pawl__cli_pg_facts *facts);

/* A JetStream server, as its monitoring port tells it. */
struct pawl__cli_jetstream_facts {
    const char *host;
    const char *version;
    bool sync_always;
    int64_t sync_interval_ns; /* 0: it does not say */
};
struct pawl__cli_finding pawl__cli_judge_jetstream(const struct pawl__cli_jetstream_facts *facts);
/* `retry_ns`: after so long a producer may publish a message again. */
struct pawl__cli_finding pawl__cli_judge_duplicate_window(const char *stream,
                                                          int64_t window_ns,
                                                          int64_t retry_ns);

/* Where ledger and work live, and why. */
struct pawl__cli_choice_facts {
    const char *data;
    bool data_flag;              /* --data was given */
    const char *database_origin; /* where database_url was set; NULL: it was not */
    const char *database_url;    /* shown only when it is a file: others hold passwords */
};
struct pawl__cli_finding pawl__cli_judge_choice(const struct pawl__cli_choice_facts *facts);

/* Whether a location, by its own word, may lose what was acknowledged. */
struct pawl__cli_finding pawl__cli_judge_location(const char *location);

#endif
