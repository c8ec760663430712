/* The certificate: from the log, that the numbers of a workspace were each used once. */
#include <inttypes.h>

#include "app/core/internal.h"
#include "app/verify/gapless.h"
#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/thread/inside.h"

struct verify {
    const pawl_app *app;
    uint64_t workspace;
    uint16_t sequence;
    struct gapless gapless;
    uint64_t stored;         /* the last number as it is stored, which covers the log... */
    uint64_t covered_before; /* ...before this offset */
    uint64_t covered_last;   /* the highest number of those events */
    bool damaged;            /* one of the first two cannot be read: neither is compared */
    uint64_t next_offset;    /* of the log */
    pawl_app_finding_visitor visitor;
    void *context;
    pawl_app_certificate certificate;
};

static void report(struct verify *verify, pawl_app_finding finding)
{
    finding.sequence = verify->sequence;
    verify->certificate.findings++;
    if (verify->visitor != NULL) {
        struct pawl__inside inside;
        pawl__inside_enter(&inside, verify->app);
        verify->visitor(verify->context, &finding);
        pawl__inside_leave(&inside);
    }
}

static void expect_offset(struct verify *verify, uint64_t offset)
{
    if (offset > verify->next_offset) {
        report(verify,
               (pawl_app_finding){
                   .fault = PAWL_APP_NO_EVENT, .first = verify->next_offset, .last = offset - 1 });
    }
    verify->next_offset = offset + 1;
}

static pawl_status take_number(struct verify *verify,
                               uint64_t number,
                               uint64_t offset,
                               pawl_error *reterr)
{
    bool fresh = true;
    pawl_status status = pawl__gapless_use(&verify->gapless, number, &fresh, reterr);

    if (status == PAWL_OK && !fresh) {
        report(verify,
               (pawl_app_finding){ .fault = PAWL_APP_DOUBLED,
                                   .first = number,
                                   .last = number,
                                   .plog_offset = offset });
    }
    if (offset < verify->covered_before) {
        verify->covered_last = MAX(verify->covered_last, number);
    }
    return status;
}

static pawl_status take_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct verify *verify = context;
    verify->certificate.events++;
    expect_offset(verify, event->plog_offset);
    if (event->workspace != verify->workspace) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < event->number_count; i++) {
        if (event->numbers[i].sequence == verify->sequence) {
            TRY(take_number(verify, event->numbers[i].number, event->plog_offset, reterr));
        }
    }
    return PAWL_OK;
}

/* The offset first: commands that come in meanwhile make the number newer than it, never older. */
static pawl_status read_stored(struct verify *verify,
                               struct app_partition *partition,
                               pawl_error *reterr)
{
    pawl_seq_storage storage = pawl__app_seq_storage(&partition->seq);
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = storage.read_next_offset(storage.context, &verify->covered_before, &error);

    if (status == PAWL_OK) {
        status = storage.read_numbers(storage.context,
                                      verify->workspace,
                                      &verify->sequence,
                                      1,
                                      INT64_MAX,
                                      &verify->stored,
                                      &error);
    }
    if (status == PAWL_CORRUPT) { /* a finding like others: the log is there all the same */
        verify->damaged = true;
        report(verify, (pawl_app_finding){ .fault = PAWL_APP_DAMAGED });
        return PAWL_OK;
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

/* What is stored may be behind the log where the log will be read again, and never ahead of it. */
static void compare_with_stored(struct verify *verify)
{
    if (verify->damaged) {
        return;
    }
    if (verify->covered_before > verify->next_offset) {
        report(verify,
               (pawl_app_finding){ .fault = PAWL_APP_NO_EVENT,
                                   .first = verify->next_offset,
                                   .last = verify->covered_before - 1 });
    }
    if (verify->stored > verify->gapless.last) {
        report(verify,
               (pawl_app_finding){ .fault = PAWL_APP_AHEAD,
                                   .first = verify->stored,
                                   .last = verify->gapless.last });
    }
    if (verify->stored < verify->covered_last) {
        report(verify,
               (pawl_app_finding){ .fault = PAWL_APP_BEHIND,
                                   .first = verify->stored,
                                   .last = verify->covered_last });
    }
}

static pawl_status conclude(struct verify *verify, pawl_error *reterr)
{
    const struct gapless *gapless = &verify->gapless;

    compare_with_stored(verify);
    for (size_t i = 0; i < gapless->missing_count; i++) {
        report(verify,
               (pawl_app_finding){ .fault = PAWL_APP_MISSING,
                                   .first = gapless->missing[i].first,
                                   .last = gapless->missing[i].last });
    }
    verify->certificate.initial = gapless->initial;
    verify->certificate.last = gapless->last;
    verify->certificate.used = gapless->used;
    return verify->certificate.findings == 0
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "sequence '%s' of workspace %" PRIu64 ": %" PRIu64
                            " %s wrong with its numbers",
                            pawl_app_sequence_name(verify->app, verify->sequence),
                            verify->workspace,
                            verify->certificate.findings,
                            verify->certificate.findings == 1 ? "thing is" : "things are");
}

pawl_status pawl_app_verify_sequence(pawl_app *app,
                                     uint64_t workspace,
                                     uint16_t sequence,
                                     pawl_app_finding_visitor visitor,
                                     void *context,
                                     pawl_app_certificate *ret_certificate,
                                     pawl_error *reterr)
{
    NEED(app, reterr);
    NEED(ret_certificate, reterr);
    struct app_partition *partition = pawl__app_partition(app, workspace);
    uint64_t initial = pawl__app_initial_of(&app->definition.descriptor, sequence);
    struct verify verify = {
        .app = app,
        .workspace = workspace,
        .sequence = sequence,
        .next_offset = 1,
        .visitor = visitor,
        .context = context,
    };

    if (initial == 0) {
        return pawl__fail(reterr,
                          PAWL_UNKNOWN_SEQUENCE,
                          "application '%s' has no sequence %u",
                          app->definition.descriptor.name,
                          sequence);
    }
    pawl__gapless_init(&verify.gapless, initial);
    /* Before the log: commands that come in meanwhile make both longer. */
    pawl_status status = read_stored(&verify, partition, reterr);
    if (status == PAWL_OK) {
        status = pawl__app_seq_walk(&partition->seq, 1, take_event, &verify, reterr);
    }
    if (status == PAWL_OK) {
        status = conclude(&verify, reterr);
        *ret_certificate = verify.certificate;
    }
    pawl__gapless_done(&verify.gapless);
    return status;
}
