package jinja

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// TestBombs renders templates that would use up any machine. Each has to end
// in an error before it does. The limits are below the defaults to save time.
func TestBombs(t *testing.T) {
	for name, template := range map[string]string{
		"repeat":               `{{ 'a' * 10**12 }}`,
		"repeat huge":          `{{ 'a' * 10**18 }}`,
		"repeat list":          `{{ ([1] * 10**12)|length }}`,
		"repeat tuple":         `{{ ((1, 2) * 10**18)|length }}`,
		"repeat marked":        `{{ ('a' ~ u) * 10**12 }}`,
		"doubling":             `{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}`,
		"doubling +":           `{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`,
		"doubling list":        `{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`,
		"doubling block":       `{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}`,
		"doubling replace":     `{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s|replace('a', ns.s) %}{% endfor %}`,
		"doubling join":        `{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s|join(ns.s) %}{% endfor %}`,
		"doubling format":      `{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = '{}{}'.format(ns.s, ns.s) %}{% endfor %}`,
		"doubling nest":        `{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}`,
		"doubling nest json":   `{% set ns = namespace(s={}) %}{% for i in range(100) %}{% set ns.s = {'a': ns.s, 'b': ns.s} %}{% endfor %}{{ ns.s|tojson }}`,
		"doubling equal":       `{% set ns = namespace(s=[1], t=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% set ns.t = [ns.t, ns.t] %}{% endfor %}{{ ns.s == ns.t }}`,
		"doubling order":       `{% set ns = namespace(s=[1], t=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% set ns.t = [ns.t, ns.t] %}{% endfor %}{{ ns.s < ns.t }}`,
		"doubling hash":        `{% set ns = namespace(s=(1,)) %}{% for i in range(100) %}{% set ns.s = (ns.s, ns.s) %}{% endfor %}{{ {ns.s: 1} }}`,
		"nesting":              `{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}`,
		"nesting json":         `{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s|tojson }}`,
		"nesting equal":        `{% set ns = namespace(s=[], t=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% set ns.t = [ns.t] %}{% endfor %}{{ ns.s == ns.t }}`,
		"nesting hash":         `{% set ns = namespace(s=()) %}{% for i in range(100000) %}{% set ns.s = (ns.s,) %}{% endfor %}{{ {ns.s: 1} }}`,
		"nesting generators":   `{% set ns = namespace(s='abc') %}{% for i in range(100000) %}{% set ns.s = ns.s|map('upper') %}{% endfor %}{{ ns.s|list }}`,
		"nesting unique":       `{% set ns = namespace(s='abc') %}{% for i in range(100000) %}{% set ns.s = ns.s|unique %}{% endfor %}{{ ns.s|list }}`,
		"namespace in itself":  `{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}`,
		"format width":         `{{ '{:1000000000}'.format('a') }}`,
		"format number":        `{{ '{:01000000000}'.format(1) }}`,
		"format precision":     `{{ '{:.1000000000f}'.format(1.5) }}`,
		"ljust":                `{{ 'a'.ljust(10**10) }}`,
		"zfill":                `{{ 'a'.zfill(10**10) }}`,
		"indent":               `{{ 'a\nb'|indent(10**10) }}`,
		"json indent":          `{{ [1]|tojson(indent=10**10) }}`,
		"loops":                `{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}`,
		"loops of output":      `{% for a in range(100000) %}{% for b in range(100000) %}xxxxxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}`,
		"loops in a filter":    `{% for a in range(100000) %}{{ range(100000)|sum }}{% endfor %}`,
		"sorting":              `{% for a in range(100000) %}{{ range(100000)|sort|first }}{% endfor %}`,
		"searching":            `{% set s = 'a' * 10**7 %}{% for a in range(100000) %}{{ 'b' in s }}{% endfor %}`,
		"counting":             `{% set s = 'a' * 10**7 %}{% for a in range(100000) %}{{ s|length }}{% endfor %}`,
		"stripping":            `{% set s = 'a' * 10**6 %}{% for a in range(100000) %}{{ s.strip(s) }}{% endfor %}`,
		"indexing":             `{% set s = 'é' * 10**6 %}{% for a in range(100000) %}{{ s[999999] }}{% endfor %}`,
		"recursion":            `{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`,
		"mutual recursion":     `{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}`,
		"recursion by call":    `{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}`,
		"recursive loop":       `{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}`,
		"recursion in breadth": `{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(150) }}`,
	} {
		t.Run(name, func(t *testing.T) {
			vars := mustJSON(t, `{"u": "b"}`)
			got, err := render(t, template, vars, Options{Limits: Limits{Steps: 3e6, Memory: 32 << 20}})
			if !errors.Is(err, ErrLimit) {
				t.Errorf("got %d bytes and the error %v, want ErrLimit", len(got.String()), err)
			}
		})
	}
}

