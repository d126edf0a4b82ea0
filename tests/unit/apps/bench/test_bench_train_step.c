// SPDX-License-Identifier: Apache-2.0
// How `gpurt bench train` measures one configuration, with a learner, a loader and a feed that were
// made up: what its steps, phases and copies take, what does not fit, and what fails on the way.
#include "unit/apps/made_device.h"

#include "bench/train/bench_train.h"
#include "gpurt/feed.h"

// ---- in place of the library's ----

struct grt_learner {
    struct grt_learner_desc desc;
};
struct grt_loader {
    struct grt_loader_desc desc;
};
struct grt_feed {
    struct grt_feed_desc desc;
};

static struct {
    double step;              // seconds of a step, and of the slower groups of it:
    double turns[8];          // so many times as long, one after the other
    double waited, stalled;   // of a step
    double phases[4], other;  // device seconds of a step with marks
    double wall;              // of one without
    double upload[3];
    float loss;
    uint32_t halted, slots, lanes;
    uint64_t x_bytes, y_bytes, learner_bytes;
    enum grt_status learner, alloc, loader, feed, state, run;
    uint32_t runs, run_fails_at, steps, windows, largest;
    enum grt_cache chosen;
    double counter;
    uint32_t uploads, alive;
    struct grt_learner_desc seen_learner;
    struct grt_loader_desc seen;
    bool seen_on_device;
} m;

#define GIVE(type, status)                                                                         \
    if (status) {                                                                                  \
        grt_fail(status, "made up");                                                               \
        return NULL;                                                                               \
    }                                                                                              \
    m.alive++;                                                                                     \
    type *one = calloc(1, sizeof *one)
#define TAKE(one)                                                                                  \
    m.alive -= *(one) != NULL;                                                                     \
    free(*(one));                                                                                  \
    *(one) = NULL

struct grt_learner *grt_learner_create(struct grt_dev *dev, const struct grt_learner_desc *desc) {
    (void)dev;
    m.seen_learner = *desc;
    GIVE(struct grt_learner, m.learner);
    one->desc = *desc;
    return one;
}

void grt_learner_destroy(struct grt_learner **learner) {
    TAKE(learner);
}

const struct grt_learner_desc *grt_learner_desc_of(const struct grt_learner *learner) {
    return &learner->desc;
}

const char *grt_learner_variant(const struct grt_learner *learner) {
    (void)learner;
    return "layers";
}

uint64_t grt_learner_bytes(const struct grt_learner *learner, const char *group) {
    (void)learner;
    (void)group;
    return m.learner_bytes;
}

uint64_t grt_learner_x_bytes(const struct grt_learner *learner) {
    (void)learner;
    return m.x_bytes;
}

uint64_t grt_learner_y_bytes(const struct grt_learner *learner) {
    (void)learner;
    return m.y_bytes;
}

bool grt_learner_alloc(struct grt_learner *learner) {
    (void)learner;
    made.used += 500;
    return !m.alloc || grt_fail(m.alloc, "made up");
}

bool grt_learner_state(struct grt_learner *learner, struct grt_learn_state *state) {
    (void)learner;
    *state = (struct grt_learn_state){.loss = m.loss, .halted = m.halted};
    return !m.state || grt_fail(m.state, "made up");
}

static void nothing(const struct made_work *work) {
    (void)work;
}

struct grt_graph *grt_learner_step(struct grt_learner *learner, const struct grt_step_desc *desc) {
    static const char *const names[] = {"input", "forward", "backward", "optimizer"};
    struct grt_graph *graph = grt_graph_create(&made.dev, desc->label);
    (void)learner;
    assert_true(desc->phases && desc->x.offset == 7 && desc->y.offset == 9);
    made_add(graph, &(struct made_work){.run = nothing, .seconds = m.wall});
    for (int k = 0; k < 4; k++) {
        graph->times[k] = (struct grt_phase_time){names[k], m.phases[k]};
        graph->time_count += m.phases[k] > 0;
    }
    if (graph->time_count) {
        graph->times[4] = (struct grt_phase_time){"other", m.other};
        graph->times[5] = (struct grt_phase_time){"forward", m.phases[1]};
        graph->time_count = 6;
    }
    return graph;
}

