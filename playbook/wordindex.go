package playbook

// wordIndex finds a few words by their text, by length first: the ladder's
// actions and outcomes hardly share lengths, and the gate looks up two words
// of every attempt. A map takes three times as long.
type wordIndex struct {
	byLength [][]indexedWord
}

type indexedWord struct {
	word  string
	index int
}

func newWordIndex(words []string) wordIndex {
	var w wordIndex
	for i, word := range words {
		for len(w.byLength) <= len(word) {
			w.byLength = append(w.byLength, nil)
		}
		w.byLength[len(word)] = append(w.byLength[len(word)], indexedWord{word, i})
	}
	return w
}

// find gives the word's index.
func (w *wordIndex) find(word string) (index int, ok bool) {
	if len(word) >= len(w.byLength) {
		return 0, false
	}
	for _, entry := range w.byLength[len(word)] {
		if entry.word == word {
			return entry.index, true
		}
	}
	return 0, false
}
