package pattern

import (
	"sync"
	"unicode"

	"github.com/realizar/realizar/internal/rx"
)

// folding returns the code points that simple case folding maps to others, in ascending order.
var folding = sync.OnceValue(func() []rune {
	var list []rune
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.SimpleFold(r) != r {
			list = append(list, r)
		}
	}
	return list
})

// fold returns s and all code points that differ from its members only in case.
func (s set) fold() set {
	list := folding()
	out := append(set(nil), s...)
	i := 0
	for _, span := range s {
		for i < len(list) && list[i] < span.Lo {
			i++
		}
		for ; i < len(list) && list[i] <= span.Hi; i++ {
			for r := unicode.SimpleFold(list[i]); r != list[i]; r = unicode.SimpleFold(r) {
				out = append(out, rx.RuneRange{Lo: r, Hi: r})
			}
		}
	}
	return out.normal()
}
