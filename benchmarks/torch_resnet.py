"""ResNet-20 by PyTorch: compiled, channels last, bfloat16, with the data and the augmentation on the device."""

from collections.abc import Callable
from typing import Any

import numpy as np

from contourmc.studies.cifar.augmentation import ERASED_AREA, ERASED_RATIO, PADDING
from contourmc.studies.cifar.sets import CIFAR10


def resnet20(classes: int) -> Any:
    """The network, with 0.27 million parameters."""
    from torch import nn  # pyright: ignore[reportMissingImports]
    from torch.nn import functional  # pyright: ignore[reportMissingImports]

    class Block(nn.Module):
        def __init__(self, before: int, channels: int, stride: int):
            super().__init__()
            self.first = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))
            self.stride, self.added = stride, channels - before

        def forward(self, x: Any) -> Any:
            residual = functional.relu(self.norms[0](self.first(x)))
            residual = self.norms[1](self.second(residual))
            if self.stride > 1:
                half = self.added // 2
                x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, half, self.added - half))
            return functional.relu(x + residual)

    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    before = 16
    for stage in range(3):
        for block in range(3):
            layers.append(Block(before, 16 * 2**stage, 2 if stage > 0 and block == 0 else 1))
            before = 16 * 2**stage
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)]
    return nn.Sequential(*layers)


def torch_epoch(images: np.ndarray, labels: np.ndarray, batch_size: int, *, compiled: bool) -> Callable[[], None]:
    """A function that trains for an epoch, and waits for the device."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch.nn import functional  # pyright: ignore[reportMissingImports]

    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True

    model: Any = resnet20(10)
    model = model.to(device, memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, fused=True)
    data = torch.from_numpy(images).to(device).permute(0, 3, 1, 2)
    targets = torch.from_numpy(labels).long().to(device)
    mean, deviation = (
        torch.tensor(values, device=device).view(1, 3, 1, 1) for values in (CIFAR10.mean, CIFAR10.deviation)
    )
    place = torch.arange(32, device=device)

    def augment(x: Any) -> Any:
        count = x.shape[0]
        flipped = torch.rand(count, 1, device=device) < 0.5
        shift = torch.randint(-PADDING, PADDING + 1, (2, count, 1), device=device)
        rows, columns = place + shift[0], torch.where(flipped, 31 - place, place) + shift[1]
        inside = ((rows >= 0) & (rows < 32))[:, :, None] & ((columns >= 0) & (columns < 32))[:, None, :]
        index = torch.arange(count, device=device)[:, None, None]
        x = x.permute(0, 2, 3, 1)[index, rows.clamp(0, 31)[:, :, None], columns.clamp(0, 31)[:, None, :]]
        x = (x * inside[..., None]).permute(0, 3, 1, 2)
        x = (x.float() - mean) / deviation
        area = torch.empty(count, device=device).uniform_(*ERASED_AREA) * 1024
        ratio = torch.empty(count, device=device).uniform_(*np.log(ERASED_RATIO)).exp()
        tall, wide = (area * ratio).sqrt().round().clamp(max=32), (area / ratio).sqrt().round().clamp(max=32)
        corner = torch.rand(2, count, device=device)
        top, left = (corner[0] * (33 - tall)).floor(), (corner[1] * (33 - wide)).floor()
        down = (place >= top[:, None]) & (place < (top + tall)[:, None])
        across = (place >= left[:, None]) & (place < (left + wide)[:, None])
        chosen = torch.rand(count, device=device) < 0.5
        erased = down[:, None, :, None] & across[:, None, None, :] & chosen[:, None, None, None]
        return x.masked_fill(erased, 0.0).contiguous(memory_format=torch.channels_last)

    def loss(x: Any, y: Any) -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            return functional.cross_entropy(model(augment(x)).float(), y)

    step = torch.compile(loss) if compiled else loss

    def epoch() -> None:
        for chosen in torch.randperm(len(targets), device=device).split(batch_size):
            optimiser.zero_grad(set_to_none=True)
            step(data[chosen], targets[chosen]).backward()
            optimiser.step()
        torch.cuda.synchronize()

    return epoch
