#include "net/nats/truth.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/argument.h"

/* --- is the stream the same --- */

const char *pawl__nats_verdict_name(enum pawl__nats_verdict verdict)
{
    static const char *const names[] = { "same",   "recreated", "rolled_back",
                                         "purged", "overtaken", "consumer_lost" };

    return (size_t)verdict < COUNT_OF(names) ? names[verdict] : "unknown";
}

struct pawl__nats_anchor pawl__nats_anchor_of(uint64_t sequence, int64_t stored_ns, pawl_view id)
{
    struct pawl__nats_anchor anchor = { .sequence = sequence, .stored_ns = stored_ns };

    snprintf(anchor.id, sizeof(anchor.id), "%.*s", VIEW_ARGS(id));
    return anchor;
}

enum pawl__nats_match pawl__nats_match_anchor(const struct pawl__nats_anchor *anchor,
                                              const struct pawl__nats_stored *stored)
{
    struct pawl__nats_anchor now =
        pawl__nats_anchor_of(stored->sequence, stored->stored_ns, pawl__buf_view(&stored->id));

    return now.sequence == anchor->sequence && now.stored_ns == anchor->stored_ns
                   && strcmp(now.id, anchor->id) == 0
               ? PAWL__NATS_MATCHES
               : PAWL__NATS_DIFFERS;
}

/* Of an empty stream servers say 0, or one above the last. */
static uint64_t first_of(const struct pawl__nats_stream *stream)
{
    return stream->messages == 0 ? stream->last_seq + 1 : stream->first_seq;
}

/* The last place at which both agree. */
static uint64_t last_match(const struct pawl__nats_known *known, const struct pawl__nats_seen *seen)
{
    uint64_t sequence = 0;

    for (size_t i = 0; i < known->anchor_count && seen->matches != NULL; i++) {
        if (seen->matches[i] == PAWL__NATS_DIFFERS) {
            break;
        }
        if (seen->matches[i] == PAWL__NATS_MATCHES) {
            sequence = known->anchors[i].sequence;
        }
    }
    return sequence;
}

static bool is_rolled_back(const struct pawl__nats_known *known, const struct pawl__nats_seen *seen)
{
    const struct pawl__nats_stream *stream = seen->stream;

    for (size_t i = 0; i < known->anchor_count && seen->matches != NULL; i++) {
        if (seen->matches[i] == PAWL__NATS_DIFFERS) {
            return true;
        }
    }
    return stream->last_seq < known->applied_seq
           || (seen->consumer != NULL && stream->last_seq < seen->consumer->delivered_seq);
}

/* Whether a limit of the stream explains that messages went; otherwise somebody removed them. */
static bool is_retention(const struct pawl__nats_known *known, const struct pawl__nats_seen *seen)
{
    const struct pawl__nats_stream *stream = seen->stream;
    int64_t stored_ns =
        known->anchor_count == 0 ? 0 : known->anchors[known->anchor_count - 1].stored_ns;

    if (stream->max_age_ns > 0 && seen->now_ns - stored_ns >= stream->max_age_ns) {
        return true;
    }
    if (stream->max_messages > 0 && stream->messages >= (uint64_t)stream->max_messages) {
        return true;
    }
    /* A stream at its limit of bytes is below it by less than one message. */
    return stream->max_messages_per_subject > 0
           || (stream->max_bytes > 0 && stream->messages > 0
               && stream->bytes + 2 * (stream->bytes / stream->messages)
                      >= (uint64_t)stream->max_bytes);
}

static bool is_consumer_lost(const struct pawl__nats_known *known,
                             const struct pawl__nats_seen *seen)
{
    const struct pawl__nats_consumer *consumer = seen->consumer;

    return consumer == NULL
           || (known->consumer_created_ns != 0
               && consumer->created_ns != known->consumer_created_ns)
           || consumer->delivered_seq < known->applied_seq;
}

