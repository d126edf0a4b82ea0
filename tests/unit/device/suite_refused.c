// SPDX-License-Identifier: Apache-2.0
// Without host memory: every allocation of a call is refused in turn. The call fails, says that
// there is no memory, and leaves everything usable; the last time, with none refused, it succeeds.
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "gpurt/archive.h"
#include "gpurt/es.h"
#include "gpurt/learner.h"
#include "timeline/timeline.h"

#define MOST 400u  // allocations of a call, or it has no end

// Runs `call` with its allocations refused, one after the other.
static void each_refused(const char *what, bool (*call)(void)) {
    for (uint32_t i = 1; i < MOST; i++) {
        uint32_t errors = test_log.lines[GRT_LOG_ERROR];
        uint64_t before = test_allocations();
        test_log.quiet = true;
        test_refuse_allocation(i);
        bool ok = call();
        test_refuse_allocation(0);
        test_log.quiet = false;
        if (test_allocations() - before < i) {
            assert_true(ok);
            print_message("# %s: %u allocations\n", what, i - 1);
            return;
        }
        uint32_t said = test_log.lines[GRT_LOG_ERROR] - errors;
        if (ok || grt_last_status() != GRT_NO_MEMORY || said == 0 ||
            !strstr(grt_last_error(), "memory")) {
            fail_msg("%s, allocation %u: '%s', %u lines: %s", what, i,
                     grt_status_text(grt_last_status()), said, grt_last_error());
        }
        test_log.expected += said;
    }
    fail_msg("%s: no end of allocations", what);
}

static struct grt_dev *dev;

static bool open_close(void) {
    dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    bool ok = dev != NULL;
    grt_dev_destroy(&dev);
    return ok;
}

static bool run_graph(void) {
    struct grt_buf *buf = grt_buf_create(dev, grt_buf_desc(.size = 64, .label = "here"));
    struct grt_graph *graph = buf ? grt_graph_create(dev, "refused") : NULL;
    struct grt_tensor t = {.label = "t", .rank = 1, .shape = {16}, .range = {buf, 0, 64}};
    if (graph) {
        grt_graph_phase(graph, "one");
        grt_op_map(graph, grt_map_desc(.map = GRT_MAP_ADD, .y = &t, .a = &t, .b = &t, .alpha = 1.0f,
                                       .beta = 1.0f));
        grt_graph_fill(graph, t.range, 1);
    }
    bool ok = graph && grt_graph_finish(graph);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&buf);
    return ok;
}

static bool make_learner(void) {
    const struct grt_mlp_desc mlp = {.depth = 1, .hidden = 4, .outputs = 2, .act = GRT_ACT_RELU};
    struct grt_learner *learner = grt_learner_create(
        dev, grt_learner_desc(.make = grt_mlp_make, .of = &mlp, .input = {1, {3}},
                              .optim = grt_optim_defaults(GRT_OPTIM_ADAM), .batch = 4));
    bool ok = learner && grt_learner_alloc(learner) && grt_learner_reset(learner, 1);
    grt_learner_destroy(&learner);
    return ok;
}

static bool make_es(void) {
    struct grt_es *es = grt_es_create(
        dev, &(struct grt_es_desc){
                 .env = grt_env_find("cartpole"), .num_envs = 2, .num_dirs = 2, .dir_chunk = 2});
    bool ok = es != NULL;
    grt_es_destroy(&es);
    return ok;
}

static bool fill_archive(void) {
    const uint64_t shape[] = {2};
    const float numbers[] = {1, 2};
    struct grt_archive *archive = grt_archive_create();
    bool ok = archive && grt_archive_add(archive, "a", GRT_F32, 1, shape, numbers) &&
              grt_archive_set_whole(archive, "whole", 3) &&
              grt_archive_set_text(archive, "text", "words");
    grt_archive_destroy(&archive);
    return ok;
}

// Under a timeline a list is made five times, with what is known of its commands beside it. What
// the timeline itself has no memory for, a name say, is left out of it, and the run goes on: the
// names are known before.
static void timed_graphs(void) {
    struct grt_timeline *t = grt_timeline_begin(dev, grt_timeline_desc(.overhead = 0.02));
    assert_non_null(t);
    t->totals.stamp = 1.0;
    assert_true(run_graph());
    each_refused("a graph that is timed", run_graph);
    assert_true(grt_timeline_end(t));
    grt_timeline_destroy(&t);
}

static void devices(void **state) {
    (void)state;
    each_refused("a device", open_close);
}

static void objects(void **state) {
    (void)state;
    dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    assert_non_null(dev);
    each_refused("a graph", run_graph);
    timed_graphs();
    each_refused("an archive", fill_archive);
    each_refused("a learner", make_learner);
    each_refused("an evolution strategy", make_es);
    test_usable(dev);
    grt_dev_destroy(&dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(devices),
    TEST_CASE(objects),
};
TEST_SUITE(refused, false, cases);
