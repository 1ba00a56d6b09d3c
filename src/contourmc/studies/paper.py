"""The page "The paper, result by result", made from committed records alone.

Simulations and theory have their records in `results/paper`, Table 1 in `results/uci`, Table 2 in `results/cifar10`
and `results/cifar100`. Every claim and every picture is made here from these files, so that the page cannot say what
its record does not hold; a test makes the page again and compares it with the committed one.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contourmc._core.whole_file import write_whole
from contourmc.studies.base import Claim, Outcome
from contourmc.studies.catalogue import SIMULATIONS, UCI
from contourmc.studies.cifar import agreement
from contourmc.studies.report import VERDICTS, is_conclusive, read_record, row, save, table

RECORDS = {study.name: f"paper/{study.name}.json" for study in SIMULATIONS} | {UCI.name: "uci/uci.json"}
FIGURES = "paper"
TABLE_2 = "cifar"


@dataclass(frozen=True)
class Result:
    """What is said of one study.

    name: of the study.  title: of its section.  made: how its record was made.  outcome: what the record says.
    """

    name: str
    title: str
    made: str
    outcome: Outcome


def results(records: Path) -> list[Result]:
    """What all records say, in the order of the page."""
    found = []
    for study in (*SIMULATIONS, UCI):
        record = read_record(records / RECORDS[study.name])
        about = record["about"]
        if not is_conclusive(study, about):
            raise ValueError(f"{records / RECORDS[study.name]} is the record of a shorter run: run the whole study")
        made = f"`contourmc reproduce {study.name}`, {about['seconds']:,.0f} s, JAX {about['jax']}, {about['machine']}"
        found.append(Result(study.name, study.title, made, study.conclude(record)))
    made = (
        "`contourmc reproduce cifar --dataset … --algorithm … --seed …`, a run for each record, four minutes on an H200"
    )
    found.append(Result(TABLE_2, "Table 2: CIFAR-10 and CIFAR-100", made, agreement.conclude(records)))
    return found


def write_page(records: Path, page: Path) -> list[Path]:
    """Draw every figure into the folder of the records, and write the page; returns the files."""
    found = results(records)
    files = []
    for result in found:
        for name, drawing in result.outcome.figures.items():
            files += save(drawing.draw(), records / FIGURES / name, kinds=("png",), dpi=80)
    write_whole(page, page_text(found, Path(os.path.relpath(records / FIGURES, page.parent))))
    return [page, *files]


def page_text(found: list[Result], figures: Path) -> str:
    """The page as Markdown; figures: their folder as seen from the page."""
    lines = [*_INTRODUCTION, "", *_summary(found), "", "## Algorithms and equations", "", _EQUATIONS_INTRODUCTION, ""]
    lines += [
        *table(list(_equations(found)), ("in the paper", "what it says", "in the library", "compared by", "verdict")),
        "",
    ]
    for result in found:
        lines += [f"## {result.title}", "", *table(_rows(result)), ""]
        for name, drawing in result.outcome.figures.items():
            lines += [f"![{result.title}]({(figures / name).as_posix()}.png)", "", f"*{drawing.caption}*", ""]
        lines += [line for note in result.outcome.notes for line in (note, "")]
        lines += [f"Made by {result.made}.", ""]
    lines += ["## Where the results differ, and why", "", *_differences(found), ""]
    lines += ["## Not measured", "", *(f"- {one}" for one in NOT_MEASURED), ""]
    return "\n".join(lines).rstrip() + "\n"


def _rows(result: Result) -> list[tuple[str, ...]]:
    return [row(claim, conclusive=True) for claim in result.outcome.claims]


def _claims(found: list[Result]) -> Iterator[tuple[str, Claim]]:
    for result in found:
        for claim in result.outcome.claims:
            yield f"{result.name}/{claim.key}", claim


def _summary(found: list[Result]) -> list[str]:
    """How many claims agree, differ or are undecided, by section: the paper's, and ours."""
    words, rows, totals = ("agrees", "differs", "undecided"), [], [0] * 6
    for result in found:
        counts = []
        for ours in (False, True):
            judged = [one for one in result.outcome.claims if one.verdict and ("not in the paper" in one.paper) == ours]
            outcomes = [one.verdict.outcome for one in judged if one.verdict]
            counts += [outcomes.count(word) for word in words]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        rows.append((result.title, *map(str, counts)))
    rows.append(("all", *map(str, totals)))
    return table(
        rows, ("the paper's claims, and ours", "agree", "differ", "undecided", "ours: agree", "differ", "undecided")
    )


def _equations(found: list[Result]) -> Iterator[tuple[str, ...]]:
    """Every algorithm and equation; where a replay compares them, its verdict."""
    replayed = [claim for key, claim in _claims(found) if key.startswith("algorithm/replay")]
    agrees = all(claim.verdict is not None and claim.verdict.outcome == "agrees" for claim in replayed)
    replay = "agrees" if agrees else "differs"
    for where, says, here, by, verdict in EQUATIONS:
        yield where, says, here, by, replay if verdict == REPLAYED else verdict


