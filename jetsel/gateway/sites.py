"""Keeps web pages of others out of a gateway without a token: a browser on this machine would carry their requests.

A page of another site may send forms and simple requests anywhere; a page whose name was made to resolve to this
machine (DNS rebinding) may read the replies, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from jetsel.gateway.settings import ip_address

FORMS = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""Content types that a browser sends to another site without asking it first (Fetch, CORS-safelisted)."""
LOCAL = (".localhost", ".home.arpa", ".internal", ".lan", ".local")
"""Nobody can register a name under these, so that it cannot be made to resolve to this machine."""


def refusal(method: str, headers: Mapping[bytes, str], names: frozenset[str] | None) -> str | None:
    """Return why a request is refused, None if it is not. names: of this machine; None: any host is allowed."""
    host = headers.get(b"host", "")
    if names is not None and host and not _is_local(host, names):
        return (
            f"this gateway does not answer for the host {host[:80]}: use http://localhost or an address; "
            "if a reverse proxy forwards that name, start the gateway with --behind-proxy"
        )
    if _is_of_another_site(method, headers, host):
        return "a web page of another site sent this: open the gateway's own page, or use --token-file"
    return None


def _is_local(host: str, names: frozenset[str]) -> bool:
    """Whether a Host header has an address, a name without a domain, or one that no other site can have."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:  # half an IPv6 address
        return False
    return "." not in name or name in names or name.endswith(LOCAL) or ip_address(name) is not None


def _is_of_another_site(method: str, headers: Mapping[bytes, str], host: str) -> bool:
    """Whether a browser sent this for a page of another site. Other clients send neither of the two headers."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        is_link = method in ("GET", "HEAD") and headers.get(b"sec-fetch-mode") == "navigate"
        return site not in ("same-origin", "none") and not is_link
    origin = headers.get(b"origin")
    if origin is None or headers.get(b"content-type", "").partition(";")[0].strip().lower() not in FORMS:
        return False
    own = {f"{scheme}://{name}" for scheme in ("http", "https") for name in (host, headers.get(b"x-forwarded-host"))}
    return origin.lower() not in {address.lower() for address in own}
