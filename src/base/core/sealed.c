#include "base/core/sealed.h"

#include <inttypes.h>

#include "base/core/crc32c.h"

enum { SEAL_BYTES = 9 };

void pawl__sealed_end(struct pawl__buf *text)
{
    if (!text->broken) {
        pawl__buf_add_format(text, "%08" PRIx32 "\n", pawl__crc32c(pawl__buf_view(text)));
    }
}

bool pawl__sealed_open(pawl_view sealed, pawl_view *ret_text)
{
    char space[SEAL_BYTES + 1];
    struct pawl__buf seal = BUF_OVER(space);
    pawl_view rest = sealed;
    pawl_view text;

    if (sealed.len < SEAL_BYTES || !pawl__view_take(&rest, sealed.len - SEAL_BYTES, &text)) {
        return false;
    }
    pawl__buf_add_format(&seal, "%08" PRIx32 "\n", pawl__crc32c(text));
    if (!pawl__view_equal(pawl__buf_view(&seal), rest)) {
        return false;
    }
    *ret_text = text;
    return true;
}
