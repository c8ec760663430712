/* One writer's life and what is found after it. */
#include "torture/torture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/core/error.h"
#include "base/os/clock.h"

#define SILENCE_NS_MAX (60 * NS_PER_S) /* a writer that says nothing for so long hangs */
#define LINE_SIZE 600
#define BATCHES_MIN 3 /* fewer acknowledged ones make a round void */

static int64_t silence_deadline(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) + SILENCE_NS_MAX;
}

void torture_remember_nothing(struct torture *t)
{
    if (t->memory != NULL) {
        torture_subject.forget(t->memory);
    }
    t->memory = torture_subject.remember_nothing();
}

pawl_status torture_start_writer(struct torture *t,
                                 uint64_t batches,
                                 const char *setting,
                                 struct process *ret_writer,
                                 pawl_error *reterr)
{
    char first[32];
    char count[32];
    const char *argv[] = {
        torture_subject.writer,
        t->options.store,
        t->world.location,
        "write",
        first,
        count,
        t->options.control ? "unsafe" : NULL,
        NULL,
    };
    const char *settings[] = { setting, NULL };
    struct process_options options = {
        .argv = argv,
        .settings = settings,
        .errors = t->world.errors,
    };

    snprintf(first, sizeof(first), "%" PRIu64, torture_subject.ask(t->memory, batches));
    snprintf(count, sizeof(count), "%" PRIu64, batches);
    t->acknowledged = 0;
    return process_start(ret_writer, &options, reterr);
}

static pawl_status take_acknowledgement(struct torture *t, const char *line, pawl_error *reterr)
{
    uint64_t records = 0;

    if (!torture_subject.acknowledge(t->memory, line, &records)) {
        return pawl__fail(reterr, PAWL_FAILED, "the writer said '%s'", line);
    }
    t->acknowledged++;
    t->totals.acknowledged += records;
    return PAWL_OK;
}

pawl_status torture_follow(struct torture *t,
                           struct process *writer,
                           uint64_t batches_max,
                           bool *ret_through,
                           pawl_error *reterr)
{
    while (t->acknowledged < batches_max) {
        char line[LINE_SIZE];
        enum process_event event = process_next(writer, silence_deadline(), line, sizeof(line));
        if (event == PROCESS_SILENT) {
            return pawl__fail(reterr, PAWL_TIMEOUT, "the writer hangs");
        }
        if (torture_interrupted) {
            return pawl__fail(reterr, PAWL_CANCELLED, "interrupted");
        }
        if (event == PROCESS_INTERRUPTED) {
            continue; /* stopped and continued, say: not by us */
        }
        if (event == PROCESS_EOF) {
            return PAWL_OK;
        }
        if (strcmp(line, "end") == 0) {
            *ret_through = true;
            return PAWL_OK;
        }
        pawl_status status = take_acknowledgement(t, line, reterr);
        if (status != PAWL_OK) {
            return status;
        }
    }
    return PAWL_OK;
}

/* A fault of the machine is an error to report, never a reason to abort. Our own kill -9 and that of a
 * failpoint do not count. */
static void count_crash(struct torture *t, int wait_status)
{
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) != SIGKILL) {
        t->totals.aborted++;
        printf("# round %" PRIu64 ", %s: the writer ended by signal %d\n",
               t->totals.rounds + 1,
               t->round,
               WTERMSIG(wait_status));
    }
}

pawl_status torture_finish(struct torture *t,
                           struct process *writer,
                           bool *ret_through,
                           pawl_error *reterr)
{
    process_kill(writer);
    pawl_status status = torture_follow(t, writer, UINT64_MAX, ret_through, reterr);
    count_crash(t, process_end(writer));
    return status;
}

