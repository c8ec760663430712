#include "base/core/crc32c.h"

/* The remainder of every half byte by the reflected polynomial 0x82F63B78. Sixteen entries stay in
 * one cache line or two; a table of 256 is twice as fast, which nobody has missed yet. */
static const uint32_t of_half_byte[16] = {
    0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
    0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
};

uint32_t pawl__crc32c(pawl_view bytes)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < bytes.len; i++) {
        crc ^= (unsigned char)bytes.data[i];
        crc = crc >> 4 ^ of_half_byte[crc & 15];
        crc = crc >> 4 ^ of_half_byte[crc & 15];
    }
    return ~crc;
}
