"""Cameras on the network, for the system's own Python (python3-gi): an RTSP server of GStreamer's on loopback.

`python3 rtsp_cameras.py CAMERAS FRAMES_PER_S`: each camera, /0 to /N-1, shows a pattern of videotestsrc. It prints its
port. A line `CAMERA PATTERN` on its standard input changes what one shows.
"""

import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

CAMERA = (
    "( videotestsrc name=camera is-live=true ! video/x-raw,width=640,height=480,framerate={rate}/1 ! videoconvert"
    " ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max={rate} ! rtph264pay name=pay0 pt=96 )"
)


def main() -> None:
    """Serve until the end of the process."""
    Gst.init(None)
    count, rate = int(sys.argv[1]), int(sys.argv[2])
    patterns = [0] * count
    sources = [[] for _ in range(count)]

    def configured(_: GstRtspServer.RTSPMediaFactory, media: GstRtspServer.RTSPMedia, number: int) -> None:
        source = media.get_element().get_by_name("camera")
        source.set_property("pattern", patterns[number])
        sources[number].append(source)

    def listen() -> None:
        for line in sys.stdin:
            number, pattern = map(int, line.split())
            patterns[number] = pattern
            for source in sources[number]:
                source.set_property("pattern", pattern)

    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service("0")
    for number in range(count):
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch(CAMERA.format(rate=rate))
        factory.set_shared(True)
        factory.connect("media-configure", configured, number)
        server.get_mount_points().add_factory(f"/{number}", factory)
    server.attach(None)
    threading.Thread(target=listen, daemon=True).start()
    print(server.get_bound_port(), flush=True)
    GLib.MainLoop().run()


main()
