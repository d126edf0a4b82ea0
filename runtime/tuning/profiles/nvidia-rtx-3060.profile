gpurt-profile 1
# NVIDIA GeForce RTX 3060, 12 GB; its batch of 128 x 4 with 6 workers is that of gpu-12g.
level = device
match.vendor = nvidia
match.name = RTX 3060
match.memory = 10 20

from = derived: the A100 and RTX 3060 Laptop guide: RTX 3060 Laptop, with twice its memory
train.num_envs = 256
train.num_dirs = 32
train.dir_chunk = 32
autotune = 2

from = derived: the RTX 3060 12 GB guide, which uses 7 of 12 GB
mem_fraction = 0.9
end
