/* Whether a store answers, asked on a thread of its own. */
#ifndef PAWL_SERVER_PROBE_H
#define PAWL_SERVER_PROBE_H

#include <pawl/pawl.h>

#include "base/core/macros.h"

struct node_probe;
struct pawl__clock;

/* A question to the store. Takes as long as the store does. */
typedef pawl_status node_probe_ask(void *context, pawl_error *reterr);

/* Asks at once and then every second. `name` is for the log and outlives the probe. */
PAWL_MUST_USE pawl_status pawl__serve_probe_start(const char *name,
                                                  struct pawl__clock *clock,
                                                  node_probe_ask *ask,
                                                  void *context,
                                                  struct node_probe **ret_probe,
                                                  pawl_error *reterr);

/* The last answer; TIMEOUT when the store has not answered the probe, or anything that others asked for, for 3
 * seconds. Does not wait. PAWL_OK before the first answer, and of NULL. */
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
DEFINE_AUTO(struct node_probe *, pawl__serve_probe_free)

#endif
