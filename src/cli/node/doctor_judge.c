#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "cli/node/doctor.h"
#include "cli/node/open_files.h"

#define MIB (UINT64_C(1) << 20)
#define FREE_SPACE_WARNING_FACTOR 4
#define OPEN_FILES_MIN 1024
#define OPEN_FILES_WANTED 4096
#define PG_VERSION_MIN 130000
/* 2026-01-01T00:00:00Z: this program did not exist before. */
#define CLOCK_MIN_US (INT64_C(1767225600) * US_PER_S)
#define CLOCK_BACK_US_MAX (INT64_C(60) * US_PER_S)

struct pawl__cli_finding pawl__cli_finding_of(
    enum pawl__cli_verdict verdict, const char *check, const char *cost, const char *says, ...)
{
    struct pawl__cli_finding finding = { .check = check, .verdict = verdict, .cost = cost };
    va_list args;

    va_start(args, says);
    vsnprintf(finding.says, sizeof(finding.says), says, args);
    va_end(args);
    return finding;
}

struct pawl__cli_finding pawl__cli_finding_problem(const char *check,
                                                   const pawl_error *error,
                                                   const char *cost)
{
    struct pawl__cli_finding finding = {
        .check = check, .verdict = VERDICT_PROBLEM, .status = error->status, .cost = cost
    };

    snprintf(finding.says, sizeof(finding.says), "%s", error->message);
    return finding;
}

void pawl__cli_finding_fix(struct pawl__cli_finding *finding, const char *fix, ...)
{
    va_list args;

    va_start(args, fix);
    vsnprintf(finding->fix, sizeof(finding->fix), fix, args);
    va_end(args);
}

/* Higher is worse. */
static int badness(pawl_status status)
{
    switch (pawl_status_exit_code(status)) {
    case 0:
        return 0;
    case 6:
        return 4;
    case 2:
        return 3;
    case 1:
        return 2;
    default:
        return 1;
    }
}

pawl_status pawl__cli_doctor_worst(const struct pawl__cli_finding *findings,
                                   size_t count,
                                   bool strict)
{
    pawl_status worst = PAWL_OK;

    for (size_t i = 0; i < count; i++) {
        pawl_status status = findings[i].status;

        if (findings[i].verdict == VERDICT_WARNING && strict) {
            status = PAWL_FAILED;
        }
        worst = badness(status) > badness(worst) ? status : worst;
    }
    return worst;
}

struct pawl__cli_finding pawl__cli_judge_directory(const struct pawl__cli_directory_facts *facts)
{
    static const char check[] = "data directory";
    unsigned mode = facts->mode & 07777u;
    struct pawl__cli_finding finding;

    if (facts->owner != facts->user && facts->user != 0) {
        finding = pawl__cli_finding_warning(check,
                                            "its owner can read and replace every store",
                                            "'%s' belongs to user %u, not to you",
                                            facts->path,
                                            (unsigned)facts->owner);
        pawl__cli_finding_fix(&finding, "chown -R %u '%s'", (unsigned)facts->user, facts->path);
        return finding;
    }
    if ((mode & 077u) != 0) {
        finding = pawl__cli_finding_warning(check,
                                            "other users of this machine can read what is stored",
                                            "'%s' has mode %04o",
                                            facts->path,
                                            mode);
        pawl__cli_finding_fix(&finding, "chmod 700 '%s'", facts->path);
        return finding;
    }
    return pawl__cli_finding_ok(
        check, "'%s', mode %04o%s", facts->path, mode, facts->created ? ", created now" : "");
}

