/* crc.h - CRC-32C (Castagnoli): finds bytes that are not what they were. */
#ifndef CADENZA_BASE_CRC_H
#define CADENZA_BASE_CRC_H

#include "base/slice.h"

/* The CRC of what `crc` stands for followed by `bytes`; begin with 0. */
uint32_t crc32c(uint32_t crc, struct slice bytes);
/* The same without the processor's own instruction: for machines that lack it, and to test the
 * other. */
uint32_t crc32c_portable(uint32_t crc, struct slice bytes);

#endif
