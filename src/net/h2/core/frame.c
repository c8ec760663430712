#include "net/h2/core/frame.h"

#include <string.h>

#include "base/core/error.h"
#include "net/h2/core/gzip.h"

void pawl__h2_deframer_done(struct pawl__h2_deframer *deframer)
{
    pawl__buf_done(&deframer->raw);
    pawl__buf_done(&deframer->whole);
}

bool pawl__h2_deframer_is_open(const struct pawl__h2_deframer *deframer)
{
    return deframer->prefix_len > 0;
}

size_t pawl__h2_deframer_bytes(const struct pawl__h2_deframer *deframer)
{
    return deframer->raw.cap + deframer->whole.cap;
}

void pawl__h2_prefix(char ret_prefix[PAWL__H2_PREFIX_SIZE], bool compressed, size_t len)
{
    ret_prefix[0] = compressed ? 1 : 0;
    for (size_t i = 0; i < 4; i++) {
        ret_prefix[1 + i] = (char)(len >> (24 - 8 * i) & 0xff);
    }
}

static enum pawl__h2_deframed bad(enum pawl__h2_code code, enum pawl__h2_code *ret_code)
{
    *ret_code = code;
    return PAWL__H2_BAD;
}

static enum pawl__h2_deframed nomem(enum pawl__h2_code *ret_code, pawl_error *reterr)
{
    pawl__fail(reterr, PAWL_NOMEM, "no memory for a message");
    return bad(PAWL__H2_RESOURCE_EXHAUSTED, ret_code);
}

static bool take_prefix(struct pawl__h2_deframer *deframer, pawl_view *in)
{
    pawl_view part = { 0 };
    size_t missing = PAWL__H2_PREFIX_SIZE - deframer->prefix_len;

    if (!pawl__view_take(in, MIN(missing, in->len), &part)) {
        return false;
    }
    if (part.len > 0) {
        memcpy(&deframer->prefix[deframer->prefix_len], part.data, part.len);
    }
    deframer->prefix_len += part.len;
    return deframer->prefix_len == PAWL__H2_PREFIX_SIZE;
}

/* The prefix has just become whole. */
static enum pawl__h2_deframed check_prefix(struct pawl__h2_deframer *deframer,
                                           enum pawl__h2_code *ret_code,
                                           pawl_error *reterr)
{
    pawl_view prefix = { deframer->prefix, PAWL__H2_PREFIX_SIZE };
    uint8_t flag = 0;
    uint32_t len = 0;

    if (!pawl__view_take_u8(&prefix, &flag) || !pawl__view_take_u32be(&prefix, &len) || flag > 1) {
        pawl__fail(reterr, PAWL_INVALID, "a message begins with flag %u, not 0 or 1", flag);
        return bad(PAWL__H2_INTERNAL, ret_code);
    }
    if (flag == 1 && !deframer->gzip) {
        pawl__fail(reterr, PAWL_INVALID, "a compressed message without grpc-encoding");
        return bad(PAWL__H2_INTERNAL, ret_code);
    }
    if (len > deframer->bytes_max) {
        pawl__fail(reterr,
                   PAWL_NO_SPACE,
                   "a message of %u bytes, the limit is %zu",
                   (unsigned)len,
                   deframer->bytes_max);
        return bad(PAWL__H2_RESOURCE_EXHAUSTED, ret_code);
    }
    deframer->wanted = len;
    pawl__buf_clear(&deframer->raw);
    deframer->raw.max = len;
    return PAWL__H2_MORE;
}

static enum pawl__h2_deframed unpack(struct pawl__h2_deframer *deframer,
                                     pawl_view *message,
                                     enum pawl__h2_code *ret_code,
                                     pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    pawl__buf_clear(&deframer->whole);
    deframer->whole.max = deframer->bytes_max;
    pawl_status status = pawl__h2_gunzip(*message, &deframer->whole, &error);
    if (status != PAWL_OK) {
        pawl__fail(reterr, status, "a compressed message: %s", error.message);
        return bad(status == PAWL_INVALID ? PAWL__H2_INTERNAL : PAWL__H2_RESOURCE_EXHAUSTED,
                   ret_code);
    }
    *message = pawl__buf_view(&deframer->whole);
    return PAWL__H2_MESSAGE;
}

enum pawl__h2_deframed pawl__h2_deframe(struct pawl__h2_deframer *deframer,
                                        pawl_view *in,
                                        pawl_view *ret_message,
                                        enum pawl__h2_code *ret_code,
                                        pawl_error *reterr)
{
    pawl_view part = { 0 };

    if (deframer->prefix_len < PAWL__H2_PREFIX_SIZE) {
        if (!take_prefix(deframer, in)) {
            return PAWL__H2_MORE;
        }
        if (check_prefix(deframer, ret_code, reterr) == PAWL__H2_BAD) {
            return PAWL__H2_BAD;
        }
    }
    size_t missing = deframer->wanted - deframer->raw.len;
    if (!pawl__view_take(in, MIN(missing, in->len), &part)) {
        return PAWL__H2_MORE;
    }
    /* A message that is here in one piece needs no copy. */
    bool direct = part.len == deframer->wanted;
    if (!direct) {
        pawl__buf_add(&deframer->raw, part);
        if (deframer->raw.broken) {
            return nomem(ret_code, reterr);
        }
        if (deframer->raw.len < deframer->wanted) {
            return PAWL__H2_MORE;
        }
    }
    pawl_view message = direct ? part : pawl__buf_view(&deframer->raw);
    deframer->prefix_len = 0;
    if (deframer->prefix[0] == 1 && unpack(deframer, &message, ret_code, reterr) == PAWL__H2_BAD) {
        return PAWL__H2_BAD;
    }
    *ret_message = message;
    return PAWL__H2_MESSAGE;
}
