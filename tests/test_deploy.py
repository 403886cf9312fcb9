"""What `deploy/` says is so: variables are settings, commands and paths exist, files are well-formed."""

# compose_spec and yaml are typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from ipaddress import IPv4Network, ip_address, ip_network
from pathlib import Path
from typing import Any

import compose_spec
import pytest
import typer
import yaml

from centgate.api.app import create_routes
from centgate.catalog import all_providers, all_services
from centgate.chains import CHAIN_BY_ID
from centgate.cli.main import app
from centgate.settings import Settings, get_raw_value

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
BASE = DEPLOY / "kubernetes/base"
OVERLAYS = [DEPLOY / "kubernetes/overlays" / name for name in ("staging", "production")]
MANIFESTS = sorted(DEPLOY.glob("kubernetes/**/*.yaml"))
OURS = [
    DEPLOY / name for name in ("Dockerfile", "compose.yaml", ".env.example", "Caddyfile", "README.md")
] + MANIFESTS
SITE = "centgate-site"
ADDRESS = "0x1111111111111111111111111111111111111111"
CONTENTS = {
    "database_url": "postgresql://centgate:word@postgres:5432/centgate\n",
    "cdp_api_key_secret": "\n",
    "receipt_key": "22" * 32 + "\n",
    "database_password": "word\n",
    "grafana_password": "word\n",
}


def loaded(path: Path) -> list[dict[str, Any]]:
    """The documents in a file."""
    return list(yaml.safe_load_all(path.read_text()))


def manifest(kind: str, name: str | None = None) -> dict[str, Any]:
    """The one manifest of a kind in the base, beside those of the website; or the one with a name."""
    files = [*sorted(BASE.glob("*.yaml")), DEPLOY / "kubernetes/secret.example.yaml"]
    documents = [each for path in files for each in loaded(path) if each["kind"] == kind]
    chosen = [
        each
        for each in documents
        if (each["metadata"]["name"] == name if name else each["metadata"]["name"] != SITE)
    ]
    assert len(chosen) == 1
    return chosen[0]


def compose() -> dict[str, Any]:
    """compose.yaml, its merges made."""
    return loaded(DEPLOY / "compose.yaml")[0]


def pods() -> Mapping[str, dict[str, Any]]:
    """The pods that run the image, by the kind of what makes them."""
    return {kind: manifest(kind)["spec"]["template"]["spec"] for kind in ("Deployment", "Job")}


def known() -> set[str]:
    """The names of every setting, with the id of each chain."""
    providers = all_providers(all_services()).values()
    patterns = [name for provider in providers for name in provider.info.settings]
    every = [name.replace("*", str(chain)) for name in patterns for chain in CHAIN_BY_ID]
    return {f"CENTGATE_{name.upper()}" for name in [*Settings.model_fields, *every]}


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_variable_is_a_setting(path: Path) -> None:
    named = set(re.findall(r"\bCENTGATE_[A-Z0-9_]+[A-Z0-9]", path.read_text()))

    unknown = {name for name in named if name.removesuffix("_FILE") not in known()}

    assert unknown == set()


def interpolated(text: str, given: Mapping[str, str]) -> str:
    """A value with compose's `${NAME:-default}` and `${NAME:?message}` filled in."""
    return re.sub(r"\$\{(\w+):[-?]([^}]*)\}", lambda found: given.get(found[1], found[2]), text)


def test_the_settings_of_compose_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"CENTGATE_PAY_TO": ADDRESS, "DOMAIN": "api.facts.example", "SITE_DOMAIN": "facts.example"}
    for name, content in CONTENTS.items():
        (tmp_path / name).write_text(content)
    for name, value in compose()["services"]["centgate"]["environment"].items():
        filled = interpolated(value, given).replace("/run/secrets", str(tmp_path))
        monkeypatch.setenv(name, filled)

    settings = Settings()

    assert settings.pay_to == ADDRESS
    assert (settings.public_url, settings.site_url) == ("https://api.facts.example", "https://facts.example")
    assert settings.database_url == CONTENTS["database_url"].strip()
    assert settings.receipt_key
    assert not settings.cdp_api_key_secret


