// SPDX-License-Identifier: Apache-2.0
// Every kernel of gpurt, one row each: X(readings, folder, name) is the file shaders/folder/name.k,
// and the kernel inside it has the same name. The build reads this list to make SPIR-V and OpenCL
// text; the C compiler reads it to make the table of kernels. A new kernel is one file and one row.
//
// readings: `all` for a kernel in the dialect; `vulkan` for one in plain GLSL, with cooperative
// matrices and the like; `opencl` for one in OpenCL C, in the file cl/folder/name.k, with inline
// PTX and the like; `ptx` for one like `opencl` that Vulkan devices of NVIDIA can run too
// (runtime/device/import.c), in no more shared memory than they have; `bfloat` for one like
// `vulkan` whose halves become bfloats (bfloat.cmake). Those describe themselves with the dialect's
// lists too, see DESCRIBE.
//
// An environment is a file shaders/env/name.k and a row X(kind, name) of GRT_ENVS: its state is in
// `registers` (env/state.k) or in `memory` (env/world.k). Each row X(readings, folder, world, user)
// of GRT_WORLD_KERNELS makes of every environment the kernel name_user, from the file
// folder/user.k, which is read behind the environment; the rows of GRT_ENV_KERNELS are made of
// those in registers, the rows of GRT_MEMORY_KERNELS of those in memory. `wide` is the reading of
// cl/cpu/lib/wide.k, in OpenCL C. GRT_OF_ENV(X, kind, name) are all kernels of one.
#define GRT_ENVS(X)                                                                                \
    X(registers, cartpole)                                                                         \
    X(registers, pendulum)                                                                         \
    X(registers, standing)                                                                         \
    X(memory, uav)                                                                                 \
    X(memory, uav_flight)

#define GRT_ENV_KERNELS(X, env)                                                                    \
    X(all, rl, env, rollout)                                                                       \
    X(all, rl, env, trace)                                                                         \
    X(wide, cpu, env, rollout_wide)

#define GRT_WORLD_KERNELS(X, world)                                                                \
    X(all, rl, world, worlds_reset)                                                                \
    X(all, rl, world, worlds_observe)                                                              \
    X(all, rl, world, worlds_step)

#define GRT_MEMORY_KERNELS(X, memory) X(all, rl, memory, worlds_draw)

#define GRT_OF_ENV(X, kind, name) GRT_OF_ENV_##kind(X, name)
#define GRT_OF_ENV_registers(X, name) GRT_ENV_KERNELS(X, name) GRT_WORLD_KERNELS(X, name)
#define GRT_OF_ENV_memory(X, name) GRT_WORLD_KERNELS(X, name) GRT_MEMORY_KERNELS(X, name)

