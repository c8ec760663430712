/* Whether a store answers, asked on a thread of its own. */
#ifndef PAWL_SERVER_PROBE_H
#define PAWL_SERVER_PROBE_H

#include <pawl/pawl.h>

struct node_probe;

/* Asks at once and then every second. `ask` takes as long as the store does. `name` is for the log and
 * outlives the probe. */
PAWL_MUST_USE pawl_status pawl__serve_probe_start(const char *name,
                                                  pawl_status (*ask)(void *context,
                                                                     pawl_error *reterr),
                                                  void *context,
                                                  struct node_probe **ret_probe,
                                                  pawl_error *reterr);

/* What the last answer was; TIMEOUT while one does not come for 3 seconds, or none of what others have asked
 * for. Does not wait. PAWL_OK before the first, and of NULL. */
pawl_status pawl__serve_probe_status(struct node_probe *probe);

/* Somebody else asks the store for something, which may hang where the probe does not: a write. Any thread. */
void pawl__serve_probe_begins(struct node_probe *probe);
void pawl__serve_probe_ends(struct node_probe *probe);

/* Asks no more. */
void pawl__serve_probe_cancel(struct node_probe *probe);

/* TIMEOUT: the store does not come back; the probe and what it uses stay. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__serve_probe_stop(struct node_probe *probe,
                                                 int64_t deadline_ns,
                                                 pawl_error *reterr);

/* When it is stopped and nobody else asks any more. NULL is fine. */
void pawl__serve_probe_free(struct node_probe *probe);

#endif
