/* Streams of numbered changes, as server-sent events: a client that comes back with Last-Event-ID misses none. */
#ifndef PAWL_SERVER_FOLLOW_H
#define PAWL_SERVER_FOLLOW_H

#include "base/thread/watch.h"
#include "net/http/events.h"
#include "server/route.h"

/* The first change after *position, of the part's state: adds its JSON to `data` and moves *position to its number.
 * False: there is none yet. Runs on a thread that serves other connections as well: it does not wait. */
typedef bool pawl__serve_next_change(void *part, uint64_t *position, struct pawl__buf *data);

/* Answers with the changes after Last-Event-ID, all of them without one, and then with each one that the watch tells of. A
 * follower costs no thread. INVALID: the header is no number. */
PAWL_MUST_USE pawl_status pawl__serve_follow(struct pawl__serve_call *call,
                                             struct pawl__watch *watch,
                                             const char *event,
                                             pawl__serve_next_change *next,
                                             pawl_error *reterr);

#endif
