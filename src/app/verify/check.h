/* An application compared with itself. The log of each partition (PLog) is the truth; all else follows from it.
 *
 *   app_check.c          the logs, from the last event to the first; what each event must have left elsewhere is
 *                        put into a sketch, what is there is taken out of it again, and the rest is wrong
 *   app_check_anchor.c   the descriptor and the ends of the logs, which the anchor knows
 *   app_check_records.c  the same for records, of which only the last version is there
 *   app_check_numbers.c  numbers without a gap and what is stored of them: from the WLogs, which have the events
 *                        of a workspace side by side. A workspace where something does not fit is looked at
 *                        again, from the PLog */
#ifndef PAWL_APP_VERIFY_CHECK_H
#define PAWL_APP_VERIFY_CHECK_H

#include "app/core/internal.h"
#include "app/verify/sketch.h"
#include "base/core/map.h"

/* What is held in memory; tests have less. */
struct check_limits {
    size_t updated_max;    /* records that were updated, at a time */
    size_t updated_a_part; /* planned for one reading of the logs: the parts are not equal */
    size_t doubtful_max;   /* workspaces whose numbers are looked at again */
};
extern struct check_limits pawl__check_limits;

struct check_partition {
    uint64_t end;    /* the offset of the last event; 0: there is none */
    uint64_t stored; /* up to which, exclusive, the numbers are stored; 0: nothing is */
    bool behind;     /* numbers are stored beyond it: it was told */
};

struct check_records {
    struct sketch *sketch;
    struct pawl__map *updated; /* records whose last version was seen, and not yet the first */
    bool too_many;             /* for the map: to be done in parts */
    uint8_t *met;      /* a bit for the hash of each updated record that is not in the map... */
    uint64_t distinct; /* ...and how many are set */
    uint64_t parts;
    uint64_t part;     /* which one this is */
    uint64_t compared; /* how often the stored records were read */
};

struct check {
    pawl_app *app;
    uint64_t workspace; /* 0: all */
    pawl_app_wrong_visitor visitor;
    void *context;
    pawl_app_report report;
    bool quiet[PAWL_APP_PARTS]; /* findings in these are left out */
    struct sketch *sketch;
    struct check_records records;
    struct check_partition partitions[PAWL_APP_PARTITIONS_MAX];
    struct pawl__buf bytes;
};

void pawl__check_tell(struct check *check, pawl_app_part part, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An item of a sketch, and what is left of one at the end. `offset` and `content` say more than which. */
struct sketch_item pawl__check_item(pawl_app_part part,
                                    uint16_t sequence,
                                    uint64_t workspace,
                                    uint64_t number,
                                    uint64_t offset,
                                    uint64_t content);
PAWL_MUST_USE pawl_status pawl__check_name(struct check *check,
                                           struct sketch *sketch,
                                           pawl_error *reterr);

/* All events of the logs that can be read, of one workspace or of all, from the last to the first or the other
 * way. What cannot be read is told when `tell` is true. `bytes` is the event. */
struct check_events {
    bool backwards;
    bool tell;
    pawl_status (*take)(void *context,
                        uint16_t partition,
                        const pawl_app_event *event,
                        pawl_view bytes,
                        pawl_error *reterr);
    void *context;
};
PAWL_MUST_USE pawl_status pawl__check_events(struct check *check,
                                             const struct check_events *events,
                                             pawl_error *reterr);

/* The entries of a family, of one workspace or of all. Keys that are none are told. */
typedef pawl_status (*check_entry_visitor)(struct check *check,
                                           const struct app_key_parts *parts,
                                           pawl_view value,
                                           pawl_error *reterr);
struct check_family {
    enum app_family family;
    pawl_app_part part;
    check_entry_visitor take;
};
PAWL_MUST_USE pawl_status pawl__check_family(struct check *check,
                                             const struct check_family *family,
                                             pawl_error *reterr);

/* app_check_records.c: an event, from the last to the first; then the records. */
PAWL_MUST_USE pawl_status pawl__check_records_start(struct check *check, pawl_error *reterr);
void pawl__check_records_done(struct check *check);
PAWL_MUST_USE pawl_status pawl__check_records_event(struct check *check,
                                                    const pawl_app_event *event,
                                                    pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__check_records(struct check *check, pawl_error *reterr);

/* app_check_rows.c: what is stored of the sequences of a partition, in order of workspaces. Start with zeroes. */
struct check_rows {
    struct pawl__arena arena;
    struct app_entry *entries;
    size_t count;
    size_t at; /* the next one */
    struct app_key from;
    struct app_key until;
    uint16_t partition;
    bool ended;
};
PAWL_MUST_USE pawl_status pawl__check_rows_open(const struct check *check,
                                                uint16_t partition,
                                                struct check_rows *rows,
                                                pawl_error *reterr);
void pawl__check_rows_done(struct check_rows *rows);

/* The workspace of entries[at]; 0: there are no more. Rows whose key is none, or of a workspace that is not in this
 * partition, are told and left out. */
PAWL_MUST_USE pawl_status pawl__check_rows_next(struct check *check,
                                                struct check_rows *rows,
                                                uint64_t *ret_workspace,
                                                pawl_error *reterr);

/* Up to where the logs are in it. */
PAWL_MUST_USE pawl_status pawl__check_offsets(struct check *check, pawl_error *reterr);

/* app_check_anchor.c. The descriptor first: where it was altered, what follows was compared with another one. */
PAWL_MUST_USE pawl_status pawl__check_descriptor(struct check *check, pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__check_anchor(struct check *check, pawl_error *reterr);

/* app_check_numbers.c: WLogs, which are taken out of the sketch on the way, and the numbers. */
PAWL_MUST_USE pawl_status pawl__check_numbers(struct check *check, pawl_error *reterr);

#endif
