package jinja

import (
	"regexp"
	"sort"
	"strings"
)

func filterEscape(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.positional(0, 0); err != nil {
		return nil, err
	}
	return in.escapeValue(v)
}

func filterForceescape(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	s, err := in.str(v)
	if err != nil {
		return nil, err
	}
	return in.escape(s), nil
}

func filterSafe(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	s, err := in.softStr(v)
	if err != nil {
		return nil, err
	}
	return asSafe(s), nil
}

func filterStriptags(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	s, err := in.str(v)
	if err != nil {
		return nil, err
	}
	return in.striptags(s), nil
}

func filterXmlattr(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("autospace?")
	if err != nil {
		return nil, err
	}
	d, ok := v.(*Dict)
	if !ok {
		return nil, in.missingMethod(v, "items")
	}
	b := in.builder()
	for _, e := range d.entries {
		in.step(1)
		if _, missing := e.value.(*undefined); missing || e.value == None {
			continue
		}
		key, ok := e.key.(*Str)
		if !ok {
			return nil, typeErrorf("expected string or bytes-like object, got '%s'", e.key.typeName())
		}
		if in.indexAny(key.s, " \t\n\r\f\v/>=") >= 0 {
			return nil, valueErrorf("Invalid character in attribute name: %s", in.reprText(key))
		}
		value, err := in.escapeValue(e.value)
		if err != nil {
			return nil, err
		}
		if b.buf.Len() > 0 || args[0] == nil || truth(args[0]) {
			b.write(" ", false)
		}
		b.str(in.escape(key))
		b.write(`="`, false)
		b.str(value)
		b.write(`"`, false)
	}
	out := b.done()
	out.safe = in.autoescape
	return out, nil
}

func filterUrlencode(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	if d, ok := v.(*Dict); ok {
		v = &dictView{d, "dict_items"}
	} else if _, isStr := v.(*Str); isStr || !isIterable(v) {
		return in.quoteURL(v, false)
	}
	b := in.builder()
	n := 0
	err := in.each(v, func(item Value) (bool, error) {
		pair, err := in.unpack(item, 2)
		if err != nil {
			return false, err
		}
		if n++; n > 1 {
			b.write("&", false)
		}
		for i, part := range pair {
			quoted, err := in.quoteURL(part, true)
			if err != nil {
				return false, err
			}
			if i == 1 {
				b.write("=", false)
			}
			b.str(quoted)
		}
		return true, nil
	})
	return b.done(), err
}

// quoteURL escapes text for a path, or for a query, where a blank is a plus
// and a slash is escaped.
func (in *interp) quoteURL(v Value, query bool) (*Str, error) {
	s, err := in.str(v)
	if err != nil {
		return nil, err
	}
	b := in.builder()
	for i := range len(s.s) {
		switch c := s.s[i]; {
		case c < 0x80 && isWord(rune(c)), c == '.', c == '-', c == '~', c == '/' && !query:
			b.slice(s, i, i+1)
		case c == ' ' && query:
			b.write("+", s.origin(i))
		default:
			const digits = "0123456789ABCDEF"
			b.write(string([]byte{'%', digits[c>>4], digits[c&15]}), s.origin(i))
		}
	}
	return b.done(), nil
}

var (
	urlScheme = regexp.MustCompile(`^[\pL\pN_.+-]{2,}:/{0,2}$`)
	// urlPattern is what jinja2 takes for an address on the web: a host with
	// a top-level domain, an IPv4 or IPv6 address, a port, a path.
	urlPattern = regexp.MustCompile(`(?i)^(?:(?:https?://|www\.)(?:(?:[\pL\pN_%-]+\.)+)?(?:[a-z]{2,63}|xn--[\pL\pN_%]{2,59})` +
		`|(?:[\pL\pN_%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil)` +
		`|https?://(?:(?:\d{1,3}(?:\.\d{1,3}){3})|(?:\[(?:[\da-f]{0,4}:){2}(?:[\da-f]{0,4}:?){1,6}\])))` +
		`(?::\d{1,5})?(?:[/?#]\S*)?$`)
	mailPattern = regexp.MustCompile(`^\S+@[\pL\pN_][\pL\pN_.-]*\.[\pL\pN_]+$`)
	urlHead     = regexp.MustCompile(`^(?:[(<]|&lt;)+`)
	urlTail     = regexp.MustCompile(`(?:[)>.,\n]|&gt;)+$`)
)

