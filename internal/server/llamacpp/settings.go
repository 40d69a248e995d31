package llamacpp

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// maxTop bounds n_probs.
const maxTop = 20

// settings are the fields that requests share.
type settings struct {
	model      string
	stream     bool
	generation realizar.Generation
	seeded     bool
	lastN      *int // repeat_last_n
	indent     int  // n_indent
	scores     *int // n_probs
	wanted     []string
	samplers   []string // nil means all
	left       []string // fields of the request that have no effect on the answer
	forms      []server.Grammar
}

// defaults returns the sampling of a request without options: what the model's files recommend, or
// llama.cpp's defaults.
func defaults(m *realizar.Model) realizar.Sampling {
	if d, ok := m.DefaultSampling(); ok {
		return d
	}
	return realizar.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}
}

func newSettings(x *server.Exchange) settings {
	return settings{generation: realizar.Generation{Sampling: defaults(x.Model().Model), Choices: 1}}
}

const recommended = "what the model's makers recommend, or "

var settingsFields = fields.List[settings]{
	fields.Text("model", "the model that is served", func(s *settings) *string { return &s.model }),
	fields.Flag("stream", "false", func(s *settings) *bool { return &s.stream }),
	fields.New("n_predict", "a whole number from 0, or -1 or -2 for as many as the context has room for", "-1", func(s *settings, v json.RawMessage) error {
		n, err := fields.ReadWhole(v, -2, math.MaxInt32)
		if s.generation.MaxTokens = nil; n >= 0 {
			s.generation.MaxTokens = &n
		}
		return err
	}),
	fields.Number("temperature", recommended+"0.8", 0, 100, func(s *settings) *float32 { return &s.generation.Temperature }),
	fields.New("top_k", "a whole number from 1, or 0 or -1 for all tokens", recommended+"40", func(s *settings, v json.RawMessage) error {
		k, err := fields.ReadWhole(v, -1, math.MaxInt32)
		s.generation.TopK = max(0, k)
		return err
	}),
	share("top_p", "0.95", func(s *settings) *float32 { return &s.generation.TopP }),
	fields.Number("min_p", recommended+"0.05", 0, 1, func(s *settings) *float32 { return &s.generation.MinP }),
	share("typical_p", "1", func(s *settings) *float32 { return &s.generation.Typical }),
	fields.Number("repeat_penalty", recommended+"1", 0.01, 100, func(s *settings) *float32 { return &s.generation.RepetitionPenalty }),
	fields.Number("presence_penalty", "0", -2, 2, func(s *settings) *float32 { return &s.generation.PresencePenalty }),
	fields.Number("frequency_penalty", "0", -2, 2, func(s *settings) *float32 { return &s.generation.FrequencyPenalty }),
	fields.New("repeat_last_n", "a whole number from 0, or -1 for all tokens; with a penalty 0, which switches penalties off, or all tokens", "-1", func(s *settings, v json.RawMessage) error {
		n, err := fields.ReadWhole(v, -1, math.MaxInt32)
		s.lastN = &n
		return err
	}),
	fields.New("seed", "a whole number of 64 bits; -1 is a random one", "a random one", func(s *settings, v json.RawMessage) error {
		seed, err := fields.ReadSeed(v)
		s.generation.Seed, s.seeded = seed, seed != math.MaxUint64
		return err
	}),
	fields.New("stop", "a string, or a list of up to 64", "none", readStop),
	fields.Flag("ignore_eos", "false", func(s *settings) *bool { return &s.generation.IgnoreEnd }),
	fields.New("logit_bias", "a list of pairs of a token id, and a number or false for never; or an object of numbers by id", "none", readBias),
	fields.Optional("n_probs", "none", 0, maxTop, func(s *settings) **int { return &s.scores }),
	fields.New("grammar", "a grammar in GBNF", "free text", func(s *settings, v json.RawMessage) error {
		text := ""
		if err := fields.ReadText(v, &text); err != nil || text == "" {
			return err
		}
		s.forms = append(s.forms, server.Grammar{Kind: server.GBNF, Text: []byte(text), Param: "grammar"})
		return nil
	}),
	fields.New("json_schema", "a JSON schema", "free text", func(s *settings, v json.RawMessage) error {
		if v[0] != '{' {
			return fields.ErrWrong
		}
		s.forms = append(s.forms, server.Grammar{Kind: server.JSONSchema, Text: v, Param: "json_schema"})
		return nil
	}),
	fields.New("samplers", "a list of the names of settings that count, in llama.cpp's spelling and the order in which they apply; infill is left out, and the header X-Left-Out says so", "all", readSamplers),
	fields.Whole("n_indent", "0; the answer ends before a line with less white space before its text, unless it is a stream", 0, math.MaxInt32, func(s *settings) *int { return &s.indent }),
	fields.New("response_fields", "a list of names of the answer's parts; those of timings/ stand in the answer itself, the others are there in any case", "none", func(s *settings, v json.RawMessage) (err error) {
		s.wanted, err = readTexts(v)
		return err
	}),
	fields.Only[settings]("dynatemp_range", "0", "leave it out, and use temperature", "0", "0.0"),
	fields.Only[settings]("xtc_probability", "0", "leave it out, and use top_p or min_p", "0", "0.0"),
	fields.Only[settings]("dry_multiplier", "0", "leave it out, and use frequency_penalty", "0", "0.0"),
	fields.Only[settings]("top_n_sigma", "-1", "leave it out, and use min_p", "-1", "-1.0", "0", "0.0"),
	fields.Only[settings]("mirostat", "0", "leave it out, and use top_p or min_p", "0"),
	fields.Only[settings]("min_keep", "0", "the other settings say which tokens are kept", "0"),
	fields.Only[settings]("n_cmpl", "1", "/v1/completions has n", "1"),
	fields.Only[settings]("post_sampling_probs", "false", "probabilities are the model's own", "false"),
	fields.Only[settings]("return_tokens", "false", "n_probs has the ids of an answer's tokens", "false"),
	fields.Only[settings]("return_progress", "false", "a stream begins with the answer", "false"),
	fields.Only[settings]("lora", "[]", "there are no adapters", "[]"),
	fields.Optional("speculative.n_max", "as many as pay; 0 for none", 0, realizar.MaxSpeculativeTokens, func(s *settings) **int { return &s.generation.SpeculativeTokens }),
	fields.Ignored[settings]("speculative.n_min"),
	fields.Ignored[settings]("speculative.p_min"),
	fields.Ignored[settings]("dynatemp_exponent"),
	fields.Ignored[settings]("xtc_threshold"),
	fields.Ignored[settings]("dry_base"),
	fields.Ignored[settings]("dry_allowed_length"),
	fields.Ignored[settings]("dry_penalty_last_n"),
	fields.Ignored[settings]("dry_sequence_breakers"),
	fields.Ignored[settings]("mirostat_tau"),
	fields.Ignored[settings]("mirostat_eta"),
	fields.Ignored[settings]("n_keep"), // about truncating a context, which is never done
	fields.Ignored[settings]("n_discard"),
	fields.Ignored[settings]("id_slot"),
	fields.Ignored[settings]("slot_id"),
	fields.Ignored[settings]("cache_prompt"),
	fields.Ignored[settings]("n_cache_reuse"),
	fields.Ignored[settings]("timings_per_token"),
	fields.Ignored[settings]("t_max_prompt_ms"), // llama.cpp ignores it, too
	fields.New("t_max_predict_ms", "a whole number: milliseconds from an answer's first token, after which it ends when it has a line break; 0 or -1 for any time", "-1", func(s *settings, v json.RawMessage) error {
		ms, err := fields.ReadWhole(v, -1, math.MaxInt32)
		s.generation.MaxTime = time.Duration(max(0, ms)) * time.Millisecond
		return err
	}),
}

