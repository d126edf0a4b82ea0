gpurt-profile 1
# NVIDIA H200; the rest is nvidia-hopper.
level = device
match.vendor = nvidia
match.name = H200

from = measured: 2026-11-15, driver 580.159.04, f32 4096^3: OpenCL 93 TFLOP/s against 40 without, Vulkan 44 against 40
gemm.split.use = 1

from = measured: 2026-11-15, driver 580.159.04, mlp256 at 653 M steps/s on Vulkan; 128 lanes: 483 M, 64: 251 M
rollout.wg = 256
end
