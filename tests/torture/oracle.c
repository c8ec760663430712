#include "torture/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fibonacci hashing: neighbours differ. */
static uint64_t mix(uint64_t number)
{
    return (number * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

uint64_t batch_len(uint64_t first)
{
    return mix(first) % 8 == 0 ? BATCH_LEN_MAX : 1 + mix(first) % 4;
}

size_t record_text(uint64_t number, char ret_text[RECORD_BYTES_MAX])
{
    int head = snprintf(ret_text, RECORD_BYTES_MAX, "record %llu ", (unsigned long long)number);
    size_t len = (size_t)head + mix(number) % (RECORD_BYTES_MAX / 2);

    for (size_t i = (size_t)head; i < len; i++) {
        ret_text[i] = (char)('a' + (number + i) % 26);
    }
    ret_text[len] = '\0';
    return len;
}

static void grow(struct oracle *oracle, uint64_t number)
{
    if (number < oracle->size) {
        return;
    }
    size_t size = (size_t)MAX(number + 1, oracle->size * 2);
    oracle->fate = realloc(oracle->fate, size);
    oracle->seen = realloc(oracle->seen, size);
    REQUIRE(oracle->fate != NULL);
    REQUIRE(oracle->seen != NULL);
    memset(&oracle->fate[oracle->size], 0, size - oracle->size);
    memset(&oracle->seen[oracle->size], 0, size - oracle->size);
    oracle->size = size;
}

void oracle_init(struct oracle *oracle)
{
    *oracle = (struct oracle){ .next = 1 };
    grow(oracle, 1024);
}

void oracle_done(struct oracle *oracle)
{
    free(oracle->fate);
    free(oracle->seen);
    *oracle = (struct oracle){ 0 };
}

bool oracle_acknowledge(struct oracle *oracle, uint64_t last)
{
    if (last != oracle->next + batch_len(oracle->next) - 1) {
        return false;
    }
    grow(oracle, last);
    for (uint64_t n = oracle->next; n <= last; n++) {
        oracle->fate[n] = 1;
    }
    oracle->next = last + 1;
    return true;
}

/* What no writer of ours could have made is kept in slot 0. */
void oracle_see(struct oracle *oracle, uint64_t number)
{
    uint64_t end = oracle->next + batch_len(oracle->next);

    grow(oracle, end);
    unsigned char *seen = &oracle->seen[number < end ? number : 0];
    *seen = (unsigned char)MIN(*seen + 1, UINT8_MAX);
}

/* The batch under way: its fate is what became of it. */
static bool settle_last_batch(struct oracle *oracle)
{
    uint64_t len = batch_len(oracle->next);
    uint64_t present = 0;

    grow(oracle, oracle->next + len);
    for (uint64_t n = oracle->next; n < oracle->next + len; n++) {
        oracle->fate[n] = oracle->seen[n] > 0;
        present += oracle->fate[n];
    }
    oracle->next += len;
    return present == 0 || present == len;
}

struct oracle_finding oracle_compare(struct oracle *oracle)
{
    struct oracle_finding finding = { .invented = oracle->seen[0] };

    finding.torn = !settle_last_batch(oracle);
    oracle->seen[0] = 0;
    for (uint64_t n = 1; n < oracle->next; n++) {
        unsigned fate = oracle->fate[n];
        unsigned seen = oracle->seen[n];
        finding.acknowledged += fate;
        finding.lost += fate > 0 && seen == 0;
        finding.invented += fate == 0 && seen > 0;
        finding.duplicated += seen > 1;
        if (fate > 0 && seen == 0 && finding.first_lost == 0) {
            finding.first_lost = n;
        }
        oracle->fate[n] = seen > 0;
        oracle->seen[n] = 0;
    }
    return finding;
}
