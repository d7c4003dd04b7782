//go:build !race

package comment

const memoryCounts = true
