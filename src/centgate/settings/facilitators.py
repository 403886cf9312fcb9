"""Settings of the facilitators that settle payments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256

from pydantic import Field, SecretStr, field_validator
from yarl import URL

from centgate.environment import PREFIX
from centgate.settings.terms import TermsSettings

CDP_FACILITATOR = "https://api.cdp.coinbase.com/platform/v2/x402"
TEST_FACILITATOR = "https://x402.org/facilitator"


@dataclass(frozen=True, slots=True)
class FacilitatorAccount:
    """One facilitator of the deployment: its address and the keys for it."""

    setting: str
    """Beginning of the names of its settings: `<setting>_URL` and `<setting>_TOKEN`."""
    cdp_setting: str
    """The same for `<cdp_setting>_API_KEY_ID` and `<cdp_setting>_API_KEY_SECRET`."""
    url: str = field(repr=False)
    """Without a trailing slash. It may contain a password."""
    token: SecretStr | None = None
    cdp_api_key_id: str | None = None
    cdp_api_key_secret: SecretStr | None = None

    @property
    def name(self) -> str:
        """Its name in the journal and in messages: the origin, and a digest of a path, which may be a key.

        Credentials are not part of it, so that a changed password does not make it another facilitator.
        """
        try:
            address = URL(self.url)
            origin, path = str(address.origin()), address.raw_path.rstrip("/")
        except ValueError:  # refused at the start, with a message
            origin, path = "invalid", self.url
        return f"{origin}#{sha256(path.encode()).hexdigest()[:8]}" if path else origin

    @property
    def lacks_key(self) -> bool:
        """True if it requires a key and none is set."""
        return self.url == CDP_FACILITATOR and not (self.cdp_api_key_id or self.token)


class FacilitatorSettings(TermsSettings):
    """The facilitator and its fallback; the default depends on the payment network."""

    facilitator_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^?#]+$",
        description="The x402 facilitator that settles payments. Default: on a test network "
        f"{TEST_FACILITATOR}, elsewhere {CDP_FACILITATOR}, which needs the two CDP settings below.",
    )
    facilitator_token: SecretStr | None = Field(
        default=None, description="A bearer token for the facilitator, if it requires one."
    )
    cdp_api_key_id: str | None = Field(
        default=None, description="Coinbase Developer Platform: the id of a secret API key."
    )
    cdp_api_key_secret: SecretStr | None = Field(
        default=None,
        description="Coinbase Developer Platform: the key's secret, Ed25519 in base64 or EC (P-256) as PEM.",
    )
    facilitator_fallback_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^?#]+$",
        description="A second x402 facilitator. It gets a new payment that surely never reached the first: "
        "no connection, a failed TLS handshake, or status 429. A payment whose outcome is unknown stays with "
        "the facilitator that has it; a replaced facilitator can be kept here until none is left.",
    )
    facilitator_fallback_token: SecretStr | None = Field(
        default=None, description="A bearer token for the second facilitator, if it requires one."
    )
    facilitator_fallback_cdp_api_key_id: str | None = Field(
        default=None, description="The id of a secret API key, if the second facilitator is Coinbase's."
    )
    facilitator_fallback_cdp_api_key_secret: SecretStr | None = Field(
        default=None, description="The secret of that key."
    )
    facilitator_timeout: float = Field(
        default=30, gt=0, le=300, description="Timeout of a facilitator for a settlement, in seconds."
    )

    @field_validator("facilitator_token", "facilitator_fallback_token")
    @classmethod
    def _check_facilitator_token(cls, value: SecretStr | None) -> SecretStr | None:
        token = value.get_secret_value().strip() if value else ""
        if not re.fullmatch(r"[!-~]*", token):
            raise ValueError("a token may contain only printable ASCII without spaces")
        return SecretStr(token) if token else None

    def _check_facilitators(self) -> None:
        """Raise ValueError unless both facilitators are complete and different."""
        if bool(self.cdp_api_key_id) != bool(self.cdp_api_key_secret):
            raise ValueError("CENTGATE_CDP_API_KEY_ID and CENTGATE_CDP_API_KEY_SECRET must be set together")
        self._check_fallback()

    def _check_fallback(self) -> None:
        """Raise ValueError unless the settings of a second facilitator are complete and name another one."""
        prefix = f"{PREFIX}FACILITATOR_FALLBACK"
        key_id, secret = (
            self.facilitator_fallback_cdp_api_key_id,
            self.facilitator_fallback_cdp_api_key_secret,
        )
        if bool(key_id) != bool(secret):
            raise ValueError(f"{prefix}_CDP_API_KEY_ID and {prefix}_CDP_API_KEY_SECRET must be set together")
        if self.facilitator_fallback_url is None:
            if key_id or self.facilitator_fallback_token:
                raise ValueError(f"{prefix}_URL is not set, and the key or token of that facilitator is")
        elif self.facilitators[0].name == self.facilitators[1].name:
            raise ValueError(f"{prefix}_URL is the first facilitator's address")

    @property
    def facilitator(self) -> str:
        """The URL of the facilitator, without a trailing slash."""
        default = CDP_FACILITATOR if self.development_chain is None else TEST_FACILITATOR
        return (self.facilitator_url or default).rstrip("/")

    @property
    def facilitators(self) -> tuple[FacilitatorAccount, ...]:
        """The first facilitator, and the second if there is one."""
        first = FacilitatorAccount(
            f"{PREFIX}FACILITATOR",
            f"{PREFIX}CDP",
            self.facilitator,
            self.facilitator_token,
            self.cdp_api_key_id,
            self.cdp_api_key_secret,
        )
        if self.facilitator_fallback_url is None:
            return (first,)
        second = FacilitatorAccount(
            f"{PREFIX}FACILITATOR_FALLBACK",
            f"{PREFIX}FACILITATOR_FALLBACK_CDP",
            self.facilitator_fallback_url.rstrip("/"),
            self.facilitator_fallback_token,
            self.facilitator_fallback_cdp_api_key_id,
            self.facilitator_fallback_cdp_api_key_secret,
        )
        return (first, second)
