import torch

from tests.networks import batch_of
from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.windows import Windows
from treecaps.nn.tree_convolution import TreeConvolution
from treecaps.syntax.tree import Tree


def test_equals_the_formula_by_hand() -> None:
    tree = Tree.build(["p", "a", "b", "c"], [-1, 0, 0, 0])
    vocabulary = Vocabulary.of([tree])
    batch = batch_of(Windows.from_trees([tree], vocabulary))
    x = torch.randn(len(vocabulary), 5)
    layer = TreeConvolution(5, 4, slices=2)
    torch.nn.init.normal_(layer.bias)
    found = layer(x, *batch.layers[0])
    assert found.shape == (4, 2, 4)
    top, left, right = layer.weight.view(3, 5, 8)
    p, a, b, c = (x[vocabulary.number(kind)] for kind in "pabc")
    y = p @ top + a @ left + b @ (left + right) / 2 + c @ right + layer.bias
    sizes = batch.layers[0].offsets.diff()
    assert torch.allclose(found[sizes.argmax()], y.tanh().view(2, 4), atol=1e-6)


def test_one_slice_equals_its_part_of_several() -> None:
    """Slices stand side by side and share nothing."""
    tree = Tree.build(["p", "a"], [-1, 0])
    batch = batch_of(Windows.from_trees([tree], Vocabulary.of([tree])))
    x = torch.randn(3, 5)
    several = TreeConvolution(5, 4, slices=3)
    one = TreeConvolution(5, 4)
    one.weight.data = several.weight.data[:, 4:8]
    one.bias.data = several.bias.data[4:8]
    assert torch.allclose(one(x, *batch.layers[0])[:, 0], several(x, *batch.layers[0])[:, 1])


def test_outputs_that_do_not_vary_keep_their_weights() -> None:
    layer = TreeConvolution(3, 4)
    before = layer.weight.clone()
    offsets, member = torch.tensor([0, 1]), torch.tensor([0])
    one, none = torch.ones(1), torch.zeros(1)
    layer.standardize(torch.randn(1, 3), offsets, member, one, none, none, torch.tensor([7.0]))
    assert torch.equal(layer.weight, before)