def _differences(found: list[Result]) -> list[str]:
    """Every claim that differs, with the reason."""
    rows = []
    for key, claim in _claims(found):
        if claim.verdict is not None and claim.verdict.outcome == "differs":
            if key not in REASONS:
                raise ValueError(f"the claim {key} differs, and REASONS in studies/paper.py does not say why")
            rows.append((key, claim.paper, REASONS[key]))
    return table(rows, ("claim", "the paper", "why we get something else"))


_INTRODUCTION = [
    "# The paper, result by result",
    "",
    "contourmc implements *A Contour Stochastic Gradient Langevin Dynamics Algorithm for Simulations of Multi-modal"
    " Distributions* (Deng, Lin & Liang, NeurIPS 2020). This page goes through the paper: what it says, what we"
    " measure, and whether the two agree. Algorithm 1 has a reference implementation, exactly as printed, in"
    " `studies/algorithm_one.py`, and every simulation runs both the paper's algorithm and the library's defaults.",
    "",
    "In short:",
    "",
    "- The library computes the multipliers, weights and θ of Algorithm 1 to rounding, and differs on purpose in four"
    " things.",
    "- Algorithm 1 as printed diverges on the paper's own mixture at u₁ = 2: its unbounded last bin throws chains out."
    " With multiplier 1 in that bin the chains do what figures 1 and 2 show.",
    "- The paper's step weights θ^ζ(J) do not undo the flattening exactly. θ and weighted averages keep a bias, which"
    " depends on where the partition begins. Continuous weights do not have it.",
    "- On the nine modes of figure 3 CSGLD finds all modes at the paper's settings, but weighs them less exactly than"
    " reSGLD. At the best settings of both, the difference between them is within its error.",
    "- Table 1: our SGD and SGLD come close to the paper's. Of sixteen comparisons of a contour method with its"
    " baselines, two favour the contour by more than their 95% intervals, and neither of the two is a gain that the"
    " paper reports.",
    "- Table 2: with equal weights CSGHMC gains at a fixed step size, about half as much on CIFAR-100 as in the paper."
    " The paper's weights leave one model, whose accuracy is far below SGHMC's average. With annealing the gain is"
    " undecided.",
    "",
    f"{VERDICTS} Claims marked *not in the paper* are ours, judged in the same way.",
    "",
    "Every number comes from a record in `results/`. `contourmc reproduce --list` names the studies, `contourmc"
    " reproduce all --quick` runs a short version of each in a few minutes, and `contourmc reproduce page` makes this"
    " page and its figures from the records.",
]

_EQUATIONS_INTRODUCTION = (
    "*Replay* means that the printed formulas and the library see the same 20,000 energies, in every bin, for three"
    " schemes and three rules, in float32 and float64, and that multipliers, weights and θ agree to rounding"
    " (`tests/studies/test_algorithm_one.py`). Two deliberate differences are left out: the multiplier of `left` in"
    " the last bin, and Σθ of the high-ζ rule, which the library keeps at 1. *Tested* means that the named tests"
    " compare the library with the formula or with its consequences, and that no record is kept. [The method on a"
    " page](method.md) states the formulas."
)

