"""Training with Lightning's Trainer leaves a run's folder."""

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore")  # what a framework warns of is its own business


def test_a_fit_leaves_a_run(tmp_path):
    lightning = pytest.importorskip("lightning.pytorch")
    from torchwhy.lightning import TorchwhyProfiler

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)

        def training_step(self, batch, _):
            return self.layer(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    profiler = TorchwhyProfiler(tmp_path / "run", wait=1, warmup=1, active=3, stacks=False)
    trainer = lightning.Trainer(
        max_epochs=2, profiler=profiler, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(8, 8), batch_size=2))
    result = profiler.session.result
    assert (result.steps_seen, result.steps_recorded) == (8, 3)
    assert {"trace.json.gz", "findings.json", "report.html"} <= {path.name for path in (tmp_path / "run").iterdir()}
    assert [row.calls for row in result.operators if row.name == "aten::addmm"] == [3]
    assert "steps from" in profiler.summary()
