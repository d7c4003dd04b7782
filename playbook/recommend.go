package playbook

import (
	"slices"
	"strings"
)

// RecommendActions gives the rung to try next. It starts at the narrowest
// first rung among the symptoms (rank 0 where none is given or known), walks
// broader, and skips rungs that already have a counting attempt; the first
// that is left is Next, what is left beyond it is Ladder. Where the symptoms
// known are all ones that no rung helps, Next is empty and Notes say what to
// do instead. Nothing is ever recommended that is no rung of the ladder.
func (p *Playbook) RecommendActions(symptoms []string, attempts []Attempt) Recommendation {
	read := p.readSymptoms(symptoms)
	rec := Recommendation{Ladder: []LadderStep{}, UnknownSymptoms: read.unknown, Notes: read.notes}
	if read.onlyAdvice {
		return rec
	}
	tried := make([]bool, len(p.rungs))
	for _, a := range attempts {
		if p.Counts(a) {
			tried[p.byAction[a.Action]] = true
		}
	}
	for rank := read.first; rank < len(p.rungs); rank++ {
		switch {
		case tried[rank] || p.rungs[rank].Disabled:
		case rec.Next == "":
			rec.Next = p.rungs[rank].Action
		default:
			rec.Ladder = append(rec.Ladder, p.rungs[rank].step())
		}
	}
	return rec
}

// symptomReading is what a list of symptoms comes to.
type symptomReading struct {
	first      int  // the narrowest first rung; 0 where none is known
	given      bool // a symptom with a rung was given
	onlyAdvice bool // all known symptoms are ones that no rung helps
	unknown    []UnknownSymptom
	notes      []string
}

func (p *Playbook) readSymptoms(symptoms []string) symptomReading {
	read := symptomReading{unknown: []UnknownSymptom{}, notes: []string{}}
	advised := false
	for _, text := range symptoms {
		if strings.TrimSpace(text) == "" {
			continue
		}
		i, ok := p.bySymptom[normalize(text)]
		if !ok {
			u, note := p.unknownSymptom(text)
			read.unknown = append(read.unknown, u)
			if note != "" && !slices.Contains(read.notes, note) {
				read.notes = append(read.notes, note)
			}
			continue
		}
		s := &p.symptoms[i]
		if s.first < 0 {
			advised = true
			if note := "`" + s.code + "`: " + s.advice; !slices.Contains(read.notes, note) {
				read.notes = append(read.notes, note)
			}
			continue
		}
		if !read.given || s.first < read.first {
			read.first, read.given = s.first, true
		}
	}
	read.onlyAdvice = advised && !read.given
	return read
}

// NormalizeSymptom gives the code for a spelling of it.
func (p *Playbook) NormalizeSymptom(s string) (code string, ok bool) {
	i, ok := p.bySymptom[normalize(s)]
	if !ok {
		return "", false
	}
	return p.symptoms[i].code, true
}

// SymptomSuggestions gives up to three codes that a text may have meant: by
// the phrases people write, longest first, else by spelling. They are offered,
// never taken.
func (p *Playbook) SymptomSuggestions(s string) []string {
	if a := p.ambiguousIn(s); a != nil {
		return append([]string{}, a.codes...)
	}
	return p.symptomsLike(s)
}

func (p *Playbook) symptomsLike(s string) []string {
	type hit struct {
		code string
		n    int
	}
	if len(s) > MaxReason {
		s = s[:MaxReason]
	}
	words := wordsOf(s)
	spaced := wordsOf(strings.ReplaceAll(s, "_", " "))
	var hits []hit
	codes := make([]string, len(p.symptoms))
	for i := range p.symptoms {
		codes[i] = p.symptoms[i].code
		n := max(phraseIn(words, p.symptoms[i].words), phraseIn(spaced, p.symptoms[i].words))
		if n > 0 {
			hits = append(hits, hit{codes[i], n})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.n - a.n })
	var out []string
	for _, h := range hits {
		out = append(out, h.code)
	}
	return firstThree(append(out, nearest(s, codes)...))
}

// ambiguousIn gives the ambiguous text that s is, with nothing beside it that
// would tell.
func (p *Playbook) ambiguousIn(s string) *ambiguousText {
	if len(s) > MaxReason {
		return nil
	}
	var kept []string
	for _, word := range strings.Fields(wordsOf(s)) {
		switch word {
		case "error", "code", "mcp", "json", "rpc", "jsonrpc":
		default:
			kept = append(kept, word)
		}
	}
	words := strings.Join(kept, " ")
	for i := range p.ambiguous {
		if words == strings.TrimSpace(wordsOf(p.ambiguous[i].text)) {
			return &p.ambiguous[i]
		}
	}
	return nil
}

func (p *Playbook) unknownSymptom(s string) (u UnknownSymptom, note string) {
	u = UnknownSymptom{Symptom: plain(s, maxTarget), Suggestions: p.SymptomSuggestions(s)}
	if a := p.ambiguousIn(s); a != nil {
		note = quote(a.text) + " alone is ambiguous: give the text that came with it"
	}
	return u, note
}
