"""torch.compile: compiling and compiling again, pieces, the way in, variants, CUDA graphs, kernels."""

from tests.rules.cases import fires, silent
from tests.traces import Story

REGION, LOOKUP = "Torch-Compiled Region: {}", "TorchDynamo Cache Lookup"
GRAPH = "## Call CompiledFxGraph f{} ##"


def call(story, at, name="0/0", lookup_us=10, before=20, graph_us=200, after=10, hash_="abc"):
    """Enter compiled code; returns when it is left."""
    story.op(LOOKUP, at, lookup_us)
    at += lookup_us + 1
    story.op(REGION.format(name), at, before + graph_us + after)
    story.op(GRAPH.format(hash_), at + before, graph_us)
    return at + before + graph_us + after


def compile_(story, at, us, name=None, backward=False):
    """Compile something, as PyTorch 2.13 announces it."""
    if backward:
        story.op("entire_backward_compile", at, us)
        story.op("backward._backward_impl (dynamo_timed)", at + 1, us - 2)
    else:
        story.op("dynamo", at, us)
        if name:
            story.note(f"dynamo_data: compile_id={name}", at + 1, 2)
        story.op("entire_frame_compile", at + 4, us - 5)
        story.op("_compile.compile_inner (dynamo_timed)", at + 5, us - 7)


def steps(each, n=5, us=1000, **top):
    """Steps of a CPU program; `each(story, at, i)` fills one."""
    story = Story(gpu=None, **top)
    for i in range(n):
        story.step(i + 2, us * i, us - 5)
        each(story, us * i + 10, i)
    return story


def broken(resumed=False, graph_us=150):
    """The rest of the function is a region inside the region."""

    def each(story, at, i):
        story.op(LOOKUP, at, 10)
        story.op(REGION.format("0/0"), at + 11, 500)
        story.op(GRAPH.format("a"), at + 40, graph_us)
        if resumed:
            story.frame("train.py(33): torch_dynamo_resume_in_forward_at_33", at + 215, 200)
        story.op(LOOKUP, at + 220, 10)
        story.op(REGION.format("1/0"), at + 231, 250)
        story.op(GRAPH.format("b"), at + 270, graph_us)

    return steps(each)


@fires("compile-in-window")
@silent("recompiles")
def first_call_is_recorded():
    def each(story, at, i):
        if i == 0:
            compile_(story, at, 900, "0/0")
        else:
            call(story, at)

    return steps(each)


@fires("compile-in-window")
def only_the_backward_pass_is_compiled():
    return steps(lambda story, at, i: compile_(story, at, 500, backward=True) if i == 0 else call(story, at))


@fires("compile-in-window")
def compiled_by_pytorch_2_1():
    """No numbers, no `dynamo` around."""

    def each(story, at, i):
        if i == 0:
            story.note("_compile.compile_inner (dynamo_timed)", at, 900)
        else:
            story.op("Torch-Compiled Region", at, 300)

    return steps(each)


@silent("compile-in-window", "compile-overhead", "graph-breaks", "recompiles", "hash-churn", "lookup-cost")
@silent("compiled-but-eager", "autotune-in-window")
def warm_and_whole():
    return steps(lambda story, at, i: call(story, at, graph_us=800))


@silent("compile-in-window")
def names_of_the_program_are_no_stages():
    """Nothing carries the suffix, so "dynamo" is the program's own word."""
    return steps(lambda story, at, i: story.note("dynamo", at, 800))


@fires("recompiles")
@silent("compile-in-window")
def sizes_change():
    def each(story, at, i):
        compile_(story, at, 500, f"0/{i + 1}")
        call(story, at + 501, f"0/{i + 1}")

    return steps(each)


@fires("recompiles")
def compiled_in_many_steps_without_numbers():
    return steps(lambda story, at, i: story.note("_compile.compile_inner (dynamo_timed)", at, 400))


@silent("recompiles", "hash-churn")
def two_variants_that_exist():
    """Both were compiled before the window."""
    return steps(lambda story, at, i: call(story, at, f"0/{i % 2}", graph_us=800, hash_=str(i % 2)))


@fires("graph-breaks")
def a_function_breaks():
    return broken()


@fires("graph-breaks")
@silent("compile-overhead")
def a_small_function_breaks():
    return broken(graph_us=10)


@fires("graph-breaks")
def a_function_breaks_at_a_known_line():
    return broken(resumed=True)


@silent("graph-breaks")
def compiled_functions_one_after_the_other():
    def each(story, at, i):
        call(story, call(story, at, "0/0"), "1/0")

    return steps(each)


@fires("compiled-but-eager")
def given_up():
    def each(story, at, i):
        if i == 0:
            call(story, at, "0/7")
        for k in range(4):
            story.op(LOOKUP, at + 400 + 100 * k, 5)
            story.op("aten::mm", at + 410 + 100 * k, 50)

    return steps(each)


@silent("compiled-but-eager")
def lookups_that_compile():
    """Nothing fits, so a variant is made."""

    def each(story, at, i):
        story.op(LOOKUP, at, 5)
        compile_(story, at + 6, 400, f"0/{i}")
        story.op(REGION.format(f"0/{i}"), at + 410, 100)

    return steps(each)


@fires("compile-overhead")
def tiny_functions():
    def each(story, at, i):
        for k in range(8):
            call(story, at + 100 * k, before=30, graph_us=5, after=20)

    return steps(each)


