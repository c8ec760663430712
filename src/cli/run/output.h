/* What commands print, printed by us: each command in one piece, one after the other, as they end or in the
 * order in which they were claimed. What waits for its turn waits in a file. Any thread. */
#ifndef PAWL_CLI_RUN_OUTPUT_H
#define PAWL_CLI_RUN_OUTPUT_H

#include "base/terminal/term.h"
#include "base/thread/thread.h"
#include "cli/run/capture.h"

struct runner_held; /* of one command: where its bytes are */

struct runner_output {
    struct pawl__lock lock; /* covers everything below, and standard output and error */
    bool keep_order;
    uint64_t next;            /* in order: whose turn it is */
    struct runner_held *held; /* of next, next + 1, ... */
    size_t held_count;
    size_t held_cap;
    struct runner_capture file;      /* the bytes of all that are held */
    struct pawl__progress *progress; /* NULL: none */
    pawl_status status;              /* the first failure; nothing is printed any more */
    pawl_error error;
};

void pawl__cli_output_init(struct runner_output *output, bool keep_order);
void pawl__cli_output_done(struct runner_output *output);

/* Prints both streams (0: standard output, 1: error) when it is this one's turn. Every number from 0
 * on comes once. NULL: nothing to print. Fails when standard output did, now or earlier. */
PAWL_MUST_USE pawl_status pawl__cli_output_add(struct runner_output *output,
                                               uint64_t number,
                                               const struct runner_capture *out,
                                               const struct runner_capture *err,
                                               pawl_error *reterr);

/* Prints a message of the run itself at once, out of turn. */
PAWL_MUST_USE pawl_status pawl__cli_output_say(struct runner_output *output,
                                               const struct runner_capture *out,
                                               pawl_error *reterr);

/* Draws the progress, if there is one. */
void pawl__cli_output_progress(struct runner_output *output, uint64_t done, uint64_t total);

#endif
