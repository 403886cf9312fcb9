"""Well-known libraries of other ecosystems than Python and JavaScript, and standard libraries.

Packages of these names are namesakes.

Names that a popular package of PyPI or npm has too (`regex`, `rack`, `signalr`) are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

CRATES = (
    *("actix", "actix-web", "ahash", "anyhow", "askama", "async-std", "async-trait", "axum", "bevy"),
    *("bincode", "bindgen", "bitflags", "clap", "color-eyre", "crossbeam", "crossterm", "dashmap"),
    *("derive_more", "diesel", "dioxus", "egui", "embassy", "env_logger", "eyre", "hyper", "indexmap"),
    *("lazy_static", "leptos", "mockall", "nalgebra", "native-tls", "nom", "num-traits"),
    *("once_cell", "parking_lot", "pest", "prost", "proptest", "pyo3", "ratatui", "rayon", "reqwest"),
    *("rocket", "rusqlite", "rustls", "sea-orm", "serde", "serde_json", "serde_yaml", "smallvec"),
    *("snafu", "sqlx", "structopt", "strum", "thiserror", "tokio", "tokio-stream", "tokio-util"),
    *("tonic", "tower-http", "tracing-subscriber", "wasm-bindgen", "winit", "yew"),
)
"""Crates, by their names on crates.io."""

OTHER_ECOSYSTEMS: Mapping[str, tuple[str, ...]] = {
    "Ruby": (
        *("active admin", "active record", "brakeman", "cancancan", "capistrano", "capybara", "carrierwave"),
        *("cocoapods", "delayed_job", "devise", "dry-rb", "factory_bot", "faraday", "fastlane", "hanami"),
        *("httparty", "jekyll", "kaminari", "nokogiri", "omniauth", "pundit", "puma", "rails", "rails/rails"),
        *("resque", "rspec", "rubocop", "ruby on rails", "sidekiq", "simplecov", "sinatra", "solidus"),
        *("will_paginate",),
    ),
    "PHP": (
        *("cakephp", "codeigniter", "doctrine", "drupal", "eloquent", "flysystem", "guzzle", "guzzlehttp"),
        *("guzzlehttp/guzzle", "laminas", "laravel", "laravel/framework", "livewire", "magento", "monolog"),
        *("phpmailer", "phpstan", "phpunit", "predis", "swiftmailer", "symfony", "symfony/symfony"),
        *("wordpress", "yii", "yii2"),
    ),
    "Java": (
        *("apache commons", "assertj", "dropwizard", "gson", "guava", "hibernate", "hikaricp", "jackson"),
        *("javafx", "jetpack compose", "joda-time", "jooq", "junit", "ktor", "libgdx", "log4j", "logback"),
        *("lombok", "mapstruct", "micronaut", "mockito", "mybatis", "netty", "okhttp", "project reactor"),
        *("quarkus", "resilience4j", "retrofit", "rxjava", "slf4j", "spring", "spring boot", "spring cloud"),
        *("spring data", "spring framework", "spring mvc", "spring security", "spring webflux"),
        *("square/okhttp", "thymeleaf", "vert.x"),
    ),
    ".NET": (
        *("asp.net", "asp.net core", "autofac", "automapper", "avalonia", "benchmarkdotnet", "blazor"),
        *("dapper", "ef core", "entity framework", "entity framework core", "fluentassertions"),
        *(
            "fluentvalidation",
            "hangfire",
            "masstransit",
            "mediatr",
            "moq",
            "newtonsoft.json",
            "nlog",
            "nunit",
        ),
        *("serilog", "xamarin", "xunit"),
    ),
    "Swift": (
        *("alamofire", "composable architecture", "grdb", "kingfisher", "moya", "promisekit", "rxswift"),
        *("snapkit", "swiftlint", "swift-nio", "swiftui", "swiftyjson", "vapor"),
    ),
    "Elixir": (
        "absinthe",
        "ecto",
        "oban",
        "phoenix framework",
        "phoenix liveview",
        "phoenixframework/phoenix",
    ),
    "Dart": ("flutter", "flutter bloc", "riverpod"),
}
"""Names by ecosystem, of those whose registries are not read."""

ECOSYSTEM_WORDS: Mapping[str, tuple[str, ...]] = {
    "Ruby": ("ruby", "gem", "rubygem", "rubygems"),
    "PHP": ("php", "packagist"),
    "Java": ("java", "kotlin", "maven", "gradle", "jvm"),
    ".NET": (".net", "dotnet", "c#", "csharp", "nuget"),
    "Swift": ("swift", "swiftpm"),
    "Elixir": ("elixir", "hex.pm"),
    "Dart": ("dart", "pub.dev"),
}
"""Words before or after a name that say in which ecosystem it is."""

LANGUAGES_AND_RUNTIMES = """
    c c++ c# cpython deno elixir go golang java javascript kotlin node node.js nodejs perl php pypy python
    python2 python3 ruby rust swift
"""
NODE_MODULES = """
    assert assert/strict async_hooks buffer child_process cluster console constants crypto dgram
    diagnostics_channel dns dns/promises domain events fs fs/promises http http2 https inspector
    inspector/promises module net os path path/posix path/win32 perf_hooks process punycode querystring
    readline readline/promises repl stream stream/consumers stream/promises stream/web string_decoder
    sys timers timers/promises tls trace_events tty url util util/types v8 vm wasi worker_threads zlib
"""
"""Modules of Node.js, as its `module.builtinModules` lists them, without those that begin with `_`."""
PREFIXED_NODE_MODULES = "sea sqlite test test/reporters"
"""Modules of Node.js that have a name with `node:` alone."""


def find_standard_library(name: str) -> str | None:
    """Return what comes without a package and has a name: "a module of Node.js"; None for other names."""
    key = " ".join(name.lower().split())
    if key in LANGUAGES_AND_RUNTIMES.split():
        return "a language or a runtime"
    in_python = key in sys.stdlib_module_names
    module = key.removeprefix("node:")
    in_node = module in NODE_MODULES.split() or (module != key and module in PREFIXED_NODE_MODULES.split())
    if in_python and in_node:
        return "a module of Python and of Node.js"
    return "a module of Python" if in_python else "a module of Node.js" if in_node else None
