package forgetest

// access is a right on a repository, in ascending order. Gitea has neither
// triage nor maintain.
type access int

const (
	accessNone access = iota
	accessRead
	accessTriage
	accessWrite
	accessMaintain
	accessAdmin
	accessOwner
)

var accessNames = []string{"none", "read", "triage", "write", "maintain", "admin", "owner"}

func (a access) String() string { return accessNames[a] }

func parseAccess(name string) (access, bool) {
	for i, n := range accessNames {
		if n == name {
			return access(i), true
		}
	}
	return accessNone, false
}

// habits are the ways in which the forges themselves, and not only what they
// show, differ.
type habits struct {
	// rootOwns: a site administrator is every repository's owner.
	rootOwns bool
	// adminTeamsOwn: so are the members of an organisation's teams with admin
	// access, not of its owners' alone.
	adminTeamsOwn bool
	// joinsEdits: title and body changed at once make one delivery.
	joinsEdits bool
	// uniqueLabels: a repository has one label of a name, whatever its case.
	uniqueLabels bool
	// pings: a new hook is told so.
	pings bool
	// keepsIDs: a redelivery has the id of the delivery.
	keepsIDs bool
	// longestText is the most characters of a text; 0: no limit.
	longestText int
}

// accessOf is what an account may do in a repository.
func (st *state) accessOf(a *account, r *repo) access {
	best := accessNone
	if !r.private {
		best = accessRead
	}
	if a == nil || a == ghost {
		return best
	}
	if a.admin && st.habits.rootOwns || a == r.owner {
		return accessOwner
	}
	if a.app != nil && a.app.in(r.owner) {
		best = accessWrite
	}
	best = max(best, r.collaborators[a.id])
	for _, t := range st.teams {
		if t.org != r.owner || !t.members[a.id] {
			continue
		}
		if t.access == accessOwner || t.access == accessAdmin && st.habits.adminTeamsOwn {
			return accessOwner
		}
		best = max(best, t.access)
	}
	return best
}

// The checks of an act, in the order in which Gitea makes them.

func (st *state) mayRead(as *account, r *repo) error {
	if st.accessOf(as, r) < accessRead {
		return ErrNotFound
	}
	return nil
}

// may takes a right of at least that much.
func (st *state) may(as *account, r *repo, least access) error {
	if err := st.mayRead(as, r); err != nil {
		return err
	}
	if st.accessOf(as, r) < least {
		return ErrForbidden
	}
	return nil
}

func (st *state) mayTriage(as *account, r *repo) error { return st.may(as, r, accessTriage) }

func (st *state) mayWrite(as *account, r *repo) error { return st.may(as, r, accessWrite) }

func (st *state) mayAdmin(as *account, r *repo) error { return st.may(as, r, accessAdmin) }

// mayEdit: authors their own, writers everyone's.
func (st *state) mayEdit(as, author *account, r *repo) error {
	if as == author {
		return st.mayRead(as, r)
	}
	return st.mayWrite(as, r)
}

// mayClose: authors their own; triage is enough for others'.
func (st *state) mayClose(as, author *account, r *repo) error {
	if as == author {
		return st.mayRead(as, r)
	}
	return st.mayTriage(as, r)
}
