/* One writer's life and what is found after it, for a ledger. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "torture/ledger/oracle.h"
#include "torture/torture.h"

#define SILENCE_NS_MAX (60 * NS_PER_S) /* a writer that says nothing for so long hangs */
#define CALLS_MIN 3                    /* fewer acknowledged ones make a round void */

const char torture_control_name[] = "loses with durability=normal, and nothing worse";

/* The last events are gone, but what is left is whole: it opens, verifies and fits its anchor. */
bool torture_control_passed(const struct torture_totals *totals)
{
    return totals->lost > 0 && totals->duplicated == 0 && totals->invented == 0 && totals->torn == 0
           && totals->broken == 0;
}

void torture_remember_nothing(struct torture *t)
{
    ledger_oracle_free(t->ledger_oracle);
    t->ledger_oracle = ledger_oracle_new();
}

void torture_session_done(struct torture *t)
{
    ledger_oracle_free(t->ledger_oracle);
}

static int64_t silence_deadline(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) + SILENCE_NS_MAX;
}

pawl_status torture_start_writer(struct torture *t,
                                 uint64_t batches,
                                 const char *setting,
                                 struct process *ret_writer,
                                 pawl_error *reterr)
{
    char first[32];
    char count[32];
    const char *argv[] = { LEDGER_WRITER, t->world.location, "write", first, count, NULL, NULL };
    const char *settings[] = { setting, NULL };
    struct process_options options = {
        .argv = argv,
        .settings = settings,
        .errors = t->world.errors,
    };

    ledger_oracle_ask(t->ledger_oracle, batches);
    snprintf(first, sizeof(first), "%" PRIu64, t->ledger_oracle->first);
    snprintf(count, sizeof(count), "%" PRIu64, batches);
    argv[5] = t->options.control ? "normal" : NULL;
    t->acknowledged = 0;
    return process_start(ret_writer, &options, reterr);
}

/* "CALL PLACE OFFSET OFFSET ..." */
static pawl_status take_acknowledgement(struct torture *t, const char *line, pawl_error *reterr)
{
    char *rest = NULL;
    uint64_t call = strtoull(line, &rest, 10);
    uint32_t place = (uint32_t)strtoul(rest, &rest, 10);

    while (*rest != '\0') {
        uint64_t offset = strtoull(rest, &rest, 10);
        if (!ledger_oracle_acknowledge(t->ledger_oracle, call, place++, offset)) {
            return pawl__fail(reterr, PAWL_FAILED, "the writer said '%s'", line);
        }
        t->totals.acknowledged++;
    }
    t->acknowledged++;
    return PAWL_OK;
}

pawl_status torture_follow(struct torture *t,
                           struct process *writer,
                           uint64_t batches_max,
                           bool *ret_through,
                           pawl_error *reterr)
{
    while (t->acknowledged < batches_max) {
        char line[512];
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

pawl_status torture_finish(struct torture *t,
                           struct process *writer,
                           bool *ret_through,
                           pawl_error *reterr)
{
    process_kill(writer);
    pawl_status status = torture_follow(t, writer, UINT64_MAX, ret_through, reterr);
    process_end(writer);
    return status;
}

pawl_status torture_drop_store(struct torture *t, pawl_error *reterr)
{
    const char *argv[] = { LEDGER_WRITER, t->world.location, "drop", NULL };
    struct process_options options = { .argv = argv, .errors = t->world.errors };
    struct process dropper;
    pawl_status status = process_start(&dropper, &options, reterr);

    if (status == PAWL_OK && process_end(&dropper) != 0) {
        status = pawl__fail(reterr, PAWL_FAILED, "the ledger could not be dropped");
    }
    return status;
}

static void see_line(struct ledger_oracle *oracle, const char *line)
{
    char *rest = NULL;

    if (strncmp(line, "anchor ", strlen("anchor ")) == 0) {
        ledger_oracle_see_anchor(oracle, strtoull(line + strlen("anchor "), NULL, 10));
        return;
    }
    uint64_t call = strtoull(line, &rest, 10);
    uint32_t place = (uint32_t)strtoul(rest, &rest, 10);
    ledger_oracle_see(oracle, call, place, strtoull(rest, NULL, 10));
}

/* *ret_opened is false when the ledger cannot be opened or does not verify. */
static pawl_status check_ledger(struct torture *t, bool *ret_opened, pawl_error *reterr)
{
    const char *argv[] = {
        LEDGER_WRITER, t->world.location, "check", t->options.control ? "normal" : NULL, NULL,
    };
    struct process_options options = { .argv = argv, .errors = t->world.errors };
    struct process checker;
    char line[512];
    enum process_event event = PROCESS_EOF;
    pawl_status status = process_start(&checker, &options, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    do {
        event = process_next(&checker, silence_deadline(), line, sizeof(line));
        if (event == PROCESS_LINE) {
            see_line(t->ledger_oracle, line);
        }
    } while (event == PROCESS_LINE || (event == PROCESS_INTERRUPTED && !torture_interrupted));
    if (event != PROCESS_EOF) {
        process_kill(&checker);
    }
    *ret_opened = process_end(&checker) == 0;
    return event == PROCESS_INTERRUPTED ? pawl__fail(reterr, PAWL_CANCELLED, "interrupted")
                                        : PAWL_OK;
}

static void print_complaints(const struct torture *t)
{
    char line[600];
    char last[600] = "";
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

static void print_round(const struct torture *t, const struct ledger_finding *finding, bool opened)
{
    printf("# round %" PRIu64 ", %s: %" PRIu64 " calls acknowledged, %" PRIu64 " of %" PRIu64
           " events lost, %" PRIu64 " twice, %" PRIu64 " invented, %" PRIu64
           " torn, anchor %" PRIu64 "%s\n",
           t->totals.rounds,
           t->round,
           t->acknowledged,
           finding->lost,
           finding->acknowledged,
           finding->duplicated,
           finding->invented,
           finding->torn,
           t->ledger_oracle->anchor,
           opened ? "" : ", DOES NOT OPEN OR VERIFY");
}

pawl_status torture_judge(struct torture *t, bool happened, pawl_error *reterr)
{
    bool opened = false;
    pawl_status status = check_ledger(t, &opened, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    struct ledger_finding finding = ledger_oracle_compare(t->ledger_oracle);
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
        t->options.fault == TORTURE_FAILPOINT ? !happened : t->acknowledged < CALLS_MIN;
    if (t->options.verbose || !opened || (wrong && !t->options.control)) {
        print_round(t, &finding, opened);
        if (!opened) {
            print_complaints(t);
        }
        fflush(stdout);
    }
    return opened ? PAWL_OK : replace_world(t, reterr);
}
