gpurt-profile 1
# GPUs of 20 to 36 GiB.
level = class
match.class = gpu
match.memory = 20 36

from = derived: the GPU benchmark guide: 24 GB GPU
train.small.batch = 1024
train.small.workers = 6
train.medium.batch = 256
train.medium.workers = 4
train.medium.accumulate = 4

from = derived: a quarter of the 80 GB class with the same effective batch
train.large.batch = 64
train.large.workers = 4
train.large.accumulate = 16

from = derived: the RTX 3090, which has as much memory
train.num_envs = 1024
train.num_dirs = 64
train.dir_chunk = 32
end
