package openai

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// The limits of a request.
const (
	maxChoices = 128
	maxTop     = 20 // log-probabilities of the likeliest tokens
)

// settings are the fields that requests for chats and completions share.
type settings struct {
	model        string
	stream       bool
	options      streamOptions
	generation   realizar.Generation
	seeded       bool
	priority     int
	promptScores *int // prompt_logprobs
	transfer     *server.KVTransfer
	forms        []server.Grammar // constraints on the answer; more than one is an error
}

type streamOptions struct{ usage bool }

// newSettings returns the settings of a request without fields.
func newSettings(x *server.Exchange) settings { return settings{generation: x.Defaults()} }

var streamOptionsFields = fields.List[streamOptions]{
	fields.Flag("include_usage", "false", func(o *streamOptions) *bool { return &o.usage }),
	fields.Only[streamOptions]("continuous_usage_stats", "false", "usage comes once, before the end", "false"),
	fields.Ignored[streamOptions]("include_obfuscation"),
}

// settingsFields are the fields of settings: OpenAI's and those that vLLM added.
var settingsFields = fields.List[settings]{
	fields.Text("model", "the model that is served", func(s *settings) *string { return &s.model }),
	fields.Flag("stream", "false", func(s *settings) *bool { return &s.stream }),
	fields.New("stream_options", "an object", "no usage in streams", func(s *settings, v json.RawMessage) error {
		return streamOptionsFields.Decode(&s.options, v, "stream_options")
	}),
	fields.Whole("n", "1", 1, maxChoices, func(s *settings) *int { return &s.generation.Choices }),
	fields.Number("temperature", "what the model's makers recommend, or 1", 0, 2, func(s *settings) *float32 { return &s.generation.Temperature }),
	fields.New("top_p", "a number above 0, to 1", "what the model's makers recommend, or 1", above0(func(s *settings) *float32 { return &s.generation.TopP })),
	fields.New("typical_p", "a number above 0, to 1", "what the model's makers recommend, or 1", above0(func(s *settings) *float32 { return &s.generation.Typical })),
	fields.Number("min_p", "what the model's makers recommend, or 0", 0, 1, func(s *settings) *float32 { return &s.generation.MinP }),
	fields.New("top_k", "a whole number from 1, or -1 or 0 for all tokens", "what the model's makers recommend, or 0", func(s *settings, v json.RawMessage) error {
		k, err := fields.ReadWhole(v, -1, math.MaxInt32)
		s.generation.TopK = max(0, k)
		return err
	}),
	fields.Number("repetition_penalty", "what the model's makers recommend, or 1", 0.01, 100, func(s *settings) *float32 { return &s.generation.RepetitionPenalty }),
	fields.Number("presence_penalty", "0", -2, 2, func(s *settings) *float32 { return &s.generation.PresencePenalty }),
	fields.Number("frequency_penalty", "0", -2, 2, func(s *settings) *float32 { return &s.generation.FrequencyPenalty }),
	fields.New("seed", "a whole number of 64 bits", "a random one", func(s *settings, v json.RawMessage) error {
		s.seeded = true
		seed, err := fields.ReadSeed(v)
		s.generation.Seed = seed
		return err
	}),
	fields.New("stop", "a string, or a list of up to 64", "none", readStop),
	fields.New("stop_token_ids", "a list of token ids", "none", func(s *settings, v json.RawMessage) (err error) {
		s.generation.StopTokens, err = fields.ReadIDs(v)
		return err
	}),
	fields.New("logit_bias", "an object of numbers from -100 to 100 by token id", "none", readBias),
	fields.Whole("min_tokens", "0", 0, math.MaxInt32, func(s *settings) *int { return &s.generation.MinTokens }),
	fields.Optional("speculative_tokens", "as many as pay; 0 for none", 0, realizar.MaxSpeculativeTokens, func(s *settings) **int { return &s.generation.SpeculativeTokens }),
	fields.Flag("ignore_eos", "false", func(s *settings) *bool { return &s.generation.IgnoreEnd }),
	fields.Whole("priority", "0; lower ones go first", -math.MaxInt32, math.MaxInt32, func(s *settings) *int { return &s.priority }),
	fields.Text("cache_salt", "the cache is shared", func(s *settings) *string { return &s.generation.Salt }),
	fields.New("kv_transfer_params", "an object", "the KV cache is not transferred", readTransfer),
	fields.Optional("prompt_logprobs", "none", 0, maxTop, func(s *settings) **int { return &s.promptScores }),
	fields.Only[settings]("skip_special_tokens", "true", "special tokens are no part of an answer's text", "true"),
	fields.Only[settings]("include_stop_str_in_output", "false", "a stop string is no part of the answer", "false"),
	fields.Ignored[settings]("store"),        // answers are not kept
	fields.Ignored[settings]("service_tier"), // there is one tier
	fields.Ignored[settings]("user"),
	fields.Ignored[settings]("metadata"),
	fields.Ignored[settings]("safety_identifier"),
	fields.Ignored[settings]("prompt_cache_key"),
	fields.Ignored[settings]("prompt_cache_retention"),
	fields.Ignored[settings]("prediction"),
	fields.Ignored[settings]("cache_prompt"), // a hint for llama.cpp, as are the next two; keep_alive is for Ollama
	fields.Ignored[settings]("id_slot"),
	fields.Ignored[settings]("timings_per_token"),
	fields.Ignored[settings]("keep_alive"),
	fields.Ignored[settings]("extra_body"), // some clients send it; its members should be fields of the request
}

