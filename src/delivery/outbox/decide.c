#include "delivery/outbox/decide.h"

#include "base/core/error.h"
#include "base/core/sha256.h"

/* --- accepting --- */

enum outbox_admission pawl__delivery_outbox_admit(const struct outbox_hit *hit,
                                                  const struct delivery_hash *payload_hash)
{
    if (!hit->found) {
        return OUTBOX_NEW;
    }
    return pawl__delivery_hash_equal(&hit->payload_hash, payload_hash) ? OUTBOX_DUPLICATE
                                                                       : OUTBOX_CONFLICT;
}

pawl_status pawl__delivery_outbox_partition(pawl_view key,
                                            uint32_t count,
                                            uint32_t *ret_partition,
                                            pawl_error *reterr)
{
    struct pawl__sha256 hash;
    uint64_t number = 0;

    TRY(pawl__sha256_parts(&key, 1, &hash, reterr));
    for (size_t i = 0; i < sizeof(number); i++) {
        number = number << 8 | hash.bytes[i];
    }
    *ret_partition = (uint32_t)(number % count);
    return PAWL_OK;
}

/* --- one subject --- */

uint64_t pawl__delivery_outbox_asked(struct outbox_subject *subject,
                                     const struct outbox_last *last,
                                     uint64_t head)
{
    bool has_head = last->found && last->number >= head && head > 0;

    /* The stream was compared before and has lost nothing of ours, and yet the last message is not the expected
     * one. Where it is another writer's, every expectation may fail. */
    subject->shared =
        subject->shared || (subject->refused_order && last->found && last->number == 0);
    subject->refused_order = false;
    subject->last_sequence = last->found ? last->sequence : 0;
    subject->phase = OUTBOX_READY;
    if (!has_head) {
        return 0;
    }
    subject->from = last->number + 1;
    subject->attempts = 0;
    return last->number;
}

void pawl__delivery_outbox_sent(struct outbox_subject *subject, uint64_t number)
{
    subject->phase = OUTBOX_UNDER_WAY;
    subject->number = number;
}

static enum outbox_verdict wait_for(struct outbox_subject *subject,
                                    const struct outbox_limits *limits,
                                    int64_t now_ns,
                                    uint64_t random)
{
    subject->attempts++;
    subject->phase = OUTBOX_ASK;
    subject->wait_until_ns = now_ns + pawl__backoff_ns(&limits->backoff, subject->attempts, random);
    return OUTBOX_AGAIN;
}

static enum outbox_verdict move_on(struct outbox_subject *subject, enum outbox_verdict verdict)
{
    subject->phase = OUTBOX_READY;
    subject->from = subject->number + 1;
    subject->attempts = 0;
    subject->wait_until_ns = 0;
    return verdict;
}

enum outbox_verdict pawl__delivery_outbox_answered(struct outbox_subject *subject,
                                                   const struct outbox_answer *answer,
                                                   const struct outbox_limits *limits,
                                                   int64_t now_ns,
                                                   uint64_t random)
{
    if (answer->fate == OUTBOX_FATE_STORED) {
        subject->last_sequence = MAX(subject->last_sequence, answer->sequence);
        return move_on(subject, OUTBOX_STORED);
    }
    if (answer->fate == OUTBOX_FATE_UNKNOWN || answer->retryable) {
        return wait_for(subject, limits, now_ns, random);
    }
    if (answer->out_of_order) {
        subject->refused_order = true;
        subject->phase = OUTBOX_ASK;
        return OUTBOX_CHECK;
    }
    if (answer->status == PAWL_INVALID || subject->attempts + 1 >= limits->attempts_max) {
        return move_on(subject, OUTBOX_FAIL);
    }
    return wait_for(subject, limits, now_ns, random);
}

/* --- what the stream has lost --- */

enum outbox_finding pawl__delivery_outbox_find(const struct outbox_kept *kept,
                                               const struct outbox_stream *stream,
                                               bool found,
                                               bool same_id)
{
    if (found) {
        return same_id ? OUTBOX_THERE : OUTBOX_LOST;
    }
    /* Retention and purges remove messages of the stream that we know, and its sequences go on. */
    return kept->created_ns != stream->created_ns || kept->sequence > stream->last_sequence
               ? OUTBOX_LOST
               : OUTBOX_REMOVED;
}

bool pawl__delivery_outbox_search_next(const struct outbox_search *search, uint64_t *ret_sequence)
{
    if (search->no - search->yes <= 1) {
        return false;
    }
    *ret_sequence = search->yes + (search->no - search->yes) / 2;
    return true;
}

void pawl__delivery_outbox_search_told(struct outbox_search *search,
                                       uint64_t asked,
                                       uint64_t at,
                                       bool is_so)
{
    if (at < search->no && is_so) {
        search->yes = at;
    } else {
        search->no = asked; /* nothing is kept between the two */
    }
}

/* --- what may be forgotten --- */

bool pawl__delivery_outbox_ripe(const struct outbox_kept *kept,
                                uint64_t session,
                                int64_t keep_ns,
                                int64_t now_ns)
{
    return kept->session == session && now_ns - kept->acked_ns >= keep_ns;
}
