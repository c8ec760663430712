/* Checks that stand in files of their own; the table of all is in doctor_inspect.c. */
#ifndef PAWL_CLI_NODE_DOCTOR_CHECKS_H
#define PAWL_CLI_NODE_DOCTOR_CHECKS_H

#include "cli/node/doctor.h"

void pawl__cli_inspect_stores(struct pawl__cli_doctor *doctor);
void pawl__cli_inspect_postgres(struct pawl__cli_doctor *doctor);
void pawl__cli_inspect_syncs(struct pawl__cli_doctor *doctor); /* doctor_delivery.c */
void pawl__cli_inspect_jetstream(struct pawl__cli_doctor *doctor);

#endif
