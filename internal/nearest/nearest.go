// Package nearest finds the known names that are most similar to an unknown one, for error
// messages.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// long is how many bytes of a name are compared. It bounds the cost of a name from an untrusted
// file.
const long = 100

// Names returns at most few distinct names of known, sorted by their edit distance from name and
// then alphabetically. Case is ignored.
func Names(name string, known []string, few int) []string {
	name = strings.ToLower(name[:min(len(name), long)])
	all := slices.Compact(slices.Sorted(slices.Values(known)))
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(distance(name, a), distance(name, b)) })
	return all[:min(few, len(all))]
}

// OneOf joins two or more names as in a sentence: "a, b or c".
func OneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// distance returns the edit distance in bytes between a and b, ignoring the case of b (Levenshtein,
// "Binary codes capable of correcting deletions, insertions, and reversals", 1966).
func distance(a, b string) int {
	b = strings.ToLower(b)
	row := make([]int, len(b)+1) // distances from the part of a read so far to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal, row[j+1] = row[j+1], min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
