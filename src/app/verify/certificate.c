/* The certificate: from the log, that the numbers of a workspace were each used once. */
#include <inttypes.h>

#include "app/core/internal.h"
#include "app/verify/gapless.h"
#include "app/verify/verify.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"

enum { LOOK_EVERY = 256 }; /* events */

struct sequence_check {
    const pawl_app *app;
    uint64_t workspace;
    uint16_t sequence;
    struct app_gapless gapless;
    struct verify_progress progress;
    uint64_t stored;              /* the last number as it is stored, which covers the log... */
    uint64_t covered_before;      /* ...before this offset */
    uint64_t covered_last;        /* the highest number of those events */
    bool damaged;                 /* one of the first two cannot be read: neither is compared */
    uint64_t next_offset;         /* of the log */
    pawl_app_finding_visit visit; /* NULL: nobody, or it has seen enough */
    void *context;
    pawl_app_certificate certificate;
};

static const char *const fault_words[] = { "missing", "doubled",  "ahead",
                                           "behind",  "no_event", "damaged" };

const char *pawl_app_fault_word(pawl_app_fault fault)
{
    return (size_t)fault < COUNT_OF(fault_words) ? fault_words[fault] : "unknown";
}

static void check_done(struct sequence_check *check)
{
    pawl__app_gapless_done(&check->gapless);
}

static void report(struct sequence_check *check, pawl_app_finding finding)
{
    finding.size = sizeof(finding);
    finding.sequence = check->sequence;
    check->certificate.findings++;
    if (check->visit != NULL) {
        INSIDE(check->app);
        if (!check->visit(check->context, &finding)) {
            check->visit = NULL;
        }
    }
}

static void expect_offset(struct sequence_check *check, uint64_t offset)
{
    if (offset > check->next_offset) {
        report(check,
               (pawl_app_finding){ .size = sizeof(pawl_app_finding),
                                   .fault = PAWL_APP_NO_EVENT,
                                   .first = check->next_offset,
                                   .last = offset - 1 });
    }
    check->next_offset = offset + 1;
}

static pawl_status use_number(struct sequence_check *check,
                              uint64_t number,
                              uint64_t offset,
                              pawl_error *reterr)
{
    bool fresh = true;

    TRY(pawl__app_gapless_use(&check->gapless, number, &fresh, reterr));
    if (!fresh) {
        report(check,
               (pawl_app_finding){ .size = sizeof(pawl_app_finding),
                                   .fault = PAWL_APP_DOUBLED,
                                   .first = number,
                                   .last = number,
                                   .plog_offset = offset });
    }
    if (offset < check->covered_before) {
        check->covered_last = MAX(check->covered_last, number);
    }
    return PAWL_OK;
}

static pawl_status use_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct sequence_check *check = context;
    check->certificate.events++;
    check->progress.log_entries++;
    if (check->certificate.events % LOOK_EVERY == 0) {
        TRY(pawl__app_verify_look(&check->progress, reterr));
    }
    expect_offset(check, event->plog_offset);
    if (event->workspace != check->workspace) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < event->number_count; i++) {
        if (event->numbers[i].sequence == check->sequence) {
            TRY(use_number(check, event->numbers[i].number, event->plog_offset, reterr));
        }
    }
    return PAWL_OK;
}

