/* An error as its reader meets it: one line. */
#ifndef PAWL_CLI_FRAME_REPORT_H
#define PAWL_CLI_FRAME_REPORT_H

#include <stdio.h>

#include <pawl/pawl.h>

/* "pawl: <message>", or as JSON. One write, so that lines of several processes do not mix. What
 * cannot be written is lost: there is nobody left to tell. */
void pawl__cli_report(FILE *file, const pawl_error *error, bool json);

#endif
