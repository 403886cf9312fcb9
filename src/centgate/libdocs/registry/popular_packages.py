"""Packages of PyPI and npm that many mean by their names, for answers while a registry fails.

Written from common knowledge of the most used packages of both registries in 2026, without a count of
downloads; the aliases and well-known crates belong to them. A name in both lists may mean either package.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from centgate.libdocs.registry.aliases import ALIASES
from centgate.libdocs.registry.known_libraries import CRATES
from centgate.libdocs.registry.package_names import PackageCandidate, RegistryName

PYPI_PACKAGES = """
    accelerate aiofiles aiohttp aiomysql aiosqlite alembic altair aniso8601 ansible anthropic anyio
    apscheduler argcomplete argon2-cffi arrow asgiref astropy asttokens asyncpg attrs authlib autogen autopep8
    azure-core azure-identity azure-storage-blob babel backoff bandit bcrypt beautifulsoup4 behave biopython
    bitsandbytes black bleach blinker bokeh boto boto3 botocore bottle build cachetools catboost cattrs celery
    certifi cffi chardet charset-normalizer cherrypy chromadb click cloudpickle cohere colorama colorlog
    configparser coverage crewai cryptography cupy cvxpy cython dagster dash dask databases datasets
    dateparser dbt-core deepdiff deepspeed defusedxml diffusers dill discord-py distro django
    django-cors-headers django-debug-toolbar django-environ django-filter djangorestframework dnspython docker
    docopt docutils dramatiq dspy duckdb dulwich dynaconf einops elasticsearch email-validator environs
    eth-account evaluate execnet fabric factory-boy faiss-cpu faker falcon fastapi fastavro fastmcp fire
    flake8 flask flask-cors flask-login flask-migrate flask-restful flask-sqlalchemy flask-wtf fonttools
    freezegun fsspec gensim geopandas gevent gitpython google-api-core google-api-python-client google-auth
    google-cloud-bigquery google-cloud-storage google-genai google-generativeai gradio graphene greenlet
    grpcio gspread gunicorn gymnasium h11 h2 h5py haystack-ai httpcore httplib2 httptools httpx
    huggingface-hub hupper hydra-core hypercorn hypothesis icecream idna imageio imbalanced-learn
    importlib-metadata inflect influxdb instructor invoke ipykernel ipython ipywidgets isodate isort
    itsdangerous jax jedi jinja jinja2 jmespath joblib jsonpatch jsonpath-ng jsonpickle jsonschema jupyter
    jupyterlab kafka-python keras keyring kivy kombu kornia kubernetes langchain langchain-community
    langchain-core langchain-openai langgraph langsmith librosa lightgbm lightning line-profiler litellm
    litestar llama-index locust loguru lxml mako markdown markdown-it-py markupsafe marshmallow mashumaro
    matplotlib maturin mcp mechanicalsoup memory-profiler mistralai mistune mkdocs mkdocs-material mlflow
    mlxtend modin mongoengine more-itertools moto motor moviepy msgpack msgspec multidict mypy
    mysql-connector-python mysqlclient natsort nbconvert neo4j networkx nicegui nltk nose nox numba numexpr
    numpy oauthlib odfpy ollama omegaconf onnx onnxruntime openai openapi-spec-validator opencv-python
    openpyxl opentelemetry-api opentelemetry-sdk optuna orjson packaging pandas pandera panel paramiko parso
    passlib pathlib2 pathspec pdfminer-six pdfplumber peewee pendulum pex pexpect phonenumbers pika pillow pip
    pip-tools pipdeptree pipenv pipx playwright plotly plotnine pluggy poetry polars pony portalocker praw
    pre-commit prefect prettytable prometheus-client prompt-toolkit prophet protobuf psutil psycopg psycopg2
    psycopg2-binary pulp py-cpuinfo pyarrow pyasn1 pyautogui pybind11 pycountry pycparser pycryptodome
    pydantic pydantic-ai pydantic-settings pydub pyee pyflakes pygame pygithub pygments pyinstaller pyjwt
    pylint pymc pymongo pymssql pymupdf pymysql pynacl pynput pyodbc pyopenssl pyotp pyparsing pypdf pypdf2
    pyperclip pyppeteer pyqt5 pyqt6 pyramid pyright pyserial pyside6 pyspark pytest pytest-asyncio pytest-cov
    pytest-django pytest-mock pytest-xdist python-dateutil python-docx python-dotenv python-jose python-magic
    python-multipart python-pptx python-slugify python-socketio python-telegram-bot pytorch-lightning pytz
    pywin32 pyyaml pyzmq qdrant-client quart rapidfuzz ray redis regex reportlab requests requests-mock
    requests-oauthlib requests-toolbelt responses retrying rich robotframework rq rsa ruamel-yaml ruff s3fs
    s3transfer sagemaker sanic scapy schedule scikit-image scikit-learn scipy scrapy seaborn selenium
    sentence-transformers sentencepiece sentry-sdk setuptools shap shapely simplejson six slack-bolt slack-sdk
    smolagents snowflake-connector-python sortedcontainers spacy sphinx sqlalchemy sqlglot sqlmodel sqlparse
    starlette statsmodels streamlit stripe structlog supabase sympy tabulate tenacity tensorboard tensorflow
    termcolor testcontainers textblob textual thefuzz thrift tiktoken timm tinydb tokenizers toml tomli
    tomlkit toolz torch torchaudio torchvision tornado tortoise-orm tox tqdm traitlets transformers trio trl
    tweepy twilio twine twisted typeguard typer typing-extensions tzdata tzlocal ujson unstructured urllib3 uv
    uvicorn uvloop validators virtualenv vllm voluptuous wagtail waitress wandb watchdog watchfiles weasyprint
    weaviate-client web3 websocket-client websockets werkzeug wheel whitenoise wrapt wtforms xarray xgboost
    xlrd xlsxwriter xlwings xmltodict yapf yarl yfinance youtube-dl yt-dlp zarr zeep zipp
