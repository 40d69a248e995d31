package jinja

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// workVars are the large values that the templates below work on.
func workVars(t testing.TB) *Dict {
	const n = 1 << 18
	vars := mustJSON(t, `{"one": "x", "f": 1e308, "tiny": 1.5e-300}`)
	text := func(name, piece string) {
		vars.Set(name, String(strings.Repeat(piece, n/len(piece)), false))
	}
	text("s", "a")
	text("same", "a")
	text("upper", "AB")
	text("accents", "éÀ")
	text("small", "é")
	text("cjk", "語")
	text("sigma", "Σ.")
	text("words", "ab ")
	text("lines", "ab\n")
	text("blank", " \t")
	text("quotes", "'\"")
	text("control", "\x01")
	text("digits", "1")
	text("path", "1.")
	text("braces", "{{")
	marks := make([]run, 0, n/2)
	for i := 2; i <= n; i += 2 {
		marks = append(marks, run{i, i%4 == 0})
	}
	vars.Set("marked", &Str{s: strings.Repeat("ab", n/2), runs: marks})
	vars.Set("almost", String(strings.Repeat("a", n-1)+"b", false))
	var list, down, pairs []Value
	keys, ints := NewDict(), NewDict()
	for i := range n / 8 {
		list = append(list, Integer(int64(i)))
		down = append(down, Integer(int64(-i)))
		pairs = append(pairs, newTuple(Integer(int64(i)), String("v", false)))
		k := Integer(int64(n - i))
		ints.put(dictKey{kind: 'n', num: k.small}, k, k)
	}
	var long []Value
	for i := range 10 {
		k := strings.Repeat("k", n/8) + string(rune('0'+i))
		long = append(long, String(k, false))
		keys.Set(k, String("v", false))
	}
	vars.Set("list", NewList(list...))
	vars.Set("list2", NewList(list...))
	vars.Set("down", NewList(down...))
	vars.Set("pairs", NewList(pairs...))
	vars.Set("long", NewList(long...))
	vars.Set("keys", keys)
	vars.Set("keys2", func() *Dict { d := *keys; return &d }())
	vars.Set("ints", ints)
	return vars
}

