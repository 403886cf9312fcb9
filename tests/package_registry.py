"""Package registry of all languages on loopback, with realistic response bodies and archives."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

Files = Mapping[str, str | bytes]


@dataclass
class PackageRegistry:
    """Answers like PyPI, npm, crates.io, a Go proxy and its checksum database."""

    url: str = ""
    requested_paths: list[str] = field(default_factory=list[str])
    """The requested paths."""
    status: int | None = None
    """Status of every response during an outage."""
    hanging: str | None = None
    """Path whose requests get no answer before the registry ends."""
    ended: threading.Event = field(default_factory=threading.Event)
    archives_released: threading.Event = field(default_factory=threading.Event)
    """Event after which archives are sent."""
    bodies: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def publish_python(
        self, name: str, version: str, files: Files | None, *, releases: int = 40, **more: Any
    ) -> dict[str, Any]:
        """Publish a source distribution, or a release without files; `more` are members of `info`."""
        uploads: list[dict[str, Any]] = []
        if files is not None:
            root = f"{name}-{version}"
            uploads = [
                self.add_upload(
                    f"{root}.tar.gz", make_tar({f"{root}/{path}": each for path, each in files.items()})
                )
            ]
        info: dict[str, Any] = {
            "name": name,
            "version": version,
            "summary": f"What {name} is for.",
            "description": f"# {name}\n",
            "project_urls": {"Source": f"https://github.com/{name}/{name}"},
            "classifiers": [],
            "yanked": False,
            **more,
        }
        others: dict[str, Any] = {f"0.0.{number}": [] for number in range(releases - 1)}
        body: dict[str, Any] = {"info": info, "urls": uploads, "releases": {**others, version: uploads}}
        self.bodies[f"/pypi/{name.lower()}/json"] = json.dumps(body).encode()
        return body

    def add_upload(self, filename: str, content: bytes, **more: Any) -> dict[str, Any]:
        """Return a file entry as PyPI lists it; the file is stored under its digest."""
        digest = hashlib.blake2b(content, digest_size=32).hexdigest()
        path = f"/packages/{digest[:2]}/{digest[2:4]}/{digest[4:]}/{filename}"
        self.bodies[path] = content
        return {
            "filename": filename,
            "packagetype": "bdist_wheel" if filename.endswith(".whl") else "sdist",
            "url": self.url + path,
            "size": len(content),
            "digests": {"sha256": hashlib.sha256(content).hexdigest(), "blake2b_256": digest},
            "upload_time_iso_8601": "2026-09-01T10:00:00.123456Z",
            "yanked": False,
            **more,
        }

    def publish_javascript(
        self, name: str, version: str, files: Files, *, releases: int = 40, **more: Any
    ) -> dict[str, Any]:
        """Publish a package as the latest; `more` are members of its `package.json`."""
        manifest = {
            "name": name,
            "version": version,
            "description": f"What {name} is for.",
            "repository": {"type": "git", "url": f"git+https://github.com/{name.lstrip('@')}.git"},
            **more,
        }
        content = make_tar({f"package/{path}": each for path, each in files.items()})
        path = f"/{name}/-/{name.rsplit('/', 1)[-1]}-{version}.tgz"
        self.bodies[path] = content
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        body = {**manifest, "dist": {"tarball": self.url + path, "integrity": f"sha512-{digest}"}}
        others: dict[str, Any] = {f"0.0.{number}": {} for number in range(releases - 1)}
        listing = {
            "name": name,
            "dist-tags": {"latest": version},
            "versions": {**others, version: body},
            "time": {version: "2026-09-01T10:00:00.123Z"},
        }
        self.bodies[f"/{name}/latest"] = self.bodies[f"/{name}/{version}"] = json.dumps(body).encode()
        self.bodies[f"/{name}"] = json.dumps(listing).encode()
        return body

    def publish_rust(self, name: str, version: str, files: Files, **more: Any) -> dict[str, Any]:
        """Publish a crate; `more` are members of `crate`. Earlier releases of the same name stay."""
        root = f"{name}-{version}"
        content = make_tar({f"{root}/{path}": each for path, each in files.items()})
        self.bodies[f"/crates/{name}/{root}.crate"] = content
        path = f"/api/v1/crates/{name}"
        earlier: list[Any] = json.loads(self.bodies[path])["versions"] if path in self.bodies else []
        release = {
            "num": version,
            "checksum": hashlib.sha256(content).hexdigest(),
            "crate_size": len(content),
            "created_at": "2026-09-01T10:00:00.123456Z",
            "yanked": False,
        }
        crate = {"id": name, "name": name, "description": f"What {name} is for.", **more}
        body: dict[str, Any] = {"crate": crate, "versions": [release, *earlier]}
        self.bodies[path] = json.dumps(body).encode()
        return body

    def publish_go(self, module: str, version: str, files: Files, **origin: Any) -> bytes:
        """Publish a release of a module; earlier ones of the same module stay. `origin` is in its info."""
        content = make_zip({f"{module}@{version}/{path}": each for path, each in files.items()})
        escaped = "".join(f"!{each.lower()}" if each.isupper() else each for each in module)
        module_file = files.get("go.mod", f"module {module}\n")
        info: dict[str, Any] = {"Version": version, "Time": "2026-09-01T10:00:00Z"}
        info |= {"Origin": origin} if origin else {}
        path = f"/{escaped}/@v"
        listed = self.bodies.get(f"{path}/list", b"")
        self.bodies |= {
            f"{path}/list": listed + f"{version}\n".encode(),
            f"{path}/{version}.info": json.dumps(info).encode(),
            f"{path}/{version}.mod": module_file.encode() if isinstance(module_file, str) else module_file,
            f"{path}/{version}.zip": content,
            f"/lookup/{escaped}@{version}": (
                f"31353\n{module} {version} {hash_go_module(content)}\n"
                f"{module} {version}/go.mod h1:NqM8EUOU14njkJ3fqMW+pc6Ldnwhi/IjpwHt7yyuwOQ=\n\n"
                "go.sum database tree\n"
            ).encode(),
        }
        return content

    def count_requests(self, ending: str) -> int:
        """Return the number of requests for paths with this ending."""
        return sum(path.endswith(ending) for path in self.requested_paths)


def hash_go_module(content: bytes) -> str:
    """Return the hash of a module's zip as go.sum writes it (golang.org/x/mod/sumdb/dirhash, `Hash1`)."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        lines = [
            f"{hashlib.sha256(archive.read(name)).hexdigest()}  {name}\n"
            for name in sorted(archive.namelist())
        ]
    return "h1:" + base64.b64encode(hashlib.sha256("".join(lines).encode()).digest()).decode()


