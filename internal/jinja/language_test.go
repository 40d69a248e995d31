package jinja

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// render is what most tests need: the text of a template, in spans.
func render(t testing.TB, source string, vars *Dict, opt Options) (Text, error) {
	t.Helper()
	tmpl, err := Parse("test", source)
	if err != nil {
		return nil, err
	}
	return tmpl.Render(t.Context(), vars, opt)
}

func mustJSON(t testing.TB, data string) *Dict {
	t.Helper()
	v, err := FromJSON([]byte(data), false)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Dict)
}

var errorKinds = map[string]error{
	"syntax":    ErrSyntax,
	"undefined": ErrUndefined,
	"security":  ErrSecurity,
	"runtime":   ErrRuntime,
	"raised":    ErrRaised,
}

// TestLanguage renders small templates that cover the language. What they give
// was computed by jinja2 3.1.6 on CPython 3.11, in the setting of transformers.
func TestLanguage(t *testing.T) {
	var data struct {
		Vars   json.RawMessage
		Groups map[string][]struct {
			Template, Error string
			Want            *string
		}
	}
	readJSON(t, "testdata/language.json", &data)
	opt := Options{Now: func() time.Time { return conformanceTime }}
	for group, cases := range data.Groups {
		t.Run(group, func(t *testing.T) {
			for _, c := range cases {
				vars := mustJSON(t, string(data.Vars))
				got, err := render(t, c.Template, vars, opt)
				if c.Want == nil {
					if !errors.Is(err, errorKinds[c.Error]) {
						t.Errorf("%q: got %q and the error %v, want an error of kind %q", c.Template, got, err, c.Error)
					}
					continue
				}
				if err != nil {
					t.Errorf("%q: %v", c.Template, err)
					continue
				}
				if diff := cmp.Diff(*c.Want, got.String()); diff != "" {
					t.Errorf("%q (-want +got):\n%s", c.Template, diff)
				}
			}
		})
	}
}

