-- For `playbook-bot dead` and the gauge of dead answers: few rows, found
-- without reading the history.

-- +goose Up
CREATE INDEX answers_dead ON answers (thread, key) WHERE status = 'dead';
