/* The certificate: from the log, that the numbers of a workspace were each used once. */
#include <inttypes.h>

#include "base/error.h"
#include "sequencer/app_internal.h"
#include "sequencer/gapless.h"

struct verify {
    uint64_t workspace;
    uint16_t sequence;
    struct gapless gapless;
    pawl_app_finding_visitor visitor;
    void *context;
    pawl_app_certificate certificate;
};

static void report(struct verify *verify, pawl_app_finding finding)
{
    finding.sequence = verify->sequence;
    verify->certificate.findings++;
    if (verify->visitor != NULL) {
        verify->visitor(verify->context, &finding);
    }
}

static pawl_status take_event(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct verify *verify = context;
    pawl_status status = PAWL_OK;

    verify->certificate.events++;
    if (event->workspace != verify->workspace) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < event->number_count && status == PAWL_OK; i++) {
        uint64_t number = event->numbers[i].number;
        bool fresh = true;
        if (event->numbers[i].sequence == verify->sequence) {
            status = pawl__gapless_use(&verify->gapless, number, &fresh, reterr);
        }
        if (status == PAWL_OK && !fresh) {
            report(verify,
                   (pawl_app_finding){ .fault = PAWL_APP_DOUBLED,
                                       .first = number,
                                       .last = number,
                                       .plog_offset = event->plog_offset });
        }
    }
    return status;
}

static pawl_status read_stored(const struct verify *verify,
                               struct app_partition *partition,
                               uint64_t *ret_number,
                               pawl_error *reterr)
{
    pawl_seq_storage storage = pawl__app_seq_storage(&partition->seq);

    return storage.read_numbers(
        storage.context, verify->workspace, &verify->sequence, 1, INT64_MAX, ret_number, reterr);
}

/* What is stored may be behind the log, never ahead of it: then numbers would be skipped. */
static pawl_status conclude(struct verify *verify, uint64_t stored, pawl_error *reterr)
{
    const struct gapless *gapless = &verify->gapless;

    if (stored > gapless->last) {
        report(
            verify,
            (pawl_app_finding){ .fault = PAWL_APP_AHEAD, .first = stored, .last = gapless->last });
    }

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
                            "sequence %u of workspace %" PRIu64 ": %" PRIu64
                            " things are wrong with its numbers",
                            verify->sequence,
                            verify->workspace,
                            verify->certificate.findings);
}

pawl_status pawl_app_verify_sequence(pawl_app *app,
                                     uint64_t workspace,
                                     uint16_t sequence,
                                     pawl_app_finding_visitor visitor,
                                     void *context,
                                     pawl_app_certificate *ret_certificate,
                                     pawl_error *reterr)
{
    struct app_partition *partition = pawl__app_partition(app, workspace);
    uint64_t initial = pawl__app_initial_of(&app->definition.descriptor, sequence);
    struct verify verify = {
        .workspace = workspace, .sequence = sequence, .visitor = visitor, .context = context
    };

    if (initial == 0) {
        return pawl__fail(reterr,
                          PAWL_UNKNOWN_SEQUENCE,
                          "application '%s' has no sequence %u",
                          app->definition.descriptor.name,
                          sequence);
    }
    uint64_t stored = 0;
    pawl__gapless_init(&verify.gapless, initial);
    /* Before the log: commands that come in meanwhile make both longer. */
    pawl_status status = read_stored(&verify, partition, &stored, reterr);
    if (status == PAWL_OK) {
        status = pawl__app_seq_walk(&partition->seq, 1, take_event, &verify, reterr);
    }
    if (status == PAWL_OK) {
        status = conclude(&verify, stored, reterr);
        *ret_certificate = verify.certificate;
    }
    pawl__gapless_done(&verify.gapless);
    return status;
}