func filterUrlize(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("trim_url_limit?", "nofollow?", "target?", "rel?", "extra_schemes?")
	if err != nil {
		return nil, err
	}
	u := &urlizer{in: in, limit: -1, b: in.builder()}
	if args[0] != nil && args[0] != None {
		if u.limit, err = a.argInt(args[0], 0); err != nil {
			return nil, err
		}
	}
	rel := map[string]bool{"noopener": true}
	if argBool(args[1]) {
		rel["nofollow"] = true
	}
	if s, ok := args[3].(*Str); ok {
		in.items(4 * len(s.s))
		for _, part := range strings.FieldsFunc(s.s, isSpace) {
			rel[part] = true
		}
	}
	names := make([]string, 0, len(rel))
	for name := range rel {
		names = append(names, name)
	}
	sort.Strings(names)
	u.attrs = ` rel="` + in.escape(String(strings.Join(names, " "), false)).s + `"`
	if args[2] != nil && argBool(args[2]) {
		target, err := in.escapeValue(args[2])
		if err != nil {
			return nil, err
		}
		u.attrs += ` target="` + target.s + `"`
	}
	if args[4] != nil && args[4] != None {
		err := in.each(args[4], func(item Value) (bool, error) {
			s, ok := item.(*Str)
			if ok {
				in.step(stepsPerPattern * len(s.s))
			}
			if !ok || !urlScheme.MatchString(s.s) {
				return false, raise(classFilterArg, "%s is not a valid URI scheme prefix.", in.reprText(item))
			}
			u.schemes = append(u.schemes, s.s)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	text, err := in.escapeValue(v)
	if err != nil {
		return nil, err
	}
	u.run(plain(text))
	out := u.b.done()
	out.safe = in.autoescape
	return out, nil
}

const (
	// stepsPerPattern is the work of the patterns on each byte of a word.
	stepsPerPattern = 8
	// maxAddress is the length of the longest word that is looked at: no
	// pattern stops halfway, and no address is longer.
	maxAddress = 1 << 16
)

// A urlizer turns the addresses in a text into links.
type urlizer struct {
	in      *interp
	limit   int // of the characters of an address that are shown, or -1
	attrs   string
	schemes []string
	b       *builder
}

func (u *urlizer) run(s *Str) {
	for i := 0; i < len(s.s); {
		word := len(s.s) - i
		if n := u.in.indexFunc(s.s[i:], isSpace); n >= 0 {
			word = n
		}
		u.in.step(8 + stepsPerPattern*word)
		if word <= maxAddress {
			u.word(s.slice(i, i+word))
		} else {
			u.b.slice(s, i, i+word)
		}
		i += word
		gap := u.in.skip(s.s[i:], isSpace)
		u.b.slice(s, i, i+gap)
		i += gap
	}
}

func (u *urlizer) word(w *Str) {
	from := len(urlHead.FindString(w.s))
	to := len(w.s)
	if loc := urlTail.FindStringIndex(w.s[from:]); loc != nil {
		to = from + loc[0]
	}
	// A bracket opened inside the address closes inside it.
	for _, pair := range [][2]string{{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}} {
		opened, closed := strings.Count(w.s[from:to], pair[0]), strings.Count(w.s[from:to], pair[1])
		if opened <= closed {
			continue
		}
		for range min(opened, strings.Count(w.s[to:], pair[1])) {
			to += strings.Index(w.s[to:], pair[1]) + len(pair[1])
		}
	}
	u.b.slice(w, 0, from)
	u.middle(w.slice(from, to))
	u.b.slice(w, to, len(w.s))
}

func (u *urlizer) middle(m *Str) {
	switch {
	case urlPattern.MatchString(m.s):
		scheme := ""
		if !strings.HasPrefix(m.s, "https://") && !strings.HasPrefix(m.s, "http://") {
			scheme = "https://"
		}
		shown := m
		if u.limit >= 0 && u.in.runeCount(m.s) > u.limit {
			shown = u.in.concat(m.slice(0, u.in.runeOffset(m.s, u.limit)), &Str{s: "..."})
		}
		u.link(scheme, m, u.attrs, shown)
	case strings.HasPrefix(m.s, "mailto:") && mailPattern.MatchString(m.s[len("mailto:"):]):
		u.link("", m, "", m.slice(len("mailto:"), len(m.s)))
	case strings.Contains(m.s, "@") && !strings.HasPrefix(m.s, "www.") && !strings.HasPrefix(m.s, "@") &&
		!strings.Contains(m.s, ":") && mailPattern.MatchString(m.s):
		u.link("mailto:", m, "", m)
	default:
		for _, scheme := range u.schemes {
			u.in.scan(len(scheme))
			if m.s != scheme && strings.HasPrefix(m.s, scheme) {
				u.link("", m, u.attrs, m)
				return
			}
		}
		u.b.str(m)
	}
}

func (u *urlizer) link(scheme string, target *Str, attrs string, shown *Str) {
	u.b.write(`<a href="`+scheme, false)
	u.b.str(target)
	u.b.write(`"`+attrs+`>`, false)
	u.b.str(shown)
	u.b.write("</a>", false)
}
