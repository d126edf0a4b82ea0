gpurt-profile 1
# NVIDIA H200; the rest is nvidia-hopper.
level = device
match.vendor = nvidia
match.name = H200

from = measured: 2026-11-15, driver 580.159.04, f32 4096^3: OpenCL 91 TFLOP/s against 40 without, Vulkan 92 against 40
gemm.split.use = 1

from = measured: 2026-11-15, driver 580.159.04, Vulkan: linear 2024 M steps/s, mlp256 718 M; 128 lanes: 1955 M, 539 M
rollout.wg = 256
end
