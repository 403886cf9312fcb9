"""Command-line flags of Chromium: no background traffic, nothing that bypasses the proxy."""

from __future__ import annotations

MEGABYTES = 512
"""Maximum JavaScript heap of one page."""

_FEATURES_OFF = (
    # features that Playwright disables, repeated since only the last list counts
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
    # features that contact other servers or the local network
    "AutofillServerCommunication",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "DnsOverHttps",
    "InterestFeedContentSuggestions",
    "Translate",
    "WebRtcHideLocalIpsWithMdns",
    # features that run beside the page or after it
    "BackgroundFetch",
    "Prerender2",
    "SpeculationRulesPrefetchFuture",
    # one process per embedded site; a page's context contains nothing that other sites could steal
    "IsolateOrigins",
    "site-per-process",
)

FLAGS = (
    f"--disable-features={','.join(_FEATURES_OFF)}",
    "--disable-site-isolation-trials",
    "--renderer-process-limit=4",
    # the browser itself resolves no names: only the proxy does
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-client-side-phishing-detection",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
    "--dns-prefetch-disable",
    "--no-crash-upload",
    "--disable-crash-reporter",
    "--disable-extensions",
    "--block-new-web-contents",
    "--disable-notifications",
    "--disable-speech-api",
    "--disable-file-system",
    "--disable-3d-apis",
    "--disable-gpu",
    "--disable-remote-fonts",
    "--disk-cache-size=1",
    "--media-cache-size=1",
    "--blink-settings=imagesEnabled=false,mediaPlaybackRequiresUserGesture=true",
    f"--js-flags=--max-old-space-size={MEGABYTES}",
)

IGNORED_DEFAULT_FLAGS = (
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--enable-unsafe-swiftshader",
    "--unsafely-disable-devtools-self-xss-warnings",
)
"""Default flags of Playwright for tests that are unsafe for untrusted pages."""
