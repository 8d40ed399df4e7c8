/* static_keys.h - the table of settings that a server starts with. See keys.h.
 *
 * X(path, rule, default, sentence). In a path "*" stands for a name of the user's choice and a last
 * "**" for everything below. A rule is TEXT, ONE_OF("words to choose from"), INTEGER(low, high),
 * FLAG, ONLY_FALSE (for what would be unsafe to ignore), DURATION, LIST or IGNORED. Where several
 * rows fit, one without "**" comes first. */
#ifndef CADENZA_CONFIG_STATIC_KEYS_H
#define CADENZA_CONFIG_STATIC_KEYS_H

#define STATIC_KEYS(X)                                                                             \
    X("log.level", ONE_OF("debug info warn error fatal"), "info",                                  \
      "Lines below this level are not written.")                                                   \
    X("log.stdout", FLAG, "true", "Write to standard output; false: to standard error.")           \
    X("log.encoding", ONE_OF("json console"), "json",                                              \
      "json: one object per line; console: for people to read.")                                   \
    X("log.levelKey", TEXT, "level", "Name of the field that holds a line's level.")               \
    X("log.outputFile", TEXT, "",                                                                  \
      "File that lines are appended to, in an existing folder; not if log.stdout is set to true. " \
      "SIGHUP opens it again, for logrotate.")                                                     \
    X("persistence.numHistoryShards", INTEGER(1, 16384), "16",                                     \
      "Number of shards; written into the data folder at its first start and never changed.")      \
    X("persistence.defaultStore", TEXT, "embedded",                                                \
      "Name of the datastore to use; only the embedded one exists.")                               \
    X("persistence.datastores.embedded.path", TEXT, "./data",                                      \
      "The data folder; --data overrides it.")                                                     \
    X("persistence.datastores.embedded.memtableBytes", INTEGER(1048576, INT64_MAX), "268435456",   \
      "Memory for rows that are not in files yet.")                                                \
    X("persistence.datastores.embedded.cacheBytes", INTEGER(0, INT64_MAX), "134217728",            \
      "Memory for blocks read from files.")                                                        \
    X("persistence.datastores.embedded.queueBytes", INTEGER(1048576, INT64_MAX), "67108864",       \
      "Memory for commits that wait to be written.")                                               \
    X("persistence.datastores.embedded.scrubInterval", DURATION, "24h",                            \
      "The whole store is read once per interval to find damage, at 1 MB a second or as fast as "  \
      "that takes; 0s: never.")                                                                    \
    X("persistence.datastores.*.nosql.**", IGNORED, "", "The embedded store is used.")             \
    X("persistence.datastores.*.shardedNosql.**", IGNORED, "", "The embedded store is used.")      \
    X("persistence.datastores.*.cassandra.**", IGNORED, "", "The embedded store is used.")         \
    X("persistence.datastores.*.sql.**", IGNORED, "", "The embedded store is used.")               \
    X("persistence.datastores.*.elasticsearch.**", IGNORED, "",                                    \
      "Visibility lives in the embedded store.")                                                   \
    X("persistence.datastores.*.pinot.**", IGNORED, "", "Visibility lives in the embedded store.") \
    X("persistence.visibilityStore", IGNORED, "", "Visibility lives in the embedded store.")       \
    X("persistence.advancedVisibilityStore", IGNORED, "",                                          \
      "Visibility lives in the embedded store.")                                                   \
    X("persistence.historyMaxConns", IGNORED, "", "The embedded store has no connections.")        \
    X("persistence.enablePersistenceLatencyHistogramMetrics", IGNORED, "",                         \
      "Latencies are always histograms.")                                                          \
    X("services.frontend.rpc.grpcPort", INTEGER(0, 65535), "7833",                                 \
      "Port for gRPC; --grpc overrides address and port.")                                         \
    X("services.frontend.rpc.bindOnIP", TEXT, "127.0.0.1", "Address to listen on for gRPC.")       \
    X("services.frontend.rpc.bindOnLocalHost", FLAG, "true",                                       \
      "Listen on 127.0.0.1 unless bindOnIP is given.")                                             \
    X("services.frontend.rpc.grpcMaxMsgSize", INTEGER(1024, 1073741824), "33554432",               \
      "Largest message accepted, in bytes.")                                                       \
    X("services.frontend.rpc.tls.enabled", FLAG, "false", "Use TLS on the gRPC port.")             \
    X("services.frontend.rpc.tls.certFile", TEXT, "",                                              \
      "PEM file with the server's certificate chain.")                                             \
    X("services.frontend.rpc.tls.keyFile", TEXT, "", "PEM file with its key.")                     \
    X("services.frontend.rpc.tls.caFiles", LIST, "",                                               \
      "PEM files of authorities that clients' certificates must come from.")                       \
    X("services.frontend.rpc.tls.requireClientAuth", FLAG, "false",                                \
      "Refuse clients without such a certificate.")                                                \
    X("services.frontend.rpc.tls.enableHostVerification", IGNORED, "", "For clients only.")        \
    X("services.frontend.rpc.tls.serverName", IGNORED, "", "For clients only.")                    \
    X("services.frontend.rpc.tls.sslmode", IGNORED, "", "For databases only.")                     \
    X("services.frontend.rpc.port", IGNORED, "", "TChannel is not supported.")                     \
    X("services.frontend.rpc.http.**", IGNORED, "", "JSON calls have no port of their own.")       \
    X("services.frontend.http.listenAddress", TEXT, "127.0.0.1:8088",                              \
      "Address to listen on for HTTP (health, metrics, UI); --http overrides it.")                 \
    X("services.frontend.metrics.**", IGNORED, "",                                                 \
      "Metrics are served at /metrics of the HTTP port.")                                          \
    X("services.frontend.pprof.**", IGNORED, "", "There is no Go profiler.")                       \
    X("services.history.**", IGNORED, "", "All services live in one process.")                     \
    X("services.matching.**", IGNORED, "", "All services live in one process.")                    \
    X("services.worker.**", IGNORED, "", "All services live in one process.")                      \
    X("services.shard-distributor.**", IGNORED, "", "One process needs no distributor.")           \
    X("clusterGroupMetadata.failoverVersionIncrement", INTEGER(INT64_MIN, INT64_MAX), "10",        \
      "Distance between two failover versions of one cluster; greater than 0.")                    \
    X("clusterGroupMetadata.primaryClusterName", TEXT, "cluster0",                                 \
      "The cluster that registers and updates global domains.")                                    \
    X("clusterGroupMetadata.currentClusterName", TEXT, "cluster0", "The name of this cluster.")    \
    X("clusterGroupMetadata.clusterGroup.*.enabled", FLAG, "true",                                 \
      "Whether it is polled and can be failed over to.")                                           \
    X("clusterGroupMetadata.clusterGroup.*.initialFailoverVersion", INTEGER(INT64_MIN, INT64_MAX), \
      "0", "Remainder of its failover versions, divided by the increment; unique.")                \
    X("clusterGroupMetadata.clusterGroup.*.newInitialFailoverVersion",                             \
      INTEGER(INT64_MIN, INT64_MAX), "-1",                                                         \
      "A second remainder that stands for it, while migrating; -1: none.")                         \
    X("clusterGroupMetadata.clusterGroup.*.region", TEXT, "", "The region that it is in.")         \
    X("clusterGroupMetadata.clusterGroup.*.rpcName", TEXT, "cadence-frontend",                     \
      "Service name its frontend expects.")                                                        \
    X("clusterGroupMetadata.clusterGroup.*.rpcAddress", TEXT, "", "host:port of its gRPC port.")   \
    X("clusterGroupMetadata.clusterGroup.*.rpcTransport", TEXT, "grpc", "Only grpc is supported.") \
    X("clusterGroupMetadata.clusterGroup.*.authorizationProvider.enable", FLAG, "false",           \
      "Whether calls to it carry a token of an administrator.")                                    \
    X("clusterGroupMetadata.clusterGroup.*.authorizationProvider.type",                            \
      ONE_OF("OAuthAuthorization"), "OAuthAuthorization",                                          \
      "OAuthAuthorization: a JWT, signed here with RS256.")                                        \
    X("clusterGroupMetadata.clusterGroup.*.authorizationProvider.privateKey", TEXT, "",            \
      "PEM file with the RSA key that signs it; that cluster has the public one.")                 \
    X("clusterGroupMetadata.clusterGroup.*.tls.enabled", FLAG, "false",                            \
      "Use TLS for connections to it.")                                                            \
    X("clusterGroupMetadata.clusterGroup.*.tls.caFile", TEXT, "",                                  \
      "PEM file of the authority that its certificate must come from.")                            \
    X("clusterGroupMetadata.clusterGroup.*.tls.caFiles", LIST, "",                                 \
      "The same, for several authorities.")                                                        \
    X("clusterGroupMetadata.clusterGroup.*.tls.certFile", TEXT, "",                                \
      "PEM file with the certificate shown to it.")                                                \
    X("clusterGroupMetadata.clusterGroup.*.tls.keyFile", TEXT, "",                                 \
      "PEM file with the key of that certificate.")                                                \
    X("clusterGroupMetadata.clusterGroup.*.tls.serverName", TEXT, "",                              \
      "Name its certificate must have; empty: its host.")                                          \
    X("clusterGroupMetadata.clusterGroup.*.tls.enableHostVerification", FLAG, "true",              \
      "Whether that name is checked.")                                                             \
    X("clusterGroupMetadata.regions.*.initialFailoverVersion", INTEGER(0, INT64_MAX), "0",         \
      "Remainder of the region's failover versions, divided by the increment; unique.")            \
    X("clusterGroupMetadata.clusterRedirectionPolicy.policy",                                      \
      ONE_OF("noop selected-apis-forwarding selected-apis-forwarding-v2 "                          \
             "all-domain-apis-forwarding all-domain-apis-forwarding-v2"),                          \
      "selected-apis-forwarding-v2",                                                               \
      "Which calls are forwarded to the cluster that is active for them; noop where there is no "  \
      "other cluster.")                                                                            \
    X("clusterGroupMetadata.clusterRedirectionPolicy.allDomainApisForwardingTargetCluster", TEXT,  \
      "", "With all-domain-apis-forwarding: only while this cluster is active; empty: always.")    \
    X("clusterGroupMetadata.clusterRedirectionPolicy.toDC", IGNORED, "",                           \
      "A call goes to the cluster that is active for it.")                                         \
    X("clusterGroupMetadata.enableGlobalDomain", IGNORED, "", "Global domains are always on.")     \
    X("dynamicconfig.client", ONE_OF("filebased configstore openfeature memory nop"), "filebased", \
      "Where dynamic settings come from; only filebased reads anything.")                          \
    X("dynamicconfig.filebased.filepath", TEXT, "", "The file; --dynamic-config overrides it.")    \
    X("dynamicconfig.filebased.pollInterval", DURATION, "10s",                                     \
      "How often to check whether it changed; at most 500ms, a longer interval is shortened.")     \
    X("dynamicconfig.configstore.**", IGNORED, "", "Dynamic settings come from a file.")           \
    X("dynamicconfig.openfeature.**", IGNORED, "", "Dynamic settings come from a file.")           \
    X("authorization.oauthAuthorizer.enable", FLAG, "false",                                       \
      "Whether callers need a token (JWT), in the header cadence-authorization.")                  \
    X("authorization.oauthAuthorizer.showDomainNames", FLAG, "false",                              \
      "ListDomains needs no token: everybody sees names, ids, status and clusters of all domains " \
      "(cadence-web asks without a token); the rest is for those who may read them.")              \
    X("authorization.oauthAuthorizer.maxJwtTTL", INTEGER(1, INT32_MAX), "86400",                   \
      "Tokens with a longer life are refused; seconds.")                                           \
    X("authorization.oauthAuthorizer.clockSkew", DURATION, "30s",                                  \
      "How far the clocks of token issuers may be off.")                                           \
    X("authorization.oauthAuthorizer.jwtCredentials.algorithm", ONE_OF("RS256"), "RS256",          \
      "How tokens are signed.")                                                                    \
    X("authorization.oauthAuthorizer.jwtCredentials.publicKey", TEXT, "",                          \
      "PEM file of the key that tokens without a key id are signed with.")                         \
    X("authorization.oauthAuthorizer.provider.jwksURL", TEXT, "",                                  \
      "File with the keys that other tokens are signed with, as JSON (RFC 7517).")                 \
    X("authorization.oauthAuthorizer.provider.groupsAttributePath", TEXT, "",                      \
      "Where such tokens name their groups, as a path a.b; empty: groups.")                        \
    X("authorization.oauthAuthorizer.provider.adminAttributePath", TEXT, "",                       \
      "Where such tokens say that they are an administrator's; empty: admin.")                     \
    X("authorization.noopAuthorizer.**", IGNORED, "",                                              \
      "It is what applies without another authorizer.")                                            \
    X("archival.history.status", TEXT, "disabled",                                                 \
      "enabled: histories of closed runs are archived before they are deleted; or disabled, "      \
      "paused.")                                                                                   \
    X("archival.history.enableRead", FLAG, "false", "Archived histories can be read.")             \
    X("archival.history.provider.filestore.fileMode", TEXT, "",                                    \
      "Permissions of archived files, in octal with a leading 0.")                                 \
    X("archival.history.provider.filestore.dirMode", TEXT, "",                                     \
      "The same for the folders that are made for them.")                                          \
    X("archival.history.provider.s3store.**", IGNORED, "",                                         \
      "Archives are files; a domain with such a URI is refused.")                                  \
    X("archival.history.provider.gstorage.**", IGNORED, "",                                        \
      "Archives are files; a domain with such a URI is refused.")                                  \
    X("domainDefaults.archival.history.status", TEXT, "disabled",                                  \
      "Default for new domains: enabled or disabled.")                                             \
    X("domainDefaults.archival.history.URI", TEXT, "",                                             \
      "Default location for domains that name none: file:///folder.")                              \
    X("archival.visibility.status", TEXT, "disabled",                                              \
      "enabled: visibility records of closed runs are archived before they are deleted; or "       \
      "disabled, paused.")                                                                         \
    X("archival.visibility.enableRead", FLAG, "false", "Archived visibility records can be read.") \
    X("archival.visibility.provider.filestore.fileMode", TEXT, "",                                 \
      "Permissions of archived files, in octal with a leading 0.")                                 \
    X("archival.visibility.provider.filestore.dirMode", TEXT, "",                                  \
      "The same for the folders that are made for them.")                                          \
    X("archival.visibility.provider.s3store.**", IGNORED, "",                                      \
      "Archives are files; a domain with such a URI is refused.")                                  \
    X("archival.visibility.provider.gstorage.**", IGNORED, "",                                     \
      "Archives are files; a domain with such a URI is refused.")                                  \
    X("domainDefaults.archival.visibility.status", TEXT, "disabled",                               \
      "Default for new domains: enabled or disabled.")                                             \
    X("domainDefaults.archival.visibility.URI", TEXT, "",                                          \
      "Default location for domains that name none: file:///folder.")                              \
    X("entities.types.*.source", TEXT, "",                                                         \
      "What start requests have in active-region.lookup-source; empty: the name of the type.")     \
    X("entities.types.*.unknownKeys", ONE_OF("refuse create"), "refuse",                           \
      "A start request whose key has no row: refused, or the row is created, in the region of "    \
      "the cluster that got the request.")                                                         \
    X("entities.types.*.watcher", ONE_OF("none file http"), "none",                                \
      "What changes the rows of the type, in the primary cluster: only operators; a file; an "     \
      "HTTP server that is asked with long polls.")                                                \
    X("entities.types.*.file", TEXT, "", "For watcher file: YAML or JSON, key: region.")           \
    X("entities.types.*.url", TEXT, "", "For watcher http: http://host:port/path, or https://.")   \
    X("entities.types.*.tls.caFile", TEXT, "",                                                     \
      "PEM file that vouches for an https source; empty: the system's authorities.")               \
    X("entities.types.*.tls.serverName", TEXT, "",                                                 \
      "Name that its certificate must have; empty: the host of the URL.")                          \
    X("entities.types.*.tls.certFile", TEXT, "",                                                   \
      "PEM file with the certificate chain shown to it, if it asks.")                              \
    X("entities.types.*.tls.keyFile", TEXT, "", "PEM file with its key.")                          \
    X("entities.types.*.interval", DURATION, "250ms", "Time between two checks of the file.")      \
    X("entities.types.*.wait", DURATION, "30s",                                                    \
      "How long the HTTP server may hold a request until it has something to report.")             \
    X("asyncWorkflowQueues.**", IGNORED, "", "No Kafka is needed.")                                \
    X("blobstore.**", IGNORED, "", "Nothing is kept outside the data folder.")                     \
    X("counter-migration.**", IGNORED, "", "Counters have one name.")                              \
    X("gauge-migration.**", IGNORED, "", "Gauges have one name.")                                  \
    X("headerForwardingRules.**", IGNORED, "", "Headers do not travel between services.")          \
    X("histograms.**", IGNORED, "", "Timers are always histograms.")                               \
    X("kafka.**", IGNORED, "", "No Kafka is needed.")                                              \
    X("membership.**", IGNORED, "", "One process needs no ring.")                                  \
    X("publicClient.**", IGNORED, "", "System work runs inside the server.")                       \
    X("ringpop.**", IGNORED, "", "One process needs no ring.")                                     \
    X("shard-distributor-matching.**", IGNORED, "", "One process needs no distributor.")           \
    X("shardDistribution.**", IGNORED, "", "One process needs no distributor.")                    \
    X("shardDistributorClient.**", IGNORED, "", "One process needs no distributor.")

/* X(old name, new name): the section or key and all below it. Where both are given the new one
 * wins. In this order, each on what the one before left. */
#define STATIC_ALIASES(X)                                                                          \
    X("clusterMetadata", "clusterGroupMetadata")                                                   \
    X("clusterGroupMetadata.masterClusterName", "clusterGroupMetadata.primaryClusterName")         \
    X("clusterGroupMetadata.clusterInformation", "clusterGroupMetadata.clusterGroup")              \
    X("dcRedirectionPolicy", "clusterGroupMetadata.clusterRedirectionPolicy")                      \
    X("dynamicConfigClient", "dynamicconfig.filebased")

#endif
