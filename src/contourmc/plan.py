"""The sizes and choices that the compiled loop of a run is made for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """What the program is compiled for.

    block: steps whose noise is drawn at once.
    thin: steps for each kept draw.
    stretch: steps between two marks of the path, a multiple of the block; no segment goes beyond one.
    rows: room for kept draws in a segment.
    fuse: whether the steps of a block are one kernel, a chain at a time; else chains are a vector.
    unroll: whether the program makes a single step, and its caller the loop; else the loop is compiled.
    large: whether the position is so large that only kept draws are written or summed; else every step is.
    store: whether the positions of kept draws are stored.
    own: whether each chain has a target and an average of its own, stacked along a leading axis.
    """

    block: int
    thin: int
    stretch: int
    rows: int
    fuse: bool
    unroll: bool
    large: bool
    store: bool
    own: bool

    @property
    def chain_axis(self) -> int | None:
        """The axis of the target and the average along which chains lie, as `jax.vmap` takes it."""
        return 0 if self.own else None

    @property
    def block_rows(self) -> int:
        """The most draws that a block can touch."""
        return (self.block - 1) // self.thin + 2

    @property
    def segment_steps(self) -> int:
        """The most steps whose draws fit into a segment."""
        return 1 if self.unroll else max(self.block, (self.rows - self.block_rows) * self.thin)
