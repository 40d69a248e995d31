package jinja

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// marked writes a text with the caller's spans in «».
func marked(t Text) string {
	var b strings.Builder
	for _, s := range t {
		if s.Template {
			b.WriteString(s.Text)
		} else {
			b.WriteString("«" + s.Text + "»")
		}
	}
	return b.String()
}

// TestMarks renders templates with a variable of the caller's and a trusted
// one, and looks at who wrote what.
func TestMarks(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{`a{{ u }}b`, `a«usEr»b`},
		{`{{ '<|' ~ u ~ '|>' }}`, `<|«usEr»|>`},
		{`{{ '<|' + u + '|>' }}`, `<|«usEr»|>`},
		{`{{ bos ~ u ~ 'x' }}`, `<s>«usEr»x`},
		{`{{ bos }}x`, `<s>x`},
		{`{{ ('<' ~ u ~ '>')[1:-1] }}`, `«usEr»`},
		{`{{ ('<' ~ u ~ '>')[2] }}`, `«s»`},
		{`{{ ('<' ~ u ~ '>')[::-1] }}`, `>«rEsu»<`},
		{`{{ ('<' ~ u ~ '>')|upper }}{{ ('A' ~ u).lower() }}{{ ('a' ~ u)|title }}`, `<«USER»>a«user»A«user»`},
		{`{{ ('a' ~ u).title() }}{{ ('a' ~ u)|capitalize }}{{ ('É' ~ u).lower() }}`, `A«user»A«user»é«user»`},
		{`{{ (' ' ~ u ~ ' ')|trim }}{{ ('x' ~ u).lstrip('x') }}{{ (u ~ 'x').rstrip('x') }}`, `«usErusErusEr»`},
		{`{{ ('a' ~ u ~ 'b')|replace('s', 'S') }}`, `a«u»S«Er»b`},
		{`{{ 'axb'.replace('x', u) }}`, `a«usEr»b`},
		{`{{ [u, 'x', u]|join(', ') }}{{ '-'.join(['a', u]) }}`, `«usEr», x, «usEr»a-«usEr»`},
		{`{{ '{}-{:>6}-{x}'.format(u, 'a', x=u) }}`, `«usEr»-«     »a-«usEr»`},
		{`{{ ('a ' ~ u ~ ' b').split() | join('/') }}`, `a/«usEr»/b`},
		{`{{ ('a' ~ u).partition('s') | join('/') }}`, `a«u»/«s»/«Er»`},
		{`{{ ('a\n' ~ u).splitlines() | last }}`, `«usEr»`},
		{`{{ ('a\n' ~ u) | indent(1) }}`, `a«
 usEr»`},
		{`{{ 'ab'.ljust(4) }}{{ 'a'.rjust(2, '.') }}{{ u.zfill(5) }}`, `ab«  .»a«0usEr»`},
		{`{{ u * 2 }}{{ ('<' ~ u) * 2 }}`, `«usErusEr»<«usEr»<«usEr»`},
		{`{{ x|default('d') }}{{ x|default(u) }}{{ u|default('d') }}`, `d«usErusEr»`},
		{`{{ u if true else 'a' }}{{ u or 'a' }}{{ '' or 'a' }}`, `«usErusEr»a`},
		{`{{ {'k': u}['k'] }}{{ {'k': u}.k }}{{ {u: 'v'}|list|first }}`, `«usErusErusEr»`},
		{`{{ {'k': 'v'}.k }}{{ ['v'][0] }}`, `vv`},
		{`{% set a = u %}{{ a }}{% set b %}<{{ u }}>{% endset %}{{ b }}`, `«usEr»<«usEr»>`},
		{`{% set ns = namespace(a=u) %}{{ ns.a }}{% set ns.a = 'x' %}{{ ns.a }}`, `«usEr»x`},
		{`{% macro m(a, b='<') %}{{ b ~ a }}{% endmacro %}{{ m(u) }}{{ m('x') }}`, `<«usEr»<x`},
		{`{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}a{{ u }}{% endcall %}`, `[a«usEr»]`},
		{`{% filter upper %}a{{ u }}{% endfilter %}`, `A«USER»`},
		{`{% generation %}a{{ u }}{% endgeneration %}`, `a«usEr»`},
		{`{% for c in 'a' ~ u %}{{ c }}.{% endfor %}`, `a.«u».«s».«E».«r».`},
		{`{{ u|tojson }}{{ 'x'|tojson }}`, `«"usEr""»x«"»`},
		{`{{ {'k': [u, 1, n]}|tojson }}`, `«{"»k«": ["usEr", »1«, 7]}»`},
		{`{{ [u] }}{{ ['x'] }}`, `«['usEr']['»x«']»`},
		{`{{ n }}{{ 7 }}{{ n + 1 }}{{ 6 + 1 }}{{ 1.5 }}`, `«7»7«8»71.5`},
		{`{% for i in [1] %}{{ loop.index }}{% endfor %}{{ u|length }}`, `1«4»`},
		{`{{ '<b>'|safe }}{{ u|safe }}`, `<b>«usEr»`},
		{`{{ '{"a": "b", "n": 1}'|from_json }}{{ ('["' ~ u ~ '"]')|from_json|first }}`, `«{'»a«': '»b«', '»n«': 1}usEr»`},
		{`{{ ['b', u]|sort|join }}{{ ['b', u]|reverse|join }}{{ [u]|map('upper')|join }}`, `b«usErusEr»b«USER»`},
		{`{{ ('a' ~ u)|list|last }}{{ ('a' ~ u)|first }}{{ ('a' ~ u)|reverse }}`, `«r»a«rEsu»a`},
		{`{{ strftime_now('%Y') }}{{ strftime_now(u) }}`, `2025«usEr»`},
		{`{{ ('ab' ~ u).removeprefix('a') }}{{ ('a' ~ u).removesuffix('r') }}`, `b«usEr»a«usE»`},
		{`{{ dict(a=u).a }}{{ [[u]]|map('first')|first }}{{ [{'r': u}]|map(attribute='r')|join }}`, `«usErusErusEr»`},
		{`{{ true }}{{ none }}`, `«TrueNone»`},
	} {
		vars := mustJSON(t, `{"u": "usEr", "n": 7}`)
		vars.Set("bos", String("<s>", true))
		got, err := render(t, c.template, vars, Options{Now: func() time.Time { return conformanceTime }})
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		if m := marked(got); m != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.template, m, c.want)
		}
	}
}

