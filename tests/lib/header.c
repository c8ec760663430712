#include "lib/header.h"

#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/file.h"

static char *read_text(const char *path)
{
    const char *source = getenv("PAWL_SOURCE");
    char whole[4096];
    size_t size = 0;

    assert_non_null(source);
    snprintf(whole, sizeof(whole), "%s/%s", source, path);
    char *bytes = file_read(whole, &size);
    char *text = strndup(bytes, size);
    free(bytes);
    return text;
}

void assert_header_is_called(const char *header, const char *test, size_t least)
{
    char *declared = read_text(header);
    char *calls = read_text(test);
    size_t found = 0;

    for (char *at = strstr(declared, "PAWL_API "); at != NULL; at = strstr(at + 1, "PAWL_API ")) {
        char *end = strchr(at, '(');
        char *name = end;
        while (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z')) {
            name--;
        }
        char call[80];
        snprintf(call, sizeof(call), "%.*s(", (int)(end - name), name);
        if (strstr(calls, call) == NULL) {
            fail_msg("%s is not called", call);
        }
        found++;
    }
    assert_true(found >= least);
    free(declared);
    free(calls);
}
