import base64
import hashlib
import html
import re

import pytest

from tests.page.generated import generated
from torchwhy.errors import ArgumentError
from torchwhy.page.assemble import joined_modules, page
from torchwhy.page.timeline import timeline_of

MODULES = {
    "main.js": 'import { a } from "./a.js";\nimport {\n  b,\n} from "./b.js";\n\na(b);\n',
    "a.js": 'import { b } from "./b.js";\n\nexport function a() {}\n',
    "b.js": "export const b = 1;\n",
}


def test_modules_come_after_those_they_import():
    text = joined_modules(MODULES, "main.js")
    assert text.index("const b") < text.index("function a") < text.index("a(b);")
    assert not re.search(r"^\s*(import|export)", text, re.M)


def test_comments_that_have_their_lines_to_themselves_stay_behind():
    code = ['const a = "// kept"; // kept', "/** @type {X} */ (f)(/** @type {Y} */ (g));", 'const b = "/** kept */";']
    comments = ["// gone\n  // gone", "/** gone */", "  /**\n   * gone /* x\n   */"]
    lines = [line for pair in zip(comments, code, strict=True) for line in pair]
    text = joined_modules({"main.js": "\n".join(lines) + "\n"}, "main.js")
    assert text == "// main.js\n" + "\n".join(code) + "\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("b.js", 'import { a } from "./a.js";\n', "import each other: main.js imports a.js imports b.js imports a.js"),
        ("b.js", "export const a = 1;\n", "both declare a"),
        ("b.js", "export default 1;\n", "'export default 1;' is another form"),
        ("b.js", "import * as everything from './a.js';\n", "another form of import or export"),
    ],
)
def test_other_forms_are_refused(name, text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        joined_modules({**MODULES, name: text}, "main.js")


@pytest.fixture(scope="module")
def small():
    return page('<div id="stage"></div>', "a <title>", [timeline_of(generated(500))])


def test_the_policy_allows_this_script_and_this_style_only(small):
    policy = html.unescape(re.search(r'Security-Policy" content="([^"]*)"', small)[1])
    assert "default-src 'none'" in policy
    for tag in ("style>", 'script type="module">'):
        text = small.split(f"<{tag}", 1)[1].split(f"</{tag.split()[0].rstrip('>')}>")[0]
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy


def test_a_page_fetches_nothing_and_its_title_is_text(small):
    assert "<title>a &lt;title&gt;</title>" in small
    assert not re.search(r"https?://(?!www\.w3\.org)|url\(|@import|<link|src=", small)
    assert "</script" not in small.split('<script type="module">')[1].removesuffix("</script>\n</body>\n</html>\n")


def test_the_same_input_gives_the_same_page(small):
    assert page('<div id="stage"></div>', "a <title>", [timeline_of(generated(500))]) == small


def test_the_size_is_that_of_the_file():
    timeline = timeline_of(generated(3000))
    whole = len(page("é", "t", [timeline]).encode())
    assert len(page("é", "t", [timeline], max_size=whole - 1).encode()) < whole
    with pytest.raises(ArgumentError, match=r"max_size must be at least .* kB.* got 1\.00 kB"):
        page("é", "t", [timeline], max_size=1000)
