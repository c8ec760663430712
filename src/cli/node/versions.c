#include "cli/node/versions.h"

#include <stdio.h>

#include "net/http/http.h"

void pawl__cli_versions(struct pawl__part ret_parts[VERSIONS_COUNT])
{
    struct pawl__part *http = &ret_parts[PAWL__PARTS_COUNT - 1];

    pawl__parts(ret_parts);
    ret_parts[PAWL__PARTS_COUNT] = *http; /* the compiler */
    http->name = "libmicrohttpd";
    snprintf(http->version, sizeof(http->version), "%s", pawl__http_library_version());
}
