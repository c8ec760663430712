/* What <pawl/pawl.h> offers beside errors and logs: the version, and texts that the library and its callers hand
 * to each other. */
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number

const char *pawl_version(void)
{
    return TEXT_OF(PAWL_VERSION_MAJOR) "." TEXT_OF(PAWL_VERSION_MINOR) "." TEXT_OF(
        PAWL_VERSION_PATCH);
}

uint32_t pawl_version_number(void)
{
    return PAWL_VERSION_NUMBER;
}

pawl_view pawl_view_of(const char *text)
{
    return (pawl_view){ .data = text, .len = text == NULL ? 0 : strlen(text) };
}

char *pawl_copy_text(pawl_view text)
{
    bool bytes = text.data != NULL;
    char *copy = bytes || text.len == 0 ? malloc(text.len + 1) : NULL;

    if (copy != NULL) {
        memcpy(copy, bytes ? text.data : "", text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

void pawl_free(void *memory)
{
    free(memory);
}
