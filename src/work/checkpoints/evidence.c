#include "work/checkpoints/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/quantity.h"
#include "base/core/sha256.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "work/checkpoints/command.h"

enum { EXIT_CODE_MAX = 255 };

/* --- Form ------------------------------------------------------------------------------------- */

static bool read_exit_code(pawl_view text, int64_t *ret_code)
{
    return text.len <= 3 && pawl__integer_parse(text, ret_code, NULL) == PAWL_OK && *ret_code >= 0
           && *ret_code <= EXIT_CODE_MAX && text.data[0] != '-';
}

static pawl_status check_expected(const pawl_evidence *evidence, pawl_error *reterr)
{
    struct pawl__sha256 hash;
    int64_t code;

    switch (evidence->kind) {
    case PAWL_EVIDENCE_FILE_SHA256:
        if (pawl__sha256_parse(evidence->expected, &hash, reterr) != PAWL_OK) {
            return pawl__fail_context(reterr, PAWL_INVALID, "expected");
        }
        return PAWL_OK;
    case PAWL_EVIDENCE_COMMAND_EXIT:
        if (!read_exit_code(evidence->expected, &code)) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "expected: '%.*s' is no exit code (0 to %d)",
                              VIEW_ARGS(evidence->expected),
                              (int)EXIT_CODE_MAX);
        }
        return PAWL_OK;
    default:
        if (evidence->expected.len > 0) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "expected: %s has none",
                              pawl__work_evidence_kind_text(evidence->kind));
        }
        return PAWL_OK;
    }
}

pawl_status pawl__work_evidence_check_form(const pawl_evidence *evidence, pawl_error *reterr)
{
    NEED_VIEW(evidence->subject, reterr);
    NEED_VIEW(evidence->expected, reterr);
    if ((size_t)evidence->kind > PAWL_EVIDENCE_ROW_EXISTS) {
        return pawl__fail(
            reterr, PAWL_INVALID, "kind: %d is no kind of evidence", (int)evidence->kind);
    }
    pawl_view subject = evidence->subject;
    if (subject.len == 0 || subject.len > PAWL_EVIDENCE_BYTES_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "subject: %zu bytes, must be 1 to %d",
                          subject.len,
                          PAWL_EVIDENCE_BYTES_MAX);
    }
    if (memchr(subject.data, '\0', subject.len) != NULL || !pawl__view_is_utf8(subject)) {
        return pawl__fail(reterr, PAWL_INVALID, "subject: not UTF-8 text, or with a NUL");
    }
    return check_expected(evidence, reterr);
}

/* --- Checking --------------------------------------------------------------------------------- */

static pawl_status copy_subject(const pawl_evidence *evidence, char **ret_text, pawl_error *reterr)
{
    *ret_text = pawl__view_dup(evidence->subject);
    return *ret_text != NULL ? PAWL_OK : pawl__fail(reterr, PAWL_NOMEM, "evidence");
}

static void say_errno(char *ret_detail, const char *what, int error_number)
{
    pawl_error error;

    (void)pawl__fail_errno(&error, error_number, "%s", what);
    snprintf(ret_detail, EVIDENCE_DETAIL_SIZE, "%s", error.message);
}

static pawl_status check_exists(const char *path, bool *ret_holds, char *ret_detail)
{
    struct stat st;

    *ret_holds = stat(path, &st) == 0;
    if (!*ret_holds) {
        say_errno(ret_detail, "the file is not there", errno);
    }
    return PAWL_OK;
}

static pawl_status check_sha256(
    const char *path, pawl_view expected, bool *ret_holds, char *ret_detail, pawl_error *reterr)
{
    struct pawl__sha256 wanted;
    struct pawl__sha256 found;
    struct stat st;
    int problem;
    /* Non-blocking: a pipe of that name must not block. */
    AUTO(pawl__fs_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    *ret_holds = false;
    if (fd < 0 || fstat(fd, &st) != 0) {
        say_errno(ret_detail, "the file cannot be read", errno);
        return PAWL_OK;
    }
    if (!S_ISREG(st.st_mode)) {
        snprintf(ret_detail, EVIDENCE_DETAIL_SIZE, "not a regular file");
        return PAWL_OK;
    }
    TRY(pawl__sha256_parse(expected, &wanted, reterr));
    TRY(pawl__fs_hash(fd, &found, &problem, reterr));
    if (problem != 0) {
        say_errno(ret_detail, "the file cannot be read", problem);
        return PAWL_OK;
    }
    char text[PAWL__SHA256_TEXT_SIZE];
    pawl__sha256_text(&found, text);
    *ret_holds = pawl__sha256_equal(&wanted, &found);
    if (!*ret_holds) {
        snprintf(ret_detail, EVIDENCE_DETAIL_SIZE, "the file has %s", text);
    }
    return PAWL_OK;
}

static pawl_status check_command(char *command,
                                 const pawl_evidence *evidence,
                                 const struct work_evidence_context *world,
                                 bool *ret_holds,
                                 char *ret_detail,
                                 pawl_error *reterr)
{
    struct work_command_end end;
    uint32_t ms_max = world->command_ms_max != 0 ? world->command_ms_max : EVIDENCE_COMMAND_MS_MAX;
    int64_t expected;

    if (!read_exit_code(evidence->expected, &expected)) {
        return pawl__fail(reterr, PAWL_INVALID, "expected: no exit code");
    }
    TRY(pawl__work_command_run(command, pawl__clock_or_real(world->clock), ms_max, &end, reterr));
    *ret_holds = !end.timed_out && end.signal == 0 && end.exit_code == expected;
    if (end.timed_out) {
        snprintf(ret_detail, EVIDENCE_DETAIL_SIZE, "not ended within %u ms", (unsigned)ms_max);
    } else if (end.signal != 0) {
        snprintf(ret_detail, EVIDENCE_DETAIL_SIZE, "ended by signal %d", end.signal);
    } else if (!*ret_holds) {
        snprintf(ret_detail,
                 EVIDENCE_DETAIL_SIZE,
                 "exit code %d instead of %d",
                 end.exit_code,
                 (int)expected);
    }
    return PAWL_OK;
}

static pawl_status check_row(const pawl_evidence *evidence,
                             const struct work_evidence_context *world,
                             bool *ret_holds,
                             char *ret_detail,
                             pawl_error *reterr)
{
    TRY(world->row_exists(world->context, evidence->subject, ret_holds, reterr));
    if (!*ret_holds) {
        snprintf(ret_detail, EVIDENCE_DETAIL_SIZE, "no such row");
    }
    return PAWL_OK;
}

pawl_status pawl__work_evidence_check(const pawl_evidence *evidence,
                                      const struct work_evidence_context *world,
                                      bool *ret_holds,
                                      char ret_detail[EVIDENCE_DETAIL_SIZE],
                                      pawl_error *reterr)
{
    AUTO(pawl__text_free) char *subject = NULL;
    TRY(copy_subject(evidence, &subject, reterr));
    ret_detail[0] = '\0';
    switch (evidence->kind) {
    case PAWL_EVIDENCE_FILE_EXISTS:
        return check_exists(subject, ret_holds, ret_detail);
    case PAWL_EVIDENCE_FILE_SHA256:
        return check_sha256(subject, evidence->expected, ret_holds, ret_detail, reterr);
    case PAWL_EVIDENCE_COMMAND_EXIT:
        return check_command(subject, evidence, world, ret_holds, ret_detail, reterr);
    case PAWL_EVIDENCE_ROW_EXISTS:
        break;
    }
    return check_row(evidence, world, ret_holds, ret_detail, reterr);
}