static int64_t margin_of(const struct pawl__nats_known *known, const struct pawl__nats_seen *seen)
{
    const struct pawl__nats_stream *stream = seen->stream;

    if (stream->max_age_ns <= 0 || known->anchor_count == 0
        || stream->last_seq <= known->applied_seq) {
        return INT64_MAX;
    }
    /* The first message that we miss is at least as young as the newest that we have. */
    return known->anchors[known->anchor_count - 1].stored_ns + stream->max_age_ns - seen->now_ns;
}

static struct pawl__nats_finding renewed(enum pawl__nats_verdict verdict, uint64_t resume_seq)
{
    return (struct pawl__nats_finding){
        .verdict = verdict, .renew_consumer = true, .resume_seq = resume_seq, .margin_ns = INT64_MAX
    };
}

struct pawl__nats_finding pawl__nats_compare_stream(const struct pawl__nats_known *known,
                                                    const struct pawl__nats_seen *seen)
{
    const struct pawl__nats_stream *stream = seen->stream;
    uint64_t first = first_of(stream);
    uint64_t next = known->applied_seq + 1;

    if (known->stream_created_ns == 0) {
        struct pawl__nats_finding fresh = renewed(PAWL__NATS_SAME, first);
        fresh.renew_consumer = false;
        return fresh;
    }
    if (stream->created_ns != known->stream_created_ns) {
        return renewed(PAWL__NATS_RECREATED, first);
    }
    if (is_rolled_back(known, seen)) {
        /* Where exactly it forked nobody knows: from the last agreement on, all may be new. */
        return renewed(PAWL__NATS_ROLLED_BACK, MAX(first, last_match(known, seen) + 1));
    }
    struct pawl__nats_finding finding = { .resume_seq = MAX(first, next),
                                          .renew_consumer = is_consumer_lost(known, seen),
                                          .margin_ns = margin_of(known, seen) };
    finding.verdict = finding.renew_consumer ? PAWL__NATS_CONSUMER_LOST : PAWL__NATS_SAME;
    if (first > next) {
        finding.verdict = is_retention(known, seen) ? PAWL__NATS_OVERTAKEN : PAWL__NATS_PURGED;
        finding.lost_from = next;
        finding.lost_to = first - 1;
    }
    return finding;
}

pawl_status pawl__nats_match_anchors(struct pawl__nats *nats,
                                     const struct pawl__nats_stream *stream,
                                     const struct pawl__nats_known *known,
                                     enum pawl__nats_match *ret_matches,
                                     pawl_error *reterr)
{
    for (size_t i = 0; i < known->anchor_count; i++) {
        const struct pawl__nats_anchor *anchor = &known->anchors[i];
        struct pawl__nats_stored stored = { 0 };
        pawl_error error = PAWL_ERROR_INIT;

        if (anchor->sequence > stream->last_seq || anchor->sequence < first_of(stream)) {
            ret_matches[i] = PAWL__NATS_GONE;
            continue;
        }
        pawl_status status =
            pawl__nats_stream_get(nats, stream->name, anchor->sequence, &stored, &error);
        if (status != PAWL_OK && (status != PAWL_NOT_FOUND || error.native != 10037)) {
            return pawl__fail_with(reterr, status, &error);
        }
        ret_matches[i] =
            status == PAWL_OK ? pawl__nats_match_anchor(anchor, &stored) : PAWL__NATS_GONE;
        pawl__nats_stored_done(&stored);
    }
    return PAWL_OK;
}

/* --- are stream and consumer fit --- */

PRINTF_LIKE(4, 5)
static void write_needed(struct pawl__nats_difference *difference,
                         const char *why,
                         bool dangerous,
                         const char *format,
                         ...)
{
    va_list arguments;

    difference->why = why;
    difference->dangerous = dangerous;
    va_start(arguments, format);
    vsnprintf(difference->needed, sizeof(difference->needed), format, arguments);
    va_end(arguments);
}

