"""The studies that `contourmc reproduce` offers. None is imported before it runs."""

from contourmc.studies.base import Size, Study

SIMULATIONS = (
    Study(
        name="algorithm",
        summary="Algorithm 1 as printed and the library's kernel: the same numbers, and what each difference does.",
        title="Algorithm 1, and the four differences",
        module="contourmc.studies.algorithm",
        full=Size(1_000_000, 20),
        quick=Size(100_000, 4),
    ),
    Study(
        name="gaussian-mixture",
        summary="Figure 1: flattened energies, θ and the error of the mean on a mixture of two Gaussians.",
        title="Figure 1: a mixture of two Gaussians",
        module="contourmc.studies.gaussian_mixture",
        full=Size(10_000_000, 10),
        quick=Size(100_000, 4),
    ),
    Study(
        name="trajectories",
        summary="Figure 2: paths of SGLD and CSGLD on the mixture: the trap, the bouncy zone, the escape.",
        title="Figure 2: sample paths on the energy landscape",
        module="contourmc.studies.trajectories",
        full=Size(1_000_000, 20),
        quick=Size(100_000, 4),
    ),
    Study(
        name="multimodal-2d",
        summary="Figure 3: nine modes in two dimensions by SGLD, cycSGLD, reSGLD and CSGLD, and their best settings.",
        title="Figure 3: a synthetic multi-modal distribution",
        module="contourmc.studies.multimodal",
        full=Size(200_000, 100),
        quick=Size(20_000, 4),
    ),
    Study(
        name="theory",
        summary="The lemmas and theorems on the mixture: θ over time; averages against Δu, ε and energy noise.",
        title="The lemmas and theorems",
        module="contourmc.studies.theory",
        full=Size(1_000_000, 20),
        quick=Size(100_000, 4),
    ),
    Study(
        name="bizarre-peaks",
        summary="Supplement: why the flattened energy of an uneven mixture has peaks where the energy has none.",
        title="Supplement: bizarre peaks",
        module="contourmc.studies.bizarre_peaks",
        full=Size(5_000_000, 10),
        quick=Size(100_000, 4),
    ),
    Study(
        name="partition",
        summary="Where the energy partition begins, and how many bins it has: what the paper leaves to the user.",
        title="The energy partition",
        module="contourmc.studies.partition",
        full=Size(500_000, 10),
        quick=Size(40_000, 4),
    ),
    Study(
        name="samc",
        summary="SAMC, which the paper generalises, and naïve contour SGLD on both mixtures and the nine modes.",
        title="SAMC and naïve contour SGLD",
        module="contourmc.studies.samc",
        full=Size(1_000_000, 10),
        quick=Size(40_000, 4),
    ),
)

UCI = Study(
    name="uci",
    summary="Table 1: networks on four UCI data sets by SGD, SGLD, CSGLD, and the same with momentum.",
    title="Table 1: UCI regression",
    module="contourmc.studies.uci.table",
    full=Size(5_000, 10),
    quick=Size(200, 2),
)
