"""Copies between host and device, copies on the device, memory."""
