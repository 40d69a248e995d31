// Package nearest finds the known names that an unknown one may have been meant for,
// and puts names into words.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// long is how much of a name is compared: it may be of a hostile file.
const long = 100

// Names are those of known that differ least from name, few of them at most and none
// twice, the nearest first and those as near in their order. Upper and lower case are the same.
func Names(name string, known []string, few int) []string {
	name = strings.ToLower(name[:min(len(name), long)])
	all := slices.Compact(slices.Sorted(slices.Values(known)))
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(distance(name, a), distance(name, b)) })
	return all[:min(few, len(all))]
}

// OneOf is names as a sentence has them: "a, b or c". There are two at least.
func OneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// distance is how many bytes have to be put in, taken out or replaced to make b of a
// (Levenshtein, "Binary codes capable of correcting deletions, insertions, and
// reversals", 1966).
func distance(a, b string) int {
	b = strings.ToLower(b)
	row := make([]int, len(b)+1) // the distance from what was read of a to each beginning of b
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