// TestDepartures holds what this package does unlike jinja2, on purpose.
func TestDepartures(t *testing.T) {
	for _, c := range []struct {
		name, template string
		kind           error
	}{
		{"chance", `{{ [1, 2]|random }}`, ErrSyntax},
		{"other templates", `{% include "x" ignore missing %}`, ErrSyntax},
		{"blocks to inherit", `{% block b %}{% endblock %}`, ErrSyntax},
		{"percent formatting", `{{ '%s' % 1 }}`, ErrRuntime},
		{"the filters of HTML", `{{ 'a'|escape }}`, ErrSyntax},
		{"integers beyond 64 bits", `{{ 9223372036854775807 + 1 }}`, ErrRuntime},
		{"products beyond 64 bits", `{{ 4611686018427387904 * 2 }}`, ErrRuntime},
		{"powers beyond 64 bits", `{{ 10 ** 19 }}`, ErrRuntime},
		{"arithmetic with wider integers", `{{ '123456789012345678901234567890'|from_json + 1 }}`, ErrRuntime},
		{"fields of fields", `{{ '{0[a]}'.format({'a': 1}) }}`, ErrRuntime},
		{"complex numbers", `{{ (-8) ** 0.5 }}`, ErrRuntime},
		{"characters by name", `{{ '\N{BULLET}' }}`, ErrSyntax},
		{"slices of what has no items", `{{ none[1:] }}`, ErrRuntime},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := render(t, c.template, nil, Options{}); !errors.Is(err, c.kind) {
				t.Errorf("%s = %q, %v; want %v", c.template, got, err, c.kind)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		template string
		kind     error
		want     string
	}{
		{"a\n{% if %}", ErrSyntax, "jinja: test:2: Expected an expression, got 'end of statement block'"},
		{"{% if x %}\n{% for a in b %}\n{% endif %}", ErrSyntax, "jinja: test:3: Encountered unknown tag 'endif'. You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for 'endfor' or 'else'. The innermost block that needs to be closed is 'for'."},
		{"{% for a in b %}", ErrSyntax, "jinja: test:1: Unexpected end of template. Jinja was looking for the following tags: 'endfor' or 'else'. The innermost block that needs to be closed is 'for'."},
		{"{{ 'a'|nosuch }}", ErrSyntax, "jinja: test:1: No filter named 'nosuch'; the nearest is 'count'."},
		{"{{ 'a' is nosuch }}", ErrSyntax, "jinja: test:1: No test named 'nosuch'; the nearest is 'none'."},
		{"\n\n{{ x.y }}", ErrUndefined, "jinja: test:3: UndefinedError: 'x' is undefined"},
		{"{{ {}.a.b }}", ErrUndefined, "jinja: test:1: UndefinedError: 'dict object' has no attribute 'a'"},
		{"{{ [1][3].b }}", ErrUndefined, "jinja: test:1: UndefinedError: list object has no element 3"},
		{"{{ 'a'|to_json }}", ErrSyntax, "jinja: test:1: No filter named 'to_json'; the nearest is 'tojson'."},
		{"{% if true %}\n{{ 'a'|tojsn }}{% endif %}", ErrRuntime, "jinja: test:2: TemplateRuntimeError: No filter named 'tojsn'; the nearest is 'tojson'."},
		{"{{ ['a']|map('uper')|list }}", ErrRuntime, "jinja: test:1: TemplateRuntimeError: No filter named 'uper'; the nearest is 'upper'."},
		{"{{ ['a']|select('strng')|list }}", ErrRuntime, "jinja: test:1: TemplateRuntimeError: No test named 'strng'; the nearest is 'string'."},
		{"{{ ''.striip() }}", ErrUndefined, "jinja: test:1: UndefinedError: 'str object' has no attribute 'striip'; the nearest is 'strip'"},
		{"{{ [1].cont(1) }}", ErrUndefined, "jinja: test:1: UndefinedError: 'list object' has no attribute 'cont'; the nearest is 'count'"},
		{"{% include 'a' %}", ErrSyntax, "jinja: test:1: the tag 'include' is not available: a chat template stands alone"},
		{"{{ 'a'|from_json }}", ErrRuntime, "jinja: test:1: ValueError: from_json: jinja: not JSON: expected a value at byte 0"},
		{"{{ none.nope.x }}", ErrUndefined, "jinja: test:1: UndefinedError: 'None' has no attribute 'nope'"},
		{"{{ [].append(1) }}", ErrSecurity, "jinja: test:1: SecurityError: access to attribute 'append' of 'list' object is unsafe."},
		{"{{ ''.__class__.x }}", ErrSecurity, "jinja: test:1: SecurityError: access to attribute '__class__' of 'str' object is unsafe."},
		{"{{ 'a' + 1 }}", ErrRuntime, `jinja: test:1: TypeError: can only concatenate str (not "int") to str`},
		{"{{ 1 < 'a' }}", ErrRuntime, "jinja: test:1: TypeError: '<' not supported between instances of 'int' and 'str'"},
		{"{% macro m() %}\n{{ 1 // 0 }}\n{% endmacro %}\n{{ m() }}", ErrRuntime, "jinja: test:2: ZeroDivisionError: integer division or modulo by zero"},
		{"\n{{ raise_exception('no ' ~ 1) }}", ErrRaised, "jinja: test:2: no 1"},
	} {
		_, err := render(t, c.template, nil, Options{})
		if !errors.Is(err, c.kind) || err == nil || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.template, err, c.want)
		}
	}
	var raised *RaiseError
	if _, err := render(t, `{{ raise_exception('no') }}`, nil, Options{}); !errors.As(err, &raised) || raised.Message != "no" {
		t.Errorf("raise_exception: %v", err)
	}
	if errors.Is(raised, ErrRuntime) {
		t.Error("a refusal counts as a failure")
	}
}