pawl_status torture_drop_store(struct torture *t, pawl_error *reterr)
{
    const char *argv[] = {
        torture_subject.writer, t->options.store, t->world.location, "drop", NULL
    };
    struct process_options options = { .argv = argv, .errors = t->world.errors };
    struct process dropper;
    pawl_status status = process_start(&dropper, &options, reterr);

    if (status == PAWL_OK && process_end(&dropper) != 0) {
        status = pawl__fail(reterr, PAWL_FAILED, "the store could not be dropped");
    }
    return status;
}

/* What the store says it has goes into the memory. *ret_opened is false when it cannot be opened, is
 * found to be damaged, or not read to the end. */
static pawl_status check_store(struct torture *t, bool *ret_opened, pawl_error *reterr)
{
    const char *argv[] = {
        torture_subject.writer,
        t->options.store,
        t->world.location,
        "check",
        t->options.control ? "unsafe" : NULL,
        NULL,
    };
    struct process_options options = { .argv = argv, .errors = t->world.errors };
    struct process checker;
    char line[LINE_SIZE];
    enum process_event event = PROCESS_EOF;
    pawl_status status = process_start(&checker, &options, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    do {
        event = process_next(&checker, silence_deadline(), line, sizeof(line));
        if (event == PROCESS_LINE) {
            torture_subject.see(t->memory, line);
        }
    } while (event == PROCESS_LINE || (event == PROCESS_INTERRUPTED && !torture_interrupted));
    if (event != PROCESS_EOF) {
        process_kill(&checker);
    }
    int wait_status = process_end(&checker);
    count_crash(t, wait_status);
    *ret_opened = wait_status == 0;
    return event == PROCESS_INTERRUPTED ? pawl__fail(reterr, PAWL_CANCELLED, "interrupted")
                                        : PAWL_OK;
}

static void print_complaints(const struct torture *t)
{
    char line[LINE_SIZE];
    char last[LINE_SIZE] = "";
    FILE *file = fopen(t->world.errors, "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        memcpy(last, line, sizeof(last));
    }
    if (file != NULL) {
        fclose(file);
    }
    last[strcspn(last, "\n")] = '\0';
    printf("#   last complaint: %s\n", last);
}

/* The disk is useless: a new one. */
static pawl_status replace_world(struct torture *t, pawl_error *reterr)
{
    torture_remember_nothing(t);
    world_end(&t->world);
    t->strict = t->world_options.strict;
    return world_make(&t->world, &t->world_options, reterr);
}

static void print_round(const struct torture *t, const struct torture_finding *finding, bool opened)
{
    printf("# round %" PRIu64 ", %s: %" PRIu64 " batches acknowledged, %" PRIu64 " of %" PRIu64
           " records lost, %" PRIu64 " twice, %" PRIu64 " invented, %" PRIu64 " torn%s\n",
           t->totals.rounds,
           t->round,
           t->acknowledged,
           finding->lost,
           finding->acknowledged,
           finding->duplicated,
           finding->invented,
           finding->torn,
           opened ? "" : ", DOES NOT OPEN");
}

pawl_status torture_judge(struct torture *t, bool happened, pawl_error *reterr)
{
    bool opened = false;
    pawl_status status = check_store(t, &opened, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    struct torture_finding finding = torture_subject.compare(t->memory);
    bool wrong = !opened || finding.lost > 0 || finding.duplicated > 0 || finding.invented > 0
                 || finding.torn > 0;
    t->totals.rounds++;
    t->totals.faults += happened;
    t->totals.lost += finding.lost;
    t->totals.duplicated += finding.duplicated;
    t->totals.invented += finding.invented;
    t->totals.torn += finding.torn;
    t->totals.broken += !opened;
    t->totals.empty +=
        t->options.fault == TORTURE_FAILPOINT ? !happened : t->acknowledged < BATCHES_MIN;
    if (t->options.verbose || !opened || (wrong && !t->options.control)) {
        print_round(t, &finding, opened);
        if (!opened) {
            print_complaints(t);
        }
        fflush(stdout);
    }
    return opened ? PAWL_OK : replace_world(t, reterr);
}
