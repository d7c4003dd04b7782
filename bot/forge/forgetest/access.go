package forgetest

// access is a right on a repository, in ascending order.
type access int

const (
	accessNone access = iota
	accessRead
	accessWrite
	accessAdmin
	accessOwner
)

var accessNames = []string{"none", "read", "write", "admin", "owner"}

func (a access) String() string { return accessNames[a] }

func parseAccess(name string) (access, bool) {
	for i, n := range accessNames {
		if n == name {
			return access(i), true
		}
	}
	return accessNone, false
}

// accessOf is what an account may do in a repository. Site administrators, the
// owner, and members of an organisation's teams with admin access are "owner",
// as Gitea's permission call says.
func (st *state) accessOf(a *account, r *repo) access {
	best := accessNone
	if !r.private {
		best = accessRead
	}
	if a == nil || a == ghost {
		return best
	}
	if a.admin || a == r.owner {
		return accessOwner
	}
	best = max(best, r.collaborators[a.id])
	for _, t := range st.teams {
		if t.org != r.owner || !t.members[a.id] {
			continue
		}
		if t.access >= accessAdmin {
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

func (st *state) mayWrite(as *account, r *repo) error {
	if err := st.mayRead(as, r); err != nil {
		return err
	}
	if st.accessOf(as, r) < accessWrite {
		return ErrForbidden
	}
	return nil
}

func (st *state) mayAdmin(as *account, r *repo) error {
	if err := st.mayRead(as, r); err != nil {
		return err
	}
	if st.accessOf(as, r) < accessAdmin {
		return ErrForbidden
	}
	return nil
}

// mayEdit: authors their own, writers everyone's.
func (st *state) mayEdit(as, author *account, r *repo) error {
	if err := st.mayRead(as, r); err != nil {
		return err
	}
	if as != author && st.accessOf(as, r) < accessWrite {
		return ErrForbidden
	}
	return nil
}
