# SPDX-License-Identifier: Apache-2.0
"""Makes ``gpurt/NAME`` known to Gymnasium, which calls it when it is imported itself: so this
loads no library."""

NAMES = ("cartpole", "pendulum", "standing")


def register() -> None:
    """Once is enough."""
    import gymnasium

    for name in NAMES:
        if f"gpurt/{name}" not in gymnasium.envs.registration.registry:
            gymnasium.envs.registration.register(
                f"gpurt/{name}",
                entry_point="gpurt.gym:Env",
                vector_entry_point="gpurt.gym:VectorEnv",
                kwargs={"env": name},
                disable_env_checker=True,
            )
