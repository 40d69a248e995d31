package tags

import (
	"encoding/json"
	"slices"

	"github.com/realizar/realizar/internal/grammar"
)

// A tagged is a branch whose begin may be a token.
type tagged struct {
	branch
	token *tokenRef
}

func (r *reader) begin(t tagged) []grammar.Symbol {
	if t.token != nil {
		return []grammar.Symbol{r.token(*t.token)}
	}
	return r.text(t.begin)
}

func (r *reader) tag(at place, raw json.RawMessage) (tagged, error) {
	var t tagged
	var f struct {
		Type    string          `json:"type"`
		Begin   json.RawMessage `json:"begin"`
		Content json.RawMessage `json:"content"`
		End     json.RawMessage `json:"end"`
	}
	if err := strict(at, raw, &f); err != nil {
		return t, err
	}
	if f.Type != "tag" && f.Type != "" {
		return t, fail(at, `its type is %q; it must be "tag"`, f.Type)
	}
	if f.Begin == nil || f.Content == nil || f.End == nil {
		return t, fail(at, "a tag needs begin, content and end")
	}
	if json.Unmarshal(f.Begin, &t.begin) != nil {
		token, err := r.tokenOf(at.in(".begin"), f.Begin)
		if err != nil {
			return t, err
		}
		t.token = &token
	}
	in := at.in(".content")
	var end string
	var ends []string
	if json.Unmarshal(f.End, &end) == nil {
		ends = []string{end}
	} else if json.Unmarshal(f.End, &ends) != nil {
		token, err := r.tokenOf(at.in(".end"), f.End)
		if err != nil {
			return t, err
		}
		in.ends, in.tokens = nil, tokenSet{}
		in.tokens.add(token)
		all, err := r.format(in, f.Content)
		if err != nil {
			return t, err
		}
		t.rest = []grammar.Symbol{r.rule(all), r.token(token)}
		return t, nil
	}
	if len(ends) == 0 {
		return t, fail(at, "the list of ends is empty")
	}
	return t, r.tagEnds(&t, in, f.Content, ends)
}

// tagEnds sets t.rest to the content of a tag followed by one of ends. If the ends are plain text,
// free text at the end of the content stops at the first of them.
func (r *reader) tagEnds(t *tagged, in place, content json.RawMessage, ends []string) error {
	in.ends, in.tokens = nil, tokenSet{}
	plain := true
	for _, e := range ends {
		if e != "" {
			in.ends = append(in.ends, e)
		}
		plain = plain && e != "" && !r.specialBefore(e, len(e))
	}
	if plain {
		all, err := r.into(in, content, ends)
		if err == nil {
			t.rest = []grammar.Symbol{r.rule(all)}
		}
		return err
	}
	all, err := r.format(in, content)
	if err != nil {
		return err
	}
	var last [][]grammar.Symbol
	for _, e := range ends {
		last = append(last, r.text(e))
	}
	t.rest = []grammar.Symbol{r.rule(all), r.rule(last)}
	return nil
}

func (r *reader) separated(at place, raw json.RawMessage) ([][]grammar.Symbol, error) {
	var f struct {
		Type           string            `json:"type"`
		Tags           []json.RawMessage `json:"tags"`
		Separator      string            `json:"separator"`
		AtLeastOne     bool              `json:"at_least_one"`
		StopAfterFirst bool              `json:"stop_after_first"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	if len(f.Tags) == 0 {
		return nil, fail(at, "it needs tags")
	}
	var tags [][]grammar.Symbol
	for i, x := range f.Tags {
		b, err := r.tag(at.in(".tags[%d]", i), x)
		if err != nil {
			return nil, err
		}
		tags = append(tags, slices.Concat(r.begin(b), b.rest))
	}
	tag := r.rule(tags)
	out := [][]grammar.Symbol{{tag}}
	if !f.StopAfterFirst {
		list := r.b.Rule("tags")
		r.b.Define(list, []grammar.Symbol{tag}, slices.Concat([]grammar.Symbol{list}, r.text(f.Separator), []grammar.Symbol{tag}))
		out = [][]grammar.Symbol{{list}}
	}
	if !f.AtLeastOne {
		out = append(out, nil)
	}
	return out, nil
}

func (r *reader) triggered(at place, raw json.RawMessage, ends []string) ([][]grammar.Symbol, error) {
	var f struct {
		Type           string            `json:"type"`
		Triggers       []string          `json:"triggers"`
		Tags           []json.RawMessage `json:"tags"`
		AtLeastOne     bool              `json:"at_least_one"`
		StopAfterFirst bool              `json:"stop_after_first"`
		Excludes       []string          `json:"excludes"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	d := dispatch{triggers: f.Triggers, excludes: slices.Concat(f.Excludes, at.ends), ends: ends, first: f.AtLeastOne, once: f.StopAfterFirst}
	for i, x := range f.Tags {
		in := at.in(".tags[%d]", i)
		b, err := r.tag(in, x)
		if err != nil {
			return nil, err
		}
		if b.token != nil {
			return nil, fail(in, "its begin is a token; token_triggered_tags takes such")
		}
		d.branches = append(d.branches, b.branch)
	}
	return r.dispatchAt(at, d)
}

func (r *reader) dispatches(at place, raw json.RawMessage, ends []string) ([][]grammar.Symbol, error) {
	var f struct {
		Type     string               `json:"type"`
		Rules    [][2]json.RawMessage `json:"rules"`
		Loop     *bool                `json:"loop"`
		Excludes []string             `json:"excludes"`
	}
	if err := strict(at, raw, &f); err != nil {
		return nil, err
	}
	d := dispatch{excludes: slices.Concat(f.Excludes, at.ends), ends: ends, once: f.Loop != nil && !*f.Loop}
	for i, x := range f.Rules {
		in := at.in(".rules[%d]", i)
		var trigger string
		if err := json.Unmarshal(x[0], &trigger); err != nil || x[1] == nil {
			return nil, fail(in, "a rule is a text and a format")
		}
		all, err := r.format(in, x[1])
		if err != nil {
			return nil, err
		}
		if !slices.Contains(d.triggers, trigger) {
			d.triggers = append(d.triggers, trigger)
		}
		d.branches = append(d.branches, branch{begin: trigger, rest: []grammar.Symbol{r.rule(all)}})
	}
	return r.dispatchAt(at, d)
}
