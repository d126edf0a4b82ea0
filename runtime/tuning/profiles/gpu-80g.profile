gpurt-profile 1
# GPUs of 70 GiB and more.
level = class
match.class = gpu
match.memory = 70

from = derived: the GPU benchmark guide: 80 GB GPU
train.small.batch = 4096
train.small.workers = 12
train.medium.batch = 1024
train.medium.workers = 12
train.medium.accumulate = 1
train.large.batch = 256
train.large.workers = 8
train.large.accumulate = 4

from = derived: the A100 and RTX 3060 Laptop guide: A100
train.num_envs = 1024
train.num_dirs = 64
train.dir_chunk = 64
end
