"""A calibration on disk: content, coding, history, and the condensed recording that ships beside it."""
