#include "delivery/core/message.h"

#include <strings.h>

static bool is_named(pawl_view name, pawl_view wanted)
{
    return name.len == wanted.len && strncasecmp(name.data, wanted.data, name.len) == 0;
}

pawl_view pawl__delivery_header(const struct delivery_message *message, const char *name)
{
    pawl_view wanted = pawl_view_of(name);

    for (size_t i = 0; i < message->header_count; i++) {
        if (is_named(message->headers[i].name, wanted)) {
            return message->headers[i].value;
        }
    }
    return (pawl_view){ NULL, 0 };
}
