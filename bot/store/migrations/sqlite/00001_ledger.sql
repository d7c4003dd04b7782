-- The ledger. Times are UTC milliseconds since 1970; where a time may be
-- "never" it is NULL. Column for column the same as the PostgreSQL schema.

-- +goose Up
CREATE TABLE repos (
    forge    TEXT    NOT NULL,
    repo     INTEGER NOT NULL,
    owner    TEXT    NOT NULL,
    owner_id INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    seen_at  INTEGER NOT NULL,
    PRIMARY KEY (forge, repo)
) WITHOUT ROWID;

CREATE TABLE threads (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    forge       TEXT    NOT NULL,
    repo        INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    pull        BOOLEAN NOT NULL,
    state       BLOB,
    due         INTEGER,
    open        BOOLEAN NOT NULL DEFAULT FALSE,
    max_comment INTEGER NOT NULL DEFAULT 0,
    -- The queue.
    wake_at     INTEGER,
    owner       TEXT    NOT NULL DEFAULT '',
    lease_until INTEGER NOT NULL DEFAULT 0,
    fence       INTEGER NOT NULL DEFAULT 0,
    -- Events up to this id may be in a worker's hands; hints merge with later
    -- ones only.
    loaded      INTEGER NOT NULL DEFAULT 0,
    UNIQUE (forge, repo, number)
);
CREATE INDEX threads_due ON threads (wake_at) WHERE owner = '' AND wake_at IS NOT NULL;
CREATE INDEX threads_leased ON threads (lease_until) WHERE owner <> '';
CREATE INDEX threads_open ON threads (forge, repo) WHERE open;
CREATE INDEX threads_number ON threads (number);

-- What was taken once for ever. Outlives retention.
CREATE TABLE seen (
    forge  TEXT    NOT NULL,
    repo   INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    object INTEGER NOT NULL,
    PRIMARY KEY (forge, repo, kind, object)
) WITHOUT ROWID;

-- Bodies whose delivery was sent by their author. Outlives retention.
CREATE TABLE attested (
    forge  TEXT    NOT NULL,
    repo   INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    object INTEGER NOT NULL,
    sha    BLOB    NOT NULL,
    PRIMARY KEY (forge, repo, kind, object, sha)
) WITHOUT ROWID;

CREATE TABLE events (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    thread       INTEGER NOT NULL REFERENCES threads (id),
    kind         TEXT    NOT NULL,
    object       INTEGER NOT NULL,
    action       TEXT    NOT NULL,
    ord          INTEGER NOT NULL,
    sender_id    INTEGER NOT NULL,
    sender_login TEXT    NOT NULL,
    author_id    INTEGER NOT NULL,
    author_login TEXT    NOT NULL,
    body_sha     BLOB    NOT NULL,
    source       TEXT    NOT NULL,
    delivery     TEXT    NOT NULL,
    received_at  INTEGER NOT NULL,
    status       TEXT    NOT NULL DEFAULT 'waiting',
    tries        INTEGER NOT NULL DEFAULT 0,
    next_at      INTEGER NOT NULL,
    note         TEXT    NOT NULL DEFAULT '',
    ended_at     INTEGER
);
-- Partial, so that history costs the queue nothing. received_at rides along
-- for the age of the oldest.
CREATE INDEX events_waiting ON events (thread, ord, id, received_at) WHERE status = 'waiting';
CREATE INDEX events_done ON events (ended_at) WHERE status = 'done';
CREATE INDEX events_dead ON events (id) WHERE status = 'dead';

CREATE TABLE objects (
    thread          INTEGER NOT NULL REFERENCES threads (id),
    kind            TEXT    NOT NULL,
    id              INTEGER NOT NULL,
    author_id       INTEGER NOT NULL,
    author_login    TEXT    NOT NULL,
    original_author TEXT    NOT NULL,
    body_sha        BLOB    NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    deleted         BOOLEAN NOT NULL,
    keep            BOOLEAN NOT NULL,
    data            BLOB,
    PRIMARY KEY (thread, kind, id)
) WITHOUT ROWID;
CREATE INDEX objects_keep ON objects (thread) WHERE keep;
CREATE INDEX objects_id ON objects (kind, id);

CREATE TABLE answers (
    thread       INTEGER NOT NULL REFERENCES threads (id),
    key          TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    trigger_kind TEXT    NOT NULL,
    trigger_id   INTEGER NOT NULL,
    account      INTEGER NOT NULL,
    low          BOOLEAN NOT NULL,
    status       TEXT    NOT NULL,
    after_id     INTEGER NOT NULL,
    deadline     INTEGER NOT NULL,
    next_at      INTEGER NOT NULL,
    tries        INTEGER NOT NULL,
    comment_id   INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    note         TEXT    NOT NULL,
    PRIMARY KEY (thread, key)
);
CREATE INDEX answers_open ON answers (thread, created_at, key) WHERE status IN ('pending', 'claimed');
CREATE INDEX answers_made ON answers (thread, created_at);
CREATE INDEX answers_bodies ON answers (created_at) WHERE status IN ('posted', 'dead') AND body <> '';

CREATE TABLE audit (
    thread INTEGER NOT NULL REFERENCES threads (id),
    chain  INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    entry  BLOB    NOT NULL,
    prev   BLOB    NOT NULL,
    hash   BLOB    NOT NULL,
    PRIMARY KEY (thread, chain, seq)
) WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
