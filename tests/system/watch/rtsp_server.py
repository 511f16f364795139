"""A camera on the network: an RTSP server of GStreamer's on loopback, for the system's own Python (python3-gi).

It prints its port. A number on its standard input chooses the pattern that the camera sees, as videotestsrc counts.
"""

import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

CAMERA = (
    "( videotestsrc name=camera is-live=true ! video/x-raw,width=320,height=240,framerate=15/1 ! videoconvert"
    " ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=15 ! rtph264pay name=pay0 pt=96 )"
)


def main() -> None:
    Gst.init(None)
    patterns = {"now": int(sys.argv[2])}
    cameras = []

    def configure(_: GstRtspServer.RTSPMediaFactory, media: GstRtspServer.RTSPMedia) -> None:
        camera = media.get_element().get_by_name("camera")
        camera.set_property("pattern", patterns["now"])
        cameras.append(camera)

    def listen() -> None:
        for line in sys.stdin:
            patterns["now"] = int(line)
            for camera in cameras:
                camera.set_property("pattern", patterns["now"])

    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(sys.argv[1])
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(CAMERA)
    factory.set_shared(True)
    factory.connect("media-configure", configure)
    server.get_mount_points().add_factory("/door", factory)
    server.attach(None)
    threading.Thread(target=listen, daemon=True).start()
    print(server.get_bound_port(), flush=True)
    GLib.MainLoop().run()


main()
