package tokenizer

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// runeRange is the characters from first to last.
type runeRange struct{ first, last rune }

// runeRanges is a set of characters: ranges in ascending order, none touching another.
type runeRanges []runeRange

// union returns the characters of any of sets.
func union(sets ...runeRanges) runeRanges {
	all := slices.Concat(sets...)
	slices.SortFunc(all, func(a, b runeRange) int { return cmp.Compare(a.first, b.first) })
	out := all[:0]
	for _, r := range all {
		if n := len(out); n > 0 && r.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, r.last)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// not returns the characters that r does not have.
func (r runeRanges) not() runeRanges {
	var out runeRanges
	next := rune(0)
	for _, one := range r {
		if next < one.first {
			out = append(out, runeRange{next, one.first - 1})
		}
		next = one.last + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, runeRange{next, unicode.MaxRune})
	}
	return out
}

// and returns the characters that are in both sets.
func (r runeRanges) and(other runeRanges) runeRanges { return union(r.not(), other.not()).not() }

// folded returns r and the characters that differ from one of r's in case alone.
func (r runeRanges) folded() runeRanges {
	var more runeRanges
	cased := caseRunes()
	for _, one := range r {
		i, _ := slices.BinarySearch(cased, one.first)
		for ; i < len(cased) && cased[i] <= one.last; i++ {
			for f := unicode.SimpleFold(cased[i]); f != cased[i]; f = unicode.SimpleFold(f) {
				more = append(more, runeRange{f, f})
			}
		}
	}
	return union(r, more)
}

// caseRunes returns the characters that have a variant in another case, in ascending order.
var caseRunes = sync.OnceValue(func() []rune {
	var cased []rune
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.SimpleFold(r) != r {
			cased = append(cased, r)
		}
	}
	return cased
})

// runesIn returns the characters of a table.
func runesIn(table *unicode.RangeTable) runeRanges {
	var out runeRanges
	add := func(first, last, stride rune) {
		if stride == 1 {
			out = append(out, runeRange{first, last})
			return
		}
		for r := first; r <= last; r += stride {
			out = append(out, runeRange{r, r})
		}
	}
	for _, r := range table.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range table.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return union(out)
}

// runeSet is a set with a fast membership test. Equal pages of 256 characters are stored once.
type runeSet struct {
	pages [(unicode.MaxRune + 1) >> 8]uint16
	bits  [][4]uint64
}

func newRuneSet(ranges runeRanges) *runeSet {
	s := new(runeSet)
	known := make(map[[4]uint64]uint16)
	at := 0
	for page := range s.pages {
		var bits [4]uint64
		first, last := rune(page)<<8, rune(page)<<8|0xFF
		for ; at < len(ranges) && ranges[at].last < first; at++ {
		}
		for i := at; i < len(ranges) && ranges[i].first <= last; i++ {
			if ranges[i].first <= first && last <= ranges[i].last {
				bits = [4]uint64{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64}
				break
			}
			for r := max(ranges[i].first, first); r <= min(ranges[i].last, last); r++ {
				bits[r>>6&3] |= 1 << (r & 63)
			}
		}
		number, ok := known[bits]
		if !ok {
			number = uint16(len(s.bits))
			known[bits] = number
			s.bits = append(s.bits, bits)
		}
		s.pages[page] = number
	}
	return s
}

func (s *runeSet) has(r rune) bool { return s.bits[s.pages[r>>8]][r>>6&3]>>(r&63)&1 != 0 }

// wordRunes returns the characters of \w between brackets in Oniguruma: alphabetic characters,
// marks, digits and connectors.
var wordRunes = sync.OnceValue(func() runeRanges {
	return union(alphabetic(), categoryRunes("M"), categoryRunes("Nd"), runesIn(unicode.Pc))
})

// wideWordRunes returns the characters of \w outside of brackets, which also has the numbers of
// Latin-1, such as ½.
var wideWordRunes = sync.OnceValue(func() runeRanges {
	return union(wordRunes(), categoryRunes("N").and(runeRanges{{0, 0xFF}}))
})

