"""A program whose page the tests of the browser look at."""

from tests.traces import Story
from torchwhy.page.report_page import trace_page
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose


def program():
    """Four steps, each of which waits for its batch, copies it from pageable memory, and computes a little."""
    story = Story()
    for i in range(4):
        at = 100_000 * i
        story.step(i + 1, at=at, us=99_000)
        story.note("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at=at + 10, us=40_000)
        story.op("aten::copy_", at=at + 41_000, us=9_000)
        story.copy("HtoD (Pageable -> Device)", at=at + 41_100, us=8_000, size=40_000_000, launch_at=at + 41_050)
        for k in range(20):
            start = at + 51_000 + 1_500 * k
            story.op(f"aten::op{k % 3}", at=start, us=900)
            story.kernel(f"void kernel{k % 3}<float>(int)", at=start + 500, us=800, launch_at=start + 300)
        story.call("cudaDeviceSynchronize", at=at + 82_000, us=2_000)
    return story.trace()


def page_of(trace, **options):
    """The whole page, as `torchwhy report` writes it."""
    diagnosis = diagnose(trace)
    return trace_page(trace, diagnosis, describe(trace, diagnosis, thorough=True), **options)
