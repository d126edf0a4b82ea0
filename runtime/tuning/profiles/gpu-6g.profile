gpurt-profile 1
# GPUs of 4 to 10 GiB.
level = class
match.class = gpu
match.memory = 4 10

from = derived: the CVLab-Kit tuning guide: 'out of memory': batch 64 x 2, 2 workers
train.medium.batch = 64
train.medium.workers = 2
train.medium.accumulate = 2

from = derived: half of the 12 GB class, workers as for medium
train.small.batch = 256
train.small.workers = 2
train.large.batch = 16
train.large.workers = 2
train.large.accumulate = 16
end
