"""Questions about libraries on which nothing was tuned, written down before they were first asked.

Each has a pattern of the name that a right snippet shows. All are how-to questions: a right answer shows a
call with its context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

HELD_OUT: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "click": (
        ("add an option with a default value", r"option\("),
        ("group several commands", r"group\("),
        ("prompt for a password", r"hide_input|password_option"),
        ("test a command", r"CliRunner"),
        ("show a progress bar", r"progressbar"),
    ),
    "typer": (
        ("add a required argument", r"Argument\("),
        ("option with a prompt", r"prompt"),
        ("add subcommands", r"add_typer"),
        ("exit with an error code", r"Exit\("),
        ("test an application", r"CliRunner"),
    ),
    "requests": (
        ("send a post request with json", r"post\("),
        ("set a timeout", r"timeout"),
        ("keep cookies between requests", r"Session\("),
        ("basic authentication", r"auth=|HTTPBasicAuth"),
        ("upload a file", r"files"),
    ),
    "aiohttp": (
        ("make a get request with a client session", r"ClientSession"),
        ("write a simple web server", r"web\.(?:Application|run_app)"),
        ("set a timeout on requests", r"ClientTimeout"),
        ("websocket handler in the server", r"WebSocketResponse"),
        ("middleware of a web application", r"web\.middleware|@middleware|middlewares"),
    ),
    "pytest": (
        ("parametrize a test", r"parametrize"),
        ("write a fixture with cleanup", r"fixture"),
        ("check that an exception is raised", r"raises\("),
        ("replace an attribute during a test", r"monkeypatch"),
        ("temporary directory in a test", r"tmp_path"),
    ),
    "jinja2": (
        ("load templates from a folder", r"FileSystemLoader"),
        ("write a custom filter", r"filters\["),
        ("template inheritance with blocks", r"extends"),
        ("escape html automatically", r"autoescape"),
        ("render a template with variables", r"render\("),
    ),
    "celery": (
        ("define a task", r"\.task|shared_task"),
        ("retry a task after an error", r"retry"),
        ("run a task periodically", r"beat_schedule|add_periodic_task"),
        ("chain several tasks", r"chain\("),
        ("call a task with a countdown", r"apply_async"),
    ),
    "redis": (
        ("connect to a server", r"Redis\("),
        ("run several commands in a pipeline", r"pipeline\("),
        ("subscribe to a channel", r"pubsub|subscribe"),
        ("use asyncio", r"redis\.asyncio|asyncio"),
        ("set a key that expires", r"\bex\b|expire|setex"),
    ),
    "attrs": (
        ("define a class with attributes", r"@(?:attr\.s|attrs\.define|define|frozen)"),
        ("validate an attribute", r"validator"),
        ("default value from a factory", r"[Ff]actory"),
        ("convert a value on initialisation", r"converter"),
        ("turn an instance into a dict", r"asdict"),
    ),
    "rich": (
        ("print a table", r"Table\("),
        ("show a progress bar", r"track\(|Progress\("),
        ("pretty tracebacks", r"traceback"),
        ("logging handler", r"RichHandler"),
        ("render markdown in the terminal", r"Markdown\("),
    ),
    "polars": (
        ("read a csv file lazily", r"scan_csv"),
        ("group by and aggregate", r"group_by"),
        ("join two data frames", r"\.join\("),
        ("add a computed column", r"with_columns"),
        ("filter rows by a condition", r"\.filter\("),
    ),
    "marshmallow": (
        ("define a schema", r"Schema\)"),
        ("load and validate input", r"\.load\("),
        ("nest one schema in another", r"Nested\("),
        ("run code after loading", r"post_load"),
        ("custom validator of a field", r"validate"),
    ),
    "structlog": (
        ("configure processors", r"structlog\.configure"),
        ("bind values to a logger", r"\.bind\("),
        ("render log entries as json", r"JSONRenderer"),
        ("context variables", r"contextvars"),
        ("use together with the standard library logging", r"structlog\.stdlib|ProcessorFormatter"),
    ),
    "tenacity": (
        ("retry with exponential backoff", r"wait_(?:random_)?exponential"),
        ("stop after some attempts", r"stop_after_attempt"),
        ("retry only on some exceptions", r"retry_if_exception_type"),
        ("retry a block of code", r"Retrying"),
        ("run something before each sleep", r"before_sleep"),
    ),
    "networkx": (
        ("shortest path between two nodes", r"shortest_path|dijkstra_path"),
        ("add edges with weights to a graph", r"add_weighted_edges_from|add_edge"),
        ("pagerank of a directed graph", r"pagerank"),
        ("draw a graph", r"draw"),
        ("connected components", r"connected_components"),
    ),
    "axios": (
        ("send a post request", r"\.post\("),
        ("interceptor for requests", r"interceptors"),
        ("cancel a request", r"AbortController|CancelToken"),
        ("instance with a base url", r"axios\.create"),
        ("handle errors", r"catch|AxiosError|isAxiosError"),
    ),
    "fastify": (
        ("declare a route with a schema", r"schema"),
        ("register a plugin", r"register\("),
        ("add a hook before the handler", r"addHook"),
        ("custom error handler", r"setErrorHandler"),
        ("test with fake requests", r"inject\("),
    ),
    "commander": (
        ("define an option", r"\.option\("),
        ("add a subcommand", r"\.command\("),
        ("run an action", r"\.action\("),
        ("required option", r"requiredOption"),
        ("custom processing of an option", r"parseInt|parseFloat|custom|\.argParser\("),
    ),
    "date-fns": (
        ("format a date", r"format\("),
        ("add days to a date", r"addDays"),
        ("difference between two dates in days", r"differenceIn(?:Calendar)?Days"),
        ("parse a date from a string", r"\bparse(?:ISO)?\("),
        ("check if a date is before another", r"isBefore"),
    ),
    "zustand": (
        ("create a store", r"create\b"),
        ("persist state to local storage", r"persist"),
        ("select part of the state with shallow comparison", r"useShallow"),
        ("use devtools", r"devtools"),
        ("store outside of react", r"createStore|getState"),
    ),
    "ws": (
        ("create a server", r"WebSocketServer|WebSocket\.Server"),
        ("broadcast to all clients", r"\.clients"),
        ("detect broken connections", r"ping\("),
        ("client authentication on upgrade", r"upgrade"),
        ("send binary data", r"\.send\("),
    ),
    "winston": (
        ("create a logger", r"createLogger"),
        ("custom format", r"printf|combine"),
        ("log to a file", r"transports\.File"),
        ("child logger", r"child\("),
        ("handle uncaught exceptions", r"exceptionHandlers|handleExceptions|exceptions\.handle"),
    ),
    "hono": (
        ("define a route", r"\.get\("),
        ("middleware for cors", r"cors\("),
        ("validate the request body", r"validator"),
        ("bearer token authentication", r"bearerAuth"),
        ("typed client of an api", r"\bhc\b"),
    ),
    "yargs": (
        ("define a command", r"\.command\("),
        ("option with an alias", r"alias"),
        ("require an argument", r"demand"),
        ("parse arguments", r"\.parse\(|\.argv"),
        ("completion script", r"completion"),
    ),
    "viem": (
        ("create a public client", r"createPublicClient"),
        ("read a contract", r"readContract"),
        ("send a transaction from a wallet", r"sendTransaction"),
        ("parse ether units", r"parseEther"),
        ("watch events of a contract", r"watchContractEvent"),
    ),
    "rxjs": (
        ("debounce a stream of values", r"debounceTime"),
        ("switch to a new inner observable", r"switchMap"),
        ("combine the latest values of observables", r"combineLatest"),
        ("retry after an error", r"retry"),
        ("share a subscription among subscribers", r"share(?:Replay)?\("),
    ),
}
"""Per library, questions and the pattern of a right snippet."""