// above0 returns a reader of a number above 0, to 1.
func above0(to func(*settings) *float32) func(*settings, json.RawMessage) error {
	return func(s *settings, v json.RawMessage) (err error) {
		*to(s), err = fields.ReadShare(v)
		return err
	}
}

func readStop(s *settings, v json.RawMessage) (err error) {
	s.generation.Stop, err = fields.ReadStops("stop", v)
	return err
}

func readBias(s *settings, v json.RawMessage) error {
	if v[0] != '{' {
		return fields.ErrWrong
	}
	s.generation.LogitBias = map[int32]float32{}
	return fields.Members(v, "logit_bias", func(name string, v json.RawMessage) error {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || strconv.FormatInt(id, 10) != name { // one spelling, so that no id appears twice
			return fields.Invalid("logit_bias", "logit_bias has %.50q; want the ids of tokens", name)
		}
		bias, err := strconv.ParseFloat(string(v), 64)
		if err != nil || !(bias >= -100 && bias <= 100) {
			return fields.Invalid("logit_bias", "logit_bias of %d is %s; want a number from -100 to 100", id, fields.Short(v))
		}
		s.generation.LogitBias[int32(id)] = float32(bias)
		return nil
	})
}

// settle checks the settings against each other and the model.
func (t *settings) settle(x *server.Exchange) error {
	g := &t.generation
	switch {
	case t.promptScores != nil && t.stream:
		return fields.Invalid("prompt_logprobs", "prompt_logprobs come with answers that are not streams; leave out stream")
	case g.MaxTokens != nil && g.MinTokens > *g.MaxTokens:
		return fields.Invalid("min_tokens", "min_tokens is %d, but the answer ends after %d", g.MinTokens, *g.MaxTokens)
	}
	for id := range g.LogitBias {
		if id < 0 || int(id) >= x.Model().Vocab() {
			return fields.Invalid("logit_bias", "logit_bias has token %d, which is outside the vocabulary of %d", id, x.Model().Vocab())
		}
	}
	for _, id := range g.StopTokens {
		if id < 0 || int(id) >= x.Model().Vocab() {
			return fields.Invalid("stop_token_ids", "stop_token_ids has token %d, which is outside the vocabulary of %d", id, x.Model().Vocab())
		}
	}
	g.Priority = -t.priority
	g.PromptLogProbs = t.promptScores
	return nil
}
