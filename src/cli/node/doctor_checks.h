/* Checks that stand in files of their own; the table of all is in doctor_look.c. */
#ifndef PAWL_CLI_NODE_DOCTOR_CHECKS_H
#define PAWL_CLI_NODE_DOCTOR_CHECKS_H

#include "cli/node/doctor.h"

void pawl__look_at_stores(struct pawl__doctor *doctor);
void pawl__look_at_postgres(struct pawl__doctor *doctor);

#endif
