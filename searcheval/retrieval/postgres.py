"""The connection of this process to PostgreSQL: the embedded one, or any other that ``DATABASE_URL`` names.

There everything of ours is in the schema ``searcheval``; nothing else is read or written. The extension ``vector`` is
used where it is installed, and else created in that schema.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import psycopg
from pgvector.psycopg import register_vector
from psycopg.conninfo import conninfo_to_dict

from searcheval.errors import InputError
from searcheval.retrieval import embedded

Connection = psycopg.Connection[tuple[Any, ...]]

# First halves of our advisory locks; the second half is a number within each.
LOCK_SCHEMA, LOCK_SEED, LOCK_USE = 0x73650001, 0x73650002, 0x73650003

_LAYOUT = "searcheval, layout 1"  # raise it when a table or what goes into one changes: the tables are then made anew
_TABLES = f"""
DROP TABLE IF EXISTS searcheval.postings, searcheval.documents, searcheval.collections;
CREATE TABLE searcheval.collections (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    digest text NOT NULL,
    fields text[] NOT NULL,
    documents integer NOT NULL,
    tokens bigint[] NOT NULL,           -- of each field, over all documents
    UNIQUE (name, digest));
CREATE TABLE searcheval.documents (
    collection integer NOT NULL REFERENCES searcheval.collections ON DELETE CASCADE,
    doc_id text COLLATE "C" NOT NULL,   -- ordered as Python orders strings
    embedding vector NOT NULL,
    PRIMARY KEY (collection, doc_id));
CREATE TABLE searcheval.postings (
    collection integer NOT NULL REFERENCES searcheval.collections ON DELETE CASCADE,
    lexeme text COLLATE "C" NOT NULL,
    doc_id text COLLATE "C" NOT NULL,
    field smallint NOT NULL,            -- index into collections.fields, from 0
    tf integer NOT NULL,
    length integer NOT NULL,            -- tokens in this field of this document
    PRIMARY KEY (collection, lexeme, doc_id, field));
COMMENT ON TABLE searcheval.collections IS '{_LAYOUT}';
"""


class _Session(NamedTuple):
    target: str  # the URL, or the cache folder
    connection: Connection
    server: Any | None  # of the embedded one


_session: _Session | None = None
_lock = threading.RLock()


def connect() -> Connection:
    """The connection of this process, opened on first use and kept until it ends.

    It goes to ``$DATABASE_URL``, else to the embedded server of the cache folder (see `embedded.cache_folder`), started
    if it does not run. Autocommit is on. After a fork, a lost connection, or a change of these variables, the
    next call opens a new one.

    Returns
    -------
    psycopg.Connection

    Raises
    ------
    InputError
        If the server refuses or does not start, or has neither pgvector nor lets us create it; never with the password.

    Examples
    --------
    >>> connect().execute("SELECT 1").fetchone()
    (1,)
    """
    global _session
    with _lock:
        url = os.environ.get("DATABASE_URL", "")
        target = url or str(embedded.cache_folder())
        if _session is None or _session.target != target or _session.connection.closed:
            disconnect()
            session = _open_url(url) if url else _open_embedded(Path(target))
            try:
                _prepare(session.connection)
            except BaseException as error:
                _close(session)
                if not isinstance(error, psycopg.Error):
                    raise
                expected = "PostgreSQL in UTF-8 with pgvector, and the right to create a schema"
                raise InputError("DATABASE_URL", None, _redact(str(error), url), expected) from None
            _session = session
        return _session.connection


def disconnect() -> None:
    """Close this process's connection; stop the embedded server if nobody else is connected. Runs by itself at exit."""
    global _session
    with _lock:
        session, _session = _session, None
        if session is not None:
            _close(session)


def _open_embedded(folder: Path) -> _Session:
    with embedded.starting_lock(folder):  # held until we are connected: a process that ends must see us
        server = embedded.start(folder)
        try:
            return _Session(str(folder), psycopg.connect(server.get_uri(), autocommit=True), server)
        except psycopg.Error as error:
            expected = "the embedded PostgreSQL to take a connection"
            raise InputError("DATABASE_URL", None, f"none, and {error}", expected) from None


def _open_url(url: str) -> _Session:
    expected = "postgresql://user:password@host/database of a server that runs"
    try:
        timeout = conninfo_to_dict(url).get("connect_timeout", 10)
    except psycopg.Error:  # libpq quotes what it cannot read, password and all
        raise InputError("DATABASE_URL", None, "text that is no connection URL", expected) from None
    try:
        return _Session(url, psycopg.connect(url, autocommit=True, connect_timeout=timeout), None)
    except (psycopg.Error, UnicodeError) as error:
        raise InputError("DATABASE_URL", None, _redact(str(error), url), expected) from None


def _close(session: _Session) -> None:
    if session.server is None:
        session.connection.close()
        return
    with embedded.starting_lock(Path(session.target)):
        if _was_last(session):
            embedded.stop(session.server)


def _was_last(session: _Session) -> bool:
    """Close the connection; true if no other client is connected. A client that said it is leaving does not count."""
    connection = session.connection
    try:
        if connection.closed:
            connection = psycopg.connect(session.server.get_uri(), autocommit=True)  # type: ignore[union-attr]
        connection.execute("SET application_name = 'leaving'")  # its entry can outlive the connection by a moment
        others = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            " AND pid <> pg_backend_pid() AND application_name <> 'leaving'"
        ).fetchone()
        return others == (0,)
    except psycopg.Error:
        return False
    finally:
        connection.close()


def _prepare(connection: Connection) -> None:
    """Make what is missing of schema, extension and tables, and set the session up."""
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    with suppress(psycopg.Error):  # from PostgreSQL 14 on
        # The locks of a killed process are then gone within a second, even if it died in the middle of a query.
        connection.execute("SET client_connection_check_interval = '1s'")
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise psycopg.NotSupportedError("a database that is not in UTF-8")
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (LOCK_SCHEMA,))
        if not _value(connection, "SELECT to_regnamespace('searcheval')"):
            connection.execute("CREATE SCHEMA searcheval")
        where = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
        if not _value(connection, where):
            connection.execute("CREATE EXTENSION vector SCHEMA searcheval")
        connection.execute(f"SET search_path TO searcheval, {_value(connection, where)}")  # quoted by regnamespace
        if _value(connection, "SELECT obj_description(to_regclass('searcheval.collections'), 'pg_class')") != _LAYOUT:
            connection.execute(_TABLES)
    register_vector(connection)


def _value(connection: Connection, query: str) -> Any:
    row = connection.execute(query).fetchone()
    return row[0] if row else None


def _redact(message: str, url: str) -> str:
    """``message`` without any part of the URL's password: libpq takes what follows an unescaped ``@`` for the host."""
    secrets = []
    with suppress(psycopg.Error):
        secrets += [str(value) for key, value in conninfo_to_dict(url).items() if "password" in key and value]
    if credentials := re.match(r"\w+://[^:@/]*:(.*)@", url, re.DOTALL):
        secrets.append(credentials[1])
    parts = {part for secret in secrets for part in [secret, *re.split("[@:/?#]", secret)] if part}
    for part in sorted(parts | {unquote(part) for part in parts}, key=len, reverse=True):
        message = message.replace(part, "***")
    return message


def _after_fork() -> None:
    """The parent's connection is not ours to use or to close, and its other threads hold our lock for ever."""
    global _session, _lock
    _session, _lock = None, threading.RLock()


atexit.register(disconnect)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
