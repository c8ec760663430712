/* Whether a test of arguments has left out a function of its header. */
#ifndef TESTS_HEADER_H
#define TESTS_HEADER_H

#include <stddef.h>

/* Fails naming a function that `header` declares with PAWL_API and `test` never calls. Both are paths below
 * PAWL_SOURCE. `least`: so many functions there are, as the search itself may go blind. */
void assert_header_is_called(const char *header, const char *test, size_t least);

#endif