// TestDeepSyntax parses what would overflow the stack of a parser that does
// not count, and templates too large to be any.
func TestDeepSyntax(t *testing.T) {
	const n = 100000
	deep := func(open, middle, end string) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	for name, template := range map[string]string{
		"parentheses":   "{{ " + deep("(", "1", ")") + " }}",
		"lists":         "{{ " + deep("[", "", "]") + " }}",
		"dicts":         "{{ " + deep("{1:", "1", "}") + " }}",
		"minus":         "{{ " + deep("-", "1", "") + " }}",
		"not":           "{{ " + deep("not ", "1", "") + " }}",
		"sums":          "{{ 1" + deep("+1", "", "") + " }}",
		"powers":        "{{ 1" + deep("**1", "", "") + " }}",
		"or":            "{{ 1" + deep(" or 1", "", "") + " }}",
		"attributes":    "{{ a" + deep(".a", "", "") + " }}",
		"items":         "{{ a" + deep("[0]", "", "") + " }}",
		"calls":         "{{ a" + deep("()", "", "") + " }}",
		"filters":       "{{ a" + deep("|e", "", "") + " }}",
		"tests":         "{{ a" + deep(" is a", "", "") + " }}",
		"conditions":    "{{ 1" + deep(" if 1 else 1", "", "") + " }}",
		"half":          "{{ 1" + deep(" if 1", "", "") + " }}",
		"targets":       "{% set " + deep("(", "a", ",)") + " = 1 %}",
		"ifs":           deep("{% if a %}", "", "{% endif %}"),
		"loops":         deep("{% for a in a %}", "", "{% endfor %}"),
		"macros":        deep("{% macro a() %}", "", "{% endmacro %}"),
		"block filters": "{% filter e" + deep("|e", "", "") + " %}{% endfilter %}",
		"size":          strings.Repeat("a", maxSource+1),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("test", template); !errors.Is(err, ErrSyntax) {
				t.Errorf("got the error %.200v, want ErrSyntax", err)
			}
		})
	}
}

// TestLargeTemplates parses templates at the limit of size: none may take
// time that grows faster than it.
func TestLargeTemplates(t *testing.T) {
	fill := func(piece string) string { return strings.Repeat(piece, maxSource/len(piece)) }
	for name, template := range map[string]string{
		"ifs":         fill("{% if a %}{% set b = 1 %}{% endif %}"),
		"elifs":       "{% if a %}" + fill("{% elif a %}{% set b = c %}")[:maxSource-100/27*27-135] + "{% endif %}",
		"sets":        fill("{% set a = a %}"),
		"braces":      fill("{"),
		"blanks":      "{%" + strings.Repeat(" ", maxSource-10) + "raw",
		"raw":         "{% raw %}" + strings.Repeat("{% ", maxSource/3-10),
		"backslashes": `{{ "` + fill(`\ud800`)[:maxSource/6*6-12] + `" }}`,
		"text":        fill("a\n"),
		"strings":     "{{ " + strings.Repeat("'a' ", maxSource/4-3) + " }}",
		"long chain":  "{{ 1" + strings.Repeat(" ~ 1", maxSource/4-3) + " }}",
		"compare":     "{{ 1" + strings.Repeat(" == 1", maxSource/5-3) + " }}",
		"list":        "{{ [" + strings.Repeat("1,", maxSource/2-20) + "] is defined }}",
		"arguments":   "{{ f(" + strings.Repeat("1,", maxSource/2-20) + ") if false }}",
	} {
		t.Run(name, func(t *testing.T) {
			if len(template) > maxSource {
				t.Fatalf("%d bytes", len(template))
			}
			tmpl, err := Parse("test", template)
			if err != nil {
				return
			}
			if _, err := tmpl.Render(t.Context(), nil, Options{}); err != nil && !errors.Is(err, ErrLimit) {
				t.Error(err)
			}
		})
	}
}