"""
NPM_PACKAGES = """
    acorn agenda ai airtable ajv alpinejs amqplib animejs antd apexcharts apollo-server archiver astro async
    autoprefixer ava aws-sdk axios babel backbone bcrypt bcryptjs better-auth better-sqlite3 bignumber.js
    biome bluebird body-parser bootstrap bottleneck boxen browser-sync browserify bull bullmq bunyan busboy c8
    cac cesium chai chakra-ui chalk chart.js cheerio chokidar chroma-js chromatic class-transformer
    class-validator classnames cli-table3 cls-hooked clsx codemirror colors commander commitizen compression
    concurrently conf config consola convict cookie cookie-parser cookie-session core-js cors cosmiconfig cron
    cross-env cross-fetch cross-spawn crypto-js css-loader cssnano csurf csv-parse csv-parser cypress
    cytoscape d3 date-fns dayjs debug decimal.js deepmerge del depcheck detox dexie discord.js docusaurus
    dompurify dotenv drizzle-kit drizzle-orm echarts ejs elasticsearch electron electron-builder eleventy
    elysia ember-source embla-carousel emotion enquirer env-cmd enzyme esbuild esbuild-loader eslint
    eslint-config-airbnb eslint-config-prettier eslint-plugin-import eslint-plugin-react espree ethers
    eventemitter3 execa expect expo expo-router express express-rate-limit express-session express-validator
    fabric fast-check fast-glob fast-xml-parser fastify feathers file-saver file-type firebase firebase-admin
    flatpickr flowbite fluent-ffmpeg form-data formidable formik framer-motion fs-extra fullcalendar fuse.js
    gatsby glob globby got graphql graphql-request graphql-tag graphql-yoga gray-matter grunt gsap
    gulp handlebars hapi hardhat helmet highlight.js hls.js hono howler html-webpack-plugin htmx.org
    http-errors http-proxy http-proxy-middleware http-server husky i18next immer immutable inferno ink
    inquirer ioredis iron-session isomorphic-fetch istanbul jasmine jest jimp joi jose jotai jquery js-cookie
    js-yaml jsdom json-schema json-server json5 jsonwebtoken jspdf jszip karma katex keystone knex knip koa
    koa-router konva kysely langchain langium lerna less level lint-staged lit lodash lodash-es log4js
    lottie-react lottie-web lowdb lru-cache lucide-react luxon mapbox-gl maplibre-gl mariadb marked
    material-ui mathjs meow mermaid micro micromatch mikro-orm mime mime-types mini-css-extract-plugin
    minimatch minimist mitt mkdirp mobx mobx-react mocha mock-fs moleculer moment moment-timezone
    monaco-editor mongodb mongoose morgan mqtt msw multer mustache mysql mysql2 nanoid nats ncp neo4j-driver
    nest next next-auth next-i18next next-intl next-seo next-themes nightwatch nock node-cache node-cron
    node-fetch node-gyp node-sass node-schedule nodemailer nodemon nookies npm npm-run-all nprogress nunjucks
    nuxt nx nyc objection ofetch ollama onnxruntime-node open openai ora oxlint p-limit p-map p-queue
    papaparse parcel parse5 passport passport-jwt passport-local path-to-regexp pdf-lib pdfjs-dist pdfkit
    pdfmake peerjs pg pg-promise phaser pinia pino pino-pretty pixi.js playwright plop plotly.js pm2 pnpm
    polished postcss preact prettier primereact primevue prism-react-renderer prisma prismjs progress
    prom-client prompts prop-types prosemirror pug puppeteer puppeteer-core qs quasar query-string radix-ui
    ramda rate-limiter-flexible raw-body react react-admin react-aria react-bootstrap react-chartjs-2
    react-datepicker react-day-picker react-dnd react-dom react-dropzone react-flow react-helmet
    react-hook-form react-hot-toast react-i18next react-icons react-intl react-leaflet react-markdown
    react-modal react-native react-native-paper react-native-reanimated react-navigation react-pdf
    react-player react-query react-redux react-router react-router-dom react-scripts react-select react-spring
    react-table react-testing-library react-toastify react-transition-group react-virtualized react-window
    recharts recoil redis redux redux-saga redux-thunk reflect-metadata regenerator-runtime rehype remark
    remeda replicate request reselect resend restify rimraf rollup rspack rxjs sails sanitize-html sass
    sass-loader semver sequelize serve serve-static serverless sharp shelljs shiki simple-git sinon slate
    slick-carousel slugify socket.io socket.io-client solid-js sonner source-map-support sqlite3 standard
    storybook stream-chat strip-ansi stripe style-loader styled-components stylelint stylus sucrase superagent
    superjson supertest supertokens-node svelte svg.js svgo swagger-jsdoc swagger-ui-express sweetalert2
    swiper swr systemjs tailwind-merge tailwindcss tap tape tar tedious terser tesseract.js testcafe three
    tiptap toad-scheduler ts-jest ts-loader ts-morph ts-node ts-pattern tsconfig-paths tslib tslint tsup tsx
    turbo turndown twilio typeorm typescript ua-parser-js uglify-js underscore undici unified uniforms unocss
    urql use-debounce uuid valibot validator vee-validate vega vercel video.js viem vite vitepress vitest vue
    vue-i18n vue-router vuetify vuex wagmi web3 webdriverio webpack webpack-cli webpack-dev-server
    webpack-merge winston winston-daily-rotate-file workbox wouter wrangler ws xlsx xml2js xss xstate xterm
    yaml yargs yargs-parser yarn yjs yup zod zod-to-json-schema zone.js zustand zx
