"""How Chromium is started: nothing on its own account, nothing past the proxy."""

from __future__ import annotations

MEGABYTES = 512
"""Of JavaScript objects in one page."""

_FEATURES_OFF = (
    # what Playwright turns off, since the last list is the one that counts
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
    # what talks to others, or to the machine's neighbours
    "AutofillServerCommunication",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "DnsOverHttps",
    "InterestFeedContentSuggestions",
    "Translate",
    "WebRtcHideLocalIpsWithMdns",
    # what would run beside the page or after it
    "BackgroundFetch",
    "Prerender2",
    "SpeculationRulesPrefetchFuture",
    # a process for every site that a page embeds; a page's context has nothing that sites could steal
    "IsolateOrigins",
    "site-per-process",
)

FLAGS = (
    f"--disable-features={','.join(_FEATURES_OFF)}",
    "--disable-site-isolation-trials",
    "--renderer-process-limit=4",
    # names mean nothing to the browser itself: only the proxy looks them up
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

NOT_WANTED = (
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--enable-unsafe-swiftshader",
    "--unsafely-disable-devtools-self-xss-warnings",
)
"""What Playwright starts a browser under test with, and strangers' pages must do without."""
