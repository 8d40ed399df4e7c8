/* test_managed_sample.c - see test_managed_sample.h. */
#include "system/test_managed_sample.h"

#include "domain/attributes.h"

API(ActiveClusters) *
sample_attributes(struct arena *arena, char *one, char *two)
{
    struct attributes attributes = {0};
    attributes_add(&attributes, &(struct attribute){"region", "one", one, 0}, arena);
    attributes_add(&attributes, &(struct attribute){"region", "two", two, 0}, arena);
    return attributes_write(&attributes, arena);
}

const char *
sample_clusters(const API(ActiveClusters) *clusters, struct arena *arena)
{
    struct attributes attributes = attributes_read(clusters, arena);
    const char *text = "";
    for (size_t i = 0; i < attributes.count; i++)
        text =
            arena_format(arena, "%s%s%s", text, i == 0 ? "" : " ", attributes.all[i].cluster_name);
    return text;
}