REPLAYED = "replayed"
# In the paper, what it says, where it is in the library, what compares the two, and the verdict.
EQUATIONS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "equation 1",
        "π(x) ∝ exp(−U(x)/τ)",
        "`temperature=` of every dynamics",
        "`test_invariance.py`",
        "tested",
    ),
    (
        "section 2, partition",
        "m subregions by energy, of width Δu between u₁ and u_{m−1}; stochastic index J",
        "`Partition`; bin 0 is U ≤ u₁",
        "replay",
        REPLAYED,
    ),
    (
        "equation 2",
        "flattened density π/Ψ^ζ(U)",
        "`contour(dynamics, partition, zeta=…)`",
        "`test_invariance.py`",
        "tested",
    ),
    (
        "section 2.1",
        "naïve Ψ, a step function: the gradient vanishes",
        '`scheme="step"`',
        "replay, `samc`",
        REPLAYED,
    ),
    (
        "equation 5",
        "Ψ: log θ interpolated to the upper edge of each bin",
        '`scheme="left"`',
        "`test_theta.py`",
        "tested",
    ),
    (
        "equation 6; Algorithm 1, step 2",
        "multiplier 1 + ζτ (log θ(J) − log θ((J−1) ∨ 1))/Δu",
        '`scheme="left"`; 1 in the last bin',
        "replay; `algorithm` for the last bin",
        REPLAYED,
    ),
    (
        "Algorithm 1, step 1",
        "stochastic gradient and energy of a mini-batch, scaled by N/n",
        "`Posterior`",
        "`tests/targets`",
        "tested",
    ),
    (
        "Algorithm 1, step 3",
        "θ(i) += ω θ^ζ(J) (1[i=J] − θ(i))",
        '`rule="original"`, in log space; w is the weight of the point',
        'replay with `weights="step"`',
        REPLAYED,
    ),
    (
        "Algorithm 1, order",
        "move, evaluate, learn θ; weigh with the θ learnt from the point",
        "weigh, move, learn from x_k; one evaluation a step",
        "`algorithm`",
        "differs on purpose",
    ),
    (
        "section 3.2",
        "importance weight θ^ζ(J)",
        '`weights="step"`; the default is Ψ^ζ(U)',
        "replay, `partition`",
        REPLAYED,
    ),
    (
        "Algorithm 1, caption",
        "resampling by the weights",
        "`run.resample(n)`",
        "`tests/draws`",
        "tested",
    ),
    (
        "end of section 3",
        "more scalable update, gain θ(J)",
        '`rule="scalable"`',
        "replay",
        REPLAYED,
    ),
    (
        "supplement D.1",
        "alternative scheme: (log θ((J+1) ∧ m) − log θ(J))/Δu; its index is printed as J ∧ m",
        '`scheme="right"`',
        "replay, `partition`",
        REPLAYED,
    ),
    (
        "supplement D.4",
        "high-ζ rule with the bias term ω ρ 1[i ≥ J]",
        '`rule="biased"`; Σθ is 1 after every step',
        "replay; `algorithm` for Σθ",
        REPLAYED,
    ),
    (
        "section 4.1",
        "ω_k = 1/(k^0.6 + 100) and others",
        "`Polynomial`",
        "`test_schedules.py`",
        "tested",
    ),
    (
        "section 4.2",
        "CSGHMC in the form of Saatci & Wilson, momentum 0.9",
        "`csghmc`",
        "`tests/kernels`",
        "tested",
    ),
    (
        "section 4.3",
        "simulated annealing of ε_k and τ_k",
        "`ExponentialDecay`",
        "`test_cifar_algorithms.py`",
        "tested",
    ),
    (
        "section 4.1",
        "reSGLD with the variance-corrected swap",
        "`replica_exchange`",
        "`test_invariance.py`",
        "tested",
    ),
    (
        "section 4.1",
        "cycSGLD, with and without an exploration stage",
        "`sgld(CyclicCosine(…))`",
        "`multimodal-2d`",
        "tested",
    ),
    (
        "section 1",
        "SAMC, which CSGLD generalises",
        "a reference in `studies/samc.py`",
        "`samc`",
        "tested",
    ),
)

NOT_MEASURED = (
    "The terms 1/(kε) and √(Σω_k/k) of lemma 2 and theorem 2, by themselves.",
    "The lemmas of supplements B and C on smoothness, dissipativity, moments and the Poisson equation. They are"
    " assumptions and steps of the proofs. Lemma B4, that weights θ^ζ(J) and Ψ^ζ(U) agree to O(1/m), is what the"
    " biases of step weights above speak about: on the mixtures they are not small at m = 50.",
    "That the scalable update learns (∫π)^{1/ζ}: by tests of the rule alone (`tests/flattening/test_rules.py`).",
    "That a large ζ makes θ slow and ρ makes it faster in the early period (supplement D.4), beyond what Table 1 shows"
    " of θ.",
    "The cost of CSGHMC compared with SGHMC: on the page [Networks on data](networks.md).",
    "Standard deviations of Table 2 over ten runs: we have one to three seeds.",
)

