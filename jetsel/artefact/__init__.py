"""What a calibration is on disk: what it holds, its coding, its history, and the answers that ship beside it."""
