/* text_address.c - is a text an address, host:port? See text.h. */
#include <string.h>

#include "base/text.h"

#define PORT_MAX 65535

const char *
text_address_fault(const char *address, struct arena *arena)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon[1] == '\0')
        return arena_format(arena, "'%s' is not an address of the form host:port", address);
    size_t length = (size_t)(colon - address);
    bool is_bracketed = length >= 2 && address[0] == '[' && address[length - 1] == ']';
    if (!is_bracketed && memchr(address, ':', length) != NULL)
        return arena_format(arena, "'%s' is not an address: IPv6 is written [host]:port", address);
    uint64_t port;
    if (!text_parse_uint64(slice_text(colon + 1), 0, PORT_MAX, &port))
        return arena_format(arena, "'%s' is not an address: port '%s' is not a number from 0 to %d",
                            address, colon + 1, PORT_MAX);
    return NULL;
}
