package playbook

// Permission is what a forge lets an account do in a repository, as a strict
// order: none < read < write < admin < owner.
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

// Standing is what an account may ask for: its permission on the repository
// and the roles the playbook gives it.
type Standing struct {
	// Permission is PermissionUnknown where it could not be read. Unknown is
	// denied, with a code of its own, because the cure differs.
	Permission Permission `json:"permission"`
	// Roles are names from the playbook's roles section, never nil in output.
	Roles []string `json:"roles"`
}

// BreakGlass says whether the attempt log is to be skipped and may be.
type BreakGlass struct {
	Requested  bool `json:"requested"`
	Authorized bool `json:"authorized"`
	// Used is output only: the gate was passed on break-glass alone.
	Used bool `json:"used"`
}
