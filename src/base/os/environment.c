#include "base/os/environment.h"

#include <stddef.h>
#include <string.h>

const char *pawl__environment_get(const char *const *environment, const char *name)
{
    size_t len = strlen(name);

    for (; environment != NULL && *environment != NULL; environment++) {
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=') {
            const char *value = *environment + len + 1;
            return *value == '\0' ? NULL : value;
        }
    }
    return NULL;
}
