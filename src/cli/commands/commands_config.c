/* commands_config.c - the commands about settings: dynamic config, isolation groups, queues. */
#include "cli/admin/settings.h"
#include "cli/base/commands.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

const struct cli_command cli_config_commands[] = {
    {
        .words = "config keys",
        .summary = "Shows every setting that can change while a server runs: what it does, its "
                   "default,\nand what its entries may be constrained by.",
        .examples = "  cadenza config keys\n  cadenza config keys --format json\n",
        .flags = PRINTED,
        .run = cli_config_keys,
    },
    {
        .words = "admin config listall",
        .aliases = "la",
        .summary = "Shows every setting that can change while a server runs, as config keys does.",
        .examples = "  cadenza admin config listall\n",
        .flags = PRINTED,
        .run = cli_config_keys,
    },
    {
        .words = "admin config get",
        .aliases = "g",
        .summary = "Shows the value of a setting that is stored in the cluster.",
        .examples = "  cadenza admin config get --name frontend.domainrps\n",
        .flags = "filter " REMOTE,
        .rpc =
            RPC(.request = ADMIN_TYPE(get_dynamic_config_request), .fields = "config_name=setting!",
                .complete = settings_complete, .show = settings_show_value),
    },
    {
        .words = "admin config update",
        .aliases = "u",
        .summary = "Stores values of a setting in the cluster; they take effect at once and "
                   "replace\nthose that were stored before.",
        .examples = "  cadenza admin config update --name frontend.domainrps --value "
                    "'{\"Value\":500,\"Filters\":{\"domainName\":\"orders\"}}'\n",
        .flags = "setting_values " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(update_dynamic_config_request),
                   .fields = "config_name=setting!",
                   .done = "Dynamic Config {config_name} updated.", .complete = settings_complete),
    },
    {
        .words = "admin config restore",
        .aliases = "r",
        .summary = "Deletes the stored values of a setting: the file and the defaults apply again.",
        .examples = "  cadenza admin config restore --name frontend.domainrps\n",
        .flags = "filter " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(restore_dynamic_config_request),
                   .fields = "config_name=setting!",
                   .done = "Dynamic Config {config_name} restored.", .complete = settings_complete),
    },
    {
        .words = "admin config list",
        .aliases = "l",
        .summary = "Shows the settings that are stored in the cluster.",
        .examples = "  cadenza admin config list\n",
        .flags = REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(list_dynamic_config_request), .fields = "",
                   .show = settings_show_list),
    },
    {
        .words = "admin config operational-get",
        .aliases = "og",
        .summary = "The same as admin config get: there is one store of settings.",
        .examples = "  cadenza admin config operational-get --name frontend.domainrps\n",
        .flags = "filter " REMOTE,
        .rpc =
            RPC(.request = ADMIN_TYPE(get_dynamic_config_request), .fields = "config_name=setting!",
                .complete = settings_complete, .show = settings_show_value),
    },
    {
        .words = "admin config operational-update",
        .aliases = "ou",
        .summary = "The same as admin config update: there is one store of settings.",
        .examples = "  cadenza admin config operational-update --name frontend.domainrps --value "
                    "'{\"Value\":500,\"Filters\":{\"domainName\":\"orders\"}}'\n",
        .flags = "setting_values " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(update_dynamic_config_request),
                   .fields = "config_name=setting!",
                   .done = "Dynamic Config {config_name} updated.", .complete = settings_complete),
    },
    {
        .words = "admin config operational-restore",
        .aliases = "or",
        .summary = "The same as admin config restore: there is one store of settings.",
        .examples = "  cadenza admin config operational-restore --name frontend.domainrps\n",
        .flags = "filter " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(restore_dynamic_config_request),
                   .fields = "config_name=setting!",
                   .done = "Dynamic Config {config_name} restored.", .complete = settings_complete),
    },
    {
        .words = "admin config operational-list",
        .aliases = "ol",
        .summary = "The same as admin config list: there is one store of settings.",
        .examples = "  cadenza admin config operational-list\n",
        .flags = REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(list_dynamic_config_request), .fields = "",
                   .show = settings_show_list),
    },
    {
        .words = "admin isolation-groups get-global",
        .summary = "Shows which isolation groups are drained for all domains.",
        .examples = "  cadenza admin isolation-groups get-global\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(get_global_isolation_groups_request), .fields = "",
                   .show = groups_show),
    },
    {
        .words = "admin isolation-groups update-global",
        .summary = "Sets which isolation groups are drained for all domains.",
        .examples = "  cadenza admin isolation-groups update-global --set-drains zone-1\n"
                    "  cadenza admin isolation-groups update-global --remove-all-drains\n",
        .flags = "set-drains remove-all-drains groups_json " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(update_global_isolation_groups_request), .fields = "",
                   .done = "Isolation groups updated.", .complete = groups_complete),
    },
    {
        .words = "admin isolation-groups get-domain",
        .summary = "Shows which isolation groups are drained for a domain.",
        .examples = "  cadenza admin isolation-groups get-domain --domain orders\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(get_domain_isolation_groups_request),
                   .fields = "domain=domain!", .show = groups_show),
    },
    {
        .words = "admin isolation-groups update-domain",
        .summary = "Sets which isolation groups are drained for a domain.",
        .examples = "  cadenza admin isolation-groups update-domain --domain orders --set-drains "
                    "zone-1,zone-2\n",
        .flags = "set-drains remove-all-drains groups_json " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(update_domain_isolation_groups_request),
                   .fields = "domain=domain!", .done = "Isolation groups updated.",
                   .complete = groups_complete),
    },
    {
        .words = "admin async-wf-queue get",
        .summary = "Shows the queue of a domain's asynchronous starts.",
        .examples = "  cadenza admin async-wf-queue get --domain orders\n",
        .flags = PRINTED REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(get_domain_async_workflow_configuraton_request),
                   .fields = "domain=domain!"),
    },
    {
        .words = "admin async-wf-queue update",
        .summary = "Sets the queue of a domain's asynchronous starts.",
        .examples = "  cadenza admin async-wf-queue update --domain orders --json "
                    "'{\"Enabled\":true,\"PredefinedQueueName\":\"queue1\"}'\n",
        .flags = "queue_json " REMOTE,
        .rpc = RPC(.request = ADMIN_TYPE(update_domain_async_workflow_configuraton_request),
                   .fields = "domain=domain!",
                   .done = "Successfully updated async workflow queue config for domain {domain}",
                   .complete = queue_complete),
    },
    {.words = NULL},
};