struct pawl__cli_finding pawl__cli_judge_space(const char *path,
                                               uint64_t free_bytes,
                                               uint64_t needed_bytes)
{
    static const char check[] = "disk space";
    unsigned long long free_mib = free_bytes / MIB;
    unsigned long long needed_mib = needed_bytes / MIB;
    struct pawl__cli_finding finding;
    pawl_error error = PAWL_ERROR_INIT;

    if (free_bytes < needed_bytes) {
        pawl__fail(&error,
                   PAWL_NO_SPACE,
                   "%llu MiB are free below '%s', and applications stop writing under %llu MiB",
                   free_mib,
                   path,
                   needed_mib);
        finding = pawl__cli_finding_problem(
            check, &error, "applications refuse commands; ledger and work stop when it is full");
    } else if (free_bytes / FREE_SPACE_WARNING_FACTOR < needed_bytes) {
        finding =
            pawl__cli_finding_warning(check,
                                      "applications will soon refuse commands",
                                      "%llu MiB are free below '%s', and applications stop writing "
                                      "under %llu MiB",
                                      free_mib,
                                      path,
                                      needed_mib);
    } else {
        return pawl__cli_finding_ok(check, "%llu MiB are free", free_mib);
    }
    pawl__cli_finding_fix(&finding, "free some space, or set store.free_space_min lower");
    return finding;
}

struct pawl__cli_finding pawl__cli_judge_memory(uint64_t bytes, uint64_t store_bytes)
{
    static const char check[] = "memory";
    unsigned long long mib = bytes / MIB;
    unsigned long long store_mib = store_bytes / MIB;

    if (bytes == 0 || bytes / 2 >= store_bytes) {
        return pawl__cli_finding_ok(check, "stores of applications use up to %llu MiB", store_mib);
    }
    struct pawl__cli_finding finding = pawl__cli_finding_warning(
        check,
        "a node with busy applications may be killed for its memory",
        "stores of applications use up to %llu MiB, and there are %llu MiB",
        store_mib,
        mib);
    pawl__cli_finding_fix(&finding, "set store.memory_max to half of the memory, or less");
    return finding;
}

struct pawl__cli_finding pawl__cli_judge_open_files(uint64_t soft,
                                                    uint64_t hard,
                                                    uint32_t connections)
{
    static const char check[] = "open files";
    struct pawl__cli_finding finding;
    uint32_t fit =
        pawl__cli_connections_that_fit(hard, connections); /* a node raises its limit itself */

    if (fit < connections) {
        finding =
            pawl__cli_finding_warning(check,
                                      "'pawl serve' takes fewer connections than it should",
                                      "only %llu may be open at once, and half of them are for "
                                      "stores: %u of server.connections_max (%u) fit",
                                      (unsigned long long)hard,
                                      fit,
                                      connections);
        pawl__cli_finding_fix(&finding,
                              "raise the hard limit to %llu: LimitNOFILE= or limits.conf",
                              MAX(2ULL * connections, (unsigned long long)OPEN_FILES_WANTED));
        return finding;
    }
    if (soft >= OPEN_FILES_MIN) {
        return pawl__cli_finding_ok(check, "up to %llu at once", (unsigned long long)soft);
    }
    finding =
        pawl__cli_finding_warning(check,
                                  "a busy program runs out of file descriptors and refuses work",
                                  "only %llu may be open at once",
                                  (unsigned long long)soft);
    pawl__cli_finding_fix(&finding,
                          hard >= OPEN_FILES_WANTED
                              ? "ulimit -n %d, or LimitNOFILE= of the service"
                              : "raise the hard limit to %d: LimitNOFILE= or limits.conf",
                          OPEN_FILES_WANTED);
    return finding;
}

struct pawl__cli_finding pawl__cli_judge_clock(int64_t now_us, int64_t newest_us)
{
    static const char check[] = "clock";
    static const char cost[] = "stored times are wrong; order and leases do not depend on them";
    char now[PAWL__TIME_SIZE];
    char newest[PAWL__TIME_SIZE];
    struct pawl__cli_finding finding;

    pawl__time_rfc3339(now_us, now);
    if (now_us < CLOCK_MIN_US) {
        finding = pawl__cli_finding_warning(check, cost, "it is %s, which cannot be", now);
    } else if (newest_us > now_us && newest_us - now_us > CLOCK_BACK_US_MAX) {
        pawl__time_rfc3339(newest_us, newest);
        finding = pawl__cli_finding_warning(
            check, cost, "it is %s, but a store was changed at %s", now, newest);
    } else {
        return pawl__cli_finding_ok(check, "it is %s", now);
    }
    pawl__cli_finding_fix(&finding, "set the clock: timedatectl set-ntp true");
    return finding;
}

