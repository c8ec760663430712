/* Evidence that a checkpoint holds: checked on the caller's thread, never inside a transaction, because a
 * command may take long. */
#ifndef PAWL_WORK_CHECKPOINTS_EVIDENCE_H
#define PAWL_WORK_CHECKPOINTS_EVIDENCE_H

#include <pawl/work.h>

#define EVIDENCE_COMMAND_MS_MAX 60000 /* then the command and its children are killed */
#define EVIDENCE_DETAIL_SIZE 512

const char *pawl__work_evidence_kind_text(pawl_evidence_kind kind);
PAWL_MUST_USE bool pawl__work_evidence_kind_parse(pawl_view text, pawl_evidence_kind *ret_kind);

/* Whether a SELECT on the store gives a row. INVALID: it is none. */
typedef pawl_status (*work_evidence_row_exists)(void *context,
                                                pawl_view select,
                                                bool *ret_exists,
                                                pawl_error *reterr);

struct pawl__clock;

struct work_evidence_context {
    work_evidence_row_exists row_exists;
    void *context;
    uint32_t command_ms_max;   /* 0: EVIDENCE_COMMAND_MS_MAX */
    struct pawl__clock *clock; /* of that time. NULL: the real one */
};

/* Checks the form of a piece of evidence: its kind, and what that kind needs. */
PAWL_MUST_USE pawl_status pawl__work_evidence_check_form(const pawl_evidence *evidence,
                                                         pawl_error *reterr);

/* Checks whether it holds. PAWL_OK with *ret_holds false: `ret_detail` says why, in one line. Any other status
 * (no memory, no process, the store is gone) says nothing about the evidence. */
PAWL_MUST_USE pawl_status pawl__work_evidence_check(const pawl_evidence *evidence,
                                                    const struct work_evidence_context *world,
                                                    bool *ret_holds,
                                                    char ret_detail[EVIDENCE_DETAIL_SIZE],
                                                    pawl_error *reterr);

#endif