// wordSet is wideWordRunes as a runeSet.
var wordSet = sync.OnceValue(func() *runeSet { return newRuneSet(wideWordRunes()) })

// newModifiers are the characters of newInUnicode16 in Lm. The others of class letter are in Lo.
const newModifiers = "\U00010D4E\U00010D6F\U00016D40\U00016D41\U00016D42\U00016D6B\U00016D6C"

// categoryRunes returns the characters of a general category in Unicode 16.0, nil for an unknown
// name.
func categoryRunes(name string) runeRanges {
	table, ok := unicode.Categories[name]
	if !ok {
		return nil
	}
	classes := map[string]class{
		"L": anyLetter, "Lu": upper, "Ll": lower, "Lo": letter, "M": mark, "N": number, "Nd": number, "P": punct, "S": symbol,
	}[name]
	out := runesIn(table)
	for _, n := range newInUnicode16 {
		if n.class&classes != 0 {
			out = append(out, runeRange{n.first, n.last})
		}
	}
	out = union(out)
	var modifiers runeRanges
	for _, r := range newModifiers {
		modifiers = append(modifiers, runeRange{r, r})
	}
	switch name {
	case "Lo":
		return out.and(modifiers.not())
	case "Lm":
		return union(out, modifiers)
	}
	return out
}

// posixRunes are the named classes of POSIX.
var posixRunes = map[string]func() runeRanges{
	"alnum":  func() runeRanges { return union(alphabetic(), categoryRunes("Nd")) },
	"alpha":  alphabetic,
	"ascii":  func() runeRanges { return runeRanges{{0, 0x7F}} },
	"blank":  func() runeRanges { return union(runesIn(unicode.Zs), runeRanges{{'\t', '\t'}}) },
	"cntrl":  func() runeRanges { return runesIn(unicode.Cc) },
	"digit":  func() runeRanges { return categoryRunes("Nd") },
	"lower":  func() runeRanges { return union(categoryRunes("Ll"), runesIn(unicode.Other_Lowercase)) },
	"punct":  func() runeRanges { return union(categoryRunes("P"), categoryRunes("S")) },
	"space":  func() runeRanges { return runesIn(unicode.White_Space) },
	"upper":  func() runeRanges { return union(categoryRunes("Lu"), runesIn(unicode.Other_Uppercase)) },
	"word":   func() runeRanges { return wordRunes() },
	"xdigit": func() runeRanges { return runeRanges{{'0', '9'}, {'A', 'F'}, {'a', 'f'}} },
}

func alphabetic() runeRanges {
	return union(categoryRunes("L"), runesIn(unicode.Nl), runesIn(unicode.Other_Alphabetic))
}

// propertyRunes returns the characters of a property by any of its names after \p, nil for an
// unknown name.
func propertyRunes(name string) runeRanges {
	plain := func(name string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
	}
	wanted := plain(name)
	switch wanted {
	case "any":
		return runeRanges{{0, unicode.MaxRune}}
	case "assigned":
		return categoryRunes("Cn").not()
	case "letter", "mark", "number", "punctuation", "symbol", "separator", "other":
		wanted = map[string]string{"other": "c", "separator": "z"}[wanted] + wanted[:1]
		wanted = wanted[:1]
	}
	if in, ok := posixRunes[wanted]; ok {
		return in()
	}
	for category := range unicode.Categories {
		if plain(category) == wanted {
			return categoryRunes(category)
		}
	}
	for script, table := range unicode.Scripts {
		if plain(script) == wanted {
			ranges := runesIn(table)
			if script == "Han" {
				ranges = union(ranges, runeRanges{{0x2EBF0, 0x2EE5D}})
			}
			return ranges
		}
	}
	for property, table := range unicode.Properties {
		if plain(property) == wanted {
			return runesIn(table)
		}
	}
	return nil
}

// decodeBefore returns the character that ends at i in text, and its length.
func decodeBefore(text string, i int) (rune, int) { return utf8.DecodeLastRuneInString(text[:i]) }