// work holds expressions that take long once. Each has to be charged for what
// it does, so that a loop around it ends.
var work = map[string]string{
	// Operators.
	"equal":           `s == same`,
	"unequal":         `s != same`,
	"less":            `s < almost`,
	"concat":          `s + one`,
	"concat ~":        `s ~ one`,
	"concat marked":   `marked ~ one`,
	"repeat":          `s * 2`,
	"repeat char":     `one * 262144`,
	"in":              `'b' in s`,
	"in, long":        `'ab' * 100 in s`,
	"in, no fast way": `'a' * 1000 ~ 'b' in s`,
	"not in":          `'b' not in s`,
	"in list":         `-1 in list`,
	"in items":        `(one, 1) in [ints.items()|list]`,
	"key":             `{s: 1}`,
	"tuple as key":    `{(s,): 1}`,
	"look up":         `keys[long[9]]`,
	"in keys":         `long[9] in keys`,
	"in view":         `long[9] in keys.keys()`,
	"get":             `keys.get(long[9])`,
	"attribute":       `keys|attr(s)`,
	"slice":           `s[1:]`,
	"slice back":      `s[::-1]`,
	"slice by 2":      `accents[::2]`,
	"slice marked":    `marked[::2]`,
	"index":           `s[200000]`,
	"index back":      `s[-1]`,
	"index accents":   `accents[100000]`,
	"slice list":      `list[::2]`,
	"list + list":     `list + list`,
	"list * n":        `list * 2`,
	"lists equal":     `list == list2`,
	"lists less":      `list < list2`,
	"dicts equal":     `ints == dict(ints)`,
	"long keys equal": `keys == keys2`,
	"dict":            `dict(ints)`,
	"dict of pairs":   `dict(pairs)`,
	"dict with args":  `dict(**keys)`,
	"namespace":       `namespace(keys)`,
	"arguments":       `one.format(*list)`,
	// Tests.
	"is lower":         `s is lower`,
	"is upper":         `upper is upper`,
	"is lower accents": `small is lower`,
	"is lower cjk":     `cjk is lower`,
	"is eq":            `s is eq(same)`,
	"is lt":            `s is lt(almost)`,
	"is in":            `'b' is in(s)`,
	"is sameas":        `s is sameas(same)`,
	// Methods of strings.
	"upper":              `s.upper()`,
	"lower":              `upper.lower()`,
	"upper accents":      `accents.upper()`,
	"lower accents":      `accents.lower()`,
	"lower sigma":        `sigma.lower()`,
	"lower marked":       `marked.lower()`,
	"title":              `words.title()`,
	"title accents":      `accents.title()`,
	"capitalize":         `accents.capitalize()`,
	"count":              `s.count('b')`,
	"count hits":         `s.count('a')`,
	"count pairs":        `s.count('aa')`,
	"count nothing":      `s.count('')`,
	"count within":       `accents.count('b', 1, 100000)`,
	"find":               `s.find('b')`,
	"find far":           `accents.find('b', 100000)`,
	"rfind":              `s.rfind('b')`,
	"rfind long":         `s.rfind('b' ~ 'a' * 1000)`,
	"find at the end":    `almost.index('b')`,
	"startswith":         `s.startswith(same)`,
	"endswith":           `s.endswith((same, same))`,
	"removeprefix":       `s.removeprefix(same)`,
	"removesuffix":       `s.removesuffix(same)`,
	"replace":            `s.replace('b', 'c')`,
	"replace all":        `s.replace('a', 'c')`,
	"replace nothing":    `s.replace('', '-')`,
	"split":              `words.split()`,
	"split by":           `words.split(' ')`,
	"split in vain":      `s.split('b')`,
	"rsplit":             `words.rsplit()`,
	"rsplit by":          `words.rsplit(' ')`,
	"rsplit in vain":     `s.rsplit('b')`,
	"rsplit once":        `s.rsplit(none, 1)`,
	"splitlines":         `lines.splitlines()`,
	"splitlines in vain": `s.splitlines()`,
	"partition":          `s.partition('b')`,
	"rpartition":         `s.rpartition('b')`,
	"strip":              `blank.strip()`,
	"lstrip chars":       `s.lstrip('ba')`,
	"rstrip many chars":  `s.rstrip(cjk ~ 'a')`,
	"join":               `', '.join(words)`,
	"join long":          `s.join('abc')`,
	"ljust":              `s.ljust(10)`,
	"rjust":              `one.rjust(200000)`,
	"zfill":              `digits.zfill(10)`,
	"format":             `'{}'.format(s)`,
	"format wide":        `'{:>10}'.format(s)`,
	"format long":        `braces.format()`,
	"isalnum":            `s.isalnum()`,
	"isalpha":            `accents.isalpha()`,
	"isdigit":            `digits.isdigit()`,
	"islower":            `s.islower()`,
	"isspace":            `blank.isspace()`,
	"isupper":            `upper.isupper()`,
	"list count":         `list.count(-1)`,
	"list index":         `list.index(30000)`,
	"dict copy":          `ints.copy()`,
	"long keys copied":   `keys.copy()`,
	// The operator %.
	// Filters.
	"|length":         `s|length`,
	"|length accents": `accents|length`,
	"|trim":           `blank|trim`,
	"|replace":        `s|replace('b', 'c')`,
	"|upper":          `s|upper`,
	"|title":          `words|title`,
	"|capitalize":     `s|capitalize`,
	"|string":         `list|string`,
	"|indent":         `lines|indent`,
	"|join":           `list|join(' ')`,
	"|join texts":     `long|join(s)`,
	"|list":           `s|list`,
	"|list of list":   `list|list`,
	"|reverse":        `s|reverse`,
	"|reverse list":   `list|reverse|list`,
	"|last":           `s|reverse|last`,
	"|sort":           `down|sort`,
	"|sort reverse":   `list|sort(reverse=true)`,
	"|sort by":        `pairs|sort(attribute='0')`,
	"|dictsort":       `ints|dictsort`,
	"|unique":         `list|unique|list`,
	"|unique long":    `long|unique|list`,
	"|min":            `list|min`,
	"|max":            `long|max`,
	"|sum":            `list|sum`,
	"|sum of lists":   `pairs|sum(start=())`,
	"|map":            `list|map('string')|list`,
	"|map attribute":  `pairs|map(attribute=0)|list`,
	"|map path":       `[1]|map(attribute=path)|list`,
	"|select":         `list|select('odd')|list`,
	"|selectattr":     `pairs|selectattr('1', 'eq', 'v')|list`,
	"|items":          `ints|items|list`,
	"|tojson":         `s|tojson`,
	"|tojson quotes":  `quotes|tojson`,
	"|tojson ascii":   `accents|tojson(ensure_ascii=true)`,
	"|tojson list":    `list|tojson`,
	"|tojson indent":  `pairs|tojson(indent=0)`,
	"|tojson sorted":  `keys|tojson(sort_keys=true)`,
	"|from_json":      `[s]|tojson|from_json`,
	"|from_json ints": `list|tojson|from_json`,
	"|int":            `s|int`,
	"|int digits":     `digits|int`,
	"|int blank":      `blank|int`,
	"|float":          `digits|float`,
	"|float in vain":  `s|float`,
	// Printing and the like.
	"repr":            `[s]|string`,
	"repr accents":    `[accents]|string`,
	"repr cjk":        `[cjk]|string`,
	"repr control":    `[control]|string`,
	"repr of a view":  `ints.items()|string`,
	"iteration":       `s|select|list`,
	"time":            `strftime_now(s)`,
	"time fields":     `strftime_now('%c' * 1000)`,
	"macro":           `m(**keys)`,
	"macro with many": `m(*list)`,
	"block of text":   `b()`,
	"loop over text":  `each(s)`,
}

