#include "base/core/hash.h"

#include <string.h>

#include "base/core/random.h"

pawl_status pawl__hash_seed(struct pawl__hash_seed *ret_seed, pawl_error *reterr)
{
    return pawl__random_bytes(pawl__random_real(), ret_seed, sizeof(*ret_seed), reterr);
}

static uint64_t rotate(uint64_t value, int by)
{
    return value << by | value >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

uint64_t pawl__hash_bytes(const struct pawl__hash_seed *seed, pawl_view bytes)
{
    uint64_t v[4] = {
        seed->words[0] ^ 0x736F6D6570736575,
        seed->words[1] ^ 0x646F72616E646F6D,
        seed->words[0] ^ 0x6C7967656E657261,
        seed->words[1] ^ 0x7465646279746573,
    };
    uint64_t last = (uint64_t)bytes.len << 56;
    size_t at = 0;

    for (; bytes.len - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, &bytes.data[at], sizeof(word));
        sip_word(v, word);
    }
    for (size_t i = 0; at + i < bytes.len; i++) {
        last |= (uint64_t)(unsigned char)bytes.data[at + i] << (8 * i);
    }
    sip_word(v, last);
    v[2] ^= 0xFF;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
