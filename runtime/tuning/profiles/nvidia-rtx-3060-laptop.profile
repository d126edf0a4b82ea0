gpurt-profile 1
# NVIDIA GeForce RTX 3060 Laptop, 6 GB, which often drives the display as well.
level = device
match.vendor = nvidia
match.name = RTX 3060 Laptop

from = derived: the A100 and RTX 3060 Laptop guide: RTX 3060 Laptop
train.num_envs = 256
train.num_dirs = 32
train.dir_chunk = 16
mem_fraction = 0.85
autotune = 2
end
