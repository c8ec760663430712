/* The agent's own list of epochs: every open of its database, with the first sequence id of each data type. */
#ifndef PAWL_TELEMETRY_CORE_EPOCHS_H
#define PAWL_TELEMETRY_CORE_EPOCHS_H

#include "telemetry/core/page.h"

struct telemetry_open {
    struct telemetry_id id;
    uint64_t first[TELEMETRY_TYPE_COUNT];
};

/* Starts with zeroes; oldest first. */
struct telemetry_epochs {
    struct telemetry_open *at;
    size_t count;
    size_t room;
};

void pawl__telemetry_epochs_done(struct telemetry_epochs *epochs);
PAWL_MUST_USE pawl_status pawl__telemetry_epochs_add(struct telemetry_epochs *epochs,
                                                     const struct telemetry_open *open,
                                                     pawl_error *reterr);

/* Another open: epochs in which nothing was given leave the list, and so does the oldest of more than
 * TELEMETRY_EPOCHS_MAX. `counters` are the last ids given. An epoch whose rows retention took stays: a colony that was
 * away must still see that it gave ids a second time. An epoch is never taken up again: a copy of the database may have
 * been made in it. */
PAWL_MUST_USE pawl_status pawl__telemetry_epochs_open(struct telemetry_epochs *epochs,
                                                      const struct telemetry_id *id,
                                                      const uint64_t counters[TELEMETRY_TYPE_COUNT],
                                                      pawl_error *reterr);

/* Adds to the page what the colony does not know: the epochs after `known`, or all of them. */
PAWL_MUST_USE pawl_status pawl__telemetry_epochs_answer(const struct telemetry_epochs *epochs,
                                                        enum telemetry_type type,
                                                        const struct telemetry_id *known,
                                                        struct telemetry_page *page,
                                                        pawl_error *reterr);

/* How much of an acknowledgement counts. A colony speaks of the epochs that it knows: ids that were given in a later
 * one are other rows to it, and without a common epoch nothing counts. */
uint64_t pawl__telemetry_accept_ack(const struct telemetry_epochs *epochs,
                                    enum telemetry_type type,
                                    const struct telemetry_id *known,
                                    uint64_t ack,
                                    uint64_t counter);

/* The list as text, for db_metadata: one line per epoch, the id and eight numbers. CORRUPT: not such a list. */
void pawl__telemetry_epochs_write(const struct telemetry_epochs *epochs, struct pawl__buf *buf);
PAWL_MUST_USE pawl_status pawl__telemetry_epochs_read(pawl_view text,
                                                      struct telemetry_epochs *ret_epochs,
                                                      pawl_error *reterr);

#endif
