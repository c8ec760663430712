/* pawl ledger verify */
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/ledger/ledger.h"

static pawl_status print_report(const pawl_verify_report *report, bool good, pawl_error *reterr)
{
    char head[LEDGER_HEAD_SIZE];

    pawl__cli_ledger_head_text(&report->verified, head);
    json_t *row = good ? json_pack("{s:b, s:I, s:s, s:b}",
                                   "ok",
                                   1,
                                   "events",
                                   (json_int_t)report->verified.offset,
                                   "head",
                                   head,
                                   "anchor_missing",
                                   (int)report->anchor_missing)
                       : json_pack("{s:b, s:o, s:o, s:s, s:b}",
                                   "ok",
                                   0,
                                   "first_bad_offset",
                                   report->first_bad_offset == 0
                                       ? json_null()
                                       : json_integer((json_int_t)report->first_bad_offset),
                                   "what",
                                   pawl__cli_out_text(report->what),
                                   "verified",
                                   head,
                                   "anchor_missing",
                                   (int)report->anchor_missing);
    return pawl__cli_ledger_print_row(row, reterr);
}

static pawl_status print_text(const pawl_verify_report *report, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(1 << 16);
    char head[LEDGER_HEAD_SIZE];

    pawl__cli_ledger_head_text(&report->verified, head);
    pawl__buf_add_format(&out, "ok: %llu events", (unsigned long long)report->verified.offset);
    if (report->verified.offset > 0) {
        pawl__buf_add_format(&out, ", head %s", head);
    }
    pawl__buf_add_char(&out, '\n');
    if (report->anchor_missing) {
        pawl__buf_add_text(&out,
                           "note: it has no anchor, so a tail that was cut off would not show\n");
    }
    return pawl__cli_out_add(&out, reterr);
}

static pawl_status conclude(const struct pawl__cli_run *run,
                            const pawl_verify_report *report,
                            pawl_status status,
                            pawl_error *reterr)
{
    char head[LEDGER_HEAD_SIZE];

    if (status == PAWL_OK) {
        return run->json ? print_report(report, true, reterr) : print_text(report, reterr);
    }
    if (status == PAWL_CORRUPT && run->json && report->what[0] != '\0') {
        pawl_status printed = print_report(report, false, NULL);
        (void)printed; /* what was found matters more than that nobody could be told here */
    }
    if (status == PAWL_CANCELLED && report->verified.offset > 0) {
        pawl__cli_ledger_head_text(&report->verified, head);
        return pawl__fail(reterr, status, "stopped; continue with --resume %s", head);
    }
    return status;
}

static pawl_status verify_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress work = pawl__cli_progress_start(run, "verify", false);
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    pawl_verify_report report = { .size = sizeof(pawl_verify_report), .first_bad_offset = 0 };
    pawl_ledger_head expected;
    const char *expect = pawl__cli_args_value(run->args, "expect");
    const char *resume = pawl__cli_args_value(run->args, "resume");

    if (expect != NULL) {
        TRY(pawl__cli_ledger_head_parse("expect", expect, &expected, reterr));
        options.expect = &expected;
    }
    if (resume != NULL) {
        TRY(pawl__cli_ledger_head_parse("resume", resume, &options.from, reterr));
    }
    TRY(pawl__cli_ledger_open(run, LEDGER_TO_VERIFY, &ledger, reterr));
    const pawl_watch watch = pawl__cli_progress_watch(&work);
    options.watch = &watch;
    pawl_status status = pawl_ledger_verify(ledger, &options, &report, reterr);
    pawl__cli_progress_done(&work);
    return conclude(run, &report, status, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_ledger_verify = {
    .name = "verify",
    .summary = "prove that nothing was changed, removed or inserted",
    .description =
        "Walks the hash chain from the first event to the last, the turns, and the anchor beside "
        "the file. Exit code 6 when something is wrong; the message names the first offset that "
        "was changed, removed, inserted, reordered or cut off.\n\n"
        "A chain that was rewritten as a whole is whole, too. So keep its head somewhere else "
        "('pawl ledger stats' prints it) and hand it in with --expect: it must be part of the "
        "chain still.\n\n"
        "Without an anchor (a snapshot has none, and a ledger gets one when it is written to) it "
        "says "
        "so: a tail that was cut off would not show then. That alone is no error.\n\n"
        "Ctrl-C stops it and prints how far it came, for --resume.",
    .flags =
        FLAGS(FLAG("expect", "OFFSET:HASH", "A head from earlier that must be part of the chain."),
              FLAG("resume", "OFFSET:HASH", "Resume after this head, which was verified before.")),
    .examples =
        EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND "pawl ledger verify --data ./data", "everything"),
                 { .line = "pawl ledger verify --data ./data --expect 12:2c26b46b68ffc68ff99b"
                           "453c1d30413413422d706483bfa0f98a5e886266e7ae",
                   .says = "everything, and what was noted earlier" }),
    .when_damaged = "stop the writers, then go back to the newest good snapshot with `pawl ledger "
                    "restore DIR`",
    .run = verify_run,
};
