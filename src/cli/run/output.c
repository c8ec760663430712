#include "cli/run/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/frame/run.h"

struct runner_held {
    bool there;
    uint64_t start[2]; /* in the file */
    uint64_t len[2];
};

void pawl__cli_output_init(struct runner_output *output, bool keep_order)
{
    *output = (struct runner_output){
        .keep_order = keep_order,
        .file = RUNNER_CAPTURE_INIT,
    };
    pawl__lock_init(&output->lock);
}

void pawl__cli_output_done(struct runner_output *output)
{
    free(output->held);
    pawl__cli_capture_done(&output->file);
    pawl__lock_done(&output->lock);
}

/* Standard error cannot be reported about; standard output can. */
static pawl_status ignore_failure(void *context, pawl_view bytes, pawl_error *reterr)
{
    (void)context;
    (void)reterr;
    (void)fwrite(bytes.data, 1, bytes.len, stderr);
    return PAWL_OK;
}

static struct pawl__sink sink_of(int stream)
{
    return stream == 0 ? pawl__cli_out_sink() : (struct pawl__sink){ .write = ignore_failure };
}

static pawl_status flush(pawl_error *reterr)
{
    (void)fflush(stderr);
    return pawl__cli_out_check(reterr);
}

static pawl_status print_now(const struct runner_capture *const captures[2], pawl_error *reterr)
{
    for (int i = 0; i < 2; i++) {
        struct pawl__sink sink = sink_of(i);
        TRY(captures[i] == NULL ? PAWL_OK : pawl__cli_capture_copy(captures[i], &sink, reterr));
    }
    return flush(reterr);
}

/* --- in order --- */

static pawl_status add_to_file(void *context, pawl_view bytes, pawl_error *reterr)
{
    struct runner_capture *file = context;

    pawl__cli_capture_add(file, bytes);
    return file->stored == file->total
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NO_SPACE, "no room for output that waits for its turn");
}

static pawl_status make_room(struct runner_output *output, size_t count, pawl_error *reterr)
{
    if (count <= output->held_cap) {
        return PAWL_OK;
    }
    size_t cap = MAX(count, MAX(64, output->held_cap * 2));
    struct runner_held *held = realloc(output->held, cap * sizeof(*held));
    if (held == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for output that waits for its turn");
    }
    output->held = held;
    output->held_cap = cap;
    return PAWL_OK;
}

static pawl_status hold(struct runner_output *output,
                        uint64_t number,
                        const struct runner_capture *const captures[2],
                        pawl_error *reterr)
{
    size_t index = (size_t)(number - output->next);
    const struct pawl__sink sink = { .write = add_to_file, .context = &output->file };

    TRY(make_room(output, index + 1, reterr));
    while (output->held_count <= index) {
        output->held[output->held_count++] = (struct runner_held){ .there = false };
    }
    struct runner_held *held = &output->held[index];
    held->there = true;
    for (int i = 0; i < 2; i++) {
        held->start[i] = output->file.total;
        if (captures[i] != NULL) {
            TRY(pawl__cli_capture_copy(captures[i], &sink, reterr));
        }
        held->len[i] = output->file.total - held->start[i];
    }
    return PAWL_OK;
}

static pawl_status print_held(struct runner_output *output, pawl_error *reterr)
{
    size_t printed = 0;
    pawl_status status = PAWL_OK;

    while (printed < output->held_count && output->held[printed].there && status == PAWL_OK) {
        const struct runner_held *held = &output->held[printed++];
        for (int i = 0; i < 2 && status == PAWL_OK; i++) {
            struct pawl__sink sink = sink_of(i);
            status = pawl__cli_capture_copy_part(
                &output->file, held->start[i], held->len[i], &sink, reterr);
        }
    }
    for (size_t i = printed; i < output->held_count; i++) {
        output->held[i - printed] = output->held[i];
    }
    output->held_count -= printed;
    output->next += printed;
    if (output->held_count == 0) { /* nothing in the file is needed any more */
        pawl__cli_capture_done(&output->file);
        output->file = (struct runner_capture)RUNNER_CAPTURE_INIT;
    }
    return status == PAWL_OK ? flush(reterr) : status;
}

static pawl_status add_locked(struct runner_output *output,
                              uint64_t number,
                              const struct runner_capture *const captures[2],
                              pawl_error *reterr)
{
    if (!output->keep_order) {
        return print_now(captures, reterr);
    }
    if (number == output->next && output->held_count == 0) {
        output->next++;
        return print_now(captures, reterr);
    }
    TRY(hold(output, number, captures, reterr));
    return print_held(output, reterr);
}

/* NULL: out of order. */
static pawl_status add(struct runner_output *output,
                       const uint64_t *number,
                       const struct runner_capture *const captures[2],
                       pawl_error *reterr)
{
    pawl__lock(&output->lock);
    if (output->progress != NULL) {
        pawl__progress_clear(output->progress);
    }
    if (output->status == PAWL_OK) {
        output->status = number == NULL ? print_now(captures, &output->error)
                                        : add_locked(output, *number, captures, &output->error);
    }
    pawl_status status = output->status;
    if (status != PAWL_OK && reterr != NULL) {
        *reterr = output->error;
    }
    pawl__unlock(&output->lock);
    return status;
}

pawl_status pawl__cli_output_add(struct runner_output *output,
                                 uint64_t number,
                                 const struct runner_capture *out,
                                 const struct runner_capture *err,
                                 pawl_error *reterr)
{
    const struct runner_capture *const captures[2] = { out, err };

    return add(output, &number, captures, reterr);
}

pawl_status pawl__cli_output_say(struct runner_output *output,
                                 const struct runner_capture *out,
                                 pawl_error *reterr)
{
    const struct runner_capture *const captures[2] = { out, NULL };

    return add(output, NULL, captures, reterr);
}

void pawl__cli_output_progress(struct runner_output *output, uint64_t done, uint64_t total)
{
    pawl__lock(&output->lock);
    if (output->progress != NULL) {
        output->progress->options.total = total;
        pawl__progress_update(output->progress, done);
    }
    pawl__unlock(&output->lock);
}
