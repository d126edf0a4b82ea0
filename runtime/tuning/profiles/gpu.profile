gpurt-profile 1
# Any GPU: what the guides say of the smallest they name. Kernel settings are the defaults of
# runtime/gpurt/profile.h.
level = class
match.class = gpu

from = derived: the A100 and RTX 3060 Laptop guide: RTX 3060 Laptop
train.num_envs = 256
train.num_dirs = 32
train.dir_chunk = 16
end
