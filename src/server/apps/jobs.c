/* Jobs about an application: everything against everything, the certificate of a workspace, numbers made anew. */
#include <inttypes.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/object.h"
#include "server/apps/apps.h"

enum { FINDINGS_BYTES_MAX = 8 << 20 }; /* of a result; the rest is counted */

struct job_parameters {
    pawl_view app;
    uint64_t workspace;
    pawl_view sequence;
};
#define APP_FIELD                                                                                \
    {                                                                                            \
        FIELD(struct job_parameters, app, FIELD_TEXT), .flags = FIELD_REQUIRED | FIELD_SET,      \
                                                       .min = 1, .max = PAWL_APP_NAME_BYTES_MAX, \
                                                       .about = "The application's name."        \
    }

static const struct pawl__field rebuild_fields[] = { APP_FIELD };
static const struct pawl__record rebuild_record =
    RECORD("AppsRebuild", struct job_parameters, rebuild_fields);

static const struct pawl__field verify_fields[] = {
    APP_FIELD,
    { FIELD(struct job_parameters, workspace, FIELD_UINT64),
      .max = PAWL_APP_WORKSPACE_MAX,
      .about = "Only this one; 0 or none: all of them." },
};
static const struct pawl__record verify_record =
    RECORD("AppsVerify", struct job_parameters, verify_fields);

static const struct pawl__field certificate_fields[] = {
    APP_FIELD,
    { FIELD(struct job_parameters, workspace, FIELD_UINT64),
      .flags = FIELD_REQUIRED,
      .min = 1,
      .max = PAWL_APP_WORKSPACE_MAX },
    { FIELD(struct job_parameters, sequence, FIELD_TEXT), .about = "Only this one; none: all." },
};
static const struct pawl__record certificate_record =
    RECORD("AppsCertificate", struct job_parameters, certificate_fields);

/* --- the application --- */

static pawl_status find(struct apps_part *part,
                        pawl_view name,
                        struct node_app_state *ret_found,
                        pawl_error *reterr)
{
    if (!pawl__serve_app_find(part, name, ret_found)) {
        return pawl__fail(
            reterr, PAWL_NOT_FOUND, "there is no application '%.*s'", VIEW_ARGS(name));
    }
    return ret_found->app != NULL ? PAWL_OK
                                  : pawl__fail(reterr,
                                               PAWL_BUSY,
                                               "application '%.*s' is not open: %s",
                                               VIEW_ARGS(name),
                                               pawl__serve_why_not_open(ret_found));
}

static void release(struct node_app_state *found)
{
    pawl__serve_app_release(found->held);
}

static pawl_status check(void *state, const void *parameters, pawl_error *reterr)
{
    AUTO(release) struct node_app_state found = { .held = NULL };

    return find(state, ((const struct job_parameters *)parameters)->app, &found, reterr);
}

/* --- the sequence of a certificate --- */

struct named_sequence {
    pawl_view name;
    bool found;
};

static bool is_named(void *context, const pawl_app_sequence *sequence)
{
    struct named_sequence *named = context;

    named->found = pawl__view_is(named->name, sequence->name);
    return !named->found;
}

/* An unknown one would end as a certificate about nothing, which finds nothing wrong. */
static pawl_status check_sequence(void *state, const void *parameters, pawl_error *reterr)
{
    const struct job_parameters *given = parameters;
    struct named_sequence named = { .name = given->sequence, .found = given->sequence.len == 0 };
    AUTO(release) struct node_app_state found = { .held = NULL };

    TRY(find(state, given->app, &found, reterr));
    if (!named.found) {
        TRY(pawl_app_visit_sequences(found.app, is_named, &named, reterr));
    }
    return named.found ? PAWL_OK
                       : pawl__fail_detail(reterr,
                                           PAWL_INVALID,
                                           PAWL_DETAIL_UNKNOWN_SEQUENCE,
                                           "application '%.*s' has no sequence '%.*s'",
                                           VIEW_ARGS(given->app),
                                           VIEW_ARGS(given->sequence));
}

