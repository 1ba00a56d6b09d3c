"""Fitting a mixture of Gaussians to draws: one for each basin, and more where a basin is far from Gaussian."""

import numpy as np
from jaxtyping import Float, Int

from contourmc.draws.bridging.gaussians import Gaussians

ROUNDS = 10  # of expectation and maximisation
SETTLED = 1e-3  # the gain of a round in mean log density at which to stop
MOST = 64  # components,
MOST_NUMBERS = 512  # or numbers of their means: more would take long in many dimensions
FEWEST = 10.0  # independent draws of a component; one with fewer is left out


def fit_gaussians(x: Float[np.ndarray, "draws size"], labels: Int[np.ndarray, " draws"], effective: float) -> Gaussians:
    """A mixture for equally weighted draws that are worth `effective` independent ones.

    It begins with one Gaussian for each label; of very many labels, the smallest share one. Then components are divided
    in two for as long as that pays by the Bayesian information criterion: each new parameter must raise the log
    likelihood of the independent draws by ½ log n.
    """
    scale = x.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    x = x / scale  # numbers of the same size, so that inverses are accurate
    most = max(2, min(MOST, MOST_NUMBERS // x.shape[1]))
    largest = np.argsort(-np.bincount(labels), kind="stable")
    groups = np.minimum(np.argsort(largest)[labels], most - 1)  # 0 for the largest label
    members = np.stack([groups == group for group in np.unique(groups)]).astype(float)
    mixture = _refined(x, _maximised(x, members, effective), effective)
    while len(mixture.shares) < most:
        owner = np.argmax(mixture.log_terms(x), axis=0)
        parts = [_halved(x[owner == k], effective * share) for k, share in enumerate(mixture.shares)]
        if not any(parts):
            break
        mixture = _refined(x, _replaced(mixture, parts), effective)
    return Gaussians(mixture.shares, mixture.means * scale, mixture.factors * scale[:, None])


def _refined(x: np.ndarray, mixture: Gaussians, effective: float) -> Gaussians:
    """The mixture after rounds of expectation and maximisation."""
    before = -np.inf
    for _ in range(ROUNDS):
        terms = mixture.log_terms(x)
        density = np.logaddexp.reduce(terms, axis=0)
        if density.mean() - before < SETTLED:
            break
        before = density.mean()
        mixture = _maximised(x, np.exp(terms - density), effective)
    return mixture


def _maximised(x: np.ndarray, members: Float[np.ndarray, "components draws"], effective: float) -> Gaussians:
    """The Gaussians of the draws that belong to each component, to a degree between 0 and 1."""
    counts = members.mean(axis=1) * effective
    kept = counts >= min(FEWEST, counts.max())
    members, counts = members[kept], counts[kept]
    shares, means, factors = members.sum(axis=1) / members.sum(), [], []
    for member, count in zip(members, counts, strict=True):
        mean = member @ x / member.sum()
        away = (x - mean) * np.sqrt(member / member.sum())[:, None]
        means.append(mean)
        factors.append(np.linalg.cholesky(shrunken(away.T @ away, count)))
    return Gaussians(shares, np.stack(means), np.stack(factors))


def shrunken(covariance: Float[np.ndarray, "size size"], count: float) -> Float[np.ndarray, "size size"]:
    """The covariance with correlations r shrunk by 1 − λ, as far as they are noise (Schäfer & Strimmer 2005).

    λ = Σ Var(r) / Σ r² over all pairs, with Var(r) = (1 − r²)²/n for n independent draws.
    """
    deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
    correlations = covariance / np.outer(deviations, deviations)
    pairs = correlations[np.triu_indices(len(deviations), 1)]
    noise = np.sum((1 - pairs**2) ** 2) / max(count, 1.0)
    shrunk = 1 - np.clip(noise / max(np.sum(pairs**2), 1e-300), 1e-6, 1.0) if pairs.size else 0.0
    correlations = shrunk * correlations
    np.fill_diagonal(correlations, 1.0)
    return correlations * np.outer(deviations, deviations)


def _halved(x: np.ndarray, effective: float) -> Gaussians | None:
    """Two Gaussians for the draws of one component, if that pays."""
    count, size = x.shape
    parameters = 1 + size + size * (size + 1) / 2
    if min(count, effective) < 4 * parameters:
        return None
    single = _maximised(x, np.ones((1, count)), effective)
    longest = np.linalg.eigh(single.factors[0] @ single.factors[0].T)[1][:, -1]
    upper = (x - single.means[0]) @ longest > 0
    both = _refined(x, _maximised(x, np.stack([upper, ~upper]).astype(float), effective), effective)
    gain = np.mean(both.log_density(x) - single.log_density(x))
    pays = len(both.shares) == 2 and effective * gain > 0.5 * parameters * np.log(effective)
    return both if pays else None


def _replaced(mixture: Gaussians, parts: list[Gaussians | None]) -> Gaussians:
    """The mixture, with the components for which there are parts replaced by them."""
    shares, means, factors = [], [], []
    for k, part in enumerate(parts):
        row = slice(k, k + 1)
        old = Gaussians(np.ones(1), mixture.means[row], mixture.factors[row])
        new = old if part is None else part
        shares.append(mixture.shares[k] * new.shares)
        means.append(new.means)
        factors.append(new.factors)
    return Gaussians(np.concatenate(shares), np.concatenate(means), np.concatenate(factors))
