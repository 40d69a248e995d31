// Package chat renders a conversation with a model's own chat template, as the text that the model
// was trained on.
//
// It provides the variables that templates expect: messages with roles, text, parts, reasoning,
// tool calls and their results; definitions of tools; the names of special tokens. These are the
// conventions of Hugging Face transformers, and rendering gives the same text as its
// apply_chat_template.
//
// The text is a list of spans, each by the template or by the caller. Only the template's text may
// become special tokens: a special token that a user types is plain text.
//
// The package does not handle tokens or models: package tokenizer converts the text to ids, and
// internal/jinja implements the template language.
package chat
