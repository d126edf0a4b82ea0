// SPDX-License-Identifier: Apache-2.0
// What is being recorded of a learner, and the samples that it is fed with.
#ifndef GPURT_RECORDING_H
#define GPURT_RECORDING_H

#include "learner_parts.h"

// One micro-batch of a recording.
struct recording {
    struct grt_learner *l;
    struct grt_graph *graph;
    const struct grt_step_desc *desc;
    uint64_t rows;   // of the step
    uint64_t each;   // of all steps but the one of desc->rest
    uint64_t micro;  // its number within the step
    uint64_t first;  // row of the step that it begins with
    uint64_t step;
    bool evaluates;
    bool again;                          // the micro-batch goes forward a second time
    uint64_t judged_to;                  // steps of an evaluation that are recorded
    struct grt_range out;                // of a prediction
    struct grt_tensor x, target, y, dy;  // cut to its rows; x in f32
    uint32_t order_first;                // of rows by their numbers: place of the first
    uint32_t order_ahead;                // rows of the next step, whose numbers are drawn too
    struct grt_range norms;              // of the gradients, where the model's op has them
    uint32_t norm_count;
    void (*saw)(void *context, struct grt_graph *graph, const struct grt_tensor *tensor,
                const char *name);
    void *context;
};

// Begins a phase where phases are asked for, else a section.
void recording_phase(const struct recording *f, const char *name);
// Of the graph, the one of desc->rest included.
uint64_t recording_steps(const struct recording *f);
// Brings the samples of a micro-batch to where the model reads them; false when there is none left.
bool recording_feed(struct recording *f, bool with_target);
// The network's rows of so many samples.
void recording_see(struct recording *f, uint64_t samples);
// x as the module takes it: in its type, and as often as it sees each sample.
struct grt_tensor recording_input(const struct recording *f);

// What is recorded, a step of it at a time.
void recording_step(struct recording *f);
void recording_gradients(struct recording *f);
void recording_update(struct recording *f);
// Of a loss over the samples of several learners: forward, and what is behind that of all.
void recording_embedding(struct recording *f);
void recording_meeting(struct recording *f);
void recording_evaluation(struct recording *f);
void recording_prediction(struct recording *f);
// Bytes of what the model gives for a sample.
uint64_t recording_y_bytes(const struct grt_learner *l);

#endif