PRINTF_LIKE(3, 4)
static struct pawl__nats_difference *add(struct pawl__nats_differences *differences,
                                         const char *field,
                                         const char *found,
                                         ...)
{
    va_list arguments;

    REQUIRE(differences->count < PAWL__NATS_DIFFERENCES_MAX);
    struct pawl__nats_difference *difference = &differences->at[differences->count++];
    difference->field = field;
    va_start(arguments, found);
    vsnprintf(difference->found, sizeof(difference->found), found, arguments);
    va_end(arguments);
    return difference;
}

static void count_dangerous(struct pawl__nats_differences *differences)
{
    for (size_t i = 0; i < differences->count; i++) {
        differences->dangerous_count += differences->at[i].dangerous;
    }
}

static void compare_kind(const struct pawl__nats_consumer *consumer,
                         struct pawl__nats_differences *all)
{
    static const char *const policies[] = { "explicit", "none", "all" };

    if (!consumer->durable) {
        write_needed(
            add(all, "durable_name", "none"), "its position dies with the connection", true, "set");
    }
    if (consumer->push) {
        write_needed(add(all, "deliver_subject", "set"), "it pushes", true, "unset (pull)");
    }
    if (consumer->ack_policy != PAWL__NATS_ACK_EXPLICIT) {
        write_needed(add(all, "ack_policy", "%s", policies[consumer->ack_policy]),
                     "a message could count as acknowledged that nobody has",
                     true,
                     "explicit");
    }
    if (consumer->max_deliver != -1) {
        write_needed(add(all, "max_deliver", "%lld", (long long)consumer->max_deliver),
                     "the server would give up on messages during an outage",
                     true,
                     "-1");
    }
    if (consumer->headers_only) {
        write_needed(add(all, "headers_only", "true"), "payloads would be missing", true, "false");
    }
    if (consumer->replays_slowly) {
        write_needed(add(all, "replay_policy", "original"),
                     "it delivers no faster than messages were stored",
                     false,
                     "instant");
    }
}

static void compare_limits(const struct pawl__nats_consumer *consumer,
                           const struct pawl__nats_consumer_need *need,
                           struct pawl__nats_differences *all)
{
    int64_t pending =
        need->max_ack_pending == 0 ? PAWL__NATS_ACK_PENDING_MAX : need->max_ack_pending;
    int64_t batch = need->batch_max == 0 ? pending : need->batch_max;
    int64_t wait_ns = need->ack_wait_ns == 0 ? PAWL__NATS_ACK_WAIT_NS : need->ack_wait_ns;

    if (consumer->inactive_ns > 0) {
        write_needed(
            add(all, "inactive_threshold", "%llds", (long long)(consumer->inactive_ns / NS_PER_S)),
            "the server deletes it during a long pause",
            true,
            "unset");
    }
    if (consumer->ack_wait_ns < wait_ns) {
        write_needed(add(all, "ack_wait", "%lldms", (long long)(consumer->ack_wait_ns / NS_PER_MS)),
                     "messages come again while we still work on them",
                     false,
                     "%lldms or more",
                     (long long)(wait_ns / NS_PER_MS));
    }
    if (consumer->backoff_count > 0) {
        write_needed(add(all, "backoff", "%d waits", consumer->backoff_count),
                     "they replace ack_wait",
                     false,
                     "unset");
    }
    if (consumer->max_ack_pending > 0 && consumer->max_ack_pending < pending) {
        write_needed(add(all, "max_ack_pending", "%lld", (long long)consumer->max_ack_pending),
                     "it stops delivering before a batch is full",
                     consumer->max_ack_pending < batch,
                     "%lld or more",
                     (long long)pending);
    }
    if (consumer->max_request_batch > 0 && consumer->max_request_batch < batch) {
        write_needed(add(all, "max_request_batch", "%lld", (long long)consumer->max_request_batch),
                     "the server refuses our fetches",
                     true,
                     "%lld or more",
                     (long long)batch);
    }
}

