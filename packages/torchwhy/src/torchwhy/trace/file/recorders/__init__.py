"""Files of other recorders, translated into the text of a trace: what follows reads them as it reads PyTorch's."""
