/* How far the colony has got with one data type of one agent, and whether the agent's database is still the one it was.
 *
 *   session      made with the agent's database. Another one: the database was replaced.
 *   epoch        one open of it. An epoch that we have not seen and that begins at or below an id that we know was given
 *                gives numbers a second time: the database was restored from an older copy.
 *   generation   begins with such an epoch and has its name; the first one has none. (session, generation, sequence id)
 *                names a row for good.
 *
 * A generation begins with the first row of its line that no older generation has: the first id of its epoch, or an
 * earlier one when the epoch before it went on in a copy that came back.
 *
 * A row that is stored is of an epoch that was seen: the agent names its epochs with every page. That is why a row
 * cannot be stored under two names, whatever copy comes back. */
#ifndef PAWL_TELEMETRY_CORE_CURSOR_H
#define PAWL_TELEMETRY_CORE_CURSOR_H

#include "telemetry/core/gap.h"

struct telemetry_seen {
    struct telemetry_epoch epoch;
    struct telemetry_id generation; /* that its rows belong to */
};

struct telemetry_generation {
    struct telemetry_id id;     /* "": the first one */
    struct telemetry_id parent; /* that it forked from; unused in the first one */
    uint64_t first;             /* its first sequence id */
    uint64_t last;              /* every id up to here is stored, rejected or a recorded gap */
    uint64_t high_water;        /* the highest that the agent has named */
};

/* Starts with zeroes. The polling_checkpoints row, and what is known of its session. */
struct telemetry_cursor {
    struct telemetry_id session; /* "": this agent was never polled */
    size_t current;              /* of the generations */
    struct telemetry_generation *generations;
    size_t generation_count;
    size_t generation_room;
    struct telemetry_seen *seen; /* in the order in which they were seen */
    size_t seen_count;
    size_t seen_room;
};

void pawl__telemetry_cursor_done(struct telemetry_cursor *cursor);
/* Replaces `cursor` by a copy. NOMEM leaves it alone. */
PAWL_MUST_USE pawl_status pawl__telemetry_cursor_copy(struct telemetry_cursor *cursor,
                                                      const struct telemetry_cursor *from,
                                                      pawl_error *reterr);
struct telemetry_generation *pawl__telemetry_current(const struct telemetry_cursor *cursor);
PAWL_MUST_USE pawl_status pawl__telemetry_cursor_see(struct telemetry_cursor *cursor,
                                                     const struct telemetry_epoch *epoch,
                                                     const struct telemetry_id *generation,
                                                     pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__telemetry_cursor_add(struct telemetry_cursor *cursor,
                                                     const struct telemetry_generation *generation,
                                                     pawl_error *reterr);
/* A session that was never here. */
PAWL_MUST_USE pawl_status pawl__telemetry_cursor_begin(struct telemetry_cursor *cursor,
                                                       const struct telemetry_id *session,
                                                       pawl_error *reterr);

/* The newest epoch of the current generation, for the query; "" when none was seen. */
struct telemetry_id pawl__telemetry_known_epoch(const struct telemetry_cursor *cursor);

enum telemetry_identity {
    TELEMETRY_SAME, /* perhaps with epochs that continue it: they were added to the cursor */
    TELEMETRY_OTHER_SESSION, /* nothing was changed */
    TELEMETRY_FORKED,        /* the cursor is in a new generation */
};

/* Compares the page, which is an honest one, with the cursor. When it forked, `gaps` gets what the old generations
 * lose or still have to fetch. INVALID: the agent's sequence went back, and nothing explains it. */
PAWL_MUST_USE pawl_status pawl__telemetry_identify(struct telemetry_cursor *cursor,
                                                   const struct telemetry_page *page,
                                                   const struct telemetry_gap *like,
                                                   enum telemetry_identity *ret_identity,
                                                   struct telemetry_gaps *gaps,
                                                   pawl_error *reterr);

/* The end of a session: what was known to be given and never came is lost. Adds to `gaps`. */
PAWL_MUST_USE pawl_status pawl__telemetry_end_session(struct telemetry_cursor *cursor,
                                                      const struct telemetry_gap *like,
                                                      struct telemetry_gaps *gaps,
                                                      pawl_error *reterr);

/* Up to which id rows of a generation can still be asked for: those that later generations did not give again. 0: none. */
uint64_t pawl__telemetry_reach(const struct telemetry_cursor *cursor,
                               const struct telemetry_id *generation);

/* Rows [from, to) of a page that belongs to the cursor's generation: moves the cursor past them and adds the holes that
 * it passes. An empty page below the high-water mark is INVALID. `like` has the times of new gaps. */
PAWL_MUST_USE pawl_status pawl__telemetry_receive(struct telemetry_cursor *cursor,
                                                  const struct telemetry_page *page,
                                                  size_t from,
                                                  size_t to,
                                                  const struct telemetry_gap *like,
                                                  struct telemetry_gaps *gaps,
                                                  pawl_error *reterr);

#endif
