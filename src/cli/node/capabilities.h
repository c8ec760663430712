/* What of pawl works today, honestly: one row per capability, changed in the commit that lands it.
 * `pawl doctor` ends with it. */
#ifndef PAWL_CLI_NODE_CAPABILITIES_H
#define PAWL_CLI_NODE_CAPABILITIES_H

#include <stdbool.h>

struct pawl__cli_capability {
    const char *name;
    bool works;
    const char *gives;
};

enum { PAWL__CAPABILITIES_COUNT = 5 };
extern const struct pawl__cli_capability pawl__cli_capabilities[PAWL__CAPABILITIES_COUNT];

#endif
