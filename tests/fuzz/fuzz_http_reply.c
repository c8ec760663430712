/* Any bytes as the answer of a server, whole and one by one: no crash, both ways the same, the limits hold. */
#include "fuzz/fuzz.h"

#include "base/core/macros.h"
#include "net/http/reply.h"

enum { BODY_MAX = 4096 };

static pawl_status gather(void *context, pawl_view bytes, pawl_error *reterr)
{
    (void)reterr;
    CHECK(bytes.len > 0);
    pawl__buf_add(context, bytes);
    return PAWL_OK;
}

/* In pieces of `step` bytes. The bytes behind the answer are not looked at. */
static pawl_status read_in(pawl_view bytes,
                           size_t step,
                           struct pawl__buf *body,
                           struct pawl__http_reply *reply)
{
    pawl_status status = PAWL_OK;
    pawl_error error = PAWL_ERROR_INIT;

    pawl__http_reply_init(reply, BODY_MAX, gather, body);
    while (status == PAWL_OK && bytes.len > 0 && reply->state != HTTP_REPLY_DONE) {
        pawl_view piece;

        CHECK(pawl__view_take(&bytes, MIN(step, bytes.len), &piece));
        status = pawl__http_reply_feed(reply, &piece, &error);
        CHECK(status != PAWL_OK || piece.len == 0 || reply->state == HTTP_REPLY_DONE);
    }
    if (status == PAWL_OK) {
        status = pawl__http_reply_end(reply, &error);
    }
    CHECK(status == PAWL_OK || status == PAWL_INVALID);
    CHECK(status != PAWL_OK || (reply->code >= 200 && reply->code <= 999));
    CHECK(body->len <= BODY_MAX);
    pawl__http_reply_done(reply);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pawl_view bytes = { (const char *)data, size };
    AUTO(pawl__buf_done) struct pawl__buf whole = BUF_INIT(1 << 20);
    AUTO(pawl__buf_done) struct pawl__buf single = BUF_INIT(1 << 20);
    struct pawl__http_reply a;
    struct pawl__http_reply b;
    pawl_status status = read_in(bytes, SIZE_MAX, &whole, &a);

    CHECK(read_in(bytes, 1, &single, &b) == status);
    if (status == PAWL_OK) {
        CHECK(a.code == b.code && a.closes == b.closes);
        CHECK(pawl__view_equal(pawl__buf_view(&whole), pawl__buf_view(&single)));
    }
    return 0;
}
