"""Free sign-in requests cannot use up the database connections."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from buyer import ApiFactory
from databases import Postgres
from sign_ins import sign_in

from centgate.settings import Settings

READERS = 30
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND wait_event_type = 'Lock'"


def test_wallet_reads_use_few_connections(api: ApiFactory, settings: Settings, postgres: Postgres) -> None:
    """Also if each read takes long, here because a table is locked."""
    url = postgres.new_database()
    client = api(settings.model_copy(update={"database_url": url, "public_url": "https://shop.example"}))
    signed = [sign_in(client, number=number % 10) for number in range(READERS)]
    lock = "BEGIN; LOCK TABLE answers IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(4)"

    with ThreadPoolExecutor(READERS + 1) as pool:
        locked = pool.submit(postgres.run, lock, url)
        time.sleep(1)
        reads = [pool.submit(client.get, "/payments", headers=each) for each in signed]
        time.sleep(1.5)
        waiting = int(postgres.run(CONNECTIONS.format(url.rpartition("/")[2])))
        locked.result()
        statuses = {each.result().status_code for each in reads}

    assert 0 < waiting <= 4
    assert statuses == {200}
