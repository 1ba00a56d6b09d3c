"""`python -m benchmarks.trust [--out docs/trust.md]`: every case, what it said, and whether it was trusted."""

import argparse
from pathlib import Path

from rich.console import Console
from rich.progress import track

from benchmarks.trust.case import Outcome, judge
from benchmarks.trust.cases import all_cases

_INTRODUCTION = """# Can the diagnosis be trusted?

`run.diagnose()` says whether anything is wrong with a run. The table, made by `python -m benchmarks.trust`, asks how
often it is right: runs as one would make them, and runs that are wrong on purpose, each beside the truth. An answer
is off if it differs from the truth by more than five of its standard errors, or, for masses of modes, by 0.05.
A mode that no chain ever visited cannot be seen by any diagnosis, and every one that finds nothing wrong says so.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the page here; by default it is only printed")
    parser.add_argument("--only", default="", help="run the cases whose names hold this text")
    chosen = parser.parse_args()
    cases = [case for case in all_cases() if chosen.only in case.name]
    outcomes = [judge(case) for case in track(cases, description="cases", console=Console(stderr=True))]
    page = "\n".join([_INTRODUCTION, *_verdict(outcomes), "", *_table(outcomes)]) + "\n"
    if chosen.out is not None:
        chosen.out.write_text(page, encoding="utf-8")
    print(page)


def _verdict(outcomes: list[Outcome]) -> list[str]:
    fooled = [one.case.name for one in outcomes if one.off and one.trusted and one.case.kind != "unseen"]
    right = [one for one in outcomes if one.case.kind == "right"]
    unseen = [one for one in outcomes if one.case.kind == "unseen"]
    return [
        f"- {len(outcomes)} cases, {sum(one.case.kind == 'wrong' for one in outcomes)} of them wrong on purpose.",
        f"- Off and trusted, though every mode was visited: {len(fooled)}{': ' if fooled else ''}{', '.join(fooled)}.",
        f"- Of {len(right)} right runs {sum(one.trusted for one in right)} are trusted;"
        f" {sum(one.off for one in right)} are off.",
        f"- Of {len(unseen)} runs that never saw a mode {sum(one.trusted for one in unseen)} are trusted, and say that"
        " a mode that was never visited cannot be seen.",
    ]


def _table(outcomes: list[Outcome]) -> list[str]:
    lines = [
        "| case | made | quantity | truth | answer | off | trusted | worst finding |",
        "|---|---|---|--:|--:|---|---|---|",
    ]
    for one in outcomes:
        case = one.case
        answer = "refused" if one.refusal else f"{one.answer:.4g}" + (f" ± {one.error:.2g}" if one.error > 0 else "")
        finding = (one.refusal or one.reason).replace("|", "/").replace("\n", " ")
        finding = finding if len(finding) < 120 else finding[:117] + "…"
        truth = "none" if case.truth != case.truth else f"{case.truth:.4g}"
        cells = (
            case.name,
            case.kind,
            case.quantity,
            truth,
            answer,
            "yes" if one.off else "",
            "yes" if one.trusted else "no",
        )
        lines.append(f"| {' | '.join(cells)} | {finding} |")
    return lines


if __name__ == "__main__":
    main()