bool grt_task_choose_cache(struct grt_dev *dev, const struct grt_task *task,
                           const struct grt_learner_desc *desc, enum grt_cache wanted,
                           struct grt_cache_choice *choice) {
    (void)dev;
    (void)task;
    assert_int_equal(desc->batch, m.seen_learner.batch);
    assert_int_equal(wanted, GRT_CACHE_RAM);
    choice->cache = m.chosen;
    return true;
}

uint64_t grt_feed_row_bytes(const struct grt_dev *dev, uint64_t row_bytes, bool several) {
    (void)dev;
    assert_false(several);
    return 2 * row_bytes;
}

uint32_t grt_dev_lanes(const struct grt_dev *dev) {
    (void)dev;
    return m.lanes;
}

struct grt_loader *grt_loader_create(const struct grt_loader_desc *desc) {
    m.seen = *desc;
    made.used += 30;
    GIVE(struct grt_loader, m.loader);
    return one;
}

void grt_loader_destroy(struct grt_loader **loader) {
    TAKE(loader);
}

struct grt_loader_info grt_loader_info(const struct grt_loader *loader) {
    (void)loader;
    return (struct grt_loader_info){.slots = m.slots};
}

bool grt_loader_next(struct grt_loader *loader, struct grt_batch *batch) {
    (void)loader;
    *batch = (struct grt_batch){.rows = 4};
    made.now += 100;  // no part of the copy
    return true;
}

void grt_loader_release(struct grt_loader *loader, const struct grt_batch *batch) {
    (void)loader;
    (void)batch;
}

bool grt_loader_upload(struct grt_loader *loader, const struct grt_batch *batch, uint32_t part) {
    (void)loader;
    (void)batch;
    (void)part;
    made.now += m.upload[m.uploads++ % 3];
    return true;
}

struct grt_feed *grt_feed_create(const struct grt_feed_desc *desc) {
    m.seen_on_device = desc->on_device;
    made.used += 4;
    GIVE(struct grt_feed, m.feed);
    return one;
}

void grt_feed_destroy(struct grt_feed **feed) {
    TAKE(feed);
}

void grt_feed_newest(const struct grt_feed *feed, struct grt_tensor *x, struct grt_tensor *y) {
    (void)feed;
    *x = (struct grt_tensor){.range.offset = 7};
    *y = (struct grt_tensor){.range.offset = 9};
}

bool grt_feed_run(struct grt_feed *feed, uint32_t most, bool more, struct grt_feed_done *done) {
    (void)feed;
    assert_true(more);
    m.windows++;
    m.largest = most > m.largest ? most : m.largest;
    size_t turns = 0;
    while (turns < 8 && m.turns[turns] > 0) {
        turns++;
    }
    double slower = turns ? m.turns[m.runs % turns] : 1;
    m.runs++;
    *done = (struct grt_feed_done){
        .steps = most, .waited = most * m.waited * slower, .stalled = most * m.stalled * slower};
    m.steps += most;
    made.now += most * m.step * slower;
    return m.runs != m.run_fails_at || grt_fail(m.run, "made up");
}

double bench_counter_read(const struct bench_counter *counter) {
    (void)counter;
    return m.counter;
}

static struct train_bench bench;
static struct train_row row;

