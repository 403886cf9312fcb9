"""Files of `deploy/`: variables are settings, commands and paths exist, formats are valid."""

# compose_spec and yaml are typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from configparser import ConfigParser
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
UNITS = DEPLOY / "systemd"
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


def load_documents(path: Path) -> list[dict[str, Any]]:
    """Return the YAML documents in a file."""
    return list(yaml.safe_load_all(path.read_text()))


def load_unit(name: str) -> ConfigParser:
    """Return the sections of a unit of systemd."""
    unit = ConfigParser(interpolation=None)
    unit.read(UNITS / name)
    return unit


def find_manifest(kind: str, name: str | None = None) -> dict[str, Any]:
    """Return the only manifest of a kind in the base, except the website's, or the one with a name."""
    files = [*sorted(BASE.glob("*.yaml")), DEPLOY / "kubernetes/secret.example.yaml"]
    documents = [each for path in files for each in load_documents(path) if each["kind"] == kind]
    chosen = [
        each
        for each in documents
        if (each["metadata"]["name"] == name if name else each["metadata"]["name"] != SITE)
    ]
    assert len(chosen) == 1
    return chosen[0]


def load_compose() -> dict[str, Any]:
    """Return compose.yaml with its merges applied."""
    return load_documents(DEPLOY / "compose.yaml")[0]


def list_pods() -> Mapping[str, dict[str, Any]]:
    """Return the specifications of the pods that run the image, by the kind of their owner."""
    return {kind: find_manifest(kind)["spec"]["template"]["spec"] for kind in ("Deployment", "Job")}


def list_settings() -> set[str]:
    """Return the variables of all settings, with the id of each chain."""
    providers = all_providers(all_services()).values()
    patterns = [name for provider in providers for name in provider.info.settings]
    every = [name.replace("*", str(chain)) for name in patterns for chain in CHAIN_BY_ID]
    return {f"CENTGATE_{name.upper()}" for name in [*Settings.model_fields, *every]}


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_variables_are_settings(path: Path) -> None:
    named = set(re.findall(r"\bCENTGATE_[A-Z0-9_]+[A-Z0-9]", path.read_text()))

    unknown = {name for name in named if name.removesuffix("_FILE") not in list_settings()}

    assert unknown == set()


def interpolate(text: str, given: Mapping[str, str]) -> str:
    """Return a value with compose's `${NAME:-default}` and `${NAME:?message}` replaced."""
    return re.sub(r"\$\{(\w+):[-?]([^}]*)\}", lambda found: given.get(found[1], found[2]), text)


def test_compose_settings_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"CENTGATE_PAY_TO": ADDRESS, "DOMAIN": "api.facts.example", "SITE_DOMAIN": "facts.example"}
    for name, content in CONTENTS.items():
        (tmp_path / name).write_text(content)
    for name, value in load_compose()["services"]["centgate"]["environment"].items():
        filled = interpolate(value, environment).replace("/run/secrets", str(tmp_path))
        monkeypatch.setenv(name, filled)

    settings = Settings()

    assert settings.pay_to == ADDRESS
    assert (settings.public_url, settings.site_url) == ("https://api.facts.example", "https://facts.example")
    assert settings.database_url == CONTENTS["database_url"].strip()
    assert settings.receipt_key
    assert not settings.cdp_api_key_secret


def test_trusted_proxy_is_caddy_at_a_fixed_address() -> None:
    services = load_compose()["services"]
    (network,) = load_compose()["networks"]["outside"]["ipam"]["config"]
    address = ip_address(services["caddy"]["networks"]["outside"]["ipv4_address"])

    assert services["centgate"]["environment"]["CENTGATE_TRUSTED_PROXIES"] == str(address)
    assert address in ip_network(network["subnet"])
    assert address not in ip_network(network["ip_range"])
    assert IPv4Network(network["ip_range"]).subnet_of(IPv4Network(network["subnet"]))


