"""A Bayesian classifier of digits in PyTorch: contour SGHMC as the optimiser, and the ensemble of its draws."""

import torch
from sklearn.datasets import load_digits
from torch import nn

import contourmc as cm
from contourmc.torch import CSGHMC, Ensemble

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
order = torch.randperm(len(images))
images, labels = torch.tensor(images / 16, dtype=torch.float32)[order], torch.tensor(labels)[order]
train, test = slice(0, 1297), slice(1297, 1797)
data_size = 1297

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
partition = cm.Partition(low=200.0, width=10.0, bins=60)  # of the energy: 1297 times the mean loss, and the prior
opt = CSGHMC(
    model.parameters(), lr=0.05, data_size=data_size, partition=partition, temperature=0.1, weight_decay=1e-3,
    zeta=200.0, rule="scalable",
)  # fmt: skip
ensemble = Ensemble(model, transform=lambda logits: logits.softmax(-1), tempering=1 / 200)

for step in range(1500):
    batch = torch.randint(data_size, (256,))
    loss = nn.functional.cross_entropy(model(images[train][batch]), labels[train][batch])
    opt.zero_grad()
    loss.backward()
    if step >= 500 and step % 20 == 0:
        ensemble.add(opt, loss)  # before the step: the weight is that of the point where the loss was computed
    opt.step(loss)

probabilities = ensemble.predict(images[test])
accuracy = float((probabilities.argmax(1) == labels[test]).float().mean())
print(f"accuracy {accuracy:.3f} of {len(ensemble)} models, worth {ensemble.effective_models:.1f} equally weighted ones")
