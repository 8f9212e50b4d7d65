"""Whether two recordings are of one program, and what else differs."""

import pytest

from tests.difference.pairs import OPERATORS, loop, traces
from tests.traces import Story
from torchwhy import diff

STEADY = [1000, 1010, 990, 1005, 995]
CONVOLUTIONAL = ("aten::cudnn_convolution", "aten::cudnn_batch_norm", "aten::max_pool2d", "aten::threshold_backward")


def between(a, b):
    return diff(*traces(a, b))


def test_different_programs_are_said_to_be_so_and_none_is_faster():
    transformer = (*OPERATORS, *(f"aten::attention_{i}" for i in range(8)))
    network = (*CONVOLUTIONAL, *(f"aten::pooling_{i}" for i in range(8)))
    found = between(loop(STEADY, operators=transformer), loop([100, 101, 99, 100], operators=network))
    assert found.verdict.kind == "not comparable"
    assert "these look like different programs (0% of operators in common)" in found.verdict.sentence
    assert found.calls["gone"]  # numbers are shown nevertheless
    assert found.slower_than(0.1) is None


def test_twice_the_work_per_step_is_the_same_program():
    twice = (*OPERATORS, *OPERATORS)
    found = between(loop(STEADY), loop([2 * us for us in STEADY], operators=twice))
    assert found.likeness.share == pytest.approx(1)
    assert found.verdict.kind == "slower"


def test_another_optimizer_is_the_same_program():
    """A thousand small operators instead of one: the rest comes as often as before."""
    a, b = loop(STEADY, kernels=0), loop(STEADY, kernels=0)
    for i in range(5):
        for k in range(100):
            a.op("aten::addcmul_", 1000 * i + 850 + k, 0.5)
            a.op("aten::sqrt", 1000 * i + 850.5 + k, 0.4)
        b.op("aten::_foreach_addcmul_", 1000 * i + 850, 20)
    assert between(a, b).likeness.same_program


def test_eager_and_compiled_are_the_same_program():
    eager = loop(STEADY, operators=("aten::mm", "aten::gelu", "aten::sigmoid"))
    compiled = loop(STEADY, operators=("aten::mm",))
    for i in range(5):
        at = 1000 * i + 300
        compiled.op("TorchDynamo Cache Lookup", at - 10, 5)
        compiled.note("Torch-Compiled Region: 0/0", at, 400)
        compiled.op(f"## Call CompiledFxGraph f{i}abc ##", at + 10, 300)
        compiled.op("triton_poi_fused_gelu_sigmoid_0", at + 20, 100)
        compiled.kernel("triton_poi_fused_gelu_sigmoid_0", at + 50, 50, launch_at=at + 30)
    found = between(eager, compiled)
    assert found.likeness.same_program
    assert any("B runs compiled regions (torch.compile), A is eager" in text for text in found.conditions)
    assert {total.name: total.b for total in found.totals}["compiled regions"] == 1
    assert not any("kernels were not" in text for text in found.conditions)


def test_what_has_no_names_is_not_refused():
    def story(us):
        found = Story()
        for i in range(4):
            found.step(i, 100 * i, us)
        return found

    found = between(story(90), story(50))
    assert found.likeness.share is None
    assert found.verdict.kind == "faster"


def test_kernels_tell_the_program_where_there_are_no_operators():
    def story(*names):
        found = Story()
        for i in range(4):
            found.step(i, 100 * i, 90)
            for k, name in enumerate(names):
                found.kernel(name, 100 * i + 20 * k + 5, 10, launch_at=100 * i + 20 * k)
        return found

    assert between(story("a", "b", "c"), story("a", "b", "d")).likeness.share == pytest.approx(0.5)
    assert not between(story("a", "b", "c"), story("d", "e", "f")).likeness.same_program


def test_devices_are_named():
    a, b = loop(STEADY), Story(gpu="NVIDIA H100 80GB HBM3")
    b.events = [dict(event) for event in a.events]
    assert "A ran on NVIDIA A100-SXM4-80GB, B on NVIDIA H100 80GB HBM3." in between(a, b).conditions
    assert "A ran on NVIDIA A100-SXM4-80GB, B on CPU." in between(a, loop(STEADY, gpu=False)).conditions


