"""Programs in two versions, as small traces."""

from tests.traces import Story
from torchwhy.present.comparison import comparison
from torchwhy.present.formats import render
from torchwhy.present.options import Options
from torchwhy.present.style import Style

OPERATORS = ("aten::mm", "aten::relu", "aten::native_layer_norm", "aten::_softmax")


def loop(
    durations_us, *, first=5, kernels=2, operators=OPERATORS, kernel_name="ampere_gemm", gpu=True, extra=(), **top
):
    """One recorded step per duration: the operators share four fifths of it, each launching `kernels` kernels.

    `extra` lists (name, share of the step, kind) of more events: "op" or "note".
    """
    story = Story(gpu="NVIDIA A100-SXM4-80GB" if gpu else None, **top)
    at = 0.0
    for i, us in enumerate(durations_us):
        story.step(first + i, at, us)
        place, part = at + 0.01 * us, 0.8 * us / max(len(operators), 1)
        for name in operators:
            story.op(name, place, 0.9 * part)
            for k in range(kernels if gpu else 0):
                story.kernel(
                    f"{kernel_name}_{name[6:]}", place + (k + 1) * part / 4, part / 5, launch_at=place + k * part / 4
                )
            place += part
        for name, share, kind in extra:
            (story.op if kind == "op" else story.note)(name, place, share * us)
            place += share * us
        at += us
    return story


def traces(a, b):
    return a.trace("a.json"), b.trace("b.json")


def shown(found, form="text", *, verbose=False, width=80):
    return render(comparison(found), form, Options(Style(width), verbose))
