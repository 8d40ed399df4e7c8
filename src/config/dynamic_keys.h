/* dynamic_keys.h - the table of settings that change while the server runs. See keys.h.
 *
 * X(enum, name, type, default, filters, sentence). Filters are the constraints that the askers of
 * the key carry; an entry with another one never matches. A list's default is separated by commas.
 */
#ifndef CADENZA_CONFIG_DYNAMIC_KEYS_H
#define CADENZA_CONFIG_DYNAMIC_KEYS_H

#define DYNAMIC_KEYS(X)                                                                            \
    X(DYNAMIC_MIN_RETENTION_DAYS, "system.minRetentionDays", KEY_INTEGER, "1", "",                 \
      "Shortest retention a domain may ask for.")                                                  \
    X(DYNAMIC_MAX_RETENTION_DAYS, "system.maxRetentionDays", KEY_INTEGER, "30", "",                \
      "Longest retention a domain may ask for.")                                                   \
    X(DYNAMIC_REQUIRED_DOMAIN_DATA_KEYS, "system.requiredDomainDataKeys", KEY_LIST, "", "",        \
      "Keys that the data of a new domain must have.")                                             \
    X(DYNAMIC_MAX_BAD_BINARIES, "frontend.maxBadBinaries", KEY_INTEGER, "10", "domainName",        \
      "Most bad binaries a domain keeps.")                                                         \
    X(DYNAMIC_ADMIN_PROTECTION, "history.enableAdminProtection", KEY_FLAG, "false", "",            \
      "Domain changes need the admin token.")                                                      \
    X(DYNAMIC_ADMIN_TOKEN, "history.adminOperationToken", KEY_TEXT, "CadenceTeamONLY", "",         \
      "The admin token.")                                                                          \
    X(DYNAMIC_DOMAIN_NAME_LENGTH, "limit.domainNameLength", KEY_INTEGER, "1000", "domainName",     \
      "Longest domain name.")                                                                      \
    X(DYNAMIC_FAILOVER_TIMEOUT_MAX, "frontend.maxFailoverTimeoutInSeconds", KEY_INTEGER, "300",    \
      "domainName", "Longest timeout of a graceful failover.")                                     \
    X(DYNAMIC_FAILOVER_COOL_DOWN, "frontend.failoverCoolDown", KEY_DURATION, "0s", "domainName",   \
      "Time between two updates of one global domain; 0: none.")                                   \
    X(DYNAMIC_SHUTDOWN_DRAIN, "frontend.shutdownDrainDuration", KEY_DURATION, "0s", "",            \
      "Time between failing health and refusing calls at shutdown.")                               \
    X(DYNAMIC_LOCKDOWN, "system.Lockdown", KEY_FLAG, "false", "domainName",                        \
      "No failovers while true.")

#endif
