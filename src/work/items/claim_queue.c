#include "work/items/claim_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"

/* Claims of a round share one walk, so a few too many cost little, and workers that come back together are
 * served together. */
enum { ROUND_FIRST = 16, ROUND_FACTOR = 4, ROUND_MAX = 1024 };
#define AGAIN_NS (250 * NS_PER_MS) /* a store that failed is asked again */

static pawl_view copy_text(pawl_view text, char **at)
{
    pawl_view copy = { *at, text.len };

    if (text.len > 0) {
        memcpy(*at, text.data, text.len);
    }
    *at += text.len;
    return copy;
}

static struct claim_queue *make_queue(const struct work_filter *filter)
{
    size_t types_bytes = filter->work_type_count * sizeof(pawl_view);
    size_t bytes = filter->task_id.len;

    for (size_t i = 0; i < filter->work_type_count; i++) {
        bytes += filter->work_types[i].len;
    }
    struct claim_queue *queue = malloc(sizeof(*queue) + types_bytes + bytes);
    if (queue == NULL) {
        return NULL;
    }
    *queue = (struct claim_queue){ .window = ROUND_FIRST, .due_ns = INT64_MAX };
    char *at = (char *)queue->types + types_bytes;
    for (size_t i = 0; i < filter->work_type_count; i++) {
        queue->types[i] = copy_text(filter->work_types[i], &at);
    }
    queue->filter = (struct work_filter){ .work_types = queue->types,
                                          .work_type_count = filter->work_type_count,
                                          .task_id = copy_text(filter->task_id, &at) };
    return queue;
}

struct claim_queue *pawl__work_claim_queue_join(struct claim_queue **queues,
                                                const struct work_filter *filter)
{
    struct claim_queue *queue = *queues;

    while (queue != NULL && !pawl__work_filter_equal(&queue->filter, filter)) {
        queue = queue->next;
    }
    if (queue == NULL) {
        queue = make_queue(filter);
        if (queue == NULL) {
            return NULL;
        }
        queue->next = *queues;
        *queues = queue;
    }
    queue->claims++;
    return queue;
}

void pawl__work_claim_queue_leave(struct claim_queue **queues, struct claim_queue *queue)
{
    if (--queue->claims > 0) {
        return;
    }
    while (*queues != queue) {
        queues = &(*queues)->next;
    }
    *queues = queue->next;
    free(queue);
}

/* --- when to ask --- */

void pawl__work_claim_queues_note_news(struct claim_queue *queues)
{
    for (struct claim_queue *queue = queues; queue != NULL; queue = queue->next) {
        queue->news = true;
    }
}

int64_t pawl__work_claim_queues_note_due(struct claim_queue *queues, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    for (struct claim_queue *queue = queues; queue != NULL; queue = queue->next) {
        if (queue->due_ns <= now_ns) {
            queue->news = true;
            queue->due_ns = INT64_MAX;
        }
        next_ns = MIN(next_ns, queue->due_ns);
    }
    return next_ns;
}

size_t pawl__work_claim_queues_open_rounds(struct claim_queue *queues)
{
    size_t room = 0;

    for (struct claim_queue *queue = queues; queue != NULL; queue = queue->next) {
        bool asks = queue->news && queue->asking == 0 && queue->parked > 0;
        queue->room = asks ? MIN(queue->window, queue->parked) : 0;
        room += queue->room;
        if (asks) {
            queue->news = false;
            queue->missed = false;
            queue->due_ns = INT64_MAX;
        }
    }
    return room;
}

void pawl__work_claim_queue_note_outcome(struct claim_queue *queue,
                                         const struct work_claiming *claiming,
                                         int64_t now_ns)
{
    const pawl_error *outcome = &claiming->request.item.outcome;
    int64_t in_ns = INT64_MAX;

    queue->failure = (pawl_error)PAWL_ERROR_INIT;
    if (pawl__status_may_pass(outcome->status)) {
        queue->failure = *outcome;
        in_ns = AGAIN_NS;
    } else if (outcome->status == PAWL_NOT_FOUND && claiming->next_due_ns != INT64_MAX) {
        in_ns = MAX(claiming->next_due_ns - claiming->now_ns, INT64_C(0));
    }
    queue->missed |= outcome->status != PAWL_OK;
    queue->due_ns = MIN(queue->due_ns, in_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + in_ns);
}

void pawl__work_claim_queue_end_round(struct claim_queue *queue)
{
    if (queue->missed) {
        queue->window = ROUND_FIRST;
        queue->misses++;
    } else {
        queue->window = MIN(queue->window * ROUND_FACTOR, (size_t)ROUND_MAX);
        queue->news = true; /* there may be more */
    }
}
