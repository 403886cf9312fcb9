"""Compare Centgate's phishing detector with the JavaScript reference over the same 100,000 addresses.

    .venv/bin/python bench/phishing.py

The reference is the detector of npm eth-phishing-detect 1.2.0 in Node, which does not parse hosts. Centgate's
detector checks the same hosts without parsing, and URLs that it parses first, as for a request. Rates are per
second of processor time, so that other load matters less. On the large list the reference checks fewer
addresses, because it would take minutes.
"""

from __future__ import annotations

import gc
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from centgate.phishing.detector import PhishingDetector, PhishingVerdict
from centgate.phishing.rules import PhishingRules
from centgate.phishing.snapshot import Snapshot, load_shipped, load_snapshot, make_snapshot, pack_snapshot
from centgate.phishing.url import InvalidAddress, parse_address

SEED: Final = 20260822
ADDRESSES: Final = 100_000
LARGE_LIST_ADDRESSES: Final = 1_000
LARGE_LIST_SIZE: Final = 350_000
REFERENCE: Final = "eth-phishing-detect@1.2.0"

# fmt: off
SUBDOMAINS: Final = (
    "www.", "app.", "login.", "claim.", "secure.", "wallet.", "m.", "my.", "web.", "mint.", "nft.",
    "airdrop.", "support.", "a.b.", "x.",
)
ENDINGS: Final = (
    "com", "net", "org", "io", "xyz", "co", "app", "info", "online", "site", "live", "club", "finance",
    "exchange", "cash", "eth.limo", "link", "me", "us", "uk", "de", "fr", "ru", "in", "cn", "top",
    "shop", "store", "tech", "space", "website", "cc", "tv", "gg", "to", "pw", "dev", "network",
    "co.uk", "com.br", "pages.dev", "github.io", "vercel.app",
)
SYLLABLES: Final = (
    "ka", "bo", "lo", "tu", "mi", "ra", "ne", "so", "vi", "da", "pe", "zo", "gi", "fu", "ha", "ri",
    "jo", "ku", "la", "me", "no", "pa", "qu", "re", "sa", "ti", "va", "wu", "xe", "ye",
)
# fmt: on
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789-"

SCRIPT: Final = """
const { readFileSync } = require("node:fs");
const Detector = require("eth-phishing-detect/src/detector");
const [configFile, linesFile] = process.argv.slice(2);
const config = JSON.parse(readFileSync(configFile)), lines = JSON.parse(readFileSync(linesFile));
const detector = new Detector(config);
for (const line of lines.slice(0, 200)) detector.check(line);
const before = process.cpuUsage();
for (const line of lines) detector.check(line);
const { user, system } = process.cpuUsage(before);
const verdicts = lines.map((line) => detector.check(line));
const summaries = verdicts.map(({ type, match }) => [type, match ?? null]);
console.log(JSON.stringify({ seconds: (user + system) / 1e6, verdicts: summaries }));
"""
TYPES: Final = {"allowed": "whitelist", "blocked": "blacklist", "lookalike": "fuzzy", "unknown": "all"}


@dataclass(frozen=True)
class Measurement:
    """Result of one pass over the addresses: checks per second, and the verdict on each address."""

    rate: float
    verdicts: list[list[str | None]]


def main() -> None:
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problem = install_reference(folder)
        if problem:
            console.print(f"reference skipped: {problem}")
        shipped = load_shipped()
        for title, snapshot, reference_count in (
            ("the shipped list", shipped, ADDRESSES),
            ("the large list", enlarge_list(shipped, LARGE_LIST_SIZE), LARGE_LIST_ADDRESSES),
        ):
            measure_list(console, title, snapshot, folder, reference_count=0 if problem else reference_count)


