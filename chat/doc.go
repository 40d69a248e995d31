// Package chat turns a conversation into the text a model was trained on, by
// the model's own chat template.
//
// It knows what templates expect to find: messages with roles, text, parts,
// reasoning, tool calls and their results; definitions of tools; the names of
// special tokens. These are the conventions of Hugging Face transformers,
// whose apply_chat_template the package renders alike.
//
// The text comes in spans that say who wrote it. Only what the template wrote
// may become special tokens: a user who types one sends plain text.
//
// The package knows no tokens and no model: turning the text into ids is the
// business of package tokenizer. The template language itself is in
// internal/jinja.
package chat
