#include "net/nats/nkey.h"

#include <string.h>

#include <openssl/evp.h>

#include "base/core/error.h"

enum {
    KEY_BYTES = 32,
    SEED_CHARS = 58,                  /* 36 bytes in base32 */
    SEED_BYTES = 2 + KEY_BYTES + 2,   /* two of prefix, the key, the checksum */
    PUBLIC_BYTES = 1 + KEY_BYTES + 2, /* one of prefix */
    PREFIX_SEED = 18 << 3,            /* 'S' */
};

static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/* CRC-16/XMODEM, as the format has it. */
static uint16_t crc16(const uint8_t *bytes, size_t len)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < len; i++) {
        crc = (uint16_t)(crc ^ (bytes[i] << 8));
        for (int bit = 0; bit < 8; bit++) {
            crc = (uint16_t)((crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1);
        }
    }
    return crc;
}

static bool decode_seed(pawl_view text, uint8_t ret_bytes[SEED_BYTES])
{
    uint32_t bits = 0;
    int held = 0;
    size_t count = 0;

    if (text.len != SEED_CHARS) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        const char *digit = text.data[i] == '\0' ? NULL : strchr(base32, text.data[i]);
        if (digit == NULL) {
            return false;
        }
        bits = (bits << 5) | (uint32_t)(digit - base32);
        held += 5;
        if (held >= 8 && count < SEED_BYTES) {
            held -= 8;
            ret_bytes[count++] = (uint8_t)(bits >> held);
        }
    }
    uint16_t stored = (uint16_t)(ret_bytes[SEED_BYTES - 2] | ret_bytes[SEED_BYTES - 1] << 8);
    return count == SEED_BYTES && (ret_bytes[0] & 0xF8) == PREFIX_SEED
           && crc16(ret_bytes, SEED_BYTES - 2) == stored;
}

static void encode_public(const uint8_t bytes[PUBLIC_BYTES], char ret_text[PAWL__NKEY_SIZE])
{
    uint32_t bits = 0;
    int held = 0;
    size_t len = 0;

    for (size_t i = 0; i < PUBLIC_BYTES; i++) {
        bits = (bits << 8) | bytes[i];
        held += 8;
        while (held >= 5) {
            held -= 5;
            ret_text[len++] = base32[(bits >> held) & 31];
        }
    }
    ret_text[len] = '\0'; /* 35 bytes are 56 digits, with nothing left over */
}

pawl_status pawl__nats_nkey_public(pawl_view seed,
                                   char ret_public[PAWL__NKEY_SIZE],
                                   pawl_error *reterr)
{
    uint8_t raw[SEED_BYTES] = { 0 };
    uint8_t public[PUBLIC_BYTES] = { 0 };
    size_t len = KEY_BYTES;

    if (!decode_seed(seed, raw)) {
        explicit_bzero(raw, sizeof(raw));
        return pawl__fail(reterr, PAWL_INVALID, "not an nkey seed: expected 58 characters, SU...");
    }
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, &raw[2], KEY_BYTES);
    bool made = key != NULL && EVP_PKEY_get_raw_public_key(key, &public[1], &len) == 1;
    EVP_PKEY_free(key);
    /* A seed's second prefix says whose it is; it is spread over two bytes. */
    public[0] = (uint8_t)((raw[0] & 7) << 5 | (raw[1] & 0xF8) >> 3);
    explicit_bzero(raw, sizeof(raw));
    if (!made) {
        return pawl__fail(reterr, PAWL_FAILED, "OpenSSL makes no ed25519 key of the nkey seed");
    }
    uint16_t crc = crc16(public, PUBLIC_BYTES - 2);
    public[PUBLIC_BYTES - 2] = (uint8_t)crc;
    public[PUBLIC_BYTES - 1] = (uint8_t)(crc >> 8);
    encode_public(public, ret_public);
    return PAWL_OK;
}
