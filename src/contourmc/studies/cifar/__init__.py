"""Table 2: ResNet-20 on CIFAR-10 and CIFAR-100 by momentum SGD, SGHMC and contour SGHMC, with and without annealing."""
