package lark

import (
	"encoding/json"
	"strings"
)

// directive parses a statement that begins with %.
func (p *parser) directive() error {
	at := p.pos
	p.pos++
	switch name := p.name(); name {
	case "ignore":
		n, err := p.alternatives()
		if err != nil {
			return err
		}
		p.ignored = append(p.ignored, n)
		return nil
	case "import":
		return p.imports(at)
	case "llguidance":
		return p.setOptions()
	case "declare":
		return p.errorf(at, "%%declare is not supported; define the terminal")
	case "override", "extend":
		return p.errorf(at, "%%%s is not supported; define the rule whole", name)
	default:
		return p.errorf(at, "%%%s is not known; %%ignore, %%import and %%llguidance are", name)
	}
}

// imports parses common.NAME -> ALIAS or common (A, B).
func (p *parser) imports(at int) error {
	p.space()
	module := p.name()
	if module != "common" {
		return p.errorf(at, "only the built-in %%import common.NAME works; define other terminals here")
	}
	if p.accept(".") {
		from := p.pos
		name := p.name()
		alias := name
		if p.space(); p.accept("->") {
			p.space()
			alias = p.name()
		}
		return p.importOne(from, name, alias)
	}
	p.space()
	if !p.accept("(") {
		return p.errorf(p.pos, "an import is written %%import common.NAME or %%import common (A, B)")
	}
	p.inside++
	defer func() { p.inside-- }()
	for {
		p.space()
		from := p.pos
		name := p.name()
		if err := p.importOne(from, name, name); err != nil {
			return err
		}
		p.space()
		if p.accept(")") {
			return nil
		}
		if !p.accept(",") {
			return p.errorf(p.pos, "this is %s where , or ) is due", p.shown())
		}
	}
}

func (p *parser) importOne(at int, name, alias string) error {
	text, ok := common[name]
	if !ok {
		return p.errorf(at, "common has no terminal %q", name)
	}
	if !isTerminal(alias) {
		return p.errorf(at, "a terminal's name is upper case; %q is not", alias)
	}
	if i, ok := p.defined[alias]; ok {
		if p.definitions[i].body.text == text {
			return nil // imported before
		}
		return p.errorf(at, "%s is defined twice", alias)
	}
	p.define(&definition{name: alias, at: at, body: &expr{kind: kindRegex, at: at, text: text, flags: "s"}})
	return nil
}

// json returns the JSON value at the current position.
func (p *parser) json() (string, error) {
	p.blank()
	d := json.NewDecoder(strings.NewReader(p.text[p.pos:]))
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return "", p.wrap(p.pos, "JSON", err)
	}
	p.pos += int(d.InputOffset())
	return string(raw), nil
}

// embedded parses %json {...} or %regex {...}.
func (p *parser) embedded() (*expr, error) {
	at := p.pos
	p.pos++
	k := kindJSON
	switch name := p.name(); name {
	case "json":
	case "regex":
		k = kindSubs
	default:
		return nil, p.errorf(at, "%%%s is not known here; %%json and %%regex are", name)
	}
	text, err := p.json()
	return &expr{kind: k, at: at, text: text}, err
}

// setOptions parses the JSON after %llguidance.
func (p *parser) setOptions() error {
	p.space()
	at := p.pos
	text, err := p.json()
	if err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var o struct {
		NoForcing        bool   `json:"no_forcing"`
		AllowInvalidUTF8 bool   `json:"allow_invalid_utf8"`
		AllowInitialSkip *bool  `json:"allow_initial_skip"`
		SkipRepetition   string `json:"skip_repetition"`
	}
	if err := d.Decode(&o); err != nil {
		return p.wrap(at, "%llguidance", err)
	}
	switch {
	case o.NoForcing:
		return p.errorf(at, "the option no_forcing is not supported")
	case o.AllowInvalidUTF8:
		return p.errorf(at, "the option allow_invalid_utf8 is not supported")
	case o.SkipRepetition != "" && o.SkipRepetition != "once":
		return p.errorf(at, "the option skip_repetition is %q; \"once\" works", o.SkipRepetition)
	}
	if o.AllowInitialSkip != nil {
		p.options.initialSkip = *o.AllowInitialSkip
	}
	p.options.skipOnce = p.options.skipOnce || o.SkipRepetition == "once"
	return nil
}