# Why a claim differs, by study and key. A claim that differs without a reason here is an error.
REASONS: dict[str, str] = {
    "algorithm/last-bin": (
        "Nothing bounds the energy in the last bin, and its multiplier is that of the bin below. A few visits raise"
        " θ(m) far above θ(m − 1); the multiplier is then about 40, and the next steps overshoot further and further."
        " The paper does not mention it. Whether it happens at another u₁ than 2 was not tried."
    ),
    "gaussian-mixture/theta": (
        "θ is learnt with the gain θ^ζ(J), a step, while the chain samples π/Ψ^ζ with a continuous Ψ: the fixed point"
        " is not the true θ. With continuous weights it is."
    ),
    "gaussian-mixture/printed": "The last bin: see algorithm/last-bin.",
    "gaussian-mixture/step-weights": "Step weights do not undo the continuous Ψ. The paper gives no u₁, on which the"
    " bias depends.",
    "bizarre-peaks/same-bin": (
        "The peak lies where the interpolated bump of log θ is highest: at an edge of the bin of U(−6), or of the next"
        " bin."
    ),
    "bizarre-peaks/same-energy": (
        "The peak lies at an edge of the bin of U(−6) or of the next bin. It has the energy of the minimum only in the"
        " limit Δu → 0."
    ),
    "bizarre-peaks/always": "A peak is up to one and a half bins away from the stationary energy that causes it.",
    "bizarre-peaks/mean": (
        "At u₁ = 1.7 the minimum at −6 lies just above the lower edge of its bin. Step weights then bias θ itself, and"
        " the biased θ biases the weights further: the estimate settles near −6. With continuous weights this does not"
        " happen; what is left there is the error of a finite ε and of a θ in motion."
    ),
    "theory/theorem-2-width-p": (
        "The bias of P(x < 0) depends on where the energies of the two minima lie in their bins, and has no trend in"
        " Δu."
    ),
    "theory/theorem-2-step-size-u": (
        "Two errors of opposite sign: the bias of step weights, which does not depend on ε, and the error of a finite"
        " ε. A large ε hides the bias of the weights. The theorem bounds the sum of all errors."
    ),
    "theory/theorem-2-energy-variance-u": (
        "Two errors of opposite sign: the bias of step weights, and the error that energy noise makes. The theorem"
        " bounds the sum of all errors."
    ),
    "theory/lemma-2-step-size-u": (
        "Two errors of opposite sign: the difference between Ψ and its step function, and the error of a finite ε."
    ),
    "theory/ours-width-u": (
        "With Δu = 0.01 a step of ε = 0.02 jumps over many bins, and the error of a finite ε grows as bins get finer."
    ),
    "theory/ours-width-p": (
        "With Δu = 0.01 a step of ε = 0.02 jumps over many bins, and the error of a finite ε grows as bins get finer."
    ),
    "multimodal-2d/sgld": (
        "SGLD finds more modes here than in the paper. The paper does not say how long its burn-in is, nor what counts"
        " as a mode found; here 100 steps in a cell count."
    ),
    "multimodal-2d/resgld-corners": (
        "reSGLD weighs the corners better here than the claim suggests. The paper does not give the correction of the"
        " swaps; ours is by the variance of the noise, which is known here."
    ),
    "multimodal-2d/csgld": (
        "At ε = 0.001 and ζ = 0.75 CSGLD walks slowly over 100 bins. It finds all modes, as in the paper, but weighs"
        " them less exactly in 200,000 iterations than reSGLD, which makes twice as many evaluations. With"
        " second-order steps, larger steps and wider bins it catches up (the best settings)."
    ),
    "multimodal-2d/best-first-order": (
        "Not found out. The search chose ε = 0.015, the largest of its grid, for CSGLD, and 0.01 for reSGLD; with"
        " second-order steps the difference is gone, so that the error of the step is the likely cause."
    ),
    "partition/start-uneven": "Step weights do not undo the continuous Ψ; how much that matters depends on u₁.",
    "partition/learnt-even": "Step weights bias the average, and θ, which is learnt with them.",
    "partition/learnt-uneven": (
        "Step weights bias the average, and θ, which is learnt with them: where the minimum at −6 lies low in its bin"
        " (u₁ = 1.5 and 1.7) the estimate settles in the wrong mode."
    ),
    "partition/right-even": (
        "The scheme right has the steeper Ψ in the bin that holds the minima, and so the larger bias of step weights."
    ),
    "partition/bins": (
        "With 10 bins of 5 units the barrier is still 6 high; with 300 and more a step of ε = 0.1 jumps over many"
        " bins, and rarely visited bins get extreme multipliers."
    ),
    "partition/bins-ours": (
        "With 10 bins the barrier is still high, and with 1,000 a step of ε = 0.1 jumps over many bins. With 30 to 300"
        " bins the defaults work."
    ),
    "samc/against-nine": (
        "The Metropolis proposals of SAMC, of deviation 0.3, move much further than Langevin steps of the paper's ε ="
        " 0.001, and SAMC sees exact energies."
    ),
    "uci/yacht-csghmc": (
        "At ζ = 2.5 step 3 of Algorithm 1 hardly moves θ in the whole run, so that CSGHMC and SGHMC are the same chain"
        " up to rounding. Of sixteen such differences one may well leave its 95% interval by chance."
    ),
    "uci/yacht-csghmc-csgld": (
        "Here momentum improves every method on Yacht, and SGHMC over SGLD as in the paper. The paper's CSGHMC is the"
        " exception on this data set."
    ),
    "uci/wine-sgd-rmse": (
        "The paper gives neither the likelihood nor the initial weights. With the reading that fits its other"
        " baselines best, 5,000 epochs of SGD overfit Wine more than in the paper."
    ),
    "cifar/cifar100-csghmc-bpe": (
        "Single models of CSGHMC are no better than SGHMC's here. The paper gives neither u₁ nor when θ begins to be"
        " learnt, and its implementation may differ in more."
    ),
}
