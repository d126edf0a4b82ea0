// SPDX-License-Identifier: Apache-2.0
// One update of PPO beside PyTorch's, from the same rows and parameters (tests/peers/ppo_torch.py).
#include "kits/ppo_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "golden/ppo_torch.h"
#include "rl/ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

static float wave(size_t i, double rate, double shift) {
    return (float)sin((double)i * rate + shift);
}

static void write(const struct grt_tensor *t, uint64_t at, const void *data, size_t bytes) {
    assert_true(grt_buf_write(t->range.buf, t->range.offset + at, data, bytes));
}

// An action that the mask allows: of those that it has, the one numbered `wanted`.
static uint32_t allowed_action(uint32_t mask, uint32_t wanted) {
    uint32_t j = 0;
    for (uint32_t seen = mask & 1; seen <= wanted;) {
        seen += mask >> ++j & 1;
    }
    return j;
}

// Rows as tests/peers/ppo_torch.py has them.
static void write_rows(const struct grt_ppo *ppo) {
    const struct ppo_actors *a = &ppo->learning;
    uint32_t words[PPO_SECTIONS], agents = ppo->sizes->agents;
    float obs[64], whole[128];
    double sum = 0, squares = 0;
    uint32_t count = 0, *list = test_alloc(ppo->count * sizeof *list);
    assert_true(ppo->sizes->obs <= 64 && ppo->sizes->global <= 128);
    for (size_t i = 0; i < ppo->count; i++) {
        size_t t = i / a->rows, row = i % a->rows;
        uint32_t mask = 1;
        for (uint32_t j = 1; j < 9; j++) {
            mask |= (uint32_t)((i * 7 + j * 5) % 4 != 1) << j;
        }
        uint32_t choices = 0;
        for (uint32_t j = 0; j < 9; j++) {
            choices += mask >> j & 1;
        }
        bool counts = i % 7 != 3;
        float advantage = wave(i, 0.47, 5);
        words[PPO_ACTION] = allowed_action(mask, (uint32_t)(i % choices));
        words[PPO_MASK] = mask;
        words[PPO_LOGP] = test_as_u32(-1.6f + 0.3f * wave(i, 0.71, 2));
        words[PPO_VALUE] = test_as_u32(0.4f * wave(i, 0.29, 3));
        words[PPO_REWARD] = 0;
        words[PPO_END] = counts ? 0 : GRT_ROW_IDLE;
        words[PPO_ADVANTAGE] = test_as_u32(advantage);
        words[PPO_RETURN] = test_as_u32(wave(i, 0.83, 4));
        for (uint32_t k = 0; k < PPO_SECTIONS; k++) {
            write(a->traj, (k * grt_ppo_section(a) + t * a->stride + row) * 4, &words[k], 4);
        }
        for (uint32_t k = 0; k < ppo->sizes->obs; k++) {
            obs[k] = wave(i * ppo->sizes->obs + k, 0.37, 0);
        }
        write(a->obs, (t * a->obs_stride + row * a->obs_words) * 4, obs, ppo->sizes->obs * 4);
        for (uint32_t k = 0; k < ppo->sizes->global; k++) {
            whole[k] = wave(i / agents * ppo->sizes->global + k, 0.53, 1);
        }
        write(a->whole, (t * a->whole_stride + row / agents * a->whole_words) * 4, whole,
              ppo->sizes->global * 4);
        if (counts) {
            sum += (double)advantage;
            squares += (double)advantage * (double)advantage;
            list[count++] = (uint32_t)i;
        } else {
            list[ppo->count - 1 - (i - count)] = (uint32_t)i;
        }
    }
    double mean = sum / count, deviation = sqrt(squares / count - mean * mean) + 1e-8;
    const uint32_t norms[PPO_NORMS] = {[PPO_MEAN] = test_as_u32((float)mean),
                                       [PPO_INVERSE] = test_as_u32((float)(1 / deviation)),
                                       [PPO_COUNT] = count};
    write(ppo->norms, 0, norms, sizeof norms);
    write(ppo->list, 0, list, ppo->count * sizeof *list);
    free(list);
}

static void one_update_is_that_of_pytorch(void **state) {
    (void)state;
    struct ppo_maker m = ppo_uavs();
    m.desc.value_clip = 0.3;
    m.desc.optim.lr = 1e-3;
    m.desc.epochs = 1;
    struct ppo_made made = ppo_make(&m);
    struct grt_ppo *ppo = made.ppo;
    const char *const parts[] = {"weight", "bias"}, *const nets[] = {"actor", "critic"};
    const struct grt_param *order[12];
    for (int k = 0; k < 12; k++) {
        char name[64];
        float numbers[1024];
        snprintf(name, sizeof name, "%s.layers.%d.%s", nets[k / 6], k % 6 / 2, parts[k % 2]);
        order[k] = ppo_param(ppo, name);
        assert_true(order[k]->count <= 1024);
        for (uint64_t i = 0; i < order[k]->count; i++) {
            numbers[i] = 0.4f * wave(i, 0.91, k);
        }
        write(&order[k]->master, 0, numbers, order[k]->count * 4);
    }
    write_rows(ppo);
    ppo_run_epoch(ppo, 0);
    double *got = ppo_widened(ppo->params.grad), *after = ppo_widened(ppo->params.master);
    struct grt_learn_state learnt;
    assert_true(
        grt_buf_read(ppo->state->range.buf, ppo->state->range.offset, &learnt, sizeof learnt));
    ppo_near("loss", 0, (double)learnt.loss, TORCH_PPO_LOSS, 1e-5);
    ppo_near("norm", 0, (double)learnt.grad_norm, TORCH_PPO_NORM, 1e-5 * TORCH_PPO_NORM);
    size_t at = 0;
    for (int k = 0; k < 12; k++) {
        for (uint64_t i = 0; i < order[k]->count; i++, at++) {
            ppo_near(order[k]->name, i, got[order[k]->first + i], torch_ppo_gradients[at], 1e-5);
            ppo_near("after", at, after[order[k]->first + i], torch_ppo_after[at], 1e-5);
        }
    }
    assert_int_equal(at, sizeof torch_ppo_after / sizeof torch_ppo_after[0]);
    // The case has what it is to test.
    assert_true(TORCH_PPO_CLIPPED > 0.1 && TORCH_PPO_CLIPPED < 0.9 && TORCH_PPO_NORM > 0.5);
    free(got);
    free(after);
    ppo_end(&made);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(one_update_is_that_of_pytorch),
};
TEST_SUITE(ppotorch, true, cases);
