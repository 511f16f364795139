"""A stand-in for jetson-stats' client, 4.2 and later: jtop.jtop as its documentation has it, over a service in memory.

Left out: what jetsel does not ask it for, such as `power`.
"""

import threading

__version__ = "4.2.8"


class JtopException(Exception):  # noqa: N818  # its own name
    """What the client raises where the service cannot be reached or speaks another version."""


class Service:
    """The service: a test sets what it says, and what is wrong with it.

    fault: None; "inactive": no client can start; "broken": the connection breaks after the first data; "silent": no
    more data comes after the first. clients: how many are connected.
    """

    def __init__(self):
        self.fault = None
        self.clients = 0
        self.hardware = {"Model": "NVIDIA Jetson AGX Xavier", "L4T": "32.7.1", "Jetpack": "4.6.1"}
        self.nvpmodel = (0, "MAXN")
        self.gpu = {"gv11b": {"type": "integrated", "status": {"load": 98.5}, "freq": {"cur": 1377000}}}


service = Service()


class NVPModel:
    """The power mode."""

    def __init__(self, number, name):
        self.id = number
        self.name = name


class jtop:  # noqa: N801  # its own name
    """The client: a context that connects, whose `ok` waits for new data."""

    def __init__(self, interval=1.0):
        self._interval = interval
        self._running = False
        self._reads = 0
        self._closed = threading.Event()

    def start(self):
        if service.fault == "inactive":
            raise JtopException("The service is not\nactive")
        service.clients += 1
        self._running = True

    def close(self):
        if self._running:
            service.clients -= 1
        self._running = False

    def ok(self, spin=False):
        self._reads += 1
        if self._reads > 1:
            if service.fault == "broken":
                raise ConnectionResetError(104, "Connection reset by peer")
            if service.fault == "silent":
                self.close()
                return False
        if not spin and self._reads > 1:
            self._closed.wait(min(self._interval, 0.01))  # sooner than the real one, for the tests' sake
        return self._running

    @property
    def board(self):
        return {"platform": {}, "hardware": service.hardware, "libraries": {}}

    @property
    def nvpmodel(self):
        return None if service.nvpmodel is None else NVPModel(*service.nvpmodel)

    @property
    def gpu(self):
        return service.gpu

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, error, trace):
        self.close()
        return error is None