// TestMemoryIsCounted holds that what a template makes is what it was charged for: a
// rendering that ends at its limit of memory has taken little more than that.
func TestMemoryIsCounted(t *testing.T) {
	const limit = 32 << 20
	for name, template := range map[string]string{
		"tabs":        `{{ ('a\t' * 10**7).expandtabs() }}`,
		"replace":     `{{ ('a' * 10**6).replace('a', 'bcdefgh' * 10) }}`,
		"join":        `{{ range(100000)|join('x' * 1000) }}`,
		"join marks":  `{{ ((u ~ 'a') * 100000).replace('b', u ~ 'c')|list|join(u) }}`,
		"concat":      `{% set ns = namespace(s='a') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}`,
		"repeat":      `{{ 'a' * 10**9 }}`,
		"indent":      `{{ ('a\n' * 10**6)|indent(100) }}`,
		"from_json":   `{{ ('[' ~ '{"a":0},' * 10**6 ~ '0]')|from_json }}`,
		"from_json 0": `{{ ('[' ~ '0,' * 10**7 ~ '0]')|from_json }}`,
		"list":        `{{ ('ab' * 10**7)|list }}`,
		"json":        `{{ (u * 10**7)|tojson }}`,
		"output":      `{% for i in range(100000) %}{{ u * 1000 }}{% endfor %}`,
	} {
		t.Run(name, func(t *testing.T) {
			vars := mustJSON(t, `{"u": "b\t"}`)
			var before, after runtime.MemStats
			var reserved int
			limits := Limits{Steps: 1e9, Memory: limit, Reserve: func(n int) error { reserved += n; return nil }}
			runtime.ReadMemStats(&before)
			_, err := render(t, template, vars, Options{Limits: limits})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrLimit) {
				t.Errorf("got the error %v, want ErrLimit", err)
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > limit+limit/4 {
				t.Errorf("%d bytes were made, the limit is %d", made, limit)
			}
			if reserved > limit+reserveBytes {
				t.Errorf("%d bytes were asked for, the limit is %d", reserved, limit)
			}
		})
	}
}

// TestReserve ends a rendering for which there is no room.
func TestReserve(t *testing.T) {
	full := errors.New("full")
	room := 1 << 20
	_, err := render(t, `{% for i in range(100) %}{{ 'a' * 20000 }}{% endfor %}`, nil, Options{Limits: Limits{Reserve: func(n int) error {
		if room -= n; room < 0 {
			return full
		}
		return nil
	}}})
	if !errors.Is(err, full) || errors.Is(err, ErrLimit) {
		t.Errorf("got the error %v", err)
	}
}

func TestLimitsOfCaller(t *testing.T) {
	for _, c := range []struct {
		what, template string
		limits         Limits
	}{
		{"Steps", `{% for i in range(1000) %}{% endfor %}`, Limits{Steps: 100}},
		{"Memory", `{{ 'a' * 1000 }}`, Limits{Memory: 100}},
		{"Output", `{% for i in range(1000) %}aaaaaaaaaa{% endfor %}`, Limits{Output: 1000}},
		{"Depth", `{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(20) }}`, Limits{Depth: 10}},
	} {
		_, err := render(t, c.template, nil, Options{Limits: c.limits})
		var limit *LimitError
		if !errors.As(err, &limit) || limit.What != c.what {
			t.Errorf("%s: got the error %v", c.what, err)
		}
		if _, err := render(t, c.template, nil, Options{}); err != nil {
			t.Errorf("%s with the default limits: %v", c.what, err)
		}
	}
}
