-- What the bot's account put into the tracker in the name of another account
-- (page 6.3 of the design). A key stands in a signed marker; its row binds the
-- marker to the one text it was made for. Outlives retention: a marker that is
-- copied into another text years later must still be found out.

-- +goose Up
CREATE TABLE filings (
    key        TEXT    NOT NULL PRIMARY KEY,
    forge      TEXT    NOT NULL,
    repo       BIGINT  NOT NULL,
    account    BIGINT  NOT NULL,
    -- Numbers an account's filings. Being unique it makes two claims at once
    -- come one after the other, on both databases.
    nth        BIGINT  NOT NULL,
    kind       TEXT    NOT NULL,
    -- What stands: 0 until that is known.
    number     BIGINT  NOT NULL,
    object     BIGINT  NOT NULL,
    question   TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    claimed_at BIGINT  NOT NULL,
    deadline   BIGINT  NOT NULL,
    UNIQUE (forge, account, nth)
);
CREATE UNIQUE INDEX filings_object ON filings (forge, repo, kind, object) WHERE object <> 0;
CREATE INDEX filings_question ON filings (forge, account, repo, kind, question, nth);
