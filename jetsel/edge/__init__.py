"""Models on a bigger machine: a child process that asks them over HTTP, and what the path there costs."""
