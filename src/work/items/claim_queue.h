/* Claims with the same filter, and when they ask the store: in rounds (see waiters.h). Plain memory: the caller has the
 * lock. */
#ifndef PAWL_WORK_ITEMS_CLAIM_QUEUE_H
#define PAWL_WORK_ITEMS_CLAIM_QUEUE_H

#include "work/core/group.h"

struct claim_queue {
    struct claim_queue *next;
    size_t claims; /* that point to the filter */
    size_t parked;
    size_t asking;
    size_t window;      /* how many ask in the next round */
    uint64_t misses;    /* rounds so far in which one found nothing */
    size_t room;        /* how many more may ask in this one */
    bool news;          /* something may have become claimable since it asked */
    bool missed;        /* one of this round found nothing */
    int64_t due_ns;     /* monotonic: then there is news anyway; INT64_MAX: never */
    pawl_error failure; /* of the latest round; PAWL_OK: none */
    struct work_filter filter;
    pawl_view types[]; /* then their texts, and that of the task */
};

/* The queue of that filter, made when there is none: the caller's claim is one more. NULL: no memory. */
struct claim_queue *pawl__work_claim_queue_join(struct claim_queue **queues,
                                                const struct work_filter *filter);
/* One claim less; the last one frees the queue. */
void pawl__work_claim_queue_leave(struct claim_queue **queues, struct claim_queue *queue);

/* Something may have become claimable. */
void pawl__work_claim_queues_note_news(struct claim_queue *queues);
/* The same for queues that are due; returns when the next one is. */
int64_t pawl__work_claim_queues_note_due(struct claim_queue *queues, int64_t now_ns);

/* Starts a round of each queue that has news and none under way: how many claims ask, `room` in each. */
size_t pawl__work_claim_queues_open_rounds(struct claim_queue *queues);

/* Learns from an answer when to ask again. */
void pawl__work_claim_queue_note_outcome(struct claim_queue *queue,
                                         const struct work_claiming *claiming,
                                         int64_t now_ns);
/* The last answer of a round is there. */
void pawl__work_claim_queue_end_round(struct claim_queue *queue);

#endif
