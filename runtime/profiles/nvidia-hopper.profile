gpurt-profile 1
# NVIDIA H100 and H200.
level = architecture
match.arch = hopper

from = derived: the A100 and RTX 3060 Laptop guide: A100: twice its environments on 132 faster multiprocessors
train.num_envs = 2048
train.num_dirs = 64
train.dir_chunk = 64
mem_fraction = 0.95
autotune = 3

from = measured: 2026-11-15, H200, driver 580.159.04, mlp256 at 653 M steps/s on Vulkan; 128 lanes: 483 M, 64: 251 M
rollout.wg = 256

from = derived: measured on an H200, whose processors are those of an H100
gemm.split.use = 1
end
