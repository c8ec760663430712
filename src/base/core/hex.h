#ifndef PAWL_BASE_CORE_HEX_H
#define PAWL_BASE_CORE_HEX_H

#include <stdint.h>

/* Two lower-case digits, no NUL. */
static inline void pawl__hex_byte(uint8_t byte, char ret_digits[2])
{
    static const char digits[] = "0123456789abcdef";

    ret_digits[0] = digits[byte >> 4];
    ret_digits[1] = digits[byte & 15];
}

/* The value of a digit in either case; -1 for what is none. */
static inline int pawl__hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
