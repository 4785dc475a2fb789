"""Writes from_torch.safetensors: a small network's state_dict, and what PyTorch computes with it.

python3 make_from_torch.py   needs torch and safetensors; the tests need neither, they read the file that is in the tree.
The network: convolution 2 -> 3 (3 x 2), batch_norm, relu, linear to 4 classes; samples 2 x 5 x 4. `losses` is the
cross-entropy of each sample with each class as its label, in evaluation mode.
"""

import pathlib

import safetensors.torch
import torch

SAMPLES, CLASSES = 5, 4


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(2, 3, (3, 2))
        self.bn1 = torch.nn.BatchNorm2d(3)
        self.fc1 = torch.nn.Linear(3 * 3 * 3, CLASSES)

    def forward(self, x):
        return self.fc1(torch.relu(self.bn1(self.conv1(x))).flatten(1))


torch.manual_seed(0)
net = Net()
with torch.no_grad():
    net.bn1.weight.uniform_(0.5, 2)
    net.bn1.bias.normal_()
    for _ in range(3):
        net(torch.randn(8, 2, 5, 4) * 2 + 1)
    net.eval()
    x = ((torch.arange(SAMPLES * 40) * 7) % 11 - 5).reshape(SAMPLES, 2, 5, 4) / 4
    losses = -torch.log_softmax(net.double()(x.double()), 1)
tensors = {name: value if value.dtype == torch.int64 else value.float() for name, value in net.state_dict().items()}
tensors["losses"] = losses
safetensors.torch.save_file(tensors, pathlib.Path(__file__).parent / "from_torch.safetensors")
