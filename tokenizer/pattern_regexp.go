package tokenizer

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Expressions that nobody wrote a matcher for are run by package regexp, which takes linear time for each
// match whatever the expression, and in all as [lookAhead] says, in Oniguruma's meaning of the classes. It has no look-ahead but needs none
// for the common end of expressions.

// trailingSpace is how most expressions end: white space, of which the last character is left to what
// follows it.
const trailingSpace = `|\s+(?!\S)|\s+`

// spaceRanges are the characters with the property White_Space, and otherRanges all others, as they stand
// between brackets.
const (
	spaceRanges = `\t-\r\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}`
	otherRanges = `\x00-\x08\x0E-\x1F!-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}` +
		`\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF}`
)

// escapes are the classes that package regexp takes for ASCII's, as they stand between brackets.
var escapes = map[byte]string{
	's': spaceRanges, 'S': otherRanges, 'd': `\p{Nd}`, 'D': `\P{Nd}`, 'w': `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}`,
}

// regexpFinder finds the matches of an expression. A match of the one group it may have is white space.
type regexpFinder struct{ *regexp.Regexp }

func (f regexpFinder) each(text string, match func(start, end int)) {
	ahead := lookAhead{budget: freeLookAhead + len(text)}
	for at := 0; at < len(text); {
		rest := ahead.rest(text[at:])
		start, end := f.first(rest)
		if start < 0 {
			if len(rest) == len(text)-at {
				return
			}
			at += len(rest)
			continue
		}
		ahead.spend(f.Regexp, rest, end)
		match(at+start, at+end)
		at += end
	}
}

// first returns the first match in text, or -1.
func (f regexpFinder) first(text string) (start, end int) {
	if f.NumSubexp() == 0 {
		at := f.FindStringIndex(text)
		if at == nil {
			return -1, -1
		}
		return at[0], at[1]
	}
	at := f.FindStringSubmatchIndex(text)
	if at == nil {
		return -1, -1
	}
	start, end = at[0], at[1]
	if at[2] >= 0 && end < len(text) {
		if _, n := utf8.DecodeLastRuneInString(text[start:end]); start < end-n {
			end -= n
		}
	}
	return start, end
}

// lookAhead keeps the time of finding all matches linear. An expression like a[^b]*b|a reads on to the next b
// for every a. What some matches read beyond their end is measured; when all of it is more than the budget,
// which grows with the text, the expression sees no more than the next shortView bytes from then on.
type lookAhead struct {
	budget int // -1 when it is spent
	count  int
}

const (
	freeLookAhead = 1 << 16 // whatever the size of the text
	shortView     = 1 << 7
	measuredOne   = 16 // of so many matches
)

// rest returns what of text the expression sees.
func (l *lookAhead) rest(text string) string {
	if l.budget >= 0 || len(text) <= shortView {
		return text
	}
	end := shortView
	for end > shortView-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// spend accounts for a match that ends at end of text.
func (l *lookAhead) spend(expression *regexp.Regexp, text string, end int) {
	if l.count++; l.budget < 0 || l.count%measuredOne != 0 {
		return
	}
	r := strings.NewReader(text)
	expression.FindReaderIndex(r)
	if read := len(text) - r.Len(); read > end {
		l.budget -= read - end
	}
}

// compilePattern returns the finder of an expression that package regexp can run.
func compilePattern(expression string) (finder, error) {
	unsupported := func(why string) error {
		return fmt.Errorf("%w: no matcher for the regular expression %s: %s", ErrUnsupported, quoted(expression), why)
	}
	main, spaces := strings.CutSuffix(expression, trailingSpace)
	translated, why := translatePattern(main)
	if why != "" {
		return nil, unsupported(why)
	}
	// Within capturing groups a match means the same, and their contents are not asked for.
	parsed, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, unsupported(err.Error())
	}
	for parsed.Op == syntax.OpCapture {
		parsed = parsed.Sub[0]
	}
	if why := beyondLocal(parsed); why != "" {
		return nil, unsupported(why)
	}
	translated = parsed.String()
	if spaces {
		translated = "(?:" + translated + ")|([" + spaceRanges + "]+)"
	}
	compiled, err := regexp.Compile(translated)
	if err != nil {
		return nil, unsupported(err.Error())
	}
	if compiled.MatchString("") {
		return nil, unsupported("it matches nothing at all")
	}
	return regexpFinder{compiled}, nil
}

// beyondLocal says what in an expression depends on the text around a match, and makes its groups ones that
// capture nothing.
func beyondLocal(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpEndLine, syntax.OpEndText:
		return "an anchor"
	case syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return "a word boundary"
	}
	for i, sub := range re.Sub {
		for sub.Op == syntax.OpCapture {
			sub = sub.Sub[0]
		}
		re.Sub[i] = sub
		if why := beyondLocal(sub); why != "" {
			return why
		}
	}
	return ""
}

// translatePattern writes an expression for package regexp, or says what has another meaning there.
func translatePattern(expression string) (translated, why string) {
	var out strings.Builder
	brackets := false
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		rest := expression[i+1:]
		switch {
		case c == '\\' && rest == "":
			return "", "it ends with a backslash"
		case c == '\\':
			i++
			class, ok := escapes[rest[0]]
			switch {
			case rest[0] == 'u' && len(rest) >= 5:
				out.WriteString(`\x{` + rest[1:5] + `}`)
				i += 4
			case ok && brackets:
				out.WriteString(class)
			case ok:
				out.WriteString("[" + class + "]")
			case strings.IndexByte("WhHRXKGzZ", rest[0]) >= 0:
				return "", `the escape \` + rest[:1]
			default:
				out.WriteString(expression[i-1 : i+1])
			}
		case brackets && c == '[':
			return "", "a bracket between brackets"
		case brackets && c == '&' && strings.HasPrefix(rest, "&"):
			return "", "an intersection"
		case c == '[':
			brackets = true
			out.WriteByte(c)
			for _, first := range [...]string{"^]", "]", "^"} {
				if strings.HasPrefix(rest, first) {
					out.WriteString(strings.Replace(first, "]", `\]`, 1))
					i += len(first)
					break
				}
			}
		case c == ']' && brackets:
			brackets = false
			out.WriteByte(c)
		case c == '(' && strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "?:") && !strings.HasPrefix(rest, "?i:"):
			return "", "a group that begins with " + expression[i:min(i+3, len(expression))]
		case c == '{' && strings.HasPrefix(rest, ","):
			return "", "a repetition without its least number"
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), ""
}
