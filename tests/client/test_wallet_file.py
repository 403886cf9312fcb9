"""The key, the file it lies in, and what is said of a file that is no good."""

from __future__ import annotations

import copy
import os
import pickle
import stat
import sys
from pathlib import Path

import pytest

from centgate.client.errors import WalletUnreadable
from centgate.client.settings import BuyerSettings
from centgate.client.sync_client import Centgate
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.signing.eip3009 import recover_signer

KEY, ADDRESS = BUYER_ACCOUNTS[0].private_key, BUYER_ACCOUNTS[0].address
posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A key file as it should be."""
    path = tmp_path / "wallet"
    path.write_text(KEY + "\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("text", [KEY, KEY[2:], KEY.upper().replace("0X", "0x"), f"  {KEY}\n\n"])
def test_a_key_is_read_in_any_of_its_spellings(file: Path, text: str) -> None:
    file.write_text(text)

    assert Wallet.from_file(file).address == ADDRESS
    assert Wallet.from_key(text).address == ADDRESS


def test_a_wallet_signs_as_its_address() -> None:
    digest = bytes(range(32))

    assert recover_signer(digest, Wallet.from_key(KEY).sign(digest)) == ADDRESS.lower()


def test_the_key_is_never_shown() -> None:
    wallet = Wallet.from_key(KEY)

    assert KEY[2:10] not in f"{wallet!r} {wallet} {wallet!s}"
    with pytest.raises(TypeError):
        pickle.dumps(wallet)
    with pytest.raises(TypeError):
        copy.deepcopy(wallet)


@posix
def test_a_new_wallet_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "wallet"
    before = os.umask(0)
    try:
        wallet = Wallet.new(path)
    finally:
        os.umask(before)

    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    assert Wallet.from_file(path).address == wallet.address
    assert path.read_text().count("\n") == 1


def test_each_new_wallet_is_another(tmp_path: Path) -> None:
    assert Wallet.new(tmp_path / "a").address != Wallet.new(tmp_path / "b").address


def test_a_key_is_never_written_over(file: Path) -> None:
    with pytest.raises(WalletUnreadable, match="never overwritten"):
        Wallet.new(file)

    assert Wallet.from_file(file).address == ADDRESS


def test_a_link_without_an_end_is_not_followed_to_write_a_key(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    with pytest.raises(WalletUnreadable, match="already exists"):
        Wallet.new(tmp_path / "link")

    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(WalletUnreadable, match="cannot be written"):
        Wallet.new(tmp_path / "file" / "wallet")


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o666, 0o620, 0o610])
def test_a_file_that_others_can_read_or_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)

    with pytest.raises(WalletUnreadable, match=f"chmod 600 {file}"):
        Wallet.from_file(file)


@posix
@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_file_for_its_owner_is_read(file: Path, mode: int) -> None:
    file.chmod(mode)

    assert Wallet.from_file(file).address == ADDRESS


def test_a_link_to_a_key_file_is_fine(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)

    assert Wallet.from_file(tmp_path / "link").address == ADDRESS


BAD = {
    "empty": ("", "is empty"),
    "blank": (" \n", "is empty"),
    "short": (KEY[:-1], "64 hex digits"),
    "long": (KEY + "0", "64 hex digits"),
    "words": ("test test test junk", "64 hex digits"),
    "two keys": (KEY + "\n" + KEY, "64 hex digits"),
    "no digits": ("0x" + "g" * 64, "64 hex digits"),
    "zero": ("0x" + "0" * 64, "not a secp256k1 private key"),
    "beyond the curve": ("0x" + "f" * 64, "not a secp256k1 private key"),
    "a long file": ("0" * 5000, "64 hex digits"),
    "not ascii": ("ключ", "one line of hex"),
}


@pytest.mark.parametrize(("text", "says"), BAD.values(), ids=BAD)
def test_what_is_no_key_is_refused_and_not_repeated(file: Path, text: str, says: str) -> None:
    file.write_text(text)

    with pytest.raises(WalletUnreadable, match=says) as error:
        Wallet.from_file(file)

    assert not text.strip() or text.strip() not in str(error.value)
    assert error.value.money == "not_moved"


def test_a_file_that_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WalletUnreadable, match="centgate wallet new"):
        Wallet.from_file(tmp_path / "none")


def test_a_folder_is_no_key_file(tmp_path: Path) -> None:
    with pytest.raises(WalletUnreadable, match="not a file"):
        Wallet.from_file(tmp_path)


@posix
def test_a_pipe_is_no_key_file_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)

    with pytest.raises(WalletUnreadable, match="not a file"):
        Wallet.from_file(tmp_path / "pipe")


def test_the_key_in_the_environment_wins_over_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_WALLET", str(file))
    monkeypatch.setenv("CENTGATE_WALLET_KEY", BUYER_ACCOUNTS[1].private_key)
    settings = BuyerSettings()

    wallet = settings.open_wallet()

    assert wallet
    assert wallet.address == BUYER_ACCOUNTS[1].address
    assert BUYER_ACCOUNTS[1].private_key[2:] not in repr(settings)


def test_the_key_file_is_named_by_the_environment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_WALLET", str(file))

    wallet = BuyerSettings().open_wallet()

    assert wallet
    assert wallet.address == ADDRESS


def test_without_any_key_there_is_no_wallet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    assert BuyerSettings().open_wallet() is None


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_WALLET", str(tmp_path / "none"))

    with pytest.raises(WalletUnreadable, match="no key file"):
        BuyerSettings().open_wallet()


def test_a_folder_does_not_say_whom_to_pay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("CENTGATE_API_URL=http://evil.internal\nCENTGATE_CAP_TOTAL=1000\n")
    monkeypatch.chdir(tmp_path)

    settings = BuyerSettings()

    assert (settings.api_url, str(settings.cap_total)) == ("http://127.0.0.1:8402", "1.00")


def test_a_client_is_set_up_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_API_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("CENTGATE_LEDGER", str(tmp_path / "ledger"))

    with Centgate.from_settings() as client:
        assert (client.api, client.ledger.path) == ("http://127.0.0.1:9", tmp_path / "ledger")