static int begin(void **state) {
    memset(&m, 0, sizeof m);
    m.step = 0.001;
    m.lanes = 2;
    m.slots = 4;
    m.x_bytes = 12;
    m.y_bytes = 4;
    m.learner_bytes = 1000;
    m.phases[0] = 0.0001;
    m.phases[1] = 0.0001;
    m.phases[2] = 0.0002;
    m.phases[3] = 0.0001;
    m.other = 0.5;
    m.wall = 0.0008;
    m.upload[0] = m.upload[1] = m.upload[2] = 0.0001;
    m.counter = 0.625;
    m.chosen = GRT_CACHE_RAM;
    int code = made_begin(state);
    made.submit = 0;
    memset(&bench, 0, sizeof bench);
    bench.dev = &made.dev;
    bench.steps = 10;
    bench.cache = GRT_CACHE_NONE;
    bench.task.info.part_rows[GRT_PART_TRAIN] = 1000;
    bench.config.prefetch_factor = 5;
    bench.config.seed = 77;
    row = (struct train_row){.batch = 50, .workers = 2, .precision = GRT_F16, .pin = true};
    return code;
}

static void near(double got, double want, int line) {
    if (!(fabs(got - want) <= 1e-9 + 1e-6 * fabs(want))) {
        fail_msg("line %d: %.9g, not %.9g", line, got, want);
    }
}
#define NEAR(got, want) near(got, want, __LINE__)

static enum train_status measured(void) {
    train_measure(&bench, &row);
    assert_int_equal(m.alive, 0);
    return row.status;
}

// ---- figures ----

static void figures(void **state) {
    (void)state;
    m.waited = 0.0002;
    m.stalled = 0.0001;
    assert_int_equal(measured(), TRAIN_OK);
    NEAR(row.total, 0.001);
    NEAR(row.rate, 50000);
    NEAR(row.io, 0.0002);
    NEAR(row.stall, 0.1);
    NEAR(row.spread, 0);
    NEAR(row.counter, 0.625);
    NEAR(row.input, 0.0001);
    NEAR(row.forward, 0.0002);  // two phases of it
    NEAR(row.backward, 0.0002);
    NEAR(row.optimizer, 0.0001);
    assert_true(row.phases);
    NEAR(row.busy, 0.6);
    NEAR(row.upload, 0.0001);
    assert_string_equal(row.variant, "layers");
    assert_int_equal(row.memory, 500 + 30 + 4);  // what there is more than before
    // 0.3 s in groups of eight steps, behind two windows that do not count.
    assert_in_range(row.samples, 37, 39);
    assert_int_equal(m.steps, 16 + 8 * row.samples);
    assert_int_equal(m.largest, GRT_FEED_WINDOW);
    assert_int_equal(m.uploads, 3);
}