static void compare_rest(const struct pawl__nats_consumer *consumer,
                         const struct pawl__nats_consumer_need *need,
                         struct pawl__nats_differences *all)
{
    const char *filter = need->filter == NULL ? "" : need->filter;

    if (strcmp(consumer->filter, filter) != 0) {
        write_needed(add(all, "filter_subject", "'%.40s'", consumer->filter),
                     "it delivers other messages than the pipeline reads",
                     true,
                     "'%.40s'",
                     filter);
    }
    if (consumer->in_memory) {
        write_needed(add(all, "mem_storage", "true"),
                     "its position is lost when the server restarts",
                     false,
                     "false");
    }
    if (consumer->max_request_bytes > 0) {
        write_needed(
            add(all, "max_request_max_bytes", "%lld", (long long)consumer->max_request_bytes),
            "the server refuses fetches of more bytes",
            false,
            "unset");
    }
    if (consumer->max_request_expires_ns > 0) {
        write_needed(add(all,
                         "max_request_expires",
                         "%lldms",
                         (long long)(consumer->max_request_expires_ns / NS_PER_MS)),
                     "the server refuses fetches that wait longer",
                     false,
                     "unset");
    }
}

struct pawl__nats_differences pawl__nats_compare_consumer(
    const struct pawl__nats_consumer *consumer, const struct pawl__nats_consumer_need *need)
{
    struct pawl__nats_differences all = { .count = 0 };

    compare_kind(consumer, &all);
    compare_limits(consumer, need, &all);
    compare_rest(consumer, need, &all);
    count_dangerous(&all);
    return all;
}

struct pawl__nats_differences pawl__nats_check_stream(const struct pawl__nats_stream *stream)
{
    struct pawl__nats_differences all = { .count = 0 };

    if (stream->in_memory) {
        write_needed(
            add(&all, "storage", "memory"), "a restart of the server empties it", true, "file");
    }
    if (stream->no_ack) {
        write_needed(
            add(&all, "no_ack", "true"), "publishers never learn what was stored", true, "false");
    }
    if (stream->retention != PAWL__NATS_KEEPS_BY_LIMITS) {
        write_needed(
            add(&all,
                "retention",
                "%s",
                stream->retention == PAWL__NATS_KEEPS_BY_INTEREST ? "interest" : "workqueue"),
            "acknowledged messages are gone: no replay, no rebuild from the stream",
            false,
            "limits");
    }
    if (!stream->discards_new
        && (stream->max_messages > 0 || stream->max_bytes > 0
            || stream->max_messages_per_subject > 0)) {
        write_needed(add(&all, "discard", "old"),
                     "at its limits it drops messages that nobody has read",
                     false,
                     "new, or no limits but max_age");
    }
    if (stream->duplicates_ns <= 0) {
        write_needed(add(&all, "duplicate_window", "0s"),
                     "a publisher that repeats a message stores it twice",
                     false,
                     "2m");
    }
    count_dangerous(&all);
    return all;
}

pawl_status pawl__nats_refuse(const struct pawl__nats_differences *differences,
                              const char *what,
                              const char *name,
                              pawl_error *reterr)
{
    char text[PAWL_ERROR_MESSAGE_SIZE];
    struct pawl__buf buf = BUF_OVER(text);

    if (differences->dangerous_count == 0) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < differences->count; i++) {
        const struct pawl__nats_difference *difference = &differences->at[i];
        if (difference->dangerous) {
            pawl__buf_add_format(&buf,
                                 "%s%s is %s, must be %s (%s)",
                                 buf.len == 0 ? "" : "; ",
                                 difference->field,
                                 difference->found,
                                 difference->needed,
                                 difference->why);
        }
    }
    return pawl__fail(
        reterr, PAWL_CONFLICT, "%s '%s': %.*s", what, name, VIEW_ARGS(pawl__buf_view(&buf)));
}
