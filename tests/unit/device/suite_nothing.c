// SPDX-License-Identifier: Apache-2.0
// Public calls that are given nothing where an object or a desc has to be: each says so.
#include "harness/harness.h"

#include "gpurt/checkpoint.h"
#include "gpurt/dataset.h"
#include "gpurt/env.h"
#include "gpurt/es.h"
#include "gpurt/feed.h"
#include "gpurt/learner.h"
#include "gpurt/loader.h"
#include "gpurt/network.h"
#include "gpurt/ppo.h"
#include "gpurt/run.h"
#include "gpurt/safetensors.h"
#include "gpurt/supervised.h"
#include "gpurt/timeline.h"
#include "gpurt/worlds.h"

#define REFUSED(call, part) TEST_REFUSED(call, GRT_INVALID, part)

static struct grt_dev *open_ref(void) {
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    assert_non_null(dev);
    return dev;
}

static void objects_of_nothing(void **state) {
    (void)state;
    struct grt_dev *dev = open_ref();
    REFUSED(grt_es_create(NULL, &(struct grt_es_desc){0}), "no device");
    REFUSED(grt_es_create(dev, NULL), "no desc");
    REFUSED(grt_ppo_create(NULL, &(struct grt_ppo_desc){0}), "no device");
    REFUSED(grt_ppo_create(dev, NULL), "no desc");
    REFUSED(grt_learner_create(NULL, &(struct grt_learner_desc){0}), "no device");
    REFUSED(grt_learner_create(dev, NULL), "no desc");
    REFUSED(grt_worlds_create(NULL, &(struct grt_worlds_desc){0}), "no device");
    REFUSED(grt_worlds_create(dev, NULL), "no environment");
    REFUSED(grt_feed_create(NULL), "no desc, loader or learner");
    REFUSED(grt_feed_place(NULL), "no feed");
    REFUSED(grt_copier_create(NULL), "no loader");
    REFUSED(grt_run_create(NULL), "wants a folder");
    REFUSED(grt_supervised_create(NULL), "a device and a config");
    REFUSED(grt_classified_create(dev, NULL, NULL, (enum grt_part)0, NULL), "a model and a config");
    REFUSED(grt_file_info_create(NULL), "no path");
    REFUSED(grt_linear_create(NULL), "no desc");
    REFUSED(grt_mlp_create(NULL), "no desc");
    REFUSED(grt_points_create(NULL), "no desc");
    REFUSED(grt_wideresnet_create(NULL), "no desc");
    REFUSED(grt_sequence_create(NULL, 1), "no parts");
    REFUSED(grt_branches_create(NULL, 1), "fewer than two");
    REFUSED(grt_concat_create(NULL, 1), "fewer than two");
    REFUSED(grt_buf_create(dev, NULL), "no desc");
    test_usable(dev);
    grt_dev_destroy(&dev);
}

