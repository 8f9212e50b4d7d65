"""The fields of native steps: the library declares them, Python encodes them by name and refuses what does not fit."""

import pytest
import torch

from torchfx._ops import native
from torchfx._ops.program import DTYPES, KINDS, Program
from torchfx.errors import ArgumentError, ArgumentTypeError

pytestmark = pytest.mark.skipif(native.library is None, reason="no native library")

CHANNELS = 2
SCALARS = {"integer", "real", "buffer"}
ROLES = {"setting", "constant", "state", "optional_constant", "optional_state", "optional_resting_state"}


def is_address(field):
    return field.type not in SCALARS


def size_of(field, numbers):
    return 0 if field.size == "unchecked" else eval(field.size.replace("/", "//"), {"channels": CHANNELS, **numbers})


def valid(kind):
    """Return values that fit: 1 for numbers, which every size depends on, and tensors of these sizes."""
    numbers = {field.name: {"integer": 1, "real": 0.5, "buffer": 0}.get(field.type) for field in kind.fields}
    dtypes = DTYPES | {"samples": torch.float32}
    return {
        field.name: torch.zeros(size_of(field, numbers), dtype=dtypes[field.type])
        if is_address(field)
        else numbers[field.name]
        for field in kind.fields
    }


def encoded(kind, values):
    return kind.encode(CHANNELS, torch.float32, **values)


FIELDS = [(kind, field) for kind in KINDS.values() for field in kind.fields]
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
each_field = pytest.mark.parametrize(
    ("kind", "field"), FIELDS, ids=[f"{kind.name}-{field.name}" for kind, field in FIELDS]
)


@each_kind
def test_a_kind_is_declared_in_full_and_its_values_are_encoded_in_order(kind):
    assert KINDS[kind.name].number == list(KINDS).index(kind.name)
    assert all(field.type in SCALARS | DTYPES.keys() | {"samples"} and field.role in ROLES for field in kind.fields)
    values = valid(kind)
    assert len(values) == len(kind.fields)
    found = dict(zip(values, encoded(kind, dict(reversed(values.items()))), strict=True))
    assert all(found[name] == value.data_ptr() for name, value in values.items() if isinstance(value, torch.Tensor))


@each_kind
def test_a_program_has_a_method_for_every_kind(kind):
    assert callable(getattr(Program, kind.name))


@each_field
def test_a_missing_or_misspelt_field_raises(kind, field):
    values = valid(kind)
    value = values.pop(field.name)
    with pytest.raises(TypeError, match=rf"{kind.name}\(\) missing 1 required keyword-only argument: '{field.name}'"):
        encoded(kind, values)
    with pytest.raises(TypeError, match=f"{kind.name}.* got an unexpected keyword argument '{field.name}_'"):
        encoded(kind, values | {f"{field.name}_": value})


@each_field
def test_a_wrong_type_raises(kind, field):
    values = valid(kind)
    if is_address(field):
        wrong = [values[field.name].to(torch.int32), 0, values[field.name].numpy()]
        wrong += [] if field.role.startswith("optional") else [None]
    else:
        wrong = [torch.zeros(1), None, "1", *([] if field.type == "real" else [1.0])]
    for value in wrong:
        with pytest.raises(ArgumentTypeError, match=f"step {kind.name}: {field.name} must be"):
            encoded(kind, values | {field.name: value})


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, field in FIELDS if is_address(field)])
def test_memory_of_a_wrong_device_layout_or_size_raises(kind, field):
    values = valid(kind)
    given = values[field.name]
    spread = torch.zeros(max(2, given.numel()), 2, dtype=given.dtype)[:, 0]
    for value in (spread, given.to("meta")):
        with pytest.raises(ArgumentError, match=f"{field.name} must be contiguous on the CPU"):
            encoded(kind, values | {field.name: value})
    if field.size != "unchecked":
        longer = torch.zeros(given.numel() + 1, dtype=given.dtype)
        with pytest.raises(ArgumentError, match=f"{field.name} must hold {given.numel()} elements"):
            encoded(kind, values | {field.name: longer})


def test_a_dtype_that_another_dtype_of_samples_needs_raises():
    with pytest.raises(ArgumentTypeError, match=r"state must be a tensor of torch\.float32, got torch\.float64"):
        Program((2,), torch.float32).delay(0, torch.zeros(2, 5, dtype=torch.float64))
