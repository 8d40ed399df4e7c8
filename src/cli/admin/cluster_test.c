/* cluster_test.c - the other clusters of a group, as text and as JSON. */
#include "cli/admin/cluster.h"

#include "base/test.h"
#include "cli/output/render.h"
#include "fiber/clock.h"

/* c0 of three: c1 answers, c2 does not. */
struct answer {
    STORE_API(Peer) first, second;
    STORE_API(Peer) *peers[2];
    STORE_API(DescribePeersResponse) response;
};

static void
make_answer(struct answer *answer)
{
    const STORE_API(Peer) peer = CADENZA__ADMIN__V1__PEER__INIT;
    const STORE_API(DescribePeersResponse) response =
        CADENZA__ADMIN__V1__DESCRIBE_PEERS_RESPONSE__INIT;
    answer->first = answer->second = peer;
    answer->first.name = "c1";
    answer->second.name = "c2";
    answer->first.address = "h:1";
    answer->second.address = "h:2";
    answer->first.is_followed = answer->second.is_followed = true;
    answer->first.heard_nanoseconds = 7 * NS_PER_S + 1;
    answer->first.waiting = 3;
    answer->second.is_away = true;
    answer->second.failure = "no\033way";
    answer->peers[0] = &answer->first;
    answer->peers[1] = &answer->second;
    answer->response = response;
    answer->response.cluster = "c0";
    answer->response.peers = answer->peers;
    answer->response.n_peers = 2;
}

static void
lose_memory(struct answer *answer)
{
    answer->first.is_past_wanted = answer->second.is_past_wanted = true;
    answer->first.past_shards = 16;
}

ARENA_TEST(cluster_peers, a_line_for_each_and_why_one_is_away)
{
    struct answer answer;
    make_answer(&answer);
    EXPECT(!peers_have_past_wanted(&answer.response));
    EXPECT_TEXT(peers_text(&answer.response, arena),
                "CLUSTER  ADDRESS  STATE     LAST HEARD            WAITING\n"
                "c1       h:1      followed  1970-01-01T00:00:07Z  3\n"
                "c2       h:2      away      -                     0\n"
                "c2: no?way\n");
    answer.first.is_followed = false;
    answer.second.has_other_settings = true;
    const char *text = peers_text(&answer.response, arena);
    EXPECT(strstr(text, " not followed ") != NULL && strstr(text, " other settings ") != NULL);
    answer.response.n_peers = 0;
    EXPECT_TEXT(peers_text(&answer.response, arena), "c0 is alone.\n");
}

ARENA_TEST(cluster_peers, a_cluster_that_lost_memory_says_how_far_it_has_read_each)
{
    struct answer answer;
    make_answer(&answer);
    lose_memory(&answer);
    EXPECT(peers_have_past_wanted(&answer.response));
    const char *text = strstr(peers_text(&answer.response, arena), "c0 lost");
    EXPECT(text != NULL);
    EXPECT_TEXT(text, "c0 lost memory and reads from the others what it had:\n"
                      "  c1: 0 of 16 shards were read\n"
                      "  c2: has not answered yet\n");
    answer.first.past_read = 5;
    EXPECT_TEXT(peer_past_text(&answer.first, arena), "5 of 16 shards were read");
    answer.second.is_past_wanted = false; /* not waited for */
    text = peers_text(&answer.response, arena);
    EXPECT(strstr(text, "  c1: ") != NULL && strstr(text, "  c2: ") == NULL);
}

ARENA_TEST(cluster_peers, json_has_the_numbers_of_a_recovery_even_if_they_are_0)
{
    struct answer answer;
    make_answer(&answer);
    json_t *json = peers_json(&answer.response, arena);
    EXPECT(strstr(render_compact(json, arena), "past") == NULL);
    json_decref(json);
    lose_memory(&answer);
    json = peers_json(&answer.response, arena);
    const json_t *first = json_array_get(json_object_get(json, "peers"), 0);
    EXPECT(json_is_true(json_object_get(first, "isPastWanted")));
    EXPECT(json_is_integer(json_object_get(first, "pastRead")));
    EXPECT_EQ(json_integer_value(json_object_get(first, "pastRead")), 0);
    EXPECT_EQ(json_integer_value(json_object_get(first, "pastShards")), 16);
    json_decref(json);
}
