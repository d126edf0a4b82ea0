gpurt-profile 1
# GPUs of 36 to 70 GiB.
level = class
match.class = gpu
match.memory = 36 70

from = derived: the GPU benchmark guide: 40 GB GPU
train.small.batch = 2048
train.small.workers = 8
train.medium.batch = 512
train.medium.workers = 8
train.medium.accumulate = 2

from = derived: half of the 80 GB class with the same effective batch
train.large.batch = 128
train.large.workers = 8
train.large.accumulate = 8

from = derived: the A100 and RTX 3060 Laptop guide: A100
train.num_envs = 1024
train.num_dirs = 64
train.dir_chunk = 64
end
