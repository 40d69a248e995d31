package jinja

import (
	"sync"
	"testing"
	"time"
)

// TestConcurrent renders one template from many goroutines.
func TestConcurrent(t *testing.T) {
	tmpl, err := Parse("test", `{% macro m(a) %}<{{ a }}>{% endmacro %}{% set ns = namespace(n=0) %}`+
		`{% for a in l %}{% set ns.n = ns.n + a %}{{ m(a) }}{{ 'É'.lower() }}{{ strftime_now('%Y') }}{% endfor %}{{ ns.n }}`+
		`{{ nope }}{{ ns.n }}`)
	if err != nil {
		t.Fatal(err)
	}
	vars := mustJSON(t, `{"l": [1, 2, 3]}`)
	const want = "<1>é2025<2>é2025<3>é202566"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				got, err := tmpl.Render(t.Context(), vars, Options{Now: func() time.Time { return conformanceTime }})
				if err != nil || got.String() != want {
					t.Errorf("got %q, %v; want %q", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestNowOnce(t *testing.T) {
	calls := 0
	got, err := render(t, `{{ strftime_now('%f') }} {{ strftime_now('%f') }}`, nil, Options{Now: func() time.Time {
		calls++
		return time.Date(2025, 1, 1, 0, 0, calls, calls*1000, time.UTC)
	}})
	if err != nil || got.String() != "000001 000001" || calls != 1 {
		t.Errorf("got %q, %v after %d calls", got, err, calls)
	}
}

func TestMentions(t *testing.T) {
	tmpl, err := Parse("test", `{% if tools %}{{ m.thinking }}{{ m['reasoning'] }}{{ 'a name' }}{% endif %}text`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"tools": true, "m": true, "thinking": true, "reasoning": true, "text": false, "a name": false, "think": false,
	} {
		if tmpl.Mentions(name) != want {
			t.Errorf("Mentions(%q) = %v", name, !want)
		}
	}
}

// TestVarsUnchanged renders what assigns to the names of variables.
func TestVarsUnchanged(t *testing.T) {
	vars := mustJSON(t, `{"a": 1, "l": [3, 1, 2], "d": {"k": 1}}`)
	const source = `{% set a = 2 %}{% set l = l + [4] %}{{ l|sort|join }}{{ dict(d, z=2) }}{{ l|reverse|list }}`
	first, err := render(t, source, vars, Options{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := render(t, source, vars, Options{})
	if err != nil || first.String() != second.String() {
		t.Errorf("first %q, then %q, %v", first, second, err)
	}
}

// chatSource is a template of the common kind.
const chatSource = `{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content %}
    {%- set messages = messages[1:] %}
{%- endif %}
{%- for message in messages %}
    {{- '<|start|>' + message.role + '\n' }}
    {%- if loop.first and system is defined %}{{- system + '\n\n' }}{%- endif %}
    {%- if message.content is string %}
        {{- message.content | trim }}
    {%- else %}
        {%- for part in message.content if part.type == 'text' %}{{- part.text }}{%- endfor %}
    {%- endif %}
    {{- '<|end|>\n' }}
{%- endfor %}
{%- if tools %}{{- tools | tojson }}{%- endif %}
{%- if add_generation_prompt %}{{- '<|start|>assistant\n' }}{%- endif %}`

func chatVars(t testing.TB) *Dict {
	return mustJSON(t, `{"add_generation_prompt": true, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"a": {"type": "string"}}}}], "messages": [
		{"role": "system", "content": "Be brief."},
		{"role": "user", "content": "Hello, how are you today? Tell me all about it."},
		{"role": "assistant", "content": "I am well. There is little to tell."},
		{"role": "user", "content": [{"type": "text", "text": "Tell it anyway."}, {"type": "text", "text": "All of it."}]}]}`)
}

func BenchmarkRender(b *testing.B) {
	tmpl, err := Parse("bench", chatSource)
	if err != nil {
		b.Fatal(err)
	}
	vars := chatVars(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(b.Context(), vars, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("bench", chatSource); err != nil {
			b.Fatal(err)
		}
	}
}
