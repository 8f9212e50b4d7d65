"""Draw the pictures of the report page that the README shows.

    OMP_NUM_THREADS=1 .venv/bin/python tools/screenshots.py

writes the page of a training that was recorded on a GPU (tests/recorded), and that of examples/slow_training as it is
and with its batches mended, opens them in Chromium and keeps three pictures under docs/. Needs the extra `browser`,
Chromium and Pillow.
"""

import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "recorded" / "training_step.json.gz"
SCRIPT = ROOT / "examples" / "slow_training" / "train.py"
LARGEST = 150_000
"""Bytes of a picture."""


def torchwhy(*words: object) -> None:
    """Run the command line of this checkout."""
    subprocess.run([sys.executable, "-m", "torchwhy", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def keep(page: Page, name: str) -> None:
    """Write what the window shows, in as few colours as a picture of text and bars needs."""
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    path = ROOT / "docs" / name
    picture.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > LARGEST:
        raise SystemExit(f"{path} has {path.stat().st_size:,} bytes, more than {LARGEST:,}")
    print(f"{path.relative_to(ROOT)}, {path.stat().st_size:,} bytes")


def main() -> None:
    """Record, write pages, draw."""
    with TemporaryDirectory() as given, sync_playwright() as playwright:
        folder = Path(given)
        torchwhy("profile", "--active", 5, "--out", folder / "before", SCRIPT)
        torchwhy("profile", "--active", 5, "--out", folder / "after", SCRIPT, "--fix", "data")
        torchwhy("report", RECORDED, "-o", folder / "recorded.html")
        torchwhy("report", folder / "before", folder / "after", "-o", folder / "difference.html")
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        page.goto((folder / "recorded.html").as_uri())
        page.wait_for_selector('html[data-ready="1"]')
        keep(page, "report-verdict.png")
        page.locator('#findings [data-show="finding:0"]').first.click()  # which scrolls to the timeline
        keep(page, "report-timeline.png")
        page.goto((folder / "difference.html").as_uri())
        page.wait_for_selector('html[data-ready="1"]')
        page.locator("#timeline").evaluate("(section) => section.scrollIntoView()")
        keep(page, "report-difference.png")
        browser.close()


if __name__ == "__main__":
    main()
