/* search_attributes_test.c - clients learn which keys there are. */
#include "api/test/fixture.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "wire/names.h"

#define KIND(name) API_VALUE(INDEXED_VALUE_TYPE__INDEXED_VALUE_TYPE_##name)

/* INVALID: no such key. */
static API(IndexedValueType)
kind_of(const API(GetSearchAttributesResponse) *response, const char *key)
{
    API(IndexedValueType) kind = KIND(INVALID);
    for (size_t i = 0; i < response->n_keys; i++) {
        if (strcmp(response->keys[i]->key, key) != 0)
            continue;
        EXPECT_EQ(kind, KIND(INVALID)); /* once */
        kind = response->keys[i]->value;
    }
    return kind;
}

SERVER_TEST(search_attributes, every_key_is_listed_once_with_its_kind, "B-031")
{
    API(GetSearchAttributesResponse) *response = API_OK(fixture, get_search_attributes);
    for (size_t i = 0; i < response->n_keys; i++) /* clients do not survive this one */
        EXPECT(kind_of(response, response->keys[i]->key) != KIND(INVALID));
    EXPECT_EQ(kind_of(response, "CustomStringField"), KIND(STRING));
    EXPECT_EQ(kind_of(response, "CustomKeywordField"), KIND(KEYWORD));
    EXPECT_EQ(kind_of(response, "CustomIntField"), KIND(INT));
    EXPECT_EQ(kind_of(response, "CustomDoubleField"), KIND(DOUBLE));
    EXPECT_EQ(kind_of(response, "CustomBoolField"), KIND(BOOL));
    EXPECT_EQ(kind_of(response, "CustomDatetimeField"), KIND(DATETIME));
    EXPECT_EQ(kind_of(response, "BinaryChecksums"), KIND(KEYWORD));
    EXPECT_EQ(kind_of(response, "CadenceChangeVersion"), KIND(KEYWORD));
    EXPECT_EQ(kind_of(response, "WorkflowID"), KIND(KEYWORD));
    EXPECT_EQ(kind_of(response, "StartTime"), KIND(INT));
}