def test_kernels_of_two_makers_are_not_listed_as_changes():
    a = loop(STEADY, cuda_runtime_version=12040)
    b = loop(STEADY, kernel_name="Cijk", hip_runtime_version=60200)
    found = between(a, b)
    assert found.two_vendors
    assert "two makers' kernels have different names" in " ".join(str(found).split())
    assert "\nKernels\n" not in str(found)


def test_stacks_on_one_side_distort():
    a, b = loop(STEADY), loop(STEADY)
    b.frame("train.py(12): step", 0, 900)
    assert any("Only B recorded Python stacks" in text for text in between(a, b).conditions)
    assert any("Only A recorded memory" in t for t in between(loop(STEADY, profile_memory=1), b).conditions)


def test_other_inputs_and_types_are_named():
    def story(size, kind):
        found = Story()
        for i in range(4):
            found.step(i, 1000 * i, 900)
            dims = {"Input Dims": [[size, 512], [512, 512]], "Input type": [kind, kind]}
            found.op("aten::mm", 1000 * i, 400, **dims)
        return found

    found = between(story(64, "float"), story(128, "c10::BFloat16"))
    assert "Inputs differ: aten::mm gets [64,512] [512,512] on A, [128,512] [512,512] on B." in [
        text.replace(", 512", ",512") for text in found.conditions
    ]
    assert "A computes in float32, B in bfloat16." in found.conditions


def test_ranks_of_one_job_are_named():
    found = between(loop(STEADY, rank=0), loop(STEADY[:4], rank=1))
    assert "A is rank 0, B rank 1." in found.conditions


def function(*, compiled, label="matmul_add", host_us=30, kernel="ampere_bf16_s16816gemm_bf16_128x256_nn"):
    """One call of torch.add(torch.matmul(x, w), b) per step: as it is written, or compiled into one addmm."""
    story = Story()
    for i in range(5):
        at = 1000 * i
        story.step(i, at, 200 + host_us)
        if label:
            story.note(label, at, 200 + host_us)
        if compiled:
            story.op("TorchDynamo Cache Lookup", at + 1, 10)
            story.note("Torch-Compiled Region: 0/0", at + 12, 150 + host_us)
            story.op("AOTDispatcher Runtime Wrapper Prologue", at + 13, 2)
            story.op("## Call CompiledFxGraph fabc ##", at + 16, 120 + host_us)
            story.op("aten::addmm", at + 20, 100 + host_us)
            story.copy("DtoD (Device -> Device)", at + 60, 5, 4096, launch_at=at + 25)
            story.kernel(kernel, at + 70, 40, launch_at=at + 40)
        else:
            story.op("aten::matmul", at + 5, 60)
            story.op("aten::mm", at + 6, 58)
            story.kernel(kernel, at + 40, 40, launch_at=at + 10)
            story.op("aten::add", at + 70, 30)
            story.kernel("void at::native::vectorized_elementwise_kernel<4, add>", at + 90, 5, launch_at=at + 75)
    return story


@pytest.mark.parametrize("label", ["matmul_add", ""])
def test_a_function_and_its_compiled_form_are_the_same_program(label):
    found = between(function(compiled=False, label=label), function(compiled=True, label=label, host_us=90))
    assert found.likeness.same_program
    assert found.likeness.what == "products"
    assert found.verdict.kind == "slower"


def test_operators_that_are_joined_without_a_fused_kernel_are_told():
    """The compiled addmm copies b first: still two pieces of work."""
    sides = function(compiled=False), function(compiled=True)
    sentence = (
        "Operators were joined, kernels were not: the device has 2 pieces of work per step with torch.compile, 2 "
        "without."
    )
    assert sentence in between(*sides).conditions
    assert sentence in between(*sides[::-1]).conditions


def elementwise(*, compiled, outside=(), kernel=""):
    """One call of a chain of elementwise operators per step, as it is written, or fused."""
    story = Story(gpu="NVIDIA A100-SXM4-80GB" if kernel else None)
    for i in range(5):
        at = 1000 * i
        story.step(i, at, 300)
        for j, name in enumerate(outside):
            story.op(name, at + 200 + 10 * j, 8)
        if compiled:
            story.op("TorchDynamo Cache Lookup", at + 1, 10)
            story.op("Torch-Compiled Region: 0/0", at + 12, 80)
            if kernel:
                story.kernel(kernel, at + 60, 50, launch_at=at + 30)
            continue
        for j, name in enumerate(("sin", "cos", "relu", "sigmoid", "tanh")):
            story.op(f"aten::{name}", at + 1 + 20 * j, 18)
            if kernel:
                story.kernel(f"{name}_kernel_cuda", at + 15 + 20 * j, 10, launch_at=at + 5 + 20 * j)
    return story