@pytest.mark.extended
@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_completed_kubernetes_settings_are_valid(overlay: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = load_documents(overlay / "settings.yaml")[0]["data"]
    for name, value in {
        **find_manifest("ConfigMap")["data"],
        **own,
        **find_manifest("Secret")["stringData"],
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="zero address"):
        Settings()  # as shipped, so that no payee is set by mistake
    monkeypatch.setenv("CENTGATE_PAY_TO", ADDRESS)

    assert Settings().database_url.startswith("postgresql://")
    assert get_raw_value("RECEIPT_KEY") is None


@pytest.mark.extended
def test_commands_exist() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    commands = re.findall(r'^CMD \["(\w+)"\]$', dockerfile, re.MULTILINE)
    commands += load_compose()["services"]["migrate"]["command"]
    commands += [pod["containers"][0]["args"][0] for pod in list_pods().values()]
    commands += re.findall(r"centgate (doctor|migrate)\b", (DEPLOY / "README.md").read_text())
    group: Any = typer.main.get_command(app)

    assert {"serve", "migrate", "doctor"} <= set(commands)
    assert [name for name in commands if group.get_command(None, name) is None] == []
    assert 'ENTRYPOINT ["centgate"]' in dockerfile


def test_probed_paths_exist(settings: Settings) -> None:
    there = {route.path for route in create_routes(settings)}
    container = list_pods()["Deployment"]["containers"][0]
    paths = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    paths |= set(re.findall(r"\}(/\w+)'", (DEPLOY / "Dockerfile").read_text()))

    assert paths == {"/livez", "/readyz"}
    assert paths <= there


def test_ports_agree() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    ports = {
        port["name"]: port["containerPort"] for port in list_pods()["Deployment"]["containers"][0]["ports"]
    }
    data = find_manifest("ConfigMap")["data"]
    service = load_compose()["services"]["centgate"]

    assert f"EXPOSE {ports['http']}\n" in dockerfile
    assert f"CENTGATE_PORT={ports['http']} " in dockerfile
    assert f"centgate {ports['http']} {{" in (DEPLOY / "Caddyfile").read_text()
    assert data["CENTGATE_METRICS_PORT"] == service["environment"]["CENTGATE_METRICS_PORT"]
    assert data["CENTGATE_METRICS_PORT"] == str(ports["metrics"])
    assert service["expose"] == [str(ports["http"]), str(ports["metrics"])]
    assert "ports" not in service
    assert [port["targetPort"] for port in find_manifest("Service")["spec"]["ports"]] == ["http"]


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["Deployment", "Job", "site"])
def test_pods_run_without_privileges(kind: str) -> None:
    pod = {**list_pods(), "site": find_manifest("Deployment", SITE)["spec"]["template"]["spec"]}[kind]
    container = pod["containers"][0]["securityContext"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    # a Service called centgate would otherwise set CENTGATE_PORT to an address
    assert pod["enableServiceLinks"] is False


def test_replica_has_enough_time_to_stop() -> None:
    from centgate.runtime import DRAIN_SECONDS, STOP_DELAY_SECONDS
    from centgate.server import SHUTDOWN_SECONDS

    stop_seconds = STOP_DELAY_SECONDS + SHUTDOWN_SECONDS + DRAIN_SECONDS

    pod = list_pods()["Deployment"]
    pause = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])

    assert pod["terminationGracePeriodSeconds"] >= pause + stop_seconds
    grace = load_compose()["services"]["centgate"]["stop_grace_period"]
    assert int(grace.removesuffix("s")) >= stop_seconds


def test_service_of_systemd_stops_in_time_and_only_errors_restart_it() -> None:
    from centgate.runtime import DRAIN_SECONDS, STOP_DELAY_SECONDS
    from centgate.server import SHUTDOWN_SECONDS

    service = load_unit("centgate.service")["Service"]

    assert int(service["TimeoutStopSec"]) >= STOP_DELAY_SECONDS + SHUTDOWN_SECONDS + DRAIN_SECONDS
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("on-failure", "2")  # a wrong setting


def test_units_of_systemd_share_folder_and_user() -> None:
    server, backup = (load_unit(f"{name}.service")["Service"] for name in ("centgate", "centgate-backup"))

    assert server["ExecStart"] == "/opt/centgate/bin/centgate serve"
    assert "exec /opt/centgate/bin/centgate payments backup backups/" in backup["ExecStart"]
    assert "centgate/backups" in backup["StateDirectory"].split()
    assert {name: server[name] for name in ("User", "WorkingDirectory", "UMask")} == {
        name: backup[name] for name in ("User", "WorkingDirectory", "UMask")
    }