@silent("compile-overhead")
def one_entry_was_interrupted():
    """A single entry took long; the others are cheap."""
    return steps(lambda story, at, i: call(story, at, before=700 if i == 2 else 3, graph_us=20, after=3))


@fires("lookup-cost")
def many_guards():
    return steps(lambda story, at, i: call(story, at, lookup_us=120))


@silent("lookup-cost")
def one_slow_lookup():
    return steps(lambda story, at, i: call(story, at, lookup_us=300 if i == 0 else 10))


@fires("hash-churn")
def a_variant_for_every_size():
    return steps(lambda story, at, i: call(story, at, f"0/{i}", hash_=str(i)))


@fires("hash-churn")
def a_new_hash_in_every_step():
    def each(story, at, i):
        story.op("Torch-Compiled Region", at, 300)
        story.note(GRAPH.format(i), at + 20, 200)

    return steps(each)


@fires("autotune-in-window")
def kernels_are_tuned():
    return steps(lambda story, at, i: story.op("CachingAutotuner.benchmark_all_configs (dynamo_timed)", at, 300))


def launching(kernels, kernel_us, apart, region=True, n=4, graph=False, name="triton_poi_fused_add_{}"):
    """Steps on a GPU in which the host launches one kernel after another, `apart` microseconds each."""
    story = Story()
    for i in range(n):
        us = kernels * apart + 100
        at = (max(us, kernels * kernel_us) + 50) * i
        story.step(i + 2, at, us + 10)
        if region:
            story.op(LOOKUP, at + 1, 5)
            story.op(REGION.format("0/0"), at + 7, us)
            story.op(GRAPH.format("a"), at + 10, us - 10)
        done = at
        for k in range(kernels):
            launch = at + 50 + k * apart
            story.op("aten::add" if not region else name.format(k), launch - 2, apart - 3)
            done = max(done, launch + 5) + kernel_us
            story.kernel(name.format(k), done - kernel_us, kernel_us, launch_at=launch)
        if graph:
            story.call("cudaGraphLaunch", at + 20, 10)
    return story


@fires("no-cudagraph", "inductor-name-legend")
@silent("compile-missing")
def compiled_and_waited_for():
    return launching(50, 3, 20)


@silent("no-cudagraph")
def compiled_and_busy():
    return launching(50, 40, 20)


@silent("no-cudagraph")
def replayed():
    return launching(50, 3, 20, graph=True)


EAGER = "void at::native::elementwise_kernel<{}>"


@fires("compile-missing")
@silent("inductor-name-legend", "no-cudagraph")
def eager_and_waited_for():
    return launching(50, 3, 20, region=False, name=EAGER)


@silent("compile-missing")
def eager_and_busy():
    return launching(50, 40, 20, region=False, name=EAGER)


@silent("compile-missing")
def a_few_kernels():
    return launching(5, 3, 20, region=False, name=EAGER)


@fires("fallback-kernels")
def a_graph_of_eager_kernels():
    return launching(50, 30, 20, name=EAGER)


@silent("fallback-kernels")
def eager_kernels_between_the_graphs():
    story = Story()
    for at in story.steps(3, 990, every=1000):
        story.op(REGION.format("0/0"), at + 10, 900)
        story.op(GRAPH.format("a"), at + 20, 100)
        story.kernel("triton_poi_fused_add_0", at + 40, 100, launch_at=at + 30)
        story.op("aten::sort", at + 200, 100)
        story.kernel("void at::native::radix_sort<float>", at + 260, 300, launch_at=at + 210)
    return story


def captured(each):
    story = Story()
    for i, at in enumerate(story.steps(5, 1990, every=2000)):
        story.kernel("gemm", at + 1200, 300, launch_at=at + 1190, launch="cudaGraphLaunch")
        if i in each:
            story.call("cudaStreamBeginCapture", at + 100, 5)
            story.op("aten::mm", at + 200, 300)
            story.call("cudaStreamEndCapture", at + 600, 5)
            story.call("cudaGraphInstantiateWithFlags", at + 700, 200)
    return story


@fires("cudagraph-re-record")
def captured_in_every_step():
    return captured(range(5))


@silent("cudagraph-re-record")
def captured_once():
    return captured([0, 1])


@silent("lookup-cost")
def lookups_of_a_large_model():
    """55 us per lookup are usual for large modules; here they are 1% of the time."""
    return steps(lambda story, at, i: call(story, at, lookup_us=55, graph_us=3500), us=4000)


def older(*labels, pieces=3):
    """As PyTorch 2.0 writes it: neither regions nor lookups; `pieces` compiled functions below each label."""

    def each(story, at, i):
        for k, label in enumerate(labels):
            start = at + 400 * k
            story.note(label, start, 390)
            for j in range(pieces):
                story.op("CompiledFunction", start + 5 + 120 * j, 80)
                story.op("aten::mul", start + 90 + 120 * j, 20)

    return steps(each)


@fires("graph-breaks")
def an_older_trace_in_pieces():
    return older("model_inference")


@silent("graph-breaks")
def an_older_trace_of_two_whole_functions():
    return older("encoder", "decoder", pieces=1)


@silent("lookup-cost")
def one_lookup_is_held_up():
    """Lookups of 60 us are 2% of the time; the operating system held one up."""
    story, at = Story(gpu=None), 0
    for i in range(6):
        length = 9000 if i == 3 else 3000
        story.step(i + 2, at, length - 5)
        call(story, at + 10, lookup_us=6000 if i == 3 else 60, graph_us=2500)
        at += length
    return story
