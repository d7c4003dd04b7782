package playbook

import (
	"fmt"
	"slices"
	"strings"
)

// Matrix says whether a standing opens the action's rung. actor is the login
// it belongs to, for the words only; empty: "the actor".
//
// An unknown permission is denied, except on rungs that need no more than
// read: whoever can write into the thread can read it, so that nothing has to
// be looked up for them. A role that opens a rung opens every narrower one
// too; otherwise a role for broad restarts would be refused the smaller fix.
func (p *Playbook) Matrix(action string, s Standing, actor string) MatrixAnswer {
	rank, ok := p.byAction[action]
	if !ok {
		return MatrixAnswer{Why: quote(action) + " is no rung of the ladder"}
	}
	answer, _ := p.matrix(rank, s, actor)
	return answer
}

// NeedsLookup reports whether anybody's standing has to be read before the
// action can be decided; false where everyone who can read may ask.
func (p *Playbook) NeedsLookup(action string) bool {
	rank, ok := p.byAction[action]
	return ok && p.rungs[rank].Standing > PermissionRead
}

// matrix also says whether a denial is for want of knowledge.
func (p *Playbook) matrix(rank int, s Standing, actor string) (answer MatrixAnswer, unknown bool) {
	r := &p.rungs[rank]
	if actor = plain(actor, maxActor); actor == "" {
		actor = "the actor"
	}
	need := fmt.Sprintf("rank %d needs %s; ", rank, p.needText(r))
	for _, role := range s.Roles {
		if slices.Contains(r.Roles, role) {
			return MatrixAnswer{Allowed: true, Why: need + actor + " has the role " + plain(role, 64)}, false
		}
	}
	switch {
	case s.Permission == PermissionUnknown && r.Standing <= PermissionRead:
		return MatrixAnswer{Allowed: true, Why: need + "whoever can write here can read"}, false
	case s.Permission == PermissionUnknown || s.Permission > PermissionOwner:
		return MatrixAnswer{Why: need + actor + "'s permission could not be read"}, true
	}
	return MatrixAnswer{Allowed: s.Permission >= r.Standing, Why: need + actor + " has " + s.Permission.String()}, false
}

// needText says which standing opens a rung. Roles that nobody holds are not
// offered.
func (p *Playbook) needText(r *Rung) string {
	var held []string
	for _, role := range r.Roles {
		if slices.ContainsFunc(p.members, func(m RoleMember) bool { return m.Role == role }) {
			held = append(held, role)
		}
	}
	switch len(held) {
	case 0:
		return r.Standing.String()
	case 1:
		return r.Standing.String() + " or the role " + held[0]
	}
	return r.Standing.String() + " or one of the roles " + strings.Join(held, ", ")
}
