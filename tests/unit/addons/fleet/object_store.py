"""A real S3-compatible server with one bucket."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

BUCKET = "models"


@contextmanager
def bucket(set_variable: Callable[[str, str], None]) -> Iterator[str]:
    """Serve for as long as a `with` lasts; give the address of a folder that nobody else has.

    set_variable: sets those of the environment by which the server is found.
    """
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    set_variable("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    set_variable("AWS_ACCESS_KEY_ID", "testing")
    set_variable("AWS_SECRET_ACCESS_KEY", "testing")
    set_variable("AWS_DEFAULT_REGION", "us-east-1")
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    client.close()
    try:
        yield f"s3://{BUCKET}/{uuid.uuid4().hex}"
    finally:
        server.stop()
