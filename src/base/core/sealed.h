/* Small texts that know whether they are whole: behind the text stand 8 hexadecimal digits, the CRC-32C of
 * all before them, and the end of the line. */
#ifndef PAWL_BASE_CORE_SEALED_H
#define PAWL_BASE_CORE_SEALED_H

#include "base/core/buf.h"

void pawl__sealed_end(struct pawl__buf *text);

/* What is before the seal. False: it is not whole, or has none. */
PAWL_MUST_USE bool pawl__sealed_open(pawl_view sealed, pawl_view *ret_text);

#endif
