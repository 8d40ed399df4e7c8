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
    X(DYNAMIC_ATTRIBUTES_MAX, "limit.clusterAttributesPerDomain", KEY_INTEGER, "10000",            \
      "domainName", "Most cluster attributes of a domain, removed ones included.")                 \
    X(DYNAMIC_FAILOVER_TIMEOUT_MAX, "frontend.maxFailoverTimeoutInSeconds", KEY_INTEGER, "300",    \
      "domainName", "Longest timeout of a graceful failover.")                                     \
    X(DYNAMIC_FAILOVER_COOL_DOWN, "frontend.failoverCoolDown", KEY_DURATION, "0s", "domainName",   \
      "Time between two updates of one global domain; 0: none.")                                   \
    X(DYNAMIC_SHUTDOWN_DRAIN, "frontend.shutdownDrainDuration", KEY_DURATION, "0s", "",            \
      "Time between failing health and refusing calls at shutdown.")                               \
    X(DYNAMIC_LOCKDOWN, "system.Lockdown", KEY_FLAG, "false", "domainName",                        \
      "No failovers while true.")                                                                  \
    X(DYNAMIC_BLOB_SIZE_ERROR, "limit.blobSize.error", KEY_INTEGER, "2097152", "domainName",       \
      "Largest payload, bytes.")                                                                   \
    X(DYNAMIC_BLOB_SIZE_WARN, "limit.blobSize.warn", KEY_INTEGER, "262144", "domainName",          \
      "Larger payloads are logged, bytes.")                                                        \
    X(DYNAMIC_PENDING_ACTIVITY_LIMITED, "limit.pendingActivityCount.enabled", KEY_FLAG, "false",   \
      "", "A run with too many pending activities fails.")                                         \
    X(DYNAMIC_PENDING_ACTIVITY_ERROR, "limit.pendingActivityCount.error", KEY_INTEGER, "1024",     \
      "domainName", "Most pending activities of a run, if that is limited.")                       \
    X(DYNAMIC_ACTIVITY_ID_LENGTH, "limit.activityIDLength", KEY_INTEGER, "1000", "domainName",     \
      "Longest activity id.")                                                                      \
    X(DYNAMIC_ACTIVITY_TYPE_LENGTH, "limit.activityTypeLength", KEY_INTEGER, "1000", "domainName", \
      "Longest name of an activity type.")                                                         \
    X(DYNAMIC_TASK_LIST_NAME_LENGTH, "limit.taskListNameLength", KEY_INTEGER, "1000",              \
      "domainName", "Longest task list name.")                                                     \
    X(DYNAMIC_TIMER_ID_LENGTH, "limit.timerIDLength", KEY_INTEGER, "1000", "domainName",           \
      "Longest timer id.")                                                                         \
    X(DYNAMIC_ACTIVITY_SCHEDULE_TO_START_MAX_FOR_RETRY,                                            \
      "history.activityMaxScheduleToStartTimeoutForRetry", KEY_DURATION, "30m", "domainName",      \
      "Longest that schedule-to-start of a retried activity is raised to.")                        \
    X(DYNAMIC_CROSS_CLUSTER_OPERATIONS, "history.enableCrossClusterOperations", KEY_FLAG, "false", \
      "domainName",                                                                                \
      "A run may start, signal and cancel workflows in another domain with the same clusters.")    \
    X(DYNAMIC_ENFORCE_DECISION_ATTEMPTS, "history.enforceDecisionTaskAttempts", KEY_FLAG, "false", \
      "domainName", "A run whose decision fails too often is terminated.")                         \
    X(DYNAMIC_DECISION_ATTEMPTS_MAX, "history.decisionRetryMaxAttempts", KEY_INTEGER, "1000",      \
      "domainName", "Attempts of a decision, if they are limited; 0: any number.")                 \
    X(DYNAMIC_ACTIVITY_LOCAL_DISPATCH, "history.enableActivityLocalDispatchByDomain", KEY_FLAG,    \
      "true", "domainName", "A worker may get the activities that it schedules at once.")          \
    X(DYNAMIC_DECISION_TIMEOUT_MAX, "system.maxDecisionStartToCloseSeconds", KEY_INTEGER, "240",   \
      "domainName", "Longest decision timeout in seconds; a longer one is lowered.")               \
    X(DYNAMIC_BUFFERED_EVENTS_MAX, "history.maximumBufferedEventsBatch", KEY_INTEGER, "100",       \
      "domainName", "Events that wait behind a started decision before it is failed.")             \
    X(DYNAMIC_SIGNALS_MAX, "history.maximumSignalsPerExecution", KEY_INTEGER, "10000",             \
      "domainName", "Signals that one run takes; 0: any number.")                                  \
    X(DYNAMIC_DECISION_HEARTBEAT_TIMEOUT, "history.decisionHeartbeatTimeout", KEY_DURATION, "30m", \
      "domainName", "How long a worker may keep a decision alive by heartbeats.")                  \
    X(DYNAMIC_STICKY_TTL, "history.stickyTTL", KEY_DURATION, "8760h", "domainName",                \
      "A sticky list that was not renewed for this long is no longer used.")                       \
    X(DYNAMIC_RESET_POINTS_MAX, "history.historyMaxAutoResetPoints", KEY_INTEGER, "20",            \
      "domainName", "Auto reset points that a run keeps.")                                         \
    X(DYNAMIC_WORKFLOW_TYPE_LENGTH, "limit.workflowTypeLength", KEY_INTEGER, "1000", "domainName", \
      "Longest name of a workflow type.")                                                          \
    X(DYNAMIC_MARKER_NAME_LENGTH, "limit.markerNameLength", KEY_INTEGER, "1000", "domainName",     \
      "Longest name of a marker.")                                                                 \
    X(DYNAMIC_LONG_POLL_EXPIRATION, "matching.longPollExpirationInterval", KEY_DURATION, "60s",    \
      "domainName taskListName taskType", "Longest time a poll waits for a task.")                 \
    X(DYNAMIC_TASK_LIST_IDLE_TIME, "matching.maxTasklistIdleTime", KEY_DURATION, "5m",             \
      "domainName taskListName taskType",                                                          \
      "A task list that was not used for this long is unloaded from memory.")                      \
    X(DYNAMIC_TASK_LIST_RATE, "matching.overrideTaskListRps", KEY_NUMBER, "0",                     \
      "domainName taskListName taskType",                                                          \
      "Tasks per second of a task list, instead of what its pollers ask for; 0: what they ask "    \
      "for.")                                                                                      \
    X(DYNAMIC_TASK_DELETE_BATCH, "matching.maxTaskDeleteBatchSize", KEY_INTEGER, "100",            \
      "domainName taskListName taskType", "Stored tasks that are deleted at a time.")              \
    X(DYNAMIC_SYNC_MATCH, "matching.enableSyncMatch", KEY_FLAG, "true",                            \
      "domainName taskListName taskType", "A task goes to a waiting poller without being stored.") \
    X(DYNAMIC_TASKS_READ_BATCH, "matching.getTasksBatchSize", KEY_INTEGER, "1000",                 \
      "domainName taskListName taskType", "Stored tasks that are read at a time.")                 \
    X(DYNAMIC_TASKS_IN_MEMORY, "matching.maxTasksInMemory", KEY_INTEGER, "10000",                  \
      "domainName taskListName taskType", "Tasks of a list that wait in memory; more are stored.") \
    X(DYNAMIC_CLIENT_AUTO_CONFIG, "matching.enableClientAutoConfig", KEY_FLAG, "false",            \
      "domainName taskListName taskType",                                                          \
      "Poll answers carry a hint for the worker to adjust its pollers.")                           \
    X(DYNAMIC_WORKFLOW_ID_LENGTH, "limit.workflowIDLength", KEY_INTEGER, "1000", "domainName",     \
      "Longest workflow id.")                                                                      \
    X(DYNAMIC_REQUEST_ID_LENGTH, "limit.requestIDLength", KEY_INTEGER, "1000", "domainName",       \
      "Longest request id.")                                                                       \
    X(DYNAMIC_IDENTITY_LENGTH, "limit.identityLength", KEY_INTEGER, "1000", "domainName",          \
      "Longest identity of a worker.")                                                             \
    X(DYNAMIC_SIGNAL_NAME_LENGTH, "limit.signalNameLength", KEY_INTEGER, "1000", "domainName",     \
      "Longest name of a signal.")                                                                 \
    X(DYNAMIC_DECISION_RESULT_COUNT, "frontend.decisionResultCountLimit", KEY_INTEGER, "0",        \
      "domainName", "Most decisions of one answer; 0: no limit.")                                  \
    X(DYNAMIC_HISTORY_PAGE_SIZE, "frontend.historyMaxPageSize", KEY_INTEGER, "1000", "domainName", \
      "Batches of events in a page of history that names no size.")                                \
    X(DYNAMIC_HISTORY_LONG_POLL, "history.longPollExpirationInterval", KEY_DURATION, "20s",        \
      "domainName", "How long a reader waits for new events of a run.")                            \
    X(DYNAMIC_CLIENT_VERSION_CHECK, "frontend.enableClientVersionCheck", KEY_FLAG, "false", "",    \
      "Clients with a newer protocol than the server's are refused.")                              \
    X(DYNAMIC_TASK_LIST_ISOLATION, "system.enableTasklistIsolation", KEY_FLAG, "false",            \
      "domainName", "Isolation groups apply: no runs are started from a drained one.")             \
    X(DYNAMIC_RAW_HISTORY, "frontend.sendRawWorkflowHistory", KEY_FLAG, "false", "domainName",     \
      "Clients that can read it get history as stored blobs.")                                     \
    X(DYNAMIC_PARENT_CLOSE_POLICY, "history.enableParentClosePolicy", KEY_FLAG, "true",            \
      "domainName",                                                                                \
      "Children are closed with their parent as their policy says; false: they keep running.")     \
    X(DYNAMIC_PARENT_CLOSE_BATCH, "history.parentClosePolicyBatchSize", KEY_INTEGER, "200",        \
      "domainName",                                                                                \
      "Children of a closed run that are closed in one go, before other work gets a turn.")        \
    X(DYNAMIC_STRONG_QUERY, "history.EnableConsistentQuery", KEY_FLAG, "true", "",                 \
      "Queries may ask to see all that was acknowledged before them.")                             \
    X(DYNAMIC_STRONG_QUERY_DOMAIN, "history.EnableConsistentQueryByDomain", KEY_FLAG, "true",      \
      "domainName", "The same, for a domain. (Cadence's default is false.)")                       \
    X(DYNAMIC_BUFFERED_QUERIES, "history.MaxBufferedQueryCount", KEY_INTEGER, "1", "",             \
      "Queries of a run that wait for a decision.")                                                \
    X(DYNAMIC_DISALLOW_QUERY, "system.disallowQuery", KEY_FLAG, "false", "domainName",             \
      "Queries are refused.")                                                                      \
    X(DYNAMIC_STICKY_QUERY, "system.enableStickyQuery", KEY_FLAG, "true", "domainName",            \
      "Queries go first to the worker that has the run in its memory.")                            \
    X(DYNAMIC_DELETION_JITTER, "system.workflowDeletionJitterRange", KEY_INTEGER, "60",            \
      "domainName", "Minutes over which the deletion of closed runs is spread.")                   \
    X(DYNAMIC_HISTORY_COUNT_ERROR, "limit.historyCount.error", KEY_INTEGER, "204800",              \
      "domainName", "A run with more events fails when it decides again.")                         \
    X(DYNAMIC_HISTORY_SIZE_ERROR, "limit.historySize.error", KEY_INTEGER, "209715200",             \
      "domainName", "A run with more bytes of history fails when it decides again.")               \
    X(DYNAMIC_TRANSACTION_SIZE, "system.transactionSizeLimit", KEY_INTEGER, "14680064", "",        \
      "A run whose decisions make more bytes of events at a time is terminated.")                  \
    X(DYNAMIC_NEW_INITIAL_VERSION, "history.useNewInitialFailoverVersion", KEY_FLAG, "false", "",  \
      "Failovers take versions of newInitialFailoverVersion where a cluster has one.")             \
    X(DYNAMIC_WORKFLOW_ID_EXTERNAL_RPS, "history.workflowIDExternalRPS", KEY_INTEGER,              \
      "2147483647", "domainName", "Calls per second that one workflow id takes.")                  \
    X(DYNAMIC_WORKFLOW_ID_EXTERNAL_COLLECTED, "history.workflowIDCacheExternalEnabled", KEY_FLAG,  \
      "true", "domainName", "Calls are counted by workflow id; without that none is limited.")     \
    X(DYNAMIC_WORKFLOW_ID_EXTERNAL_ENFORCED, "history.workflowIDExternalRateLimitEnabled",         \
      KEY_FLAG, "true", "domainName",                                                              \
      "Calls above the limit of their workflow id are refused; else only counted and logged.")     \
    X(DYNAMIC_WORKFLOW_ID_INTERNAL_RPS, "history.workflowIDInternalRPS", KEY_INTEGER,              \
      "2147483647", "domainName", "Tasks per second that one workflow id gives to workers.")       \
    X(DYNAMIC_WORKFLOW_ID_INTERNAL_COLLECTED, "history.workflowIDCacheInternalEnabled", KEY_FLAG,  \
      "true", "domainName", "Tasks are counted by workflow id; without that none is limited.")     \
    X(DYNAMIC_WORKFLOW_ID_INTERNAL_ENFORCED, "history.workflowIDInternalRateLimitEnabled",         \
      KEY_FLAG, "true", "domainName",                                                              \
      "Tasks above the limit of their workflow id wait; else they are only counted and logged.")   \
    X(DYNAMIC_USER_RPS, "frontend.rps", KEY_INTEGER, "2147483647", "",                             \
      "Calls of users per second that this host takes.")                                           \
    X(DYNAMIC_WORKER_RPS, "frontend.workerrps", KEY_INTEGER, "2147483647", "",                     \
      "Polls of workers per second that this host takes.")                                         \
    X(DYNAMIC_VISIBILITY_RPS, "frontend.visibilityrps", KEY_INTEGER, "2147483647", "",             \
      "Visibility calls (list, scan, count) per second that this host answers.")                   \
    X(DYNAMIC_ASYNC_RPS, "frontend.asyncrps", KEY_INTEGER, "2147483647", "",                       \
      "Asynchronous starts per second that this host takes.")                                      \
    X(DYNAMIC_DOMAIN_USER_RPS, "frontend.domainrps", KEY_INTEGER, "2147483647", "domainName",      \
      "Calls of users per second of a domain, on this host.")                                      \
    X(DYNAMIC_DOMAIN_WORKER_RPS, "frontend.domainworkerrps", KEY_INTEGER, "2147483647",            \
      "domainName", "Polls of workers per second of a domain, on this host.")                      \
    X(DYNAMIC_DOMAIN_VISIBILITY_RPS, "frontend.domainvisibilityrps", KEY_INTEGER, "2147483647",    \
      "domainName", "Visibility calls per second of a domain, on this host.")                      \
    X(DYNAMIC_DOMAIN_ASYNC_RPS, "frontend.domainasyncrps", KEY_INTEGER, "2147483647",              \
      "domainName", "Asynchronous starts per second of a domain, on this host.")                   \
    X(DYNAMIC_GLOBAL_DOMAIN_USER_RPS, "frontend.globalDomainrps", KEY_INTEGER, "2147483647",       \
      "domainName", "Calls of users per second of a domain, in the cluster.")                      \
    X(DYNAMIC_GLOBAL_DOMAIN_WORKER_RPS, "frontend.globalDomainWorkerrps", KEY_INTEGER,             \
      "2147483647", "domainName", "Polls of workers per second of a domain, in the cluster.")      \
    X(DYNAMIC_GLOBAL_DOMAIN_VISIBILITY_RPS, "frontend.globalDomainVisibilityrps", KEY_INTEGER,     \
      "2147483647", "domainName", "Visibility calls per second of a domain, in the cluster.")      \
    X(DYNAMIC_GLOBAL_DOMAIN_ASYNC_RPS, "frontend.globalDomainAsyncrps", KEY_INTEGER, "2147483647", \
      "domainName", "Asynchronous starts per second of a domain, in the cluster.")                 \
    X(DYNAMIC_LIST_USER_RPS, "frontend.tasklistrps", KEY_INTEGER, "2147483647",                    \
      "domainName taskListName", "Starts per second of runs on a task list, on this host.")        \
    X(DYNAMIC_LIST_WORKER_RPS, "frontend.tasklistworkerrps", KEY_INTEGER, "2147483647",            \
      "domainName taskListName",                                                                   \
      "Polls per second of a task list and of the sticky lists of its workers, on this host.")     \
    X(DYNAMIC_LIST_ASYNC_RPS, "frontend.tasklistasyncrps", KEY_INTEGER, "2147483647",              \
      "domainName taskListName",                                                                   \
      "Asynchronous starts per second of runs on a task list, on this host.")                      \
    X(DYNAMIC_GLOBAL_LIST_USER_RPS, "frontend.globalTaskListrps", KEY_INTEGER, "2147483647",       \
      "domainName taskListName", "Starts per second of runs on a task list, in the cluster.")      \
    X(DYNAMIC_GLOBAL_LIST_WORKER_RPS, "frontend.globalTaskListWorkerrps", KEY_INTEGER,             \
      "2147483647", "domainName taskListName",                                                     \
      "Polls per second of a task list and of the sticky lists of its workers, in the cluster.")   \
    X(DYNAMIC_GLOBAL_LIST_ASYNC_RPS, "frontend.globalTaskListAsyncrps", KEY_INTEGER, "2147483647", \
      "domainName taskListName",                                                                   \
      "Asynchronous starts per second of runs on a task list, in the cluster.")                    \
    X(DYNAMIC_QUOTA_BYPASS_CALLERS, "system.rateLimiterBypassCallerTypes", KEY_LIST, "", "",       \
      "Kinds of callers (their cadence-caller-type) that have no quota.")                          \
    X(DYNAMIC_POLL_DELAY_MAX, "frontend.maxWorkerPollDelay", KEY_DURATION, "0s", "domainName",     \
      "How long a poll above its quota waits before it is refused.")                               \
    X(DYNAMIC_LIST_PAGE_SIZE, "frontend.visibilityMaxPageSize", KEY_INTEGER, "1000", "domainName", \
      "Runs in a page of a list call that names no size.")                                         \
    X(DYNAMIC_LIST_PAGE_MAX, "frontend.esIndexMaxResultWindow", KEY_INTEGER, "10000", "",          \
      "Most runs in a page of a list call.")                                                       \
    X(DYNAMIC_ARCHIVED_PAGE_MAX, "frontend.visibilityArchivalQueryMaxPageSize", KEY_INTEGER,       \
      "10000", "", "Most runs in a page of a list call for archived runs.")                        \
    X(DYNAMIC_HISTORY_ARCHIVAL_STATUS, "system.historyArchivalStatus", KEY_TEXT, "enabled", "",    \
      "disabled or paused: no histories are archived, though the static config says enabled.")     \
    X(DYNAMIC_VISIBILITY_ARCHIVAL_STATUS, "system.visibilityArchivalStatus", KEY_TEXT, "enabled",  \
      "", "The same for visibility records.")                                                      \
    X(DYNAMIC_READ_HISTORY_ARCHIVE, "system.enableReadFromHistoryArchival", KEY_FLAG, "true", "",  \
      "false: archived histories are not read, though the static config says so.")                 \
    X(DYNAMIC_READ_VISIBILITY_ARCHIVE, "system.enableReadFromVisibilityArchival", KEY_FLAG,        \
      "true", "", "The same for visibility records.")                                              \
    X(DYNAMIC_LIST_BY_FILTER_DISABLED, "frontend.disableListVisibilityByFilter", KEY_FLAG,         \
      "false", "domainName", "List calls for open or closed runs with a filter are refused.")      \
    X(DYNAMIC_LIST_OWN_STARTS_WAIT, "frontend.listOwnStartsWait", KEY_DURATION, "1s",              \
      "domainName",                                                                                \
      "How long a list call waits at most for runs that its own connection started or terminated " \
      "before. 0s: it does not wait.")                                                             \
    X(DYNAMIC_READ_VISIBILITY_STORE, "system.readVisibilityStoreName", KEY_TEXT, "sqlite",         \
      "domainName",                                                                                \
      "db: list calls with filters only, as with a basic store; any other name: queries, too.")    \
    X(DYNAMIC_LIST_QPS_BASIC, "frontend.visibilityListMaxQPS", KEY_INTEGER, "2147483647",          \
      "domainName", "List and count calls per second of a domain whose store is named db.")        \
    X(DYNAMIC_LIST_QPS, "frontend.esVisibilityListMaxQPS", KEY_INTEGER, "2147483647",              \
      "domainName", "List and count calls per second of any other domain.")                        \
    X(DYNAMIC_SEARCH_ATTRIBUTES, "frontend.validSearchAttributes", KEY_MAP, "", "",                \
      "Search attributes besides the usual ones: name and type (STRING, KEYWORD, INT, DOUBLE, "    \
      "BOOL, DATETIME, or 0 to 5 in this order).")                                                 \
    X(DYNAMIC_SEARCH_KEYS, "frontend.searchAttributesNumberOfKeysLimit", KEY_INTEGER, "100",       \
      "domainName", "Most search attributes of a run.")                                            \
    X(DYNAMIC_SEARCH_VALUE_SIZE, "frontend.searchAttributesSizeOfValueLimit", KEY_INTEGER, "2048", \
      "domainName", "Largest value of a search attribute, bytes.")                                 \
    X(DYNAMIC_SEARCH_TOTAL_SIZE, "frontend.searchAttributesTotalSizeLimit", KEY_INTEGER, "40960",  \
      "domainName", "Most bytes of all search attributes of a run.")                               \
    X(DYNAMIC_WRITE_PARTITIONS, "matching.numTasklistWritePartitions", KEY_INTEGER, "1",           \
      "domainName taskListName taskType",                                                          \
      "Partitions of a list that new tasks go to, if none are set for it.")                        \
    X(DYNAMIC_READ_PARTITIONS, "matching.numTasklistReadPartitions", KEY_INTEGER, "1",             \
      "domainName taskListName taskType",                                                          \
      "Partitions of a list that polls go to, if none are set for it.")                            \
    X(DYNAMIC_LOAD_BALANCER, "system.tasklistLoadBalancerStrategy", KEY_TEXT, "weighted",          \
      "domainName taskListName taskType",                                                          \
      "How polls choose a partition: weighted (by backlog), round-robin or random.")               \
    X(DYNAMIC_ADAPTIVE_SCALER, "matching.enableAdaptiveScaler", KEY_FLAG, "false",                 \
      "domainName taskListName taskType", "The number of partitions follows the load.")            \
    X(DYNAMIC_SCALER_INTERVAL, "matching.adaptiveScalerUpdateInterval", KEY_DURATION, "15s",       \
      "domainName taskListName taskType", "How often the load of a task list is checked.")         \
    X(DYNAMIC_SCALER_UP_RATE, "matching.partitionUpscaleRPS", KEY_INTEGER, "200",                  \
      "domainName taskListName taskType", "New tasks per second that one partition is meant for.") \
    X(DYNAMIC_SCALER_DOWN_FACTOR, "matching.partitionDownscaleFactor", KEY_NUMBER, "0.75",         \
      "domainName taskListName taskType",                                                          \
      "A partition is removed when the load is below this share of what the others are meant "     \
      "for.")                                                                                      \
    X(DYNAMIC_SCALER_UP_TIME, "matching.partitionUpscaleSustainedDuration", KEY_DURATION, "1m",    \
      "domainName taskListName taskType",                                                          \
      "How long the load is too high before partitions are added.")                                \
    X(DYNAMIC_SCALER_DOWN_TIME, "matching.partitionDownscaleSustainedDuration", KEY_DURATION,      \
      "2m", "domainName taskListName taskType",                                                    \
      "How long the load is low before partitions are removed.")                                   \
    X(DYNAMIC_SCALER_LEAST, "matching.taskListMinimumWritePartitions", KEY_INTEGER, "1",           \
      "domainName taskListName taskType", "Fewest partitions that the scaler leaves.")             \
    X(DYNAMIC_ALL_LIST_KINDS, "matching.matchingReturnAllTaskListKinds", KEY_FLAG, "false", "",    \
      "The task lists that are returned for a domain include sticky and ephemeral ones.")          \
    X(DYNAMIC_ISOLATION_GROUPS, "system.allIsolationGroups", KEY_LIST, "", "",                     \
      "All isolation groups; tasks of others go to any poller. None: every group counts.")         \
    X(DYNAMIC_ISOLATION_DURATION, "matching.taskIsolationDuration", KEY_DURATION, "200ms",         \
      "domainName taskListName taskType",                                                          \
      "How long a task waits for a poller of its isolation group.")                                \
    X(DYNAMIC_ISOLATION_WINDOW, "matching.taskIsolationPollerWindow", KEY_DURATION, "2s",          \
      "domainName taskListName taskType",                                                          \
      "A group without a poller for this long is not waited for.")                                 \
    X(DYNAMIC_AUTO_FORWARDING, "system.enableDomainNotActiveAutoForwarding", KEY_FLAG, "true",     \
      "domainName",                                                                                \
      "Calls about workflows that are active in another cluster are forwarded to it, by the "      \
      "policy.")                                                                                   \
    X(DYNAMIC_HOLD_CALLS, "frontend.holdCallsDuringDrain", KEY_FLAG, "true", "domainName",         \
      "Calls that arrive while a graceful failover is under way wait for its end instead of "      \
      "failing.")                                                                                  \
    X(DYNAMIC_HOLD_CALLS_MAX, "frontend.holdCallsDuringDrainMax", KEY_INTEGER, "2000",             \
      "domainName", "Most calls about a domain that wait this way at a time.")                     \
    X(DYNAMIC_HOLD_CALLS_TIME, "frontend.holdCallsDuringDrainTime", KEY_DURATION, "30s",           \
      "domainName", "How long a call waits this way at most; then the client may try again.")      \
    X(DYNAMIC_AUTHORIZATION_LOG_ONLY, "system.enableServiceAuthorizationLogOnly", KEY_FLAG,        \
      "false", "", "Calls that are not authorized are logged, not refused.")                       \
    X(DYNAMIC_AUDIT_RECORDS_MAX, "system.auditRecordsMax", KEY_INTEGER, "100000", "",              \
      "Records of operators' calls that are kept.")                                                \
    X(DYNAMIC_SCHEDULER, "worker.enableScheduler", KEY_FLAG, "true", "domainName",                 \
      "Schedules of the domain fire. (Cadence: false.)")                                           \
    X(DYNAMIC_GRACEFUL_FAILOVER, "system.enableGracefulFailover", KEY_FLAG, "true", "",            \
      "Shards write markers for graceful failovers; without markers such failovers end by their "  \
      "timeouts.")                                                                                 \
    X(DYNAMIC_REPLICATION_ROWS_MAX, "history.replicationRowsMax", KEY_INTEGER, "1000000", "",      \
      "Changes of a shard that are kept for a cluster that cannot be reached. Beyond that they "   \
      "are dropped, if it can read the runs themselves when it is back (clusters of Cadence "      \
      "cannot: for them all are kept). 0: all are kept.")                                          \
    X(DYNAMIC_ENTITIES_MAX, "system.entitiesMax", KEY_INTEGER, "100000", "",                       \
      "Rows of the entity table, deleted ones included; every loop knows all of them.")

#endif
