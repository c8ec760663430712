/* $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>, or since 2.10
 * $JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>[.<random>] */
#include <string.h>

#include "base/core/buf.h"
#include "net/nats/fetch.h"

enum { PARTS_OLD = 9, PARTS_NEW = 11, PARTS_MAX = 16 };

static bool parse_number(pawl_view text, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || __builtin_mul_overflow(number, 10, &number)
            || __builtin_add_overflow(number, (uint64_t)(text.data[i] - '0'), &number)) {
            return false;
        }
    }
    *ret_number = number;
    return text.len > 0;
}

bool pawl__nats_parse_reply(const char *reply, struct pawl__nats_message *message)
{
    pawl_view rest = pawl_view_of(reply);
    pawl_view parts[PARTS_MAX];
    uint64_t numbers[5];
    size_t count = 0;

    while (count < PARTS_MAX && pawl__view_split(&rest, '.', &parts[count])) {
        count++;
    }
    if (count < PARTS_OLD || (count > PARTS_OLD && count < PARTS_NEW) || count == PARTS_MAX
        || !pawl__view_is(parts[0], "$JS") || !pawl__view_is(parts[1], "ACK")) {
        return false;
    }
    const pawl_view *first = &parts[count == PARTS_OLD ? 4 : 6];
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        if (!parse_number(first[i], &numbers[i])) {
            return false;
        }
    }
    if (numbers[0] == 0 || numbers[3] > INT64_MAX) {
        return false;
    }
    message->redelivered = numbers[0] - 1;
    message->sequence = numbers[1];
    message->consumer_sequence = numbers[2];
    message->stored_ns = (int64_t)numbers[3];
    message->pending = numbers[4];
    return true;
}
