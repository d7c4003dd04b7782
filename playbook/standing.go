package playbook

import (
	"encoding/json"
	"fmt"
)

// Permission is what a forge lets an account do in a repository, as a strict
// order: none < read < write < admin < owner. As text and in JSON it is its
// name ("unknown", "none", "read", "write", "admin", "owner").
type Permission uint8

// The permissions, narrowest first. PermissionUnknown is the zero value on
// purpose: what nobody could read denies.
const (
	PermissionUnknown Permission = iota
	PermissionNone
	PermissionRead
	PermissionWrite
	PermissionAdmin
	PermissionOwner
)

var permissionNames = [...]string{"unknown", "none", "read", "write", "admin", "owner"}

// String gives the permission's name; "unknown" for a value outside the order.
func (p Permission) String() string {
	if int(p) < len(permissionNames) {
		return permissionNames[p]
	}
	return permissionNames[0]
}

// ParsePermission gives the permission of a name, case and surrounding space
// aside. An unknown name is an error and PermissionUnknown, which denies.
func ParsePermission(s string) (Permission, error) {
	name := normalize(s)
	for i, n := range permissionNames {
		if n == name {
			return Permission(i), nil
		}
	}
	return PermissionUnknown, fmt.Errorf("%s is no permission; one of unknown, none, read, write, admin, owner", quote(s))
}

// MarshalText gives the name.
func (p Permission) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a name as ParsePermission does.
func (p *Permission) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePermission(string(text))
	return err
}

// Standing is what an account may ask for: its permission on the repository
// and the roles the playbook gives it.
type Standing struct {
	// Permission is PermissionUnknown where it could not be read. Unknown is
	// denied, with a code of its own, because the cure differs.
	Permission Permission `json:"permission"`
	// Roles are names from the playbook's roles section, never nil in output.
	Roles []string `json:"roles"`
}

// MarshalJSON writes no roles as [], never null.
func (s Standing) MarshalJSON() ([]byte, error) {
	type bare Standing
	if s.Roles == nil {
		s.Roles = []string{}
	}
	return json.Marshal(bare(s))
}

// BreakGlass says whether the attempt log is to be skipped and may be.
type BreakGlass struct {
	Requested  bool `json:"requested"`
	Authorized bool `json:"authorized"`
	// Used is output only: the gate was passed on break-glass alone.
	Used bool `json:"used"`
}
