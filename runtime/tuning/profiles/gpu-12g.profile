gpurt-profile 1
# GPUs of 10 to 20 GiB.
level = class
match.class = gpu
match.memory = 10 20

from = derived: the RTX 3060 12 GB guide: batch 128 x 4, 6 workers
train.medium.batch = 128
train.medium.workers = 6
train.medium.accumulate = 4

from = derived: half of the 24 GB class, workers as for medium
train.small.batch = 512
train.small.workers = 6
train.large.batch = 32
train.large.workers = 6
train.large.accumulate = 16

from = derived: the RTX 3060 with 12 GB
train.num_envs = 256
train.num_dirs = 32
train.dir_chunk = 32
end
