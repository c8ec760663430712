#include "torture/ledger/plan.h"

#include <stdio.h>
#include <string.h>

/* Fibonacci hashing: neighbours differ. */
static uint64_t mix(uint64_t number)
{
    return (number * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

static struct ledger_call plain_call(uint64_t number)
{
    struct ledger_call call = { .kind = CALL_APPEND, .count = 1, .original = number };

    if (mix(number) % 5 == 0) {
        call.kind = CALL_TURN;
        call.count = CALL_TURN_EVENTS;
        call.attempts = 1 + mix(number) % 2;
    } else if (mix(number) % 3 == 0) {
        call.count = 2 + (uint32_t)(mix(number + 1) % (CALL_EVENTS_MAX - 1));
    }
    return call;
}

/* The call before, at about the same time from another thread. */
struct ledger_call ledger_call_of(uint64_t number, uint64_t first)
{
    struct ledger_call call = plain_call(number);

    if (number > first && mix(number) % 4 == 1) {
        call = plain_call(number - 1);
        call.kind = call.kind == CALL_APPEND ? CALL_AGAIN : CALL_TURN;
        if (call.kind == CALL_TURN) { /* which belongs to one handle: no second one */
            return (struct ledger_call){ .kind = CALL_APPEND, .count = 1, .original = number };
        }
    }
    return call;
}

size_t ledger_call_payload(uint64_t number, uint32_t place, char ret_text[CALL_PAYLOAD_MAX])
{
    int head = snprintf(ret_text,
                        CALL_PAYLOAD_MAX,
                        "{\"call\":%llu,\"place\":%u,\"text\":\"",
                        (unsigned long long)number,
                        place);
    /* Now and then so long that a checkpoint comes soon. */
    size_t len = mix(number + place) % 16 == 0 ? 40000 : mix(number + place) % 600;

    for (size_t i = 0; i < len; i++) {
        ret_text[(size_t)head + i] = (char)('a' + (number + place + i) % 26);
    }
    memcpy(&ret_text[(size_t)head + len], "\"}", 3);
    return (size_t)head + len + 2;
}
