/* permissions.c - which domain a call is about, and who may do what with it (J-023, J-024). */
#include "access/inside.h"
#include "base/check.h"

/* --- which domain ---- */

const struct domain *
permission_domain(const struct domains *domains, const struct rpc_call *call)
{
    struct rpc_subject subject;
    rpc_subject(call, &subject);
    if (subject.domain[0] != '\0')
        return domains_find_name(domains, subject.domain);
    return subject.domain_id[0] == '\0' ? NULL : domains_find_id(domains, subject.domain_id);
}

/* --- who has it ---- */

static const char *
data_of(const struct domain *domain, const char *key)
{
    const API(Domain) *record = domain->record->domain;
    for (size_t i = 0; i < record->n_data; i++)
        if (strcmp(record->data[i]->key, key) == 0)
            return record->data[i]->value;
    return "";
}

/* Have the two lists, words between blanks, one in common? */
static bool
share_a_word(const char *one, const char *other)
{
    for (one += strspn(one, " "); *one != '\0'; one += strspn(one, " ")) {
        size_t length = strcspn(one, " ");
        for (const char *word = other + strspn(other, " "); *word != '\0';
             word += strspn(word, " ")) {
            size_t size = strcspn(word, " ");
            if (size == length && memcmp(one, word, size) == 0)
                return true;
            word += size;
        }
        one += length;
    }
    return false;
}

bool
permission_suits(enum permission permission, const char *groups, const struct domain *domain)
{
    check(permission >= PERMISSION_READ); /* the others do not depend on groups */
    if (permission == PERMISSION_ADMIN || domain == NULL)
        return false;
    if (share_a_word(groups, data_of(domain, "WRITE_GROUPS")))
        return true;
    if (permission == PERMISSION_READ)
        return share_a_word(groups, data_of(domain, "READ_GROUPS"));
    return permission == PERMISSION_POLL && share_a_word(groups, data_of(domain, "PROCESS_GROUPS"));
}