/* --- verifying --- */

static bool progress(void *context, uint64_t done, uint64_t total)
{
    struct pawl__job_run *run = context;

    pawl__serve_job_progress(run, done, total);
    return !pawl__cancelled(pawl__serve_job_cancelled(run));
}

static pawl_watch watch_of(struct pawl__job_run *run)
{
    pawl_watch watch = PAWL_WATCH_INIT;

    watch.progress = progress;
    watch.context = run;
    return watch;
}

struct findings {
    struct pawl__buf *text;
    uint64_t count;
    uint64_t left_out;
};

static bool add_damage(void *context, const pawl_app_damage *damage)
{
    struct findings *findings = context;

    if (findings->text->len > FINDINGS_BYTES_MAX) {
        findings->left_out++;
        return true;
    }
    pawl__buf_add_text(findings->text, findings->count++ == 0 ? "" : ",");
    struct pawl__object object = pawl__object_start(findings->text);
    pawl__object_text(&object, "part", pawl_view_of(pawl_app_part_word(damage->part)));
    pawl__object_text(&object, "what", pawl_view_of(damage->what));
    pawl__object_end(&object);
    return true;
}

static void add_report(struct pawl__object *object,
                       const pawl_app_report *report,
                       const struct findings *findings,
                       const pawl_error *verdict)
{
    pawl__object_key(object, "entries");
    struct pawl__object entries = pawl__object_start(object->buf);
    for (size_t i = 0; i < PAWL_APP_PARTS; i++) {
        pawl__object_integer(
            &entries, pawl_app_part_word((pawl_app_part)i), (int64_t)report->entries[i]);
    }
    pawl__object_end(&entries);
    pawl__object_bool(object, "anchor_missing", report->anchor_missing);
    pawl__object_bool(object, "whole", verdict->status == PAWL_OK);
    pawl__object_text(
        object,
        "code",
        pawl_view_of(verdict->status == PAWL_OK ? "" : pawl_status_name(verdict->status)));
    pawl__object_text(object, "detail", pawl_view_of(verdict->message));
    pawl__object_bool(object, "advised", verdict->advised);
    pawl__object_integer(object, "findings_left_out", (int64_t)findings->left_out);
}

static pawl_status verify(void *state,
                          struct pawl__job_run *run,
                          const void *parameters,
                          struct pawl__buf *result,
                          pawl_error *reterr)
{
    const struct job_parameters *given = parameters;
    AUTO(release) struct node_app_state found = { .held = NULL };
    struct findings findings = { .text = result };
    const pawl_watch watch = watch_of(run);
    pawl_app_report report = PAWL_APP_REPORT_INIT;
    pawl_error verdict = PAWL_ERROR_INIT;

    TRY(find(state, given->app, &found, reterr));
    struct pawl__object object = pawl__object_start(result);
    pawl__object_key(&object, "findings");
    pawl__buf_add_char(result, '[');
    pawl_status status = pawl_app_verify(
        found.app, given->workspace, add_damage, &findings, &watch, &report, &verdict);
    if (status != PAWL_OK && status != PAWL_CORRUPT) { /* it could not be checked */
        return pawl__fail_with(reterr, status, &verdict);
    }
    pawl__buf_add_char(result, ']');
    add_report(&object, &report, &findings, &verdict);
    pawl__object_end(&object);
    return PAWL_OK;
}

/* --- the certificate --- */

struct certifying {
    pawl_app *app;
    struct pawl__job_run *run;
    const struct job_parameters *given;
    struct pawl__buf *result;
    uint64_t rows;
    uint64_t findings; /* of the row */
    pawl_error error;  /* of a row; PAWL_OK: none */
};

static bool add_finding(void *context, const pawl_app_finding *finding)
{
    struct certifying *certifying = context;

    pawl__buf_add_format(certifying->result,
                         "%s{\"fault\":\"%s\",\"first\":%" PRIu64 ",\"last\":%" PRIu64
                         ",\"plog_offset\":%" PRIu64 "}",
                         certifying->findings++ == 0 ? "" : ",",
                         pawl_app_fault_word(finding->fault),
                         finding->first,
                         finding->last,
                         finding->plog_offset);
    return true;
}

