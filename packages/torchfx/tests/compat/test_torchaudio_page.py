"""The page for torchaudio's users names everything that is here and all that is elsewhere."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "torchaudio_names.py"


def test_its_tables_are_up_to_date():
    spec = importlib.util.spec_from_file_location("torchaudio_names", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.PAGE.read_text()
    assert tool.page(text) == text, "run python tools/torchaudio_names.py"
    assert text.count("| the same name |") > 100
