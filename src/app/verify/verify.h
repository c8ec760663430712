/* An application compared with itself. The log of each partition (PLog) is the truth; all else follows from it.
 *
 *   verify.c       runs the parts. What each event must have left elsewhere goes into a sketch, what is stored is
 *                  taken out of it again, and the rest is wrong
 *   walk.c         reads the logs and the families
 *   differences.c  names what is left in a sketch
 *   anchor.c       the descriptor and the ends of the logs, which the anchor knows
 *   records.c      records, of which only the last version is stored
 *   numbers.c      numbers without a gap and what is stored of them: from the WLogs, which have the events of a
 *                  workspace side by side. A workspace where something does not fit is checked again, from the PLog
 *   rows.c         what is stored of the sequences */
#ifndef PAWL_APP_VERIFY_VERIFY_H
#define PAWL_APP_VERIFY_VERIFY_H

#include "app/core/internal.h"
#include "app/verify/sketch.h"
#include "base/core/map.h"

/* What is held in memory; tests set less. */
struct app_verify_limits {
    size_t updated_max;      /* records that were updated, at a time */
    size_t updated_per_part; /* planned for one reading of the logs: the parts are not equal */
    size_t suspects_max;     /* workspaces whose numbers are checked again */
};
extern struct app_verify_limits pawl__app_verify_limits;

struct verify_partition {
    uint64_t end;         /* the offset of the last event; 0: there is none */
    uint64_t stored;      /* up to which, exclusive, the numbers are stored; 0: nothing is */
    bool offset_reported; /* that numbers are stored beyond it */
};

struct verify_records {
    struct app_sketch *sketch;
    struct pawl__map *updated; /* records whose last version was seen, and not yet the first */
    bool too_many;             /* for the map: to be done in parts */
    uint8_t *seen;     /* a bit for the hash of each updated record that is not in the map... */
    uint64_t distinct; /* ...and how many are set */
    uint64_t parts;
    uint64_t part;     /* which one this is */
    uint64_t compared; /* how often the stored records were read */
};

/* How far it is; what the caller is told of it. */
struct verify_progress {
    pawl_watch watch;
    uint64_t entries;         /* of all kinds, that were read */
    uint64_t log_entries;     /* those of logs among them */
    uint64_t log_entries_max; /* so many there are, about */
};

struct app_verify {
    pawl_app *app;
    struct app_store *store; /* the application's, or a view of it that does not change */
    struct verify_progress progress;
    uint64_t workspace;          /* 0: all */
    pawl_app_damage_visit visit; /* NULL: nobody, or it has seen enough */
    void *context;
    pawl_app_report report;
    bool quiet[PAWL_APP_PARTS]; /* findings in these are left out */
    struct app_sketch *sketch;
    struct verify_records records;
    struct verify_partition partitions[PAWL_APP_PARTITIONS_MAX];
    struct pawl__buf bytes;
};

/* CANCELLED when the caller wants no more. */
PAWL_MUST_USE pawl_status pawl__app_verify_look(const struct verify_progress *progress,
                                                pawl_error *reterr);
/* Every walk of a verification: counted, and ended when the caller wants no more. */
PAWL_MUST_USE pawl_status pawl__app_verify_walk(struct app_verify *verify,
                                                const struct app_range *range,
                                                app_entry_visitor visitor,
                                                void *context,
                                                pawl_error *reterr);

void pawl__app_verify_finding(struct app_verify *verify,
                              pawl_app_part part,
                              const char *format,
                              ...) __attribute__((format(printf, 3, 4)));

/* The same of an entry whose key does not belong where it stands; `what` follows the key. */
void pawl__app_verify_odd_key(struct app_verify *verify,
                              pawl_app_part part,
                              const struct app_entry *entry,
                              const char *what);

/* An entry: the first four say which, the last two what it holds. */
struct verify_item {
    pawl_app_part part;
    uint16_t sequence;
    uint64_t workspace;
    uint64_t number;
    uint64_t offset;  /* of the PLog; 0: not known */
    uint64_t content; /* a hash */
};

/* The log says that the item must be stored; the item is stored. */
void pawl__app_verify_expect(struct app_sketch *sketch, const struct verify_item *item);
void pawl__app_verify_found(struct app_sketch *sketch, const struct verify_item *item);

/* Reports what is left in a sketch. */
PAWL_MUST_USE pawl_status pawl__app_verify_name_differences(struct app_verify *verify,
                                                            struct app_sketch *sketch,
                                                            pawl_error *reterr);

/* All events of the logs that can be read, of one workspace or of all, from the last to the first or the other
 * way. Damage is a finding when `report_damage` is true. `bytes` is the event. */
typedef pawl_status verify_event_fn(void *context,
                                    uint16_t partition,
                                    const pawl_app_event *event,
                                    pawl_view bytes,
                                    pawl_error *reterr);
struct verify_events {
    bool backwards;
    bool report_damage;
    verify_event_fn *visit;
    void *context;
};
PAWL_MUST_USE pawl_status pawl__app_verify_events(struct app_verify *verify,
                                                  const struct verify_events *events,
                                                  pawl_error *reterr);

/* The entries of a family, of one workspace or of all. An odd key is a finding. */
struct verify_family {
    enum app_family family;
    pawl_app_part part;
    void (*visit)(struct app_verify *verify, const struct app_key_parts *parts, pawl_view value);
};
PAWL_MUST_USE pawl_status pawl__app_verify_family(struct app_verify *verify,
                                                  const struct verify_family *family,
                                                  pawl_error *reterr);

/* A step of the comparison. */
typedef pawl_status verify_step_fn(struct app_verify *verify, pawl_error *reterr);

verify_step_fn pawl__app_verify_strays;     /* walk.c: entries of partitions that do not exist */
verify_step_fn pawl__app_verify_descriptor; /* anchor.c: first, the rest is compared by its rules */
verify_step_fn pawl__app_verify_anchor;
verify_step_fn pawl__app_verify_offsets; /* rows.c: up to where numbers are stored */
/* rows.c: the same of one partition, read again; 0: nothing is stored, or it is damaged. */
PAWL_MUST_USE pawl_status pawl__app_verify_offset_now(const struct app_verify *verify,
                                                      uint16_t partition,
                                                      uint64_t *ret_offset,
                                                      pawl_error *reterr);
verify_step_fn pawl__app_verify_numbers; /* numbers.c: the WLogs and the numbers */

/* records.c: an event, from the last to the first; then the records. */
verify_step_fn pawl__app_verify_records_start;
void pawl__app_verify_records_done(struct app_verify *verify);
PAWL_MUST_USE pawl_status pawl__app_verify_records_event(struct app_verify *verify,
                                                         const pawl_app_event *event,
                                                         pawl_error *reterr);
verify_step_fn pawl__app_verify_records;

/* rows.c: what is stored of the sequences of a partition, in order of workspaces. Start with zeroes. */
struct verify_rows {
    struct app_page page;
    size_t at; /* the next one */
    struct app_key from;
    struct app_key until;
    uint16_t partition;
    bool ended;
};
void pawl__app_verify_rows_start(const struct app_verify *verify,
                                 uint16_t partition,
                                 struct verify_rows *rows);

/* The workspace of page.entries[at]; 0: there are no more. Rows with an odd key, or of a workspace that is not
 * in this partition, are findings and left out. */
PAWL_MUST_USE pawl_status pawl__app_verify_rows_next(struct app_verify *verify,
                                                     struct verify_rows *rows,
                                                     uint64_t *ret_workspace,
                                                     pawl_error *reterr);

#endif
