package tags

import (
	"encoding/json"
	"slices"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/ebnf"
)

// A tokenRef names a token by its text, or by its id if the text is empty.
type tokenRef struct {
	id   int32
	text string
}

// A tokenSet is a set of tokens.
type tokenSet struct {
	ids   []int32
	texts []string
}

func (s *tokenSet) add(t tokenRef) {
	if t.text != "" {
		s.texts = append(s.texts, t.text)
	} else {
		s.ids = append(s.ids, t.id)
	}
}

func (s tokenSet) with(o tokenSet) tokenSet {
	return tokenSet{slices.Concat(s.ids, o.ids), slices.Concat(s.texts, o.texts)}
}

func (s tokenSet) has(t tokenRef) bool {
	if t.text != "" {
		return slices.Contains(s.texts, t.text)
	}
	return slices.Contains(s.ids, t.id)
}

func (r *reader) token(t tokenRef) grammar.Symbol {
	if t.text != "" {
		return r.b.Special(t.text)
	}
	return r.b.Token(t.id)
}

// tokenOf parses {"type": "token", "token": ...}.
func (r *reader) tokenOf(at place, raw json.RawMessage) (tokenRef, error) {
	var f struct {
		Type  string          `json:"type"`
		Token json.RawMessage `json:"token"`
	}
	if err := strict(at, raw, &f); err != nil {
		return tokenRef{}, err
	}
	if f.Type != "token" {
		return tokenRef{}, fail(at, `it is a text, or an object of the type "token"`)
	}
	return r.tokenRefOf(at, f.Token)
}

// tokenRefOf parses the id or the text of a token.
func (r *reader) tokenRefOf(at place, raw json.RawMessage) (tokenRef, error) {
	var t tokenRef
	if json.Unmarshal(raw, &t.text) == nil && t.text != "" {
		if r.special != nil && !r.special(t.text) {
			return t, fail(at, "the vocabulary has no special token %q; name a token by its number", t.text)
		}
		return t, nil
	}
	if t.text != "" || json.Unmarshal(raw, &t.id) != nil || t.id < 0 {
		return t, fail(at, "a token is a number or the text of a special token")
	}
	return t, nil
}

func (r *reader) tokenSetOf(at place, list []json.RawMessage) (tokenSet, error) {
	var s tokenSet
	for _, raw := range list {
		t, err := r.tokenRefOf(at, raw)
		if err != nil {
			return s, err
		}
		s.add(t)
	}
	return s, nil
}

// not returns a terminal that matches any token not in s.
func (r *reader) not(s tokenSet) grammar.Symbol { return r.b.NotTokens(s.ids, s.texts) }

func (r *reader) tokenFormat(at place, kind string, raw json.RawMessage) ([][]grammar.Symbol, error) {
	switch kind {
	case "token":
		t, err := r.tokenOf(at, raw)
		if err != nil {
			return nil, err
		}
		return [][]grammar.Symbol{{r.token(t)}}, nil
	case "token_triggered_tags":
		return r.tokenTriggered(at, raw)
	case "token_dispatch":
		return r.tokenDispatch(at, raw)
	}
	var f struct {
		Type      string            `json:"type"`
		Exclude   []json.RawMessage `json:"exclude_tokens"`
		MaxTokens *int              `json:"max_tokens"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	exclude, err := r.tokenSetOf(at, f.Exclude)
	if err != nil {
		return nil, err
	}
	one := r.not(exclude.with(at.tokens))
	if kind == "exclude_token" {
		if f.MaxTokens != nil {
			return nil, fail(at, "exclude_token is one token and has no max_tokens")
		}
		return [][]grammar.Symbol{{one}}, nil
	}
	high := -1
	if f.MaxTokens != nil {
		if high = *f.MaxTokens; high < 0 || high > maxCount {
			return nil, fail(at, "max_tokens is %d; 0 to %d work", high, maxCount)
		}
	}
	return [][]grammar.Symbol{{ebnf.Times(r.b, one, 0, high)}}, nil
}

func (r *reader) tokenTriggered(at place, raw json.RawMessage) ([][]grammar.Symbol, error) {
	var f struct {
		Type           string            `json:"type"`
		Triggers       []json.RawMessage `json:"trigger_tokens"`
		Tags           []json.RawMessage `json:"tags"`
		Exclude        []json.RawMessage `json:"exclude_tokens"`
		AtLeastOne     bool              `json:"at_least_one"`
		StopAfterFirst bool              `json:"stop_after_first"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	triggers, err := r.tokenSetOf(at, f.Triggers)
	if err != nil {
		return nil, err
	}
	exclude, err := r.tokenSetOf(at, f.Exclude)
	if err != nil {
		return nil, err
	}
	var branches [][]grammar.Symbol
	for i, x := range f.Tags {
		in := at.in(".tags[%d]", i)
		t, err := r.tag(in, x)
		if err != nil {
			return nil, err
		}
		if t.token == nil || !triggers.has(*t.token) {
			return nil, fail(in, "its begin is none of the trigger tokens")
		}
		branches = append(branches, slices.Concat(r.begin(t), t.rest))
	}
	return r.tokenBranches(at, exclude.with(triggers), branches, f.AtLeastOne, f.StopAfterFirst)
}

func (r *reader) tokenDispatch(at place, raw json.RawMessage) ([][]grammar.Symbol, error) {
	var f struct {
		Type    string               `json:"type"`
		Rules   [][2]json.RawMessage `json:"rules"`
		Loop    *bool                `json:"loop"`
		Exclude []json.RawMessage    `json:"exclude_tokens"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	exclude, err := r.tokenSetOf(at, f.Exclude)
	if err != nil {
		return nil, err
	}
	var branches [][]grammar.Symbol
	for i, x := range f.Rules {
		in := at.in(".rules[%d]", i)
		t, err := r.tokenRefOf(in, x[0])
		if err != nil {
			return nil, err
		}
		all, err := r.format(in, x[1])
		if err != nil {
			return nil, err
		}
		exclude.add(t)
		branches = append(branches, []grammar.Symbol{r.token(t), r.rule(all)})
	}
	return r.tokenBranches(at, exclude, branches, false, f.Loop != nil && !*f.Loop)
}

// tokenBranches returns free tokens, none of stops, with branches among them.
func (r *reader) tokenBranches(at place, stops tokenSet, branches [][]grammar.Symbol, first, once bool) ([][]grammar.Symbol, error) {
	if len(branches) == 0 {
		return nil, fail(at, "there are no tags")
	}
	tag := r.rule(branches)
	token := r.not(stops.with(at.tokens))
	free := ebnf.Times(r.b, token, 0, -1)
	switch {
	case first && once:
		return [][]grammar.Symbol{{tag}}, nil
	case once:
		return [][]grammar.Symbol{{free}, {free, tag}}, nil
	}
	more := ebnf.Times(r.b, r.rule([][]grammar.Symbol{{token}, {tag}}), 0, -1)
	if first {
		return [][]grammar.Symbol{{tag, more}}, nil
	}
	return [][]grammar.Symbol{{more}}, nil
}