@pytest.mark.extended
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_units_of_systemd_are_valid(tmp_path: Path) -> None:
    command = str(Path(sys.executable).parent / "centgate")  # the units name one that is not installed here
    for path in UNITS.iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/centgate/bin/centgate", command))

    found = subprocess.run(
        ["systemd-analyze", "verify", *map(str, tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (found.returncode, found.stderr) == (0, "")


def test_kustomization_has_everything_but_the_example() -> None:
    (kustomization,) = load_documents(BASE / "kustomization.yaml")
    others = {path.name for path in BASE.glob("*.yaml")} - {"kustomization.yaml"}

    assert set(kustomization["resources"]) == others
    assert kustomization["images"][0]["name"] == list_pods()["Deployment"]["containers"][0]["image"]


def test_image_tag_is_package_version() -> None:
    (kustomization,) = load_documents(BASE / "kustomization.yaml")

    assert kustomization["images"][0]["newTag"] == version("centgate")


def test_build_context_has_required_files() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert {name for names in copied for name in names.split()} == let_in
    assert all((ROOT / name).exists() for name in let_in)


def test_compose_keys_are_valid() -> None:
    parsed = compose_spec.PyCompose.from_yaml(yaml.safe_dump(load_compose()))

    assert parsed.validate() is None


@pytest.mark.parametrize(
    "path",
    [path for path in MANIFESTS if path.name != "kustomization.yaml"],
    ids=lambda path: str(path.relative_to(DEPLOY)),
)
def test_manifests_are_valid(path: Path) -> None:
    import kubernetes_validate

    for document in load_documents(path):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_dockerfile_has_no_lint_findings() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint

    done = subprocess.run([hadolint, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.extended
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_overlays_are_valid(overlay: Path) -> None:
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
    settings = [load_documents(overlay / "settings.yaml")[0]["data"] for overlay in OVERLAYS]
    names = [load_documents(overlay / "kustomization.yaml")[0]["namespace"] for overlay in OVERLAYS]

    assert [each["CENTGATE_NETWORK"] for each in settings] == ["eip155:84532", "eip155:8453"]
    assert len(set(names)) == 2
    assert settings[0].keys() == settings[1].keys()


def test_mounted_files_exist_and_secrets_are_described() -> None:
    services = load_compose()["services"]
    mounted = [
        name.split(":")[0] for each in services.values() for name in each.get("volumes", []) if name[0] == "."
    ]
    secrets = {name for each in services.values() for name in each.get("secrets", [])}

    assert mounted
    assert [name for name in mounted if not (DEPLOY / name).is_file()] == []
    assert secrets == set(load_compose()["secrets"]) == set(CONTENTS)
    assert [name for name in secrets if f"secrets/{name}" not in (DEPLOY / "README.md").read_text()] == []


def test_website_and_its_proxy_agree() -> None:
    site, caddy = load_compose()["services"]["site"], (DEPLOY / "Caddyfile").read_text()

    assert f"reverse_proxy site:{site['expose'][0]}" in caddy
    assert site["command"][-1] == site["expose"][0]
    assert "http://centgate:8402" in site["command"]
    assert "secrets" not in site
    assert "Strict-Transport-Security" in caddy
    assert "encode zstd gzip" in caddy


def test_prometheus_reads_metrics_port_and_rules() -> None:
    (prometheus,) = load_documents(DEPLOY / "prometheus.yml")
    (scraped,) = prometheus["scrape_configs"]
    service = load_compose()["services"]["centgate"]

    assert scraped["job_name"] == "centgate"
    assert str(scraped["dns_sd_configs"][0]["port"]) == service["environment"]["CENTGATE_METRICS_PORT"]
    assert prometheus["rule_files"] == ["/etc/prometheus/alerts.yml"]
    assert "./alerts.yml:/etc/prometheus/alerts.yml:ro" in load_compose()["services"]["prometheus"]["volumes"]


def test_rules_are_explained_with_their_severity() -> None:
    groups = load_documents(DEPLOY / "alerts.yml")[0]["groups"]
    rules = {each["alert"]: each for group in groups for each in group["rules"]}
    page = (ROOT / "docs/alerts.md").read_text(encoding="utf-8")

    explained = re.findall(r"^\| `(\w+)` \| (critical|warning) \|", page, re.MULTILINE)

    assert explained == [(name, each["labels"]["severity"]) for name, each in rules.items()]
    assert [name for name, each in rules.items() if not each["annotations"].get("description")] == []


def test_grafana_listens_on_loopback_with_dashboard() -> None:
    grafana = load_compose()["services"]["grafana"]
    (provider,) = load_documents(DEPLOY / "grafana/dashboards.yml")[0]["providers"]
    (source,) = load_documents(DEPLOY / "grafana/datasources.yml")[0]["datasources"]

    assert [each.split(":")[0] for each in grafana["ports"]] == ["127.0.0.1"]
    assert f"{provider['options']['path']}/centgate.json:ro" in " ".join(grafana["volumes"])
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")


def test_example_settings_of_compose_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    given = dict(line.lstrip("#").split("=", 1) for line in lines if re.match(r"#?[A-Z][A-Z0-9_]*=", line))
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CENTGATE_PAY_TO", ADDRESS)

    assert {"DOMAIN", "SITE_DOMAIN"} < given.keys()
    assert Settings().network == "eip155:8453"
