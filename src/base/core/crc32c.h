/* CRC-32C (Castagnoli): finds torn and flipped bytes of our own formats; no defence against people.
 */
#ifndef PAWL_BASE_CORE_CRC32C_H
#define PAWL_BASE_CORE_CRC32C_H

#include <pawl/pawl.h>

uint32_t pawl__crc32c(pawl_view bytes);

/* The same without the processor's instruction for it. For the test that compares the two. */
uint32_t pawl__crc32c_by_table(pawl_view bytes);

#endif
