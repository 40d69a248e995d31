package tags

import (
	"encoding/json"
	"slices"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/ebnf"
	"github.com/realizar/realizar/internal/rx"
	"github.com/realizar/realizar/internal/rx/pattern"
)

// maxCount bounds the counts of repetitions.
const maxCount = 1 << 24

// format returns the alternatives of a format.
func (r *reader) format(at place, raw json.RawMessage) ([][]grammar.Symbol, error) {
	return r.into(at, raw, nil)
}

// into returns the alternatives of a format, followed by one of ends if there are any. Free text at
// the end of the format stops at the ends.
func (r *reader) into(at place, raw json.RawMessage, ends []string) ([][]grammar.Symbol, error) {
	if at.depth > maxDepth {
		return nil, fail(at, "formats are nested deeper than %d", maxDepth)
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || raw == nil {
		return nil, fail(at, "a format is an object with a type")
	}
	switch head.Type {
	case "any_text":
		return r.anyText(at, raw, ends)
	case "triggered_tags":
		return r.triggered(at, raw, ends)
	case "dispatch":
		return r.dispatches(at, raw, ends)
	case "sequence":
		return r.sequence(at, raw, ends)
	case "or":
		return r.or(at, raw, ends)
	}
	all, err := r.closed(at, head.Type, raw)
	if err != nil || len(ends) == 0 {
		return all, err
	}
	return [][]grammar.Symbol{slices.Concat([]grammar.Symbol{r.rule(all)}, r.literals(ends))}, nil
}

// closed returns the alternatives of a format that has an end of its own.
func (r *reader) closed(at place, kind string, raw json.RawMessage) ([][]grammar.Symbol, error) {
	switch kind {
	case "const_string":
		var f struct {
			Type  string  `json:"type"`
			Value *string `json:"value"`
		}
		if err := strict(at, raw, &f); err != nil {
			return nil, err
		}
		if f.Value == nil {
			return nil, fail(at, "const_string needs a value")
		}
		return [][]grammar.Symbol{r.text(*f.Value)}, nil
	case "json_schema":
		return r.jsonSchema(at, raw)
	case "grammar":
		var f struct {
			Type    string `json:"type"`
			Grammar string `json:"grammar"`
		}
		if err := strict(at, raw, &f); err != nil {
			return nil, err
		}
		if r.o.Grammar == nil {
			return nil, fail(at, "a grammar is not supported here")
		}
		s, err := r.o.Grammar(f.Grammar)
		if err != nil {
			return nil, wrap(at, err)
		}
		return [][]grammar.Symbol{{s}}, nil
	case "regex":
		return r.regex(at, raw)
	case "optional", "plus", "star", "repeat":
		return r.repeat(at, kind, raw)
	case "tag":
		b, err := r.tag(at, raw)
		if err != nil {
			return nil, err
		}
		return [][]grammar.Symbol{slices.Concat(r.begin(b), b.rest)}, nil
	case "tags_with_separator":
		return r.separated(at, raw)
	case "token", "exclude_token", "any_tokens", "token_triggered_tags", "token_dispatch":
		return r.tokenFormat(at, kind, raw)
	case "":
		return nil, fail(at, "a format needs a type")
	}
	return nil, fail(at, "the type %q is not known", kind)
}

func (r *reader) jsonSchema(at place, raw json.RawMessage) ([][]grammar.Symbol, error) {
	var f struct {
		Type     string          `json:"type"`
		Schema   json.RawMessage `json:"json_schema"`
		Style    string          `json:"style"`
		AnyOrder bool            `json:"any_order"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	if f.Style != "" && f.Style != "json" {
		return nil, fail(at, `the style %q is not supported; "json" is`, f.Style)
	}
	s, err := r.schema(at, f.Schema, f.AnyOrder)
	return [][]grammar.Symbol{{s}}, err
}

func (r *reader) regex(at place, raw json.RawMessage) ([][]grammar.Symbol, error) {
	var f struct {
		Type    string `json:"type"`
		Pattern string `json:"pattern"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	e, err := pattern.Parse(r.s, f.Pattern, pattern.Options{Dialect: pattern.Common})
	if err != nil {
		return nil, wrap(at, err)
	}
	if r.s.IsEmpty(e) && r.s.Err() == nil {
		return nil, fail(at, "no text fits the pattern")
	}
	return [][]grammar.Symbol{{r.b.Lexeme(e)}}, nil
}

func (r *reader) anyText(at place, raw json.RawMessage, ends []string) ([][]grammar.Symbol, error) {
	var f struct {
		Type      string   `json:"type"`
		Excludes  []string `json:"excludes"`
		MaxTokens *int     `json:"max_tokens"`
		MaxChars  *int     `json:"max_chars"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	if f.MaxTokens != nil {
		return nil, fail(at, "max_tokens of any_text is not supported; use max_chars")
	}
	if slices.Contains(f.Excludes, "") {
		return nil, fail(at, "an excluded text is empty")
	}
	text := r.any()
	if f.MaxChars != nil {
		if *f.MaxChars < 0 || *f.MaxChars > maxCount {
			return nil, fail(at, "max_chars is %d; 0 to %d work", *f.MaxChars, maxCount)
		}
		text = r.s.Repeat(r.s.Runes(rx.RuneRange{Lo: 0, Hi: 0x10FFFF}), 0, *f.MaxChars)
	}
	stops := slices.Concat(f.Excludes, at.ends)
	e := r.free(text, stops)
	if len(ends) > 0 {
		e = r.until(text, ends, slices.Concat(stops, ends))
		if r.s.IsEmpty(e) && r.s.Err() == nil {
			return nil, fail(at, "the end %q holds an excluded text", ends)
		}
	}
	return [][]grammar.Symbol{{r.b.Lexeme(e)}}, nil
}

func (r *reader) sequence(at place, raw json.RawMessage, ends []string) ([][]grammar.Symbol, error) {
	list, err := elements(at, raw)
	if err != nil {
		return nil, err
	}
	var out []grammar.Symbol
	for i, x := range list {
		own := []string(nil)
		if i == len(list)-1 {
			own = ends
		}
		all, err := r.into(at.in(".elements[%d]", i), x, own)
		if err != nil {
			return nil, err
		}
		if len(all) == 1 {
			out = append(out, all[0]...)
		} else {
			out = append(out, r.rule(all))
		}
	}
	return [][]grammar.Symbol{out}, nil
}

func (r *reader) or(at place, raw json.RawMessage, ends []string) ([][]grammar.Symbol, error) {
	list, err := elements(at, raw)
	if err != nil {
		return nil, err
	}
	var out [][]grammar.Symbol
	for i, x := range list {
		all, err := r.into(at.in(".elements[%d]", i), x, ends)
		if err != nil {
			return nil, err
		}
		out = append(out, all...)
	}
	return out, nil
}

func elements(at place, raw json.RawMessage) ([]json.RawMessage, error) {
	var f struct {
		Type     string            `json:"type"`
		Elements []json.RawMessage `json:"elements"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	if len(f.Elements) == 0 {
		return nil, fail(at, "it needs elements")
	}
	return f.Elements, nil
}

func (r *reader) repeat(at place, kind string, raw json.RawMessage) ([][]grammar.Symbol, error) {
	var f struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Min     *int            `json:"min"`
		Max     *int            `json:"max"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	low, high := 0, -1
	switch {
	case kind == "repeat":
		if f.Min == nil || f.Max == nil {
			return nil, fail(at, "repeat needs min and max")
		}
		low, high = *f.Min, *f.Max
		if low < 0 || high < -1 || low > maxCount || high > maxCount || high >= 0 && low > high {
			return nil, fail(at, "min %d and max %d are no counts; max is -1 for no bound, and at most %d", low, high, maxCount)
		}
	case f.Min != nil || f.Max != nil:
		return nil, fail(at, "%s has no min and max; repeat has", kind)
	case kind == "optional":
		high = 1
	case kind == "plus":
		low = 1
	}
	all, err := r.format(at.in(".content"), f.Content)
	if err != nil {
		return nil, err
	}
	return [][]grammar.Symbol{{ebnf.Times(r.b, r.rule(all), low, high)}}, nil
}
