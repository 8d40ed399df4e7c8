/* process.h - `cadenza server`: a server in a real process, with its data folder, its log and its
 * signals. */
#ifndef CADENZA_SERVER_PROCESS_H
#define CADENZA_SERVER_PROCESS_H

/* Runs until SIGTERM or SIGINT; arguments are those after "server". The exit code: 0 stopped
 * cleanly, 1 could not start or had to stop (one line says why), 2 wrong arguments. */
int process_serve(int count, char **arguments);

#endif