static pawl_status add_certificate(struct certifying *certifying,
                                   const pawl_app_sequence *sequence,
                                   pawl_error *reterr)
{
    const struct job_parameters *given = certifying->given;
    const pawl_watch watch = watch_of(certifying->run);
    pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;

    if (given->sequence.len > 0 && !pawl__view_is(given->sequence, sequence->name)) {
        return PAWL_OK;
    }
    pawl__buf_add_text(certifying->result, certifying->rows++ == 0 ? "" : ",");
    struct pawl__object object = pawl__object_start(certifying->result);
    pawl__object_text(&object, "sequence", pawl_view_of(sequence->name));
    pawl__object_key(&object, "findings");
    pawl__buf_add_char(certifying->result, '[');
    certifying->findings = 0;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl_app_verify_sequence(certifying->app,
                                                  given->workspace,
                                                  sequence->id,
                                                  add_finding,
                                                  certifying,
                                                  &watch,
                                                  &certificate,
                                                  &error);
    if (status != PAWL_OK && certificate.findings == 0) { /* the log cannot be read */
        return pawl__fail_with(reterr, status, &error);
    }
    pawl__buf_add_char(certifying->result, ']');
    pawl__object_integer(&object, "initial", (int64_t)certificate.initial);
    pawl__object_integer(&object, "last", (int64_t)certificate.last);
    pawl__object_integer(&object, "used", (int64_t)certificate.used);
    pawl__object_end(&object);
    return PAWL_OK;
}

static bool certify(void *context, const pawl_app_sequence *sequence)
{
    struct certifying *certifying = context;

    return add_certificate(certifying, sequence, &certifying->error) == PAWL_OK;
}

static pawl_status certify_all(void *state,
                               struct pawl__job_run *run,
                               const void *parameters,
                               struct pawl__buf *result,
                               pawl_error *reterr)
{
    struct certifying certifying = {
        .run = run, .given = parameters, .result = result, .error = PAWL_ERROR_INIT
    };
    AUTO(release) struct node_app_state found = { .held = NULL };

    TRY(find(state, certifying.given->app, &found, reterr));
    certifying.app = found.app;
    pawl__buf_add_text(result, "{\"sequences\":[");
    TRY(pawl_app_visit_sequences(found.app, certify, &certifying, reterr));
    if (certifying.error.status != PAWL_OK) {
        return pawl__fail_with(reterr, certifying.error.status, &certifying.error);
    }
    pawl__buf_add_text(result, "]}");
    return PAWL_OK;
}

/* --- rebuilding --- */

static pawl_status rebuild(void *state,
                           struct pawl__job_run *run,
                           const void *parameters,
                           struct pawl__buf *result,
                           pawl_error *reterr)
{
    const struct job_parameters *given = parameters;

    TRY(pawl__serve_app_rebuild(state, given->app, pawl__serve_job_cancelled(run), reterr));
    pawl__buf_add_text(result, "{}");
    return PAWL_OK;
}

const struct pawl__job_kind pawl__serve_apps_jobs[APPS_JOB_KINDS] = {
    { .name = "apps.verify",
      .about = "Compares the logs, records, numbers and keys of an application with each other",
      .parameters = &verify_record,
      .scope = PAWL__SCOPE_READ,
      .check = check,
      .run = verify },
    { .name = "apps.certificate",
      .about = "Proves that the numbers of a workspace were each used once",
      .parameters = &certificate_record,
      .scope = PAWL__SCOPE_READ,
      .check = check_sequence,
      .run = certify_all },
    { .name = "apps.rebuild",
      .about = "Makes the stored numbers of an application anew from its logs",
      .parameters = &rebuild_record,
      .scope = PAWL__SCOPE_ADMIN,
      .check = check,
      .run = rebuild },
};
