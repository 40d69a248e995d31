package server

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/realizar/realizar"
)

// The most that a request may ask for.
const (
	maxChoices = 128
	maxStops   = 64
	maxTop     = 20 // log-probabilities of the likeliest tokens
)

// settings are what requests for chats and for completions have in common.
type settings struct {
	model        string
	stream       bool
	options      streamOptions
	hasOptions   bool
	generation   realizar.Generation
	seeded       bool
	priority     int
	promptScores *int // prompt_logprobs
}

type streamOptions struct{ usage bool }

// newSettings are those of a request that says nothing.
func (s *Server) newSettings() settings {
	return settings{generation: realizar.Generation{Sampling: s.sampling(), Choices: 1}}
}

var streamOptionsFields = fields[streamOptions]{
	flag("include_usage", "false", func(o *streamOptions) *bool { return &o.usage }),
	only[streamOptions]("continuous_usage_stats", "false", "usage comes once, before the end", "false"),
	ignored[streamOptions]("include_obfuscation"),
}

// settingsFields are the fields of both, OpenAI's and those that vLLM adds.
var settingsFields = fields[settings]{
	text("model", "", func(s *settings) *string { return &s.model }),
	flag("stream", "false", func(s *settings) *bool { return &s.stream }),
	{"stream_options", "an object", "no usage in streams", func(s *settings, v json.RawMessage) error {
		s.hasOptions = true
		return streamOptionsFields.decode(&s.options, v, "stream_options")
	}},
	whole("n", "1", 1, maxChoices, func(s *settings) *int { return &s.generation.Choices }),
	number("temperature", "what the model's makers recommend, or 1", 0, 2, func(s *settings) *float32 { return &s.generation.Temperature }),
	{"top_p", "a number above 0, to 1", "what the model's makers recommend, or 1", above0(func(s *settings) *float32 { return &s.generation.TopP })},
	{"typical_p", "a number above 0, to 1", "what the model's makers recommend, or 1", above0(func(s *settings) *float32 { return &s.generation.Typical })},
	number("min_p", "what the model's makers recommend, or 0", 0, 1, func(s *settings) *float32 { return &s.generation.MinP }),
	{"top_k", "a whole number from 1, or -1 or 0 for all tokens", "what the model's makers recommend, or 0", func(s *settings, v json.RawMessage) error {
		k, err := readWhole(v, -1, math.MaxInt32)
		s.generation.TopK = max(0, k)
		return err
	}},
	number("repetition_penalty", "what the model's makers recommend, or 1", 0.01, 100, func(s *settings) *float32 { return &s.generation.RepetitionPenalty }),
	number("presence_penalty", "0", -2, 2, func(s *settings) *float32 { return &s.generation.PresencePenalty }),
	number("frequency_penalty", "0", -2, 2, func(s *settings) *float32 { return &s.generation.FrequencyPenalty }),
	{"seed", "a whole number of 64 bits", "a random one", func(s *settings, v json.RawMessage) error {
		s.seeded = true
		seed, err := readSeed(v)
		s.generation.Seed = seed
		return err
	}},
	{"stop", "a string, or a list of up to 64", "none", readStop},
	{"stop_token_ids", "a list of token ids", "none", func(s *settings, v json.RawMessage) (err error) {
		s.generation.StopTokens, err = readIDs(v)
		return err
	}},
	{"logit_bias", "an object of numbers from -100 to 100 by token id", "none", readBias},
	whole("min_tokens", "0", 0, math.MaxInt32, func(s *settings) *int { return &s.generation.MinTokens }),
	flag("ignore_eos", "false", func(s *settings) *bool { return &s.generation.IgnoreEnd }),
	whole("priority", "0; lower ones go first", -math.MaxInt32, math.MaxInt32, func(s *settings) *int { return &s.priority }),
	text("cache_salt", "the cache is shared", func(s *settings) *string { return &s.generation.Salt }),
	optional("prompt_logprobs", "none", 0, maxTop, func(s *settings) **int { return &s.promptScores }),
	only[settings]("skip_special_tokens", "true", "special tokens are no part of an answer's text", "true"),
	only[settings]("include_stop_str_in_output", "false", "a stop string is no part of the answer", "false"),
	only[settings]("store", "false", "answers are not kept", "false"),
	only[settings]("service_tier", `"auto" or "default"`, "there is one tier; use priority", `"auto"`, `"default"`),
	ignored[settings]("user"),
	ignored[settings]("metadata"),
	ignored[settings]("safety_identifier"),
	ignored[settings]("prompt_cache_key"),
	ignored[settings]("prompt_cache_retention"),
	ignored[settings]("prediction"),
}

