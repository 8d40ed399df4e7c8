/* farm_test.c - the fingerprint against values of another implementation.
 *
 * What is at stake: another value sends a workflow to another shard than Cadence would. All values
 * were made with the Go package dgryski/go-farm, the one that Cadence uses. */
#include "base/farm.h"

#include "base/test.h"

#define LONGEST 65537

/* The bytes that the values below belong to: a simple generator, begun from the length. */
static struct slice
fill(uint8_t *bytes, uint32_t length)
{
    uint32_t state = length * UINT32_C(2654435761) + 12345;
    for (uint32_t i = 0; i < length; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(state >> 24);
    }
    return slice_of(bytes, length);
}

static const struct {
    uint32_t length;
    uint32_t fingerprint;
} known[] = {
    {0, 0xdc56d17a},    {1, 0xbe7ecf2d},    {2, 0x70559ae2},     {3, 0xfe2bd820},
    {4, 0x6d26a1bc},    {5, 0x10ce0241},    {6, 0x9f64f71d},     {7, 0x89c9847e},
    {8, 0x8935e0c3},    {9, 0xdf436bcf},    {10, 0xa8c0945b},    {11, 0xb36c9fe6},
    {12, 0x0900f1d5},   {13, 0xe7141932},   {14, 0xff43274d},    {15, 0x93f089fc},
    {16, 0xdefbb1bf},   {17, 0x0f79bbe9},   {18, 0x86bfe9ad},    {19, 0x73e43b0a},
    {20, 0x829558a1},   {21, 0xfbea0d6b},   {22, 0x7780c6b7},    {23, 0xaca89733},
    {24, 0x678474b5},   {25, 0x84e12c24},   {26, 0xbeaae1b9},    {27, 0x10f1689c},
    {28, 0x2f846e7b},   {29, 0x8ec41504},   {30, 0x87c152de},    {31, 0x00dde04b},
    {32, 0x9ba62588},   {33, 0x81cbc707},   {34, 0x372e30e7},    {35, 0xad3f1038},
    {36, 0x7f2f1a63},   {37, 0x33c8d439},   {38, 0xcb2a2685},    {39, 0xf53d82b7},
    {40, 0x290f5777},   {41, 0x15ae0796},   {42, 0x3dd1db73},    {43, 0x681ada0c},
    {44, 0xe8d88ac9},   {45, 0x718af3a2},   {46, 0xee48f1ef},    {47, 0x7aaeb881},
    {48, 0x3313fa27},   {49, 0xa1bd2c96},   {50, 0xd9569819},    {51, 0xa0f59c06},
    {52, 0x6983d3d6},   {53, 0x54026771},   {54, 0x568c98ec},    {55, 0x42703704},
    {56, 0xeefd5329},   {57, 0x0f3445f3},   {58, 0xd789e2b5},    {59, 0x9005e5da},
    {60, 0x4c135190},   {61, 0x4c5fc249},   {62, 0xe97ecb3b},    {63, 0x5af05075},
    {64, 0xa44d45a6},   {65, 0x0133aff5},   {66, 0x0da9f8ca},    {67, 0x56f56d5f},
    {68, 0xc0bb30ea},   {69, 0x9e94344c},   {70, 0xd95bfdac},    {71, 0x463018f8},
    {72, 0xb1d62292},   {73, 0xe8372e5f},   {74, 0x9dbb85af},    {75, 0xfa3ee98b},
    {76, 0x8d957b68},   {77, 0x1d35a923},   {78, 0x9e033b47},    {79, 0x68cdf481},
    {80, 0xf0137303},   {81, 0xf26a7dc0},   {82, 0xdf19ad75},    {83, 0x19f328fb},
    {84, 0xf0cb8664},   {85, 0xdbc310fb},   {86, 0x84c85fff},    {87, 0xb1edc234},
    {88, 0x5ee19bdd},   {89, 0xe93406e1},   {90, 0xbf39b2cf},    {91, 0x94930986},
    {92, 0xaa76795a},   {93, 0xa7e3b9df},   {94, 0x45743c51},    {95, 0xca5cf162},
    {96, 0x28c33f71},   {97, 0x0a6937c8},   {98, 0xe6430051},    {99, 0x65508a4c},
    {100, 0x2dc58664},  {127, 0x4824f6ad},  {128, 0x0fea6b13},   {255, 0x58023c25},
    {1000, 0x2683e294}, {4096, 0x248c2417}, {65537, 0xc329ace4},
};

