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

from = derived: measured on an H200, nvidia-h200, whose processors are those of an H100
rollout.wg = 256
gemm.split.use = 1
end
