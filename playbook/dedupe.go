package playbook

import "hash/maphash"

// attemptSet finds repeats among attempts in linear time. It is a table of our
// own because the gate looks at a thousand attempts in well under 50 µs, which
// a map keyed by five fields does not. The hash is seeded, so that nobody can
// write attempts that all collide.
type attemptSet struct {
	attempts []Attempt
	slots    []int32 // 1 + index in attempts, 0 where free; a power of two, at most half full
}

var attemptSeed = maphash.MakeSeed()

// newAttemptSet makes an empty set of members of attempts.
func newAttemptSet(attempts []Attempt) *attemptSet {
	size := 8
	for size < 2*len(attempts) {
		size *= 2
	}
	return &attemptSet{attempts: attempts, slots: make([]int32, size)}
}

// add reports whether the attempt of that index is new, and keeps it.
func (s *attemptSet) add(index int) bool {
	a := &s.attempts[index]
	h := uint64(minute(a.RecordedAt))*0x9E3779B97F4A7C15 ^ maphash.String(attemptSeed, fold(a.Actor))
	if a.Target != "" {
		h ^= maphash.String(attemptSeed, fold(a.Target)) * 3
	}
	h ^= maphash.String(attemptSeed, a.Action)*5 ^ uint64(len(a.Outcome))<<40
	h ^= h >> 32
	h *= 0xD6E8FEB86659FD93
	mask := uint64(len(s.slots) - 1)
	for i := h >> 32; ; i++ {
		slot := &s.slots[i&mask]
		if *slot == 0 {
			*slot = int32(index) + 1
			return true
		}
		if SameAttempt(s.attempts[*slot-1], *a) {
			return false
		}
	}
}
