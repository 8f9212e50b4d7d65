"""Training with the Trainer of transformers leaves a run's folder."""

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore")  # what a framework warns of is its own business


def test_training_leaves_a_run(tmp_path, capsys):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from torchwhy.transformers import TorchwhyCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)

        def forward(self, x):
            return {"loss": self.layer(x).square().mean()}

    callback = TorchwhyCallback(tmp_path / "run", wait=1, warmup=1, active=3, stacks=False)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), max_steps=7, per_device_train_batch_size=2, use_cpu=True, report_to=[],
        save_strategy="no", disable_tqdm=True, remove_unused_columns=False,
    )  # fmt: skip
    data = [{"x": torch.randn(8)} for _ in range(16)]
    transformers.Trainer(Model(), arguments, train_dataset=data, callbacks=[callback]).train()
    assert f"torchwhy: the recording is in {tmp_path / 'run'}" in capsys.readouterr().err
    result = callback.session.result
    assert (result.steps_seen, result.steps_recorded) == (7, 3)
    assert {"trace.json.gz", "findings.json", "report.html"} <= {path.name for path in (tmp_path / "run").iterdir()}
    assert [row.calls for row in result.operators if row.name == "aten::addmm"] == [3]