def measure_list(
    console: Console, title: str, snapshot: Snapshot, folder: Path, *, reference_count: int
) -> None:
    """Measure a list with both detectors and print the results.

    `reference_count` is the number of addresses for the reference, 0 to leave it out.
    """
    hosts = make_addresses(snapshot.rules)
    detector = PhishingDetector(snapshot.rules)
    by_host = measure_detector(check_hosts, detector, hosts)
    by_url = measure_detector(check_urls, detector, [f"https://{host}/path" for host in hosts])
    reference = run_reference(folder, snapshot.rules, hosts[:reference_count]) if reference_count else None

    rules = snapshot.rules
    entries = len(rules.allowlist) + len(rules.blocklist) + len(rules.fuzzylist)
    table = Table("detector", "input", "addresses", "checks per CPU-second", "ratio")
    table.title = f"{title}: {entries:,} entries"
    if reference:
        table.add_row("npm 1.2.0 in Node", "hosts", f"{reference_count:,}", f"{reference.rate:,.0f}", "1")
    for label, measurement in (("hosts", by_host), ("URLs, parsed first", by_url)):
        ratio = f"{measurement.rate / reference.rate:,.0f}" if reference else ""
        table.add_row("Centgate", label, f"{ADDRESSES:,}", f"{measurement.rate:,.0f}", ratio)
    console.print(table)
    if reference:
        console.print(compare_verdicts(reference, by_host), compare_verdicts(reference, by_url), sep="\n")
    console.print(measure_loading(snapshot, folder))


def install_reference(folder: Path) -> str | None:
    """Install the reference with npm; return the problem, None after success."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            return f"{tool} is not on the PATH"
    (folder / "package.json").write_text('{"private": true}')
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", REFERENCE]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return f"npm could not install {REFERENCE}: {result.stderr.strip()}" if result.returncode else None


def run_reference(folder: Path, rules: PhishingRules, hosts: Sequence[str]) -> Measurement:
    """Check hosts with the reference; return its rate and its verdicts."""
    config = {
        "whitelist": rules.allowlist,
        "blacklist": rules.blocklist,
        "fuzzylist": rules.fuzzylist,
        "tolerance": rules.tolerance,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "hosts.json").write_text(json.dumps(hosts))
    (folder / "run.js").write_text(SCRIPT)
    command = ["node", "run.js", "config.json", "hosts.json"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    output: dict[str, Any] = json.loads(result.stdout)
    return Measurement(len(hosts) / output["seconds"], output["verdicts"])


def measure_detector(
    check: Callable[[PhishingDetector, Sequence[str]], None], detector: PhishingDetector, texts: Sequence[str]
) -> Measurement:
    """Return the median rate of three passes, and the verdict on each text."""
    rates: list[float] = []
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        check(detector, texts)
        rates.append(len(texts) / (time.process_time() - start))
    return Measurement(sorted(rates)[1], [convert_verdict(find_verdict(detector, text)) for text in texts])


def check_hosts(detector: PhishingDetector, hosts: Sequence[str]) -> None:
    """Check hosts without parsing, as the reference does; only a final dot is removed."""
    for host in hosts:
        detector.check_domain(host.removesuffix("."))


def check_urls(detector: PhishingDetector, texts: Sequence[str]) -> None:
    """Check texts as for a request: parse each as a browser does, then check it."""
    for text in texts:
        try:
            detector.check(parse_address(text))
        except InvalidAddress:
            continue


def find_verdict(detector: PhishingDetector, text: str) -> PhishingVerdict | None:
    """Return the verdict on a text, None if it is not a valid address."""
    try:
        return detector.check(parse_address(text))
    except InvalidAddress:
        return None


def convert_verdict(verdict: PhishingVerdict | None) -> list[str | None]:
    """Return a verdict in the reference's format, which names a match only for lookalikes."""
    if verdict is None:
        return ["refused", None]
    return [TYPES[verdict.status], verdict.match if verdict.status == "lookalike" else None]


def compare_verdicts(reference: Measurement, centgate: Measurement) -> str:
    """Return the numbers of equal, different and invalid addresses as text."""
    pairs = list(zip(reference.verdicts, centgate.verdicts, strict=False))
    invalid = sum(verdict[0] == "refused" for _, verdict in pairs)
    equal = sum(expected == verdict for expected, verdict in pairs)
    different = len(pairs) - equal - invalid
    return f"{len(pairs):,} verdicts: {equal:,} equal, {different:,} different, {invalid:,} of invalid URLs"