@pytest.mark.parametrize("outside", [(), ("aten::to", "aten::item")])
def test_fused_kernels_that_are_not_recorded_say_nothing_of_the_program(outside):
    likeness = between(
        elementwise(compiled=False, outside=outside), elementwise(compiled=True, outside=outside)
    ).likeness
    assert likeness.share is None
    assert likeness.same_program


@pytest.mark.parametrize(
    ("kernel", "same"),
    [("triton_poi_fused_cos_relu_sigmoid_sin_tanh_0", True), ("triton_per_fused_erf_exp_max_sqrt_sub_0", False)],
)
def test_fused_kernels_name_the_operators_of_the_program(kernel, same):
    eager, compiled = elementwise(compiled=False, kernel=kernel), elementwise(compiled=True, kernel=kernel)
    assert between(eager, compiled).likeness.same_program == same
    assert between(compiled, eager).likeness.same_program == same


def test_another_number_of_products_is_another_program():
    more = function(compiled=True, label="")
    for i in range(5):
        more.op("aten::addmm", 1000 * i + 170, 5)
    assert not between(function(compiled=False, label=""), more).likeness.same_program


def test_a_compiled_program_of_an_older_version_is_compiled():
    story = loop(STEADY)
    for i in range(5):
        story.op("CompiledFunction", 1000 * i + 850, 20)
    conditions = between(loop(STEADY), story).conditions
    assert any("B runs compiled regions (torch.compile), A is eager" in text for text in conditions)


def test_compiling_for_nothing_is_a_finding():
    """The host works longer, the device as long as before."""
    a, b = function(compiled=False), function(compiled=True, host_us=150)
    (fate,) = [fate for fate in between(a, b).findings if fate.finding.slug == "compiled-for-nothing"]
    assert fate.state == "new"
    assert fate.us == (0, pytest.approx(120))
    assert fate.finding.title == (
        "torch.compile makes the host work 120 us longer per step (230 us -> 350 us), and steps take no less time"
    )
    (fate,) = [fate for fate in between(b, a).findings if fate.finding.slug == "compiled-for-nothing"]
    assert (fate.state, fate.us[1]) == ("fixed", 0)


def test_compiling_that_pays_is_no_finding():
    found = between(function(compiled=False, host_us=200), function(compiled=True, host_us=30))
    assert "compiled-for-nothing" not in [fate.finding.slug for fate in found.findings]


def test_compiling_for_nothing_is_a_finding_on_a_cpu_too():
    a, b = (function(compiled=compiled, host_us=us) for compiled, us in ((False, 30), (True, 150)))
    for story in (a, b):
        on_gpu = ("kernel", "gpu_memcpy", "cuda_runtime", "ac2g")
        story.events = [event for event in story.events if event.get("cat") not in on_gpu]
        story.top.pop("deviceProperties", None)
    (fate,) = [fate for fate in between(a, b).findings if fate.finding.slug == "compiled-for-nothing"]
    assert fate.us == (0, pytest.approx(120))


def test_cache_hits_in_every_step_are_said():
    text = "B enters the same compiled graphs in each of its 5 steps and compiles none: cache hits."
    assert text in between(function(compiled=False), function(compiled=True)).conditions
    other = function(compiled=True)
    other.op("## Call CompiledFxGraph another ##", 4222, 2)
    assert text not in between(function(compiled=False), other).conditions


def labelled(operators, us, labels=("encoder", "decoder")):
    story = Story()
    for i in range(5):
        story.step(i, 2000 * i, 1900)
        for k, label in enumerate(labels):
            at = 2000 * i + 900 * k + 10
            story.note(label, at, us + 10)
            for j, name in enumerate(operators):
                story.op(name, at + 1 + j * us / len(operators), us / len(operators) - 1)
                story.kernel(
                    f"{name[6:]}_kernel",
                    at + 5 + j * us / len(operators),
                    20,
                    launch_at=at + 2 + j * us / len(operators),
                )
    return story


