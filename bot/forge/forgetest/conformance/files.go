package conformance

import (
	"testing"

	"playbook-bot/bot/forge"
)

// fileFacts are about the files of a repository's default branch. What is in
// one, and the commit that is named, the golden conversations show.
var fileFacts = map[string]func(*testing.T, *world){
	"AFileThatIsNotThereIsNotFound": fileThatIsNotThere,
}

// A repository without a commit has no files: that is no failure of the
// forge's, which the bot would wait for.
func fileThatIsNotThere(t *testing.T, w *world) {
	_, _, err := w.bot.File(t.Context(), w.repo.ID, ".gitea/recovery-playbook.yaml")
	refused(t, err, forge.ErrNotFound)
}