def measure_loading(snapshot: Snapshot, folder: Path) -> str:
    """Load a list in a new process; return its size, time and memory as text."""
    path = folder / "list.xz"
    path.write_bytes(pack_snapshot(snapshot))
    result = subprocess.run(
        [sys.executable, __file__, "--load", str(path)], capture_output=True, text=True, check=True
    )
    seconds, kilobytes = map(float, result.stdout.split())
    size, megabytes = path.stat().st_size, kilobytes / 1024
    return f"Centgate loads {size:,} bytes in {seconds * 1000:,.0f} ms and then takes {megabytes:,.1f} MB\n"


def report_loading(path: Path) -> None:
    """Load a list, and print the seconds and the kilobytes of memory that it took."""
    before, start = read_resident_kilobytes(), time.perf_counter()
    detector = PhishingDetector(load_snapshot(path).rules)
    seconds = time.perf_counter() - start
    gc.collect()
    sys.stdout.write(f"{seconds} {read_resident_kilobytes() - before}\n")
    detector.check(parse_address("example.com"))


def read_resident_kilobytes() -> int:
    """Return the resident memory in kilobytes, 0 on systems without /proc."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def enlarge_list(snapshot: Snapshot, size: int) -> Snapshot:
    """Return the list with generated blocklist names, up to `size` entries; the same in each run."""
    rng = random.Random(SEED)
    names = dict.fromkeys(snapshot.rules.blocklist)
    while len(names) < size - len(snapshot.rules.allowlist):
        names[generate_name(rng)] = None
    rules = snapshot.rules
    return make_snapshot(
        PhishingRules(
            rules.allowlist, tuple(names), rules.fuzzylist, tolerance=rules.tolerance, version=rules.version
        ),
        source="generated",
        date=None,
    )


def make_addresses(rules: PhishingRules) -> list[str]:
    """Return `ADDRESSES` hosts, the same in each run.

    50 % are listed names and their subdomains, 30 % generated names, 20 % lookalikes.
    """
    rng = random.Random(SEED)
    return [make_address(rng, rules) for _ in range(ADDRESSES)]


def make_address(rng: random.Random, rules: PhishingRules) -> str:
    kind = rng.random()
    if kind < 0.5:
        return pick_entry(rng, rules)
    if kind < 0.8:
        return (rng.choice(SUBDOMAINS) if rng.random() < 0.3 else "") + generate_name(rng)
    return make_lookalike(rng, rules)


def pick_entry(rng: random.Random, rules: PhishingRules) -> str:
    name = rng.choice(rules.blocklist if rng.random() < 0.9 else rules.allowlist)
    shape = rng.random()
    if shape < 0.5:
        return name
    return rng.choice(SUBDOMAINS) + name if shape < 0.95 else f"{name}."


def generate_name(rng: random.Random) -> str:
    name = "".join(rng.choices(SYLLABLES, k=rng.randint(2, 5)))
    shape = rng.random()
    if shape < 0.15:
        name = f"{name}-{rng.choice(SYLLABLES)}"
    elif shape < 0.3:
        name = f"{name}{rng.randint(1, 99)}"
    return f"{name}.{rng.choice(ENDINGS)}"


def make_lookalike(rng: random.Random, rules: PhishingRules) -> str:
    protected = rules.fuzzylist if rng.random() < 0.8 else rules.allowlist
    stem, _, ending = rng.choice(protected).rpartition(".")
    for _ in range(rng.randint(1, 3)):
        stem = edit_letter(rng, stem)
    ending = ending if rng.random() < 0.5 else rng.choice(ENDINGS)
    return f"{'www.' if rng.random() < 0.15 else ''}{stem or 'a'}.{ending}"


def edit_letter(rng: random.Random, stem: str) -> str:
    position = rng.randrange(len(stem)) if stem else 0
    before, letter, after = stem[:position], stem[position : position + 1], stem[position + 1 :]
    return rng.choice(
        (
            before + after,
            before + rng.choice(LETTERS) + letter + after,
            before + rng.choice(LETTERS) + after,
            before + after[:1] + letter + after[1:],
        )
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        report_loading(Path(sys.argv[2]))
    else:
        main()