static void calls_with_nothing(void **state) {
    (void)state;
    struct grt_es_report es;
    struct grt_ppo_report ppo;
    double number;
    REFUSED(grt_es_iterate(NULL, &es), "no learner");
    REFUSED(grt_es_evaluate(NULL, 1, &es), "no learner");
    REFUSED(grt_es_save(NULL, NULL), "no learner");
    REFUSED(grt_es_load(NULL, NULL, false), "no learner");
    REFUSED(grt_ppo_iterate(NULL, &ppo), "no PPO");
    REFUSED(grt_ppo_environment(NULL, &number), "no PPO");
    REFUSED(grt_ppo_iterate_by_host(NULL, &ppo, NULL), "no PPO");
    REFUSED(grt_ppo_evaluate(NULL, NULL, GRT_PPO_TRY_POLICY, 1, &ppo), "no PPO");
    REFUSED(grt_ppo_save(NULL, NULL), "no PPO");
    REFUSED(grt_ppo_load(NULL, NULL, GRT_PPO_ALL), "no PPO");
    REFUSED(grt_learner_alloc(NULL), "no learner");
    REFUSED(grt_learner_step(NULL, NULL), "no desc");
    REFUSED(grt_learner_gradients(NULL, NULL), "no desc");
    REFUSED(grt_learner_update(NULL, NULL), "no desc");
    REFUSED(grt_learner_evaluate(NULL, NULL), "no desc");
    REFUSED(grt_learner_state(NULL, NULL), "not allocated");
    REFUSED(grt_learner_set_state(NULL, NULL), "not allocated");
    REFUSED(grt_learner_sync(NULL), "not allocated");
    REFUSED(grt_learner_reset(NULL, 1), "not allocated");
    REFUSED(grt_run_begin(NULL, NULL), "no run");
    REFUSED(grt_checkpoint_save(NULL, "here"), "an archive and a path");
    REFUSED(grt_checkpoint_load(NULL), "a path");
    REFUSED(grt_safetensors_save(NULL, "here"), "an archive and a path");
    REFUSED(grt_safetensors_load(NULL), "a path");
    REFUSED(grt_loader_next(NULL, NULL), "no loader");
    REFUSED(grt_graph_bake(NULL), "no graph");
    REFUSED(grt_graph_run(NULL), "no graph");
    REFUSED(grt_graph_finish(NULL), "no graph");
    REFUSED(grt_plan_alloc(NULL), "no plan");
    REFUSED(grt_buf_write(NULL, 0, "", 1), "no buffer");
    REFUSED(grt_buf_read(NULL, 0, NULL, 1), "no buffer");
    REFUSED(grt_dev_wait(NULL), "no device");
    REFUSED(grt_archive_set_whole(NULL, "a", 1), "'a' is no name");
    REFUSED(grt_archive_set_real(NULL, "a", 1), "'a' is no name");
    REFUSED(grt_archive_set_text(NULL, "a", "b"), "'a' is no name");
    REFUSED(grt_policy_parse(NULL, NULL), "no text");
    REFUSED(grt_profile_store(NULL, GRT_KEY_COUNT, NULL), "no device");
}

// Destroying nothing, and asking it, is allowed.
static void questions_to_nothing(void **state) {
    (void)state;
    struct grt_es *es = NULL;
    struct grt_ppo *ppo = NULL;
    struct grt_learner *learner = NULL;
    struct grt_worlds *worlds = NULL;
    struct grt_run *run = NULL;
    struct grt_feed *feed = NULL;
    struct grt_loader *loader = NULL;
    grt_es_destroy(&es);
    grt_ppo_destroy(&ppo);
    grt_learner_destroy(&learner);
    grt_worlds_destroy(&worlds);
    grt_run_destroy(&run);
    grt_feed_destroy(&feed);
    grt_loader_destroy(&loader);
    grt_es_destroy(NULL);
    grt_ppo_destroy(NULL);
    grt_learner_destroy(NULL);
    grt_worlds_destroy(NULL);
    grt_run_destroy(NULL);
    grt_feed_destroy(NULL);
    grt_loader_destroy(NULL);
    assert_null(grt_es_desc_of(NULL));
    assert_null(grt_ppo_desc_of(NULL));
    assert_null(grt_learner_desc_of(NULL));
    assert_null(grt_learner_layer(NULL, 0));
    assert_null(grt_dev_info(NULL));
    assert_int_equal(grt_buf_size(NULL), 0);
    assert_int_equal(grt_learner_parameters(NULL), 0);
    assert_int_equal(grt_worlds_copies(NULL), 0);
    assert_int_equal(grt_plan_bytes(NULL, NULL), 0);
    TEST_REFUSED(grt_env_find(NULL), GRT_INVALID, "there are cartpole, pendulum");
    assert_false(grt_kernel_exists(NULL, "copy"));
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(objects_of_nothing),
    TEST_CASE(calls_with_nothing),
    TEST_CASE(questions_to_nothing),
};
TEST_SUITE(nothing, false, cases);