def test_programs_with_other_operators_are_compared_by_their_labels():
    found = between(
        labelled(("aten::_softmax", "aten::native_dropout", "aten::gelu"), 600), labelled(("mylib::fused_block",), 200)
    )
    assert (found.likeness.what, found.likeness.labels) == ("labels", ("encoder", "decoder"))
    assert found.verdict.kind == "no difference"
    text = "A and B have 0% of operators in common: they are compared by the labels both have, encoder and decoder."
    assert text in found.conditions
    times = {label.name: (label.calls, label.host_us, label.device_us) for label in found.labels}
    assert times["encoder"] == (
        (1, 1),
        (pytest.approx(610), pytest.approx(210)),
        (pytest.approx(60), pytest.approx(20)),
    )
    assert "Labels of the program" in str(found)


def test_other_labels_are_another_program():
    a = labelled(("aten::_softmax", "aten::native_dropout", "aten::gelu"), 600)
    b = labelled(("mylib::fused_block",), 200, labels=("backbone", "head"))
    assert not between(a, b).likeness.same_program


@pytest.mark.parametrize("label", ["Optimizer.step#SGD.step", "Python GC"])
def test_labels_of_pytorch_are_none_of_the_program(label):
    a = labelled(("aten::_softmax", "aten::native_dropout", "aten::gelu"), 600, labels=(label,))
    b = labelled(("mylib::fused_block",), 200, labels=(label,))
    assert between(a, b).likeness.what != "labels"


@pytest.mark.parametrize(
    ("module", "forward", "what"),
    [
        ("Block_0", "model.py(3): forward", "labels"),
        ("Linear_0", "torch/nn/modules/linear.py(130): forward", "operators"),
    ],
)
def test_modules_tell_a_program_where_they_are_its_own(module, forward, what):
    def program(*operators):
        story = labelled(operators, 600, labels=("",))
        for i in range(5):
            story.frame(f"nn.Module: {module}", 2000 * i + 5, 700)
            story.frame("torch/nn/modules/module.py(1776): _call_impl", 2000 * i + 6, 690)
            story.frame(forward, 2000 * i + 7, 680)
        return story

    a, b = program("aten::_softmax", "aten::native_dropout", "aten::gelu"), program("mylib::fused_block")
    assert between(a, b).likeness.what == what


def attention(*operators, size=64, us=900):
    """One step of a function in one of its versions: nothing but its operators is recorded."""
    story = Story()
    for i in range(5):
        story.step(i, 1000 * i, us)
        for j, name in enumerate(operators):
            at = 1000 * i + j * us / len(operators)
            dims = {"Input Dims": [[8, size, 64]]} if size else {}
            story.op(name, at, us / len(operators) - 1, **dims)
            story.kernel(f"{name[6:]}_kernel", at + 5, 20, launch_at=at + 2)
    return story


WRITTEN_OUT = ("aten::bmm", "aten::_softmax", "aten::div")
FUSED = ("aten::_scaled_dot_product_flash_attention",)


@pytest.mark.parametrize("size", [64, 0])
def test_a_function_and_its_fused_version_are_compared_by_their_steps(size):
    found = between(attention(*WRITTEN_OUT, size=size), attention(*FUSED, size=size, us=300))
    assert found.verdict.kind == "faster"
    assert found.verdict.sentence.startswith("B is 3.00x faster")
    text = "A and B have 0% of operators in common: step times compare only if both compute the same."
    assert text in found.conditions


def test_functions_of_other_sizes_are_different():
    found = between(attention(*WRITTEN_OUT), attention(*FUSED, size=80))
    assert found.verdict.kind == "not comparable"


def test_what_cannot_be_compared_prints_no_differences():
    found = between(attention(*WRITTEN_OUT), attention(*FUSED, size=80))
    assert found.calls["gone"]
    text = str(found)
    assert "can't be compared" in " ".join(text.split())
    assert not any(title in text for title in ("Where the difference arises", "Per step", "Operators", "Findings"))


def test_what_another_device_does_not_show_is_not_fixed():
    """The rules about the GPU are silent on B because it ran on the CPU."""
    a, b = loop(STEADY), loop(STEADY, gpu=False)
    for i in range(5):
        a.call("cudaStreamSynchronize", 1000 * i + 810, 150)
    found = between(a, b)
    states = {fate.state for fate in found.findings}
    assert found.findings
    assert not states & {"fixed", "new"}
