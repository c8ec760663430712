#include "telemetry/core/epochs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"

void pawl__telemetry_epochs_done(struct telemetry_epochs *epochs)
{
    free(epochs->at);
    *epochs = (struct telemetry_epochs){ .at = NULL };
}

pawl_status pawl__telemetry_epochs_add(struct telemetry_epochs *epochs,
                                       const struct telemetry_open *open,
                                       pawl_error *reterr)
{
    struct telemetry_open *at = pawl__grow(epochs->at, epochs->count, &epochs->room, sizeof(*at));

    TRY(pawl__check_memory(at, "an epoch", reterr));
    epochs->at = at;
    at[epochs->count++] = *open;
    return PAWL_OK;
}

static bool gave_rows(const struct telemetry_open *open, const struct telemetry_open *next)
{
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        if (next->first[t] > open->first[t]) {
            return true;
        }
    }
    return false;
}

pawl_status pawl__telemetry_epochs_open(struct telemetry_epochs *epochs,
                                        const struct telemetry_id *id,
                                        const uint64_t counters[TELEMETRY_TYPE_COUNT],
                                        pawl_error *reterr)
{
    struct telemetry_open open = { .id = *id };
    size_t kept = 0;

    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        open.first[t] = counters[t] + 1;
    }
    TRY(pawl__telemetry_epochs_add(epochs, &open, reterr));
    for (size_t i = 0; i + 1 < epochs->count; i++) {
        if (gave_rows(&epochs->at[i], &epochs->at[i + 1])) {
            epochs->at[kept++] = epochs->at[i];
        }
    }
    epochs->at[kept++] = open;
    size_t excess = kept > TELEMETRY_EPOCHS_MAX ? kept - TELEMETRY_EPOCHS_MAX : 0;
    epochs->count = kept - excess;
    memmove(epochs->at, &epochs->at[excess], epochs->count * sizeof(*epochs->at));
    return PAWL_OK;
}

/* One past the known epoch; `count + 1`: it is not in the list. */
static size_t after_known(const struct telemetry_epochs *epochs, const struct telemetry_id *known)
{
    for (size_t i = epochs->count; i > 0; i--) {
        if (pawl__telemetry_id_equal(&epochs->at[i - 1].id, known)) {
            return i;
        }
    }
    return epochs->count + 1;
}

pawl_status pawl__telemetry_epochs_answer(const struct telemetry_epochs *epochs,
                                          enum telemetry_type type,
                                          const struct telemetry_id *known,
                                          struct telemetry_page *page,
                                          pawl_error *reterr)
{
    size_t from = after_known(epochs, known);

    for (size_t i = from > epochs->count ? 0 : from; i < epochs->count; i++) {
        const struct telemetry_epoch epoch = { epochs->at[i].id, epochs->at[i].first[type] };
        TRY(pawl__telemetry_page_add_epoch(page, &epoch, reterr));
    }
    return PAWL_OK;
}

uint64_t pawl__telemetry_accept_ack(const struct telemetry_epochs *epochs,
                                    enum telemetry_type type,
                                    const struct telemetry_id *known,
                                    uint64_t ack,
                                    uint64_t counter)
{
    size_t next = after_known(epochs, known);

    if (next > epochs->count) {
        return 0;
    }
    return MIN(ack, next == epochs->count ? counter : epochs->at[next].first[type] - 1);
}

/* --- as text --- */

void pawl__telemetry_epochs_write(const struct telemetry_epochs *epochs, struct pawl__buf *buf)
{
    for (size_t i = 0; i < epochs->count; i++) {
        pawl__buf_add_text(buf, epochs->at[i].id.text);
        for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
            pawl__buf_add_format(buf, " %" PRIu64, epochs->at[i].first[t]);
        }
        pawl__buf_add_char(buf, '\n');
    }
}

static bool read_number(pawl_view *line, uint64_t *ret_value)
{
    pawl_view word;
    uint64_t value = 0;

    if (!pawl__view_split(line, ' ', &word) || word.len == 0 || word.len > 19) {
        return false;
    }
    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] < '0' || word.data[i] > '9') {
            return false;
        }
        value = value * 10 + (uint64_t)(word.data[i] - '0');
    }
    *ret_value = value;
    return value > 0 && value <= TELEMETRY_SEQ_MAX;
}

static bool read_line(pawl_view line, struct telemetry_open *ret_open)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_view id;

    if (!pawl__view_split(&line, ' ', &id) || id.len == 0
        || pawl__telemetry_id_parse(id, &ret_open->id, &error) != PAWL_OK) {
        return false;
    }
    for (size_t t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        if (!read_number(&line, &ret_open->first[t])) {
            return false;
        }
    }
    return line.len == 0;
}

pawl_status pawl__telemetry_epochs_read(pawl_view text,
                                        struct telemetry_epochs *ret_epochs,
                                        pawl_error *reterr)
{
    AUTO(pawl__telemetry_epochs_done) struct telemetry_epochs epochs = { .at = NULL };
    struct telemetry_open open;
    pawl_view line;

    while (pawl__view_split(&text, '\n', &line)) {
        if (!read_line(line, &open)) {
            return pawl__fail(reterr, PAWL_CORRUPT, "the list of epochs: '%.*s'", VIEW_ARGS(line));
        }
        TRY(pawl__telemetry_epochs_add(&epochs, &open, reterr));
    }
    *ret_epochs = epochs;
    epochs = (struct telemetry_epochs){ .at = NULL };
    return PAWL_OK;
}