#define GRT_KERNELS(X)                                                                             \
    X(all, core, fill)                                                                             \
    X(all, core, fill16)                                                                           \
    X(all, core, copy)                                                                             \
    X(all, core, copy2)                                                                            \
    X(all, core, copy4)                                                                            \
    X(all, core, widen)                                                                            \
    X(all, core, narrow)                                                                           \
    X(all, core, recode)                                                                           \
    X(all, core, map)                                                                              \
    X(all, core, reduce)                                                                           \
    X(all, core, argmax)                                                                           \
    X(all, core, transpose)                                                                        \
    X(all, core, transpose16)                                                                      \
    X(all, core, random)                                                                           \
    X(all, core, tick)                                                                             \
    X(all, core, peak)                                                                             \
    X(all, core, math_probe)                                                                       \
    X(all, nn, softmax)                                                                            \
    X(all, optim, lars_lengths)                                                                    \
    X(all, norm, layer_norm)                                                                       \
    X(all, nn, colsum)                                                                             \
    X(all, nn, colsum_pair)                                                                        \
    X(all, mlp, mlp_reduce)                                                                        \
    X(all, mlp, mlp_pass_f32)                                                                      \
    X(all, mlp, mlp_grads_f32)                                                                     \
    X(all, nn, colsum16)                                                                           \
    X(all, loss, loss_f32)                                                                         \
    X(all, loss, loss_16)                                                                          \
    X(all, loss, loss_rows_f32)                                                                    \
    X(all, loss, loss_rows_16)                                                                     \
    X(all, loss, cross_entropy_f32)                                                                \
    X(all, loss, cross_entropy_16)                                                                 \
    X(all, loss, nt_xent_unit)                                                                     \
    X(all, loss, nt_xent)                                                                          \
    X(all, loss, nt_xent_grad_f32)                                                                 \
    X(all, loss, nt_xent_grad_16)                                                                  \
    X(all, loss, loss_split)                                                                       \
    X(all, loss, weighted_mean)                                                                    \
    X(all, nn, columns)                                                                            \
    X(all, nn, columns16)                                                                          \
    X(all, optim, grad_norm)                                                                       \
    X(all, optim, lars_lengths)                                                                    \
    X(all, loss, tally)                                                                            \
    X(all, optim, optim)                                                                           \
    X(all, optim, snapshot)                                                                        \
    X(all, nn, gather)                                                                             \
    X(all, nn, draw)                                                                               \
    X(all, norm, block_f32)                                                                        \
    X(all, norm, block_16)                                                                         \
    X(all, norm, block_grad_f32)                                                                   \
    X(all, norm, block_grad_16)                                                                    \
    X(all, norm, block_sums_f32)                                                                   \
    X(all, norm, block_sums_16)                                                                    \
    X(all, nn, pool_f32)                                                                           \
    X(all, nn, pool_16)                                                                            \
    X(all, nn, pool_grad_f32)                                                                      \
    X(all, nn, pool_grad_16)                                                                       \
    X(all, nn, dropout_f32)                                                                        \
    X(all, nn, dropout_16)                                                                         \
    X(all, norm, add_to_f32)                                                                       \
    X(all, norm, add_to_16)                                                                        \
    X(all, norm, block8_16)                                                                        \
    X(all, norm, block_grad8_16)                                                                   \
    X(all, norm, block_sums8_16)                                                                   \
    X(all, norm, add_to8_16)                                                                       \
    X(all, image, batch_sums8_16)                                                                  \
    X(all, nn, geglu_f32)                                                                          \
    X(all, nn, geglu_16)                                                                           \
    X(all, image, patches_f32)                                                                     \
    X(all, image, patches_16)                                                                      \
    X(all, image, patches_grad_f32)                                                                \
    X(all, image, patches_grad_16)                                                                 \
    X(all, image, window_f32)                                                                      \
    X(all, image, window_16)                                                                       \
    X(all, image, window_grad_f32)                                                                 \
    X(all, image, window_grad_16)                                                                  \
    X(all, image, patches8_16)                                                                     \
    X(all, image, refit_16)                                                                        \
    X(all, image, refit_f32)                                                                       \
    X(all, image, fold_16)                                                                         \
    X(all, image, fold_weights_16)                                                                 \
    X(all, image, fold_weights_f32)                                                                \
    X(all, image, window8_16)                                                                      \
    X(all, image, window_grad8_16)                                                                 \
    X(all, image, batch_sums_f32)                                                                  \
    X(all, image, batch_sums_16)                                                                   \
    X(all, image, image_draw)                                                                      \
    X(all, image, image_take_f32)                                                                  \
    X(all, image, image_take_16)                                                                   \
    X(all, image, image_draw_colour)                                                               \
    X(all, image, image_view_f32)                                                                  \
    X(all, image, image_view_16)                                                                   \
    X(all, image, image_blur_f32)                                                                  \
    X(all, image, image_blur_16)                                                                   \
    X(all, image, image_mix_draw)                                                                  \
    X(all, image, image_mix_f32)                                                                   \
    X(all, image, image_mix_16)                                                                    \
    X(all, image, batch_stats)                                                                     \
    X(all, image, conv_tiled_f32)                                                                  \
    X(all, image, conv_tiled_16)                                                                   \
    X(all, image, conv_tiled_16f32)                                                                \
    X(all, image, conv_sum)                                                                        \
    X(all, env, standing_probe)                                                                    \
    X(all, rl, worlds_totals)                                                                      \
    X(all, rl, worlds_random)                                                                      \
    X(all, es, es_perturb)                                                                         \
    X(all, es, es_reduce)                                                                          \
    X(all, es, es_rank)                                                                            \
    X(all, es, es_sum)                                                                             \
    X(all, es, es_step)                                                                            \
    X(all, ppo, ppo_act)                                                                           \
    X(all, ppo, ppo_normalize)                                                                     \
    X(all, ppo, ppo_moments)                                                                       \
    X(all, ppo, ppo_moment_sums)                                                                   \
    X(all, ppo, ppo_tally)                                                                         \
    X(all, ppo, ppo_list)                                                                          \
    X(all, ppo, ppo_order)                                                                         \
    X(all, ppo, ppo_inputs)                                                                        \
    X(all, ppo, ppo_values)                                                                        \
    X(all, ppo, ppo_gae)                                                                           \
    X(all, ppo, ppo_records)                                                                       \
    X(all, ppo, ppo_sums)                                                                          \
    X(all, ppo, ppo_norm)                                                                          \
    X(all, ppo, ppo_loss_f32)                                                                      \
    X(all, ppo, ppo_loss_16)                                                                       \
    X(all, gemm, gemm_plain_f32)                                                                   \
    X(all, gemm, gemm_plain_16)                                                                    \
    X(all, gemm, gemm_plain_16f32)                                                                 \
    X(all, gemm, gemm_few_rows_f32)                                                                \
    X(all, gemm, gemm_sum_f32)                                                                     \
    X(all, gemm, gemm_sum_16)                                                                      \
    X(all, gemm, gemm_pad)                                                                         \
    X(all, gemm, gemm_tiled_f32)                                                                   \
    X(all, gemm, gemm_tiled_16)                                                                    \
    X(all, gemm, gemm_tiled_16f32)                                                                 \
    X(all, gemm, gemm_tiny_f32)                                                                    \
    X(all, gemm, gemm_tiny_16)                                                                     \
    X(all, gemm, gemm_tiny_16f32)                                                                  \
    X(vulkan, gemm, gemm_coop_f16_16)                                                              \
    X(vulkan, gemm, gemm_coop_f16_16f32)                                                           \
    X(vulkan, gemm, gemm_coop_h_16)                                                                \
    X(bfloat, gemm, gemm_coop_bf16_16)                                                             \
    X(bfloat, gemm, gemm_coop_bf16_16f32)                                                          \
    X(vulkan, gemm, gemm_stream_f16_16)                                                            \
    X(vulkan, gemm, gemm_stream_f16_16f32)                                                         \
    X(bfloat, gemm, gemm_stream_bf16_16)                                                           \
    X(bfloat, gemm, gemm_stream_bf16_16f32)                                                        \
    X(vulkan, mlp, mlp_pass_coop)                                                                  \
    X(vulkan, mlp, mlp_pass_chain)                                                                 \
    X(vulkan, mlp, mlp_grads_coop)                                                                 \
    X(bfloat, gemm, gemm_split_f32)                                                                \
    X(bfloat, gemm, gemm_split_direct_f32)                                                         \
    X(vulkan, gemm, peak_coop_f16)                                                                 \
    X(bfloat, gemm, peak_coop_bf16)                                                                \
    X(all, gemm, gemm_lanes_f32)                                                                   \
    X(all, gemm, gemm_lanes_16)                                                                    \
    X(all, gemm, gemm_lanes_16f32)                                                                 \
    X(opencl, cpu, gemm_panel_f32)                                                                 \
    X(opencl, cpu, gemm_panel_16)                                                                  \
    X(opencl, cpu, gemm_panel_16f32)                                                               \
    X(opencl, cpu, peak_panel)                                                                     \
    X(opencl, cpu, conv_pack_f32)                                                                  \
    X(opencl, cpu, conv_panel_f32)                                                                 \
    X(opencl, cpu, conv_panel_weight_f32)                                                          \
    X(opencl, intel, probe_xmx8)                                                                   \
    X(opencl, intel, probe_xmx16)                                                                  \
    X(opencl, intel, gemm_xmx8_16)                                                                 \
    X(opencl, intel, gemm_xmx16_16)                                                                \
    X(opencl, intel, gemm_xmx8_16f32)                                                              \
    X(opencl, intel, gemm_xmx16_16f32)                                                             \
    X(opencl, nvidia, probe_mma)                                                                   \
    X(ptx, nvidia, gemm_mma_16)                                                                    \
    X(ptx, nvidia, gemm_mma_16f32)                                                                 \
    X(ptx, nvidia, mlp_pass_mma)                                                                   \
    X(opencl, nvidia, mlp_grads_mma)                                                               \
    X(ptx, nvidia, mlp_step_mma)                                                                   \
    X(ptx, nvidia, mlp_pass_wgmma)                                                                 \
    X(ptx, nvidia, mlp_grads_wgmma)                                                                \
    X(ptx, nvidia, mlp_rows_forward)                                                               \
    X(ptx, nvidia, mlp_rows_backward)                                                              \
    X(ptx, nvidia, ppo_learn)                                                                      \
    X(opencl, nvidia, peak_mma)                                                                    \
    X(opencl, nvidia, gemm_split_mma_f32)                                                          \
    X(opencl, nvidia, probe_wgmma)                                                                 \
    X(ptx, nvidia, gemm_split_wgmma_f32)                                                           \
    X(ptx, nvidia, peak_wgmma)                                                                     \
    X(ptx, nvidia, gemm_wgmma_16)                                                                  \
    X(ptx, nvidia, gemm_wgmma_16f32)                                                               \
    X(ptx, nvidia, probe_wgmma_48k)                                                                \
    X(ptx, nvidia, gemm_wgmma_48k_16)                                                              \
    X(ptx, nvidia, gemm_wgmma_48k_16f32)                                                           \
    X(ptx, nvidia, gemm_wgmma_b_shared_16)                                                         \
    X(ptx, nvidia, gemm_wgmma_b_shared_16f32)                                                      \
    X(ptx, nvidia, gemm_wgmma_b_registers_16)                                                      \
    X(ptx, nvidia, gemm_wgmma_b_registers_16f32)                                                   \
    X(ptx, nvidia, block8_ptx_16)                                                                  \
    X(ptx, nvidia, block_grad8_ptx_16)                                                             \
    X(ptx, nvidia, block_sums8_ptx_16)                                                             \
    X(ptx, nvidia, add_to8_ptx_16)                                                                 \
    X(ptx, nvidia, batch_sums8_ptx_16)                                                             \
    X(ptx, nvidia, window8_ptx_16)                                                                 \
    X(ptx, nvidia, window_grad8_ptx_16)                                                            \
    X(ptx, nvidia, conv_wgmma_16)                                                                  \
    X(ptx, nvidia, conv_wgmma_w_registers_16)                                                      \
    X(ptx, nvidia, conv_wgmma_x_registers_16)                                                      \
    X(ptx, nvidia, conv_wgmma_columns_16f32)                                                       \
    X(ptx, nvidia, conv_wgmma_weight_16f32)
