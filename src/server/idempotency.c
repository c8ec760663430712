#include "server/idempotency.h"

#include <string.h>

#include "base/core/error.h"

static pawl_status malformed(const char *what, pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_INVALID, "the header Idempotency-Key %s", what);
}

/* Between quotes; false when it does not end where the header does. */
static bool unquote(const char *text, struct pawl__buf *key)
{
    for (text++; *text != '\0' && *text != '"'; text++) {
        if (*text == '\\' && (text[1] == '"' || text[1] == '\\')) {
            text++;
        } else if (*text == '\\') {
            return false;
        }
        pawl__buf_add_char(key, *text);
    }
    return text[0] == '"' && text[1] == '\0';
}

_Static_assert(IDEMPOTENCY_KEY_MAX == 255, "the messages below say so");

static bool is_printable(pawl_view key, char least)
{
    for (size_t i = 0; i < key.len; i++) {
        if (key.data[i] < least || key.data[i] > '~') {
            return false;
        }
    }
    return true;
}

pawl_status pawl__serve_idempotency_key(const char *header,
                                        struct pawl__buf *ret_key,
                                        pawl_error *reterr)
{
    bool quoted = header[0] == '"';

    if (strlen(header) > 2 * IDEMPOTENCY_KEY_MAX + 2) {
        return malformed("is over 255 bytes", reterr);
    }
    if (quoted) {
        if (!unquote(header, ret_key)) {
            return malformed("has quotes that do not match", reterr);
        }
    } else {
        pawl__buf_add_text(ret_key, header);
    }
    if (ret_key->broken || ret_key->len > IDEMPOTENCY_KEY_MAX) {
        return malformed("is over 255 bytes", reterr);
    }
    if (ret_key->len == 0) {
        return malformed("is empty", reterr);
    }
    /* A blank may stand between quotes only: elsewhere nobody knows whether it was meant. */
    if (!is_printable(pawl__buf_view(ret_key), quoted ? ' ' : '!')) {
        return malformed("has more than visible ASCII", reterr);
    }
    return PAWL_OK;
}