def test_the_proxy_that_is_trusted_is_caddy_at_an_address_of_its_own() -> None:
    services = compose()["services"]
    (network,) = compose()["networks"]["outside"]["ipam"]["config"]
    address = ip_address(services["caddy"]["networks"]["outside"]["ipv4_address"])

    assert services["centgate"]["environment"]["CENTGATE_TRUSTED_PROXIES"] == str(address)
    assert address in ip_network(network["subnet"])
    assert address not in ip_network(network["ip_range"])
    assert IPv4Network(network["ip_range"]).subnet_of(IPv4Network(network["subnet"]))


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_the_settings_of_kubernetes_can_be_read_once_they_are_filled_in(
    overlay: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = loaded(overlay / "settings.yaml")[0]["data"]
    for name, value in {**manifest("ConfigMap")["data"], **own, **manifest("Secret")["stringData"]}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="zero address"):
        Settings()  # as it is shipped, so that nobody is paid by mistake
    monkeypatch.setenv("CENTGATE_PAY_TO", ADDRESS)

    assert Settings().database_url.startswith("postgresql://")
    assert get_raw_value("RECEIPT_KEY") is None


def test_every_command_that_is_run_exists() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    commands = re.findall(r'^CMD \["(\w+)"\]$', dockerfile, re.MULTILINE)
    commands += compose()["services"]["migrate"]["command"]
    commands += [pod["containers"][0]["args"][0] for pod in pods().values()]
    commands += re.findall(r"centgate (doctor|migrate)\b", (DEPLOY / "README.md").read_text())
    group: Any = typer.main.get_command(app)

    assert {"serve", "migrate", "doctor"} <= set(commands)
    assert [name for name in commands if group.get_command(None, name) is None] == []
    assert 'ENTRYPOINT ["centgate"]' in dockerfile


def test_every_probe_asks_a_path_that_there_is(settings: Settings) -> None:
    there = {route.path for route in create_routes(settings)}
    container = pods()["Deployment"]["containers"][0]
    asked = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    asked |= set(re.findall(r"\}(/\w+)'", (DEPLOY / "Dockerfile").read_text()))

    assert asked == {"/livez", "/readyz"}
    assert asked <= there


def test_ports_agree() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    ports = {port["name"]: port["containerPort"] for port in pods()["Deployment"]["containers"][0]["ports"]}
    data = manifest("ConfigMap")["data"]
    service = compose()["services"]["centgate"]

    assert f"EXPOSE {ports['http']}\n" in dockerfile
    assert f"CENTGATE_PORT={ports['http']} " in dockerfile
    assert f"centgate {ports['http']} {{" in (DEPLOY / "Caddyfile").read_text()
    assert data["CENTGATE_METRICS_PORT"] == service["environment"]["CENTGATE_METRICS_PORT"]
    assert data["CENTGATE_METRICS_PORT"] == str(ports["metrics"])
    assert service["expose"] == [str(ports["http"]), str(ports["metrics"])]
    assert "ports" not in service
    assert [port["targetPort"] for port in manifest("Service")["spec"]["ports"]] == ["http"]


@pytest.mark.parametrize("kind", ["Deployment", "Job", "site"])
def test_pods_run_without_rights(kind: str) -> None:
    pod = {**pods(), "site": manifest("Deployment", SITE)["spec"]["template"]["spec"]}[kind]
    container = pod["containers"][0]["securityContext"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    # a Service called centgate would otherwise set CENTGATE_PORT to an address
    assert pod["enableServiceLinks"] is False


def test_a_replica_has_the_time_it_takes_to_stop() -> None:
    from centgate.runtime import DRAIN_SECONDS
    from centgate.server import SHUTDOWN_SECONDS

    pod = pods()["Deployment"]
    pause = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])

    assert pod["terminationGracePeriodSeconds"] >= pause + SHUTDOWN_SECONDS + DRAIN_SECONDS
    assert (
        int(compose()["services"]["centgate"]["stop_grace_period"].removesuffix("s"))
        >= SHUTDOWN_SECONDS + DRAIN_SECONDS
    )


def test_everything_is_in_the_kustomization_but_the_example() -> None:
    (kustomization,) = loaded(BASE / "kustomization.yaml")
    others = {path.name for path in BASE.glob("*.yaml")} - {"kustomization.yaml"}

    assert set(kustomization["resources"]) == others
    assert kustomization["images"][0]["name"] == pods()["Deployment"]["containers"][0]["image"]


def test_image_tag_is_the_packages_version() -> None:
    (kustomization,) = loaded(BASE / "kustomization.yaml")

    assert kustomization["images"][0]["newTag"] == version("centgate")


def test_what_the_image_is_made_of_is_let_in() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert {name for names in copied for name in names.split()} == let_in
    assert all((ROOT / name).exists() for name in let_in)