TEST(farm, every_short_length_and_some_long_ones_give_the_known_value)
{
    static uint8_t bytes[LONGEST];
    for (size_t i = 0; i < array_length(known); i++)
        EXPECT_EQ(farm_fingerprint32(fill(bytes, known[i].length)), known[i].fingerprint);
}

TEST(farm, all_lengths_up_to_3000_give_the_known_sum)
{
    static uint8_t bytes[LONGEST];
    uint32_t sum = 0;
    for (uint32_t length = 0; length <= 3000; length++)
        sum = sum * 31 + farm_fingerprint32(fill(bytes, length));
    EXPECT_EQ(sum, 0x5daa7de6);
}

TEST(farm, workflow_ids_give_the_known_values)
{
    static const struct {
        const char *id;
        uint32_t fingerprint;
    } ids[] = {
        {"", 0xdc56d17a},
        {"a", 0x3c973d4d},
        {"order-1", 0x5c20a816},
        {"wf", 0xe02d25d8},
        {"3f1c2f3e-9f9a-4d7c-8a52-8b1f2f0d6a11", 0x748d91e3},
        {"workflow-id", 0x17dadd50},
        {"a workflow id with spaces and more than twenty-four bytes", 0x541b7ab4},
        {"ünïcödé-идентификатор", 0x6e297175},
    };
    for (size_t i = 0; i < array_length(ids); i++)
        EXPECT_EQ(farm_fingerprint32(slice_text(ids[i].id)), ids[i].fingerprint);
}

static const struct {
    uint32_t length;
    uint64_t fingerprint;
} known64[] = {
    {0, 0x9ae16a3b2f90404f},   {1, 0x82d3d8071b342b95},    {2, 0xb7ed3ca03b30c5b9},
    {3, 0x72f815113a464115},   {4, 0xd7fc6b93c5e05b32},    {7, 0xcb8f93bd8b683c07},
    {8, 0x1d1ddf5b759d48f4},   {9, 0x90d005c9e02c1eda},    {15, 0x21b1bd809d7a290c},
    {16, 0x57b9c33b44357c19},  {17, 0xb757282b3be8a866},   {24, 0x25ea821b046e3b91},
    {31, 0x81557c094a03ab35},  {32, 0x10d4347a4d1016b4},   {33, 0xb7f13bb9ca39e4ce},
    {48, 0x665c4355c3507eae},  {63, 0x7dd6e01f9e4510e7},   {64, 0xc3b214ad4ffeff7a},
    {65, 0xe90ef825b59ce063},  {100, 0x135b2f7b88050d41},  {127, 0x06309fb0892f6e10},
    {128, 0x51d22b1785614a6d}, {129, 0xcae61e924c64b5c9},  {192, 0x4c23aece47cb25cf},
    {193, 0x48105def13e1e4a9}, {1000, 0xdbc732b6e39399b9}, {65537, 0xcec558bd95717d68},
};

TEST(farm, the_64_bit_fingerprint_gives_the_known_values)
{
    static uint8_t bytes[LONGEST];
    for (size_t i = 0; i < array_length(known64); i++)
        EXPECT_EQ(farm_fingerprint64(fill(bytes, known64[i].length)), known64[i].fingerprint);
    uint64_t sum = 0;
    for (uint32_t length = 0; length <= 3000; length++)
        sum = sum * 31 + farm_fingerprint64(fill(bytes, length));
    EXPECT_EQ(sum, 0xbdbd15ae546fb4d6);
}
