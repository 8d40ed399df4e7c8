/* methods_test.c - the tables of both doors together: every method of the interface is in one of
 * them, and every column is decided. */
#include "api/api.h"
#include "base/memory.h"
#include "base/test.h"
#include "replication/replication.h"
#include "wire/services.h"

/* The row of each method by its index, NULL: it has none. */
static const struct rpc_method **
rows_by_index(void)
{
    const struct rpc_table tables[] = {api_table(NULL), replication_table(NULL)};
    const struct rpc_method **rows = memory_zalloc(wire_method_count(), sizeof *rows);
    for (size_t i = 0; i < array_length(tables); i++)
        for (const struct rpc_method *row = tables[i].methods; row->path != NULL; row++) {
            struct wire_method method;
            if (!wire_method_find(slice_text(row->path), &method))
                TEST_FAIL("%s is in no proto", row->path);
            if (rows[method.index] != NULL)
                TEST_FAIL("%s has two rows", row->path);
            rows[method.index] = row;
        }
    return rows;
}

TEST(methods, every_one_of_the_interface_has_a_row_and_every_column_is_decided)
{
    const struct rpc_method **rows = rows_by_index();
    for (size_t i = 0; i < wire_method_count(); i++) {
        struct wire_method method = wire_method_at(i);
        if (rows[i] == NULL)
            TEST_FAIL("%s/%s has no row", method.service->name, method.name);
        if (!rpc_method_is_decided(rows[i]))
            TEST_FAIL("%s: a column is not decided", rows[i]->path);
    }
    memory_free(rows);
}

TEST(methods, requests_name_the_owner_that_their_row_says)
{
    const struct rpc_method **rows = rows_by_index();
    for (size_t i = 0; i < wire_method_count(); i++) {
        struct wire_method method = wire_method_at(i);
        const struct rpc_method *row = rows[i];
        struct subject_fields fields = subject_fields_of(method.request);
        if (!subject_names(&fields, row->owner))
            TEST_FAIL("%s: its request has no field that names its owner", row->path);
    }
    memory_free(rows);
}

TEST(methods, what_operators_call_is_for_administrators_and_changes_leave_a_record, "J-023")
{
    static const char *const open[] = {"/uber.cadence.admin.v1.AdminAPI/DescribeCluster"};
    const struct rpc_method **rows = rows_by_index();
    for (size_t i = 0; i < wire_method_count(); i++) {
        const struct rpc_method *row = rows[i];
        bool is_for_operators = strstr(wire_method_at(i).service->name, ".admin.") != NULL;
        if (is_for_operators && strcmp(row->path, open[0]) != 0)
            EXPECT(row->permission == PERMISSION_ADMIN);
        if (row->holding == HELD)
            EXPECT(row->owner == OWNER_WORKFLOW && row->reach != REACH_NEVER);
        if (row->list_quota == LIST_RATED)
            EXPECT(row->quota != QUOTA_NONE && row->quota != QUOTA_VISIBILITY);
        if (strncmp(wire_method_at(i).name, "Update", 6) == 0 && is_for_operators)
            EXPECT(row->auditing == AUDITED);
    }
    memory_free(rows);
}
