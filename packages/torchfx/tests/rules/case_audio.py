"""torchfx's operators, and reading audio."""

from tests.rules.cases import fires, silent
from tests.traces import Story

SOS = "torchfx_ext::sos_forward"


def filtering(story, at, us, sections=2, signal=(2, 48_000), name=SOS, inside=2, shapes=True):
    """A call of a cascade, with a few operators inside; returns when it ends."""
    args = {"Input Dims": [list(signal), [sections, 6], [], []]} if shapes else {}
    story.op(name, at, us, **args)
    for k in range(inside):
        story.op("aten::new_empty", at + (k + 1) * us / (inside + 2), us / (inside + 4))
    return at + us


def loop(each, n=5, us=1000, gpu=None, **top):
    story = Story(gpu=gpu, **top)
    for i in range(n):
        story.step(i + 2, us * i, us - 5)
        each(story, us * i + 5, i)
    return story


@fires("native-dispatch-count")
@silent("many-short-files", "reference-path")
def filters_one_by_one():
    def each(story, at, i):
        at = filtering(story, at, 200, sections=2)
        story.op("aten::to", at + 5, 2)
        at = filtering(story, at + 20, 200, sections=4)
        story.op("aten::mul", at + 5, 20)
        filtering(story, at + 40, 200, sections=1)

    return loop(each)


@silent("native-dispatch-count")
def one_chain():
    return loop(lambda story, at, i: filtering(story, at, 600, sections=7))


@silent("native-dispatch-count")
def something_between_the_filters():
    def each(story, at, i):
        at = filtering(story, at, 200, sections=2)
        story.op("aten::tanh", at + 5, 20)
        filtering(story, at + 40, 200, sections=4)

    return loop(each)


@silent("native-dispatch-count")
def two_signals():
    def each(story, at, i):
        filtering(story, filtering(story, at, 200, sections=2), 200, sections=4, signal=(2, 44_100))

    return loop(each)


def files(each_us, count, pause=20, **how):
    def each(story, at, i):
        for k in range(count):
            filtering(story, at + k * (each_us + pause), each_us, signal=(2, 4_000 + k), **how)

    return loop(each, us=count * (each_us + pause) + 20)


@fires("many-short-files")
@silent("native-dispatch-count")
def short_files():
    return files(20, 20)


@fires("many-short-files")
def short_files_without_shapes():
    return files(20, 20, shapes=False)


@silent("many-short-files")
def long_files():
    return files(5000, 20)


@silent("many-short-files")
def a_few_files():
    return files(20, 3)


def on_the_gpu(kernels=40, kernel_us=3, apart=12, channels=2):
    """A cascade that launches a kernel every `apart` microseconds."""
    story = Story()
    us = kernels * apart + 20
    for i in range(4):
        at = max(us, kernels * kernel_us) * i + 30 * i
        story.step(i, at, us + 15)
        story.op(SOS, at + 5, us)
        done = at
        for k in range(kernels):
            launch = at + 10 + k * apart
            done = max(done, launch + 5) + kernel_us
            story.kernel("void at::native::elementwise_kernel<>", done - kernel_us, kernel_us, launch_at=launch)
    return story


@fires("per-section-launches")
@silent("reference-path")
def short_chunks_on_the_gpu():
    return on_the_gpu()


@silent("per-section-launches")
def long_chunks_on_the_gpu():
    return on_the_gpu(kernel_us=200)


@silent("per-section-launches")
def a_kernel_per_call():
    return on_the_gpu(kernels=1, apart=100)


def there_and_back(size, kernel_us):
    story = Story()
    for at in story.steps(4, 2990, every=3000):
        story.copy("HtoD (Pageable -> Device)", at + 20, 400, size, launch_at=at + 10)
        story.op(SOS, at + 430, 60)
        story.kernel("sos_kernel", at + 480, kernel_us, launch_at=at + 440)
        story.copy("DtoH (Device -> Pageable)", at + 490 + kernel_us, 400, size, launch_at=at + 480)
    return story


@fires("gpu-not-worth-it")
def a_short_signal_there_and_back():
    return there_and_back(4_000_000, 50)


@silent("gpu-not-worth-it")
def much_work_on_a_short_signal():
    return there_and_back(4_000_000, 1500)


@silent("gpu-not-worth-it")
def a_long_signal():
    return there_and_back(40_000_000, 50)


@fires("reference-path")
def without_the_library():
    return loop(lambda story, at, i: filtering(story, at, 900, inside=60))


@silent("reference-path")
def with_the_library():
    return loop(lambda story, at, i: filtering(story, at, 900, inside=6))


def designs(*filters):
    """Each step designs filters; `filters` has for each of them the steps in which its coefficients were new."""

    def each(story, at, i):
        for number, new in enumerate(filters):
            begin = at + 100 * number
            story.op("torchfx_ext::iir_sos" if number % 2 else "torchfx design", begin, 80)
            if i not in new:
                story.op("torchfx design again", begin + 70, 2)
        filtering(story, at + 500, 300)

    return loop(each)


@fires("coefficients-recomputed-per-call")
def the_same_filters_designed_in_each_step():
    return designs([0], [0])


@silent("coefficients-recomputed-per-call")
def random_filters():
    return designs(range(5))


@silent("coefficients-recomputed-per-call")
def two_equal_random_filters():
    return designs(range(5), [])


@silent("coefficients-recomputed-per-call")
def filters_that_change_at_times():
    return designs([0, 2])


@fires("dispatch-flood")
def a_chain_of_filters_that_did_not_fuse():
    story = Story(gpu=None)
    for at in story.steps(3, 150 * 10):
        for k in range(150):
            story.op("torchfx_ext::biquad_forward", at + 10 * k, 8)
    return story


def typed(signal, coefficients):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        shapes = {"Input Dims": [[8, 48], [100, 6]], "Input type": [signal, coefficients]}
        story.op(SOS, at + 10, 800, **shapes)
    return story


@silent("fp64")
def a_float_signal_through_coefficients_in_double():
    return typed("float", "double")


@fires("fp64")
def a_double_signal_through_coefficients_in_float():
    return typed("double", "float")