/* The offset first: commands that come in meanwhile make the number newer than it, never older. */
static pawl_status read_stored(struct sequence_check *check,
                               struct app_partition *partition,
                               pawl_error *reterr)
{
    pawl_seq_storage storage = pawl__app_seq_storage(&partition->seq);
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = storage.read_next_offset(storage.context, &check->covered_before, &error);

    if (status == PAWL_OK) {
        status = storage.read_numbers(storage.context,
                                      check->workspace,
                                      &check->sequence,
                                      1,
                                      INT64_MAX,
                                      &check->stored,
                                      &error);
    }
    if (status == PAWL_CORRUPT) { /* a finding like others: the log is there all the same */
        check->damaged = true;
        report(check,
               (pawl_app_finding){ .size = sizeof(pawl_app_finding), .fault = PAWL_APP_DAMAGED });
        return PAWL_OK;
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

/* Stored numbers may be older than the log, which will be read again, and never newer. */
static void compare_with_stored(struct sequence_check *check)
{
    if (check->damaged) {
        return;
    }
    if (check->covered_before > check->next_offset) {
        report(check,
               (pawl_app_finding){ .size = sizeof(pawl_app_finding),
                                   .fault = PAWL_APP_NO_EVENT,
                                   .first = check->next_offset,
                                   .last = check->covered_before - 1 });
    }
    if (check->stored > check->gapless.last) {
        report(check,
               (pawl_app_finding){ .size = sizeof(pawl_app_finding),
                                   .fault = PAWL_APP_AHEAD,
                                   .first = check->stored,
                                   .last = check->gapless.last });
    }
    if (check->stored < check->covered_last) {
        report(check,
               (pawl_app_finding){ .size = sizeof(pawl_app_finding),
                                   .fault = PAWL_APP_BEHIND,
                                   .first = check->stored,
                                   .last = check->covered_last });
    }
}

static pawl_status conclude(struct sequence_check *check, pawl_error *reterr)
{
    const struct app_gapless *gapless = &check->gapless;

    compare_with_stored(check);
    for (size_t i = 0; i < gapless->missing_count; i++) {
        report(check,
               (pawl_app_finding){ .size = sizeof(pawl_app_finding),
                                   .fault = PAWL_APP_MISSING,
                                   .first = gapless->missing[i].first,
                                   .last = gapless->missing[i].last });
    }
    check->certificate.initial = gapless->initial;
    check->certificate.last = gapless->last;
    check->certificate.used = gapless->used;
    return check->certificate.findings == 0
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "sequence '%s' of workspace %" PRIu64 ": %" PRIu64
                            " %s wrong with its numbers",
                            pawl_app_sequence_name(check->app, check->sequence),
                            check->workspace,
                            check->certificate.findings,
                            check->certificate.findings == 1 ? "thing is" : "things are");
}

pawl_status pawl_app_verify_sequence(pawl_app *app,
                                     uint64_t workspace,
                                     uint16_t sequence,
                                     pawl_app_finding_visit visit,
                                     void *context,
                                     const pawl_watch *watch,
                                     pawl_app_certificate *ret_certificate,
                                     pawl_error *reterr)
{
    NEED(app, ret_certificate, reterr);
    TRY(pawl__check_sized("ret_certificate", ret_certificate, reterr));
    struct app_partition *partition = pawl__app_partition(app, workspace);
    uint64_t initial = pawl__app_initial_of(&app->definition.descriptor, sequence);
    AUTO(check_done)
    struct sequence_check check = {
        .app = app,
        .workspace = workspace,
        .sequence = sequence,
        .next_offset = 1,
        .progress.watch = PAWL_WATCH_INIT,
        .visit = visit,
        .context = context,
    };

    TRY(pawl__take_sized(
        "watch", watch, &check.progress.watch, sizeof(check.progress.watch), reterr));
    if (initial == 0) {
        return pawl__fail_detail(reterr,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_UNKNOWN_SEQUENCE,
                                 "application '%s' has no sequence %u",
                                 app->definition.descriptor.name,
                                 sequence);
    }
    pawl__app_gapless_init(&check.gapless, initial);
    TRY(read_stored(&check, partition, reterr)); /* before the log: both get longer meanwhile */
    TRY(pawl__app_seq_end(&partition->seq, &check.progress.log_entries_max, reterr));
    TRY(pawl__app_verify_look(&check.progress, reterr));
    TRY(pawl__app_seq_walk(&partition->seq, 1, 0, use_event, &check, reterr));
    pawl_status status = conclude(&check, reterr);
    pawl__give_sized(&check.certificate, sizeof(check.certificate), ret_certificate);
    return status;
}

/* --- which there are --- */

/* Of all kinds; an id that several have comes once. */
static bool came_before(const pawl_app_descriptor *descriptor, size_t kind, uint16_t sequence)
{
    for (size_t i = 0; i < kind; i++) {
        for (size_t k = 0; k < descriptor->kinds[i].sequence_count; k++) {
            if (descriptor->kinds[i].sequences[k].id == sequence) {
                return true;
            }
        }
    }
    return false;
}

pawl_status pawl_app_visit_sequences(const pawl_app *app,
                                     pawl_app_sequence_visit visit,
                                     void *context,
                                     pawl_error *reterr)
{
    NEED(app, visit, reterr);
    const pawl_app_descriptor *descriptor = &app->definition.descriptor;
    const pawl_app_sequence *common = pawl__app_common_sequences();
    bool wanted = true;
    INSIDE(app);

    for (size_t i = 0; i < APP_COMMON_SEQUENCES && wanted; i++) {
        wanted = visit(context, &common[i]);
    }
    for (size_t i = 0; i < descriptor->kind_count && wanted; i++) {
        const pawl_app_kind *kind = &descriptor->kinds[i];

        for (size_t k = 0; k < kind->sequence_count && wanted; k++) {
            wanted = came_before(descriptor, i, kind->sequences[k].id)
                     || visit(context, &kind->sequences[k]);
        }
    }
    return PAWL_OK;
}
