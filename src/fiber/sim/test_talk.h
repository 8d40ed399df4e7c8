/* test_talk.h - small talk over simulated sockets, for the tests of this folder. */
#ifndef CADENZA_FIBER_SIM_TEST_TALK_H
#define CADENZA_FIBER_SIM_TEST_TALK_H

#include <stdbool.h>

#include "fiber/socket.h"

/* Writes all bytes. Yields. False: broken, cancelled or past the fiber's deadline. */
bool talk_send(struct socket *socket, const void *bytes, size_t count);
/* Reads exactly so many bytes. Yields. False: as above, or the other side has finished. */
bool talk_receive(struct socket *socket, void *bytes, size_t count);
/* Listens and gives each connection to a fiber of its own that answers bytes with the same bytes;
 * sockets go to the loops of the host in turn. Yields until cancelled. */
void talk_serve_echo(unsigned port);
/* Connects within a second; NULL: it did not work. Yields. */
struct socket *talk_connect(const char *address);

#endif
