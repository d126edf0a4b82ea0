gpurt-profile 1
# AMD RDNA2: Radeon RX 6000, PRO W6000.
level = architecture
match.arch = rdna2

from = derived: CLBlast's tuning of the RX 7900 XTX, the next of its kind
gemm.tiled.medium = 32 64 32 4 4
end
