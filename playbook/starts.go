package playbook

// SymptomStartingAt gives the first of the symptoms whose first rung is the
// action, "" where none is: why a recommendation starts where it does.
func (p *Playbook) SymptomStartingAt(action string, symptoms []string) string {
	rank, ok := p.byAction[action]
	if !ok {
		return ""
	}
	for _, s := range symptoms {
		if i, known := p.bySymptom[normalize(s)]; known && p.symptoms[i].first == rank {
			return p.symptoms[i].code
		}
	}
	return ""
}
