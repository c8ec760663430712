/* A part of the node: a capability with its routes. The node is a table of them; it knows none by name. */
#ifndef PAWL_SERVER_PART_H
#define PAWL_SERVER_PART_H

#include "base/json/object.h"
#include "server/jobs/jobs.h"
#include "server/node.h"
#include "server/route.h"

/* What a part is given. All of it outlives the part. */
struct pawl__serve_host {
    const struct pawl__serve_options *options;
    struct pawl__metrics *metrics;
    struct pawl__clock *clock; /* of deadlines and waits, so one that runs */
    struct pawl__serve_node *node;
};

/* What keeps a part from its work. */
struct pawl__serve_trouble {
    pawl_view app;
    int32_t partition; /* below 0: no particular one */
    pawl_view store;
    const char *why; /* the name of a status, or another word like it */
};
extern const struct pawl__record pawl__serve_trouble_record;

/* `waiting`: the node is not ready without it. `degraded`: somebody is not served, which is no reason to take the
 * node away from everybody else. */
struct pawl__serve_report {
    struct pawl__buf degraded;
    struct pawl__buf waiting;
};
void pawl__serve_report_degraded(struct pawl__serve_report *report,
                                 const struct pawl__serve_trouble *trouble);
void pawl__serve_report_waiting(struct pawl__serve_report *report,
                                const struct pawl__serve_trouble *trouble);

/* Its functions take the state that `open` makes. All but `open`, `close` and the routes may be NULL. */
struct pawl__serve_part {
    const char *name; /* for the log */
    const struct pawl__serve_route *routes;
    size_t route_count;
    const struct pawl__job_kind *jobs; /* the kinds of jobs that it has */
    size_t job_count;

    /* Before the node listens. A store that may hang is opened later, or on a thread. After a failure nothing is left. */
    pawl_status (*open)(const struct pawl__serve_host *host, void **ret_state, pawl_error *reterr);
    /* After the node listens. */
    pawl_status (*start)(void *state, pawl_error *reterr);
    /* Until it has what it found at its start, or the deadline has passed. */
    void (*await)(void *state, int64_t deadline_ns);

    /* The node stops: ends all waiting, now and in future, so that requests are answered. Does not wait. */
    void (*cancel)(void *state);
    /* A request does not come back: makes calls of the store return soon, whatever it does. */
    void (*interrupt)(void *state);
    /* No request is left. Ends its threads and closes its store until about the deadline, with a bound of its own
     * for a store that hangs. TIMEOUT: something does not come back, and nothing that it uses is freed. */
    pawl_status (*close)(void *state, int64_t deadline_ns, pawl_error *reterr);

    /* What is not ready now. Does not wait for a store. */
    void (*report)(void *state, struct pawl__serve_report *report);
    /* What it adds to /healthz: a value of that record, which starts with zeros. */
    const struct pawl__record *health_record;
    void (*health)(void *state, void *ret_value);
    /* Sets its metrics, and adds text of metrics that others count. May take as long as a store does. */
    pawl_status (*metrics)(void *state, struct pawl__buf *text, pawl_error *reterr);

    /* The problem that an error of its routes is; NULL: as everywhere. */
    const struct pawl__http_problem *(*problem_of)(const pawl_error *error);
};

/* The state of a part of the node; NULL: it has no such part, or it is not open. */
void *pawl__serve_part_state(const struct pawl__serve_node *node,
                             const struct pawl__serve_part *part);

/* Those of `pawl serve`, NULL after the last. (parts.c) */
extern const struct pawl__serve_part *const pawl__serve_parts[];

/* The node's own routes: health, metrics, its description. (health.c) */
extern const struct pawl__serve_part pawl__serve_node_part;
extern const struct pawl__record pawl__serve_health_record; /* to which parts add */

#endif