def test_compose_knows_every_key() -> None:
    parsed = compose_spec.PyCompose.from_yaml(yaml.safe_dump(compose()))

    assert parsed.validate() is None


@pytest.mark.parametrize(
    "path",
    [path for path in MANIFESTS if path.name != "kustomization.yaml"],
    ids=lambda path: str(path.relative_to(DEPLOY)),
)
def test_manifests_are_what_kubernetes_takes(path: Path) -> None:
    import kubernetes_validate

    for document in loaded(path):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_the_dockerfile_has_nothing_to_lint() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint

    done = subprocess.run([hadolint, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_overlays_are_what_kubernetes_takes(overlay: Path) -> None:
    import kubernetes_validate

    built = subprocess.run(["kubectl", "kustomize", overlay], capture_output=True, text=True, check=True)
    documents = list(yaml.safe_load_all(built.stdout))
    settings = next(each["data"] for each in documents if each["kind"] == "ConfigMap")
    namespaces = {each["metadata"].get("namespace") for each in documents if each["kind"] != "Namespace"}

    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    assert {"CENTGATE_PAY_TO", "CENTGATE_PUBLIC_URL", "CENTGATE_CACHE_URL"} <= settings.keys()
    assert len(namespaces) == 1


def test_overlays_differ_in_money_and_namespace() -> None:
    settings = [loaded(overlay / "settings.yaml")[0]["data"] for overlay in OVERLAYS]
    names = [loaded(overlay / "kustomization.yaml")[0]["namespace"] for overlay in OVERLAYS]

    assert [each["CENTGATE_NETWORK"] for each in settings] == ["eip155:84532", "eip155:8453"]
    assert len(set(names)) == 2
    assert settings[0].keys() == settings[1].keys()


def test_files_that_compose_mounts_exist_and_secrets_are_described() -> None:
    services = compose()["services"]
    mounted = [
        name.split(":")[0] for each in services.values() for name in each.get("volumes", []) if name[0] == "."
    ]
    secrets = {name for each in services.values() for name in each.get("secrets", [])}

    assert mounted
    assert [name for name in mounted if not (DEPLOY / name).is_file()] == []
    assert secrets == set(compose()["secrets"]) == set(CONTENTS)
    assert [name for name in secrets if f"secrets/{name}" not in (DEPLOY / "README.md").read_text()] == []


def test_the_website_and_its_proxy_agree() -> None:
    site, caddy = compose()["services"]["site"], (DEPLOY / "Caddyfile").read_text()

    assert f"reverse_proxy site:{site['expose'][0]}" in caddy
    assert site["command"][-1] == site["expose"][0]
    assert "http://centgate:8402" in site["command"]
    assert "secrets" not in site
    assert "Strict-Transport-Security" in caddy
    assert "encode zstd gzip" in caddy


def test_prometheus_reads_the_metrics_port_and_our_rules() -> None:
    (prometheus,) = loaded(DEPLOY / "prometheus.yml")
    (scraped,) = prometheus["scrape_configs"]
    service = compose()["services"]["centgate"]

    assert scraped["job_name"] == "centgate"
    assert str(scraped["dns_sd_configs"][0]["port"]) == service["environment"]["CENTGATE_METRICS_PORT"]
    assert prometheus["rule_files"] == ["/etc/prometheus/alerts.yml"]
    assert "./alerts.yml:/etc/prometheus/alerts.yml:ro" in compose()["services"]["prometheus"]["volumes"]


def test_grafana_is_on_the_loopback_address_and_has_the_dashboard() -> None:
    grafana = compose()["services"]["grafana"]
    (provider,) = loaded(DEPLOY / "grafana/dashboards.yml")[0]["providers"]
    (source,) = loaded(DEPLOY / "grafana/datasources.yml")[0]["datasources"]

    assert [each.split(":")[0] for each in grafana["ports"]] == ["127.0.0.1"]
    assert f"{provider['options']['path']}/centgate.json:ro" in " ".join(grafana["volumes"])
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")


def test_settings_in_the_example_of_compose_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    given = dict(line.lstrip("#").split("=", 1) for line in lines if re.match(r"#?[A-Z][A-Z0-9_]*=", line))
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CENTGATE_PAY_TO", ADDRESS)

    assert {"DOMAIN", "SITE_DOMAIN"} < given.keys()
    assert Settings().network == "eip155:8453"
