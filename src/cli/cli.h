/* cli.h - every command but `server`: what a person types at a terminal. */
#ifndef CADENZA_CLI_CLI_H
#define CADENZA_CLI_CLI_H

/* Runs the command that the words name; arguments are those after the program's name. The exit
 * code: 0 done, 1 failed (a line on standard error says why), 2 wrong arguments. */
int cli_run(int count, char **arguments);

#endif
