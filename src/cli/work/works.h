/* What of pawl works today, honestly: one row a capability, changed in the commit that lands it.
 * `pawl doctor` ends with it. */
#ifndef PAWL_CLI_WORK_WORKS_H
#define PAWL_CLI_WORK_WORKS_H

#include <stdbool.h>

struct pawl__capability {
    const char *name;
    bool works;
    const char *gives;
};

enum { PAWL__CAPABILITIES_COUNT = 5 };
extern const struct pawl__capability pawl__capabilities[PAWL__CAPABILITIES_COUNT];

#endif
