package openai

import (
	"encoding/json"

	"github.com/realizar/realizar/internal/server/fields"
)

// A Continuation says whether the answer continues the last message, in vLLM's fields.
type Continuation struct {
	final  bool
	begins *bool // add_generation_prompt: the answer is a message of its own
}

// ContinuationFields are the fields of a [Continuation].
var ContinuationFields = fields.List[Continuation]{
	fields.Flag("continue_final_message", "false: the answer is a message of its own", func(c *Continuation) *bool { return &c.final }),
	fields.New("add_generation_prompt", "true, or with continue_final_message false", "true, or with continue_final_message false", func(c *Continuation, v json.RawMessage) error {
		c.begins = new(false)
		return fields.ReadFlag(v, c.begins)
	}),
}

// Settle reports whether the answer continues the last message.
func (c *Continuation) Settle() (continues bool, err error) {
	switch {
	case c.begins == nil || *c.begins != c.final:
		return c.final, nil
	case c.final:
		return false, fields.Invalid("add_generation_prompt", "add_generation_prompt has the answer be a message of its own, and continue_final_message a part of the last one; leave one out")
	}
	e := fields.Unsupported("add_generation_prompt false is not supported but with continue_final_message: a conversation ends with the beginning of the answer; leave it out")
	e.Param = "add_generation_prompt"
	return false, e
}
