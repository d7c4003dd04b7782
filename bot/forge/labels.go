package forge

// LabelSpec is a label the bot wants to exist in a repository.
type LabelSpec struct {
	// Name may have a scope before its last slash: "recovery/approved".
	Name string
	// Color is six hex digits, with or without a leading "#"; empty: grey.
	Color       string
	Description string
	// Exclusive: at most one label of the same scope stands on an issue, and
	// setting one takes the others off. Without a scope it has no effect.
	Exclusive bool
}