// optional is a field of a whole number that holds something else where it is left
// out.
func optional[R any](name, without string, least, most int, to func(*R) **int) field[R] {
	f := whole(name, without, least, most, func(r *R) *int {
		n := new(int)
		*to(r) = n
		return n
	})
	return f
}

// above0 reads a share that cannot be nothing.
func above0(to func(*settings) *float32) func(*settings, json.RawMessage) error {
	return func(s *settings, v json.RawMessage) error {
		p, err := strconv.ParseFloat(string(v), 64)
		if err != nil || !(p > 0 && p <= 1) {
			return errWrong
		}
		*to(s) = max(float32(p), math.SmallestNonzeroFloat32)
		return nil
	}
}

// readSeed takes what fits 64 bits, with a sign or without.
func readSeed(v json.RawMessage) (uint64, error) {
	if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, errWrong
	}
	return uint64(n), nil
}

func readStop(s *settings, v json.RawMessage) error {
	list, err := []json.RawMessage{v}, error(nil)
	if v[0] == '[' {
		if list, err = elements(v); err != nil {
			return err
		}
	}
	if len(list) > maxStops {
		return invalid("stop", "stop has %d strings; want %d at most", len(list), maxStops)
	}
	s.generation.Stop = nil
	for _, v := range list {
		var text string
		if err := readText(v, &text); err != nil {
			return err
		}
		if text == "" {
			return invalid("stop", "a string of stop is empty; leave it out")
		}
		s.generation.Stop = append(s.generation.Stop, text)
	}
	return nil
}

// readIDs reads a list of token ids. Whether the vocabulary has them is for the model
// to say.
func readIDs(v json.RawMessage) ([]int32, error) {
	if v[0] != '[' {
		return nil, errWrong
	}
	ids := []int32{}
	if bytes.Contains(v, []byte("null")) || json.Unmarshal(v, &ids) != nil { // which would read null as 0
		return nil, errWrong
	}
	return ids, nil
}

func readBias(s *settings, v json.RawMessage) error {
	if v[0] != '{' {
		return errWrong
	}
	s.generation.LogitBias = map[int32]float32{}
	return members(v, "logit_bias", func(name string, v json.RawMessage) error {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return invalid("logit_bias", "logit_bias has %.50q; want the ids of tokens", name)
		}
		bias, err := strconv.ParseFloat(string(v), 64)
		if err != nil || !(bias >= -100 && bias <= 100) {
			return invalid("logit_bias", "logit_bias of %d is %s; want a number from -100 to 100", id, short(v))
		}
		s.generation.LogitBias[int32(id)] = float32(bias)
		return nil
	})
}

// settle says what is wrong with settings as a whole, and fills in the rest.
func (s *Server) settle(t *settings) error {
	g := &t.generation
	switch {
	case t.model == "":
		return missing("model")
	case t.hasOptions && !t.stream:
		return invalid("stream_options", "stream_options is for streams; add stream, or leave it out")
	case t.promptScores != nil && t.stream:
		return invalid("prompt_logprobs", "prompt_logprobs come with answers that are not streams; leave out stream")
	case g.MaxTokens != nil && g.MinTokens > *g.MaxTokens:
		return invalid("min_tokens", "min_tokens is %d, but the answer ends after %d", g.MinTokens, *g.MaxTokens)
	}
	if err := s.checkModel(t.model); err != nil {
		return err
	}
	for id := range g.LogitBias {
		if id < 0 || int(id) >= s.model.Vocab() {
			return invalid("logit_bias", "logit_bias has token %d, which is outside the vocabulary of %d", id, s.model.Vocab())
		}
	}
	for _, id := range g.StopTokens {
		if id < 0 || int(id) >= s.model.Vocab() {
			return invalid("stop_token_ids", "stop_token_ids has token %d, which is outside the vocabulary of %d", id, s.model.Vocab())
		}
	}
	g.Priority = -t.priority
	g.PromptLogProbs = t.promptScores
	if !t.seeded {
		g.Seed = randomSeed()
	}
	return nil
}

func missing(name string) *Error {
	return &Error{Status: 400, Param: name, Code: "missing_required_parameter", Message: "the field " + name + " is missing"}
}