// share returns a field with a share of the probabilities. 0 keeps the likeliest token.
func share(name, otherwise string, to func(*settings) *float32) fields.Field[settings] {
	return fields.New(name, "a number from 0 to 1", recommended+otherwise, func(s *settings, v json.RawMessage) (err error) {
		*to(s), err = fields.ReadShareOr0(v)
		return err
	})
}

// readTexts reads a list of strings.
func readTexts(v json.RawMessage) ([]string, error) {
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(list))
	for i, v := range list {
		if err := fields.ReadText(v, &texts[i]); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func readStop(s *settings, v json.RawMessage) (err error) {
	s.generation.Stop, err = fields.ReadStops("stop", v)
	return err
}

func readBias(s *settings, v json.RawMessage) error {
	s.generation.LogitBias = map[int32]float32{}
	if v[0] == '{' {
		return fields.Members(v, "logit_bias", func(name string, v json.RawMessage) error {
			return s.bias([]byte(name), v)
		})
	}
	list, err := fields.Elements(v)
	if err != nil {
		return err
	}
	for _, v := range list {
		pair, err := fields.Elements(v)
		if err != nil || len(pair) != 2 {
			return fields.ErrWrong
		}
		if err := s.bias(pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) bias(name, v []byte) error {
	id, err := strconv.ParseInt(string(name), 10, 32)
	if err != nil {
		return fields.Invalid("logit_bias", "logit_bias has %.50q; want the ids of tokens", name)
	}
	if string(v) == "false" {
		s.generation.LogitBias[int32(id)] = float32(math.Inf(-1))
		return nil
	}
	bias, err := strconv.ParseFloat(string(v), 32)
	if err != nil || math.IsInf(bias, 0) {
		return fields.Invalid("logit_bias", "logit_bias of %d is %s; want a number, or false", id, fields.Short(v))
	}
	s.generation.LogitBias[int32(id)] = float32(bias)
	return nil
}

// The names of samplers. idleSamplers belong to settings that are refused unless they have no
// effect.
var (
	samplers     = []string{penalties, temperature, topK, typical, topP, minP} // in the order in which they apply
	idleSamplers = []string{"dry", "xtc", "top_n_sigma"}
)

const (
	penalties   = "penalties"
	temperature = "temperature"
	topK        = "top_k"
	typical     = "typ_p"
	topP        = "top_p"
	minP        = "min_p"
	gapSampler  = "infill" // it joins tokens with a common beginning and ends the answer early; it has no counterpart here
)

func readSamplers(s *settings, v json.RawMessage) error {
	names, err := readTexts(v)
	if err != nil {
		return err
	}
	s.samplers = []string{}
	for i, name := range names {
		if name == "typical_p" {
			name = typical
		}
		switch {
		case slices.Contains(s.samplers, name):
			return fields.Invalid("samplers", "samplers has %.50q twice; leave one out", name)
		case name == gapSampler:
			s.left = append(s.left, fmt.Sprintf("samplers[%d] (%s)", i, name))
		case !slices.Contains(samplers, name) && !slices.Contains(idleSamplers, name):
			return fields.Invalid("samplers", "samplers has %.50q; want some of %q, %q or %q", name, samplers, idleSamplers, gapSampler)
		}
		s.samplers = append(s.samplers, name)
	}
	return nil
}

// settle checks the settings against each other and the model.
func (s *settings) settle(x *server.Exchange) error {
	m, g := x.Model(), &s.generation
	for id := range g.LogitBias {
		if id < 0 || int(id) >= m.Vocab() {
			return fields.Invalid("logit_bias", "logit_bias has token %d, which is outside the vocabulary of %d", id, m.Vocab())
		}
	}
	if s.scores != nil && *s.scores > 0 {
		g.LogProbs = s.scores
	}
	if s.samplers != nil {
		if err := s.choose(); err != nil {
			return err
		}
	}
	if err := x.LookBack(g, s.lastN, "repeat_last_n"); err != nil {
		return err
	}
	switch {
	case s.indent > 0 && s.stream:
		return fields.Invalid("n_indent", "n_indent is for answers that are not streams; leave out one of n_indent and stream")
	case len(s.forms) > 1:
		return fields.Invalid("json_schema", "grammar and json_schema both say what the answer must be; leave one out")
	case len(s.forms) > 0 && g.IgnoreEnd:
		return fields.Invalid("ignore_eos", "ignore_eos has an answer go on past its end, and %s says what it must be as a whole; leave one out", s.forms[0].Param)
	}
	if s.stream {
		if err := x.NoTimings(); err != nil {
			return err
		}
	}
	x.LeftOut(s.left...)
	return nil
}

// choose turns off the settings whose samplers are not listed. It refuses an order of the others if
// that order would change the answer.
func (s *settings) choose() error {
	g := &s.generation
	out := func(name string) bool { return !slices.Contains(s.samplers, name) }
	if out(penalties) {
		server.Unpenalize(g)
	}
	if out(topK) {
		g.TopK = 0
	}
	if out(typical) {
		g.Typical = 0
	}
	if out(topP) {
		g.TopP = 0
	}
	if out(minP) {
		g.MinP = 0
	}
	if out(temperature) && g.Temperature != 0 {
		g.Temperature = 1
	}
	for i, last := range s.samplers {
		for _, first := range s.samplers[:i] {
			if slices.Index(samplers, first) > slices.Index(samplers, last) && s.clash(first, last) {
				return fields.Invalid("samplers", "samplers has %s before %s, and settings apply in the order %s; keep to it, or leave samplers out", first, last, strings.Join(samplers, ", "))
			}
		}
	}
	return nil
}

// clash reports whether the order of two settings matters, of which this package applies last
// before first.
func (s *settings) clash(first, last string) bool {
	g := &s.generation
	acts := map[string]bool{
		penalties: server.Penalizes(g), temperature: g.Temperature != 1, topK: g.TopK > 0,
		typical: 0 < g.Typical && g.Typical < 1, topP: 0 < g.TopP && g.TopP < 1, minP: g.MinP > 0,
	}
	switch {
	case !acts[first] || !acts[last]:
		return false
	case last == temperature && g.Temperature == 0: // the likeliest token, which only typ_p may drop
		return first == typical
	}
	return last != temperature || first != topK // top_k keeps the same tokens at any temperature
}

// grammar returns the constraint on the answer, or nil.
func (s *settings) grammar() *server.Grammar {
	if len(s.forms) == 0 {
		return nil
	}
	return &s.forms[0]
}