// TestMarksSurvive applies any operations in any order to text of the
// caller's, which is all Greek, and of the template's, which is all ASCII: in
// the end nothing Greek may count as the template's.
func TestMarksSurvive(t *testing.T) {
	steps := []string{
		`@|upper`, `@|lower`, `@|title`, `@|trim`, `@|replace('a', 'bc')`, `@|replace('α', 'x')`, `@|indent(2, true)`,
		`@[1:]`, `@[::-1]`, `@[-3:]`, `('<' ~ @ ~ '>')`, `(@ + u)`, `(u + @)`, `@.split('b')|join('-')`, `@.split()|join(' ')`,
		`'{:>30}'.format(@)`, `'{}{}'.format(@, u)`, `@|tojson`, `[@, 'k']|join(u)`, `@|list|join`,
		`(@ * 2)`, `@|reverse`, `[@]|string`, `@.partition('α')|join('|')`, `@.splitlines()|join(' ')`,
		`{'k': @}|tojson(indent=1)`, `@|map('upper')|join`, `@|tojson|from_json`, `[@]|tojson|from_json|join`,
		`@.rjust(20, 'z')`, `@|capitalize`, `@.removesuffix('>')`, `(@ if u else 'x')`, `@|sort|join`,
		`@.format()|string`, `@|default(u, true)`, `(@|safe + '<')`, `@.rsplit('a', 1)|last`,
	}
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom([]string{"u", "'a b'", "('a' ~ u)"}).Draw(t, "start")
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			e = "(" + strings.ReplaceAll(rapid.SampledFrom(steps).Draw(t, "step"), "@", e) + ")"
		}
		vars := NewDict()
		vars.Set("u", String(rapid.StringOf(rapid.SampledFrom([]rune("αβγςΣΩ"))).Draw(t, "u"), false))
		tmpl, err := Parse("test", "{{ "+e+" }}")
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		got, err := tmpl.Render(t.Context(), vars, Options{})
		if err != nil {
			return // such as a format with a brace in it
		}
		checkSpans(t, got)
		for _, s := range got {
			if s.Template && strings.ContainsFunc(s.Text, func(r rune) bool { return r >= 0x80 && r != '«' }) {
				t.Fatalf("%s: the caller's text counts as the template's: %s", e, marked(got))
			}
		}
	})
}

// checkSpans checks what is promised of every Text.
func checkSpans(t interface{ Fatalf(string, ...any) }, text Text) {
	for i, s := range text {
		if s.Text == "" {
			t.Fatalf("span %d is empty: %q", i, text)
		}
		if i > 0 && s.Template == text[i-1].Template {
			t.Fatalf("spans %d and %d are of one origin: %q", i-1, i, text)
		}
	}
}
