/* Followers of the feed of changes, and the thread that reads it for all of them. */
#ifndef PAWL_SERVER_WORK_CHANGE_FEED_H
#define PAWL_SERVER_WORK_CHANGE_FEED_H

#include "net/http/events.h"
#include "server/work/work.h"

struct change_follower {
    struct node_changes *changes;
    struct pawl__http_stream *stream;
    struct change_follower *next;
    struct change_follower *before;
    uint64_t serial;       /* no other follower of the node has it */
    pawl_work_position at; /* all up to here was sent, or does not pass the filter */
    char *task_id;         /* of the filter; NULL: any, as all of it */
    char *work_type;
    uint32_t statuses;
    bool behind;  /* its next change is not in the ring: the thread reads for it */
    bool waiting; /* it has been told that there is nothing, and is woken when there is */
    bool ended;
    struct pawl__buf page; /* what the thread has read for it */
};

/* At a place of its own and without a filter. NULL: no memory. */
struct change_follower *pawl__serve_follower_new(void);
void pawl__serve_follower_free(struct change_follower *follower); /* one that has not joined */

/* Place, filter and stream are set. From here on the stream has it, and ends it with _leave. */
PAWL_MUST_USE pawl_status pawl__serve_follower_join(struct node_changes *changes,
                                                    struct change_follower *follower,
                                                    pawl_error *reterr);

/* The two functions of its source of events (net/http/events.h), with the follower as context; on the thread of its
 * connection. */
bool pawl__serve_follower_next(void *context, struct pawl__buf *events);
void pawl__serve_follower_leave(void *context);

#endif
