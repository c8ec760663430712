/* What a message may be called. Needs no server, and is in every build. */
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "net/nats/publish.h"

pawl_status pawl__nats_check_subject(const char *subject, pawl_error *reterr)
{
    NEED_TEXT(subject, reterr);
    size_t len = strlen(subject);
    bool wrong = len >= PAWL__NATS_SUBJECT_SIZE || subject[0] == '.' || subject[len - 1] == '.'
                 || strstr(subject, "..") != NULL;
    for (size_t i = 0; i < len; i++) {
        wrong = wrong || (unsigned char)subject[i] <= ' ' || strchr("*>\x7f", subject[i]) != NULL;
    }
    return wrong ? pawl__fail(reterr,
                              PAWL_INVALID,
                              "subject: must be 1 to 511 bytes, parts behind dots, without blanks, "
                              "'*' and '>'")
                 : PAWL_OK;
}

static bool is_header_name(pawl_view name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] <= ' ' || name.data[i] > '~' || name.data[i] == ':') {
            return false;
        }
    }
    return name.len > 0;
}

static bool is_header_value(pawl_view value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] == '\r' || value.data[i] == '\n' || value.data[i] == '\0') {
            return false;
        }
    }
    return true;
}

pawl_status pawl__nats_check_header(pawl_view name, pawl_view value, pawl_error *reterr)
{
    NEED_VIEW(name, reterr);
    NEED_VIEW(value, reterr);
    if (!is_header_name(name)) {
        return pawl__fail(
            reterr, PAWL_INVALID, "the name of a header must be printable ASCII without ':'");
    }
    if (!is_header_value(value)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "header '%.*s': a value must not contain CR, LF or NUL",
                          VIEW_ARGS(name));
    }
    return PAWL_OK;
}
