package server

import (
	"encoding/json"
	"fmt"

	"github.com/realizar/realizar"
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

var tokenizeFields = fields[tokenizeRequest]{
	text("model", "the model that is served", func(r *tokenizeRequest) *string { return &r.model }),
	{"prompt", "a string", "there are messages", func(r *tokenizeRequest, v json.RawMessage) error {
		r.prompt = new("")
		return readText(v, r.prompt)
	}},
	{"messages", "a list of messages", "there is a prompt", func(r *tokenizeRequest, v json.RawMessage) (err error) {
		r.conversation().Messages, err = readMessages(v)
		return err
	}},
	{"tools", "a list of tools of type function, with messages", "none", func(r *tokenizeRequest, v json.RawMessage) (err error) {
		r.conversation().Tools, err = readTools(v)
		return err
	}},
	{"chat_template_kwargs", "an object of values for the chat template, with messages", "none", func(r *tokenizeRequest, v json.RawMessage) error {
		return readVars(r.conversation(), v)
	}},
	only[tokenizeRequest]("add_generation_prompt", "true", "a conversation ends with the beginning of the answer, as it runs", "true"),
	only[tokenizeRequest]("continue_final_message", "false", "an answer is a message of its own", "false"),
	{"add_special_tokens", "true or false: whether to add what the tokenizer adds to every text", "true for a prompt; the chat template decides for messages", func(r *tokenizeRequest, v json.RawMessage) error {
		r.added = new(false)
		return readFlag(v, r.added)
	}},
	flag("parse_special", "false: what looks like a special token is plain text", func(r *tokenizeRequest) *bool { return &r.special }),
	flag("return_token_strs", "false", func(r *tokenizeRequest) *bool { return &r.strings }),
}

// A tokenizeAnswer is the answer.
type tokenizeAnswer struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []int32  `json:"tokens"`
	TokenStrs   []string `json:"token_strs"` // null where they were not asked for
}

// tokenize is POST /tokenize: the ids that a prompt or a conversation runs as.
func (s *Server) tokenize(x *exchange) error {
	if err := x.noWatch(); err != nil {
		return err
	}
	data, err := s.body(x)
	if err != nil {
		return err
	}
	s.notePrompt(x, data)
	var r tokenizeRequest
	if err := tokenizeFields.decode(&r, data, ""); err != nil {
		return err
	}
	tok, err := s.tokenizerFor(r.model)
	if err != nil {
		return err
	}
	a := tokenizeAnswer{MaxModelLen: s.model.Context()}
	if a.Tokens, err = s.tokensOf(x, &r, tok); err != nil {
		return err
	}
	a.Count = len(a.Tokens)
	if r.strings {
		a.TokenStrs = make([]string, len(a.Tokens))
		for i, id := range a.Tokens {
			a.TokenStrs[i], _ = tok.Token(id)
		}
	}
	return x.answer(&a)
}

func (s *Server) tokensOf(x *exchange, r *tokenizeRequest, tok *tokenizer.Tokenizer) (ids []int32, err error) {
	switch {
	case r.prompt == nil && r.chat == nil:
		return nil, missing("prompt")
	case r.prompt != nil && r.chat != nil:
		return nil, invalid("prompt", "there are both a prompt and messages, or what goes with them; leave one out")
	case r.chat != nil && r.added != nil:
		return nil, invalid("add_special_tokens", "add_special_tokens is for a prompt; a chat template says itself what its text begins with")
	case r.chat != nil && r.special:
		return nil, invalid("parse_special", "parse_special is for a prompt; special tokens in messages are plain text")
	case r.chat != nil && len(r.chat.Messages) == 0:
		return nil, missing("messages")
	case r.chat != nil:
		var p realizar.Prompt
		p, err = s.chatPrompt(x.Context(), nil, r.chat)
		ids = p.Tokens
	case r.added != nil && !*r.added:
		ids = tok.EncodeSpans([]tokenizer.Span{{Text: *r.prompt, Special: r.special}}, false)
	default:
		var p realizar.Prompt
		p, err = s.model.Prompt(&realizar.Request{Prompt: *r.prompt, Special: r.special})
		ids, err = p.Tokens, ofField("prompt", err)
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
func (s *Server) render(x *exchange) error {
	if err := x.noWatch(); err != nil {
		return err
	}
	r, err := s.readChat(x)
	if err != nil {
		return err
	}
	p, err := s.chatPrompt(x.Context(), nil, &r.chat)
	if err != nil {
		return err
	}
	return x.answer(&renderAnswer{Model: s.config.Names[0], Prompt: p.Text.String(), Tokens: p.Tokens, Count: len(p.Tokens), MaxModelLen: s.model.Context()})
}

// A detokenizeRequest is the body of POST /detokenize.
type detokenizeRequest struct {
	model  string
	tokens []int32
	given  bool
}

var detokenizeFields = fields[detokenizeRequest]{
	text("model", "the model that is served", func(r *detokenizeRequest) *string { return &r.model }),
	{"tokens", "a list of token ids", "", func(r *detokenizeRequest, value json.RawMessage) (err error) {
		r.given = true
		if compact(value) == "[]" {
			return nil
		}
		r.tokens, err = readIDs(value)
		return err
	}},
}

// detokenize is POST /detokenize: the text of ids, special tokens included.
func (s *Server) detokenize(x *exchange) error {
	if err := x.noWatch(); err != nil {
		return err
	}
	data, err := s.body(x)
	if err != nil {
		return err
	}
	var r detokenizeRequest
	if err := detokenizeFields.decode(&r, data, ""); err != nil {
		return err
	}
	tok, err := s.tokenizerFor(r.model)
	switch {
	case err != nil:
		return err
	case !r.given:
		return missing("tokens")
	}
	for i, id := range r.tokens {
		if _, ok := tok.Token(id); !ok {
			return invalid("tokens", "tokens[%d] is %d, which is not in the vocabulary of %d tokens", i, id, tok.VocabSize())
		}
	}
	return x.answer(struct {
		Prompt string `json:"prompt"`
	}{tok.Decode(r.tokens, false)})
}

// tokenizerFor is the tokenizer of the model of that name, which may be left out.
func (s *Server) tokenizerFor(name string) (*tokenizer.Tokenizer, error) {
	if name != "" {
		if err := s.checkModel(name); err != nil {
			return nil, err
		}
	}
	tok, err := s.model.Tokenizer()
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return tok, nil
}
