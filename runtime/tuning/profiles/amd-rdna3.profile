gpurt-profile 1
# AMD RDNA3: Radeon RX 7000, PRO W7000.
level = architecture
match.arch = rdna3

# CLBlast is column-major, so its M is our N: MWG 64, NWG 32, KWG 32, 16 x 8 lanes.
from = derived: CLBlast's tuning of the RX 7900 XTX
gemm.tiled.medium = 32 64 32 4 4
end
