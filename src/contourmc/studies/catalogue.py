"""The studies that `contourmc reproduce` offers. None is imported before it runs."""

from contourmc.studies.base import Size, Study

SIMULATIONS = (
    Study(
        name="gaussian-mixture",
        summary="Figure 1: flattened energies, θ and the error of the mean on a mixture of two Gaussians.",
        title="A mixture of two Gaussians (figure 1)",
        module="contourmc.studies.gaussian_mixture.study",
        full=Size(10_000_000, 10),
        quick=Size(100_000, 4),
    ),
    Study(
        name="trajectories",
        summary="Paths of SGLD and CSGLD on the mixture: the trap, the bouncy zone, the escape (figure 2).",
        title="Sample paths on the energy landscape (figure 2)",
        module="contourmc.studies.trajectories",
        full=Size(1_000_000, 20),
        quick=Size(100_000, 4),
    ),
    Study(
        name="bizarre-peaks",
        summary="Supplement: why the flattened energy of an uneven mixture has peaks where the energy has none.",
        title="Bizarre peaks of the flattened energy (supplement)",
        module="contourmc.studies.bizarre_peaks",
        full=Size(5_000_000, 10),
        quick=Size(100_000, 4),
    ),
    Study(
        name="multimodal-2d",
        summary="Nine modes in two dimensions: SGLD, cycSGLD, reSGLD, CSGLD, at the paper's and their best settings.",
        title="Figure 3: a synthetic multi-modal distribution",
        module="contourmc.studies.multimodal",
        full=Size(200_000, 20),
        quick=Size(20_000, 2),
    ),
    Study(
        name="theory",
        summary="The convergence theorems on the mixture: θ over time; estimates against Δu, ε and energy noise.",
        title="The theorems, measured",
        module="contourmc.studies.theory.study",
        full=Size(1_000_000, 20),
        quick=Size(100_000, 4),
    ),
)

UCI = Study(
    name="uci",
    summary="Networks on four UCI data sets: SGD, SGLD, CSGLD, and the same with momentum; RMSE and calibration.",
    title="Table 1: UCI regression",
    module="contourmc.studies.uci.table",
    full=Size(5_000, 10),
    quick=Size(200, 2),
)