"""

_WELL_KNOWN: frozenset[str] = frozenset(
    (
        *ALIASES,
        *(f"/pypi/{name}" for name in PYPI_PACKAGES.split()),
        *(f"/npm/{name}" for name in NPM_PACKAGES.split()),
        *(f"/crates/{name}" for name in CRATES),
    )
)
MIN_SIMILARITY = 0.8
"""Similarity from which a name means a well-known package."""
_REGISTRY_WORDS: Mapping[RegistryName, re.Pattern[str]] = {
    "pypi": re.compile(r"(?<!\S)(?:python|pypi|pip)(?!\S)", re.IGNORECASE),
    "npm": re.compile(r"(?<!\S)(?:node|npm|js|javascript|typescript)(?!\S)", re.IGNORECASE),
}
"""Words beside a name that say in which of the searched registries it is."""


def find_missed_registry(
    query: str,
    candidates: Iterable[PackageCandidate],
    found: Collection[PackageCandidate],
    failed: Collection[RegistryName],
) -> RegistryName | None:
    """Return the failed registry that has the library which a name means; None if none is known to.

    It is the one that the name says, or that of a well-known package; then, what the others have are
    namesakes, unless they have a well-known one too.
    """
    for registry, words in _REGISTRY_WORDS.items():
        if registry in failed and words.search(query):
            return registry
    missed = [each for each in candidates if each.registry in failed and is_well_known(each)]
    missed = [each for each in missed if each.similarity > _best_known(found)]
    return missed[0].registry if missed else None


def may_be_missed(
    candidates: Iterable[PackageCandidate],
    found: Collection[PackageCandidate],
    failed: Collection[RegistryName],
) -> bool:
    """True if a failed registry may have the library that is meant: no other has a well-known one alone."""
    missed = any(each.registry in failed and is_well_known(each) for each in candidates)
    return missed or not _best_known(found)


def is_well_known(candidate: PackageCandidate) -> bool:
    """True if many mean this package by the name that it is a candidate for."""
    return candidate.similarity >= MIN_SIMILARITY and candidate.id in _WELL_KNOWN


def _best_known(candidates: Iterable[PackageCandidate]) -> float:
    return max((each.similarity for each in candidates if is_well_known(each)), default=0.0)
