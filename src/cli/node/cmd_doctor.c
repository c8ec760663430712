#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/terminal/display.h"
#include "cli/commands.h"
#include "cli/frame/run.h"
#include "cli/frame/text.h"
#include "cli/node/capabilities.h"
#include "cli/node/doctor.h"

#define DOCTOR_BYTES_MAX (1u << 20)
#define VERDICT_COLUMN 2
#define CHECK_COLUMN 11
#define TEXT_COLUMN 34

static const char *const verdict_names[] = {
    [VERDICT_OK] = "ok",
    [VERDICT_WARNING] = "warning",
    [VERDICT_PROBLEM] = "PROBLEM",
};

static void add_wrapped(struct pawl__buf *out, const char *before, const char *text, size_t width)
{
    AUTO(pawl__buf_done) struct pawl__buf safe = BUF_INIT(DOCTOR_BYTES_MAX);

    pawl__buf_add_text(&safe, before);
    pawl__display_add_message(&safe, pawl_view_of(text));
    pawl__cli_text_wrap(out,
                        safe.data == NULL ? "" : safe.data,
                        (struct pawl__cli_wrap){ width, TEXT_COLUMN, TEXT_COLUMN });
    out->broken = out->broken || safe.broken;
}

static void add_finding(struct pawl__buf *out,
                        const struct pawl__cli_finding *finding,
                        size_t width)
{
    pawl__buf_add_format(out,
                         "%*s%-*s%-*s ",
                         VERDICT_COLUMN,
                         "",
                         CHECK_COLUMN - VERDICT_COLUMN,
                         verdict_names[finding->verdict],
                         TEXT_COLUMN - CHECK_COLUMN - 1,
                         finding->check);
    add_wrapped(out, "", finding->says, width);
    if (finding->cost != NULL) {
        pawl__cli_text_pad(out, 0, TEXT_COLUMN);
        add_wrapped(out, "cost: ", finding->cost, width);
    }
    if (finding->fix[0] != '\0') {
        pawl__cli_text_pad(out, 0, TEXT_COLUMN);
        add_wrapped(out, "fix: ", finding->fix, width);
    }
}

static void add_text(struct pawl__buf *out, const struct pawl__cli_doctor *doctor, size_t width)
{
    pawl__buf_add_text(out, "Checked\n");
    for (size_t i = 0; i < doctor->count; i++) {
        add_finding(out, &doctor->findings[i], width);
    }
    pawl__buf_add_text(out, "\nWhat works today\n");
    for (size_t i = 0; i < PAWL__CAPABILITIES_COUNT; i++) {
        pawl__buf_add_format(out,
                             "  %-9s%-22s %s\n",
                             pawl__cli_capabilities[i].works ? "yes" : "not yet",
                             pawl__cli_capabilities[i].name,
                             pawl__cli_capabilities[i].gives);
    }
}

static json_t *finding_json(const struct pawl__cli_finding *finding)
{
    static const char *const words[] = { "ok", "warning", "problem" };

    return json_pack("{s:s, s:s, s:s, s:o, s:s*, s:o*}",
                     "check",
                     finding->check,
                     "verdict",
                     words[finding->verdict],
                     "status",
                     pawl_status_name(finding->status),
                     "says",
                     pawl__cli_out_text(finding->says),
                     "cost",
                     finding->cost,
                     "fix",
                     finding->fix[0] == '\0' ? NULL : pawl__cli_out_text(finding->fix));
}

static pawl_status add_json(struct pawl__buf *out,
                            const struct pawl__cli_doctor *doctor,
                            pawl_error *reterr)
{
    for (size_t i = 0; i < doctor->count; i++) {
        TRY(pawl__cli_out_add_json(out, finding_json(&doctor->findings[i]), reterr));
    }
    for (size_t i = 0; i < PAWL__CAPABILITIES_COUNT; i++) {
        const struct pawl__cli_capability *capability = &pawl__cli_capabilities[i];

        json_t *row = json_pack(
            "{s:s, s:b}", "capability", capability->name, "works", (int)capability->works);
        TRY(pawl__cli_out_add_json(out, row, reterr));
    }
    return PAWL_OK;
}

static size_t count_of(const struct pawl__cli_doctor *doctor, enum pawl__cli_verdict verdict)
{
    size_t count = 0;

    for (size_t i = 0; i < doctor->count; i++) {
        count += doctor->findings[i].verdict == verdict;
    }
    return count;
}

static pawl_status conclude(const struct pawl__cli_doctor *doctor, pawl_error *reterr)
{
    bool strict = pawl__cli_args_has(doctor->args, "strict");
    pawl_status worst = pawl__cli_doctor_worst(doctor->findings, doctor->count, strict);
    size_t problems = count_of(doctor, VERDICT_PROBLEM);
    size_t warnings = count_of(doctor, VERDICT_WARNING);

    if (worst == PAWL_OK) {
        return PAWL_OK;
    }
    return pawl__fail(reterr,
                      worst,
                      "doctor found %zu problem%s and %zu warning%s%s",
                      problems,
                      problems == 1 ? "" : "s",
                      warnings,
                      warnings == 1 ? "" : "s",
                      problems == 0 ? ", which --strict does not forgive" : "");
}

static pawl_status doctor_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(DOCTOR_BYTES_MAX);
    AUTO(pawl__cli_doctor_done)
    struct pawl__cli_doctor doctor = { .args = run->args, .clock = run->clock };

    TRY(pawl__cli_doctor_inspect(&doctor, reterr));
    if (run->json) {
        TRY(add_json(&out, &doctor, reterr));
    } else {
        add_text(&out, &doctor, MAX(run->term.width, (size_t)80));
    }
    TRY(pawl__cli_out_add(&out, reterr));
    return conclude(&doctor, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_doctor = {
    .name = "doctor",
    .summary = "check settings, stores, disk and servers, and say what to do",
    .description =
        "Looks at everything that could cost a promise: the settings, the data directory and its "
        "file system, the stores in it, PostgreSQL when it is used, limits and the clock. Each "
        "check says ok, warning (works, but costs something) or problem (does not work), with the "
        "cost and the fix. It ends with what of pawl works today.\n\n"
        "Nothing is changed, except that a data directory that is missing is created.\n\n"
        "The exit code is that of the worst problem: 6 damaged; then 2 settings that are wrong or "
        "a "
        "store of a newer version; then 1 something that fails, such as a directory that cannot be "
        "written; then 5 something that is busy, unreachable, or has no space. 0 when there is no "
        "problem. With --strict a warning counts as 1.",
    .flags = FLAGS({ .name = "strict", .help = "Fail on warnings, too." },
                   { .name = "full", .help = "Read large stores whole, however long it takes." }),
    .examples = EXAMPLES(TESTED("pawl doctor --data ./data", "look at a directory"),
                         { .line = "pawl doctor --strict", .says = "before going into production" },
                         TESTED("pawl doctor --data ./data --json", "for a program")),
    .when_damaged = "each finding says how to fix it",
    .run = doctor_run,
    .no_settings = true, /* they are the first thing it checks */
};