const workPrelude = `{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}` +
	`{% macro b() %}{% set x %}{{ s }}{% endset %}{% filter upper %}{{ x }}{% endfilter %}{% endmacro %}` +
	`{% macro each(v) %}{% for c in v %}{% endfor %}{% endmacro %}`

func workTemplate(t testing.TB, expr string) *Template {
	t.Helper()
	tmpl, err := Parse("test", workPrelude+`{% for i in range(100000) %}{% set x = `+expr+` %}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// TestWork renders each expression often. The loop alone is within the bound;
// it has to be what the expression is charged that exceeds it.
func TestWork(t *testing.T) {
	vars := workVars(t)
	for name, expr := range work {
		t.Run(name, func(t *testing.T) {
			tmpl, err := Parse("test", workPrelude+`{% for i in range(2000) %}{% set x = `+expr+` %}{% endfor %}`)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tmpl.Render(t.Context(), vars, Options{Limits: Limits{Steps: 1e6, Memory: 1 << 40, Output: 1 << 40}})
			var limit *LimitError
			if !errors.As(err, &limit) || limit.What != "Steps" {
				t.Errorf("got %d bytes and the error %.200v, want too many steps", len(got.String()), err)
			}
		})
	}
}

// small holds what is done with little charge each, to be measured.
var small = map[string]string{
	"nothing": `1`, "name": `one`, "attribute": `one.upper`, "unknown attribute": `one.nope`, "forbidden": `one.__class__`,
	"call": `m()`, "method": `one.upper()`, "filter": `one|upper`, "test": `one is string`, "compare": `1 < 2`,
	"unhashable key": `ints[[1]]`, "arithmetic": `i * 3 + 1`, "division": `i / 3`, "power": `2 ** 10`,
	"float power": `1.5 ** 1000`, "float remainder": `f % tiny`, "float as text": `1.1|string`, "int": `one|int`,
	"float": `one|float`, "round": `tiny|round(300)`, "format": `'{:,}'.format(i)`, "format float": `'{:.300f}'.format(tiny)`,
	"range": `range(5)`, "list": `[1, 2, 3]`, "dict": `{'a': 1, 'b': 2}`, "namespace": `namespace(a=1)`, "concat": `one ~ one`,
	"slice": `one[0:1]`, "time": `strftime_now('%c')`, "map": `[1]|map('string')|list`, "upper accent": `'é'.upper()`,
	"title accent": `'é'.title()`, "json": `[1]|tojson`, "from json": `'[1]'|from_json`, "sort": `[2, 1]|sort`,
	"nearest method": `'a'|map('nope')`,
}

// BenchmarkSteps measures what a step is worth: ns/step times Limits.Steps is
// the longest that a rendering takes.
func BenchmarkSteps(b *testing.B) {
	vars := workVars(b)
	const steps = 1e7
	for group, exprs := range map[string]map[string]string{"work": work, "small": small} {
		for name, expr := range exprs {
			b.Run(group+"/"+name, func(b *testing.B) {
				tmpl := workTemplate(b, expr)
				if group == "small" {
					var err error
					tmpl, err = Parse("bench", workPrelude+`{% for j in range(100000) %}{% for i in range(100000) %}{% set x = `+expr+` %}{% endfor %}{% endfor %}`)
					if err != nil {
						b.Fatal(err)
					}
				}
				for b.Loop() {
					_, err := tmpl.Render(b.Context(), vars, Options{Limits: Limits{Steps: steps, Memory: 1 << 50, Output: 1 << 50}})
					if !errors.Is(err, ErrLimit) {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/steps, "ns/step")
			})
		}
	}
}

// TestCanceled ends the context from within the rendering.
func TestCanceled(t *testing.T) {
	cause := errors.New("the caller went away")
	vars := workVars(t)
	for name, template := range map[string]string{
		"loop":     `{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}`,
		"search":   `{{ s.count('b') }}{{ s.count('b') }}{{ s.count('b') }}`,
		"case":     `{{ s is lower }}`,
		"sort":     `{{ down|sort }}`,
		"equality": `{{ list == list2 }}`,
		"json":     `{{ accents|tojson }}{{ list|tojson }}`,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			now := func() time.Time { cancel(cause); return conformanceTime }
			tmpl, err := Parse("test", `{{ strftime_now('') }}`+template)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tmpl.Render(ctx, vars, Options{Now: now})
			var canceled *CanceledError
			if got != nil || !errors.As(err, &canceled) || !errors.Is(err, ctx.Err()) || !errors.Is(err, cause) || errors.Is(err, ErrLimit) {
				t.Errorf("got %d bytes and the error %v", len(got.String()), err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tmpl, err := Parse("test", `text`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Render(ctx, nil, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("of a context that had ended: %v", err)
	}
}
