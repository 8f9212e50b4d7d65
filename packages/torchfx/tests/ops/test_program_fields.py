"""The fields of native steps: the library declares them, Python encodes them by name and refuses what does not fit."""

import re

import pytest
import torch

from torchfx._ops import native
from torchfx._ops.program import DTYPES, KINDS, Program
from torchfx.errors import ArgumentError, ArgumentTypeError

pytestmark = pytest.mark.skipif(native.library is None, reason="no native library")

CHANNELS = 2
SCALARS = {"integer", "real", "buffer"}
ROLES = {"setting", "constant", "state", "optional_constant", "optional_state"}


def valid(kind):
    """Return values that fit: 1 for numbers, which every size depends on, and tensors of these sizes."""
    values = {"integer": 1, "real": 0.5, "buffer": 0}
    numbers = {field.name: values.get(field.type) for field in kind.fields}
    if not numbers:
        return {}
    sizes = dict(zip(kind.sized, kind.sizes(CHANNELS, **numbers), strict=True))
    dtypes = DTYPES | {"samples": torch.float32}
    return {
        field.name: torch.zeros(sizes.get(field.name, 0), dtype=dtypes[field.type])
        if field.is_address
        else numbers[field.name]
        for field in kind.fields
    }


def encoded(kind, values):
    return kind.encoded(values, CHANNELS, torch.float32)


FIELDS = [(kind, field) for kind in KINDS.values() for field in kind.fields]
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
each_field = pytest.mark.parametrize(
    ("kind", "field"), FIELDS, ids=[f"{kind.name}-{field.name}" for kind, field in FIELDS]
)


@each_kind
def test_a_kind_is_declared_in_full_and_its_values_are_encoded_in_order(kind):
    assert KINDS[kind.name].number == list(KINDS).index(kind.name)
    assert all(field.type in SCALARS | DTYPES.keys() and field.role in ROLES for field in kind.fields)
    assert len(kind.names) == len(kind.fields)
    values = valid(kind)
    found = dict(zip(kind.names, encoded(kind, dict(reversed(values.items()))), strict=True))
    assert list(found) == [field.name for field in kind.fields]
    assert all(found[name] == value.data_ptr() for name, value in values.items() if isinstance(value, torch.Tensor))


@each_kind
def test_a_program_has_a_method_for_every_kind(kind):
    assert callable(getattr(Program, kind.name))


@each_field
def test_a_missing_or_misspelt_field_raises(kind, field):
    values = valid(kind)
    value = values.pop(field.name)
    with pytest.raises(ArgumentError, match=re.escape(f"missing fields ['{field.name}'], unknown fields []")):
        encoded(kind, values)
    with pytest.raises(ArgumentError, match=re.escape(f"unknown fields ['{field.name}_']")):
        encoded(kind, values | {f"{field.name}_": value})


@each_field
def test_a_wrong_type_raises(kind, field):
    values = valid(kind)
    if field.is_address:
        wrong = [values[field.name].to(torch.int32), 0, values[field.name].numpy()]
        wrong += [] if field.role.startswith("optional") else [None]
    else:
        wrong = [torch.zeros(1), None, "1", *([] if field.type == "real" else [1.0])]
    for value in wrong:
        with pytest.raises(ArgumentTypeError, match=f"step {kind.name}: {field.name} must be"):
            encoded(kind, values | {field.name: value})


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, field in FIELDS if field.is_address])
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


def test_a_buffer_that_no_step_has_written_raises():
    with pytest.raises(ArgumentError, match="no step has written buffer 7"):
        Program((2,), torch.float32).add(0, 7)


def test_a_dtype_that_another_dtype_of_samples_needs_raises():
    with pytest.raises(ArgumentTypeError, match=r"state must be a tensor of torch\.float32, got torch\.float64"):
        Program((2,), torch.float32).delay(0, torch.zeros(2, 5, dtype=torch.float64))
