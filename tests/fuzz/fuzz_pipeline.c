/* Any bytes as the declaration of a pipeline, and as what is stored of one: no crash. A declaration that is accepted is
 * stored, read back and stored again as the same bytes; what follows it keeps its generations. */
#include "fuzz/fuzz.h"

#include "base/core/buf.h"
#include "delivery/service/declaration.h"

enum { STORED_BYTES_MAX = 1 << 22 };

static void check_stored(const struct delivery_declared *declared)
{
    AUTO(pawl__buf_done) struct pawl__buf first = BUF_INIT(STORED_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf second = BUF_INIT(STORED_BYTES_MAX);
    struct delivery_declared again;
    pawl_error error = PAWL_ERROR_INIT;

    pawl__delivery_declared_write(declared, &first);
    pawl_status status = pawl__delivery_declared_read(pawl__buf_view(&first), &again, &error);
    if (status != PAWL_OK) {
        fprintf(stderr, "%s\n%s\n", error.message, first.data);
    }
    CHECK(status == PAWL_OK);
    pawl__delivery_declared_write(&again, &second);
    CHECK(pawl__view_equal(pawl__buf_view(&first), pawl__buf_view(&second)));
    CHECK(again.generation_count == declared->generation_count);
    pawl__delivery_declared_done(&again);
}

static void check_follows(pawl_view json, const struct delivery_declared *declared)
{
    struct delivery_declared next;

    CHECK(pawl__delivery_declare(json, &next, NULL) == PAWL_OK);
    CHECK(pawl__delivery_declared_follow(declared, &next, NULL) == PAWL_OK); /* the same again */
    CHECK(next.generation_count == declared->generation_count);
    pawl__delivery_declared_done(&next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pawl_view bytes = { (const char *)data, size };
    struct delivery_declared declared;

    pawl_status status = pawl__delivery_declare(bytes, &declared, NULL);
    CHECK(status == PAWL_OK || status == PAWL_INVALID);
    if (status == PAWL_OK) {
        CHECK(declared.location != NULL);
        CHECK(declared.is.into.len > 0);
        check_stored(&declared);
        check_follows(bytes, &declared);
        pawl__delivery_declared_done(&declared);
    }
    status = pawl__delivery_declared_read(bytes, &declared, NULL);
    CHECK(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_UNSUPPORTED);
    if (status == PAWL_OK) {
        check_stored(&declared);
        pawl__delivery_declared_done(&declared);
    }
    return 0;
}
