"""The lines of Python that make a run again, written from its settings."""

from typing import Any

from contourmc.draws.weighted import WeightedDraws

# The functions of `cm` that make what a description names by its class.
MAKERS = {
    "SGLD": "sgld",
    "SGHMC": "sghmc",
    "Langevin": "langevin",
    "Adjusted": "adjusted",
    "Contour": "contour",
    "FollowingContour": "contour",
    "ReplicaExchange": "replica_exchange",
} | {
    name: name
    for name in (
        "Partition", "Following", "Polynomial", "ExponentialDecay", "CyclicCosine", "Original", "Biased", "Scalable",
        "Visits",
    )
}  # fmt: skip
ARGUMENTS = {"following": "partition"}  # of these functions, where a field has another name
WORDS = ("scheme", "weights", "rule")  # settings that are words; in all others a word is the name of a function
MEANT = ("omega",)  # for which None is not what a function takes by itself: θ is fixed
LONGEST = 200  # numbers of a list, such as a θ that was given
GIVEN = ("steps", "chains", "seed", "burn_in", "thin")


def lines_of(samples: WeightedDraws) -> str:
    """The imports, the kernel if one was given, and the call of `sample`."""
    settings = samples.settings
    target = settings.get("target") or {}
    name = target.get("energy") if isinstance(target, dict) else None
    first = name if isinstance(name, str) and name.isidentifier() else "target"
    call = ["init=init", *(f"{each}={settings[each]:_}" for each in GIVEN if each in settings)]
    brought = f"{first}, average" if samples.average is not None else first
    lines = ["import contourmc as cm", "", f"# {brought}, and init, where its chains began, are as in your own code."]
    if "per_chain_init" in settings:
        call.append("per_chain_init=True")
    if "learning_rate" in settings:
        call += _training(settings)
    elif "automatic" not in settings:
        lines += [f"kernel = {_code('kernel', settings.get('kernel'), 0)}"]
        call.append("kernel=kernel")
    given = settings.get("automatic", {}).get("given", ())
    if "partition" in given and samples.partition is not None:
        call.append(f"partition=cm.{samples.partition}")
    if "step_size" in given and "step_size" in settings:
        call.append(f"step_size={settings['step_size']}")
    if samples.average is not None:
        call.append("average=average")
    if samples.draws is None:
        call.append("store=False")
    inside = "".join(f"    {part},\n" for part in call)
    return "\n".join([*lines, f"run = cm.sample(\n    {first},\n{inside})"])


def _training(settings: dict[str, Any]) -> list[str]:
    """The arguments of a run by a learning rate, from which its kernel follows."""
    kernel = settings["kernel"]
    given = {
        "learning_rate": settings["learning_rate"],
        "temperature": kernel["dynamics"]["temperature"],
        "partition": kernel["following"],
    }
    return [f"{name}={_code(name, value, 1)}" for name, value in given.items()]


def _code(name: str, described: Any, depth: int) -> str:
    """A setting as Python; `...` for what a description does not tell."""
    if isinstance(described, dict):
        maker = MAKERS.get(described.get("kind", ""))
        if maker is None:
            return f"...  # {' '.join(str(described.get('kind')).split())}"[:80] if depth == 0 else "..."
        parts = []
        for field, value in described.items():
            if field == "dynamics":
                inner = value if isinstance(value, list) else [value]
                parts += [_code(field, each, depth + 1) for each in inner]
            elif field != "kind" and (value is not None or field in MEANT):
                parts.append(f"{ARGUMENTS.get(field, field)}={_code(field, value, depth + 1)}")
        return _call(f"cm.{maker}", parts, depth)
    if isinstance(described, list) and len(described) <= LONGEST:
        return f"[{', '.join(_code(name, each, depth) for each in described)}]"
    if isinstance(described, str):
        if described in ("inf", "-inf", "nan"):
            return f'float("{described}")'
        return repr(described) if name in WORDS else described if described.isidentifier() else "..."
    return repr(described) if described is None or isinstance(described, (bool, int, float)) else "..."


def _call(function: str, parts: list[str], depth: int) -> str:
    """A call in one line, or, if it is long, in a line for each argument."""
    short = f"{function}({', '.join(parts)})"
    if len(short) + 4 * depth <= 90:
        return short
    inside = "".join(f"{'    ' * (depth + 1)}{part},\n" for part in parts)
    return f"{function}(\n{inside}{'    ' * depth})"