// Time and steps are the least of both, three groups and four seconds at most.
static void how_long(void **state) {
    (void)state;
    static const struct {
        double step, seconds;
        uint64_t steps;
        uint32_t least, most;
    } rows[] = {
        {0.001, 0, 1000, 125, 125}, {0.001, 1, 10, 125, 126}, {0.5, 0.1, 1, 3, 3},
        {0.5, 0.1, 1000, 3, 3},     {0.1, 0.1, 1000, 5, 6},   {0.1, 10, 1, 13, 14},
        {0.0001, 2, 1, 1000, 1000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        m.step = rows[i].step;
        bench.seconds = rows[i].seconds;
        bench.steps = rows[i].steps;
        assert_int_equal(measured(), TRAIN_OK);
        assert_in_range(row.samples, rows[i].least, rows[i].most);
    }
}

// Workers deliver in bursts of as many batches as there are slots.
static void bursts(void **state) {
    (void)state;
    static const struct {
        uint32_t workers, slots, group;
    } rows[] = {{2, 20, 24}, {0, 20, 8}, {2, 8, 8}, {2, 9, 16}};
    for (size_t i = 0; i < 4; i++) {
        row.workers = rows[i].workers;
        m.slots = rows[i].slots;
        m.steps = 0;
        assert_int_equal(measured(), TRAIN_OK);
        assert_int_equal(m.steps - 16, row.samples * rows[i].group);
    }
}

static void medians(void **state) {
    (void)state;
    // Groups of one window: 1, 1, 4, 2 and 9 times as long, one after the other.
    static const double turns[] = {1, 1, 4, 2, 9};
    memcpy(m.turns, turns, sizeof turns);
    m.waited = 0.0001;
    m.stalled = 0.0001;
    bench.seconds = 2.72;  // 20 cycles of 136 ms
    assert_int_equal(measured(), TRAIN_OK);
    NEAR(row.total, 0.002);
    NEAR(row.rate, 25000);
    NEAR(row.io, 0.0002);
    NEAR(row.stall, 0.1);
    NEAR(row.spread, (4 - 1) / 2.0 / 2);
}

// Copies that take longer than the device's work are waited for; a device that is busy waits for
// nothing.
static void stalls(void **state) {
    (void)state;
    static const struct {
        double stalled, upload, busy, wanted;
    } rows[] = {
        {0, 0.0009, 0.6, 0.3},       // 0.9 of a step's time, 0.6 of them behind work
        {0.0002, 0.0007, 0.6, 0.2},  // the host saw more
        {0.0009, 0.0001, 0.6, 0.4},  // no more than the device was idle
        {0, 0.005, 0.6, 0.4},       {0.002, 0.0001, 0, 1}, {0, 0.0001, 0.6, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        m.stalled = rows[i].stalled;
        m.upload[0] = rows[i].upload;
        m.upload[1] = 9;
        m.upload[2] = rows[i].upload / 2;
        m.uploads = 0;
        memset(m.phases, 0, sizeof m.phases);
        m.phases[0] = rows[i].busy * m.step;
        m.wall = 0;
        assert_int_equal(measured(), TRAIN_OK);
        NEAR(row.upload, rows[i].upload);
        NEAR(row.busy, rows[i].busy);
        NEAR(row.stall, rows[i].wanted);
    }
}

// Without timestamps the wall around a step says how busy the device is, and no phase is known.
static void no_clock(void **state) {
    (void)state;
    memset(m.phases, 0, sizeof m.phases);
    assert_int_equal(measured(), TRAIN_OK);
    assert_false(row.phases);
    NEAR(row.busy, 0.8);
    NEAR(row.forward, 0);
    m.wall = 0.0011;
    assert_int_equal(measured(), TRAIN_OK);
    NEAR(row.busy, 1);
    m.wall = 0.5;
    m.phases[0] = 0.002;
    row = (struct train_row){.batch = 50};
    assert_int_equal(measured(), TRAIN_OK);
    assert_true(row.phases);
    NEAR(row.busy, 1);
}

// Rows on the device: as many steps at once as take 30 ms, 4096 at most, and nothing is copied.
static void on_the_device(void **state) {
    (void)state;
    static const struct {
        double step;
        uint32_t largest;
    } rows[] = {{0.001, 64}, {0.0036, 32}, {0.0038, 16}, {0.004, 16}, {0.03, 16}, {1e-9, 4096}};
    bench.kept = (struct grt_loader *)&m;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        m.step = rows[i].step;
        m.largest = m.uploads = 0;
        bench.seconds = 0.01;
        row.upload = 0;
        assert_int_equal(measured(), TRAIN_OK);
        assert_int_equal(row.cache, GRT_CACHE_DEVICE);
        assert_true(m.seen_on_device);
        assert_int_equal(m.largest, rows[i].largest);
        assert_int_equal(m.uploads, 0);
        NEAR(row.upload, 0);
    }
}

static void places_of_rows(void **state) {
    (void)state;
    static const struct {
        enum grt_cache asked, chosen, wanted;
    } rows[] = {{GRT_CACHE_NONE, GRT_CACHE_RAM, GRT_CACHE_NONE},
                {GRT_CACHE_RAM, GRT_CACHE_NONE, GRT_CACHE_RAM},
                {TRAIN_CACHE_AUTO, GRT_CACHE_RAM, GRT_CACHE_RAM},
                {TRAIN_CACHE_AUTO, GRT_CACHE_NONE, GRT_CACHE_NONE},
                {GRT_CACHE_DEVICE, GRT_CACHE_NONE, GRT_CACHE_DEVICE}};
    for (size_t i = 0; i < 5; i++) {
        bench.cache = rows[i].asked;
        m.chosen = rows[i].chosen;
        assert_int_equal(measured(), TRAIN_OK);
        assert_int_equal(row.cache, rows[i].wanted);
        assert_int_equal(m.seen.cache, rows[i].wanted);
        assert_int_equal(m.seen_on_device, rows[i].wanted == GRT_CACHE_DEVICE);
    }
    // The rest of what the loader and the learner are told.
    assert_int_equal(m.seen.batch, 50);
    assert_int_equal(m.seen.workers, 2);
    assert_int_equal(m.seen.prefetch, 5);
    assert_true(m.seen.pin && m.seen.shuffle && m.seen.drop_last);
    assert_int_equal(m.seen.held, GRT_FEED_HELD);
    assert_int_equal(m.seen.turns, 2);
    assert_int_equal(m.seen.seed, 77);
    assert_int_equal(m.seen.part, GRT_PART_TRAIN);
    assert_int_equal(m.seen_learner.batch, 50);
    assert_int_equal(m.seen_learner.accumulate, 1);
    assert_int_equal(m.seen_learner.precision, GRT_F16);
    row.pin = false;
    row.precision = GRT_F32;
    assert_int_equal(measured(), TRAIN_OK);
    assert_false(m.seen.pin);
    assert_int_equal(m.seen_learner.precision, GRT_F32);
}

// ---- what does not fit or fails ----

static void memory(void **state) {
    (void)state;
    // The learner, and 50 rows of twice 16 bytes on their way.
    made.memory = 1000 + 50 * 32;
    assert_int_equal(measured(), TRAIN_OK);
    assert_false(row.planned);
    made.memory--;
    assert_int_equal(measured(), TRAIN_OOM);
    assert_true(row.planned);
    assert_int_equal(row.memory, 2600);
    // On the device no rows are on their way.
    bench.cache = GRT_CACHE_DEVICE;
    made.memory = 1000;
    assert_int_equal(measured(), TRAIN_OK);
    made.memory = 999;
    assert_int_equal(measured(), TRAIN_OOM);
    // A batch of all rows there are.
    made.memory = 1 << 30;
    row.batch = 1000;
    assert_int_equal(measured(), TRAIN_OK);
    row.batch = 1001;
    assert_int_equal(measured(), TRAIN_FEW_ROWS);
}

static void failures(void **state) {
    (void)state;
    static const struct {
        enum grt_status *of;
        uint32_t run;
    } places[] = {{&m.learner, 0}, {&m.alloc, 0}, {&m.loader, 0},
                  {&m.feed, 0},    {&m.run, 1},   {&m.run, 5}};
    static const struct {
        enum grt_status status;
        enum train_status wanted;
    } kinds[] = {{GRT_NO_MEMORY, TRAIN_OOM},
                 {GRT_UNSUPPORTED, TRAIN_UNSUITED},
                 {GRT_LOST, TRAIN_BROKEN},
                 {GRT_IO, TRAIN_BROKEN}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            *places[i].of = kinds[k].status;
            m.runs = 0;
            m.run_fails_at = places[i].run;
            assert_int_equal(measured(), kinds[k].wanted);
            assert_false(row.planned);
            *places[i].of = GRT_OK;
        }
    }
    m.run_fails_at = 0;
    assert_int_equal(measured(), TRAIN_OK);
    m.loss = NAN;
    assert_int_equal(measured(), TRAIN_NOT_FINITE);
    m.loss = INFINITY;
    assert_int_equal(measured(), TRAIN_NOT_FINITE);
    m.loss = 1;
    m.halted = 3;
    assert_int_equal(measured(), TRAIN_NOT_FINITE);
    m.halted = 0;
    m.state = GRT_NO_MEMORY;
    assert_int_equal(measured(), TRAIN_BROKEN);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest cases[] = {
        CASE(figures),  CASE(how_long),      CASE(bursts),         CASE(medians), CASE(stalls),
        CASE(no_clock), CASE(on_the_device), CASE(places_of_rows), CASE(memory),  CASE(failures),
    };
#undef CASE
    return cmocka_run_group_tests(cases, NULL, NULL);
}
