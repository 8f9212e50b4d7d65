"""Turns recordings into log-mel spectra in batches; window and filterbank are made once."""

import torch
from torch import nn


class LogMel(nn.Module):
    """Log-mel spectra of recordings of 16 kHz."""

    def __init__(self, size=1024, bands=64):
        super().__init__()
        self.size = size
        self.register_buffer("window", torch.hann_window(size))
        mel = torch.linspace(0, 2595 * torch.log10(torch.tensor(1 + 8000 / 700)), bands + 2)
        hertz = 700 * (10 ** (mel / 2595) - 1)
        bins = torch.linspace(0, 8000, size // 2 + 1)
        rising = (bins - hertz[:-2, None]) / (hertz[1:-1] - hertz[:-2])[:, None]
        falling = (hertz[2:, None] - bins) / (hertz[2:] - hertz[1:-1])[:, None]
        self.register_buffer("bank", torch.minimum(rising, falling).clamp(min=0))

    def forward(self, x):
        spectrum = torch.stft(x, self.size, self.size // 4, window=self.window, return_complex=True)
        power = spectrum.real.square() + spectrum.imag.square()
        return (self.bank @ power).clamp(min=1e-10).log10()


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    log_mel = LogMel()
    recordings = torch.randn(160, 16_000 * 4)
    loudest = [log_mel(batch).amax(dim=(1, 2)) for batch in recordings.split(8)]
    print(f"loudest {torch.cat(loudest).max().item():.2f}")


main()
