/* Prometheus' own opinion of a text of metrics. */
#ifndef TESTS_PROMTOOL_H
#define TESTS_PROMTOOL_H

#include <pawl/pawl.h>

/* What `promtool check metrics` says to the text; "" when it is content, NULL when there is none
 * (package prometheus is not installed). Borrowed until the next call. */
const char *promtool_says(pawl_view text);

#endif