def make_tar(files: Files) -> bytes:
    """Return a gzipped tar."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in files.items():
            body = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(path)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return gzip.compress(buffer.getvalue(), mtime=0)


def make_zip(files: Files) -> bytes:
    """Return a zip file, which is also the format of wheels."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return buffer.getvalue()


@contextmanager
def run_package_registry(host: str = "127.0.0.1") -> Generator[PackageRegistry]:
    """Run a registry on a loopback port."""
    registry = PackageRegistry()
    registry.archives_released.set()
    server = _Server((host, 0), _handler(registry))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    registry.url = f"http://{host}:{server.server_address[1]}"
    try:
        yield registry
    finally:
        registry.archives_released.set()
        registry.ended.set()
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True


def _handler(registry: PackageRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the server's own names
            pass

        def do_GET(self) -> None:
            path = unquote(self.path)
            registry.requested_paths.append(path)
            if path.endswith((".tgz", ".tar.gz", ".whl", ".zip")):
                registry.archives_released.wait(30)
            if path == registry.hanging:
                registry.ended.wait(30)
            if registry.status:
                self._send(registry.status, b"<html>down</html>")
            elif path in registry.bodies:
                self._send(200, registry.bodies[path])
            else:
                self._send(404, b'{"error":"Not found"}')

        def _send(self, status: int, body: bytes) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:
                self.close_connection = True

    return Handler
