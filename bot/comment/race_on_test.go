//go:build race

package comment

// Under the race detector, sync.Pool drops what is put into it at random, so
// that regexp allocates its machines anew: what is measured then is not ours.
const memoryCounts = false
