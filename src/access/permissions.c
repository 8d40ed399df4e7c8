/* permissions.c - which domain a call is about, and who may do what with it (J-023, J-024). */
#include "access/inside.h"
#include "base/check.h"

/* --- which domain ---- */

static const void *
field(const ProtobufCMessage *message, const char *name, ProtobufCType type)
{
    const ProtobufCFieldDescriptor *found =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    if (found == NULL || found->type != type)
        return NULL;
    bool is_choice = (found->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    const char *bytes = (const char *)message;
    if (is_choice && *(const uint32_t *)(bytes + found->quantifier_offset) != found->id)
        return NULL; /* another one was chosen */
    return *(void *const *)(bytes + found->offset);
}

static const char *
text_field(const ProtobufCMessage *message, const char *name)
{
    const char *text = field(message, name, PROTOBUF_C_TYPE_STRING);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

const struct domain *
permission_domain(const struct domains *domains, const ProtobufCMessage *request,
                  struct arena *arena)
{
    static const char *const inner[] = {"request", "start_request"};
    static const char *const names[] = {"domain", "name", "domain_name"};
    static const char *const ids[] = {"domain_id", "id"};
    for (size_t i = 0; i < array_length(inner); i++) {
        const ProtobufCMessage *next = field(request, inner[i], PROTOBUF_C_TYPE_MESSAGE);
        request = next == NULL ? request : next;
    }
    for (size_t i = 0; i < array_length(names); i++) {
        const char *name = text_field(request, names[i]);
        if (name != NULL)
            return domains_find_name(domains, name);
    }
    for (size_t i = 0; i < array_length(ids); i++) {
        const char *id = text_field(request, ids[i]);
        if (id != NULL)
            return domains_find_id(domains, id);
    }
    const ProtobufCMessage *filters = field(request, "filters", PROTOBUF_C_TYPE_MESSAGE);
    return filters == NULL ? NULL : permission_domain(domains, filters, arena);
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
