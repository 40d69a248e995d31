package vllm

import (
	"encoding/json"
	"fmt"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/openai"
	"github.com/realizar/realizar/tokenizer"
)

// A tokenizeRequest is the body of POST /tokenize: a prompt, or a conversation.
type tokenizeRequest struct {
	model   string
	prompt  *string
	chat    *realizar.ChatRequest
	added   *bool // what the tokenizer adds to every text
	special bool
	strings bool
}

// conversation is the one that a request has messages for, or something that goes
// with them.
func (r *tokenizeRequest) conversation() *realizar.ChatRequest {
	if r.chat == nil {
		r.chat = &realizar.ChatRequest{}
	}
	return r.chat
}

var tokenizeFields = fields.List[tokenizeRequest]{
	fields.Text("model", "the model that is served", func(r *tokenizeRequest) *string { return &r.model }),
	fields.New("prompt", "a string", "there are messages", func(r *tokenizeRequest, v json.RawMessage) error {
		r.prompt = new("")
		return fields.ReadText(v, r.prompt)
	}),
	fields.New("messages", "a list of messages", "there is a prompt", func(r *tokenizeRequest, v json.RawMessage) (err error) {
		r.conversation().Messages, err = openai.ReadMessages(v)
		return err
	}),
	fields.New("tools", "a list of tools of type function, with messages", "none", func(r *tokenizeRequest, v json.RawMessage) (err error) {
		r.conversation().Tools, err = openai.ReadTools(v)
		return err
	}),
	fields.New("chat_template_kwargs", "an object of values for the chat template, with messages", "none", func(r *tokenizeRequest, v json.RawMessage) error {
		return openai.ReadVars(r.conversation(), v)
	}),
	fields.Only[tokenizeRequest]("add_generation_prompt", "true", "a conversation ends with the beginning of the answer, as it runs", "true"),
	fields.Only[tokenizeRequest]("continue_final_message", "false", "an answer is a message of its own", "false"),
	fields.New("add_special_tokens", "true or false: whether to add what the tokenizer adds to every text", "true for a prompt; the chat template decides for messages", func(r *tokenizeRequest, v json.RawMessage) error {
		r.added = new(false)
		return fields.ReadFlag(v, r.added)
	}),
	fields.Flag("parse_special", "false: what looks like a special token is plain text", func(r *tokenizeRequest) *bool { return &r.special }),
	fields.Flag("return_token_strs", "false", func(r *tokenizeRequest) *bool { return &r.strings }),
}

// A tokenizeAnswer is the answer.
type tokenizeAnswer struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []int32  `json:"tokens"`
	TokenStrs   []string `json:"token_strs"` // null where they were not asked for
}

// tokenize is POST /tokenize: the ids that a prompt or a conversation runs as.
func tokenize(x *server.Exchange) error {
	if err := x.NoTimings(); err != nil {
		return err
	}
	var r tokenizeRequest
	if err := server.Read(x, tokenizeFields, &r); err != nil {
		return err
	}
	tok, err := tokenizerFor(x.Server, r.model)
	if err != nil {
		return err
	}
	a := tokenizeAnswer{MaxModelLen: x.Server.Model().Context()}
	if a.Tokens, err = tokensOf(x, &r, tok); err != nil {
		return err
	}
	a.Count = len(a.Tokens)
	if r.strings {
		a.TokenStrs = make([]string, len(a.Tokens))
		for i, id := range a.Tokens {
			a.TokenStrs[i], _ = tok.Token(id)
		}
	}
	return x.JSON(&a)
}

func tokensOf(x *server.Exchange, r *tokenizeRequest, tok *tokenizer.Tokenizer) (ids []int32, err error) {
	switch {
	case r.prompt == nil && r.chat == nil:
		return nil, fields.Missing("prompt")
	case r.prompt != nil && r.chat != nil:
		return nil, fields.Invalid("prompt", "there are both a prompt and messages, or what goes with them; leave one out")
	case r.chat != nil && r.added != nil:
		return nil, fields.Invalid("add_special_tokens", "add_special_tokens is for a prompt; a chat template says itself what its text begins with")
	case r.chat != nil && r.special:
		return nil, fields.Invalid("parse_special", "parse_special is for a prompt; special tokens in messages are plain text")
	case r.chat != nil && len(r.chat.Messages) == 0:
		return nil, fields.Missing("messages")
	case r.chat != nil:
		var p realizar.Prompt
		p, err = x.ChatPrompt(x.Context(), r.chat, "messages")
		ids = p.Tokens
	case r.added != nil && !*r.added:
		ids = tok.EncodeSpans([]tokenizer.Span{{Text: *r.prompt, Special: r.special}}, false)
	default:
		var p realizar.Prompt
		p, err = x.Server.Model().Prompt(&realizar.Request{Prompt: *r.prompt, Special: r.special})
		ids, err = p.Tokens, server.OfField("prompt", err)
	}
	if ids == nil {
		ids = []int32{} // which JSON would have as null otherwise
	}
	return ids, err
}

// A renderAnswer is the prompt that a chat request runs.
type renderAnswer struct {
	Model       string  `json:"model"`
	Prompt      string  `json:"prompt"`
	Tokens      []int32 `json:"tokens"`
	Count       int     `json:"count"`
	MaxModelLen int     `json:"max_model_len"`
}

// render is POST /v1/chat/completions/render: what a chat request is to the model,
// which does not run.
func render(x *server.Exchange) error {
	if err := x.NoTimings(); err != nil {
		return err
	}
	r, err := openai.ReadChat(x)
	if err != nil {
		return err
	}
	p, err := x.ChatPrompt(x.Context(), r, "messages")
	if err != nil {
		return err
	}
	return x.JSON(&renderAnswer{Model: x.Server.Names()[0], Prompt: p.Text.String(), Tokens: p.Tokens, Count: len(p.Tokens), MaxModelLen: x.Server.Model().Context()})
}

// A detokenizeRequest is the body of POST /detokenize.
type detokenizeRequest struct {
	model  string
	tokens []int32
	given  bool
}

var detokenizeFields = fields.List[detokenizeRequest]{
	fields.Text("model", "the model that is served", func(r *detokenizeRequest) *string { return &r.model }),
	fields.New("tokens", "a list of token ids", "", func(r *detokenizeRequest, value json.RawMessage) (err error) {
		r.given = true
		r.tokens, err = fields.ReadIDs(value)
		return err
	}),
}

// detokenize is POST /detokenize: the text of ids, special tokens included.
func detokenize(x *server.Exchange) error {
	if err := x.NoTimings(); err != nil {
		return err
	}
	data, err := x.ReadBody()
	if err != nil {
		return err
	}
	var r detokenizeRequest
	if err := detokenizeFields.Decode(&r, data, ""); err != nil {
		return err
	}
	tok, err := tokenizerFor(x.Server, r.model)
	switch {
	case err != nil:
		return err
	case !r.given:
		return fields.Missing("tokens")
	}
	for i, id := range r.tokens {
		if _, ok := tok.Token(id); !ok {
			return fields.Invalid("tokens", "tokens[%d] is %d, which is not in the vocabulary of %d tokens", i, id, tok.VocabSize())
		}
	}
	return x.JSON(struct {
		Prompt string `json:"prompt"`
	}{tok.Decode(r.tokens, false)})
}

// tokenizerFor is the tokenizer of the model of that name, which may be left out.
func tokenizerFor(s *server.Server, name string) (*tokenizer.Tokenizer, error) {
	if name != "" {
		if err := s.CheckModel(name); err != nil {
			return nil, err
		}
	}
	tok, err := s.Model().Tokenizer()
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return tok, nil
}
