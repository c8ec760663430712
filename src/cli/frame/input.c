#include "cli/frame/input.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"

static pawl_status no_memory(const char *name, pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for the %s", name);
}

pawl_status pawl__cli_input_read(
    const char *name, const char *given, size_t bytes_max, char **ret_text, pawl_error *reterr)
{
    const char *path = strcmp(given, "-") == 0 ? "/dev/stdin" : given + 1;
    size_t len = 0;

    if (given[0] != '@' && strcmp(given, "-") != 0) {
        *ret_text = strdup(given);
        return *ret_text == NULL ? no_memory(name, reterr) : PAWL_OK;
    }
    AUTO(pawl__text_free) char *text = malloc(bytes_max + 2);
    if (text == NULL) {
        return no_memory(name, reterr);
    }
    pawl_status status = pawl__fs_read_given(path, text, bytes_max + 2, &len, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "%s", name);
    }
    if (memchr(text, '\0', len) != NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: has a NUL byte in it", name);
    }
    if (len > 0 && text[len - 1] == '\n') {
        text[len - 1] = '\0';
    }
    *ret_text = STEAL(text);
    return PAWL_OK;
}