struct pawl__cli_finding pawl__cli_judge_pg_access(const struct pawl__cli_pg_facts *facts)
{
    static const char check[] = "PostgreSQL";
    struct pawl__cli_finding finding;
    pawl_error error = PAWL_ERROR_INIT;
    int major = facts->version / 10000;
    int minor = facts->version % 10000;

    if (facts->version < PG_VERSION_MIN) {
        pawl__fail(&error,
                   PAWL_UNSUPPORTED,
                   "%s is PostgreSQL %d.%d; at least %d is needed",
                   facts->location,
                   major,
                   minor,
                   PG_VERSION_MIN / 10000);
        finding =
            pawl__cli_finding_problem(check, &error, "ledger and work cannot be stored there");
        pawl__cli_finding_fix(&finding, "upgrade the server");
        return finding;
    }
    if (facts->read_only) {
        pawl__fail(&error, PAWL_DENIED, "%s is read-only", facts->location);
        finding = pawl__cli_finding_problem(check, &error, "nothing can be stored there");
        pawl__cli_finding_fix(&finding,
                              "name the primary in database_url, or unset "
                              "default_transaction_read_only");
        return finding;
    }
    return pawl__cli_finding_ok(check, "%s, version %d.%d", facts->location, major, minor);
}

struct pawl__cli_finding pawl__cli_judge_pg_durability(const struct pawl__cli_pg_facts *facts)
{
    static const char check[] = "PostgreSQL durability";
    struct pawl__cli_finding finding;

    if (!facts->fsync) {
        finding = pawl__cli_finding_warning(
            check, "a power cut can destroy the whole database", "fsync is off");
        pawl__cli_finding_fix(&finding, "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();");
    } else if (!facts->full_page_writes) {
        finding = pawl__cli_finding_warning(
            check, "a power cut can leave half-written pages behind", "full_page_writes is off");
        pawl__cli_finding_fix(&finding,
                              "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf();");
    } else if (strcmp(facts->default_commit, "off") == 0) {
        /* Not a warning: our sessions switch it on for themselves. */
        finding = pawl__cli_finding_ok(
            check, "synchronous_commit is off by default; pawl's sessions switch it on");
    } else {
        finding =
            pawl__cli_finding_ok(check,
                                 "fsync and full_page_writes are on, synchronous_commit is %s",
                                 facts->default_commit);
    }
    return finding;
}

static bool is_file(const char *url)
{
    return strncmp(url, "sqlite:", strlen("sqlite:")) == 0;
}

struct pawl__cli_finding pawl__cli_judge_choice(const struct pawl__cli_choice_facts *facts)
{
    static const char check[] = "store";

    if (facts->database_origin == NULL) {
        return pawl__cli_finding_ok(
            check, "SQLite files in '%s', because database_url is not set", facts->data);
    }
    if (facts->data_flag) {
        return pawl__cli_finding_ok(check,
                                    "SQLite files in '%s', because --data was given and wins over "
                                    "database_url (%s)",
                                    facts->data,
                                    facts->database_origin);
    }
    if (is_file(facts->database_url)) {
        return pawl__cli_finding_ok(check,
                                    "the file '%s', because database_url is set (%s)",
                                    facts->database_url,
                                    facts->database_origin);
    }
    return pawl__cli_finding_ok(
        check, "PostgreSQL, because database_url is set (%s)", facts->database_origin);
}

struct pawl__cli_finding pawl__cli_judge_location(const char *location)
{
    static const char check[] = "durability";

    if (strstr(location, "durability=normal") == NULL) {
        return pawl__cli_finding_ok(check, "what is acknowledged survives a power cut");
    }
    struct pawl__cli_finding finding = pawl__cli_finding_warning(
        check, "a power cut can take the last events that were acknowledged", "durability=normal");
    pawl__cli_finding_fix(&finding, "leave ?durability=normal out of database_url");
    return finding;
}
