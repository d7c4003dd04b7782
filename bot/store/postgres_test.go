package store

import "testing"

func postgresFixture(t *testing.T) *fixture { t.Skip("not yet"); return nil }
